"""The posterior of one outcome: the surrogate conditioned on all data, with the distribution of the next context.

Rows with a known context train the surrogate. The others enter as *spread* observations: at a few atoms of the context
distribution at once, each with its noise divided by the atom's weight, so that together they weigh as one observation.

    an outcome without a context    y at the atoms, noise + the variance of f over the distribution
    … of which a part is known      the same for the distribution given that part (contexts/partial.py)

A pending suggestion is one evaluation to come, in one context: the model's own mean at one atom of the distribution, so
that only the variance shrinks (hallucination; Desautels et al., 2014), and by no more than one evaluation gives. The
atoms take turns.

A failed evaluation says nothing about f. It is what the model of feasibility learns from, which is made once there is
one.

What is asked of a posterior where the next design is chosen: of one outcome (``OutcomePosterior``) or several
(``JointPosterior``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.acquisition.acquisition import (
    AcquisitionFunction,
    GoalAcquisition,
    ModelGoal,
    OwnAcquisition,
    RobustAcquisition,
)
from edrbo.acquisition.methods import Method
from edrbo.acquisition.objective import Acquisition, FunctionObjective, Objective
from edrbo.acquisition.penalties import LogRisk, penalize_failure, penalize_pending
from edrbo.acquisition.risk import Expectation, Functional
from edrbo.acquisition.scores import UCB, Score
from edrbo.contexts.distributions import ContextHistory, ContextPoints, Given, compress, smoothed
from edrbo.records.goals import Expected
from edrbo.streams import in_turn, stream_seed
from edrbo.surrogate.drift import faded
from edrbo.surrogate.ensemble import ExpertEnsemble, Surrogate
from edrbo.surrogate.feasibility import Feasibility, fit_feasibility
from edrbo.surrogate.gaussian_model import pairs


class Posterior(Protocol):
    """A model conditioned on everything known, and a distribution of contexts."""

    @property
    def model(self) -> ExpertEnsemble:
        """The surrogate of the main outcome."""

    @property
    def points(self) -> ContextPoints:
        """The distribution of the next context."""

    def for_suggestion(self, number: int) -> Self:
        """What the suggestion of this number is asked by."""

    def acquisition(self) -> Acquisition:
        """What the next design maximizes."""

    def feasible(self, approximations: Sequence[Objective]) -> list[Objective]:
        """``approximations``, less what the risk of failing costs."""

    def penalize_pending(self, approximations: Sequence[Objective]) -> list[Objective]:
        """``approximations``, away from what is being evaluated."""

    def values(self, x: Tensor) -> Tensor:
        """What designs ``x`` (N × d_x) are worth without optimism (N)."""

    def level(self, x: Tensor) -> float:
        """The best value that is had already with one of the designs ``x`` (N × d_x)."""

    def with_pending(self, x: Tensor) -> Self:
        """Once ``x`` (q × d_x) is being evaluated."""


SPREAD_ATOMS = 4
NONE_PENDING = torch.zeros(0, 0, dtype=torch.float64)
NO_TIME = torch.zeros(0, dtype=torch.float64)
OPTIMISM = 1.0  # about success where a design is asked for, in standard deviations of what it hangs on


@dataclass(frozen=True)
class Runs:
    """All finished evaluations, coded: designs n × d_x, contexts n × d_c (NaN where not known), success n."""

    x: Tensor
    c: Tensor
    success: Tensor


@dataclass(frozen=True)
class Spread:
    """An outcome in a context of which a part is known: ``contexts`` (k × d_c) that it may be, with ``weights`` (k)."""

    x: Tensor
    y: float
    noise_variance: float  # NaN: not known
    contexts: Tensor
    weights: Tensor
    discrete: NDArray[np.bool_]

    def few(self) -> tuple[Tensor, Tensor]:
        """At most ``SPREAD_ATOMS`` of them."""
        small = compress(self.contexts, self.weights, SPREAD_ATOMS, discrete=self.discrete)
        return small.atoms, small.weights


@dataclass(frozen=True)
class Extras:
    """What is known besides complete observations; designs coded, outcomes in the model's units.

    ``runs`` is None as long as none has failed; ``outcome_range`` is how far ordinary outcomes are apart.
    """

    missing_x: Tensor
    missing_y: Tensor
    missing_noise: Tensor
    pending_x: Tensor
    runs: Runs | None
    outcome_range: float
    partial: tuple[Spread, ...] = ()
    time: Tensor = NO_TIME  # the run of each of those without a context, then of those with a part of one


@dataclass(frozen=True)
class OutcomePosterior:
    """A model of f on (x, c) and a context distribution, ready for acquisition functions.

    ``functional`` is the method's own, where that is its idea; None: the method follows the goal. So is ``own``, an
    acquisition function in place of score and functional, which draws by ``seed``. ``smooth`` is the distribution under
    which the best design is looked for, where that is not ``points``.
    """

    model: ExpertEnsemble
    points: ContextPoints
    functional: Functional | None
    score: Score
    model_goal: ModelGoal
    feasibility: Feasibility | None = None  # None: nothing has failed yet
    outcome_range: float = 1.0
    smooth: ContextPoints | None = None
    pending: Tensor = NONE_PENDING  # designs that are being evaluated (P × d_x)
    own: AcquisitionFunction | None = None
    seed: int = 0

    def acquisition(self) -> RobustAcquisition | GoalAcquisition | OwnAcquisition:
        if self.own is not None:
            seed = stream_seed(self.seed, "acquisition", len(self.pending))
            function = self.own.function(self.model, self.points, self.model_goal, seed)
            return OwnAcquisition(FunctionObjective(function), self.own.has_kinks)
        return self._robust_acquisition()

    def _robust_acquisition(self) -> RobustAcquisition | GoalAcquisition:
        if self.functional is None:
            return self.model_goal.acquisition(self.model, self.score, self.points)
        return RobustAcquisition(self.model, self.score, self.points, self.functional)

    def for_suggestion(self, number: int) -> OutcomePosterior:
        """What the suggestion of this number is asked by: under goals that say so every second one is for the mean.

        What is good on average is learned from every context, a worst distribution or a share from few of them; runs
        that ask for these alone converge to local optima (research/journal has the trial). A method's own idea is not
        interrupted.
        """
        idea = self.functional is not None or self.own is not None
        if number % 2 or idea or not self.model_goal.goal.in_turn:
            return self
        points = replace(self.points, support=self.points.support[:0])
        return replace(self, model_goal=replace(self.model_goal, goal=Expected()), points=points)

    def feasible(self, approximations: Sequence[Objective]) -> list[Objective]:
        """``approximations``, an acquisition's, less what the risk of failing costs."""
        if self.feasibility is None:
            return list(approximations)
        return penalize_failure(approximations, self.feasibility, LogRisk(self.outcome_range, OPTIMISM))

    def penalize_pending(self, approximations: Sequence[Objective], worth: float | None = None) -> list[Objective]:
        """``approximations``, whose values are ``worth`` apart, by default an acquisition's, away from what is
        pending."""
        if not len(self.pending):
            return list(approximations)
        lengthscale = self.model.gp.hyper.lengthscale[:, : self.pending.shape[-1]].log().mean(0).exp()
        return penalize_pending(approximations, self.pending, lengthscale, self.worth if worth is None else worth)

    @property
    def worth(self) -> float:
        """How far values of the acquisition may be apart."""
        if self.functional is not None or (self.model_goal.goal.of_outcomes and not self.model_goal.goal.pointwise):
            return self.outcome_range
        wide = float(self.model_goal.units.spread_to_user(self.outcome_range))
        return {"outcome": wide, "probability": 1.0, "squared outcome": wide**2}[self.model_goal.goal.kind]

    def success(self, x: Tensor) -> float | None:
        """Probability that an evaluation of the design ``x`` (d_x) succeeds; None as long as none has failed."""
        return None if self.feasibility is None else float(self.feasibility.probability(x[None]))

    def mean_objective(self) -> OutcomePosterior:
        """Without optimism: the posterior-mean objective."""
        return replace(self, score=UCB(beta=0.0, integrated=self.score.integrated), own=None)

    def values(self, x: Tensor) -> Tensor:
        """What designs ``x`` (N × d_x) are worth as ``acquisition`` counts, without optimism (N)."""
        with torch.no_grad():
            return self.feasible([self.mean_objective()._robust_acquisition()])[0](x)

    def level(self, x: Tensor) -> float:
        """The best value that is had already with one of the designs ``x`` (N × d_x); of none, less than anything."""
        return float(self.values(x).max()) if len(x) else -torch.inf

    def with_pending(self, x: Tensor) -> OutcomePosterior:
        """The belief once ``x`` (q × d_x) is being evaluated."""
        pending = torch.cat([self.pending, x]) if len(self.pending) else x
        return replace(self, model=_hallucinate(self.model, x, *_few_atoms(self.points)), pending=pending)


