"""Reading of arguments: ids, designs and contexts as users give them; a misspelled argument is named with the one
meant.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from edrbo.errors import ConstraintWarning, InvalidContextError, InvalidDesignError, InvalidEventError
from edrbo.records.run import Suggestion
from edrbo.records.state import State
from edrbo.records.validation import read_id
from edrbo.space import Space
from edrbo.space.point_tables import close_match

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")


ELSEWHERE = {  # what other libraries call an argument, and what it is called here
    **dict.fromkeys(("n_trials", "n_calls", "n_iter", "iterations", "budget", "max_evals", "trials"), "evaluations"),
    **dict.fromkeys(("random_state", "rng"), "seed"),
    **dict.fromkeys(("n_startup_trials", "n_initial_points", "init_points"), "initial"),
    **dict.fromkeys(("algorithm", "sampler", "acquisition", "strategy"), "method"),
    **dict.fromkeys(("objective", "func", "function"), "f"),
    **dict.fromkeys(("bounds", "search_space", "dimensions"), "space"),
    **dict.fromkeys(("batch_size", "q", "n_points", "num_points", "count"), "n"),
    "n_jobs": "workers",
    "risk_measure": "goal",
}


def spell_checked(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
    """A function whose TypeError for an argument that it does not have says which one is spelled alike."""
    names = [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]
    title = function.__qualname__.removesuffix(".__init__")

    @wraps(function)
    def checked(*arguments: Arguments.args, **named: Arguments.kwargs) -> Returned:
        for name in named:
            if name not in names:
                meant = ELSEWHERE.get(name)
                hint = f"did you mean {meant!r}?" if meant in names else ""
                hint = hint or close_match(name, names, f"its arguments are {', '.join(names)}")
                raise TypeError(f"{title}() has no argument {name!r} (hint: {hint})")
        return function(*arguments, **named)

    return checked


Array = NDArray[np.float64]
Reported = Suggestion | Mapping[str, Any] | int  # a suggestion, a design of one's own, or the number of a run


def pending_of(state: State) -> list[Suggestion]:
    """Asked and not yet reported."""
    runs = [state.runs[key] for key in state.pending]
    return [
        Suggestion(run.id, state.space.decode_designs(run.x)[0], run.outcome_forecast, run.cost_expected)
        for run in runs
    ]


def number_of(run: Any) -> int:
    """The id of a suggestion, or a number itself."""
    if isinstance(run, Mapping) and not isinstance(run, Suggestion):
        raise InvalidEventError("a design does not name a run", "give a Suggestion or its id")
    return run.id if isinstance(run, Suggestion) else read_id(run)


def need_contexts(space: Space) -> None:
    if not space.d_c:
        raise InvalidContextError("this space has no context variables", "name them in Space(context=...)")


def read_one_context(space: Space, context: Any, *, partial: bool = False) -> Array:
    """The context (d_c) of one evaluation as a user gives it; with ``partial`` some of it may not be known."""
    need_contexts(space)
    named = isinstance(context, Mapping) or hasattr(context, "to_numpy")  # of pandas a row, or a frame of one
    rows = space.read_contexts(context if named else [context], partial=partial)
    if len(rows) != 1:
        raise InvalidContextError(f"{len(rows)} contexts for one evaluation", "an evaluation has one context")
    row: Array = rows[0]
    return row


def read_one_design(space: Space, design: Mapping[str, Any]) -> Array:
    """One design (d_x), coded."""
    rows = space.encode_designs(dict(design))
    if len(rows) != 1:
        raise InvalidDesignError(f"{len(rows)} designs for one evaluation", "tell them one by one")
    x: Array = rows[0]
    if space.region is not None and (broken := space.region.broken(x)):
        words = ", ".join(repr(constraint.describe()) for constraint in broken)
        warnings.warn(f"this design breaks {words}; it is kept as it was run", ConstraintWarning, stacklevel=2)
    return x


def identify(state: State, suggestion: Reported) -> tuple[int, Array | None]:
    if isinstance(suggestion, Mapping) and not isinstance(suggestion, Suggestion):
        return state.next_id, read_one_design(state.space, suggestion)
    return number_of(suggestion), None


def really_set(state: State, key: int, x: Array | None, design: Mapping[str, Any]) -> Array:
    """The design (d_x) of run ``key``, or ``x``, with the variables of ``design`` in place of its own."""
    base = state.runs[key].x if x is None and key in state.runs else x
    values = {} if base is None else state.space.decode_designs(base)[0]
    return read_one_design(state.space, {**values, **design})


def read_some_context(space: Space, context: Any) -> Array | None:
    """What is known of a context (d_c), NaN elsewhere; None if that is nothing."""
    if context is None or (space.d_c and isinstance(context, Mapping) and _is_nothing(context, space)):
        return None
    return read_one_context(space, context, partial=True)


def _is_nothing(context: Mapping[str, Any], space: Space) -> bool:
    return set(context) <= set(space.context_names) and all(value is None for value in context.values())
