"""Everything an optimizer has been told, as one immutable value.

A step makes a new state; an error on the way leaves the old one in place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edrbo.errors import InvalidContextError, UnknownSuggestionError
from edrbo.records.context_log import ContextLog
from edrbo.records.observations import Observations
from edrbo.space import Space

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class State:
    """Suggestions are known by the number they were asked under; designs are coded (d_x)."""

    observations: Observations
    told: Mapping[int, int] = field(default_factory=dict)  # suggestion → row of the observations
    pending: Mapping[int, Array] = field(default_factory=dict)  # suggestion → design
    failed: Mapping[int, Array] = field(default_factory=dict)  # suggestion, or −1, −2, … → design
    log: ContextLog = field(default_factory=ContextLog)
    asked: int = 0

    @classmethod
    def empty(cls, space: Space) -> State:
        return cls(Observations.empty(space.d_x, space.d_c))

    def ask(self, designs: list[Array]) -> State:
        """``designs`` have been handed out."""
        numbered = {self.asked + i: x for i, x in enumerate(designs)}
        return replace(self, pending={**self.pending, **numbered}, asked=self.asked + len(designs))

    def design_of(self, key: int) -> Array:
        """The design of a pending suggestion."""
        if key in self.pending:
            return self.pending[key]
        known = key in self.told or key in self.failed
        raise UnknownSuggestionError(
            f"suggestion {key!r} {'was told already' if known else 'was never asked'}",
            "tell a design of your own as a dict of names and values",
        )

    def tell(self, key: int | None, x: Array, context: Array | None, y: float, noise: float | None) -> State:
        """An outcome of the pending suggestion ``key``, or of a design of the user's own (None)."""
        told = self.told if key is None else {**self.told, key: len(self.observations)}
        observations = self.observations.append(x, context, y, noise)
        return replace(self._without(key), observations=observations, told=told)

    def fail(self, key: int | None, x: Array) -> State:
        """An evaluation gave no outcome."""
        name = -1 - len(self.failed) if key is None else key
        return replace(self._without(key), failed={**self.failed, name: x})

    def tell_context(self, key: int, context: Array) -> State:
        """The context (1 × d_c) of an outcome that was told without one."""
        if key not in self.told:
            raise UnknownSuggestionError(f"suggestion {key!r} has no told value", "tell its value first")
        row, old = self.told[key], self.observations
        if old.complete[row]:
            raise InvalidContextError(f"the context of suggestion {key} is known already")
        contexts = old.c.copy()
        contexts[row] = context[0]
        return replace(self, observations=Observations(old.x, contexts, old.y, old.noise))

    def _without(self, key: int | None) -> State:
        return replace(self, pending={k: x for k, x in self.pending.items() if k != key})

    def to_dict(self) -> dict[str, Any]:
        """JSON types only; None stands for NaN, which JSON does not have."""
        return {
            "x": self.observations.x.tolist(),
            "c": _with_none(self.observations.c),
            "y": self.observations.y.tolist(),
            "noise": _with_none(self.observations.noise),
            "told": [list(item) for item in self.told.items()],
            "pending": [[key, x.tolist()] for key, x in self.pending.items()],
            "failed": [[key, x.tolist()] for key, x in self.failed.items()],
            "contexts": self.log.to_list(),
            "asked": self.asked,
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any], space: Space) -> State:
        """The inverse of ``to_dict``."""
        observations = Observations(
            np.array(record["x"], dtype=np.float64).reshape(-1, space.d_x),
            np.array(record["c"], dtype=np.float64).reshape(-1, space.d_c),
            np.array(record["y"], dtype=np.float64),
            np.array(record["noise"], dtype=np.float64),
        )
        return cls(
            observations,
            dict(record["told"]),
            {key: np.array(x) for key, x in record["pending"]},
            {key: np.array(x) for key, x in record["failed"]},
            ContextLog.from_list(record["contexts"], space.d_c),
            int(record["asked"]),
        )


def _with_none(array: Array) -> Any:
    values = array.astype(object)
    values[np.isnan(array)] = None
    return values.tolist()
