"""One number per (x, c), then one per x, then the best x: scores, functionals, the acquisition and its maximizer."""
