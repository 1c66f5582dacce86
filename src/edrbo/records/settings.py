"""What an experiment is about: everything that is decided before it begins, as one value.

Python, JSON, TOML, the command line, studies and the Optuna sampler all loop over the fields of ``Settings``. A new
setting is one field here, and an argument of each public signature, which a test compares with the fields.
Each is read from what people give by a reader of its own: checked, in plain types, with an error that says what to
write.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from typing import Any, Literal, get_args

from edrbo.errors import (
    InvalidSpaceError,
    InvalidValueError,
    NotStorableError,
    StudyError,
    UnknownNameError,
)
from edrbo.records.earlier import EarlierStudies, as_earlier
from edrbo.records.goals import Expected, Goal, as_goal
from edrbo.records.known_distribution import KnownDistribution, as_known_distribution
from edrbo.records.outcomes import (
    Direction,
    OutcomeRange,
    Outcomes,
    read_outcome_range,
    read_outcomes,
)
from edrbo.space import Space
from edrbo.space.cost_function import Cost, as_cost
from edrbo.space.point_tables import close_match
from edrbo.space.variables import plain_number

LONGEST_TEXT = 200

# The names of acquisition.methods, which must not be imported here: it loads the engine.
METHOD_NAMES = (
    *("edrbo-mean", "edrbo", "edrbo-published", "edrbo-integrated", "edrbo-warped", "erbo", "wdrbo"),
    *("sbo-kde", "drbo-kde", "stableopt", "drbo-mmd", "drbo-mmd-minmax", "ucb"),
)


def read_method(given: Any) -> Any:
    if isinstance(given, str):
        if given not in METHOD_NAMES:
            hint = close_match(given, METHOD_NAMES, f"choose from {', '.join(METHOD_NAMES)}")
            raise UnknownNameError(f"no method is called {given!r}", hint)
        return given
    if isinstance(given, Mapping):
        return dict(given)
    if not hasattr(given, "functional_at"):  # a Method, which cannot be imported here
        raise InvalidValueError(f"a method is a name or a Method, not {type(given).__name__}")
    return given


def read_choice(name: str, words: tuple[str, ...], hint: str) -> Callable[[Any], str]:
    """One of ``words``."""

    def read(given: Any) -> str:
        if not isinstance(given, str) or given not in words:
            raise InvalidValueError(f"{name} is {given!r}", hint)
        return given

    return read


def read_integer(name: str, least: int | None, hint: str) -> Callable[[Any], int]:
    def read(given: Any) -> int:
        try:
            number = None if isinstance(given, bool) else operator.index(given)
        except TypeError:
            number = None
        if number is None or (least is not None and number < least):
            raise InvalidValueError(f"{name} is {given!r}", hint)
        return number

    return read


def read_evaluations(given: Any) -> int | None:
    hint = "a whole number from 1: how many runs there will be"
    return None if given is None else read_integer("evaluations", 1, hint)(given)


def read_half_life(given: Any) -> float | None:
    if given is None:
        return None
    number = plain_number(given)
    if not (math.isfinite(number) and number > 0):
        raise InvalidValueError(f"context_half_life is {given!r}", "give a half-life in contexts, above zero")
    return number


def read_drift(given: Any) -> Drift:
    """A half-life in runs, "learned", or None."""
    if given is None:
        return None
    if given == "learned":
        return "learned"
    hint = f'give a half-life in runs, above zero, or "{LEARNED}"'
    if isinstance(given, str):
        raise InvalidValueError(f"drift is {given!r}", hint)
    number = plain_number(given)
    if not (math.isfinite(number) and number > 0):
        raise InvalidValueError(f"drift is {given!r}", hint)
    return number


def read_probability(name: str) -> Callable[[Any], float]:
    def read(given: Any) -> float:
        number = plain_number(given)
        if not 0.0 <= number <= 1.0:
            raise InvalidValueError(f"{name} is {given!r}", "give a probability, between 0 and 1")
        return number

    return read


def read_text(name: str) -> Callable[[Any], str]:
    def read(given: Any) -> str:
        if not isinstance(given, str) or len(given) > LONGEST_TEXT or not given.isprintable():
            raise InvalidValueError(f"{name} is {given!r}", f"it is one line of at most {LONGEST_TEXT} characters")
        return given

    return read


LEARNED = "learned"  # of a setting that the data are to choose
FORMAT = 1  # of all records of a study; a newer one is refused, an older one is read
DEFAULT = "edrbo-mean"  # the method chosen by evidence, with and without noise (research/journal.md)
INITIAL = 5  # quasi-random designs before the model takes over, as in the paper
LEAST_SUCCESS = 0.8  # designs that succeed less often are not recommended

Outliers = Literal["robust", "keep"]
NoiseModel = Literal["auto", "constant"]
Drift = float | Literal["learned"] | None
Purpose = Literal["operate", "identify"]


def _about(read: Callable[[Any], Any], about: str, kind: type = str) -> dict[str, Any]:
    """Of a setting: how it is ``read`` from what people give, what it is ``about``, the ``kind`` of its text."""
    return {"read": read, "about": about, "kind": kind}


@dataclass(frozen=True)
class Settings:
    """A space and every choice about it; checked when it is made."""

    space: Space
    method: Any = field(
        default=DEFAULT, metadata=_about(read_method, f"How settings are chosen: {', '.join(METHOD_NAMES)}.")
    )
    direction: Direction = field(
        default="maximize",
        metadata=_about(
            read_choice("direction", get_args(Direction), 'write "maximize" or "minimize"'), "maximize or minimize."
        ),
    )
    seed: int = field(
        default=0,
        metadata=_about(read_integer("seed", None, "give a whole number"), "Seed of everything random.", int),
    )
    context_half_life: float | None = field(
        default=None,
        metadata=_about(read_half_life, "The weight of conditions halves with every so many later ones.", float),
    )
    initial: int = field(
        default=INITIAL,
        metadata=_about(
            read_integer("initial", 1, "a whole number: at least one design must come before the model"),
            "Spread-out runs before the model takes over.",
            int,
        ),
    )

    goal: Goal = field(
        default=Expected(), metadata=_about(as_goal, "What best means: expected, cvar:0.1, robust:0.1, reach:5, …")
    )

    aim: Purpose = field(
        default="operate",
        metadata=_about(
            read_choice(
                "aim",
                get_args(Purpose),
                'write "operate" if every run counts, "identify" if only the design in the end does',
            ),
            "operate: every run counts; identify: only the settings in the end do.",
        ),
    )
    evaluations: int | None = field(
        default=None,
        metadata=_about(read_evaluations, "How many runs there will be, if that is known; for aim = identify.", int),
    )

    least_success: float = field(
        default=LEAST_SUCCESS,
        metadata=_about(
            read_probability("least_success"), "Settings that succeed with less probability are not recommended.", float
        ),
    )

    outliers: Outliers = field(
        default="robust",
        metadata=_about(
            read_choice("outliers", get_args(Outliers), 'write "robust" or "keep"'),
            "robust: single results absurdly far from all others are not learned from; keep.",
        ),
    )

    drift: Drift = field(
        default=None,
        metadata=_about(
            read_drift, "f itself changes: what it was counts half as much after so many runs; or learned."
        ),
    )
    noise_model: NoiseModel = field(
        default="auto",
        metadata=_about(
            read_choice("noise_model", get_args(NoiseModel), 'write "auto" or "constant"'),
            "auto: noise may be larger here than there if the data say so; constant.",
        ),
    )

    outcome: str = field(default="value", metadata=_about(read_text("outcome"), "What is measured, as gloss."))
    unit: str = field(default="", metadata=_about(read_text("unit"), "The unit of what is measured."))
    outcome_range: OutcomeRange | None = field(
        default=None,
        metadata=_about(read_outcome_range, "What the result can be: '0:100', or '0:' if never negative."),
    )
    title: str = field(default="", metadata=_about(read_text("title"), "A name for people, in place of the study's."))
    outcomes: Outcomes | None = field(
        default=None, metadata=_about(read_outcomes, "What each of several results is for; none: there is one.", dict)
    )

    context_distribution: KnownDistribution | None = field(
        default=None,
        metadata=_about(
            lambda given: given, "The distribution of conditions, if you know it: 'humidity = norm(55, 12)'."
        ),
    )

    cost: Cost | None = field(
        default=None,
        metadata=_about(lambda given: given, "What a run costs, in what you set: '10 + 2 * dose'."),
    )

    earlier: EarlierStudies | None = field(
        default=None,
        metadata=_about(
            lambda given: given, "Studies of related machines, campaigns or a simulator: 'line1.db, line2.db'."
        ),
    )

    def __post_init__(self) -> None:
        if not isinstance(self.space, Space):
            raise InvalidSpaceError(
                f"the space is {type(self.space).__name__}, not a Space",
                'make one, as in edrbo.Space(design={"speed": (10, 60)}, context={"humidity": (0, 100)})',
            )
        for choice in self.choices():
            object.__setattr__(self, choice.name, choice.metadata["read"](getattr(self, choice.name)))
        if self.context_distribution is not None:
            known = as_known_distribution(self.context_distribution, self.space)
            object.__setattr__(self, "context_distribution", known)
        if self.cost is not None:
            object.__setattr__(self, "cost", as_cost(self.cost, self.space))
        if self.drift is not None and self.earlier is not None:
            hint = "leave one of them out: what was measured elsewhere has no time here"
            raise InvalidValueError("both drift and earlier studies are given", hint)
        if self.outcomes is not None:
            self._agree_with(self.outcomes)
        if self.earlier is not None:
            measured = [self.outcome, *([] if self.outcomes is None else self.outcomes.others)]
            object.__setattr__(self, "earlier", as_earlier(self.earlier, self.space, measured, self.unit))

    def _agree_with(self, outcomes: Outcomes) -> None:
        """Outcome, direction, unit and goal are those of the main outcome; what says otherwise is an error."""
        for name in outcomes:
            if name in self.space.design or name in self.space.context:
                raise InvalidValueError(f"{name!r} is an outcome and a variable", "each needs a name of its own")
        main = outcomes.wanted[outcomes.main]
        own = {"outcome": outcomes.main, "direction": main.direction, "unit": main.unit or None, "goal": main.goal}
        for name, value in own.items():
            given, default = getattr(self, name), Settings.__dataclass_fields__[name].default
            if value is None or given == value:
                continue
            if given != default:
                hint = f"leave {name} out: it is said by outcomes"
                raise InvalidValueError(f"{name} is {_format(given)}, and the main outcome has {_format(value)}", hint)
            object.__setattr__(self, name, value)

    @property
    def has_front(self) -> bool:
        """Whether several outcomes are the main one, so that no single design is the best."""
        return self.outcomes is not None and len(self.outcomes.mains) > 1

    @classmethod
    def of_call(cls, arguments: Mapping[str, Any], **others: Any) -> Settings:
        """From the arguments of a call, as ``locals()`` has them, with ``others`` in their place."""
        given = {**arguments, **others}
        return cls(**{part.name: given[part.name] for part in fields(cls) if part.name in given})

    @classmethod
    def choices(cls) -> tuple[Field[Any], ...]:
        """The fields besides the space."""
        return tuple(part for part in fields(cls) if part.name != "space")

    def to_dict(self) -> dict[str, Any]:
        """In JSON types; a method of one's own must be made of named parts."""
        choices = {choice.name: _stored(getattr(self, choice.name)) for choice in self.choices()}
        return {"format": FORMAT, "space": self.space.to_dict(), **choices}

    @classmethod
    def from_dict(cls, record: Any) -> Settings:
        """The inverse of ``to_dict``. Settings a record lacks have their defaults: it is from an older version."""
        try:
            version = int(record["format"])
            given = {choice.name: record[choice.name] for choice in cls.choices() if choice.name in record}
            space = record["space"]
        except (AttributeError, KeyError, TypeError, ValueError):
            raise StudyError("the settings cannot be read", "were they written by edrbo?") from None
        if version > FORMAT:
            raise StudyError(f"this was written in format {version}", "upgrade edrbo to open it")
        return cls(Space.from_dict(space), **given)

    def changed(self, record: Mapping[str, Any]) -> Settings:
        """With the values of ``record`` (as ``to_dict`` writes them) in place of its own."""
        known = {choice.name for choice in self.choices()} | {"space"}
        unknown = [name for name in record if name not in known]
        if unknown:
            raise InvalidValueError(f"{unknown[0]!r} is no setting", f"the settings are {', '.join(sorted(known))}")
        values = dict(record)
        if "space" in values:
            values["space"] = Space.from_dict(values["space"])
        return replace(self, **values)

    def differences(self, other: Settings) -> list[str]:
        """What differs from ``other``, one line each, for people to read."""
        pairs = [(choice.name, getattr(self, choice.name), getattr(other, choice.name)) for choice in self.choices()]
        lines = [
            f"{name}: {_format(mine)} is not {_format(theirs)}"
            for name, mine, theirs in pairs
            if mine != theirs
            and _stored(mine) != _stored(theirs)  # a method may be as it was given, or as it is stored
            and not (isinstance(mine, EarlierStudies) and isinstance(theirs, EarlierStudies) and mine.same(theirs))
        ]
        for role in ("design", "context"):
            lines += _variable_differences(role, getattr(self.space, role), getattr(other.space, role))
        ours, theirs = ([constraint.describe() for constraint in each.space.constraints] for each in (self, other))
        lines += [f"the constraint {words!r} is new" for words in ours if words not in theirs]
        lines += [f"the constraint {words!r} is gone" for words in theirs if words not in ours]
        return lines


def _variable_differences(role: str, new: Mapping[str, Any], old: Mapping[str, Any]) -> list[str]:
    lines = [f"{role} variable {name!r} is new" for name in new if name not in old]
    lines += [f"{role} variable {name!r} is gone" for name in old if name not in new]
    for name, variable in new.items():
        if name in old and variable != old[name]:
            one, other = variable.describe(), old[name].describe()
            lines.append(f"{role} variable {name!r} has changed: {one} is not {other}")
    if not lines and list(new) != list(old):
        lines.append(f"the {role} variables are in another order")
    return lines


def _format(value: Any) -> str:
    return value.to_text() if hasattr(value, "to_text") else repr(value)


def _stored(value: Any) -> Any:
    if isinstance(value, Goal):
        return value.to_text()
    if isinstance(value, Cost):
        return value.stored()
    if isinstance(value, OutcomeRange):
        return value.to_text()
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if value is None or isinstance(value, str | int | float | dict):
        return value
    raise NotStorableError(f"a {type(value).__name__} of your own cannot be stored", "use one that edrbo knows by name")
