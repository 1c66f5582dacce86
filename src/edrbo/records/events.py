"""Everything that can happen to an experiment, as values. ``State.apply`` checks an event and gives the next state.

    Asked          a design was handed out, or began to be evaluated
    Reported           an outcome, of a run that was asked for or of a design of the user's own
    Failed         an evaluation gave no outcome
    ContextTold    the context of an outcome that was reported without one
    Seen           contexts without an outcome
    Cancelled      a suggestion that will not be run
    Corrected      a run's value, noise, context, cost or design was other than was reported
    Dropped        a run is not to be learned from; Restored takes that back
    Noted          words about a run, or about the study
    Undone         an earlier event is taken back
    Amended        the settings have changed

Designs are coded (d_x) and contexts are in the user's units (d_c), both of the space as it was after ``version``
amendments.
``to_dict`` gives JSON types, ``from_dict`` the event again; what a field may hold is checked by the state alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from edrbo.errors import InvalidEventError

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Event:
    """``ref`` names the event among all others; ``by`` whom and ``at`` what time (seconds since 1970), if known.

    ``key`` is the writer's own name for it: who sends it again, not knowing whether it arrived, looks for its key.
    """

    ref: str = ""
    by: str | None = None
    at: float | None = None
    note: str | None = None
    key: str | None = None

    kind: ClassVar[str]

    def to_dict(self) -> dict[str, Any]:
        """The event in JSON types, without what is not known."""
        parts = {part.name: _plain(getattr(self, part.name)) for part in fields(self)}
        return {"kind": self.kind, **{name: value for name, value in parts.items() if value not in (None, "")}}


@dataclass(frozen=True, eq=False, kw_only=True)
class Asked(Event):
    kind = "asked"
    id: int
    x: Array
    outcome_forecast: Mapping[str, Any] | None = None  # what was believed of the outcome
    cost: float | None = None  # what its run was believed to cost
    context: Array | None = None  # that was said to come, NaN: not known
    version: int = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class Reported(Event):
    """``x`` is needed for a run that was not asked for; for one that was, it is what was really set."""

    kind = "reported"
    id: int
    value: float | None = None  # of several outcomes the main one; None if it was not measured
    control: float | None = None  # what a reference run gave in the same context; ``value`` counts relative to it
    x: Array | None = None
    context: Array | None = None  # NaN: not known
    noise_variance: float | None = None  # a variance
    others: Mapping[str, float] | None = None  # outcomes besides the main one, by name
    others_noise_variance: Mapping[str, float] | None = None
    contexts: Array | None = None  # of several rows, n × d_c; ``value`` then is their mean, for people
    values: Array | None = None  # n, NaN where not measured
    noise_variances: Array | None = None  # n, NaN where not known
    others_values: Mapping[str, Sequence[float | None]] | None = None  # rows of outcomes besides the main one, and …
    others_noise_variances: Mapping[str, Sequence[float | None]] | None = None  # … their variances, by name, n each
    cost: float | None = None  # what the run cost
    version: int = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class Failed(Event):
    kind = "failed"
    id: int
    x: Array | None = None
    context: Array | None = None
    cost: float | None = None
    why: str | None = None
    version: int = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class ContextReported(Event):
    kind = "context"
    id: int
    context: Array
    version: int = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class Seen(Event):
    """``rows`` n × d_c, ``weights`` n. A ``summary`` stands for ``count`` contexts and has aged already."""

    kind = "seen"
    rows: Array
    weights: Array
    count: int
    summary: bool = False
    version: int = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class Cancelled(Event):
    kind = "cancelled"
    id: int
    why: str | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Corrected(Event):
    """What is None stays as it was, and of a context what is NaN; ``row`` says which of several rows it is."""

    kind = "corrected"
    id: int
    value: float | None = None
    control: float | None = None
    noise_variance: float | None = None
    context: Array | None = None
    x: Array | None = None
    others: Mapping[str, float] | None = None
    others_noise_variance: Mapping[str, float] | None = None
    row: int | None = None
    cost: float | None = None
    why: str | None = None
    version: int = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class Dropped(Event):
    kind = "dropped"
    id: int
    why: str | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Restored(Event):
    kind = "restored"
    id: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Noted(Event):
    kind = "noted"
    id: int | None = None  # None: about the study


@dataclass(frozen=True, eq=False, kw_only=True)
class Undone(Event):
    kind = "undone"
    of: str  # the ``ref`` of what is taken back


@dataclass(frozen=True, eq=False, kw_only=True)
class Amended(Event):
    """``settings`` are new values by name, as ``Settings.to_dict`` writes them; ``defaults`` what older runs had."""

    kind = "amended"
    settings: Mapping[str, Any]
    defaults: Mapping[str, Any] = field(default_factory=dict)


KINDS: dict[str, type[Event]] = {
    event.kind: event
    for event in (
        *(Asked, Reported, Failed, ContextReported, Seen),
        *(Cancelled, Corrected, Dropped, Restored, Noted, Undone, Amended),
    )
}
# Dimensions of the fields that are arrays, and those of which some numbers may not be known.
_ARRAYS = {"x": 1, "context": 1, "rows": 2, "weights": 1, "contexts": 2, "values": 1, "noise_variances": 1}
_PARTLY = ("context", "rows", "contexts", "values", "noise_variances")


def from_dict(record: Any) -> Event:
    """The inverse of ``Event.to_dict``; InvalidEventError for what is no event."""
    if not isinstance(record, Mapping) or not isinstance(record.get("kind"), str):
        raise InvalidEventError("this is not an event", "an event is an object with a kind")
    if record["kind"] not in KINDS:
        raise InvalidEventError(f"an event of kind {record['kind']!r} is not known", "upgrade edrbo to read it")
    kind = KINDS[record["kind"]]
    # What is not known is left out when an event is written.
    given = {name: value for name, value in record.items() if name != "kind" and value is not None}
    known = {part.name for part in fields(kind)}
    unknown = [name for name in given if name not in known]
    if unknown:
        raise InvalidEventError(f"an event {kind.kind!r} has no {unknown[0]!r}", "upgrade edrbo to read it")
    for name, dimensions in _ARRAYS.items():
        if name in given:
            given[name] = _array(name, _with_nan(given[name]) if name in _PARTLY else given[name], dimensions)
    try:
        if kind is Reported and not given.keys() & {"value", "others"}:
            raise TypeError("a tell without any outcome")
        return kind(**given)
    except TypeError:
        missing = [p.name for p in fields(kind) if p.name not in given]
        raise InvalidEventError(f"an event {kind.kind!r} lacks one of {missing}", None) from None


def _with_nan(values: Any) -> Any:
    """Lists with NaN for None."""
    if isinstance(values, list):
        return [_with_nan(part) for part in values]
    return np.nan if values is None else values


def _without_nan(values: Any) -> Any:
    """The inverse: JSON has no NaN."""
    if isinstance(values, list):
        return [_without_nan(part) for part in values]
    return None if values != values else values


def _array(name: str, values: Any, dimensions: int) -> Array:
    """Numbers; text and booleans are none."""
    try:
        array = np.array(values)
    except (TypeError, ValueError, OverflowError):
        array = np.array("ragged")
    if array.size and array.dtype.kind not in "iuf":
        raise InvalidEventError(f"the field {name!r} of an event is not made of numbers", None)
    array = array.astype(np.float64)
    if dimensions == 2 and array.size == 0:
        array = array.reshape(len(array), -1) if array.ndim == 2 else array.reshape(0, 0)
    if array.ndim != dimensions:
        raise InvalidEventError(f"the field {name!r} of an event has shape {array.shape}", None)
    return array


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return _without_nan(value.tolist()) if np.isnan(value).any() else value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    return dict(value) if isinstance(value, Mapping) else value
