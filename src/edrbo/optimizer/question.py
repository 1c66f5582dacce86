"""What is known and wanted when an answer is asked for: the law of the context, and the designs to choose from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from edrbo.context.partial import Donors
from edrbo.errors import InvalidContextError, InvalidValueError
from edrbo.optimizer.choice import Choice, read_choice
from edrbo.optimizer.training import Evidence
from edrbo.records.reading import need_contexts, read_one_context
from edrbo.records.state import State
from edrbo.space.tables import close_match

Array = NDArray[np.float64]
# A forecast (n × d_c), or one context (1 × d_c); or contexts that one may be of which a part is known (n × d_c), and
# whose they are.
Law = tuple[Array | None, Array | None] | tuple[Array, None, Donors]


class Wishes(TypedDict, total=False):
    """Keyword arguments of ``recommend``, and with ``repeat`` of ``ask``."""

    forecast: Any
    context: Any
    fixed: Mapping[str, Any] | None
    candidates: Any


class AskWishes(Wishes, total=False):
    repeat: bool | None


@dataclass(frozen=True, eq=False)
class Question:
    law: Law
    choice: Choice
    repeat: bool = True  # whether listed designs may be suggested that were told already

    def taken(self, state: State) -> list[Array]:
        """Designs of a list that are not to be suggested."""
        return [*state.pending.values(), *([] if self.repeat else state.observations.x)]


def read_question(
    state: State,
    *,
    forecast: Any = None,
    context: Any = None,
    fixed: Mapping[str, Any] | None = None,
    candidates: Any = None,
    repeat: bool | None = None,
    **unknown: Any,
) -> Question:
    """``repeat`` is by default as it makes sense: another context may come, the same one tells nothing new."""
    if unknown:
        (name, *_), known = unknown, AskWishes.__annotations__
        raise TypeError(f"unexpected keyword argument {name!r}: {close_match(name, known, f'known are {list(known)}')}")
    if repeat is not None and candidates is None:
        raise InvalidValueError("repeat is for candidates", "give candidates, or leave it out")
    if not isinstance(repeat, bool | None):
        raise InvalidValueError(f"repeat is {repeat!r}", "it is True or False")
    again = bool(state.space.d_c) if repeat is None else repeat
    return Question(read_law(state, forecast, context), read_choice(state.space, fixed, candidates), again)


def read_law(state: State, forecast: Any, context: Any) -> Law:
    """A context of which a part is known is a forecast: those that it may be, given that part."""
    space = state.space
    if forecast is not None and context is not None:
        raise InvalidContextError("both a forecast and a context were given", "give one of them")
    if forecast is not None:
        need_contexts(space)
        rows = space.read_contexts(forecast)
        if not len(rows):
            raise InvalidContextError("the forecast is empty", "give at least one sample, or no forecast")
        return rows, None
    if context is None:
        return None, None
    row = read_one_context(space, context, partial=True)
    if not np.isnan(row).any():
        return None, row[None]
    likely, donors = Evidence(state, uses_context=True).likely(row)
    return likely, None, donors
