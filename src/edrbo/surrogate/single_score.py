"""μ + β σ of one expert at all pairs of designs and contexts, with its gradient: the step of most searches, fused.

A search asks for a few designs at a time, and then most of the time goes into starting operations. With one expert of a
separable kernel and outcomes that are only shifted and scaled, all of them can be written as one short piece of NumPy;
the two solves stay torch's. The glossary is that of ``paired_gp``, whose numbers these are to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.surrogate.paired_gp import MIN_VARIANCE, MOSTLY_USED, PairedGP
from edrbo.surrogate.scaling import Scaling
from edrbo.surrogate.whitening import Whitening

Array = NDArray[np.float64]
ScorePullback = Callable[[Tensor], Tensor]  # ∂/∂scores (N·m) → ∂/∂x (N × d_x)


@dataclass(frozen=True, eq=False)
class SingleScore:
    """shift + scale (μ + β σ), of one separable expert; ``of`` makes one where that is what there is."""

    gp: PairedGP
    scaling: Scaling
    beta: float

    @classmethod
    def of(cls, gp: PairedGP, scaling: Scaling, beta: float) -> SingleScore | None:
        """None where there are several experts, or a kernel or outcomes of another kind."""
        simple = len(gp.kernels) == 1 and gp.kernels[0].separable and type(scaling) is Scaling
        return cls(gp, scaling, beta) if simple else None

    def value_and_pullback(self, x: Tensor) -> tuple[Tensor, ScorePullback]:
        """Scores (N·m) at designs ``x`` (N × d_x), the context running fastest, and their pullback; no graph."""
        z = x.detach().numpy() - 0.5
        cross = self._cross(z)
        half = self._whitening.of(torch.from_numpy(cross).T)  # n × (N·m)
        rows = half.T.numpy()
        variance = self._prior - np.einsum("pn,pn->p", rows, rows)
        floor = MIN_VARIANCE * self._prior
        sd = np.sqrt(np.maximum(variance, floor))
        value = torch.mv(torch.from_numpy(cross), self._weights).numpy()
        value += self.beta * sd
        value *= self.scaling.scale
        value += self._level

        def pullback(grad: Tensor) -> Tensor:
            by_mean = self.scaling.scale * grad.numpy()
            by_sd = np.where(variance > floor, -self.beta * by_mean / sd, 0.0)
            used = np.flatnonzero(by_mean)
            if len(used) < MOSTLY_USED * len(by_mean):  # a worst case looks at few contexts
                some = self._by_sqdist(half[:, used], cross[used], by_mean[used], by_sd[used])
                summed = np.zeros((len(z), cross.shape[1]))
                np.add.at(summed, used // self._count, some)
            else:
                summed = self._by_sqdist(half, cross, by_mean, by_sd).reshape(len(z), self._count, -1).sum(axis=1)
            gradient = torch.mm(torch.from_numpy(summed), self._slopes).numpy()
            width = z.shape[1]
            return torch.from_numpy(gradient[:, :width] + 2.0 * z * gradient[:, width:])

        return torch.from_numpy(value), pullback

    def _cross(self, z: Array) -> Array:
        """Correlation of f at all pairs with the data ((N·m) × n), for centered designs ``z`` (N × d_x)."""
        width = z.shape[1]
        expanded = np.ones((len(z), 2 * width + 1))
        expanded[:, :width], expanded[:, width:-1] = z, z * z
        sqdist = torch.mm(torch.from_numpy(expanded), self._data_part).clamp_min_(0.0)
        designs = self.gp.kernels[0].value(sqdist, self.gp.hyper.shape[0]).numpy()
        return (designs[:, None] * self._parts).reshape(len(z) * self._count, -1)

    def _by_sqdist(self, half: Tensor, cross: Array, by_mean: Array, by_sd: Array) -> Array:
        """∂/∂r² (p × n) up to the slope factor, from ∂/∂μ and −(∂/∂σ)/σ at p pairs."""
        gradient: Array = self._whitening.back(half).T.numpy()
        gradient *= by_sd[:, None]
        both: Array = by_mean[:, None] * self._weights.numpy()
        both[:, : gradient.shape[1]] += gradient
        both *= cross
        return both

    # What belongs to the data and to the contexts: made once.

    @cached_property
    def _count(self) -> int:
        return len(self.gp.contexts)

    @cached_property
    def _prior(self) -> float:
        return float(self.gp.hyper.outputscale[0])

    @cached_property
    def _level(self) -> float:
        """The prior mean in units of y."""
        return self.scaling.shift + self.scaling.scale * float(self.gp.hyper.mean[0])

    @cached_property
    def _whitening(self) -> Whitening:
        return self.gp.whitening[0]

    @cached_property
    def _weights(self) -> Tensor:
        return self.gp.scaled_weights[0]

    @cached_property
    def _data_part(self) -> Tensor:
        return self.gp.data_part[0]

    @cached_property
    def _slopes(self) -> Tensor:
        return self.gp.data_slopes[0]

    @cached_property
    def _parts(self) -> Array:
        parts: Array = self.gp.parts[0].numpy()
        return parts
