"""``edrbo bench …``"""
