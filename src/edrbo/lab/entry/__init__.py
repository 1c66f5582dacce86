"""The one reader of what people enter: numbers, settings, conditions, results, times, variables and tables of them.

The command line, the lab page, files and TOML read through here, so that the same input is the same event everywhere.
"""
