"""The named methods: each one line of surrogate, score, context distribution and functional.

``n`` is the number of observations, ``d_c`` the number of context variables. Any other combination is a method too:
``Method(surrogate, score, context_distribution, functional)``.
As JSON types a method is dataclasses and functions known by name (``edrbo.register``), and plain values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, TypeVar

from edrbo.acquisition import risk
from edrbo.acquisition.acquisition import AcquisitionFunction, FunctionalOfGoal, set_functional
from edrbo.acquisition.confidence import TheoryBeta
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
from edrbo.contexts.distributions import KDE, Box, ContextDistribution, Empirical, Grid
from edrbo.errors import InvalidValueError, NotStorableError, UnknownNameError
from edrbo.records.goals import Goal, register_goal
from edrbo.surrogate.ensemble import Surrogate, single_gp
from edrbo.surrogate.kernels import dimension_scaled, ensemble_priors
from edrbo.surrogate.warping import WarpedSurrogate

PARTS: dict[str, type[Any]] = {
    part.__name__: part
    for part in (
        *(Surrogate, WarpedSurrogate, UCB, MeanUCB, DesignUCB, BarycenterUCB, TheoryBeta),
        *(Empirical, KDE, Box, Grid),
        *(risk.Expectation, risk.Minimum, risk.KL, risk.ChiSquare, risk.MMD),
        *(risk.MMDMidpoint, risk.CVaRFunctional, risk.VaR, risk.TotalVariation),
        *(risk.Wasserstein, risk.WassersteinLipschitz),
    )
}
FUNCTIONS: dict[str, Callable[..., Any]] = {part.__name__: part for part in (dimension_scaled, ensemble_priors)}


Registered = TypeVar("Registered", bound=Callable[..., Any])


def register(part: Registered, *, functional: FunctionalOfGoal | None = None) -> Registered:
    """Make a part of your own known by its name, so that a study with it can be stored, and opened again. A decorator.

    It has to be registered before the study is opened.

    Args:
        part: A frozen dataclass (a surrogate, score, distribution of contexts, functional, acquisition or goal), or a
            function.
        functional: Of a monotone goal: what the search takes instead of the goal's own value, as a function of the goal
            and of whether it should be soft.
    """
    if isinstance(part, type) and issubclass(part, Goal):
        if functional is not None:
            set_functional(part, functional)
        return register_goal(part)
    if functional is not None:
        raise InvalidValueError(f"{part.__name__} is no goal", "only a goal is searched by a functional")
    if isinstance(part, type) and not is_dataclass(part):
        raise InvalidValueError(f"{part.__name__} is no dataclass", "its fields are what is stored")
    names: dict[str, Any] = PARTS if isinstance(part, type) else FUNCTIONS
    known = names.get(part.__name__)
    if known is not None and (known.__module__, known.__qualname__) != (part.__module__, part.__qualname__):
        raise InvalidValueError(f"a part called {part.__name__!r} exists already", "take another name")
    names[part.__name__] = part
    return part


def dump(value: Any) -> Any:
    """``value`` in JSON types; InvalidValueError for what has no name here."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple | list):
        return [dump(item) for item in value]
    name = getattr(value, "__name__", "")
    if FUNCTIONS.get(name) is value:
        return {"function": name}
    kind = type(value)
    if PARTS.get(kind.__name__) is not kind:
        shown = name or kind.__name__
        raise NotStorableError(f"{shown!r} cannot be stored", "make its name known with edrbo.register")
    return {"part": kind.__name__, **{part.name: dump(getattr(value, part.name)) for part in fields(kind) if part.init}}


def load(record: Any) -> Any:
    """The inverse of ``dump``; InvalidValueError for what it did not write."""
    if isinstance(record, list):
        return tuple(load(item) for item in record)
    if not isinstance(record, Mapping):
        return record
    arguments = dict(record)
    try:
        if "function" in arguments:
            return FUNCTIONS[arguments["function"]]
        kind = PARTS[arguments.pop("part")]
        return kind(**{name: load(part) for name, part in arguments.items()})
    except (KeyError, TypeError):
        raise InvalidValueError(f"this is no part of a method: {dict(record)!r}", "upgrade edrbo to read it") from None


FunctionalSchedule = Callable[[int, int], Functional]


@dataclass(frozen=True)
class Method:
    """score(surrogate) at the points of ``context_distribution``, reduced by ``functional``.

    ``functional`` may be a function of (n, d_c) when its radius shrinks with the data. An ``acquisition`` of one's own
    takes the place of score and functional where a design is asked for.

    Args:
        surrogate: What is believed of f, and how it is fitted.
        score: Optimism at one (x, c).
        context_distribution: What is expected of the next context.
        functional: What makes one number of the scores in all contexts, or a function of (n, d_c) that gives it.
        acquisition: What takes the place of score and functional; None: nothing does.
    """

    surrogate: Surrogate
    score: Score
    context_distribution: ContextDistribution
    functional: Functional | FunctionalSchedule
    acquisition: AcquisitionFunction | None = None

    def functional_at(self, n: int, d_c: int) -> Functional:
        if isinstance(self.functional, Functional):
            return self.functional
        return self.functional(n, d_c)

    def to_dict(self) -> dict[str, Any]:
        """JSON types; parts of your own can be stored once they are registered (``edrbo.register``)."""
        record = {part.name: dump(getattr(self, part.name)) for part in fields(self)}
        return record if self.acquisition is not None else {k: v for k, v in record.items() if k != "acquisition"}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Method:
        """The inverse of ``to_dict``."""
        kinds = {"surrogate": Surrogate, "score": Score, "context_distribution": ContextDistribution}
        parts = {name: load(part) for name, part in record.items()}
        if {*parts} - {"acquisition"} != {*kinds, "functional"} or not all(
            isinstance(parts[name], kinds[name]) for name in kinds
        ):
            raise InvalidValueError(
                "this is not a stored method", "it has a surrogate, a score, a distribution, a functional"
            )
        if not isinstance(parts["functional"], Functional) and not callable(parts["functional"]):
            raise InvalidValueError("this is not a stored method", "its functional is none")
        if not isinstance(parts.get("acquisition"), AcquisitionFunction | None):
            raise InvalidValueError("this is not a stored method", "its acquisition is none")
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
