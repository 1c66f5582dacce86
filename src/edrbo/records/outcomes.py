"""Several outcomes of one run: what each is for. One or more are to be good, the others are to stay within limits.

    Maximize(), Minimize()              a main outcome; two or three of them have a front in place of one best design
    Minimize(weight=0.1)                beside one main outcome: its value counts, times the weight, in the same sum
    Limit(upper=2.0, probability=0.95)  holds in that share of contexts

Every one has its own surrogate on (x, c). With goals G_k (the mean over contexts unless another is given) the best
design maximizes Σ_k ± w_k G_k(f_k(x, ·)), w = 1 for the main outcome, among those of which all limits hold:
P_c(lower ≤ f_r(x, c) ≤ upper) ≥ probability, and that with a posterior probability of ``confidence``. Weights are
exchange rates in the user's units, so they do not move as data come.

``OutcomeRange`` is what an outcome can be at all: a yield lies from 0 to 100 %, power is never below zero.

No model is asked about it. What is said of an outcome is held to it: means, intervals, bounds and the draws from which
values of goals come. A single outcome that was reported may lie outside: instruments have noise.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from edrbo.errors import InvalidValueError, UnknownNameError
from edrbo.records.goals import Goal, ProbabilityBetterThan, ProbabilityWithin, as_goal
from edrbo.space.point_tables import close_match
from edrbo.space.variables import plain_number

HINT = 'write "0:100", "0:" for no upper end, or a pair such as (0, None)'


@dataclass(frozen=True)
class OutcomeRange:
    """From ``lower`` to ``upper``, in the user's units; an end that is None is open."""

    lower: float | None = None
    upper: float | None = None

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            object.__setattr__(self, name, _end(getattr(self, name)))
        if self.lower is None and self.upper is None:
            raise InvalidValueError("an outcome range has no end", HINT)
        if not self.ends[0] < self.ends[1]:
            raise InvalidValueError(f"nothing lies between {self.lower} and {self.upper}", "the lower end comes first")

    @property
    def ends(self) -> tuple[float, float]:
        """Infinite where there is none."""
        return -math.inf if self.lower is None else self.lower, math.inf if self.upper is None else self.upper

    def to_text(self) -> str:
        """Such as ``0:100``; ``read_outcome_range`` is the inverse."""
        return ":".join("" if end is None else repr(end).removesuffix(".0") for end in (self.lower, self.upper))


def read_outcome_range(given: Any) -> OutcomeRange | None:
    """From a pair of numbers (None: open), or its text."""
    if given is None or isinstance(given, OutcomeRange):
        return given
    if isinstance(given, str):
        if given.strip() in ("", "none"):
            return None
        given = [part.strip() or None for part in given.split(":")]
    if not isinstance(given, Sequence) or len(given) != 2:
        raise InvalidValueError(f"the outcome range is {given!r}", HINT)
    return OutcomeRange(*given)


def _end(given: Any) -> float | None:
    if given is None:
        return None
    try:
        number = float(given) if isinstance(given, str) else plain_number(given)
    except ValueError:
        number = math.nan
    if math.isnan(number):
        raise InvalidValueError(f"an end of the outcome range is {given!r}", HINT)
    return number if math.isfinite(number) else None


Array = NDArray[np.float64]
Direction = Literal["maximize", "minimize"]


