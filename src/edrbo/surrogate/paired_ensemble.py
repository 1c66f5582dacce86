"""The expert ensemble at all pairs of designs and fixed contexts, exact and with inducing points."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from edrbo.surrogate.gaussian_model import Differentiable, GaussianModel, PairedModel, Pullback
from edrbo.surrogate.paired_gp import PairedGP
from edrbo.surrogate.scaling import Scaling, Warping
from edrbo.surrogate.sparse import SparseGP


@dataclass(frozen=True, eq=False)
class PairedEnsemble(PairedModel):
    """An ensemble on (x, c) with fixed contexts, as a function of the design; in units of y.

    Faster than the ensemble itself, since what belongs to the contexts is worked out once.
    """

    gp: PairedGP
    scaling: Scaling

    def moments(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.scaling.moments(*self.gp.moments(x))

    def moments_and_pullback(self, x: Tensor) -> Differentiable:
        return self._with_units(*self.gp.moments_and_pullback(x))

    def integrated(self, x: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        if isinstance(self.scaling, Warping):
            return self.gp.warped(x, weights, self.scaling.moments_and_pullback)
        return self.scaling.moments(*self.gp.integrated(x, weights))

    def integrated_and_pullback(self, x: Tensor, weights: Tensor) -> Differentiable:
        """Of warped outcomes the belief is the Gaussian one with the same mean, and with the variance
        Σ_ij w_i w_j σ_i σ_j ρ_ij: the standard deviations of f and the correlations of the modelled values."""
        if isinstance(self.scaling, Warping):
            return self.gp.warped_and_pullback(x, weights, self.scaling.moments_and_pullback)
        return self._with_units(*self.gp.integrated_and_pullback(x, weights))

    def _with_units(self, mean: Tensor, sd: Tensor, pullback: Pullback) -> Differentiable:
        center, spread, to_modelled = self.scaling.moments_and_pullback(mean, sd)
        return center, spread, lambda grad_mean, grad_sd: pullback(*to_modelled(grad_mean, grad_sd))


@dataclass(frozen=True, eq=False)
class SparseEnsemble(GaussianModel):
    """What stands in for an ensemble in a search."""

    gp: SparseGP
    scaling: Scaling
    shares: Tensor | None  # of the experts

    @property
    def weights(self) -> Tensor | None:
        return self.shares

    @property
    def width(self) -> int:
        kernels = self.gp.kernels
        # of separable kernels (the rough one) only the rows inducing points, which carry the variance are held for each
        # pair
        separable = all(kernel.separable for kernel in kernels)
        return len(kernels) * (self.gp.whitening.shape[-1] if separable else len(self.gp.x))

    def rough(self) -> SparseEnsemble:
        return SparseEnsemble(self.gp.expert(0), self.scaling, None)

    def paired_with(self, contexts: Tensor) -> PairedEnsemble:
        return PairedEnsemble(self.gp.paired_with(contexts), self.scaling)
