"""The lab page: ask and tell in a browser, for the person at the line and for the engineer who looks after the study.

places      where the studies are: a file, a folder, a database
desk        one study as it is served: its records, and a worker that thinks
guard       who may come in, and with how much
api         the operations of the command line as JSON
pages       the screens, which read; everything they write goes through the API
"""
