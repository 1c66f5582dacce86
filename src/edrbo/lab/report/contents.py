"""What a report tells: everything is computed here, nothing is drawn."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edrbo.lab import Study
from edrbo.lab.report.diagnostics import MIN_OUTCOMES, ContextShift, context_shift, describe_calibration
from edrbo.optimizer.answers import Prediction
from edrbo.optimizer.calibration import LeaveOneOut, leave_one_out, one_step_ahead, predicted_when_suggested
from edrbo.optimizer.optimizer import Optimizer
from edrbo.optimizer.recommendation import Recommendation
from edrbo.optimizer.training_data import TrainingData
from edrbo.records.context_log import ContextLog
from edrbo.records.goals import Expected
from edrbo.records.outcomes import Units
from edrbo.space import Space, Variable
from edrbo.streams import stream

Array = NDArray[np.float64]

POINTS = 49  # of a curve along a real variable
LEVELS = 40  # values of an integer that are shown
DRAWN = 2_000  # contexts that stand for a long history
MIN_CONTEXTS = 8  # contexts before a shift can be looked for


@dataclass(frozen=True, eq=False)
class Slice:
    """The expected value along one design variable, the others as recommended; ``observed`` (n) are reported values."""

    name: str
    variable: Variable
    values: list[Any]
    posterior: Prediction
    recommended: Any
    observed: list[Any]


@dataclass(frozen=True, eq=False)
class Advice:
    """What to do when ``context`` is known to come."""

    context: dict[str, float]
    recommendation: Recommendation


@dataclass(frozen=True, eq=False)
class Facts:
    study: Study
    optimizer: Optimizer
    recommendation: Recommendation
    slices: list[Slice]
    contexts: Array  # N × d_c in the order of arrival; summaries are drawn from
    recent: int  # how many of them are recent
    shift: ContextShift | None
    calibration: LeaveOneOut | None
    units: Units  # of the model
    advice: Advice | None  # for one context
    made: float  # when this was gathered, in seconds since 1970
    trust: str  # how far the model can be trusted, in words

    @property
    def space(self) -> Space:
        return self.study.space

    @property
    def goal(self) -> str | None:
        """The goal in words; None for the mean, which is shown in any case."""
        return None if self.study.settings.goal == Expected() else self.recommendation.title


def gather(study: Study, context: Mapping[str, Any] | None = None) -> Facts:
    """Everything a report tells about ``study``; an error if nothing was reported yet."""
    recommendation = study.recommend()
    optimizer = study.optimizer
    space = study.space
    contexts = drawn_contexts(optimizer.context_log, space.d_c)
    recent = min(max(len(contexts) // 4, MIN_CONTEXTS // 2), 200)
    shift = None
    known = contexts[~np.isnan(contexts).any(axis=1)]
    if space.d_c and len(known) >= MIN_CONTEXTS:
        shift = _shift(space, known, min(max(len(known) // 4, MIN_CONTEXTS // 2), 200))
    model = optimizer.model
    calibration = None if model is None or len(optimizer) < 2 else leave_one_out(model)
    slices = [_slice(optimizer, recommendation, name) for name in space.design_names]
    units = TrainingData(optimizer.state, True).units
    advice = None if not context else Advice(dict(context), optimizer.recommend(context=dict(context)))
    made = time.time()
    before = predicted_when_suggested(optimizer.state, units)
    if model is not None and len(before.y) < MIN_OUTCOMES:
        before = one_step_ahead(model)  # too few of its suggestions were made by a model
    trust = "" if calibration is None else describe_calibration(calibration, before)
    answers = (recommendation, slices, contexts, recent, shift, calibration, units, advice, made, trust)
    return Facts(study, optimizer, *answers)


def _shift(space: Space, contexts: Array, recent: int) -> ContextShift:
    """How far the last ``recent`` of ``contexts`` (n × d_c) are from those before; of a choice each level counts."""
    scale = space.context_scale(contexts)
    ranges = np.where(scale.upper > scale.lower, scale.upper - scale.lower, 1.0)
    if not any(scale.choices):
        return context_shift(contexts[:-recent], contexts[-recent:], ranges, space.context_names)
    coded, columns, widths, names = scale.encode(contexts), list[Array](), list[float](), list[str]()
    for k, ((name, variable), block) in enumerate(zip(space.context.items(), scale.blocks, strict=True)):
        if variable.width > 1:
            columns += list(coded[:, block].T)
            widths += [1.0] * variable.size
            names += [f"the share of {name} {choice}" for choice in variable.labels() or ()]
        else:
            columns.append(contexts[:, k])
            widths.append(float(ranges[k]))
            names.append(name)
    table = np.stack(columns, axis=1)
    return context_shift(table[:-recent], table[-recent:], np.array(widths), tuple(names))


def drawn_contexts(log: ContextLog, d_c: int) -> Array:
    """The contexts in the order of arrival; a batch with weights gives a sample of its distribution."""
    parts = [np.empty((0, d_c))]
    for k, batch in enumerate(log.batches):
        count = min(batch.count, DRAWN)
        if batch.summary or not np.all(batch.weights == batch.weights[0]) or count < len(batch.rows):
            chosen = stream(0, "report contexts", k).choice(
                len(batch.rows), size=count, p=batch.weights / batch.weights.sum()
            )
            parts.append(batch.rows[chosen])
        else:
            parts.append(batch.rows)
    return np.concatenate(parts)


def _slice(optimizer: Optimizer, recommendation: Recommendation, name: str) -> Slice:
    variable = optimizer.space.design[name]
    values = variable.grid(POINTS if not variable.size else LEVELS)
    posterior = optimizer.predict([{**recommendation.design, name: value} for value in values])
    designs = optimizer.space.decode_designs(optimizer.observations.x)
    return Slice(name, variable, values, posterior, recommendation.design[name], [design[name] for design in designs])
