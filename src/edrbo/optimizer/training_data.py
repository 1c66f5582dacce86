"""Training data of a surrogate: contexts coded, outcomes signed for maximization and scaled."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.contexts.distributions import ContextHistory, Levels
from edrbo.contexts.known_distribution import known_contexts
from edrbo.contexts.partial import Donors, complete, completed, equally_likely
from edrbo.optimizer.outcome_posterior import NO_TIME, Extras, Runs, Spread
from edrbo.records.change_point import ProcessChange, process_change
from edrbo.records.earlier import EarlierRuns
from edrbo.records.outcomes import Units
from edrbo.records.sanity import outliers
from edrbo.records.state import Observations, State
from edrbo.space import Space
from edrbo.space.context_scale import ContextScale
from edrbo.surrogate.earlier import MOST_EARLIER, EarlierRows
from edrbo.surrogate.ensemble import fit_sizes
from edrbo.surrogate.fit import representative


def reconciled(inputs: Array, y: Array, noise_variance: Array) -> Array:
    """Noise variances (n, NaN where not known) of outcomes ``y`` (n) at ``inputs`` (n × d), where those reported as
    zero at one input are the variance of what was found there."""
    exact = np.flatnonzero(noise_variance == 0.0)
    if len(exact) < 2:
        return noise_variance
    found = noise_variance.copy()
    _, group = np.unique(inputs[exact], axis=0, return_inverse=True)
    for number in np.flatnonzero(np.bincount(group.ravel()) > 1):
        rows = exact[group.ravel() == number]
        found[rows] = y[rows].var(ddof=1)
    return found


Array = NDArray[np.float64]

COMPLETIONS = 64  # contexts that stand for one of which a part is known
GOOD_STARTS, RECENT_STARTS = 16, 32  # designs tried best and last from which a search begins


@dataclass(frozen=True, eq=False)
class TrainingData:
    """``state`` for a model; without ``uses_context`` that is a model of x alone."""

    state: State
    uses_context: bool

    @property
    def space(self) -> Space:
        return self.state.space

    @property
    def observations(self) -> Observations:
        return self.state.observations

    @cached_property
    def kept(self) -> NDArray[np.bool_]:
        """Which observations are learned from; the others are slips (``records/outliers.py``)."""
        return ~outliers(self.state)

    @cached_property
    def units(self) -> Units:
        settings = self.state.settings
        ends = {} if settings.outcome_range is None else {"ends": settings.outcome_range.ends}
        return Units.of(settings.direction, self.observations.y[self.kept], **ends)

    @cached_property
    def outcomes(self) -> Array:
        return self.units.to_model(self.observations.y)

    @cached_property
    def noise_variance(self) -> Array:
        """Known noise variances, NaN where unknown."""
        return self.units.variance_to_model(self.observations.noise_variance)

    @cached_property
    def training(self) -> NDArray[np.intp]:
        """The rows of the observations that the surrogate is fitted to, in the order in which it learns them."""
        return self._complete if self.uses_context else np.flatnonzero(self.kept)

    @cached_property
    def _complete(self) -> NDArray[np.intp]:
        """The rows with a known context, in the order in which they became so."""
        order = self.state.training_order
        return order[self.kept[order]]

    @cached_property
    def rest(self) -> NDArray[np.intp]:
        """The other rows: outcomes whose context is not known."""
        return np.setdiff1d(np.flatnonzero(self.kept), self.training)

    def digest(self, count: int) -> str:
        """A fingerprint of the first ``count`` rows that are learned from, and of how: both can be amended."""
        rows, data, settings = self.training[:count], self.observations, self.state.settings
        known = () if settings.earlier is None else (settings.earlier.digest,)
        terms = repr((settings.method, settings.direction, settings.space.context, *known)).encode()
        parts = [data.x[rows], data.c[rows], data.y[rows], data.noise_variance[rows]]
        if settings.drift is not None:
            terms += repr(settings.drift).encode()
            parts.append(self.time[rows])
        return hashlib.sha256(terms + b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()

    def scale(self, size: int | None = None) -> ContextScale:
        """The coding of contexts that belongs to a fit on the first ``size`` complete observations, or to the last."""
        contexts = self.observations.c[self._complete]
        if size is None:
            size = fit_sizes(len(contexts))[-1] if len(contexts) else 0
        if size not in self._scales:
            some = contexts[:size] if size else self._lasting_distribution[0]
            self._scales[size] = self.space.context_scale(some if len(some) else self.earlier_contexts)
        return self._scales[size]

    @cached_property
    def _scales(self) -> dict[int, ContextScale]:
        """Those that were asked for, by the size of the fit."""
        return {}

    def inputs(self, size: int) -> Tensor:
        """Model inputs (n × d) of the training observations in the coding of a fit on ``size`` of them."""
        x, contexts = self.observations.x[self.training], self.observations.c[self.training]
        columns = [x, self.scale(size).encode(contexts)] if self.uses_context and self.space.d_c else [x.copy()]
        if self.state.settings.drift is not None:
            columns.append(self.time[self.training, None])
        return torch.from_numpy(np.concatenate(columns, axis=1) if len(columns) > 1 else columns[0])

    @cached_property
    def time(self) -> Array:
        """The number of the run that each observation comes from (n), in the order of reporting, dropped ones
        counted."""
        order = {key: float(number) for number, key in enumerate(self.state.reported_order)}
        return np.array([order[key] for key in self.state.owners], dtype=np.float64)

    @property
    def process_change(self) -> ProcessChange | None:
        """Since which run outcomes come otherwise."""
        return process_change(self.state)

    @property
    def now(self) -> float:
        """The number of the next run."""
        return float(len(self.state.reported_order))

    def earlier(self, size: int) -> EarlierRows | None:
        """What earlier studies measured, in the coding of ``inputs(size)``; None without any. Of very many runs of a
        source representative ones."""
        if not self.earlier_runs:
            return None
        parts = []
        for number, runs in enumerate(self.earlier_runs, start=1):
            contexts = self.scale(size).encode(runs.c) if self.uses_context and self.space.d_c else runs.c[:, :0]
            x = torch.from_numpy(np.concatenate([runs.x, contexts], axis=1))
            some = representative(x, MOST_EARLIER // len(self.earlier_runs))
            y = torch.from_numpy(self.units.to_model(runs.y))[some]
            noise = torch.from_numpy(self.units.variance_to_model(runs.noise_variance))[some]
            parts.append((x[some], y, noise, torch.full((len(some),), number)))
        x, y, noise, source = (torch.cat(list(each)) for each in zip(*parts, strict=True))
        return EarlierRows(x, y, noise, source)

    @cached_property
    def earlier_runs(self) -> tuple[EarlierRuns, ...]:
        """What earlier studies say of this outcome."""
        settings = self.state.settings
        return () if settings.earlier is None else settings.earlier.runs(settings.outcome, settings.unit)

    @cached_property
    def earlier_contexts(self) -> Array:
        """All that earlier runs were met with (n × d_c)."""
        return np.concatenate([np.zeros((0, self.space.d_c)), *(runs.c for runs in self.earlier_runs)])

    @property
    def knows_contexts(self) -> bool:
        """Whether anything is known of the distribution of contexts here, or there is none to know."""
        return not self.space.d_c or len(self._lasting_distribution[0]) > 0

    def noise_of(self, size: int) -> Tensor | None:
        """Known noise variances (size) of the first training observations, as these tell; None if none is known."""
        rows, data = self.training[:size], self.observations
        inputs = np.concatenate([data.x, data.c] if self.uses_context else [data.x], axis=1)[rows]
        noise_variance = reconciled(inputs, self.outcomes[rows], self.noise_variance[rows])
        return None if np.isnan(noise_variance).all() else torch.from_numpy(noise_variance)

    def box(self, scale: ContextScale) -> tuple[Tensor, Tensor]:
        """The coded context box: [0, 1], widened to hold every context that was seen."""
        seen = scale.encode(self.state.log.weighted(self.space.d_c, None)[0])
        if self.state.settings.context_distribution is not None:
            seen = np.concatenate([seen, scale.encode(self._lasting_distribution[0])])
        lower, upper = np.fmin.reduce(seen, axis=0, initial=0.0), np.fmax.reduce(seen, axis=0, initial=1.0)
        return torch.from_numpy(lower), torch.from_numpy(upper)

    def whole_box(self, scale: ContextScale) -> tuple[Tensor, Tensor]:
        """The same, widened to hold all that the variables' bounds allow, though only a sliver of it was seen."""
        lower, upper = (part.clone() for part in self.box(scale))
        ends = np.array([variable.limits() for variable in self.space.context.values()]).T  # 2 × d_c
        known, middle = np.isfinite(ends), 0.5 * (scale.lower + scale.upper)
        coded = scale.encode(np.where(known, ends, middle))
        for block, choices, bounded in zip(scale.blocks, scale.choices, known.T, strict=True):
            if not choices and bounded.all():
                place = block.start
                lower[place] = min(float(lower[place]), float(coded[0, place]))
                upper[place] = max(float(upper[place]), float(coded[1, place]))
        return lower, upper

    def history(self, scale: ContextScale, half_life: float | None, forecast: Array | None) -> ContextHistory:
        """The contexts the distribution is made from: those seen, or the ``forecast`` (n × d_c) in their place."""
        if forecast is not None:
            return self._history(scale, scale.encode(forecast), np.ones(len(forecast)))
        known = self._histories.get(half_life)  # one ask wants it more than once
        if known is None or known[0] is not scale:
            known = scale, self._history(scale, *completed(*self._distribution(half_life), scale))
            self._histories[half_life] = known
        return known[1]

    def _history(self, scale: ContextScale, coded: Array, weights: Array) -> ContextHistory:
        seen = torch.from_numpy(coded), torch.from_numpy(weights)
        return ContextHistory(*seen, *self.box(scale), Levels.of(scale))

    @cached_property
    def _histories(self) -> dict[float | None, tuple[ContextScale, ContextHistory]]:
        """The last one of each half-life, with the scale it is coded in."""
        return {}

    def likely(self, row: Array) -> tuple[Array, Donors]:
        """Contexts (n × d_c) that are equally likely where ``row`` (d_c) is known in part, and whose they are."""
        scale = self.scale()
        found = complete(row, *self._lasting_distribution, scale)
        return scale.decode(equally_likely(found, COMPLETIONS)), found.donors

    def seen_groups(self, half_life: float | None) -> NDArray[np.intp] | None:
        """Which of the contexts seen each row of the distribution holds, where the user has said the distribution of
        some variables."""
        context_distribution = self.state.settings.context_distribution
        if context_distribution is None or context_distribution.samples or self.distribution_is_known:
            return None
        reported = {name for name, _ in context_distribution.parts}
        rest = [k for k, name in enumerate(self.space.context_names) if name not in reported]
        rows = self._distribution(half_life)[0][:, rest]
        groups: NDArray[np.intp] = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
        return groups

    @cached_property
    def _lasting_distribution(self) -> tuple[Array, Array]:
        """``_distribution`` without forgetting."""
        return self._distribution(None)

    def _distribution(self, half_life: float | None) -> tuple[Array, Array]:
        """Contexts (n × d_c) and weights (n) of the distribution: those seen, or of a distribution that the user
        knows."""
        seen, context_distribution = (
            self.state.log.weighted(self.space.d_c, half_life),
            self.state.settings.context_distribution,
        )
        return seen if context_distribution is None else known_contexts(context_distribution, self.space, *seen)

    @property
    def distribution_is_known(self) -> bool:
        """Whether the user has said all of the distribution of contexts."""
        context_distribution = self.state.settings.context_distribution
        return context_distribution is not None and context_distribution.covers(self.space)

    def extras(self, pending: list[Array]) -> Extras:
        """What is known besides the training observations."""
        nothing = np.isnan(self.observations.c[self.rest]).all(axis=1)
        rest = self.rest[nothing]
        return Extras(
            torch.from_numpy(self.observations.x[rest]),
            torch.from_numpy(self.outcomes[rest]),
            torch.from_numpy(self.noise_variance[rest]),
            self._stack(pending),
            self._runs(),
            self._outcome_range(),
            tuple(self._spread(row) for row in self.rest[~nothing].tolist()),
            torch.from_numpy(self.time[np.concatenate([rest, self.rest[~nothing]])]) if len(self.rest) else NO_TIME,
        )

    def _spread(self, row: int) -> Spread:
        """An outcome of whose context a part is known, over what the rest may be."""
        scale, data = self.scale(), self.observations
        found = complete(data.c[row], *self._lasting_distribution, scale)
        return Spread(
            torch.from_numpy(data.x[row].copy()),
            float(self.outcomes[row]),
            float(self.noise_variance[row]),
            torch.from_numpy(found.contexts),
            torch.from_numpy(found.weights),
            scale.discrete,
        )

    def _runs(self) -> Runs | None:
        """All evaluations that have ended, those with an outcome first; None if none has failed."""
        failed, contexts = self._failed()
        if not len(failed):
            return None
        x = np.concatenate([self.observations.x, failed])
        c = np.concatenate([self.observations.c, contexts])
        # one wild context must not be all that the model of failures sees
        coded = self.scale().encode(c).clip(-1.0, 2.0) if self.uses_context else c[:, :0]
        coded[np.isnan(coded).any(axis=1)] = np.nan  # known in part counts as not known here
        success = torch.arange(len(x)) < len(self.observations)
        return Runs(torch.from_numpy(x), torch.from_numpy(coded), success)

    def _failed(self) -> tuple[Array, Array]:
        """Designs (n × d_x) and contexts (n × d_c, NaN where not known) of the failed evaluations."""
        x = np.array(list(self.state.failed.values())).reshape(-1, self.space.d_x)
        unknown = np.full(self.space.d_c, np.nan)
        known = [self.state.runs[key].context for key in self.state.failed]
        return x, np.array([unknown if c is None else c for c in known]).reshape(len(known), self.space.d_c)

    def _outcome_range(self) -> float:
        """How far outcomes are apart; of outcomes that are all the same, their size."""
        outcomes = self.outcomes[self.kept]
        if not len(outcomes):
            outcomes = np.concatenate([self.units.to_model(runs.y) for runs in self.earlier_runs])
        return float(np.ptp(outcomes)) or float(np.abs(outcomes).max()) or 1.0

    def starts(self) -> Tensor:
        """Designs tried best and last: good places to begin a search."""
        x = self.observations.x
        best = np.argsort(np.where(self.kept, -self.outcomes, np.inf), kind="stable")[:GOOD_STARTS]
        recent = np.arange(max(0, len(x) - RECENT_STARTS), len(x))
        return torch.from_numpy(np.unique(x[np.concatenate([best, recent])], axis=0))

    def _stack(self, designs: list[Array]) -> Tensor:
        return torch.from_numpy(np.stack(designs)) if designs else torch.zeros(0, self.space.d_x, dtype=torch.float64)
