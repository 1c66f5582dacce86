"""Search for the design that maximizes an acquisition function."""
