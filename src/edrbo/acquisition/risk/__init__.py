"""Risk functionals: the scores of a design over all contexts become one number."""

from edrbo.acquisition.risk.base import Expectation, Functional, Minimum, WorstCaseFunctional
from edrbo.acquisition.risk.divergence import KL, ChiSquare, TotalVariation
from edrbo.acquisition.risk.mmd import MMD, MMDMidpoint
from edrbo.acquisition.risk.tail import CVaRFunctional, SoftCVaR, SoftMinimum, SoftVaR, VaR
from edrbo.acquisition.risk.wasserstein import Wasserstein, WassersteinLipschitz

__all__ = [
    "KL",
    "MMD",
    "CVaRFunctional",
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
    "WorstCaseFunctional",
]