def condition(
    method: Method,
    model: ExpertEnsemble | None,
    extras: Extras,
    history: ContextHistory,
    fixed: Tensor | None,
    n: int,
    seed: int,
    model_goal: ModelGoal,
    *,
    asking: bool,
    forecast: bool = False,
) -> OutcomePosterior:
    """Put model, distribution, functional of ``method`` and goal together, for asking or for answering.

    ``model`` has seen the complete observations (None if there are none); ``fixed`` (1 × d_c) is a known next context.
    With ``forecast`` the history is the user's own distribution.
    """
    d_c = len(history.lower if history.levels is None else history.levels.scale.blocks)
    functional: Functional | None = method.functional_at(max(n, 1), d_c)
    context_distribution = method.context_distribution
    if fixed is not None:
        context_distribution, functional, model_goal = Given(fixed), Expectation(), model_goal.given_context()
    if not asking or (isinstance(functional, Expectation) and method.score.uses_context):
        functional = None
    wanted = functional or model_goal.functional(soft=asking)
    points = context_distribution.points(history, wanted.support_size, seed)
    if not method.score.uses_context:
        empty = points.atoms.new_zeros(1, 0)
        points = ContextPoints(empty, empty.new_ones(1), empty.new_zeros(0, 0))
    may_smooth = not asking and not forecast and model_goal.goal.of_shares and method.score.uses_context
    smooth = smoothed(context_distribution, history, seed) if may_smooth else None
    model = conditioned(method.surrogate, model, extras, points)
    runs = extras.runs
    feasibility = None if runs is None else fit_feasibility(runs.x, runs.c, runs.success, *_few_atoms(points))
    return OutcomePosterior(
        *(model, points, functional, method.score.at(model), model_goal, feasibility, extras.outcome_range, smooth),
        pending=extras.pending_x,
        own=method.acquisition if asking else None,
        seed=seed,
    )


