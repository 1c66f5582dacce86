"""RobustAcquisition = score × context law × functional, as a BoTorch ``AcquisitionFunction``.

For every design x the score is evaluated at (x, c) for all points c of the law (a row), and the functional turns the
row into one number. The points are made once per maximization and never change inside it.
"""

from __future__ import annotations

from collections.abc import Callable
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
        contexts = len(self._contexts)
        rows = x.shape[0]
        if isinstance(self.model, Ensemble):
            width = self.model.num_experts * self.model.gp.x.shape[-2] * contexts
            rows = max(1, CHUNK // max(width, 1))
        chunks = [self._evaluate(part) for part in torch.split(x, rows)]
        return chunks[0] if len(chunks) == 1 else torch.cat(chunks)

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
        """The score of the beliefs about Σ_j w_j f(x, c_j) (N); w is the law, or the worst law for the mean."""
        contexts = self._contexts
        weights = self.points.mass
        if not isinstance(self.functional, Expectation):
            assert isinstance(self.functional, WorstCase)
            with torch.no_grad():
                if isinstance(self.model, Ensemble):
                    center, _ = self.model.barycenter(*self._on(contexts).moments(x))
                else:
                    center = self._moments(_pairs(x, contexts))[0]
                weights = self.functional.worst_case(center.reshape(len(x), len(contexts)), self.points)
        if isinstance(self.model, Ensemble):
            return self._score(self._on(contexts).integrated(x, weights))
        posterior: Any = self.model.posterior(_pairs(x, contexts).reshape(len(x), len(contexts), -1))
        weights = weights.expand(len(x), -1).unsqueeze(-1)
        mean = (posterior.mean * weights).sum((-2, -1))
        variance = (weights.mT @ posterior.distribution.covariance_matrix @ weights).squeeze((-2, -1))
        return self._score((mean[None], variance[None].clamp_min(1e-20).sqrt()))

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

    def ladder(self) -> list[Callable[[Tensor], Tensor]]:
        """``evaluate`` and cheaper stand-ins for it, cheapest first: what the maximizer climbs by."""
        rough = self._thinned(ROUGH_ATOMS)
        if isinstance(rough.model, Ensemble):
            rough = RobustAcquisition(rough.model.expert(0), self.score, rough.points, self.functional)
        return [rough.evaluate, self._thinned(FAIR_ATOMS).evaluate, self.evaluate]

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


def _pairs(x: Tensor, contexts: Tensor) -> Tensor:
    """Every design with every context: (N·m) × (d_x + d_c), the context running fastest."""
    return torch.cat([x.repeat_interleave(len(contexts), dim=0), contexts.repeat(len(x), 1)], dim=-1)
