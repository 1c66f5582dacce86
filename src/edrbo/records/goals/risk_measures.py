"""Goals that weigh good contexts against bad ones; their value is in units of the outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from edrbo.errors import InvalidValueError
from edrbo.records.goals.arithmetic import (
    Array,
    Direction,
    along,
    as_numpy,
    from_worst,
    like,
    mean_and_sd,
    module_of,
    sign_of,
)
from edrbo.records.goals.base import Goal, finite, register_goal

Distance = Literal["wasserstein", "total-variation", "kl", "chi-square", "mmd"]

CLIP_STEPS = 26  # bisections for the level at which MeanSd cuts an interval: to 1e-8 of its range, and at the best
# level the value changes with the square of that


@register_goal
@dataclass(frozen=True)
class Expected(Goal):
    """The mean over contexts."""

    name: ClassVar[str] = "expected"
    of_outcomes: ClassVar[bool] = True

    def value(self, outcomes: Array, weights: Array, direction: Direction) -> Array:
        return (weights * outcomes).sum(-1)

    def title(self, direction: Direction = "maximize", outcome: str = "outcome") -> str:
        return "mean over the conditions"


@register_goal
@dataclass(frozen=True)
class CVaR(Goal):
    """Conditional value at risk: the mean over the worst ``level`` of contexts."""

    level: float
    name: ClassVar[str] = "cvar"
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
    """The value that is reached in all but the worst ``level`` of contexts."""

    level: float
    name: ClassVar[str] = "quantile"
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
    """The worst outcome over the context box, or over the contexts that were ``seen``, whatever their weight."""

    over: Literal["box", "seen"] = "box"
    name: ClassVar[str] = "worst-case"
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
    """

    radius: float
    distance: Distance = "wasserstein"
    name: ClassVar[str] = "robust"
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
            "use edrbo.acquisition.goal_acquisition.ModelGoal(goal, units).value(outcomes, points)",
        )

    def title(self, direction: Direction = "maximize", outcome: str = "outcome") -> str:
        if self.distance == "wasserstein":
            return f"worst mean when conditions shift by {_percent(self.radius)} of their range"
        names = {"total-variation": "total variation", "kl": "KL divergence", "chi-square": "χ² divergence"}
        return f"worst mean over distributions within {self.radius:g} in {names.get(self.distance, 'MMD')}"


@register_goal
@dataclass(frozen=True)
class MeanSd(Goal):
    """The mean, made worse by ``k`` standard deviations over contexts. Not monotone in f: variation is penalized."""

    k: float
    name: ClassVar[str] = "mean-sd"
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
