"""The portfolio problems: a market, a back-test on it, and the surrogate of its evaluations."""
