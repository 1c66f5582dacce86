"""What a goal is: the one value that says what "best" means when the context varies.

A goal reduces the outcomes f(x, c_1..c_m) of a design in the contexts of a distribution to one number. It speaks the
user's language: outcomes come in the user's units and the direction is given, so nobody flips a sign. Arrays are
NumPy's or torch's (then differentiable); ``torch`` is loaded only by those who pass tensors.

A goal of one's own is a frozen dataclass that derives from ``Goal`` (a functional of all outcomes) or from ``Utility``
(the mean of something taken at each outcome by itself). To be stored it needs a name and ``edrbo.register``.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np

from edrbo.errors import InvalidValueError, UnknownNameError
from edrbo.records.goals.arithmetic import Array, Direction, module_of, sign_of

Kind = Literal["outcome", "probability", "squared outcome"]

INTERVAL_POINTS = 9  # of [μ − gain, μ + gain], where a utility of one's own looks for its best
QUADRATURE = 32  # Gauss–Hermite nodes for the expectation of a utility of one's own


class Goal(ABC):
    """``value`` is required, everything else has a default that holds for goals in units of the outcome.

    ``monotone`` says that better outcomes never make the value worse; then an optimistic f gives an optimistic value.
    ``in_turn`` says that every second suggestion is for the mean, whose best design is mostly near and more easily
    found. ``of_shares`` says that the value hangs on which contexts are bad or good, so that a distribution of few
    contexts makes it jump; ``of_outcomes`` that it is in units of the outcome and moves with them; ``has_kinks`` that
    its optimism has no gradient everywhere.
    """

    name: ClassVar[str] = ""
    kind: ClassVar[Kind] = "outcome"
    monotone: ClassVar[bool] = True
    in_turn: ClassVar[bool] = False
    of_shares: ClassVar[bool] = False
    of_outcomes: ClassVar[bool] = False
    has_kinks: ClassVar[bool] = True

    @property
    def pointwise(self) -> bool:
        """Whether it has an optimism of its own about each outcome, in place of a functional of the score."""
        return not self.monotone

    @abstractmethod
    def value(self, outcomes: Array, weights: Array, direction: Direction) -> Array:
        """``outcomes`` (... × m) in contexts of probability ``weights`` (m or ... × m) to the goal's value (...)."""

    @property
    def over_box(self) -> bool:
        """Whether ``value`` also wants outcomes at points of the whole context box, with weight zero."""
        return False

    def sense(self, direction: Direction) -> float:
        """+1 where a larger value of the goal is better, −1 where a smaller one is."""
        return sign_of(direction)

    def optimistic(self, mean: Array, sd: Array, gain: Array, weights: Array, direction: Direction) -> Array:
        """The best value (...) while each f stays within ``mean`` ± ``gain`` (... × m).

        A negative gain is caution: then f is that much worse than its mean, whichever way that is.
        """
        if not self.monotone:
            raise InvalidValueError(
                f"{type(self).__name__} is not monotone in the outcome and does not say what its optimism is",
                "define optimistic(mean, sd, gain, weights, direction), or derive from Utility",
            )
        return self.value(mean + sign_of(direction) * gain, weights, direction)

    def expected(self, mean: Array, sd: Array, weights: Array, direction: Direction) -> Array | None:
        """The posterior expectation (...) of the value if it takes the marginals of f alone (... × m), else None."""
        return None

    def title(self, direction: Direction = "maximize", outcome: str = "outcome") -> str:
        """What the value is, in words: "mean of the worst 10 % of conditions"."""
        return self.name or type(self).__name__

    def unit(self, outcome_unit: str = "") -> str:
        """The unit of the value."""
        return {"outcome": outcome_unit, "probability": "", "squared outcome": outcome_unit and f"{outcome_unit}²"}[
            self.kind
        ]

    def axis(self, direction: Direction = "maximize", outcome: str = "outcome", outcome_unit: str = "") -> str:
        """The label of an axis that shows the value."""
        title, unit = self.title(direction, outcome), self.unit(outcome_unit)
        words = f"{outcome}, {title}" if self.kind == "outcome" else title
        return f"{words} ({unit})" if unit else words

    @property
    def registered(self) -> bool:
        """Whether it can be stored."""
        return _REGISTERED.get(self.name) is type(self)

    def to_dict(self) -> dict[str, Any]:
        """JSON types only; ``goal_from_dict`` is the inverse."""
        return {"goal": _registered_name(self), **_arguments(self)}

    def to_text(self) -> str:
        """Such as ``cvar:0.1``; ``parse_goal`` is the inverse."""
        text = _registered_name(self)
        for index, (field, value) in enumerate(_arguments(self).items()):
            if value == _default(type(self), field):
                continue
            number = isinstance(value, float)
            text += ("," if number and index else ":") + (_number_text(value) if number else str(value))
        return text


