"""RobustAcquisition = score × context distribution × risk functional.

For every design x the score (such as an upper confidence bound) is evaluated at (x, c) for all atoms c of the context
distribution (a row), and the functional (mean, CVaR, worst case over an ambiguity set, …) turns the row into one
number. The atoms are fixed during a maximization (sample average approximation). ``edrbo.integrations.botorch`` shows
it as a BoTorch ``AcquisitionFunction``.

A goal is an acquisition function too: what to maximize when asking, and what when recommending. A model maximizes sign
· y / scale (``Units``); a goal speaks of y. Goals that are a worst case over distributions, or any other functional
that better outcomes never make worse, follow from a ``Functional`` of the method's score: an upper bound of f gives an
upper bound of the goal. The others (``GoalAcquisition``) take the experts' barycenter μ̄, σ̄ and the score's gain over
μ̄ (for EDRBO β σ̄ − √2 ε̂) at every (x, c) and let the goal be optimistic within μ̄ ± gain itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor

from edrbo.acquisition.objective import Objective
from edrbo.acquisition.risk import (
    KL,
    MMD,
    ChiSquare,
    CVaRFunctional,
    Expectation,
    Functional,
    Minimum,
    SoftCVaR,
    SoftMinimum,
    SoftVaR,
    TotalVariation,
    VaR,
    Wasserstein,
    WorstCaseFunctional,
)
from edrbo.acquisition.risk.base import DEFAULT_SUPPORT, Field
from edrbo.acquisition.scores import UCB, Score
from edrbo.contexts.distributions import ContextPoints, compress
from edrbo.errors import InvalidValueError
from edrbo.records import goals
from edrbo.records.goals import Direction, Goal
from edrbo.records.outcomes import Units
from edrbo.surrogate.ensemble import ExpertEnsemble, barycenter
from edrbo.surrogate.gaussian_model import GaussianModel, PairedModel, pairs

ROUGH_ATOMS, FAIR_ATOMS = 4, 16  # context atoms of the approximations for screening and climbing
DIFFERENCE_STEP = 1e-5  # of a symmetric difference, in the unit cube
MEAN = UCB(beta=0.0)
CHUNK = 2**18  # elements of the largest temporary (experts × points × observations): stays in cache


class RobustAcquisition(Objective):
    """α(x) = functional_c s(x, c), from the beliefs of ``model`` about f on (x, c).

    The last d_c inputs are the context. Inputs and contexts are in the coding the model was trained on.
    """

    def __init__(self, model: GaussianModel, score: Score, points: ContextPoints, functional: Functional) -> None:
        self.model = model
        self.score = score
        self.points = points
        self.functional = functional
        self._contexts = points.all
        if score.integrated and not functional.locally_linear:
            raise InvalidValueError(
                f"an integrated score has no meaning under {type(functional).__name__}",
                "its worst-case weights change with the design; take Expectation, CVaR, Minimum, TotalVariation "
                "or Wasserstein",
            )

    def __call__(self, x: Tensor) -> Tensor:
        """``evaluate``: the objective as a maximizer takes it."""
        return self.evaluate(x)

    def evaluate(self, x: Tensor) -> Tensor:
        """Values (N) at designs ``x`` (N × d_x), differentiable in ``x``."""
        chunks = [self._evaluate(part) for part in self._split(x)]
        return chunks[0] if len(chunks) == 1 else torch.cat(chunks)

    def value_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Values (N) and gradients (N × d_x) at designs ``x``; of an ensemble without a graph."""
        return joined([self._value_and_gradient(part) for part in self._split(x)])

    @property
    def has_kinks(self) -> bool:
        return self.functional.has_kinks

    def _split(self, x: Tensor) -> tuple[Tensor, ...]:
        return in_parts(x, self.model.width * len(self._contexts))

    def _value_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        if self.score.integrated:
            mean, sd, to_design = self._everywhere.integrated_and_pullback(x, self._distribution_at(x))
            value, by_mean, by_sd = self._slopes(mean, sd)
            return value, to_design(by_mean, by_sd)
        paired = self._at_atoms if self.functional.needs_slope else self._everywhere
        scores, pullback = self._scored(paired, x, self.score)
        row = scores.reshape(len(x), -1)
        if not self.functional.needs_slope:
            value, by_row, _ = self.functional.value_and_slopes(row, self.points)
            return value, pullback(by_row.reshape(-1))
        slope, slope_gradient = self._largest_slope(x)
        value, by_row, by_slope = self.functional.value_and_slopes(self._pad(row), self.points, slope)
        assert by_slope is not None
        mass = by_row[:, : row.shape[1]].reshape(-1)
        return value, pullback(mass).addcmul_(by_slope[:, None], slope_gradient)

    def _scored(self, paired: PairedModel, x: Tensor, score: Score) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """Scores (N·m) of designs ``x`` (N × d_x), and the function that takes ∂/∂scores to ∂/∂x."""
        mean, sd, pullback = paired.moments_and_pullback(x)
        scores, by_mean, by_sd = self._slopes(mean, sd, score)
        return scores, lambda mass: pullback(by_mean * mass, by_sd * mass)

    def _pad(self, row: Tensor) -> Tensor:
        """Only the slope is wanted on the support, and it is taken there alone: the row may stay empty there."""
        return torch.nn.functional.pad(row, (0, len(self.points.support)))

    def _slopes(self, mean: Tensor, sd: Tensor, score: Score | None = None) -> tuple[Tensor, Tensor, Tensor]:
        weights = self.model.weights
        return (score or self.score).value_and_slopes(mean, sd, *([] if weights is None else [weights]))

    def _evaluate(self, x: Tensor) -> Tensor:
        if self.score.integrated:  # of the beliefs about Σ_j w_j f(x, c_j)
            return self._score(self._everywhere.integrated(x, self._distribution_at(x)))
        if not self.functional.needs_slope:
            return self.functional(self._row(x), self.points)
        differentiate = x.requires_grad and torch.is_grad_enabled()
        slope = (
            _Slope.apply(x, self._largest_slope)  # type: ignore[no-untyped-call]
            if differentiate
            else self._steepest(x)[0]
        )
        return self.functional(self._pad(self._row(x)), self.points, slope)

    def _row(self, x: Tensor) -> Tensor:
        """Scores of every design with every context that the functional takes scores at (N × contexts)."""
        paired = self._at_atoms if self.functional.needs_slope else self._everywhere
        return self._score(paired.moments(x)).reshape(len(x), -1)

    def _distribution_at(self, x: Tensor) -> Tensor:
        """The distribution (m), or of each design the distribution that is worst for its mean (N × m), without
        gradient."""
        if isinstance(self.functional, Expectation):
            return self.points.mass
        assert isinstance(self.functional, WorstCaseFunctional)
        with torch.no_grad():
            center, _ = barycenter(*self._everywhere.moments(x), self.model.weights)
            return self.functional.worst_case(center.reshape(len(x), -1), self.points)

    # The model on the contexts that are asked for; made once, since they do not change during a maximization.

    @cached_property
    def _everywhere(self) -> PairedModel:
        """On atoms and support."""
        return self.model.paired_with(self._contexts)

    @cached_property
    def _at_atoms(self) -> PairedModel:
        return self.model.paired_with(self.points.atoms)

    @cached_property
    def _anywhere(self) -> PairedModel:
        """As a function of (x, c)."""
        return self.model.paired_with(self._contexts.new_zeros(1, 0))

    def _score(self, moments: tuple[Tensor, Tensor]) -> Tensor:
        weights = self.model.weights
        return self.score(*moments) if weights is None else self.score(*moments, weights)

    def _largest_slope(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """max_c ‖∇_c s(x, c)‖₂ over the support (N), or the atoms without one, and its gradient in x (N × d_x).

        By Danskin's theorem that is the gradient at the maximizing c, ∇_x ‖∇_c s‖ = ∂(∇_x s)/∂v with v the direction of
        ∇_c s: a symmetric difference of gradients that are exact themselves.
        """
        d_x = x.shape[1]
        slope, at_worst, uphill = self._steepest(x)
        step = torch.zeros_like(at_worst)
        step[:, d_x:] = DIFFERENCE_STEP * uphill / slope.clamp_min(1e-300)[:, None]
        beyond, before = self._gradient(torch.cat([at_worst + step, at_worst - step])).chunk(2)
        return slope, (beyond - before)[:, :d_x] / (2.0 * DIFFERENCE_STEP)

    def _steepest(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The largest slope (N), the (x, c) it is met at (N × d), and ∇_c s there (N × d_c)."""
        support = self.points.support if len(self.points.support) else self.points.atoms
        shape = (len(x), len(support), -1)
        joint = pairs(x.detach(), support)
        slopes = self._gradient(joint)[:, x.shape[1] :].reshape(shape)
        steepness = slopes.square().sum(-1)
        each, worst = torch.arange(len(x)), steepness.argmax(-1)
        return steepness[each, worst].sqrt(), joint.reshape(shape)[each, worst], slopes[each, worst]

    def _gradient(self, joint: Tensor) -> Tensor:
        """∇s at points (x, c) (N × d)."""
        return self._value_and_slope(joint)[1]

    def _value_and_slope(self, joint: Tensor) -> tuple[Tensor, Tensor]:
        """s at points (x, c) (N) and ∇s (N × d); under an integrated score, of the mean of f that chooses the
        distribution."""
        value, pullback = self._scored(self._anywhere, joint, MEAN if self.score.integrated else self.score)
        return value, pullback(torch.ones_like(value))

    @property
    def needs_context_grid(self) -> bool:
        return len(self.points.support) > 0 and not self.functional.needs_slope

    @property
    def multimodal(self) -> bool:
        return self.functional.multimodal

    @property
    def expensive(self) -> bool:
        """The mean is not."""
        return self._stand_in is not self.model

    def near(self, x: Tensor) -> RobustAcquisition:
        """The same acquisition on the contexts that matter for its functional at designs ``x`` (k × d_x)."""
        if not len(self.points.support):
            return self
        support = self.functional.refine(self.sparse()._field(x), self.points)
        if support is self.points.support:
            return self
        return RobustAcquisition(self.model, self.score, replace(self.points, support=support), self.functional)

    def sparse(self) -> RobustAcquisition:
        """The same acquisition of cheaper beliefs that say nearly the same; itself where there are none."""
        model = self._stand_in
        return self if model is self.model else RobustAcquisition(model, self.score, self.points, self.functional)

    @property
    def _stand_in(self) -> GaussianModel:
        """Of the model. The mean needs so few solves, or is the paper's, that it goes without."""
        return self.model if isinstance(self.functional, Expectation) else self.model.sparse()

    def _field(self, x: Tensor) -> Field:
        """What the functional reduces at designs ``x`` (k × d_x), as functions of the context."""

        def values(designs: Tensor, contexts: Tensor) -> Tensor:
            moments = self._anywhere.moments(torch.cat([x[designs], contexts], dim=-1))
            return barycenter(*moments, self.model.weights)[0] if self.score.integrated else self._score(moments)

        def values_and_slopes(designs: Tensor, contexts: Tensor) -> tuple[Tensor, Tensor]:
            value, gradient = self._value_and_slope(torch.cat([x[designs], contexts], dim=-1))
            return value, gradient[:, x.shape[1] :]

        return Field(len(x), values, values_and_slopes)

    def approximations(self) -> list[RobustAcquisition]:
        """Approximations of this acquisition function, from coarse to exact, itself last: what the maximizer climbs
        by."""
        few, more = thinned(self.points, ROUGH_ATOMS), thinned(self.points, FAIR_ATOMS)
        worst = self.functional.rough()
        score = self.score if worst.locally_linear else self.score.per_context()
        model = self._stand_in
        rough = RobustAcquisition(model.rough(), score, few, worst)
        same = more is self.points and model is self.model
        fair = self if same else RobustAcquisition(model, self.score, more, self.functional)
        ranks_alike = self.expensive and worst is not self.functional
        return [rough, RobustAcquisition(model, score, more, worst) if ranks_alike else fair, fair, self]


def in_parts(x: Tensor, width: int) -> tuple[Tensor, ...]:
    """As many designs at a time as keep the largest temporary small, of ``width`` numbers a design."""
    most = max(1, CHUNK // width if width else len(x))
    return (x,) if len(x) <= most else torch.split(x, most)


def joined(parts: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """Values and gradients of all ``parts``, one after the other."""
    if len(parts) == 1:
        return parts[0]
    values, gradients = zip(*parts, strict=True)
    return torch.cat(values), torch.cat(gradients)


def thinned(points: ContextPoints, size: int) -> ContextPoints:
    """A distribution on at most ``size`` atoms and half as many support points; ``points`` itself if that saves
    nothing."""
    others = torch.cat([points.atoms[points.weights == 0], points.support])
    step = max(1, -(-len(others) // (size if len(points.support) == 0 else size // 2)))
    small = compress(points.atoms, points.weights, size, discrete=points.discrete)
    if len(small.atoms) + len(others[::step]) >= len(points.all):
        return points
    return ContextPoints(small.atoms, small.weights, others[::step], levels=points.levels)


class _Slope(torch.autograd.Function):
    """The value of ``largest_slope(x)`` = (value, gradient), for autograd."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, largest_slope: Callable[[Tensor], tuple[Tensor, Tensor]]) -> Tensor:
        slope, gradient = largest_slope(x.detach())
        ctx.save_for_backward(gradient)
        return slope

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (gradient,) = ctx.saved_tensors
        return grad[:, None] * gradient, None


CAUTION = 0.1  # standard deviations of f taken off when designs are compared: of two equal means, the surer one
# atoms of the distribution when a design is asked for that meets points of the context box as well
ATOMS_BESIDE_SUPPORT = 32
MMD_SUPPORT = 32  # the quadratic program of an MMD ball grows fast with the points


@dataclass(frozen=True)
class ModelGoal:
    """A goal in a model's terms: with the units in which the model speaks of the outcome."""

    goal: Goal
    units: Units

    @property
    def direction(self) -> Direction:
        return "maximize" if self.units.sign > 0 else "minimize"

    @property
    def sense(self) -> float:
        return self.goal.sense(self.direction)

    @property
    def over_all_bounds(self) -> bool:
        """Whether contexts count that the bounds allow, however far they are from those seen."""
        return isinstance(self.goal, goals.WorstCase) and self.goal.over_box

    def given_context(self) -> ModelGoal:
        """The same once the next context is known: no other distribution is possible, and nothing varies."""
        certain = self.goal.over_box or type(self.goal) in _FUNCTIONALS
        return ModelGoal(goals.Expected(), self.units) if certain else self

    def functional(self, *, soft: bool) -> Functional:
        """What reduces a row of scores; ``soft`` without kinks, where there is such a one."""
        if self.goal.pointwise:
            return Expectation(support_size=DEFAULT_SUPPORT if self.goal.over_box else 0)
        make = _FUNCTIONALS.get(type(self.goal))
        return _OwnFunctional(self) if make is None else make(self.goal, soft)

    def acquisition(
        self, model: GaussianModel, score: Score, points: ContextPoints
    ) -> RobustAcquisition | GoalAcquisition:
        """For asking: the method's score, optimistic in the sense of the goal.

        A score of the mean over contexts is for the mean; under any other goal it is one of f at each context
        (research/journal.md has the trial of both where both are possible).
        """
        if not isinstance(self.goal, goals.Expected):
            score = score.per_context()
        if self.goal.pointwise:
            return GoalAcquisition(model, score, points, self)
        return RobustAcquisition(model, score, _affordable(points), self.functional(soft=True))

    def posterior(self, model: GaussianModel, points: ContextPoints) -> RobustAcquisition | GoalAcquisition:
        """For recommending: the posterior expectation of the goal where marginals of f give it, else its value of the
        mean surface, less a little for what is not known."""
        cautious = UCB(beta=-CAUTION)
        if self.goal.pointwise:
            return GoalAcquisition(model, cautious, points, self, expected=True)
        return RobustAcquisition(model, cautious, points, self.functional(soft=False))

    def value(self, outcomes: Tensor, points: ContextPoints) -> Tensor:
        """The goal's value in its own units (...) of a model's outcomes (... × n) at ``points.all``."""
        if self.goal.of_outcomes:
            return self.to_user(self.modelled_value(outcomes, points))
        value: Tensor = self.goal.value(self.to_user(outcomes), points.mass, self.direction)
        return value

    def modelled_value(self, outcomes: Tensor, points: ContextPoints) -> Tensor:
        """The same in the model's units, for goals ``of_outcomes``."""
        if isinstance(self.goal, goals.Robust):
            return self.functional(soft=False)(outcomes, points)
        value: Tensor = self.goal.value(outcomes, points.mass, "maximize")
        return value

    def held(self, outcomes: Tensor) -> Tensor:
        """A model's outcomes, held to what outcomes can be."""
        return outcomes.clamp(*self.units.ends) if self.units.limited else outcomes

    def to_user(self, outcomes: Tensor) -> Tensor:
        return self.units.sign * self.units.scale * outcomes


class AcquisitionFunction(ABC):
    """An acquisition function of one's own, in place of score × functional. A frozen dataclass derives from it."""

    has_kinks: ClassVar[bool] = False  # whether its gradient has jumps

    @abstractmethod
    def function(
        self, model: ExpertEnsemble, points: ContextPoints, goal: ModelGoal, seed: int
    ) -> Callable[[Tensor], Tensor]:
        """What the next design maximizes: designs (N × d_x, coded) to values (N), differentiable by autograd.

        Args:
            model: What is believed of f(x, c), to be maximized; ``model.inputs`` (n × (d_x + d_c)) is what was tried.
            points: The distribution of the next context: ``atoms`` (m × d_c) with ``weights`` (m).
            goal: The user's goal in the model's terms.
            seed: Of whatever is drawn.
        """


@dataclass(frozen=True, eq=False)
class OwnAcquisition:
    """An ``AcquisitionFunction`` of known beliefs, as the maximizer takes it: it has no approximations."""

    objective: Objective
    has_kinks: bool

    def approximations(self) -> list[Objective]:
        return [self.objective] * 4


# From a goal, and whether it is to be soft, to the functional of the score. A monotone goal without one is taken by
# autograd.
FunctionalOfGoal = Callable[[Any, bool], Functional]
_FUNCTIONALS: dict[type[Goal], FunctionalOfGoal] = {
    goals.Expected: lambda goal, soft: Expectation(),
    goals.CVaR: lambda goal, soft: SoftCVaR(goal.level) if soft else CVaRFunctional(goal.level),
    goals.Quantile: lambda goal, soft: SoftVaR(goal.level) if soft and goal.level < 1.0 else VaR(goal.level),
    goals.WorstCase: lambda goal, soft: (SoftMinimum if soft else Minimum)(
        support_size=DEFAULT_SUPPORT if goal.over_box else 0
    ),
    goals.Robust: lambda goal, soft: _BALLS[goal.distance](goal.radius),
}
_BALLS: dict[str, Callable[[float], Functional]] = {
    "wasserstein": Wasserstein,
    "total-variation": TotalVariation,
    "kl": KL,
    "chi-square": ChiSquare,
    "mmd": lambda radius: MMD(radius, support_size=MMD_SUPPORT),
}


def set_functional(goal: type[Goal], make: FunctionalOfGoal) -> None:
    """Let a class of goals be searched by a functional: ``make(goal, soft)``."""
    if not goal.monotone:
        raise InvalidValueError(f"{goal.__name__} is not monotone", "a functional of the score takes better for better")
    _FUNCTIONALS[goal] = make


@dataclass(frozen=True)
class _OwnFunctional(Functional):
    """A monotone goal of one's own, by autograd."""

    model_goal: ModelGoal
    locally_linear: ClassVar[bool] = False

    @property
    def support_size(self) -> int:  # type: ignore[override]
        return DEFAULT_SUPPORT if self.model_goal.goal.over_box else 0

    def __call__(self, values: Tensor, points: ContextPoints, slope: Tensor | None = None) -> Tensor:
        return self.model_goal.sense * self.model_goal.value(values, points)


def _affordable(points: ContextPoints) -> ContextPoints:
    """With fewer atoms, where every design meets points of the context box besides."""
    if not len(points.support) or len(points.atoms) <= ATOMS_BESIDE_SUPPORT:
        return points
    small = compress(points.atoms, points.weights, ATOMS_BESIDE_SUPPORT, discrete=points.discrete)
    return replace(points, atoms=small.atoms, weights=small.weights)


class GoalAcquisition(Objective):
    """α(x) = what the goal makes of μ̄, σ̄ and gain at (x, c_1..c_n): optimistic, or ``expected``. Larger is better."""

    def __init__(
        self,
        model: GaussianModel,
        score: Score,
        points: ContextPoints,
        model_goal: ModelGoal,
        *,
        expected: bool = False,
    ) -> None:
        if score.integrated:
            raise InvalidValueError(
                f"an integrated score has no meaning for the goal {type(model_goal.goal).__name__}",
                "it is about the mean over contexts, and this goal looks at each; take another method",
            )
        self.model, self.score, self.points, self.model_goal, self.expected = model, score, points, model_goal, expected

    @property
    def has_kinks(self) -> bool:
        return self.model_goal.goal.has_kinks

    def __call__(self, x: Tensor) -> Tensor:
        return self.evaluate(x)

    def evaluate(self, x: Tensor) -> Tensor:
        """Values (N) at designs ``x`` (N × d_x), differentiable in ``x``."""
        return torch.cat([self._evaluate(part) for part in self._split(x)])

    def value_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Values (N) and gradients (N × d_x) at designs ``x``, without a graph through the model."""
        return joined([self._value_and_gradient(part) for part in self._split(x)])

    def approximations(self) -> list[GoalAcquisition]:
        """Approximations, from coarse to exact, the acquisition itself last."""
        few, more = thinned(self.points, ROUGH_ATOMS), thinned(self.points, FAIR_ATOMS)
        model = self.model.sparse()
        fair = self if more is self.points and model is self.model else self._on(model, more)
        return [self._on(model.rough(), few), fair, fair, self]

    @property
    def expensive(self) -> bool:
        return self.model.sparse() is not self.model

    def near(self, x: Tensor) -> GoalAcquisition:
        """The contexts that matter are the same everywhere."""
        return self

    def _on(self, model: GaussianModel, points: ContextPoints) -> GoalAcquisition:
        return GoalAcquisition(model, self.score, points, self.model_goal, expected=self.expected)

    def _split(self, x: Tensor) -> tuple[Tensor, ...]:
        return in_parts(x, self.model.width * len(self.points.all))

    @cached_property
    def _paired(self) -> PairedModel:
        return self.model.paired_with(self.points.all)

    def _evaluate(self, x: Tensor) -> Tensor:
        mean, sd = self._paired.moments(x)
        center, spread = barycenter(mean, sd, self.model.weights)
        score = self.score(mean, sd) if self.model.weights is None else self.score(mean, sd, self.model.weights)
        return self._reduce(*(part.reshape(len(x), -1) for part in (center, spread, score - center)))

    def _value_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        mean, sd, pullback = self._paired.moments_and_pullback(x)
        weights = self.model.weights
        score, score_by_mean, score_by_sd = self.score.value_and_slopes(
            mean, sd, *([] if weights is None else [weights])
        )
        center, spread = barycenter(mean, sd, weights)
        with torch.enable_grad():
            rows = [part.reshape(len(x), -1).requires_grad_() for part in (center, spread, score - center)]
            value = self._reduce(*rows)
            slopes = torch.autograd.grad(value.sum(), rows, allow_unused=True, materialize_grads=True)
        by_center, by_spread, by_gain = (slope.reshape(-1) for slope in slopes)
        share = torch.full_like(mean, 1.0 / len(mean)) if weights is None else weights[:, None]
        by_mean = share * (by_center - by_gain) + score_by_mean * by_gain
        by_sd = share * by_spread + score_by_sd * by_gain
        return value.detach(), pullback(by_mean, by_sd)

    def _reduce(self, center: Tensor, spread: Tensor, gain: Tensor) -> Tensor:
        """One number a design from rows (N × n) in the model's units."""
        goal, units, mass = self.model_goal.goal, self.model_goal.units, self.points.mass
        mean, sd, direction = self.model_goal.to_user(center), units.scale * spread, self.model_goal.direction
        value = goal.expected(mean, sd, mass, direction) if self.expected else None
        if value is None:
            value = goal.optimistic(mean, sd, units.scale * gain, mass, direction)
        better: Tensor = self.model_goal.sense * value
        return better
