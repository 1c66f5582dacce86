"""edrbo: Bayesian optimization when the world sets part of the input.

You choose a design x, the world then shows a context c, and an expensive, noisy y = f(x, c) comes back. edrbo finds the
x that is best on average over contexts, or under another goal.

Names load on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edrbo import plot as plot
    from edrbo.acquisition.methods import Method, method_names, register
    from edrbo.client import Client
    from edrbo.integrations.botorch import Ensemble, RobustAcquisition
    from edrbo.integrations.optuna import EDRBOSampler
    from edrbo.lab import Study
    from edrbo.optimizer.loop import Result, maximize, minimize
    from edrbo.optimizer.optimizer import Optimizer
    from edrbo.optimizer.recommendation import Recommendation
    from edrbo.records.earlier import EarlierStudy
    from edrbo.records.goals import (
        CVaR,
        Expected,
        Goal,
        MeanSd,
        ProbabilityBetterThan,
        ProbabilityWithin,
        Quantile,
        Robust,
        TargetLoss,
        Utility,
        WorstCase,
    )
    from edrbo.records.outcomes import Limit, Maximize, Minimize
    from edrbo.records.run import Suggestion
    from edrbo.records.state import Observations
    from edrbo.space import Categorical, Integer, Real, Space
    from edrbo.surrogate.ensemble import Surrogate

__version__ = "0.3.0"

_HOME = {
    "CVaR": "edrbo.records.goals",
    "Client": "edrbo.client",
    "Categorical": "edrbo.space",
    "EDRBOSampler": "edrbo.integrations.optuna",
    "EarlierStudy": "edrbo.records.earlier",
    "Ensemble": "edrbo.integrations.botorch",
    "Expected": "edrbo.records.goals",
    "Goal": "edrbo.records.goals",
    "TargetLoss": "edrbo.records.goals",
    "Integer": "edrbo.space",
    "Limit": "edrbo.records.outcomes",
    "Maximize": "edrbo.records.outcomes",
    "MeanSd": "edrbo.records.goals",
    "Method": "edrbo.acquisition.methods",
    "Minimize": "edrbo.records.outcomes",
    "Observations": "edrbo.records.state",
    "Optimizer": "edrbo.optimizer.optimizer",
    "Quantile": "edrbo.records.goals",
    "ProbabilityBetterThan": "edrbo.records.goals",
    "Real": "edrbo.space",
    "Recommendation": "edrbo.optimizer.recommendation",
    "Result": "edrbo.optimizer.loop",
    "RobustAcquisition": "edrbo.integrations.botorch",
    "Robust": "edrbo.records.goals",
    "Space": "edrbo.space",
    "Study": "edrbo.lab",
    "Suggestion": "edrbo.records.run",
    "Surrogate": "edrbo.surrogate.ensemble",
    "Utility": "edrbo.records.goals",
    "ProbabilityWithin": "edrbo.records.goals",
    "WorstCase": "edrbo.records.goals",
    "maximize": "edrbo.optimizer.loop",
    "method_names": "edrbo.acquisition.methods",
    "minimize": "edrbo.optimizer.loop",
    "register": "edrbo.acquisition.methods",
}

__all__ = [
    "CVaR",
    "Categorical",
    "Client",
    "EDRBOSampler",
    "EarlierStudy",
    "Ensemble",
    "Expected",
    "Goal",
    "Integer",
    "Limit",
    "Maximize",
    "MeanSd",
    "Method",
    "Minimize",
    "Observations",
    "Optimizer",
    "ProbabilityBetterThan",
    "ProbabilityWithin",
    "Quantile",
    "Real",
    "Recommendation",
    "Result",
    "Robust",
    "RobustAcquisition",
    "Space",
    "Study",
    "Suggestion",
    "Surrogate",
    "TargetLoss",
    "Utility",
    "WorstCase",
    "maximize",
    "method_names",
    "minimize",
    "register",
]


def __getattr__(name: str) -> Any:
    if name == "plot":
        return import_module("edrbo.plot")
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'edrbo' has no attribute {name!r}")


def __dir__() -> list[str]:
    """What is for users; not what this module imports for itself."""
    return sorted([*__all__, "__version__", "plot"])