class Utility(Goal):
    """The mean over contexts of something taken at each outcome by itself; only ``utility`` is required.

    ``sense`` says whether a larger utility is better; by default it is, whatever the direction.
    """

    monotone: ClassVar[bool] = False

    @property
    def pointwise(self) -> bool:
        return True

    @abstractmethod
    def utility(self, outcomes: Array, direction: Direction) -> Array:
        """Elementwise."""

    def value(self, outcomes: Array, weights: Array, direction: Direction) -> Array:
        return (weights * self.utility(outcomes, direction)).sum(-1)

    def sense(self, direction: Direction) -> float:
        return 1.0

    def optimistic(self, mean: Array, sd: Array, gain: Array, weights: Array, direction: Direction) -> Array:
        return (weights * self.optimistic_utility(mean, sd, gain, direction)).sum(-1)

    def expected(self, mean: Array, sd: Array, weights: Array, direction: Direction) -> Array:
        return (weights * self.expected_utility(mean, sd, direction)).sum(-1)

    def optimistic_utility(self, mean: Array, sd: Array, gain: Array, direction: Direction) -> Array:
        """The best utility of an outcome within ``mean`` ± ``gain``, elementwise; the worst where gain is negative."""
        numeric, sense = module_of(mean), self.sense(direction)
        tried = [
            sense * self.utility(mean + share * gain, direction) for share in np.linspace(-1.0, 1.0, INTERVAL_POINTS)
        ]
        best = worst = tried[0]
        for one in tried[1:]:
            best, worst = numeric.maximum(best, one), numeric.minimum(worst, one)
        return sense * numeric.where(gain >= 0, best, worst)

    def expected_utility(self, mean: Array, sd: Array, direction: Direction) -> Array:
        """E u(f) of a Gaussian f, elementwise; by quadrature, which wants a smooth utility."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(QUADRATURE)
        shares = weights / weights.sum()
        terms = [
            float(share) * self.utility(mean + float(node) * sd, direction)
            for node, share in zip(nodes, shares, strict=True)
        ]
        return sum(terms[1:], terms[0])


def finite(goal: Goal, field: str) -> float:
    """The number in ``field`` as a float; set on the frozen goal and returned."""
    value = getattr(goal, field)
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not math.isfinite(value):
        raise InvalidValueError(f"{field} of {type(goal).__name__} is {value!r}", "give a finite number")
    object.__setattr__(goal, field, float(value))
    return float(value)


# -------------------------------------------------------------------- names, text and JSON

_REGISTERED: dict[str, type[Goal]] = {}
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
G = TypeVar("G", bound=type[Goal])


def register_goal(goal: G) -> G:
    """Make a class of goals known by its ``name``, so that it can be stored, written as text, and read again.

    Use it as a decorator. A study with such a goal opens only where the class has been registered before.
    """
    if not _is_goal_class(goal):
        raise InvalidValueError(f"{goal!r} is not a class of goals", "derive a frozen dataclass from edrbo.Goal")
    if not _NAME.fullmatch(goal.name):
        raise InvalidValueError(f"the name of {goal.__name__} is {goal.name!r}", 'write it like "mean-sd"')
    known = _REGISTERED.get(goal.name)
    if known is not None and (known.__module__, known.__qualname__) != (goal.__module__, goal.__qualname__):
        raise InvalidValueError(f"a goal called {goal.name!r} exists already: {known.__name__}", "take another name")
    _REGISTERED[goal.name] = goal
    return goal


def _is_goal_class(candidate: object) -> bool:
    return isinstance(candidate, type) and issubclass(candidate, Goal) and is_dataclass(candidate)


def goal_names() -> list[str]:
    """The registered names, as ``parse_goal`` takes them."""
    return list(_REGISTERED)


def goal_from_dict(record: Mapping[str, Any]) -> Goal:
    """The inverse of ``Goal.to_dict``."""
    if not isinstance(record, Mapping) or not isinstance(record.get("goal"), str):
        raise InvalidValueError(f"this is not a goal: {record!r}", 'a goal looks like {"goal": "cvar", "level": 0.1}')
    return _make(record["goal"], {name: value for name, value in record.items() if name != "goal"})


def parse_goal(text: str) -> Goal:
    """A goal from its text: ``expected``, ``cvar:0.1``, ``robust:0.1:kl``, ``within:3,5``."""
    if not isinstance(text, str):
        raise InvalidValueError(f"a goal is a Goal or its text, not {text!r}", "write for instance cvar:0.1")
    name, *words = re.split("[:,]", text.strip())
    names = [field.name for field in fields(_class_of(name))]
    if len(words) > len(names):
        raise InvalidValueError(f"the goal {text!r} has {len(words)} arguments", f"{name} takes {_signature(name)}")
    return _make(name, {field: _read(word.strip()) for field, word in zip(names, words, strict=False)})


def as_goal(goal: Goal | str | Mapping[str, Any]) -> Goal:
    """A goal, its text or its dictionary."""
    if isinstance(goal, Goal):
        return goal
    return goal_from_dict(goal) if isinstance(goal, Mapping) else parse_goal(goal)


def _make(name: str, arguments: Mapping[str, Any]) -> Goal:
    try:
        goal: Goal = _class_of(name)(**arguments)
    except TypeError:
        raise InvalidValueError(f"{name} does not take {dict(arguments)}", f"it takes {_signature(name)}") from None
    return goal


def _class_of(name: str) -> Any:
    if name not in _REGISTERED:
        raise UnknownNameError(
            f"no goal is called {name!r}",
            f"choose from {', '.join(_REGISTERED)}; a goal of your own must be registered first (edrbo.register)",
        )
    return _REGISTERED[name]


def _registered_name(goal: Goal) -> str:
    if not goal.registered:
        raise InvalidValueError(
            f"the goal {type(goal).__name__} has no registered name, so it cannot be stored",
            "give its class a name and decorate it with edrbo.register",
        )
    return goal.name


def _arguments(goal: Any) -> dict[str, Any]:
    return {field.name: getattr(goal, field.name) for field in fields(goal)}


def _default(goal: Any, name: str) -> Any:
    return next(field.default for field in fields(goal) if field.name == name)


def _signature(name: str) -> str:
    return ", ".join(field.name for field in fields(_class_of(name))) or "no arguments"


def _read(word: str) -> float | str:
    try:
        return float(word)
    except ValueError:
        return word


def _number_text(value: float) -> str:
    return repr(value).removesuffix(".0")
