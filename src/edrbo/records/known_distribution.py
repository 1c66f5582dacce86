"""A known context distribution as a value: named distributions, shares of choices, or samples.

    {"humidity": scipy.stats.norm(55, 12)}                  frozen; kept by name and arguments
    {"humidity": {"name": "norm", "loc": 55, "scale": 12}}  the same, as TOML and JSON have it
    {"humidity": "norm(55, 12)"}                            the same, as people type it
    {"shift": {"day": 0.7, "night": 0.3}}                   shares of choices or values
    samples                                                 a table of contexts, which may go together; with weights as
                                                            {"samples": table, "weights": [...]}

Variables of different distributions are independent; one of which nothing is said is learned from what is seen.
Here is only what can be kept: which distributions there are is known to SciPy (``named_distribution``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edrbo.errors import InvalidContextError, InvalidValueError
from edrbo.records.context_log import read_weights
from edrbo.space import Space
from edrbo.space.point_tables import close_match
from edrbo.space.variables import plain_number

Array = NDArray[np.float64]

MOST_SAMPLES = 5_000  # that are kept; a longer table is better reported as contexts seen
HOW = 'write {"humidity": scipy.stats.norm(55, 12)}, "humidity = norm(55, 12)", or a table of contexts'
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
CALL = re.compile(r"\s*([A-Za-z][A-Za-z0-9_]*)\s*\(([^()]*)\)\s*")


@dataclass(frozen=True)
class Named:
    """A distribution of SciPy by its name, with its arguments."""

    name: str
    arguments: tuple[float, ...] = ()
    keywords: tuple[tuple[str, float], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        given = {"args": list(self.arguments)} if self.arguments else {}
        return {"name": self.name, **given, **dict(self.keywords)}

    def to_text(self) -> str:
        parts = [*(f"{part:g}" for part in self.arguments), *(f"{name}={part:g}" for name, part in self.keywords)]
        return f"{self.name}({', '.join(parts)})"


@dataclass(frozen=True)
class Shares:
    """Values of one variable with their shares, which sum to one."""

    values: tuple[Any, ...]
    shares: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"values": list(self.values), "shares": list(self.shares)}

    def to_text(self) -> str:
        return ", ".join(f"{value}: {share:g}" for value, share in zip(self.values, self.shares, strict=True))


@dataclass(frozen=True)
class KnownDistribution:
    """``parts`` by variable, independent; or ``samples`` of all variables (n rows, in the user's values), with
    ``weights``."""

    parts: tuple[tuple[str, Named | Shares], ...] = ()
    names: tuple[str, ...] = ()
    samples: tuple[tuple[Any, ...], ...] = ()
    weights: tuple[float, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """In JSON types; ``as_known_distribution`` reads it."""
        if not self.samples:
            return {name: part.to_dict() for name, part in self.parts}
        table = {name: [row[k] for row in self.samples] for k, name in enumerate(self.names)}
        return {"samples": table, "weights": list(self.weights)}

    def to_text(self) -> str:
        """For people."""
        if self.samples:
            return f"{len(self.samples)} samples of {', '.join(self.names)}"
        return "; ".join(f"{name} = {part.to_text()}" for name, part in self.parts)

    def covers(self, space: Space) -> bool:
        """Whether it says all of the distribution."""
        return bool(self.samples) or {name for name, _ in self.parts} == set(space.context_names)

    def rows(self, space: Space) -> tuple[Array, Array]:
        """The samples as rows (n × d_c) and their weights (n)."""
        table = [dict(zip(self.names, row, strict=True)) for row in self.samples]
        return space._read_rows(table), np.array(self.weights)


def as_known_distribution(given: Any, space: Space) -> KnownDistribution | None:
    """From what people give, or from a record."""
    if given is None or (isinstance(given, str) and given.strip().lower() in ("", "none")):
        return None
    if isinstance(given, KnownDistribution):
        return _checked(given, space)
    if not space.d_c:
        raise InvalidContextError("there is a distribution and no context variable", "name them in Space(context=...)")
    if isinstance(given, str):
        given = _split(given, space)
    if _is_distribution(given):
        given = {_only(space): given}
    if isinstance(given, Mapping) and "samples" in given and "samples" not in space.context:
        extra = [name for name in given if name not in ("samples", "weights")]
        if extra:
            raise InvalidValueError(f"a distribution of samples has no {extra[0]!r}", "give samples and weights")
        return _of_samples(given["samples"], given.get("weights"), space)
    if not isinstance(given, Mapping) or (_is_table(given) and set(given) >= set(space.context_names)):
        return _of_samples(given, None, space)
    parts = tuple((name, _part(name, part, space)) for name, part in given.items())
    if not parts:
        raise InvalidValueError("the distribution is empty", HOW)
    return KnownDistribution(parts)


def _checked(context_distribution: KnownDistribution, space: Space) -> KnownDistribution:
    """That the variables are those of the space: it may have been amended."""
    return as_known_distribution(context_distribution.to_dict(), space) or context_distribution


def _only(space: Space) -> str:
    if space.d_c != 1:
        raise InvalidValueError("the distribution does not say of which variable it is", HOW)
    return space.context_names[0]


def _is_distribution(given: Any) -> bool:
    frozen = hasattr(given, "dist") and hasattr(given, "args") and hasattr(given, "kwds")
    return frozen or (isinstance(given, Mapping) and isinstance(given.get("name"), str))


def _is_table(given: Mapping[Any, Any]) -> bool:
    """Whether it holds columns, or one context: no distribution and no shares."""
    return not any(_is_distribution(part) or isinstance(part, Mapping | str) for part in given.values())


def _of_samples(given: Any, weights: Any, space: Space) -> KnownDistribution:
    raw = space._read_rows(given)
    if not 0 < len(raw) <= MOST_SAMPLES:
        raise InvalidContextError(f"a distribution of {len(raw)} samples", f"give 1 to {MOST_SAMPLES} of them")
    read = read_weights(weights, len(raw))
    rows = tuple(tuple(row[name] for name in space.context_names) for row in space.name_contexts(raw))
    return KnownDistribution((), space.context_names, rows, tuple((read / read.sum()).tolist()))


def _part(name: Any, given: Any, space: Space) -> Named | Shares:
    if name not in space.context:
        hint = close_match(name, space.context_names, f"the context variables are {list(space.context_names)}")
        raise InvalidContextError(f"{name!r} is not a context variable", hint)
    if isinstance(given, str):
        given = _read_text(name, given)
    if isinstance(given, Named):
        return given
    if _is_distribution(given):
        return _named(name, given)
    if isinstance(given, Mapping):
        pairs = dict(zip(given["values"], given["shares"], strict=True)) if {*given} == {"values", "shares"} else given
        return _shares(name, pairs, space)
    values = np.asarray(given)
    if values.ndim == 1 and len(values):
        found, counts = np.unique(values, return_counts=True)
        return _shares(name, dict(zip(found.tolist(), counts.tolist(), strict=True)), space)
    raise InvalidValueError(f"the distribution of {name!r} is {given!r}", HOW)


def _shares(name: str, given: Mapping[Any, Any], space: Space) -> Shares:
    values = list(given)
    for value in values:
        space.context_numbers({name: value})
    shares = read_weights([part for part in given.values()], len(values))
    if not values:
        raise InvalidValueError(f"the distribution of {name!r} is empty", HOW)
    return Shares(tuple(values), tuple((shares / shares.sum()).tolist()))


def _named(variable: str, given: Any) -> Named:
    if isinstance(given, Mapping):
        name, arguments = given["name"], given.get("args", ())
        keywords = {key: part for key, part in given.items() if key not in ("name", "args")}
    else:
        name, arguments, keywords = getattr(given.dist, "name", None), given.args, given.kwds
        if not type(given.dist).__module__.startswith("scipy.stats"):
            raise InvalidValueError(
                f"the distribution of {variable!r} is a distribution of your own", "give samples of it"
            )
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InvalidValueError(f"{name!r} cannot name a distribution", "write one of scipy.stats, as norm")
    numbers = tuple(_number(variable, part) for part in arguments)
    named = tuple((str(key), _number(variable, part)) for key, part in keywords.items())
    return Named(name, numbers, named)


def _number(variable: str, given: Any) -> float:
    if not math.isfinite(number := plain_number(given)):
        raise InvalidValueError(
            f"an argument of the distribution of {variable!r} is {given!r}", "arguments are finite numbers"
        )
    return number


# -------------------------------------------------------------------- text


def _split(text: str, space: Space) -> Any:
    """``humidity = norm(55, 12); shift = day: 0.7, night: 0.3``, or one distribution alone."""
    pieces = [piece for piece in text.split(";") if piece.strip()]
    if len(pieces) == 1 and not re.match(r"[^=(]*=", pieces[0]):
        return {_only(space): pieces[0]}
    named = [piece.partition("=") for piece in pieces]
    return {name.strip(): context_distribution for name, _, context_distribution in named}


def _read_text(name: str, text: str) -> Named | dict[str, Any]:
    if call := CALL.fullmatch(text):
        words = [word.strip() for word in call[2].split(",") if word.strip()]
        plain = tuple(_text_number(name, word) for word in words if "=" not in word)
        keywords = (word.partition("=") for word in words if "=" in word)
        return Named(call[1], plain, tuple((key.strip(), _text_number(name, part)) for key, _, part in keywords))
    pairs = [word.rpartition(":") for word in text.split(",")]
    if not all(value.strip() for value, _, _ in pairs):
        raise InvalidValueError(f"the distribution of {name!r} is {text.strip()!r}", HOW)
    return {_value(value.strip()): _text_number(name, share) for value, _, share in pairs}


def _text_number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidValueError(
            f"an argument of the distribution of {name!r} is {text.strip()!r}", "it is a number"
        ) from None


def _value(text: str) -> Any:
    """A number if it is one, else a name."""
    try:
        return float(text)
    except ValueError:
        return text
