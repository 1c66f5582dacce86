"""RobustAcquisition = score × context law × functional, as a BoTorch ``AcquisitionFunction``.

For every design x the score is evaluated at (x, c) for all points c of the law (a row), and the functional turns the
row into one number. The points are made once per maximization and never change inside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.models.model import Model
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from edrbo.compression import compress
from edrbo.context import ContextPoints
from edrbo.errors import InvalidValueError
from edrbo.functional import Expectation, Functional, WorstCase
from edrbo.score import Score
from edrbo.surrogate.ensemble import Ensemble, PairedEnsemble

ROUGH_ATOMS, FAIR_ATOMS = 4, 8  # context atoms of the stand-ins that screen and climb
CHUNK = 2**18  # elements of the largest temporary (experts × points × observations): stays in cache


class RobustAcquisition(AcquisitionFunction):
    """α(x) = functional_c s(x, c).

    ``model`` is an ``Ensemble`` (fast path) or any single-output BoTorch model on (x, c); the last d_c inputs are the
    context. Inputs and contexts are in the coding the model was trained on.
    """

    def __init__(self, model: Model, score: Score, points: ContextPoints, functional: Functional) -> None:
        super().__init__(model=model)
        self.score = score
        self.points = points
        self.functional = functional
        self.set_X_pending(None)
        self._contexts = points.all
        self._paired: dict[int, PairedEnsemble] = {}
        if score.integrated and not functional.locally_linear:
            raise InvalidValueError(
                f"an integrated score has no meaning under {type(functional).__name__}",
                "its worst-case weights change with the design; take Expectation, CVaR, Minimum, TotalVariation "
                "or Wasserstein",
            )

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """``X`` is b × 1 × d_x; gives b values."""
        return self.evaluate(X.reshape(-1, X.shape[-1])).reshape(X.shape[:-2])

    def evaluate(self, x: Tensor) -> Tensor:
        """Values (N) at designs ``x`` (N × d_x), differentiable in ``x``."""
        chunks = [self._evaluate(part) for part in self._split(x)]
        return chunks[0] if len(chunks) == 1 else torch.cat(chunks)

    def value_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Values (N) and gradients (N × d_x) at designs ``x``; without a graph wherever the pieces allow it."""
        if isinstance(self.model, Ensemble) and isinstance(self.functional, WorstCase):
            parts = [self._value_and_gradient(part) for part in self._split(x)]
            value, gradient = (torch.cat(list(pieces)) for pieces in zip(*parts, strict=True))
            return value, gradient
        x = x.detach().requires_grad_()
        value = self.evaluate(x)
        (gradient,) = torch.autograd.grad(value.sum(), x)
        return value.detach(), gradient

    def _split(self, x: Tensor) -> tuple[Tensor, ...]:
        """As many designs at a time as keep the largest temporary small."""
        rows = len(x)
        if isinstance(self.model, Ensemble):
            width = self.model.num_experts * self.model.gp.x.shape[-2] * len(self._contexts)
            rows = CHUNK // max(width, 1)
        return torch.split(x, max(1, rows))

    def _value_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        assert isinstance(self.functional, WorstCase)
        paired = self._on(self._contexts)
        if self.score.integrated:
            mean, sd, pullback = paired.integrated_and_pullback(x, self._law_at(x))
            value, by_mean, by_sd = self._slopes(mean, sd)
            return value, pullback(by_mean, by_sd)
        mean, sd, pullback = paired.moments_and_pullback(x)
        scores, by_mean, by_sd = self._slopes(mean, sd)
        row = scores.reshape(len(x), -1)
        worst = self.functional.worst_case(row, self.points)  # by the envelope theorem its own change does not count
        mass = worst.reshape(-1)
        return (worst * row).sum(-1), pullback(by_mean * mass, by_sd * mass)

    def _slopes(self, mean: Tensor, sd: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        assert isinstance(self.model, Ensemble)
        weights = self.model.weights
        return self.score.value_and_slopes(mean, sd, *([] if weights is None else [weights]))

    def _evaluate(self, x: Tensor) -> Tensor:
        if self.score.integrated:
            return self._integrated(x)
        if not self.functional.needs_slope:
            return self.functional(self._row(x, self._contexts), self.points)
        # Only the slope is wanted on the support, and it is taken there alone: the row may stay empty there.
        values = self._row(x, self.points.atoms)
        padded = torch.nn.functional.pad(values, (0, len(self.points.support)))
        return self.functional(padded, self.points, self._largest_slope(x))

    def _row(self, x: Tensor, contexts: Tensor) -> Tensor:
        """Scores of every design with every context, N × len(contexts)."""
        if isinstance(self.model, Ensemble):
            moments = self._on(contexts).moments(x)
        else:
            moments = self._moments(_pairs(x, contexts))
        return self._score(moments).reshape(len(x), len(contexts))

    def _integrated(self, x: Tensor) -> Tensor:
        """The score of the beliefs about Σ_j w_j f(x, c_j) (N)."""
        contexts, weights = self._contexts, self._law_at(x)
        if isinstance(self.model, Ensemble):
            return self._score(self._on(contexts).integrated(x, weights))
        posterior: Any = self.model.posterior(_pairs(x, contexts).reshape(len(x), len(contexts), -1))
        weights = weights.expand(len(x), -1).unsqueeze(-1)
        mean = (posterior.mean * weights).sum((-2, -1))
        variance = (weights.mT @ posterior.distribution.covariance_matrix @ weights).squeeze((-2, -1))
        return self._score((mean[None], variance[None].clamp_min(1e-20).sqrt()))

    def _law_at(self, x: Tensor) -> Tensor:
        """The law (m), or of each design the law that is worst for its mean (N × m), without gradient."""
        if isinstance(self.functional, Expectation):
            return self.points.mass
        assert isinstance(self.functional, WorstCase)
        with torch.no_grad():
            if isinstance(self.model, Ensemble):
                center, _ = self.model.barycenter(*self._on(self._contexts).moments(x))
            else:
                center = self._moments(_pairs(x, self._contexts))[0]
            return self.functional.worst_case(center.reshape(len(x), -1), self.points)

    def _on(self, contexts: Tensor) -> PairedEnsemble:
        """The ensemble on these contexts; made once, since contexts do not change during a maximization."""
        assert isinstance(self.model, Ensemble)
        if id(contexts) not in self._paired:
            self._paired[id(contexts)] = self.model.paired_with(contexts)
        return self._paired[id(contexts)]

    def _score(self, moments: tuple[Tensor, Tensor]) -> Tensor:
        weights = self.model.weights if isinstance(self.model, Ensemble) else None
        return self.score(*moments) if weights is None else self.score(*moments, weights)

    def _moments(self, joint: Tensor) -> tuple[Tensor, Tensor]:
        """Experts' means and standard deviations at N points, M × N each (M = 1 for a stock model)."""
        if isinstance(self.model, Ensemble):
            return self.model.moments(joint)
        posterior: Any = self.model.posterior(joint.unsqueeze(-2))
        return posterior.mean.reshape(1, -1), posterior.variance.reshape(1, -1).clamp_min(1e-20).sqrt()

    def _largest_slope(self, x: Tensor) -> Tensor:
        """max_c ‖∇_c s(x, c)‖₂ over the support (N), or the atoms without one, with its gradient in x (Danskin).

        The maximizing context is found first, without a graph; only there is the slope differentiated again.
        """
        support = self.points.support if len(self.points.support) else self.points.atoms
        d_x = x.shape[1]
        with torch.enable_grad():
            joint = _pairs(x.detach(), support).requires_grad_()
            (gradient,) = torch.autograd.grad(self._score(self._moments(joint)).sum(), joint)
            worst = gradient[:, d_x:].square().sum(-1).reshape(len(x), len(support)).argmax(-1)
            at_worst = torch.cat([x, support[worst]], dim=-1)
            if not at_worst.requires_grad:
                at_worst.requires_grad_()
            moments = self.model.marginals if isinstance(self.model, Ensemble) else self._moments
            score = self._score(moments(at_worst)).sum()
            (gradient,) = torch.autograd.grad(score, at_worst, create_graph=x.requires_grad)
            slope = (gradient[:, d_x:].square().sum(-1) + 1e-24).sqrt()
        return slope if x.requires_grad else slope.detach()

    def ladder(self) -> list[Rung]:
        """This acquisition function and cheaper stand-ins for it, cheapest first: what the maximizer climbs by."""
        rough, fair = self._thinned(ROUGH_ATOMS), self._thinned(FAIR_ATOMS)
        if isinstance(rough.model, Ensemble):
            rough = RobustAcquisition(rough.model.expert(0), self.score, rough.points, self.functional)
        top = Rung(self)
        return [Rung(rough), top if fair is self else Rung(fair), top]

    def _thinned(self, size: int) -> RobustAcquisition:
        """The same acquisition on at most ``size`` atoms and ``size`` support points."""
        points = self.points
        others = torch.cat([points.atoms[points.weights == 0], points.support])
        step = max(1, -(-len(others) // size))
        small = compress(points.atoms, points.weights, size)
        if len(small.atoms) + len(others[::step]) >= len(self._contexts):
            return self
        thin = ContextPoints(small.atoms, small.weights, others[::step])
        return RobustAcquisition(self.model, self.score, thin, self.functional)


@dataclass(frozen=True, eq=False)
class Rung:
    """An acquisition function as the maximizer wants it: N × d_x → N."""

    acquisition: RobustAcquisition

    def __call__(self, x: Tensor) -> Tensor:
        return self.acquisition.evaluate(x)

    def value_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.acquisition.value_and_gradient(x)


def _pairs(x: Tensor, contexts: Tensor) -> Tensor:
    """Every design with every context: (N·m) × (d_x + d_c), the context running fastest."""
    return torch.cat([x.repeat_interleave(len(contexts), dim=0), contexts.repeat(len(x), 1)], dim=-1)