def conditioned(
    surrogate: Surrogate, model: ExpertEnsemble | None, extras: Extras, points: ContextPoints
) -> ExpertEnsemble:
    """``model``, which has seen the complete observations (None if there are none), with what else is known."""
    atoms, weights = _few_atoms(points)
    if len(extras.missing_x) or extras.partial:
        model = _with_missing(surrogate, model, extras, points, atoms, weights)
    assert model is not None, "a belief needs at least one outcome"
    return _hallucinate(model, extras.pending_x, atoms, weights)


def _with_missing(
    surrogate: Surrogate,
    model: ExpertEnsemble | None,
    extras: Extras,
    points: ContextPoints,
    atoms: Tensor,
    weights: Tensor,
) -> ExpertEnsemble:
    few = [part.few() for part in extras.partial]
    spread = [_spread(extras.missing_x, atoms, weights)]
    spread += [_spread(part.x[None], *some) for part, some in zip(extras.partial, few, strict=True)]
    joint, share = (torch.cat(parts) for parts in zip(*spread, strict=True))
    counts = torch.tensor([len(atoms)] * len(extras.missing_x) + [len(some[1]) for some in few])
    outcomes = torch.cat([extras.missing_y, joint.new_tensor([part.y for part in extras.partial])])
    noise_variances = torch.cat(
        [extras.missing_noise, joint.new_tensor([part.noise_variance for part in extras.partial])]
    )
    outcome, own = outcomes.repeat_interleave(counts), noise_variances.repeat_interleave(counts)
    if model is None:  # no context was ever seen with an outcome: all spread of y may come from it
        variance = (own.nan_to_num(0.0) + 0.5 * outcomes.var(correction=0).clamp_min(1e-12)) * share
        return surrogate.unfitted(joint, outcome, variance)
    with torch.no_grad():
        distributions = (
            [_variances(model, extras.missing_x, points.atoms, points.weights)] if len(extras.missing_x) else []
        )
        distributions += [_variances(model, part.x[None], part.contexts, part.weights) for part in extras.partial]
    known = model.scaling.noise_variance(own, outcome)
    assert known is not None
    known = torch.where(known.isnan(), model.gp.hyper.noise_variance.mean(), known)
    variance = known + torch.cat(distributions).repeat_interleave(counts)
    seen, variance = faded(model, extras.time.repeat_interleave(counts), model.scaling.standardize(outcome), variance)
    return model.with_modelled(joint, seen, variance * share)


def _variances(model: ExpertEnsemble, x: Tensor, contexts: Tensor, weights: Tensor) -> Tensor:
    """The variance of f over a distribution at designs ``x`` (n × d_x), in the units of the model (n)."""
    grid, _ = _spread(x, contexts, weights)
    center = model.barycenter(*model.gp.moments(grid))[0].reshape(-1, len(contexts))
    mean = center @ weights
    return (center - mean[:, None]).square() @ weights


def _hallucinate(model: ExpertEnsemble, x: Tensor, atoms: Tensor, weights: Tensor) -> ExpertEnsemble:
    if not len(x):
        return model
    first, shares = model.observations, weights.cumsum(0) / weights.sum()
    turns = torch.tensor([in_turn(first + i) for i in range(len(x))], dtype=shares.dtype)
    joint = torch.cat([x, atoms[torch.searchsorted(shares[:-1], turns, right=True)]], dim=-1)
    with torch.no_grad():
        center, _ = model.barycenter(*model.gp.moments(joint))
    noise_variance, ratio = model.gp.hyper.noise_variance.mean().expand(len(x)), model.gp.noise_ratio(joint)
    return model.with_modelled(joint, center, noise_variance if ratio is None else noise_variance * ratio)


def _few_atoms(points: ContextPoints) -> tuple[Tensor, Tensor]:
    if points.atoms.shape[1] == 0:
        return points.atoms[:1], points.weights.sum(0, keepdim=True)
    small = compress(points.atoms, points.weights, SPREAD_ATOMS, discrete=points.discrete)
    return small.atoms, small.weights


def _spread(x: Tensor, atoms: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Every design with every atom: (len(x)·k) × (d_x + d_c), and 1/weight of each row."""
    return pairs(x, atoms), (1.0 / weights.clamp_min(1e-6)).repeat(len(x))
