"""What the runs say: statistics, tests, tables, figures, the page."""
