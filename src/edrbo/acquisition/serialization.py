"""Serialization of methods: dataclasses and functions known by name, and plain values, as JSON types and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

from edrbo.acquisition import risk
from edrbo.acquisition.confidence import TheoryBeta
from edrbo.acquisition.scores import UCB, BarycenterUCB, DesignUCB, MeanUCB
from edrbo.contexts.distributions import KDE, Box, Empirical, Grid
from edrbo.errors import InvalidValueError
from edrbo.records.goals import Goal, register_goal
from edrbo.surrogate.ensemble import Surrogate
from edrbo.surrogate.hyperparameters import dimension_scaled, ensemble_priors
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


def register(part: Registered) -> Registered:
    """Make a part of your own known by its name, so that a study with it can be stored, and opened again. A decorator.

    It has to be registered before the study is opened.

    Args:
        part: A frozen dataclass (a surrogate, score, distribution of contexts, functional or goal), or a function.
    """
    if isinstance(part, type) and issubclass(part, Goal):
        return register_goal(part)
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
        raise InvalidValueError(f"{shown!r} cannot be stored", "make its name known with edrbo.register")
    return {"part": kind.__name__, **{part.name: dump(getattr(value, part.name)) for part in fields(kind)}}


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
