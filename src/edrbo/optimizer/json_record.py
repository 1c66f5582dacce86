"""An optimizer as JSON text: its settings, its events, its last fit, and a checksum, so that damage is not taken for
data.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from edrbo.acquisition.methods import get_method
from edrbo.errors import EdrboError, InvalidValueError
from edrbo.optimizer.outcome_model import StoredFit
from edrbo.records.events import from_dict
from edrbo.records.settings import Settings
from edrbo.records.state import State

NAME = "sum"  # the key under which a record holds its own


def checksum(record: Mapping[str, Any]) -> str:
    """Of all of ``record`` but its own checksum, whatever the order of its keys."""
    text = json.dumps({key: value for key, value in record.items() if key != NAME}, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def signed(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record with its checksum."""
    return {**record, NAME: checksum(record)}


def is_sound(record: Mapping[str, Any]) -> bool:
    """Whether it says what was written."""
    return NAME in record and bool(record[NAME] == checksum(record))


FORMAT = 1  # version of the record

_BROKEN = (EdrboError, KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, RecursionError)


def write(state: State, fit: StoredFit | None) -> str:
    """``read`` gives both back."""
    first = state.amendments[0].before if state.amendments else state.settings
    record = {
        "format": FORMAT,
        "settings": first.to_dict(),
        "events": [event.to_dict() for event in state.history],
        "fit": None if fit is None else fit.to_dict(),
    }
    return json.dumps(signed(record), allow_nan=False)


def read(text: str) -> tuple[State, StoredFit | None]:
    """The inverse of ``write``; InvalidValueError for anything else."""
    record = _parse(text)
    try:
        if not is_sound(record):
            raise InvalidValueError("its checksum is wrong, so it was damaged or changed")
        state = State.start(Settings.from_dict(record["settings"]))
        state = state.apply(*map(from_dict, record["events"]))
        fit = StoredFit.from_dict(record["fit"])
        if fit is not None and not fit.suits(get_method(state.settings.method), state.space):
            raise InvalidValueError("the stored fit is that of another model")
        return state, fit
    except _BROKEN as problem:
        words = problem.message if isinstance(problem, EdrboError) else "a part of it is missing or of the wrong kind"
        raise InvalidValueError(
            f"this is not an optimizer stored by to_json: {words}", "was it changed by hand?"
        ) from None


def _parse(text: Any) -> Any:
    try:
        record = json.loads(text)
        version = record["format"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise InvalidValueError("this is not an optimizer stored by to_json") from None
    if version != FORMAT:
        raise InvalidValueError(f"this optimizer was stored in format {version!r}", "upgrade edrbo")
    return record
