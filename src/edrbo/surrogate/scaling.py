"""Outcome transforms: standardization and power warping of y, and the way back for posterior moments.

``Scaling`` is linear. ``Warping`` first applies the power transform of Yeo and Johnson (2000): with a power below one
the upper tail of y is drawn in and the lower one stretched, above one the other way round. A Gaussian belief about the
modelled value is then no Gaussian about y; wherever one is wanted, it is the one with the same mean and standard
deviation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from edrbo.errors import InvalidValueError

MomentPullback = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]  # ∂/∂(mean, sd) of y → of the modelled value

_roots, _shares = np.polynomial.hermite_e.hermegauss(9)
FLAT = 1e-12  # powers below are zero
NODES, SHARES = torch.from_numpy(_roots), torch.from_numpy(_shares / _shares.sum())  # of a standard normal


@dataclass(frozen=True)
class Scaling:
    """y = shift + scale · modelled."""

    shift: float
    scale: float

    @staticmethod
    def of(Y: Tensor) -> Scaling:
        if Y.ndim != 1 or len(Y) == 0 or not bool(Y.isfinite().all()):
            raise InvalidValueError("outcomes must be a non-empty vector of finite numbers")
        return Scaling(*_center_and_spread(Y))

    def again(self, Y: Tensor) -> Scaling:
        """The same kind of scaling, for more outcomes."""
        return Scaling.of(Y)

    def alike(self, Y: Tensor) -> Scaling:
        """The same kind of scaling, of other outcomes by themselves."""
        return self.again(Y)

    def standardize(self, Y: Tensor) -> Tensor:
        return (Y - self.shift) / self.scale

    def value(self, modelled: Tensor) -> Tensor:
        """The inverse of ``standardize``."""
        return self.shift + self.scale * modelled

    def slope(self, modelled: Tensor) -> Tensor:
        """dy / d modelled."""
        return torch.full_like(modelled, self.scale)

    def noise_variance(self, Yvar: Tensor | None, Y: Tensor) -> Tensor | None:
        """Known noise variances of ``Y`` as the model sees them, floored so that repeats stay solvable."""
        if Yvar is None:
            return None
        slope = self.slope(self.standardize(Y))
        return (Yvar / slope / slope).clamp_min(1e-8)

    def moments(self, mean: Tensor, sd: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of y when the modelled value is normal with these."""
        return self.value(mean), self.scale * sd

    def moments_and_pullback(self, mean: Tensor, sd: Tensor) -> tuple[Tensor, Tensor, MomentPullback]:
        """``moments``, and the function that takes derivatives by them to derivatives by ``mean`` and ``sd``."""
        return *self.moments(mean, sd), lambda by_mean, by_sd: (self.scale * by_mean, self.scale * by_sd)


@dataclass(frozen=True)
class Warping(Scaling):
    """y = center + unit · z,  YeoJohnson(z; power) = shift + scale · modelled, with a power in [0, 2]; 1 warps nothing.

    ``center`` and ``unit`` belong to the outcomes of a fit and stay while rows are appended: only ``shift`` and
    ``scale`` follow the data.
    """

    power: float
    center: float
    unit: float

    @classmethod
    def warped(cls, Y: Tensor, power: float) -> Warping:
        """The warping of ``Y`` (n) with this power."""
        if not 0.0 <= power <= 2.0:
            raise InvalidValueError(f"the power of a warping is {power!r}", "it lies between 0 and 2")
        linear = Scaling.of(Y)
        return cls(0.0, 1.0, power, linear.shift, linear.scale)._standardized(Y)

    def _standardized(self, Y: Tensor) -> Warping:
        shift, scale = _center_and_spread(self._warp(Y))
        return replace(self, shift=shift, scale=scale)

    def again(self, Y: Tensor) -> Warping:
        return self._standardized(Y)

    def alike(self, Y: Tensor) -> Warping:
        return Warping.warped(Y, self.power)

    def standardize(self, Y: Tensor) -> Tensor:
        return (self._warp(Y) - self.shift) / self.scale

    def log_slope(self, Y: Tensor) -> Tensor:
        """log of d modelled / dy at ``Y``: what the density of y has and that of the modelled value has not."""
        z = (Y - self.center) / self.unit
        return (self.power - 1.0) * z.sign() * z.abs().log1p() - math.log(self.scale * self.unit)

    def value(self, modelled: Tensor) -> Tensor:
        sign, log_size, _ = self._unwarp(modelled)
        return self.center + self.unit * sign * log_size.expm1()

    def slope(self, modelled: Tensor) -> Tensor:
        _, log_size, power = self._unwarp(modelled)
        return self.unit * self.scale * ((1.0 - power) * log_size).exp()

    def moments(self, mean: Tensor, sd: Tensor) -> tuple[Tensor, Tensor]:
        values = self.value(mean.unsqueeze(-1) + sd.unsqueeze(-1) * NODES)
        center: Tensor = values @ SHARES
        variance: Tensor = (values - center.unsqueeze(-1)).square() @ SHARES
        return center, variance.sqrt()

    def moments_and_pullback(self, mean: Tensor, sd: Tensor) -> tuple[Tensor, Tensor, MomentPullback]:
        sign, log_size, power = self._unwarp(mean.unsqueeze(-1) + sd.unsqueeze(-1) * NODES)
        values = self.center + self.unit * sign * log_size.expm1()
        slopes = (self.unit * self.scale) * ((1.0 - power) * log_size).exp() * SHARES
        center: Tensor = values @ SHARES
        from_center = values - center.unsqueeze(-1)
        spread: Tensor = (from_center.square() @ SHARES).sqrt()
        by_spread = slopes * from_center / spread.unsqueeze(-1)
        center_by = slopes.sum(-1), slopes @ NODES
        spread_by = by_spread.sum(-1), by_spread @ NODES

        def pullback(by_mean: Tensor, by_sd: Tensor) -> tuple[Tensor, Tensor]:
            return (
                center_by[0] * by_mean + spread_by[0] * by_sd,
                center_by[1] * by_mean + spread_by[1] * by_sd,
            )

        return center, spread, pullback

    def _warp(self, Y: Tensor) -> Tensor:
        """sign(z) ((1 + |z|)^p − 1) / p with p = power above zero and 2 − power below; log(1 + |z|) for p = 0."""
        z = (Y - self.center) / self.unit
        log_size, power = z.abs().log1p(), self._power_at(z)
        warped = torch.where(power < FLAT, log_size, (power * log_size).expm1() / _nonzero(power))
        return z.sign() * warped

    def _unwarp(self, modelled: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """sign(z), log(1 + |z|) and the power in force."""
        warped = self.shift + self.scale * modelled
        size, power = warped.abs(), self._power_at(warped)
        log_size = torch.where(power < FLAT, size, (power * size).log1p() / _nonzero(power))
        return warped.sign(), log_size, power

    def _power_at(self, side: Tensor) -> Tensor:
        above = side.new_tensor(self.power)  # of two plain numbers, where() would make single precision
        return torch.where(side >= 0, above, 2.0 - above)


def _nonzero(power: Tensor) -> Tensor:
    return torch.where(power < FLAT, 1.0, power)


def _center_and_spread(Y: Tensor) -> tuple[float, float]:
    center = float(Y.mean())
    spread = float((Y - center).square().mean().sqrt())
    # Outcomes that differ by rounding only carry no scale: fall back to their size, then to one.
    tiny = 1e-12 * float(Y.abs().max())
    return center, spread if spread > tiny else (float(Y.abs().max()) or 1.0)
