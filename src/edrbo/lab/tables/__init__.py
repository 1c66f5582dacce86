"""Tables in and out: CSV and Excel."""
