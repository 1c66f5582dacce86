"""Problems with exact oracles, and the benchmark that runs the methods on them."""
