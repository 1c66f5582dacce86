"""The named methods: each one line of surrogate, score, context distribution and functional.

``n`` is the number of observations, ``d_c`` the number of context variables. Any other combination is a method too:
``Method(surrogate, score, context_distribution, functional)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from edrbo.acquisition.risk import (
    MMD,
    Expectation,
    Functional,
    Minimum,
    MMDMidpoint,
    TotalVariation,
    WassersteinLipschitz,
)
from edrbo.acquisition.scores import UCB, BarycenterUCB, DesignUCB, MeanUCB, Score
from edrbo.acquisition.serialization import FUNCTIONS, dump, load
from edrbo.contexts.distributions import KDE, Box, ContextDistribution, Empirical, Grid
from edrbo.errors import InvalidValueError, UnknownNameError
from edrbo.surrogate.ensemble import Surrogate, single_gp
from edrbo.surrogate.warping import WarpedSurrogate

FunctionalSchedule = Callable[[int, int], Functional]


@dataclass(frozen=True)
class Method:
    """score(surrogate) at the points of ``context_distribution``, reduced by ``functional``.

    ``functional`` may be a function of (n, d_c) when its radius shrinks with the data.
    """

    surrogate: Surrogate
    score: Score
    context_distribution: ContextDistribution
    functional: Functional | FunctionalSchedule

    def functional_at(self, n: int, d_c: int) -> Functional:
        if isinstance(self.functional, Functional):
            return self.functional
        return self.functional(n, d_c)

    def to_dict(self) -> dict[str, Any]:
        """JSON types; parts of your own can be stored once they are registered (``edrbo.register``)."""
        return {part.name: dump(getattr(self, part.name)) for part in fields(self)}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Method:
        """The inverse of ``to_dict``."""
        kinds = {"surrogate": Surrogate, "score": Score, "context_distribution": ContextDistribution}
        parts = {name: load(part) for name, part in record.items()}
        if set(parts) != {*kinds, "functional"} or not all(isinstance(parts[name], kinds[name]) for name in kinds):
            raise InvalidValueError(
                "this is not a stored method", "it has a surrogate, a score, a distribution, a functional"
            )
        if not isinstance(parts["functional"], Functional) and not callable(parts["functional"]):
            raise InvalidValueError("this is not a stored method", "its functional is none")
        return cls(**parts)


def mmd_radius(n: int) -> float:
    return (2.0 + math.sqrt(2.0 * math.log(10.0))) / math.sqrt(n)


def tv_radius(n: int, d_c: int) -> float:
    return float(n ** (-2.0 / (4.0 + d_c)))


def shrinking_lipschitz(n: int, d_c: int) -> Functional:
    return WassersteinLipschitz(0.3 / math.sqrt(n))


def shrinking_total_variation(n: int, d_c: int) -> Functional:
    return TotalVariation(tv_radius(n, d_c))


def shrinking_mmd(n: int, d_c: int) -> Functional:
    return MMD(mmd_radius(n))


def minmax_bounds(n: int, d_c: int) -> Functional:
    """On the 100-point grid of drbo-mmd, with S as on the paper's 1,024 points (docs/methods.md)."""
    return MMDMidpoint(mmd_radius(n), grid_points=1024)


FUNCTIONS.update(
    {part.__name__: part for part in (shrinking_lipschitz, shrinking_total_variation, shrinking_mmd, minmax_bounds)}
)

experts, gp = Surrogate(), single_gp()

METHODS: dict[str, Method] = {
    "edrbo-mean": Method(experts, MeanUCB(), Empirical(), Expectation()),
    "edrbo": Method(experts, BarycenterUCB(), Empirical(), Expectation()),
    "edrbo-published": Method(experts, BarycenterUCB(radius_weight=0.0), Empirical(), Expectation()),
    "edrbo-integrated": Method(experts, BarycenterUCB(integrated=True), Empirical(), Expectation()),
    "edrbo-warped": Method(WarpedSurrogate(), BarycenterUCB(1.0), Empirical(), Expectation()),
    "erbo": Method(gp, UCB(), Empirical(), Expectation()),
    "wdrbo": Method(gp, UCB(), Empirical(), shrinking_lipschitz),
    "sbo-kde": Method(gp, UCB(), KDE(samples=512), Expectation()),
    "drbo-kde": Method(gp, UCB(), KDE(samples=1024), shrinking_total_variation),
    "stableopt": Method(gp, UCB(), Box(width=1.0), Minimum()),
    "drbo-mmd": Method(gp, UCB(), Grid(size=100), shrinking_mmd),
    "drbo-mmd-minmax": Method(gp, UCB(), Grid(size=100), minmax_bounds),
    "ucb": Method(gp, DesignUCB(), Empirical(), Expectation()),
}


def method_names() -> list[str]:
    """The names ``Optimizer(method=...)`` takes."""
    return list(METHODS)


def get_method(method: str | Mapping[str, Any] | Method) -> Method:
    """A method by name, as it was stored, or the method itself."""
    if isinstance(method, Method):
        return method
    if isinstance(method, Mapping):
        return Method.from_dict(method)
    if not isinstance(method, str):
        raise InvalidValueError(f"a method is a name or a Method, not {type(method).__name__}")
    try:
        return METHODS[method]
    except KeyError:
        raise UnknownNameError(f"no method is called {method!r}", f"choose from {', '.join(METHODS)}") from None
