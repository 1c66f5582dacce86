"""Tolerances of design variables, as contexts of known distribution beside those that the world sets.

What comes out is x + δ, so the value of what is set is a goal of f(x + δ, c) over both: every goal, limit, interval and
search that sums over contexts sums over tolerances as well. A coded context is then (u, c), u in [0, 1] for the range
of δ (``surrogate.tolerance``): a distribution on contexts becomes one on pairs, and what is known of c is all that is
in doubt, since the distribution of u is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from edrbo.acquisition.acquisition import ModelGoal
from edrbo.contexts.distributions import ContextPoints, Levels
from edrbo.contexts.uncertainty import DistributionUncertainty
from edrbo.optimizer.outcome_posterior import OutcomePosterior
from edrbo.records.goals import Goal, Robust, WorstCase
from edrbo.space import Space
from edrbo.space.context_scale import ContextScale
from edrbo.surrogate.ensemble import ExpertEnsemble
from edrbo.surrogate.noise import NoisyGP
from edrbo.surrogate.tolerance import Shift

PAIRED = 64  # atoms of a distribution on pairs, at least, where designs are looked for
BESIDE = 16  # values of u beside each context that was seen


@dataclass(frozen=True, eq=False)
class Tolerances:
    """Of ``names`` (t) variables; ``uniform`` (t) says which of their u are so on [0, 1], others are normal."""

    names: tuple[str, ...]
    uniform: tuple[bool, ...]
    shift: Shift

    @classmethod
    def of(cls, space: Space) -> Tolerances | None:
        """None without any."""
        given = space.tolerances
        if not given:
            return None
        columns = {column.name: column.start for column in space.columns}
        reach = []
        for name, one in given.items():
            variable = space.design[name]
            lower, upper = variable.limits()
            reach.append(one.reach(lower, upper, variable.log))
        offset, slope = torch.tensor(reach, dtype=torch.float64).T
        shift = Shift(space.d_x, torch.tensor([columns[name] for name in given]), offset, slope)
        return cls(tuple(given), tuple(one.uniform for one in given.values()), shift)

    @property
    def count(self) -> int:
        return len(self.names)

    @property
    def titles(self) -> tuple[str, ...]:
        """What each is called beside context variables."""
        return tuple(f"{name} (tolerance)" for name in self.names)

    def values(self, count: int) -> Tensor:
        """``count`` values of u (count × t) of equal weight; each variable's are at the middles of equal shares, in an
        order of its own (Kronecker's sequence), so that they go with anything evenly."""
        middles = (np.arange(count) + 0.5) / count
        columns = []
        for k, uniform in enumerate(self.uniform):
            step = _root(self.count) ** -(k + 1.0)
            order = np.argsort(np.argsort((0.5 + step * np.arange(1, count + 1)) % 1.0, kind="stable"), kind="stable")
            level = torch.from_numpy(middles[order])
            if uniform:
                columns.append(level)
                continue
            normal = torch.special.ndtri(level)
            spread = normal.square().mean().sqrt() if count > 1 else torch.ones(())
            columns.append(0.5 + normal / spread.clamp_min(1e-12) / 6.0)
        return torch.stack(columns, dim=-1)

    def points(self, points: ContextPoints) -> ContextPoints:
        """A distribution and a support on contexts (m × d_c, p × d_c) as one on pairs."""
        repeats = max(1, math.ceil(PAIRED / len(points.atoms)))
        atoms = points.atoms.repeat_interleave(repeats, dim=0)
        weights = points.weights.repeat_interleave(repeats) / repeats
        pairs = torch.cat([self.values(len(atoms)), atoms], dim=-1)
        ends = self._anywhere(len(points.support))
        support = torch.cat([ends, points.support], dim=-1)
        return ContextPoints(pairs, weights, support, points.compression_error, self.levels(points.levels))

    def contexts(self, points: ContextPoints) -> ContextPoints:
        """Of a distribution on pairs that of the contexts alone."""
        levels = None
        if points.levels is not None:
            scale, t = points.levels.scale, self.count
            parts = scale.log[t:], scale.whole[t:], scale.choices[t:]
            levels = Levels(ContextScale(scale.lower[t:], scale.upper[t:], *parts))
        return replace(
            points, atoms=points.atoms[:, self.count :], support=points.support[:, self.count :], levels=levels
        )

    def distribution(self, known: DistributionUncertainty) -> DistributionUncertainty:
        """What is known of the contexts (N × d_c), with every one beside values of u: those are not in doubt."""
        size = len(known.contexts)
        groups = torch.arange(size) if known.groups is None else known.groups
        return replace(
            known,
            contexts=torch.cat([self.values(size * BESIDE), known.contexts.repeat_interleave(BESIDE, dim=0)], dim=-1),
            weights=known.weights.repeat_interleave(BESIDE) / BESIDE,
            levels=self.levels(known.levels),
            groups=None if known.exact else groups.repeat_interleave(BESIDE),
        )

    def levels(self, levels: Levels | None) -> Levels | None:
        """Of pairs, whose u are real."""
        if levels is None:
            return None
        own, scale = np.zeros(self.count), levels.scale
        nothing = (False,) * self.count
        return Levels(
            ContextScale(
                np.concatenate([own, scale.lower]),
                np.concatenate([own + 1.0, scale.upper]),
                nothing + scale.log,
                nothing + scale.whole,
                (0,) * self.count + scale.choices,
            )
        )

    def box(self, lower: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
        """The ends of the box of pairs."""
        return torch.cat([lower.new_zeros(self.count), lower]), torch.cat([upper.new_ones(self.count), upper])

    def goal(self, wanted: ModelGoal) -> ModelGoal:
        """A goal once the context is known: over what comes out."""
        if isinstance(wanted.goal, Robust):
            return wanted.given_context()
        return replace(wanted, goal=WorstCase("seen")) if isinstance(wanted.goal, WorstCase) else wanted

    def model(self, model: ExpertEnsemble) -> ExpertEnsemble:
        """Of what comes out, asked about what is set."""
        return model.shifted(self.shift)

    def posterior(self, posterior: OutcomePosterior, model_goal: ModelGoal | None = None) -> OutcomePosterior:
        """What is believed of what is set, by what is believed of what comes out; ``model_goal`` is another goal."""
        smooth = posterior.smooth
        return replace(
            posterior,
            model=self.model(posterior.model),
            points=self.points(posterior.points),
            smooth=None if smooth is None else self.points(smooth),
            model_goal=posterior.model_goal if model_goal is None else model_goal,
        )

    def _anywhere(self, count: int) -> Tensor:
        """Values of u that reach to the ends (count × t), for points that stand for all contexts."""
        return torch.stack([values.argsort().argsort() / max(count - 1, 1) for values in self.values(count).T], dim=-1)


@dataclass(frozen=True, eq=False)
class NoiseDeviation(Tolerances):
    """Noise that varies as one more deviation, standard normal: the outcome is f(x, c) + u √noise(x, c)."""

    @property
    def titles(self) -> tuple[str, ...]:
        return self.names

    def goal(self, wanted: ModelGoal) -> ModelGoal:
        return wanted

    def model(self, model: ExpertEnsemble) -> ExpertEnsemble:
        return replace(model, gp=NoisyGP.of(model.gp, self.shift))


def noise_deviation(space: Space) -> NoiseDeviation:
    nothing = torch.zeros(1, dtype=torch.float64)
    return NoiseDeviation(("noise",), (False,), Shift(space.d_x, torch.zeros(1, dtype=torch.long), nothing, nothing))


def deviations(space: Space, model: ExpertEnsemble | None, goal: Goal) -> Tolerances | None:
    """What a goal is over besides contexts: tolerances, or noise that varies under goals that count it."""
    varies = model is not None and model.gp.hyper.noise_profile is not None
    return noise_deviation(space) if varies and goal.counts_noise and not space.tolerances else Tolerances.of(space)


def deviations_in(space: Space, model: ExpertEnsemble) -> Tolerances | None:
    """Those that ``model`` is asked by."""
    return noise_deviation(space) if model.gp.of_outcomes else Tolerances.of(space)


def contexts_alone(space: Space, model: ExpertEnsemble, points: ContextPoints) -> ContextPoints:
    """The distribution that a model was asked by, without its noise."""
    return noise_deviation(space).contexts(points) if model.gp.of_outcomes else points


def _root(count: int) -> float:
    """The root above one of zᵗ⁺¹ = z + 1: its powers make evenly spread sequences in t dimensions."""
    root = 1.5
    for _ in range(64):
        root = (1.0 + root) ** (1.0 / (count + 1.0))
    return root
