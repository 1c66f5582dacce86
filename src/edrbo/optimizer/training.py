"""A state in the terms of a model: contexts coded, outcomes signed for maximization and of ordinary size."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.context.laws import ContextHistory
from edrbo.optimizer.belief import Extras
from edrbo.records.observations import Observations
from edrbo.records.state import State
from edrbo.space import Space
from edrbo.space.scale import ContextScale
from edrbo.surrogate.schedule import fit_sizes

Array = NDArray[np.float64]

GOOD_STARTS, RECENT_STARTS = 16, 32  # designs tried best and last from which a search begins


@dataclass(frozen=True, eq=False)
class Evidence:
    """``sign`` is −1 for minimization; without ``uses_context`` the surrogate is a model of x alone."""

    space: Space
    state: State
    sign: float
    uses_context: bool

    @property
    def observations(self) -> Observations:
        return self.state.observations

    @cached_property
    def unit(self) -> float:
        """A power of two that brings outcomes of extreme size near one; 1 for ordinary ones."""
        largest = float(np.abs(self.observations.y).max(initial=0.0))
        if largest == 0.0 or 1e-100 < largest < 1e100:
            return 1.0
        return 2.0 ** (math.frexp(largest)[1] - 1)

    def to_user(self, values: Any) -> Array:
        """Values of the model in the user's units and direction; held to what float64 can say."""
        limit = np.finfo(np.float64).max / max(self.unit, 1.0)
        return np.clip(self.sign * np.asarray(values, dtype=np.float64), -limit, limit) * self.unit

    @cached_property
    def outcomes(self) -> Array:
        return self.sign * (self.observations.y / self.unit)

    @cached_property
    def noise(self) -> Array:
        """Known noise variances, NaN where unknown."""
        return self.observations.noise / self.unit / self.unit

    @cached_property
    def trains(self) -> NDArray[np.bool_]:
        """Which observations the surrogate is fitted to."""
        return self.observations.complete if self.uses_context else np.ones(len(self.observations), dtype=np.bool_)

    def scale(self, size: int | None = None) -> ContextScale:
        """The coding of contexts that belongs to a fit on the first ``size`` complete observations, or to the last."""
        contexts = self.observations.c[self.observations.complete]
        if size is None:
            size = fit_sizes(len(contexts))[-1] if len(contexts) else 0
        seen = contexts[:size] if size else self.state.log.weighted(self.space.d_c, None)[0]
        return self.space.context_scale(seen)

    def inputs(self, size: int) -> Tensor:
        """Model inputs (n × d) of the training observations in the coding of a fit on ``size`` of them."""
        x, contexts = self.observations.x[self.trains], self.observations.c[self.trains]
        if not self.uses_context or not self.space.d_c:
            return torch.from_numpy(x.copy())
        return torch.from_numpy(np.concatenate([x, self.scale(size).encode(contexts)], axis=1))

    def box(self, scale: ContextScale) -> tuple[Tensor, Tensor]:
        """The coded context box: [0, 1], widened to hold every context that was seen."""
        seen = scale.encode(self.state.log.weighted(self.space.d_c, None)[0])
        lower = np.minimum(0.0, seen.min(axis=0, initial=0.0))
        upper = np.maximum(1.0, seen.max(axis=0, initial=1.0))
        return torch.from_numpy(lower), torch.from_numpy(upper)

    def history(self, scale: ContextScale, half_life: float | None, forecast: Array | None) -> ContextHistory:
        """The contexts the law is made from: those seen, or the ``forecast`` (n × d_c) in their place."""
        rows, weights = self.state.log.weighted(self.space.d_c, half_life)
        if forecast is not None:
            rows, weights = forecast, np.ones(len(forecast))
        return ContextHistory(torch.from_numpy(scale.encode(rows)), torch.from_numpy(weights), *self.box(scale))

    def extras(self, pending: list[Array]) -> Extras:
        """What is known besides the training observations."""
        rest = ~self.trains
        return Extras(
            torch.from_numpy(self.observations.x[rest]),
            torch.from_numpy(self.outcomes[rest]),
            torch.from_numpy(self.noise[rest]),
            self._stack(list(self.state.failed.values())),
            self._stack(pending),
        )

    def starts(self) -> Tensor:
        """Designs tried best and last: good places to begin a search."""
        x = self.observations.x
        best = np.argsort(-self.outcomes, kind="stable")[:GOOD_STARTS]
        recent = np.arange(max(0, len(x) - RECENT_STARTS), len(x))
        return torch.from_numpy(np.unique(x[np.concatenate([best, recent])], axis=0))

    def _stack(self, designs: list[Array]) -> Tensor:
        return torch.from_numpy(np.stack(designs)) if designs else torch.zeros(0, self.space.d_x, dtype=torch.float64)
