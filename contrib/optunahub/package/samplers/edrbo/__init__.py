"""EDRBOSampler for OptunaHub: the sampler itself comes with the package edrbo."""

from edrbo import EDRBOSampler

__all__ = ["EDRBOSampler"]
