"""The surrogate: a batched exact-GP engine, its MAP fit, and the ensemble as a BoTorch model."""
