"""Where studies are kept: a table of events in SQLite or PostgreSQL, by one code path.

database.py     SQLite and PostgreSQL as two forms of one thing: read, transaction, typed errors
event_store.py  studies, their events in order, and the cache of fits
turns.py        whose turn it is to compute a suggestion
"""
