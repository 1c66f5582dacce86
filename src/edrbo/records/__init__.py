"""Records: events, state, settings, outcomes, goals, as immutable values. NumPy only: no inference here."""
