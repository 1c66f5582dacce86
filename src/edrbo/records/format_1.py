"""Optimizers stored by version 0.1, whose JSON held tables instead of events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edrbo.records import events as e

Array = NDArray[np.float64]


def events_of(record: Mapping[str, Any]) -> tuple[list[e.Event], int]:
    """The events that lead to the stored tables, and how many suggestions had been asked for.

    The tables do not say how contexts and outcomes followed each other, but the order of each of the two is kept, which
    is all that a state depends on. Raises KeyError, TypeError, ValueError or IndexError for what is no such record.
    """
    asked, count = int(record["asked"]), len(record["y"])
    told = {int(row): int(key) for key, row in record["told"]}
    own = iter(range(asked, asked + 2 * count + 2 * len(record["failed"])))
    ids = [told[row] if row in told else next(own) for row in range(count)]
    if len(told) > count or any(not 0 <= row < count for row in told):
        raise ValueError("a told row does not exist")
    found: list[e.Event] = [e.Asked(id=int(key), x=np.array(x, dtype=np.float64)) for key, x in record["pending"]]
    for key, x in record["failed"]:
        found.append(e.Failed(id=int(key) if int(key) >= 0 else next(own), x=np.array(x, dtype=np.float64)))
    found += _outcomes(record, ids)
    return [_named(event, index) for index, event in enumerate(found)], asked


def _outcomes(record: Mapping[str, Any], ids: list[int]) -> list[e.Event]:
    """Outcomes and contexts, merged so that each comes in its own order."""
    contexts = [_context(row) for row in record["c"]]
    batches = record["contexts"]
    owner = _owners(contexts, batches)
    found: list[e.Event] = []
    written = 0

    def tell(upto: int, context_of: int | None) -> None:
        nonlocal written
        while written < upto:
            context = contexts[written] if written == context_of else None
            found.append(
                e.Told(
                    id=ids[written],
                    x=np.array(record["x"][written], dtype=np.float64),
                    context=context,
                    value=record["y"][written],
                    noise=record["noise"][written],
                )
            )
            written += 1

    for index, batch in enumerate(batches):
        row = owner.get(index)
        if row is None:
            rows = np.array(batch["rows"], dtype=np.float64)
            weights = np.array(batch["weights"], dtype=np.float64)
            found.append(e.Seen(rows=rows, weights=weights, count=batch["count"], summary=batch["summary"]))
        elif row >= written:
            tell(row + 1, row)
        else:
            context = contexts[row]
            assert context is not None
            found.append(e.ContextTold(id=ids[row], context=context))
    tell(len(ids), None)
    return found


def _context(row: list[Any]) -> Array | None:
    known = [value is not None for value in row]
    if any(known) and not all(known):
        raise ValueError("a context is known only in part")
    return np.array(row, dtype=np.float64) if row and all(known) else None


def _owners(contexts: list[Array | None], batches: list[Mapping[str, Any]]) -> dict[int, int]:
    """Which outcome each batch of one context belongs to: index of the batch → row."""
    free = [row for row, context in enumerate(contexts) if context is not None]
    owner: dict[int, int] = {}
    for index, batch in enumerate(batches):
        if len(batch["rows"]) != 1 or batch["summary"] or batch["weights"] != [1.0]:
            continue
        context = np.array(batch["rows"][0], dtype=np.float64)
        row = next((row for row in free if np.array_equal(contexts[row], context)), None)  # type: ignore[arg-type]
        if row is not None:
            free.remove(row)
            owner[index] = row
    if free:
        raise ValueError("a context was never seen")
    return owner


def _named(event: e.Event, index: int) -> e.Event:
    from dataclasses import replace

    return replace(event, ref=str(index))
