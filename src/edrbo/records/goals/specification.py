"""Goals that compare each outcome with a specification by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from edrbo.errors import InvalidValueError
from edrbo.records.goals.arithmetic import Array, Direction, module_of, sign_of, smooth_step, soft_positive
from edrbo.records.goals.base import Kind, Utility, finite, register_goal

SOFTNESS = 0.5  # of Hit's optimism, in standard deviations of f


@register_goal
@dataclass(frozen=True)
class ProbabilityBetterThan(Utility):
    """The share of contexts in which the outcome is at least ``spec`` (at most, with "minimize")."""

    spec: float
    name: ClassVar[str] = "reach"
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
    """The share of contexts in which the outcome lies from ``low`` to ``high``."""

    low: float
    high: float
    name: ClassVar[str] = "within"
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
    """The mean squared distance from ``target``; the smaller the better, whatever the direction."""

    target: float
    name: ClassVar[str] = "hit"
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
