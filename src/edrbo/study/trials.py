"""The records of a study, and how its events are read back from them.

One Optuna trial per suggestion. What is written once and never changed lives in attributes under names of its own, so
that two processes can never overwrite each other:

    trial   edrbo:owner          who asked, from the moment the number is taken
            edrbo:x              the design; the suggestion is handed out from here on
            edrbo:alive          a sign of life of its owner, renewed while it computes
            edrbo:abandoned      nobody waits for this design any more
            edrbo:told:TOKEN     a claim: an outcome, a failure or a cancellation; it holds if the trial then ended so
    study   edrbo:settings       see records/settings.py
            edrbo:event:TOKEN    an event that does not end a trial
            edrbo:won:NUMBER     the claim that ended a trial, where several wanted to at once
            edrbo:fit            hyper-parameters, so that opening is quick; may be lost at any time

Version 0.1 wrote edrbo:contexts:TOKEN and edrbo:late:TOKEN for what are events now, and records without a checksum.

Every event carries a clock: one more than the largest its writer had seen. Events are applied in the order of (clock,
kind, number, token), so that the state is a function of the set of records and every process reads the same one. A
record that cannot be read is set aside, and the rest goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from edrbo.errors import EdrboError, InvalidEventError
from edrbo.records import events as e
from edrbo.records.checksum import is_sound, signed
from edrbo.space import Categorical, Integer, Variable

Array = NDArray[np.float64]
Order = tuple[int, int, int, str]

SETTINGS, FIT = "edrbo:settings", "edrbo:fit"
OWNER, DESIGN, ABANDONED, TOLD = "edrbo:owner", "edrbo:x", "edrbo:abandoned", "edrbo:told:"
ALIVE = "edrbo:alive"
EVENT, WON = "edrbo:event:", "edrbo:won:"
CONTEXTS, LATE = "edrbo:contexts:", "edrbo:late:"  # of version 0.1
RANKS = {"asked": -1, "told": 0, "failed": 0, "cancelled": 0, "seen": 1, "context": 2}  # events of one clock


@dataclass(frozen=True)
class Problem:
    """A record that was set aside: where it stands and what is wrong; ``ref`` is its name, as of an event."""

    where: str
    why: str
    ref: str = ""

    def __str__(self) -> str:
        return f"{self.where}: {self.why}"


@dataclass(frozen=True, eq=False)
class Placed:
    """An event with its place among all of the study."""

    order: Order
    event: e.Event


Found = Placed | Problem


# -------------------------------------------------------------------- writing


def record_of(event: e.Event, clock: int, *, own: bool = False) -> dict[str, Any]:
    """An event as it is stored, with its clock and a checksum of both.

    Of a design of the user's ``own`` the storage gives the number, when the record is written.
    """
    left_out = ("ref", "id") if own else ("ref",)
    record = {"clock": clock, "event": {key: part for key, part in event.to_dict().items() if key not in left_out}}
    return signed(record)


# -------------------------------------------------------------------- reading


def events_of_trial(trial: FrozenTrial, won: str | None) -> Iterator[Found]:
    """What a trial says: that its design was handed out, and how it ended; ``won`` names the claim that ended it."""
    attributes, number = trial.system_attrs, trial.number
    if DESIGN not in attributes:
        return
    ended = trial.state.is_finished()
    record, where = attributes[DESIGN], f"suggestion {number}"
    if isinstance(record, list):  # version 0.1: the design alone
        record = {"clock": 0, "event": {"kind": "asked", "id": number, "x": record}}
    asked = _read(record, DESIGN, number, where)
    if isinstance(asked, Problem):
        yield asked
        return
    own = isinstance(asked.event, e.Told | e.Failed)  # a design of the user's own comes with its outcome
    if own and not ended:
        yield Problem(where, "it has an outcome and has not ended", asked.event.ref)
        return
    yield _timed(asked, trial)
    if ended and not own:
        yield from _end(trial, won, asked.order[0])


def _end(trial: FrozenTrial, won: str | None, asked_at: int) -> Iterator[Found]:
    number = trial.number
    value = trial.value if trial.state == TrialState.COMPLETE else None
    claims: list[Placed] = []
    problems: list[Problem] = []
    others: list[Problem] = []  # of claims that came too late, unless there is no other
    for key, record in trial.system_attrs.items():
        if not key.startswith(TOLD):
            continue
        where = f"the outcome of suggestion {number}"
        if isinstance(record, Mapping) and "event" not in record:
            record = _old_claim(record, number)
        found = _read(record, key, number, where)
        if isinstance(found, Problem):
            problems.append(found)
        elif getattr(found.event, "value", None) == value:
            claims.append(found)
        else:
            others.append(Problem(f"{where} ({key})", f"it says another value than the trial: {value!r}", key))
    named = [claim for claim in claims if claim.event.ref == won]
    best = min(named or claims, key=lambda claim: claim.order, default=None)
    if best is not None:
        yield _timed(best, trial)
        return
    yield from problems or others
    if not problems and not others:  # ended by another program, say by hand in optuna-dashboard
        at = None if trial.datetime_complete is None else trial.datetime_complete.timestamp()
        stamp: dict[str, Any] = {"id": number, "ref": f"trial:{number}", "at": at}
        ended = e.Failed(**stamp) if value is None else e.Told(value=value, **stamp)
        yield Placed((asked_at, 0, number, ""), ended)


def _timed(placed: Placed, trial: FrozenTrial) -> Placed:
    """With Optuna's own time where the record has none: version 0.1 wrote none."""
    moment = trial.datetime_start if isinstance(placed.event, e.Asked) else trial.datetime_complete
    if placed.event.at is not None or moment is None:
        return placed
    return replace(placed, event=replace(placed.event, at=moment.timestamp()))


