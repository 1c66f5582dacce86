"""The predictive distribution of the next outcome of a design by context, for ``records/outcome_forecast.py``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.contexts.distributions import ContextPoints
from edrbo.optimizer.calibration import Z95, Trust, earned_trust
from edrbo.optimizer.intervals import mixture_quantiles
from edrbo.optimizer.training_data import TrainingData
from edrbo.records.outcomes import Units
from edrbo.records.sanity import LARGEST_TABLE, MAX_MAGNITUDE, Interval, OutcomeForecast
from edrbo.space.context_scale import ContextScale
from edrbo.surrogate.ensemble import ExpertEnsemble

Array = NDArray[np.float64]

# Points on the axis of each context variable, by how many there are; with more variables the distribution alone is
# expected.
INNER = {1: 9, 2: 3, 3: 3}


@dataclass(frozen=True, eq=False)
class OutcomeForecaster:
    """``model`` of (x, c), or of x alone, with what it deserves; ``points`` is the distribution of the next context,
    ``seen`` (n × d_c) are coded contexts that the table is made for."""

    model: ExpertEnsemble
    trust: Trust
    points: ContextPoints
    seen: Array
    scale: ContextScale
    names: tuple[str, ...]
    units: Units

    @classmethod
    def by(
        cls, model: ExpertEnsemble, points: ContextPoints, training_data: TrainingData, forecast: Array | None
    ) -> OutcomeForecaster:
        """From what an ask is made from; ``forecast`` (n × d_c) are the contexts to come, if the user said so."""
        scale = training_data.scale()
        seen = training_data.history(scale, None, forecast).contexts.numpy()
        if training_data.space.tolerances:  # at no context is what comes out known: the distribution alone is expected
            seen = seen[:0]
        names = training_data.space.context_names
        return cls(model, earned_trust(model), points, seen, scale, names, training_data.units)

    def of(self, x: Array) -> dict[str, Any] | None:
        """What to store with the design ``x`` (d_x); None if there is no scale to say it in."""
        found = self.outcome(x)
        return None if found is None else found.to_dict()

    def outcome(self, x: Array) -> OutcomeForecast | None:
        """What to expect of the design ``x`` (d_x), in the user's units."""
        reach = self.trust.reach
        levels = any(self.scale.whole)
        axes = self._level_axes() if levels else self._axes()
        grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes)) if axes else np.zeros((0, 0))
        grid = self.scale.encode(grid) if levels and len(grid) else grid
        atoms, weights = self.points.atoms, self.points.weights
        contexts = torch.cat([atoms, torch.from_numpy(grid)]) if len(grid) else atoms
        with torch.no_grad():
            mean, sd = self._outcomes(torch.from_numpy(x), contexts, reach)
            shares = mean.new_full((len(mean),), 1.0 / len(mean)) if self.model.weights is None else self.model.weights
            count = len(atoms)
            by_atom = mean[:, :count].reshape(1, -1), sd[:, :count].reshape(1, -1)
            overall = self._interval(*by_atom, (shares[:, None] * weights).flatten())[0]
            if not (np.abs(overall) < MAX_MAGNITUDE).all():
                return None
            if not len(grid):
                return OutcomeForecast(Interval(*overall.tolist()))
            table = self._interval(mean[:, count:].mT, sd[:, count:].mT, shares)
            center = self._user(shares @ mean[:, :count])
        table = table.reshape(*(len(axis) for axis in axes), 3)
        named = tuple(zip(self.names, axes, strict=True)) if levels else self._named(axes)
        if named is None or not (np.abs(table) < MAX_MAGNITUDE).all():
            return OutcomeForecast(Interval(*overall.tolist()))
        drawn = OutcomeForecast(Interval(*overall.tolist()), named, table)
        return self._widened(drawn, atoms.numpy(), center)

    def _outcomes(self, x: Tensor, contexts: Tensor, reach: float) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of a single outcome in each context by each expert (M × K)."""
        model, joint = self.model, torch.cat([x.expand(len(contexts), -1), contexts], dim=-1)
        modelled, spread = model.gp.moments(joint)
        mean, sd = model.scaling.moments(modelled, spread)
        slope = model.scaling.slope(modelled)
        return mean, ((reach / Z95 * sd).square() + self.trust.noise_variance[:, None] * slope.square()).sqrt()

    def _interval(self, mean: Tensor, sd: Tensor, weights: Tensor) -> Array:
        """Mean, low and high (N × 3) of mixtures (N × K) in the user's units."""
        ends = mixture_quantiles((0.025, 0.975), mean, sd, weights)
        center, *both = self._user(torch.cat([(mean @ weights)[None], ends]))
        low, high = np.sort(both, axis=0)
        return np.stack([center, np.minimum(low, center), np.maximum(high, center)], axis=1)

    def _user(self, values: Tensor) -> Array:
        found: Array = self.units.to_user(values.numpy())
        return found

    def _axes(self) -> list[Array]:
        """Coded points: quantiles of the contexts seen, and the ends of the ordinary range."""
        d_c = self.points.atoms.shape[1]
        if d_c not in INNER or not len(self.seen):
            return []
        levels = np.linspace(0.0, 1.0, INNER[d_c])
        quantiles = np.quantile(self.seen, levels, axis=0)
        ends = [] if d_c > 2 else [np.zeros((1, d_c)), np.ones((1, d_c))]
        return [np.unique(column.round(9)) for column in np.concatenate([*ends, quantiles]).T]

    def _level_axes(self) -> list[Array]:
        """Points in the user's units where some variables have levels: all choices, and numbers as in ``_axes``."""
        d_c = len(self.names)
        if d_c not in INNER or not len(self.seen):
            return []
        spread = np.quantile(self.seen, np.linspace(0.0, 1.0, INNER[d_c]), axis=0)
        ends = [] if d_c > 2 else [np.zeros((1, self.scale.width)), np.ones((1, self.scale.width))]
        numbers = self.scale.decode(np.concatenate([*ends, spread]))
        axes = [
            np.arange(float(count)) if count else np.unique(numbers[:, k]) for k, count in enumerate(self.scale.choices)
        ]
        return axes if np.prod([float(len(axis)) for axis in axes]) < LARGEST_TABLE else []

    def _named(self, axes: list[Array]) -> tuple[tuple[str, Array], ...] | None:
        """The axes in the user's units; None if points cannot be told apart there."""
        named = []
        for k, (name, axis) in enumerate(zip(self.names, axes, strict=True)):
            rows = np.zeros((len(axis), len(axes)))
            rows[:, k] = axis
            points = self.scale.decode(rows)[:, k]
            if not (np.diff(points) > 0).all():
                return None
            named.append((name, points))
        return tuple(named)

    def _widened(self, drawn: OutcomeForecast, atoms: Array, center: Array) -> OutcomeForecast:
        """Intervals made longer by how far the table is off at the atoms (m × d_c), where the mean is ``center``."""
        assert drawn.table is not None
        off = drawn.values(self.scale.decode(atoms)) - center
        square = float(self.points.weights.numpy() @ off**2)
        middle, low, high = np.moveaxis(drawn.table, -1, 0)
        ends = [middle + side * np.sqrt((end - middle) ** 2 + Z95**2 * square) for side, end in ((-1, low), (1, high))]
        return OutcomeForecast(drawn.overall, drawn.axes, np.stack([middle, *ends], axis=-1))
