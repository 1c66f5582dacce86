"""The model of one outcome: its data, the surrogate refitted as they grow, and posteriors conditioned on both.

``StoredFit`` keeps hyper-parameters between processes. A fit belongs to the observations it was made on: it is used
only where these come first, bit for bit, in the present ones; then going on from it and computing everything anew give
the same numbers (surrogate/ensemble.py). ``OutcomeForecaster`` is the predictive distribution of the next outcome of a
design by context.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo import __version__
from edrbo.acquisition.acquisition import ModelGoal
from edrbo.acquisition.methods import Method
from edrbo.contexts.distributions import ContextPoints
from edrbo.contexts.uncertainty import DistributionUncertainty
from edrbo.errors import InvalidValueError, NoScaleWarning
from edrbo.optimizer.calibration import Z95, Trust, earned_trust
from edrbo.optimizer.candidates import ForecastOrContext
from edrbo.optimizer.intervals import mixture_quantiles
from edrbo.optimizer.outcome_posterior import OutcomePosterior, condition, conditioned
from edrbo.optimizer.recommendation import Recommender, known_distribution_of
from edrbo.optimizer.tolerance import Tolerances, deviations
from edrbo.optimizer.training_data import TrainingData
from edrbo.records.goals import Goal, as_goal
from edrbo.records.outcomes import Units
from edrbo.records.sanity import LARGEST_TABLE, MAX_MAGNITUDE, Interval, OutcomeForecast
from edrbo.records.settings import LEARNED
from edrbo.records.state import State
from edrbo.space import Space
from edrbo.space.context_scale import ContextScale
from edrbo.streams import stream_seed
from edrbo.surrogate.drift import DriftingSurrogate, asked_at
from edrbo.surrogate.ensemble import ExpertEnsemble, FittedModel, Surrogate, advance
from edrbo.surrogate.kernels import Hyperparameters
from edrbo.surrogate.marginal import doubted
from edrbo.surrogate.noise import VaryingNoiseSurrogate

Array = NDArray[np.float64]


class OutcomeModel:
    """One outcome of an experiment, as if it were the only one.

    Args:
        state: The experiment as far as this outcome goes.
        method: What models it.
        stored: A fit that was made on a beginning of its data.
        alone: Whether there is no other outcome.
    """

    def __init__(self, state: State, method: Method, stored: StoredFit | None = None, *, alone: bool = True) -> None:
        self.alone = alone
        self.state = state
        self.method = method
        self.stored = stored
        self._fitted: FittedModel | None = None
        self._digest = ""  # of what it was fitted to
        self._before: tuple[str, ExpertEnsemble] | None = None  # of earlier studies alone, and of what it was made

    def go_on(self, state: State, method: Method) -> None:
        """Go on from ``state``. A surrogate of earlier data is kept and used where these data begin with its own."""
        if state.settings == self.state.settings:
            self.state = state
            return
        fit = self.fit
        self.state, self.method, self.stored, self._fitted = state, method, None, None
        self.offer(fit)

    # ---------------------------------------------------------------- the surrogate

    @property
    def fit(self) -> StoredFit | None:
        """The last fit; None before the first."""
        if self._fitted is None:
            return self.stored
        return StoredFit(self._fitted.fitted, self._fitted.hyper, self._fitted.rows, self._digest)

    def offer(self, stored: StoredFit | None) -> None:
        """A fit made elsewhere; it is used if it is of these data and further on than our own."""
        own = self.fit
        if stored is None or (own is not None and stored.rows <= own.rows):
            return
        if stored.suits(self.method, self.state.space) and stored.usable(self.data()) is not None:
            self.stored, self._fitted = stored, None

    def data(self) -> TrainingData:
        """The observations in the terms of the surrogate."""
        return TrainingData(self.state, self.method.score.uses_context)

    def surrogate(self, data: TrainingData) -> ExpertEnsemble | None:
        """The surrogate on all complete observations of ``data``; None if there is none."""
        rows = data.training
        n = len(rows)
        if n == 0:
            return self._of_earlier(data)
        fitted = self._fitted
        if fitted is not None and (fitted.rows > n or data.digest(fitted.rows) != self._digest):
            fitted = None  # something was corrected or undone
        if fitted is None or fitted.rows != n:
            fitted = advance(
                self._surrogate,
                fitted,
                n,
                data.inputs,
                torch.from_numpy(data.outcomes[rows]),
                data.noise_of,
                None if self.stored is None else self.stored.usable(data),
                None if self.state.settings.earlier is None else data.earlier,
            )
            self._digest = data.digest(n)
        if self.state.settings.drift is not None:
            fitted = replace(fitted, model=asked_at(fitted.model, data.now))
        self._fitted = fitted
        return fitted.model

    @property
    def _surrogate(self) -> Surrogate:
        """The method's, of f that drifts if it does, else with noise that varies if the data say so."""
        drift = self.state.settings.drift
        if drift is None:
            settings = self.state.settings  # of earlier sources each has a noise of its own
            plain = settings.noise_model == "constant" or settings.earlier is not None
            plain = plain or type(self.method.surrogate) is not Surrogate
            return self.method.surrogate if plain else VaryingNoiseSurrogate.of(self.method.surrogate)
        return DriftingSurrogate.of(self.method.surrogate, None if drift == LEARNED else float(drift))

    def _of_earlier(self, data: TrainingData) -> ExpertEnsemble | None:
        """Before anything was measured here, what earlier studies say."""
        earlier = data.earlier(0)
        if earlier is None:
            return None
        digest = data.digest(0)
        if self._before is None or self._before[0] != digest:
            nothing = earlier.y.new_zeros(0)
            model = self.method.surrogate.beside(earlier).fit(earlier.x[:0], nothing)
            self._before = digest, model
        return self._before[1]

    # ---------------------------------------------------------------- posteriors

    def goal(self, data: TrainingData, goal: Goal | str | None = None) -> ModelGoal:
        """``goal``, or the outcome's own, in the surrogate's units."""
        return ModelGoal(self.state.settings.goal if goal is None else as_goal(goal), data.units)

    def posterior(
        self,
        data: TrainingData,
        context_distribution: ForecastOrContext,
        goal: ModelGoal | None = None,
        *,
        pending: list[Array],
        asking: bool,
    ) -> OutcomePosterior:
        """What is believed of the outcome under a distribution of contexts, for asking or for answering.

        Args:
            data: From ``data()``.
            context_distribution: A forecast, one context, or neither.
            goal: Another goal than the outcome's own.
            pending: Designs (d_x each) that are being evaluated.
            asking: Whether a design is to be suggested.
        """
        posterior = self._of_inputs(data, context_distribution, goal, pending=pending, asking=asking)
        wanted = self.goal(data) if goal is None else goal
        tolerances = self._deviations(data, wanted)
        if tolerances is None:
            return posterior
        given = context_distribution[1] is not None
        return tolerances.posterior(posterior, tolerances.goal(wanted) if given else None)

    def _of_inputs(
        self,
        data: TrainingData,
        context_distribution: ForecastOrContext,
        goal: ModelGoal | None,
        *,
        pending: list[Array],
        asking: bool,
    ) -> OutcomePosterior:
        """The same of what comes out: without tolerances."""
        forecast, fixed = context_distribution[0], context_distribution[1]
        model = self.surrogate(data)
        model_goal = self.goal(data) if goal is None else goal
        scale, settings = data.scale(), self.state.settings
        history = data.history(scale, settings.context_half_life, forecast)
        if model_goal.over_all_bounds:
            lower, upper = data.whole_box(scale)
            history = replace(history, lower=lower, upper=upper)
        return condition(
            self.method,
            model,
            data.extras(pending),
            history,
            None if fixed is None else torch.from_numpy(scale.encode(fixed)),
            len(self.state.reported),
            stream_seed(settings.seed, "law", len(self.state.reported)),
            model_goal,
            asking=asking,
            forecast=forecast is not None,
        )

    def _deviations(self, data: TrainingData, goal: ModelGoal) -> Tolerances | None:
        """What the goal is over besides contexts. Several outcomes have one distribution, which knows no noise."""
        alone = self.alone and self.state.settings.outcomes is None
        return deviations(self.state.space, self.surrogate(data) if alone else None, goal.goal)

    def known_distribution(
        self, data: TrainingData, context_distribution: ForecastOrContext, tolerances: Tolerances | None = None
    ) -> DistributionUncertainty:
        """The distribution to answer for, as far as it is known, with what it is over besides contexts."""
        found = known_distribution_of(
            data, self.method.context_distribution, self.state.settings.context_half_life, *context_distribution
        )
        tolerances = Tolerances.of(self.state.space) if tolerances is None else tolerances
        return found if tolerances is None else tolerances.distribution(found)

    def forecasting(self, data: TrainingData) -> ExpertEnsemble | None:
        """The surrogate, asked about what is set."""
        model, tolerances = self.surrogate(data), Tolerances.of(self.state.space)
        return model if model is None or tolerances is None else tolerances.model(model)

    def knowledge(
        self, context_distribution: ForecastOrContext, seed: int, goal: Goal | str | None = None
    ) -> Recommender:
        """Everything an answer under this goal and distribution is made from."""
        data = self.data()
        model_goal = self.goal(data, goal)
        tolerances = self._deviations(data, model_goal)
        posterior = self.posterior(data, context_distribution, model_goal, pending=[], asking=False)
        model = self.surrogate(data)
        surrogate = self.method.surrogate
        if model is None:
            worlds, trust = posterior.model, earned_trust(posterior.model)
        else:
            members = doubted(surrogate, model)
            points = posterior.points if tolerances is None else tolerances.contexts(posterior.points)
            worlds = conditioned(surrogate, members, data.extras([]), points)
            worlds = worlds if tolerances is None else tolerances.model(worlds)
            trust = earned_trust(members)
        if trust.freedom == 0.0:
            name = self.state.settings.outcome
            words = f"one {name!r} says nothing of how far another may be, so its intervals are infinite"
            warnings.warn(f"{words}; tell a second one", NoScaleWarning, stacklevel=5)  # for who called ``recommend``
        known = self.known_distribution(data, context_distribution, tolerances)
        return Recommender(data, posterior, worlds, known, trust, seed)


