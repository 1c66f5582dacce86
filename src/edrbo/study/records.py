"""The records of a study, and how a state is read back from them.

One Optuna trial per suggestion. What is written once and never changed lives in attributes under names of its own, so
that two processes can never overwrite each other:

    trial   edrbo:owner          who asked, from the moment the number is taken
            edrbo:x              the coded design; the suggestion is handed out from here on
            edrbo:abandoned      nobody waits for this design any more
            edrbo:told:TOKEN     an outcome, valid if the trial was then finished with its value
    study   edrbo:settings       see settings.py
            edrbo:contexts:TOKEN contexts without an outcome, long batches already summarized
            edrbo:late:TOKEN     the context of an outcome told without one
            edrbo:fit            hyper-parameters, so that opening is quick; may be lost at any time

Every event carries a clock: one more than the largest its writer had seen. Events are replayed in the order of (clock,
kind, number, token), so that the state is a function of the set of records and every process reads the same one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from edrbo.errors import StudyError
from edrbo.records.context_log import ContextBatch, ContextLog
from edrbo.records.observations import Observations
from edrbo.records.state import State
from edrbo.space import Categorical, Integer, Space, Variable

Array = NDArray[np.float64]
Order = tuple[int, int, int, str]

SETTINGS, FIT = "edrbo:settings", "edrbo:fit"
OWNER, DESIGN, ABANDONED, TOLD = "edrbo:owner", "edrbo:x", "edrbo:abandoned", "edrbo:told:"
CONTEXTS, LATE = "edrbo:contexts:", "edrbo:late:"


@dataclass(frozen=True, eq=False)
class Told:
    """The outcome of trial ``number``; a ``value`` of None is a failure."""

    order: Order
    number: int
    x: Array
    context: Array | None  # 1 × d_c
    value: float | None
    noise: float | None


@dataclass(frozen=True, eq=False)
class Seen:
    """Contexts without an outcome."""

    order: Order
    batch: ContextBatch


@dataclass(frozen=True, eq=False)
class Late:
    """The context (1 × d_c) of an outcome told without one."""

    order: Order
    number: int
    context: Array


Event = Told | Seen | Late


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A study as read: ``open`` are numbers that were taken and wait for their design, with their owners."""

    state: State
    events: tuple[Event, ...]
    open: Mapping[int, Mapping[str, Any]]
    clock: int


def read(space: Space, trials: Iterable[FrozenTrial], attributes: Mapping[str, Any]) -> Snapshot:
    """The snapshot of a study from all its trials, in the order of their numbers, and its attributes."""
    try:
        events, pending, waiting, asked = _events_of_study(space, attributes), {}, {}, 0
        for trial in trials:
            asked = trial.number + 1
            attrs = trial.system_attrs
            if DESIGN in attrs:
                x = np.array(attrs[DESIGN], dtype=np.float64)
                if trial.state.is_finished():
                    events.append(_told(trial, x))
                else:
                    pending[trial.number] = x
            elif OWNER in attrs and ABANDONED not in attrs:
                waiting[trial.number] = attrs[OWNER]
        events.sort(key=lambda event: event.order)
        clock = max((event.order[0] for event in events), default=0)
        return Snapshot(replay(space, events, pending, asked), tuple(events), waiting, clock)
    except (KeyError, TypeError, ValueError, IndexError):
        raise StudyError("a record of the study cannot be read", "was it changed by another program?") from None


def replay(space: Space, events: Iterable[Event], pending: Mapping[int, Array], asked: int) -> State:
    """The state after ``events``, as an ``Optimizer`` that lived through them would hold it."""
    told: dict[int, int] = {}
    failed: dict[int, Array] = {}
    rows: list[Told] = []
    contexts: list[Array] = []
    batches: list[ContextBatch] = []
    unknown = np.full((1, space.d_c), np.nan)
    for event in events:
        if isinstance(event, Seen):
            batches.append(event.batch)
            continue
        if isinstance(event, Told) and event.value is not None:
            told[event.number] = len(rows)
            rows.append(event)
            contexts.append(unknown if event.context is None else event.context)
        elif isinstance(event, Told):
            failed[event.number] = event.x
        elif event.number in told and np.isnan(contexts[told[event.number]]).any():
            contexts[told[event.number]] = event.context
        else:  # a second context for the same outcome lost the race
            continue
        if event.context is not None:
            batches.append(ContextBatch(event.context, np.ones(1), 1))
    observations = Observations(
        np.array([row.x for row in rows]).reshape(-1, space.d_x),
        np.concatenate([np.empty((0, space.d_c)), *contexts]),
        np.array([row.value for row in rows], dtype=np.float64),
        np.array([np.nan if row.noise is None else row.noise for row in rows]),
    )
    return State(observations, told, dict(pending), failed, ContextLog(tuple(batches)), asked)


def _events_of_study(space: Space, attributes: Mapping[str, Any]) -> list[Event]:
    events: list[Event] = []
    for key, record in attributes.items():
        if key.startswith(CONTEXTS):
            (batch,) = ContextLog.from_list([record["batch"]], space.d_c).batches
            events.append(Seen((record["clock"], 1, 0, key), batch))
        elif key.startswith(LATE):
            number = int(record["number"])
            events.append(Late((record["clock"], 2, number, key), number, _context(record["context"])))
    return events


def _told(trial: FrozenTrial, x: Array) -> Told:
    value = trial.value if trial.state == TrialState.COMPLETE else None
    claims = [
        Told(
            (record["clock"], 0, trial.number, key),
            trial.number,
            x,
            None if record["context"] is None else _context(record["context"]),
            value,
            record["noise"],
        )
        for key, record in trial.system_attrs.items()
        if key.startswith(TOLD) and record["value"] == value
    ]
    # A trial finished by another program, say by hand in optuna-dashboard, has an outcome but no record of ours.
    other = Told((0, 0, trial.number, ""), trial.number, x, None, value, None)
    return min(claims, key=lambda claim: claim.order, default=other)


def _context(values: Any) -> Array:
    return np.array([values], dtype=np.float64)


def told_record(clock: int, context: Array | None, value: float | None, noise: float | None) -> dict[str, Any]:
    row = None if context is None else context[0].tolist()
    return {"clock": clock, "context": row, "value": value, "noise": noise}


def distribution(variable: Variable) -> BaseDistribution:
    """The same variable in Optuna's words, for optuna-dashboard to show."""
    if isinstance(variable, Categorical):
        return CategoricalDistribution(variable.choices)
    if isinstance(variable, Integer):
        return IntDistribution(variable.lower, variable.upper, log=variable.log)
    lower, upper = variable.bounds()
    return FloatDistribution(lower, upper, log=variable.log)