@dataclass(frozen=True)
class Units:
    """A model's value is ``sign`` · y / ``scale``: it maximizes, and its numbers are of ordinary size.

    Whatever a model says, y lies from ``lowest`` to ``highest``.
    """

    sign: float = 1.0
    scale: float = 1.0
    lowest: float = -math.inf
    highest: float = math.inf

    @classmethod
    def of(cls, direction: Direction, y: Array, ends: tuple[float, float] = (-math.inf, math.inf)) -> Units:
        """For outcomes ``y``, between ``ends``; the scale is a power of two, and 1 for outcomes of ordinary size."""
        largest = float(np.abs(y).max(initial=0.0))
        ordinary = largest == 0.0 or 1e-100 < largest < 1e100
        scale = 1.0 if ordinary else 2.0 ** (math.frexp(largest)[1] - 1)
        return cls(1.0 if direction == "maximize" else -1.0, scale, *ends)

    @property
    def limited(self) -> bool:
        return math.isfinite(self.lowest) or math.isfinite(self.highest)

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest value of a model."""
        low, high = sorted((self.sign * self.lowest / self.scale, self.sign * self.highest / self.scale))
        return low, high

    def to_model(self, y: Any) -> Array:
        return self.sign * (np.asarray(y, dtype=np.float64) / self.scale)

    def variance_to_model(self, variance: Any) -> Array:
        """Of a noise variance in the user's units; two divisions, since the square of the scale may overflow."""
        return np.asarray(variance, dtype=np.float64) / self.scale / self.scale

    def to_user(self, values: Any) -> Array:
        """Values of the model in the user's units and direction, held to what they can be; and to what float64 can
        say, unless infinite."""
        return np.clip(self.sign * self._sized(values), self.lowest, self.highest)

    def spread_to_user(self, sd: Any) -> Array:
        """A standard deviation, or any difference without a direction, in the user's units."""
        return np.abs(self._sized(sd))

    def _sized(self, values: Any) -> Array:
        limit = np.finfo(np.float64).max / max(self.scale, 1.0)
        given = np.asarray(values, dtype=np.float64)
        return np.where(np.isinf(given), given, np.clip(given, -limit, limit) * self.scale)


MOST_MAIN = 3  # outcomes of a front: of more nobody can choose
LONGEST_NAME = 100
PROBABILITY, CONFIDENCE = 0.95, 0.9
HOW = 'write edrbo.Maximize(), edrbo.Minimize() or edrbo.Limit(upper=…), or "maximize"'


@dataclass(frozen=True)
class Wanted:
    """An outcome that is to be large or small: a main one, or beside one with a ``weight``.

    ``goal`` is what that means when the context varies; None: the goal of the study, which is that of its main outcome.
    """

    weight: float | None = None
    goal: Goal | str | None = None
    unit: str = ""

    kind: ClassVar[str] = ""
    direction: ClassVar[Direction] = "maximize"

    def __post_init__(self) -> None:
        if self.weight is not None and not _number(self, "weight", self.weight) > 0:
            hint = "it is above zero; the direction is said by Maximize and Minimize"
            raise InvalidValueError(f"weight of {type(self).__name__} is {self.weight!r}", hint)
        if self.goal is not None:
            object.__setattr__(self, "goal", as_goal(self.goal))
        _check_unit(self.unit)

    @property
    def main(self) -> bool:
        return self.weight is None


@dataclass(frozen=True)
class Maximize(Wanted):
    """An outcome that is to be large: the main one, or with a ``weight`` beside it.

    ``goal`` is what that means when the context varies; None: the goal of the study.

    Args:
        weight: What a unit of it is worth in units of the main outcome; None for the main one.
        goal: What that means when the context varies, as ``"cvar:0.1"``.
        unit: The unit of the outcome.
    """

    kind = "maximize"


@dataclass(frozen=True)
class Minimize(Wanted):
    """An outcome that is to be small: the main one, or with a ``weight`` beside it; ``goal`` as in ``Maximize``.

    Args:
        weight: What a unit of it is worth in units of the main outcome; None for the main one.
        goal: What that means when the context varies, as ``"cvar:0.1"``.
        unit: The unit of the outcome.
    """

    kind = "minimize"
    direction = "minimize"


