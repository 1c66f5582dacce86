"""RobustAcquisition = score × context distribution × risk functional.

For every design x the score (such as an upper confidence bound) is evaluated at (x, c) for all atoms c of the context
distribution (a row), and the functional (mean, CVaR, worst case over an ambiguity set, …) turns the row into one
number. The atoms are fixed during a maximization (sample average approximation). ``edrbo.integrations.botorch`` shows
it as a BoTorch ``AcquisitionFunction``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from edrbo.acquisition.objective import Objective
from edrbo.acquisition.risk import Expectation, Functional, WorstCaseFunctional
from edrbo.acquisition.risk.base import Field
from edrbo.acquisition.scores import UCB, Score
from edrbo.contexts.distributions import ContextPoints, compress
from edrbo.errors import InvalidValueError
from edrbo.surrogate.ensemble import barycenter
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