@dataclass(frozen=True, eq=False)
class StoredFit:
    """``hyper`` were fitted on the first ``rows`` observations; ``digest`` is that of the first ``count``.

    ``others`` are the fits of outcomes besides the main one.
    """

    rows: int
    hyper: Hyperparameters
    count: int
    digest: str
    others: Mapping[str, StoredFit] = field(default_factory=dict)

    def usable(self, training_data: TrainingData) -> tuple[int, Hyperparameters] | None:
        """(rows, hyper-parameters), or None if they were fitted to other data."""
        same = self.count <= len(training_data.training) and self.digest == training_data.digest(self.count)
        return (self.rows, self.hyper) if same else None

    def suits(self, method: Method, space: Space) -> bool:
        """Whether it has the experts and the inputs of the model of ``method``."""
        inputs = space.d_x + (space.context_width if method.score.uses_context else 0)
        return self.hyper.lengthscale.shape == (len(method.surrogate.experts), inputs)

    def to_dict(self) -> dict[str, Any]:
        """JSON types only."""
        return {
            "version": __version__,
            "observations": self.count,
            "digest": self.digest,
            "rows": self.rows,
            **self.hyper.to_dict(),
            **({"others": {name: fit.to_dict() for name, fit in self.others.items()}} if self.others else {}),
        }

    @classmethod
    def from_dict(cls, record: Any) -> StoredFit | None:
        """The inverse of ``to_dict``; None for a fit of another version, which may have fitted otherwise."""
        if record is None:
            return None
        if not isinstance(record, Mapping):
            raise InvalidValueError("the stored fit is not an object")
        if record.get("version") != __version__:
            return None
        hyper = Hyperparameters.from_dict(record)
        _check(hyper)
        rows, count = record["rows"], record["observations"]
        whole = all(isinstance(number, int) and not isinstance(number, bool) for number in (rows, count))
        if not whole or not 1 <= rows <= count or not isinstance(record["digest"], str):
            raise InvalidValueError("the stored fit does not fit together")
        others = record.get("others", {})
        if not isinstance(others, Mapping):
            raise InvalidValueError("the stored fits of other outcomes are not an object")
        read = {name: cls.from_dict(part) for name, part in others.items()}
        return cls(rows, hyper, count, record["digest"], {name: fit for name, fit in read.items() if fit is not None})