@dataclass(frozen=True)
class Limit:
    """An outcome that stays from ``lower`` to ``upper`` (one of them, or both) in a share ``probability`` of contexts.

    A design is recommended if that is so with a posterior probability of ``confidence``, given the data: what is not
    known of the outcome counts, and what is not known of the distribution of contexts. By default they are 0.95 and
    0.9.

    Args:
        lower: The lower end, in units of the outcome; None: there is none.
        upper: The upper end.
        probability: The share of contexts in which it is to hold.
        confidence: How sure that is to be before a design is recommended.
        unit: The unit of the outcome.
    """

    lower: float | None = None
    upper: float | None = None
    probability: float = PROBABILITY
    confidence: float = CONFIDENCE
    unit: str = ""

    kind: ClassVar[str] = "limit"

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            if getattr(self, name) is not None:
                _number(self, name, getattr(self, name))
        for name in ("probability", "confidence"):
            if not 0.0 < _number(self, name, getattr(self, name)) < 1.0:
                raise InvalidValueError(f"{name} of Limit is {getattr(self, name)!r}", "it is between 0 and 1")
        if self.lower is None and self.upper is None:
            raise InvalidValueError("a Limit has no end", "give upper, lower or both")
        if self.lower is not None and self.upper is not None and not self.lower < self.upper:
            raise InvalidValueError(f"nothing lies between {self.lower} and {self.upper}", "lower must be below upper")
        _check_unit(self.unit)

    @property
    def direction(self) -> Direction:
        """Which way is the safe one."""
        return "maximize" if self.upper is None else "minimize"

    @property
    def ends(self) -> tuple[float, float]:
        """Of the values that keep it."""
        return (-math.inf if self.lower is None else self.lower), (math.inf if self.upper is None else self.upper)

    @property
    def goal(self) -> Goal:
        """The share of contexts in which it holds."""
        if self.lower is not None and self.upper is not None:
            return ProbabilityWithin(self.lower, self.upper)
        return ProbabilityBetterThan(self.lower if self.upper is None else self.upper)  # type: ignore[arg-type]

    @property
    def contexts_needed(self) -> int:
        """How many contexts must be known before anyone can be as sure as that, even if none of them breaks it: the
        share that breaks it is then Beta(1, n)."""
        return math.ceil(math.log(1.0 - self.confidence) / math.log(self.probability) - 1e-9)

    def probability_within_reach(self, contexts: float) -> float:
        """The largest share, in steps of 5 %, of which that many contexts can make one so sure; zero if of none."""
        most = (1.0 - self.confidence) ** (1.0 / contexts) if contexts > 0 else 0.0
        return min(math.floor(20.0 * most + 1e-9) / 20.0, 0.95)

    def describe(self, name: str) -> str:
        """roughness ≤ 2 µm in 95 % of conditions"""
        after = self.unit and f" {self.unit}"
        low = "" if self.lower is None else f"{self.lower:g} ≤ " if self.upper is not None else ""
        high = f" ≥ {self.lower:g}" if self.upper is None else f" ≤ {self.upper:g}"
        return f"{low}{name}{high}{after} in {100 * self.probability:g} % of conditions"


Aimed = Maximize | Minimize | Limit
KINDS: dict[str, type[Aimed]] = {kind.kind: kind for kind in (Maximize, Minimize, Limit)}


