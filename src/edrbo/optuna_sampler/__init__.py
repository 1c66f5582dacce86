"""Any method of edrbo as an Optuna sampler."""

from edrbo.optuna_sampler.sampler import EDRBOSampler

__all__ = ["EDRBOSampler"]
