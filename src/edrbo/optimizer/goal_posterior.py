"""The posterior of a goal's value at designs, by joint samples of f over contexts; goals need not be linear.

Each draw takes an expert, f at the design in all contexts of the distribution from its joint posterior, a distribution
of its own from the Bayesian bootstrap over the contexts, and the goal of that. All designs see the same random numbers.
From these come statements about a design: its value, its worst case in a Wasserstein ball, the price of robustness.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.acquisition.acquisition import ModelGoal
from edrbo.acquisition.risk.base import DEFAULT_SUPPORT
from edrbo.contexts.distributions import ContextPoints, box_points
from edrbo.contexts.uncertainty import DistributionUncertainty
from edrbo.optimizer.calibration import LEAST_FREEDOM, Z95, Trust
from edrbo.optimizer.outcome_posterior import OutcomePosterior
from edrbo.optimizer.stopping import TAIL_FACTOR, Measure, average, spread_out
from edrbo.records.goals import CVaR, Expected, Goal, Robust
from edrbo.records.outcomes import Units
from edrbo.streams import stream
from edrbo.surrogate.ensemble import ExpertEnsemble
from edrbo.surrogate.exact_gp import safe_cholesky
from edrbo.surrogate.scaling import Scaling

Array = NDArray[np.float64]

DRAWS, FEW_DRAWS = 512, 128  # of each design, and where many are asked for or each is a plan
# in which a worst case over distributions is solved, and of which the part of the contexts is reported
CONTEXT_DISTRIBUTIONS = 32
FEW_DISTRIBUTIONS = 8  # of a worst case over distributions
FEW_DESIGNS = 16
MOST_JOINT = 128  # contexts between which all covariances of f are drawn


@dataclass(frozen=True, eq=False)
class GoalValues:
    """Draws (N × draws) of the value of N designs; ``units`` are the model's it is in, None: the goal's own.

    ``draws`` have the tails that the model's record asks for (with few data they have no mean); ``mean`` (N) is the
    posterior expectation without them. ``of_contexts`` and ``of_experts`` (N) are 95 % half-widths when only the
    distribution, or only the expert, is not known.
    """

    draws: Array
    mean: Array
    units: Units | None
    of_contexts: Array
    of_experts: Array

    @property
    def expected(self) -> Array:
        """The posterior expectation (N), in the goal's units and the user's direction."""
        return self._shown(self.mean)

    def quantile(self, level: float) -> Array:
        turned = self.units is not None and self.units.sign < 0
        return self._shown(np.quantile(self.draws, 1.0 - level if turned else level, axis=1))

    @property
    def interval(self) -> tuple[Array, Array]:
        """The central 95 % interval (N each). A skewed value's mean may lie outside of it: then up to there."""
        low, high, mean = self.quantile(0.025), self.quantile(0.975), self.expected
        return np.minimum(low, mean), np.maximum(high, mean)

    @property
    def parts(self) -> tuple[Array, Array, Array]:
        """Half-widths of the 95 % interval from f, the distribution and the experts (N each), which add in squares:
        what the last two do not explain is of f."""
        half = 0.5 * np.abs(self.quantile(0.975) - self.quantile(0.025))
        shown = abs if self.units is None else self.units.spread_to_user
        context_distribution, experts = (np.asarray(shown(part)) for part in (self.of_contexts, self.of_experts))
        return (
            np.sqrt(np.clip(half**2 - context_distribution**2 - experts**2, 0.0, None)),
            context_distribution,
            experts,
        )

    def _shown(self, values: Array) -> Array:
        return values if self.units is None else self.units.to_user(values)


