"""The lab page: ask and tell in a browser, for the person at the line and for the engineer who looks after the study.

registry    where the studies are: a file, a folder, a database
session     one study as it is served: its records, and a worker for inference
security    which requests are let in: hosts, tokens, origins, sizes
api         the operations of the command line as JSON
pages       the screens, which read; everything they write goes through the API
"""