def _check(hyper: Hyperparameters) -> None:
    positive = (hyper.lengthscale, hyper.outputscale, hyper.noise_variance, hyper.shape)
    experts = hyper.outputscale.shape
    shapes = hyper.lengthscale.ndim == 2 and hyper.lengthscale.shape[:1] == experts
    shapes = (
        shapes
        and len(experts) == 1
        and all(part.shape == experts for part in (hyper.noise_variance, hyper.mean, hyper.shape))
    )
    numbers = all(bool(part.isfinite().all()) and bool((part > 0).all()) for part in positive)
    if hyper.correlation is not None:
        known = (hyper.correlation, hyper.source_noise, hyper.source_mean)
        shapes = shapes and all(part is not None and part.shape == hyper.correlation.shape for part in known)
        shapes = shapes and hyper.correlation.shape[:1] == experts
        numbers = numbers and bool((hyper.correlation.abs() < 1.0).all())
        numbers = numbers and all(part is not None and bool(part.isfinite().all()) for part in known)
        numbers = numbers and hyper.source_noise is not None and bool((hyper.source_noise > 0).all())
    power = isinstance(hyper.power, int | float) and math.isfinite(hyper.power)
    power = power and (hyper.half_life is None or (isinstance(hyper.half_life, int | float) and hyper.half_life > 0))
    if not (shapes and numbers and power and bool(hyper.mean.isfinite().all())):
        raise InvalidValueError("the hyper-parameters of the stored fit make no sense")


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
        noise_variance = self.trust.noise_at(model, joint)
        return mean, ((reach / Z95 * sd).square() + noise_variance * slope.square()).sqrt()

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
        """The axes in the user's units; None if points cannot be distinguished there."""
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
        table = np.stack([middle, *ends], axis=-1).clip(self.units.lowest, self.units.highest)
        return OutcomeForecast(drawn.overall, drawn.axes, table)