def goal_values(
    model_goal: ModelGoal,
    model: ExpertEnsemble,
    points: ContextPoints,
    effective: float,
    x: Tensor,
    trust: Trust,
    seed: int,
    groups: Tensor | None = None,
) -> GoalValues:
    """At designs ``x`` (N × d_x) under the distribution of ``points``, known as from ``effective`` contexts, with the
    support that matters for each design; ``groups`` as those of a ``DistributionUncertainty``.

    The expectation is that under the mean distribution: exact where it takes the marginals of f alone, else over draws
    of f. Draws of a distribution are distributions of fewer contexts, whose tails are worse than those of the
    distribution that was drawn from; so the draws are moved until their mean is the expectation.
    """
    radius = isinstance(model_goal.goal, Robust)
    count = FEW_DRAWS if len(x) > FEW_DESIGNS or radius else DRAWS
    context_distribution = DistributionUncertainty(points.atoms, points.weights, effective, groups=groups)
    worlds = _Worlds(
        model,
        context_distribution,
        trust.under(model_goal.goal),
        count,
        seed,
        distributions=CONTEXT_DISTRIBUTIONS if radius else count,
    )
    posterior = model_goal.posterior(model, points)
    found = []
    with torch.no_grad():
        for design in x:
            near = posterior.near(design[None]).points
            if near is not points:  # what matters for the mean of f need not be what matters for a draw of it
                near = replace(near, support=torch.cat([near.support, points.support]))
            drawn = worlds.outcomes(design, near.all).held(model_goal)
            values = worlds.under_distributions(model_goal, drawn.outcomes, near)
            center = worlds.under_mean_distribution(model_goal, drawn, near)
            means = worlds.of_means(model_goal, drawn.means, near)
            own = _reduced(model_goal, drawn.means, near, near.mass)
            values = _held(model_goal, values[0] - values[1].mean() + center)
            found.append((values.numpy(), float(center), *_parts(means, own, worlds.shares)))
    draws, *rest = (np.array(part) for part in zip(*found, strict=True)) if found else _NOTHING
    return GoalValues(draws, rest[0], model_goal.units if model_goal.goal.of_outcomes else None, *rest[1:])


def _held(model_goal: ModelGoal, values: Tensor) -> Tensor:
    """To what the goal's value can be."""
    kind = model_goal.goal.kind
    if kind == "outcome":
        return values
    return values.clamp(0.0, 1.0) if kind == "probability" else values.clamp_min(0.0)


def _reduced(model_goal: ModelGoal, outcomes: Tensor, points: ContextPoints, mass: Tensor) -> Tensor:
    """The goal's value (...) of outcomes (... × n) in the contexts ``points.all`` of probability ``mass`` (... × n); of
    goals of outcomes in the model's units."""
    goal, direction = model_goal.goal, model_goal.direction
    if isinstance(goal, Robust):
        return model_goal.modelled_value(outcomes, points)
    value: Tensor = (
        goal.value(outcomes, mass, "maximize")
        if model_goal.goal.of_outcomes
        else goal.value(model_goal.to_user(outcomes), mass, direction)
    )
    return value


def shares_within(
    model_goal: ModelGoal, model: ExpertEnsemble, points: ContextPoints, x: Tensor, trust: Trust, seed: int
) -> Array:
    """Draws of the share of contexts of ``points`` in which a limit holds at designs ``x`` (N × d_x): N × draws.

    ``model_goal`` is 1 where it holds. Only f is drawn, with the tails that the model's record asks for.
    """
    context_distribution = DistributionUncertainty(points.atoms, points.weights, math.inf)
    worlds = _Worlds(
        model, context_distribution, trust, FEW_DRAWS if len(x) > FEW_DESIGNS else DRAWS, seed, distributions=1
    )
    with torch.no_grad():
        drawn = [worlds.outcomes(design, points.atoms).outcomes[0] for design in x]
        return torch.stack([model_goal.value(outcomes, points) for outcomes in drawn]).numpy()


_NOTHING = (np.zeros((0, DRAWS)), np.zeros(0), np.zeros(0), np.zeros(0))


