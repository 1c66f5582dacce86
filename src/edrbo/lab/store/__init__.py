"""Where studies are kept: a table of events in SQLite or PostgreSQL, by one code path.

place.py        what a path or URL is, before anything of it is opened
database.py     SQLite and PostgreSQL as two forms of one thing: read, transaction, typed errors
event_store.py  studies, their events in order, the cache of fits, and whose turn it is to compute
maintenance.py  check, backup, copy, salvage
"""
