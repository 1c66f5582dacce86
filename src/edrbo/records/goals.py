"""The goals: what "best" means when the context varies. c ~ P, the distribution of the contexts.

    Expected()                E f(x, c)                                        the paper; production on average
    CVaR(0.1)                 mean of f over the worst 10 % of contexts        bad days cost most
    Quantile(0.1)             the value reached in 90 % of contexts            guarantees, service levels
    WorstCase()               the worst f over the context box                 safety
    Robust(0.1)               the worst mean over all distributions near P     tomorrow's contexts differ
    MeanSd(1)                 E f − k · sd f                                   robust parameter design
    ProbabilityBetterThan(5)  P(f ≥ 5)                                         yield: the share within specification
    ProbabilityWithin(3, 5)   P(3 ≤ f ≤ 5)
    TargetLoss(50)            E (f − 50)², the smaller the better              Taguchi's loss

With "minimize" each is mirrored: the worst contexts are those with the largest f, ``ProbabilityBetterThan(s)``
is P(f ≤ s), ``MeanSd`` adds the deviation. ``ProbabilityWithin`` and ``TargetLoss`` do not depend on the direction.

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
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar, Literal, TypeVar, get_args

import numpy as np

from edrbo.errors import InvalidValueError, NotStorableError, UnknownNameError
from edrbo.space.point_tables import close_match

__all__ = [
    "CVaR",
    "Direction",
    "Distance",
    "Expected",
    "Goal",
    "MeanSd",
    "ProbabilityBetterThan",
    "ProbabilityWithin",
    "Quantile",
    "Robust",
    "TargetLoss",
    "Utility",
    "WorstCase",
    "as_goal",
    "goal_from_dict",
    "goal_names",
    "parse_goal",
    "register_goal",
    "sign_of",
]


Array = Any  # a NumPy array or a torch tensor; what comes out is of the kind that came in
Direction = Literal["maximize", "minimize"]


def sign_of(direction: Direction) -> float:
    if direction not in ("maximize", "minimize"):
        raise InvalidValueError(f"direction is {direction!r}", 'write "maximize" or "minimize"')
    return 1.0 if direction == "maximize" else -1.0


def module_of(array: Array) -> Any:
    """``numpy`` or ``torch``, whichever the array belongs to; both have the elementwise functions by the same names."""
    if isinstance(array, np.ndarray | np.generic | float):
        return np
    import torch

    return torch


def from_worst(outcomes: Array, weights: Array) -> tuple[Array, Array]:
    """Outcomes from the worst on, and their probabilities (... × m both)."""
    order = outcomes.argsort(-1)
    numeric = module_of(outcomes)
    return along(outcomes, order), along(numeric.broadcast_to(weights, outcomes.shape), order)


def along(rows: Array, index: Array) -> Array:
    """rows[..., index], index by index."""
    numeric = module_of(rows)
    return np.take_along_axis(rows, index, -1) if numeric is np else numeric.take_along_dim(rows, index, -1)


def mean_and_sd(outcomes: Array, weights: Array) -> tuple[Array, Array]:
    numeric = module_of(outcomes)
    mean = (weights * outcomes).sum(-1)
    variance = (weights * (outcomes - mean[..., None]) ** 2).sum(-1)
    positive = variance > 0  # the root's slope at zero must not spoil a gradient
    return mean, numeric.sqrt(numeric.where(positive, variance, variance * 0.0 + 1.0)) * positive


def as_numpy(rows: Array) -> Array:
    """Without its gradient; many small operations are faster there."""
    return rows if isinstance(rows, np.ndarray) else rows.detach().numpy()


def like(values: Array, rows: Array) -> Array:
    """NumPy's ``values`` as what ``rows`` are."""
    return values if isinstance(rows, np.ndarray) else module_of(rows).from_numpy(values)


def smooth_step(distance: Array, sd: Array) -> Array:
    """Φ(distance / sd): 0 below, 1 above."""
    return normal_cdf(distance / module_of(sd).clip(sd, 1e-150, None))


def normal_cdf(z: Array) -> Array:
    if module_of(z) is np:
        from scipy.special import ndtr

        return ndtr(z)
    import torch

    return torch.special.ndtr(z)