def _parts(centers: Tensor, own: Tensor, shares: Tensor) -> tuple[float, float]:
    """95 % half-widths of distribution and experts from the values at the experts' means: distributions × M, and M for
    the mean distribution."""
    of_distribution = (shares * centers.var(0, correction=1)).sum().sqrt() if len(centers) > 1 else shares.sum() * 0.0
    of_experts = (shares * (own - (shares * own).sum()).square()).sum().sqrt()
    return Z95 * float(of_distribution), Z95 * float(of_experts)


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Of one design in n contexts: ``outcomes`` with tails and plain (2 × draws × n), each expert's ``means`` and
    standard deviations ``sds`` (M × n)."""

    outcomes: Tensor
    means: Tensor
    sds: Tensor

    def held(self, model_goal: ModelGoal) -> _Drawn:
        """Held to what outcomes can be."""
        return replace(self, outcomes=model_goal.held(self.outcomes), means=model_goal.held(self.means))


class _Worlds:
    """The draws that all designs share: which expert, standard normals, distributions, and how far the model's scale is
    off.

    Normals come in pairs of opposite sign, so that what is linear in f has its expectation exactly.
    """

    def __init__(
        self,
        model: ExpertEnsemble,
        context_distribution: DistributionUncertainty,
        trust: Trust,
        count: int,
        seed: int,
        *,
        distributions: int,
    ) -> None:
        self.model, self.count, self.seed = model, count, seed
        experts = model.num_experts
        self.shares = (
            context_distribution.weights.new_full((experts,), 1.0 / experts) if model.weights is None else model.weights
        )
        pairs = np.round(np.cumsum([0.0, *self.shares.tolist()]) * (count // 2)).astype(int)
        self.ends = (2 * pairs).tolist()  # quotas, not lots
        freedom = max(trust.freedom, LEAST_FREEDOM)
        scale = freedom / stream(seed, "scale").chisquare(freedom, (count, 1))
        self.stretch = torch.from_numpy(trust.stretch * np.sqrt(scale))
        self.distributions = context_distribution.small_sample().draw(distributions, seed)

    def outcomes(self, design: Tensor, contexts: Tensor) -> _Drawn:
        """Outcomes of a design (d_x) in these contexts (n × d_c).

        Of many contexts only some are drawn jointly; the others follow from those, each with what is left of its own
        variance. Next to nothing is left: f is smooth and the contexts are dense.
        """
        joint = torch.cat([design.expand(len(contexts), -1), contexts], dim=-1)
        rows = spread_out(contexts, MOST_JOINT)
        mean, variance, beside = self.model.gp.posterior_beside(joint, rows)
        roots = safe_cholesky(beside[:, rows])  # M × s × s
        gains = torch.linalg.solve_triangular(roots, beside.mT, upper=False)  # M × s × n
        left = (variance - gains.square().sum(-2)).clamp_min(0.0).sqrt()
        left[:, rows] = 0.0
        random, half = stream(self.seed, "goal"), self.count // 2
        normal = torch.from_numpy(random.standard_normal((half, len(rows))))
        own = torch.from_numpy(random.standard_normal((half, len(joint)))) if len(rows) < len(joint) else None
        apart = mean.new_zeros(self.count, len(joint))
        center = torch.empty_like(apart)
        for m, (start, end) in enumerate(itertools.pairwise(self.ends)):
            some = slice(start // 2, end // 2)
            moved = normal[some] @ gains[m]
            if own is not None:
                moved = moved + own[some] * left[m]
            apart[start:end] = torch.cat([moved, -moved])
            center[start:end] = mean[m]
        drawn = torch.stack([center + self.stretch * apart, center + apart])
        scaling = self.model.scaling
        return _Drawn(scaling.value(drawn), *scaling.moments(mean, variance.sqrt()))

    def under_distributions(self, model_goal: ModelGoal, outcomes: Tensor, points: ContextPoints) -> Tensor:
        """The goal's value of each draw of outcomes (... × draws × n) under a distribution of its own: ... × draws."""
        support, count = len(points.support), outcomes.shape[-2]
        if not isinstance(model_goal.goal, Robust):
            distributions = self.distributions[torch.arange(count) % len(self.distributions)]
            mass = torch.nn.functional.pad(distributions, (0, support)).expand_as(outcomes)
            return _reduced(model_goal, outcomes, points, mass)
        values = torch.empty(outcomes.shape[:-1], dtype=outcomes.dtype)
        for k, weights in enumerate(self.distributions):
            context_distribution = replace(points, weights=weights)
            values[..., k :: len(self.distributions)] = model_goal.modelled_value(
                outcomes[..., k :: len(self.distributions), :], context_distribution
            )
        return values

    def of_means(self, model_goal: ModelGoal, means: Tensor, points: ContextPoints) -> Tensor:
        """The goal's value of each expert's means (M × n) under some of the distributions: distributions × M."""
        if isinstance(model_goal.goal, Robust):
            some = self.distributions[:FEW_DISTRIBUTIONS]
            return torch.stack(
                [
                    model_goal.modelled_value(means, replace(points, weights=context_distribution))
                    for context_distribution in some
                ]
            )
        mass = torch.nn.functional.pad(self.distributions[:CONTEXT_DISTRIBUTIONS], (0, len(points.support)))[:, None]
        rows = means.expand(len(mass), -1, -1)
        return _reduced(model_goal, rows, points, mass.expand_as(rows))

    def under_mean_distribution(self, model_goal: ModelGoal, drawn: _Drawn, points: ContextPoints) -> Tensor:
        """The posterior expectation of the goal's value under the mean distribution."""
        goal, scaling = model_goal.goal, self.model.scaling
        normal = type(scaling) is Scaling and not model_goal.units.limited  # f, given the expert
        if normal and not model_goal.goal.of_outcomes:
            mean, sd = model_goal.to_user(drawn.means), model_goal.units.scale * drawn.sds
            exact = goal.expected(mean, sd, points.mass, model_goal.direction)
            if exact is not None:
                expected: Tensor = self.shares @ exact
                return expected
        return _reduced(model_goal, drawn.outcomes[1], points, points.mass).mean()


