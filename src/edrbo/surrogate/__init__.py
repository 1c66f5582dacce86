"""The surrogate: a batched exact-GP engine, its MAP fit, and the ensemble of experts."""