@dataclass(frozen=True)
class Outcomes(Mapping[str, Aimed]):
    """The outcomes of a study by name, in their order."""

    parts: tuple[tuple[str, Aimed], ...]

    def __post_init__(self) -> None:
        main, weighted = self.mains, [name for name, part in self.wanted.items() if not part.main]
        if not main:
            hint = "name the main one too, as gloss=maximize"
            raise InvalidValueError("there are only limits or weights, and no main result", hint)
        if len(main) > MOST_MAIN:
            raise InvalidValueError(f"{len(main)} main outcomes", f"a front has at most {MOST_MAIN}; weigh the others")
        if len(main) > 1 and weighted:
            hint = f"weigh all but one of {', '.join(main)}, or leave the weight of {weighted[0]!r} out"
            raise InvalidValueError("there are several main outcomes and a weight beside them", hint)

    def __getitem__(self, name: str) -> Aimed:
        return dict(self.parts)[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    @property
    def main(self) -> str:
        """The (first) main outcome: what is shown where there is room for one."""
        return self.mains[0]

    @property
    def mains(self) -> list[str]:
        return [name for name, part in self.wanted.items() if part.main]

    @property
    def wanted(self) -> dict[str, Maximize | Minimize]:
        return {name: part for name, part in self.parts if not isinstance(part, Limit)}

    @property
    def limits(self) -> dict[str, Limit]:
        return {name: part for name, part in self.parts if isinstance(part, Limit)}

    @property
    def others(self) -> list[str]:
        """All but ``main``."""
        return [name for name in self if name != self.main]

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """JSON types, without what is as it is by default; ``read_outcomes`` is the inverse."""
        return {name: _part_dict(part) for name, part in self.parts}

    def to_text(self) -> str:
        """gloss=maximize; roughness=limit,upper=2.0"""
        return "; ".join(
            f"{name}={record.pop('aim')}" + "".join(f",{key}={part}" for key, part in record.items())
            for name, record in self.to_dict().items()
        )

    def known(self, name: str) -> str:
        """``name`` itself; UnknownNameError with a hint if no outcome is called so."""
        if name not in self:
            raise UnknownNameError(f"{name!r} is not an outcome", close_match(name, self, f"they are {list(self)}"))
        return name


def read_outcomes(given: Any) -> Outcomes | None:
    """From what people give: aims by name, each as a value, a table or a word. None stays None: one outcome."""
    if given is None or isinstance(given, Outcomes):
        return given
    if not isinstance(given, Mapping) or not given:
        raise InvalidValueError(f"outcomes are {given!r}", 'as in outcomes={"gloss": edrbo.Maximize()}')
    return Outcomes(tuple((_read_name(name), _read_part(name, part)) for name, part in given.items()))


def read_outcome_argument(word: str) -> tuple[str, Aimed]:
    """From a word of a command line: gloss=maximize, cost=minimize,weight=0.1 or roughness=limit,upper=2."""
    name, _, rest = word.partition("=")
    kind, *more = re.split(r",\s*(?=[a-z]+\s*=)", rest)
    record: dict[str, Any] = {"aim": kind.strip()}
    for part in more:
        key, _, text = part.partition("=")
        record[key.strip()] = _number_or_text(text.strip())
    return _read_name(name.strip()), _read_part(name.strip(), record)


def _read_name(name: Any) -> str:
    if not isinstance(name, str) or not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise InvalidValueError(f"an outcome is called {name!r}", "its name is a short text")
    return name


def _read_part(name: Any, given: Any) -> Aimed:
    if isinstance(given, Aimed):
        return given
    record = {"aim": given} if isinstance(given, str) else given
    aim = record.get("aim") if isinstance(record, Mapping) else None
    if not isinstance(aim, str) or aim not in KINDS:
        raise InvalidValueError(f"the outcome {name!r} is {given!r}", HOW)
    kind = KINDS[aim]
    known = [part.name for part in fields(kind)]
    for key in record:
        if key not in ("aim", *known):
            hint = close_match(str(key), known, f"{kind.kind} takes {', '.join(known)}")
            raise InvalidValueError(f"the outcome {name!r} has {key!r}", hint)
    arguments: dict[str, Any] = {str(key): part for key, part in record.items() if key != "aim"}
    return kind(**arguments)


def _part_dict(part: Aimed) -> dict[str, Any]:
    record: dict[str, Any] = {"aim": part.kind}
    for field in fields(part):
        value = getattr(part, field.name)
        if value != field.default:
            record[field.name] = value.to_text() if isinstance(value, Goal) else value
    return record


def _number(part: Any, name: str, given: Any) -> float:
    if not math.isfinite(number := plain_number(given)):
        raise InvalidValueError(f"{name} of {type(part).__name__} is {given!r}", "give a finite number")
    object.__setattr__(part, name, number)
    return number


def _number_or_text(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def _check_unit(unit: Any) -> None:
    if not isinstance(unit, str) or len(unit) > LONGEST_NAME or not unit.isprintable():
        raise InvalidValueError(f"the unit of an outcome is {unit!r}", "it is a short text")