def _old_claim(record: Mapping[str, Any], number: int) -> Any:
    """A claim of version 0.1 as one of today."""
    value = record.get("value")
    body = {"kind": "failed" if value is None else "told", "id": number, "context": record.get("context")}
    if value is not None:
        body |= {"value": value, "noise": record.get("noise")}
    return {"clock": record.get("clock"), "event": {k: v for k, v in body.items() if v is not None}}


def event_of_attribute(key: str, record: Any) -> Found | None:
    """What an attribute of the study says; None if it is no event."""
    if key.startswith(EVENT):
        return _read(record, key, 0, "an event")
    if not key.startswith((CONTEXTS, LATE)):
        return None
    try:
        if key.startswith(CONTEXTS):
            body = {"kind": "seen", **record["batch"]}
        else:
            body = {"kind": "context", "id": record["number"], "context": record["context"]}
        return _read({"clock": record["clock"], "event": body}, key, 0, "an event")
    except (KeyError, TypeError):
        return Problem(f"an event ({key})", "the record is not understood", key)


def _read(record: Any, key: str, number: int, where: str) -> Found:
    ref = f"{key}:{number}" if key == DESIGN else key
    try:
        if not is_sound(record):
            raise InvalidEventError("its checksum is wrong: it was damaged")
        clock, body = record["clock"], record["event"]
        event = e.from_dict({"id": number, **body} if key == DESIGN else body)
        if isinstance(clock, bool) or not isinstance(clock, int) or clock < 0:
            raise InvalidEventError(f"its clock is {clock!r}")
    except EdrboError as problem:
        return Problem(f"{where} ({key})", problem.message, ref)
    except (KeyError, TypeError, ValueError):
        return Problem(f"{where} ({key})", "the record is not understood", ref)
    place = getattr(event, "id", number)
    if key.startswith((DESIGN, TOLD)) and place != number:
        return Problem(f"{where} ({key})", f"it belongs to suggestion {place!r}", ref)
    order = (clock, RANKS.get(event.kind, 3), place if isinstance(place, int) else 0, key)
    return Placed(order, replace(event, ref=ref))


def distribution(variable: Variable) -> BaseDistribution:
    """The same variable in Optuna's words, for optuna-dashboard to show."""
    if isinstance(variable, Categorical):
        return CategoricalDistribution(variable.choices)
    if isinstance(variable, Integer):
        return IntDistribution(variable.lower, variable.upper, log=variable.log)
    lower, upper = variable.limits()
    return FloatDistribution(lower, upper, log=variable.log)
