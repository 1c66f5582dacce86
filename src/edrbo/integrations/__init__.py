"""Other libraries as they know such things: Optuna samplers, BoTorch models and acquisition functions."""
