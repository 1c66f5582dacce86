"""Functionals: how the scores of a design over all contexts become one number."""

from edrbo.functional.base import Expectation, Functional, Minimum, WorstCase
from edrbo.functional.divergence import KL, ChiSquare
from edrbo.functional.mmd import MMD, MMDMidpoint
from edrbo.functional.tail import CVaR, VaR
from edrbo.functional.total_variation import TotalVariation
from edrbo.functional.wasserstein import Wasserstein, WassersteinLipschitz

__all__ = [
    "KL",
    "MMD",
    "CVaR",
    "ChiSquare",
    "Expectation",
    "Functional",
    "MMDMidpoint",
    "Minimum",
    "TotalVariation",
    "VaR",
    "Wasserstein",
    "WassersteinLipschitz",
    "WorstCase",
]