CONFIDENCE = 0.95  # probability with which a worst case is no worse
# of the lengthscales in the contexts, where unseen ones count; and for a worst case
LENGTHSCALE_FACTOR, ROUGHEST = 0.75, 0.5
UNSEEN = 16  # points of the context box that stand for one context more than was seen
FEW_SUPPORT = 16  # points of the context box where many designs are compared
TAIL = 0.1  # of contexts, in the price of robustness
ROBUST_ATOMS = 64  # of the distribution whose worst neighbor is looked for
PAIRS, MOST_ATOMS, FEWEST_ATOMS = 2**14, 4096, 64  # of a design and a context, and contexts for each design


@dataclass(frozen=True, eq=False)
class GoalAnswers:
    """Answers under any goal from one belief; ``lower`` and ``upper`` (d_c) are the coded context box."""

    posterior: OutcomePosterior
    context_distribution: DistributionUncertainty  # how well it is known
    trust: Trust
    lower: Tensor
    upper: Tensor
    seed: int

    @property
    def model_goal(self) -> ModelGoal:
        return self.posterior.model_goal

    def values(self, x: Tensor, goal: Goal | None = None) -> GoalValues:
        """Of designs ``x`` (N × d_x) under ``goal``, or the belief's own."""
        model_goal = self.model_goal if goal is None else replace(self.model_goal, goal=goal)
        context_distribution = self._distribution(model_goal.goal, len(x))
        return self._valued(model_goal, self.model_under(model_goal.goal), context_distribution, x)

    def model_under(self, goal: Goal) -> ExpertEnsemble:
        """Where contexts count that nobody has seen, one that is rougher in them: those seen tell little of how rough f
        is elsewhere."""
        return self._rougher(LENGTHSCALE_FACTOR) if goal.over_box and len(self.lower) else self.posterior.model

    def _valued(
        self, model_goal: ModelGoal, model: ExpertEnsemble, context_distribution: DistributionUncertainty, x: Tensor
    ) -> GoalValues:
        points = self._points(model_goal.goal, context_distribution)
        return goal_values(
            model_goal,
            model,
            points,
            context_distribution.effective,
            x,
            self.trust,
            self.seed,
            context_distribution.groups,
        )

    def _rougher(self, share: float) -> ExpertEnsemble:
        """The members on the same data, with lengthscales in the contexts so many times as long."""
        model = self.posterior.model
        factor = torch.ones_like(model.gp.hyper.lengthscale[0])
        factor[len(factor) - len(self.lower) :] = share
        return model.rougher(factor)

    @property
    def measure(self) -> Measure:
        """How good outcomes are under the goal, in its own units: larger is better."""
        wanted, d_c = self.model_goal, len(self.lower)
        if wanted.goal == Expected():
            return Measure(
                lambda outcomes, weights, points: wanted.units.scale * average(wanted.held(outcomes), weights, points)
            )
        few = (
            box_points(self.lower, self.upper, FEW_SUPPORT, self.context_distribution.levels)
            if wanted.goal.over_box and d_c
            else self.lower.new_zeros(0, d_c)
        )
        if isinstance(wanted.goal, Robust):
            return Measure(
                lambda outcomes, weights, points: wanted.sense * wanted.value(wanted.held(outcomes), points),
                few,
                needs_context_grid=True,
            )
        return Measure(
            lambda outcomes, weights, points: (
                wanted.sense * wanted.goal.value(wanted.to_user(wanted.held(outcomes)), weights, wanted.direction)
            ),
            few,
            of_tails=not len(few),
            unseen=self._unseen(wanted.goal),
            box=(self.lower, self.upper) if wanted.goal.of_shares and d_c else None,
            lengthscale_factor=TAIL_FACTOR,
        )

    def _unseen(self, goal: Goal) -> Tensor:
        """Contexts of which one more may come, where the value hangs on which contexts are bad."""
        none = self.lower.new_zeros(0, len(self.lower))
        if not goal.of_shares or not len(self.lower):
            return none
        return box_points(self.lower, self.upper, UNSEEN, self.context_distribution.levels)

    def _distribution(self, goal: Goal, count: int) -> DistributionUncertainty:
        """On the contexts that ``count`` designs are looked at in: all that were seen, or with their extremes as many
        as there is time for, since means of clusters have no tails. A worst distribution moves mass anywhere: few will
        do.
        """
        if isinstance(goal, Robust):
            return self.context_distribution.thinned(ROBUST_ATOMS)
        found = self.context_distribution.thinned_to_extremes(
            min(max(PAIRS // max(count, 1), FEWEST_ATOMS), MOST_ATOMS)
        )
        return found.with_one_more(self._unseen(goal))

    def _points(self, goal: Goal, context_distribution: DistributionUncertainty) -> ContextPoints:
        wants = goal.over_box and context_distribution.contexts.shape[1] > 0
        support = (
            box_points(self.lower, self.upper, DEFAULT_SUPPORT, context_distribution.levels)
            if wants
            else context_distribution.contexts[:0]
        )
        return ContextPoints(
            context_distribution.contexts, context_distribution.weights, support, levels=context_distribution.levels
        )

    def worst_case(self, x: Tensor, radius: float) -> float:
        """The worst mean within ``radius`` of the distribution at design ``x`` (d_x), no worse than this with
        ``CONFIDENCE``.

        Of a model that is rougher still: the bound is looked for where least is known.
        """
        if self.posterior.points.atoms.shape[1] == 0 or radius == 0.0:
            return float(self.values(x[None], Expected()).expected[0])
        goal = replace(self.model_goal, goal=Robust(radius))
        draws = self._valued(goal, self._rougher(ROUGHEST), self._distribution(goal.goal, 1), x[None])
        return float(draws.quantile(1.0 - CONFIDENCE if self.model_goal.units.sign > 0 else CONFIDENCE)[0])

    def price(self, both: Tensor, means: Sequence[float], radius: float) -> dict[str, dict[str, float]]:
        """Posterior expectations of mean, tail and worst mean in the ball, of the recommended design and of the one
        that is best on average (2 × d_x), whose ``means`` are known more exactly than by draws."""
        goals = {
            f"mean of the worst {TAIL:.0%}": CVaR(TAIL),
            "worst mean in the ball": Robust(radius),
        }
        apart = both[:1] if torch.equal(both[0], both[1]) else both
        found = {name: self.values(apart, goal).expected.tolist() for name, goal in goals.items()}
        return {
            "recommended": {"mean": means[0], **{name: values[0] for name, values in found.items()}},
            "on average": {"mean": means[-1], **{name: values[-1] for name, values in found.items()}},
        }


def text_of(goal: Goal) -> str:
    """As stored, or the class of a goal of one's own."""
    return goal.to_text() if goal.registered else type(goal).__name__


Estimate = tuple[float, tuple[float, float]]  # in the user's units, with a 95 % interval


def paired_values(
    model_goal: ModelGoal,
    model: ExpertEnsemble,
    points: ContextPoints,
    effective: float,
    first: Tensor,
    second: Tensor,
    trust: Trust,
    seed: int,
    groups: Tensor | None = None,
) -> tuple[Estimate, Estimate, Estimate]:
    """The goal's value when the design is ``first``, and when it is ``second``, and by how much the first is better;
    each is a design for every one of ``points.all`` (n × d_x). Otherwise as ``goal_values``.

    Both see the same f, drawn jointly, and the same distributions.
    """
    robust = isinstance(model_goal.goal, Robust)
    count = FEW_DRAWS if robust else DRAWS
    context_distribution = DistributionUncertainty(points.atoms, points.weights, effective, groups=groups)
    worlds = _Worlds(
        model,
        context_distribution,
        trust.under(model_goal.goal),
        count,
        seed,
        distributions=CONTEXT_DISTRIBUTIONS if robust else count,
    )
    units = model_goal.units if model_goal.goal.of_outcomes else None
    with torch.no_grad():
        drawn = worlds.outcomes(torch.cat([first, second]), points.all.repeat(2, 1)).held(model_goal)
        found = []
        for half in (slice(None, len(points.all)), slice(len(points.all), None)):
            mine = _Drawn(drawn.outcomes[..., half], drawn.means[:, half], drawn.sds[:, half])
            values = worlds.under_distributions(model_goal, mine.outcomes, points)
            center = worlds.under_mean_distribution(model_goal, mine, points)
            held = _held(model_goal, values[0] - values[1].mean() + center)
            found.append((held.numpy(), float(center)))
    nothing = np.zeros(1)
    one, other = (GoalValues(draws[None], np.array([mean]), units, nothing, nothing) for draws, mean in found)
    scale = model_goal.sense if units is None else units.scale
    gain = scale * (one.draws[0] - other.draws[0])
    low, high = np.quantile(gain, [0.025, 0.975])
    mean = float(scale * (one.mean[0] - other.mean[0]))
    estimates = [(float(each.expected[0]), tuple(float(end[0]) for end in each.interval)) for each in (one, other)]
    return (
        (estimates[0][0], (estimates[0][1][0], estimates[0][1][1])),
        (estimates[1][0], (estimates[1][1][0], estimates[1][1][1])),
        (mean, (min(float(low), mean), max(float(high), mean))),
    )
