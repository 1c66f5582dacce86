"""Functionals: how the scores of a design over all contexts become one number."""

from edrbo.acquisition.functional.base import Expectation, Functional, Minimum, WorstCase
from edrbo.acquisition.functional.divergence import KL, ChiSquare
from edrbo.acquisition.functional.mmd import MMD, MMDMidpoint
from edrbo.acquisition.functional.soft import SoftCVaR, SoftMinimum, SoftVaR
from edrbo.acquisition.functional.tail import CVaR, VaR
from edrbo.acquisition.functional.total_variation import TotalVariation
from edrbo.acquisition.functional.wasserstein import Wasserstein, WassersteinLipschitz

__all__ = [
    "KL",
    "MMD",
    "CVaR",
    "ChiSquare",
    "Expectation",
    "Functional",
    "MMDMidpoint",
    "Minimum",
    "SoftCVaR",
    "SoftMinimum",
    "SoftVaR",
    "TotalVariation",
    "VaR",
    "Wasserstein",
    "WassersteinLipschitz",
    "WorstCase",
]