def soft_positive(value: Array, scale: Array) -> Array:
    """E max(N(value, scale²), 0): the positive part, its corner rounded off."""
    z = value / module_of(scale).clip(scale, 1e-150, None)
    density = module_of(z).exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    return scale * density + value * normal_cdf(z)


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

    A form asks for the goal by its ``sentence`` with a gap {} for each number; ``usual`` stands in the gaps at first,
    and ``per_cent`` says that these are hundredths. Without a sentence forms do not offer it.
    """

    name: ClassVar[str] = ""
    sentence: ClassVar[str] = ""
    usual: ClassVar[tuple[float, ...]] = ()
    per_cent: ClassVar[bool] = False
    kind: ClassVar[Kind] = "outcome"
    monotone: ClassVar[bool] = True
    in_turn: ClassVar[bool] = False
    of_shares: ClassVar[bool] = False
    of_outcomes: ClassVar[bool] = False
    counts_noise: ClassVar[bool] = False  # whether noise that varies counts as what varies with contexts does
    has_kinks: ClassVar[bool] = True

    @property
    def pointwise(self) -> bool:
        """Whether it has an optimism of its own about each outcome, in place of a functional of the score."""
        return not self.monotone

    @abstractmethod
    def value(self, outcomes: Array, weights: Array, direction: Direction) -> Array:
        """The value of the goal (...), from outcomes in contexts.

        Args:
            outcomes: Outcomes in m contexts (... × m), NumPy arrays or torch tensors.
            weights: The probabilities of the contexts (m or ... × m).
            direction: ``"maximize"`` or ``"minimize"``, that of the study.
        """

    @property
    def over_box(self) -> bool:
        """Whether ``value`` also wants outcomes at points of the whole context box, with weight zero."""
        return False

    def sense(self, direction: Direction) -> float:
        """+1 where a larger value of the goal is better, −1 where a smaller one is.

        Args:
            direction: ``"maximize"`` or ``"minimize"``, that of the study.
        """
        return sign_of(direction)

    def optimistic(self, mean: Array, sd: Array, gain: Array, weights: Array, direction: Direction) -> Array:
        """The best value (...) while each f stays within ``mean`` ± ``gain`` (... × m).

        A negative gain is caution: then f is that much worse than its mean, whichever way that is.

        Args:
            mean: The posterior mean of f in m contexts (... × m).
            sd: The posterior standard deviation (... × m).
            gain: What optimism adds to the mean (... × m).
            weights: The probabilities of the contexts (m or ... × m).
            direction: ``"maximize"`` or ``"minimize"``, that of the study.
        """
        if not self.monotone:
            raise InvalidValueError(
                f"{type(self).__name__} is not monotone in the outcome and does not say what its optimism is",
                "define optimistic(mean, sd, gain, weights, direction), or derive from Utility",
            )
        return self.value(mean + sign_of(direction) * gain, weights, direction)

    def expected(self, mean: Array, sd: Array, weights: Array, direction: Direction) -> Array | None:
        """The posterior expectation (...) of the value if it takes the marginals of f alone, else None.

        Args:
            mean: The posterior mean of f in m contexts (... × m).
            sd: The posterior standard deviation (... × m).
            weights: The probabilities of the contexts (m or ... × m).
            direction: ``"maximize"`` or ``"minimize"``, that of the study.
        """
        return None

    def title(self, direction: Direction = "maximize", outcome: str = "outcome") -> str:
        """What the value is, in words: "mean of the worst 10 % of conditions".

        Args:
            direction: ``"maximize"`` or ``"minimize"``, that of the study.
            outcome: The name of the outcome.
        """
        return self.name or type(self).__name__

    def unit(self, outcome_unit: str = "") -> str:
        """The unit of the value.

        Args:
            outcome_unit: The unit of the outcome.
        """
        return {"outcome": outcome_unit, "probability": "", "squared outcome": outcome_unit and f"{outcome_unit}²"}[
            self.kind
        ]

    def axis(self, direction: Direction = "maximize", outcome: str = "outcome", outcome_unit: str = "") -> str:
        """The label of an axis that shows the value.

        Args:
            direction: ``"maximize"`` or ``"minimize"``, that of the study.
            outcome: The name of the outcome.
            outcome_unit: The unit of the outcome.
        """
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
        """The utility of each outcome by itself.

        Args:
            outcomes: Outcomes in your units, NumPy arrays or torch tensors.
            direction: ``"maximize"`` or ``"minimize"``, that of the study.
        """

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


def goal_classes() -> list[type[Goal]]:
    """The registered classes, in the order of their registration."""
    return list(_REGISTERED.values())


def goal_names() -> list[str]:
    """The registered names, as ``parse_goal`` takes them."""
    return list(_REGISTERED)


def goal_class(name: str) -> type[Goal]:
    """The class that is registered under ``name``."""
    if name not in _REGISTERED:
        raise UnknownNameError(
            f"no goal is called {name!r}",
            " ".join(filter(None, [close_match(name, _REGISTERED, ""), f"They are {', '.join(_REGISTERED)}"])),
        )
    return _REGISTERED[name]


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
    share = name in SHARES
    return _make(name, {field: _read(word.strip(), share) for field, word in zip(names, words, strict=False)})


def as_goal(goal: Goal | str | Mapping[str, Any]) -> Goal:
    """A goal, its text or its dictionary."""
    if isinstance(goal, Goal):
        return goal
    return goal_from_dict(goal) if isinstance(goal, Mapping) else parse_goal(goal)


def _make(name: str, arguments: Mapping[str, Any]) -> Goal:
    try:
        goal: Goal = _class_of(name)(**arguments)
    except TypeError:
        example = EXAMPLES.get(name, f"it takes {_signature(name)}")
        missing = "more must be said" if not arguments else f"{', '.join(arguments)} cannot be what is said"
        raise InvalidValueError(f"of the goal {name} {missing}", example) from None
    return goal


def _class_of(name: str) -> Any:  # a dataclass, which the type of a class does not say
    return goal_class(name)


def _registered_name(goal: Goal) -> str:
    if not goal.registered:
        raise NotStorableError(
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


EXAMPLES = {  # of goals that need a number, as people write them
    "cvar": "write cvar:0.1, the mean of the worst 10 % of conditions",
    "quantile": "write quantile:0.1, what is reached in all but the worst 10 % of conditions",
    "robust": "write robust:0.1, the mean even if conditions shift by 10 % of their range",
    "reach": "write reach:5, how often the result is better than 5",
    "within": "write within:3,5, how often the result lies from 3 to 5",
    "hit": "write hit:5, how close the result is to 5",
}


SHARES = ("cvar", "quantile", "robust")  # of which a number is a share, and may be written in per cent


def _read(word: str, share: bool) -> float | str:
    try:
        if share and word.endswith("%"):
            return float(f"{float(word[:-1]) / 100:.15g}")
        return float(word)
    except ValueError:
        return word


def _number_text(value: float) -> str:
    return repr(value).removesuffix(".0")


Distance = Literal["wasserstein", "total-variation", "kl", "chi-square", "mmd"]

CLIP_STEPS = 26  # bisections for the level at which MeanSd cuts an interval: to 1e-8 of its range, and at the best
# level the value changes with the square of that


@register_goal
@dataclass(frozen=True)
class Expected(Goal):
    """The mean over contexts."""

    name: ClassVar[str] = "expected"
    sentence: ClassVar[str] = "the average over all conditions"
    of_outcomes: ClassVar[bool] = True

    def value(self, outcomes: Array, weights: Array, direction: Direction) -> Array:
        return (weights * outcomes).sum(-1)

    def title(self, direction: Direction = "maximize", outcome: str = "outcome") -> str:
        return "mean over the conditions"


@register_goal
@dataclass(frozen=True)
class CVaR(Goal):
    """Conditional value at risk: the mean over the worst ``level`` of contexts.

    Args:
        level: The share of contexts that count, 0.1 for the worst tenth.
    """

    level: float
    name: ClassVar[str] = "cvar"
    sentence: ClassVar[str] = "the average of the worst {} % of conditions"
    usual: ClassVar[tuple[float, ...]] = (10.0,)
    per_cent: ClassVar[bool] = True
    of_outcomes: ClassVar[bool] = True
    of_shares: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_level(self, most=1.0)

    def value(self, outcomes: Array, weights: Array, direction: Direction) -> Array:
        numeric, sign = module_of(outcomes), sign_of(direction)
        ordered, mass = from_worst(sign * outcomes, weights)
        below = mass.cumsum(-1) - mass
        kept = numeric.minimum(numeric.clip(self.level - below, 0.0, None), mass)
        return sign * (kept * ordered).sum(-1) / kept.sum(-1)

    def title(self, direction: Direction = "maximize", outcome: str = "outcome") -> str:
        return f"mean of the worst {_percent(self.level)} of conditions"


@register_goal
@dataclass(frozen=True)
class Quantile(Goal):
    """The value that is reached in all but the worst ``level`` of contexts.

    Args:
        level: The share of contexts in which the value may be missed.
    """

    level: float
    name: ClassVar[str] = "quantile"
    sentence: ClassVar[str] = "what is reached in all but the worst {} % of conditions"
    usual: ClassVar[tuple[float, ...]] = (10.0,)
    per_cent: ClassVar[bool] = True
    of_outcomes: ClassVar[bool] = True
    of_shares: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_level(self, most=1.0)

    def value(self, outcomes: Array, weights: Array, direction: Direction) -> Array:
        """The first outcome, from the worst, whose contexts and those before it hold ``level``."""
        numeric, sign = module_of(outcomes), sign_of(direction)
        ordered, mass = from_worst(sign * outcomes, weights)
        reached = mass.cumsum(-1)
        # Eight weights of 0.1 must reach 0.8, though their floating-point sum does not.
        enough = numeric.clip(reached[..., -1:], None, self.level) * (1.0 - 1e-12)
        index = (reached < enough).sum(-1)[..., None]
        return sign * along(ordered, index)[..., 0]

    def title(self, direction: Direction = "maximize", outcome: str = "outcome") -> str:
        how = "reached" if direction == "maximize" else "not exceeded"
        return f"value {how} in {_percent(1.0 - self.level)} of conditions"


@register_goal
@dataclass(frozen=True)
class WorstCase(Goal):
    """The worst outcome over the context box, or over the contexts that were ``seen``, whatever their weight.

    Args:
        over: ``"box"``, the bounds of the contexts, or ``"seen"``, those that were seen.
    """

    over: Literal["box", "seen"] = "box"
    name: ClassVar[str] = "worst-case"
    sentence: ClassVar[str] = "the worst of all conditions"
    of_outcomes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.over not in ("box", "seen"):
            raise InvalidValueError(f"a worst case over {self.over!r}", 'write "box" or "seen"')

    @property
    def over_box(self) -> bool:
        return self.over == "box"

    def value(self, outcomes: Array, weights: Array, direction: Direction) -> Array:
        sign = sign_of(direction)
        return sign * module_of(outcomes).amin(sign * outcomes, -1)

    def title(self, direction: Direction = "maximize", outcome: str = "outcome") -> str:
        return "worst case over all conditions" if self.over == "box" else "worst case over the conditions seen"


@register_goal
@dataclass(frozen=True)
class Robust(Goal):
    """The worst mean over all distributions within ``radius`` of the contexts' distribution.

    The Wasserstein distance (of order 1) is a fraction of the context ranges: how far contexts move on average. Total
    variation is Σ|q − p|. KL and χ² re-weigh the contexts seen; the others reach the whole box.

    Args:
        radius: How far the distribution may move, in units of the distance; for Wasserstein a share of the ranges.
        distance: ``"wasserstein"``, ``"kl"``, ``"chi-square"``, ``"total-variation"`` or ``"mmd"``.
    """

    radius: float
    distance: Distance = "wasserstein"
    name: ClassVar[str] = "robust"
    sentence: ClassVar[str] = "the average, even if conditions shift by {} % of their range"
    usual: ClassVar[tuple[float, ...]] = (10.0,)
    per_cent: ClassVar[bool] = True
    of_outcomes: ClassVar[bool] = True
    in_turn: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if finite(self, "radius") < 0:
            raise InvalidValueError(f"radius is {self.radius}", "it must not be negative")
        if self.distance not in get_args(Distance):
            raise InvalidValueError(
                f"no distance is called {self.distance!r}", f"choose from {', '.join(get_args(Distance))}"
            )

    @property
    def over_box(self) -> bool:
        return self.distance in ("wasserstein", "total-variation", "mmd")

    def value(self, outcomes: Array, weights: Array, direction: Direction) -> Array:
        raise InvalidValueError(
            "a worst case over distributions takes the contexts, not their outcomes alone",
            "use edrbo.acquisition.acquisition.ModelGoal(goal, units).value(outcomes, points)",
        )

    def title(self, direction: Direction = "maximize", outcome: str = "outcome") -> str:
        if self.distance == "wasserstein":
            return f"worst mean when conditions shift by {_percent(self.radius)} of their range"
        names = {"total-variation": "total variation", "kl": "KL divergence", "chi-square": "χ² divergence"}
        return f"worst mean over distributions within {self.radius:g} in {names.get(self.distance, 'MMD')}"


@register_goal
@dataclass(frozen=True)
class MeanSd(Goal):
    """The mean, made worse by ``k`` standard deviations over contexts. Not monotone in f: variation is penalized.

    Args:
        k: How many standard deviations over contexts the mean is made worse by.
    """

    k: float
    name: ClassVar[str] = "mean-sd"
    counts_noise: ClassVar[bool] = True
    sentence: ClassVar[str] = "the average, made worse by {} standard deviations"
    usual: ClassVar[tuple[float, ...]] = (1.0,)
    of_outcomes: ClassVar[bool] = True
    has_kinks: ClassVar[bool] = False
    monotone: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if finite(self, "k") < 0:
            raise InvalidValueError(f"k is {self.k}", "it must not be negative")

    def value(self, outcomes: Array, weights: Array, direction: Direction) -> Array:
        mean, sd = mean_and_sd(outcomes, weights)
        return mean - sign_of(direction) * self.k * sd

    def optimistic(self, mean: Array, sd: Array, gain: Array, weights: Array, direction: Direction) -> Array:
        """Exactly the best value over the intervals: the best f there is one level t cut to each interval.

        For the value is concave in f with slope w_j (1 − k (f_j − m)/s): upward in every context below t = m + s/k,
        downward above it. At the best t the value does not change with t, so t needs no gradient.
        """
        numeric, sign = module_of(mean), sign_of(direction)
        center, reach = sign * mean, numeric.clip(gain, 0.0, None)
        center = center + numeric.clip(gain, None, 0.0)  # caution moves the whole interval
        low, high = center - reach, center + reach
        if self.k == 0.0:
            return sign * (weights * high).sum(-1)
        level = like(self._level(as_numpy(low), as_numpy(high), as_numpy(weights)), low)[..., None]
        best = self.value(_cut(level, low, high), weights, "maximize")
        # Where one level fits all intervals, and to leave the lowest end costs more than it brings, that end is best.
        end = numeric.amin(high, -1)
        share = (weights * (high <= end[..., None])).sum(-1)
        flat = (numeric.amax(low, -1) <= end) & (self.k**2 * share >= 1.0 - share)
        return sign * numeric.where(flat, end, best)

    def _level(self, low: Array, high: Array, weights: Array) -> Array:
        """t with t = m + s/k for f = t cut to [low, high], or the highest end if t < m + s/k there still."""
        bottom, top = low.min(-1), high.max(-1)
        slack = 1e-13 * (np.abs(bottom) + np.abs(top))  # where one level fits all intervals both sides are rounding
        for _ in range(CLIP_STEPS):
            middle = 0.5 * (bottom + top)
            cut = np.minimum(np.maximum(middle[..., None], low), high)
            mean = cut @ weights
            cut -= mean[..., None]
            cut *= cut
            rise = self.k * (middle - mean - slack) <= np.sqrt(cut @ weights)
            bottom, top = np.where(rise, middle, bottom), np.where(rise, top, middle)
        return top  # exactly the highest end where nothing need be cut

    def title(self, direction: Direction = "maximize", outcome: str = "outcome") -> str:
        how = "minus" if direction == "maximize" else "plus"
        return f"mean {how} {self.k:g} standard deviation{'' if self.k == 1.0 else 's'}"


def _cut(level: Array, low: Array, high: Array) -> Array:
    """The level, held to [low, high]; an end that holds it has the whole gradient, also where the two are one."""
    numeric = module_of(low)
    return numeric.where(level >= high, high, numeric.where(level <= low, low, level))


def _check_level(goal: CVaR | Quantile, most: float) -> None:
    if not 0.0 < finite(goal, "level") <= most:
        raise InvalidValueError(f"level is {goal.level}", "it is the share of the worst contexts, in (0, 1]")


def _percent(share: float) -> str:
    return f"{100.0 * share:.6g} %"


SOFTNESS = 0.5  # of TargetLoss's optimism, in standard deviations of f


@register_goal
@dataclass(frozen=True)
class ProbabilityBetterThan(Utility):
    """The share of contexts in which the outcome is at least ``spec`` (at most, with "minimize").

    Args:
        spec: What the outcome is to reach, in its units.
    """

    spec: float
    name: ClassVar[str] = "reach"
    counts_noise: ClassVar[bool] = True
    sentence: ClassVar[str] = "how often the result is {better} than {}"
    usual: ClassVar[tuple[float, ...]] = (5.0,)
    of_shares: ClassVar[bool] = True
    has_kinks: ClassVar[bool] = False
    kind: ClassVar[Kind] = "probability"
    monotone: ClassVar[bool] = True
    in_turn: ClassVar[bool] = True

    def __post_init__(self) -> None:
        finite(self, "spec")

    def utility(self, outcomes: Array, direction: Direction) -> Array:
        return 1.0 * (sign_of(direction) * (outcomes - self.spec) >= 0)

    def expected_utility(self, mean: Array, sd: Array, direction: Direction) -> Array:
        return smooth_step(sign_of(direction) * (mean - self.spec), sd)

    def optimistic_utility(self, mean: Array, sd: Array, gain: Array, direction: Direction) -> Array:
        """The probability, f moved up by its gain: a smooth step from 0 to 1 where the bound meets the spec."""
        return smooth_step(sign_of(direction) * (mean - self.spec) + gain, sd)

    def title(self, direction: Direction = "maximize", outcome: str = "outcome") -> str:
        return f"share of conditions with {outcome} {'≥' if direction == 'maximize' else '≤'} {self.spec:g}"


@register_goal
@dataclass(frozen=True)
class ProbabilityWithin(Utility):
    """The share of contexts in which the outcome lies from ``low`` to ``high``.

    Args:
        low: The lower end, in units of the outcome.
        high: The upper end.
    """

    low: float
    high: float
    name: ClassVar[str] = "within"
    counts_noise: ClassVar[bool] = True
    sentence: ClassVar[str] = "how often the result lies from {} to {}"
    usual: ClassVar[tuple[float, ...]] = (3.0, 5.0)
    of_shares: ClassVar[bool] = True
    has_kinks: ClassVar[bool] = False
    kind: ClassVar[Kind] = "probability"

    def __post_init__(self) -> None:
        if not finite(self, "low") < finite(self, "high"):
            raise InvalidValueError(f"nothing lies within {self.low} and {self.high}", "low must be below high")

    def utility(self, outcomes: Array, direction: Direction) -> Array:
        return 1.0 * ((outcomes >= self.low) & (outcomes <= self.high))

    def expected_utility(self, mean: Array, sd: Array, direction: Direction) -> Array:
        return smooth_step(self.high - mean, sd) - smooth_step(self.low - mean, sd)

    def optimistic_utility(self, mean: Array, sd: Array, gain: Array, direction: Direction) -> Array:
        """Whether mean ± gain meets [low, high], as smooth steps: 1 well inside, 0 far off."""
        return smooth_step(self.high - mean + gain, sd) * smooth_step(mean + gain - self.low, sd)

    def title(self, direction: Direction = "maximize", outcome: str = "outcome") -> str:
        return f"share of conditions with {outcome} from {self.low:g} to {self.high:g}"


@register_goal
@dataclass(frozen=True)
class TargetLoss(Utility):
    """The mean squared distance from ``target``; the smaller the better, whatever the direction.

    Args:
        target: The value to hit, in units of the outcome.
    """

    target: float
    name: ClassVar[str] = "hit"
    sentence: ClassVar[str] = "how close the result is to {}"
    usual: ClassVar[tuple[float, ...]] = (5.0,)
    has_kinks: ClassVar[bool] = False
    kind: ClassVar[Kind] = "squared outcome"

    def __post_init__(self) -> None:
        finite(self, "target")

    def sense(self, direction: Direction) -> float:
        return -1.0

    def utility(self, outcomes: Array, direction: Direction) -> Array:
        return (outcomes - self.target) ** 2

    def expected_utility(self, mean: Array, sd: Array, direction: Direction) -> Array:
        return (mean - self.target) ** 2 + sd**2

    def optimistic_utility(self, mean: Array, sd: Array, gain: Array, direction: Direction) -> Array:
        """The squared distance from mean ± gain to the target, rounded off on the scale of sd.

        Rounded off, so that among intervals that hold the target the one around it is best and a gradient leads there.
        """
        numeric = module_of(mean)
        distance = numeric.sqrt((mean - self.target) ** 2 + (SOFTNESS * sd) ** 2)
        return soft_positive(distance - gain, SOFTNESS * sd) ** 2

    def title(self, direction: Direction = "maximize", outcome: str = "outcome") -> str:
        return f"mean squared distance from {self.target:g}"
