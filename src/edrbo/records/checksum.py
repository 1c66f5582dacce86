"""A checksum of what a record says, so that damage is seen and not taken for data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

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
