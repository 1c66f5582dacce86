"""Runs as a pandas data frame, and a data frame as runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edrbo.errors import InvalidValueError, MissingExtraError
from edrbo.records import events as e
from edrbo.records.run import Run
from edrbo.records.settings import Settings
from edrbo.records.state import State, spending
from edrbo.space import Space
from edrbo.space.point_tables import close_match

if TYPE_CHECKING:
    from pandas import DataFrame

OURS = ("status", "value", "control", "noise_variance", "run_cost", "dropped", "why")
Columns = Mapping[str, NDArray[Any]]


def frame_of(state: State) -> DataFrame:
    """One row a run, or all of its rows, also of those that failed, wait or are left out; the index is its number.

    A variable that is called as one of our columns stands under design:NAME or context:NAME.
    """
    try:
        from pandas import DataFrame, Index
    except ImportError:
        raise MissingExtraError("data frames need pandas", "pip install 'edrbo[pandas]'") from None
    heads = _heads(state.space)
    rows = {run.id: list(_rows(state, run, heads)) for run in state.runs.values()}
    numbers = [key for key, own in rows.items() for _ in own]
    others = other_columns(state.settings, OURS)
    spent = spending(state)
    costs, costly = ({}, []) if spent is None else (spent.costs, ["run_cost"])
    controlled = ["control"] * any(run.control is not None for run in state.runs.values())
    columns = ["status", *heads.values(), "value", *controlled, *others, "noise_variance", *costly, "dropped", "why"]
    cells = [{**row, **dict.fromkeys(costly, costs.get(key))} for key, own in rows.items() for row in own]
    return DataFrame(cells, columns=columns, index=Index(numbers, name="run"))


def _heads(space: Space) -> dict[tuple[str, str], str]:
    """The column of each variable, by role and name."""
    roles = [("design", name) for name in space.design_names] + [("context", name) for name in space.context_names]
    return {(role, name): f"{role}:{name}" if name in OURS else name for role, name in roles}


def _rows(state: State, run: Run, heads: dict[tuple[str, str], str]) -> Iterator[dict[str, Any]]:
    row = _row(state, run, heads)
    if run.series is None:
        yield row
        return
    named, others = state.space.name_contexts(run.series.contexts), other_columns(state.settings, OURS)
    for context, reported in zip(named, run.series.rows(), strict=True):
        met: dict[str, Any] = {heads["context", name]: part for name, part in context.items()}
        met |= {head: reported.get(name, (None,))[0] for head, name in others.items()}
        value, noise_variance = reported.get("", (None, None))
        yield {
            **row,
            **met,
            "value": value,
            "noise_variance": None if noise_variance != noise_variance else noise_variance,
        }


def other_columns(settings: Settings, taken: Collection[str]) -> dict[str, str]:
    """Column → name of every outcome besides the main one, which is ``value``; outcome:NAME where that is taken."""
    others = [] if settings.outcomes is None else settings.outcomes.others
    return {(f"outcome:{name}" if name in taken else name): name for name in others}


def _row(state: State, run: Run, heads: dict[tuple[str, str], str]) -> dict[str, Any]:
    space = state.space
    row: dict[str, Any] = {heads["design", name]: part for name, part in space.decode_designs(run.x)[0].items()}
    if run.context is not None:
        row |= {heads["context", name]: part for name, part in space.name_contexts(run.context[None])[0].items()}
    row |= {head: run.others.get(name) for head, name in other_columns(state.settings, OURS).items()}
    return {
        **row,
        "status": run.status,
        "value": run.value,
        **({} if run.control is None else {"control": run.control}),
        "noise_variance": run.noise_variance,
        "dropped": run.dropped,
        "why": run.why,
    }


# -------------------------------------------------------------------- and back


def columns_of_frame(given: Any) -> Columns | None:
    """The columns of a data frame, or of one of its rows; None for anything else."""
    if hasattr(given, "columns") and hasattr(given, "to_numpy"):
        if not given.index.is_unique:
            hint = "rows of one run are reported by tell(design, contexts=…, values=…)"
            raise InvalidValueError("the index of the data frame names a run twice", hint)
        return {str(name): given[name].to_numpy() for name in given.columns}
    if hasattr(given, "index") and hasattr(given, "to_numpy") and all(isinstance(name, str) for name in given.index):
        return {name: np.array([part], dtype=object) for name, part in zip(given.index, given.to_numpy(), strict=True)}
    return None


def reported_by_frame(state: State, columns: Columns, stamp: Mapping[str, Any]) -> list[e.Event]:
    """An event for each row: a design of the user's own, what it met, and its outcome.

    Columns are named as ``frame_of`` names them, outcomes also by their own names. A row without an outcome failed; a
    context that is missing is not known.
    """
    space, settings = state.space, state.settings
    heads, mains = _heads(space), ("value", settings.outcome)
    others = other_columns(settings, OURS)
    known = [*heads.values(), *OURS, *mains, *others, "cost"]
    for name in columns:
        if name not in known:
            hint = close_match(name, known, "leave it out: frame.drop(columns=…)")
            raise InvalidValueError(f"the column {name!r} is of nothing that is known here", hint)
    design = {name: columns[head] for (role, name), head in heads.items() if role == "design" and head in columns}
    x, count = space.encode_designs(design), len(next(iter(columns.values())))
    met = {name: columns[head] for (role, name), head in heads.items() if role == "context" and head in columns}
    rows = _contexts(space, met, count)
    cells = {name: _numbers(columns, name, count) for name in (*mains, *others, "noise_variance", "run_cost", "cost")}
    main = cells["value"] if "value" in columns else cells[settings.outcome]
    if main is None and not any(cells[head] is not None for head in others):
        raise InvalidValueError("the data frame has no outcomes", f"name a column 'value', or {settings.outcome!r}")
    found: list[e.Event] = []
    for k in range(count):
        _check_row(columns, k)
        value = _at(main, k)
        measured = {name: part for head, name in others.items() if (part := _at(cells[head], k)) is not None}
        cost = _at(cells["cost"], k) if cells["cost"] is not None else _at(cells["run_cost"], k)
        context = None if rows is None or np.isnan(rows[k]).all() else rows[k]
        common: dict[str, Any] = {"id": state.next_id + k, "x": x[k], "context": context, "version": state.version}
        key = None if stamp["key"] is None else f"{stamp['key']}-{k}"
        common |= {**stamp, "key": key, "cost": cost}
        if value is None and not measured:
            found.append(e.Failed(why=_words(columns, k), **common))
        else:
            noise_variance = _at(cells["noise_variance"], k)
            found.append(e.Reported(value=value, others=measured or None, noise_variance=noise_variance, **common))
    return found


def _contexts(space: Space, met: Columns, count: int) -> NDArray[np.float64] | None:
    """n × d_c, NaN where nothing is known."""
    if not met:
        return None
    empty = np.full(count, None, dtype=object)
    given = [met.get(name, empty) for name in space.context_names]
    columns = [[None if gone else part for part, gone in zip(one, _missing(one), strict=True)] for one in given]
    named = [dict(zip(space.context_names, row, strict=True)) for row in zip(*columns, strict=True)]
    known = np.array([any(part is not None for part in row.values()) for row in named], dtype=np.bool_)
    rows = np.full((count, space.d_c), np.nan)
    if known.any():
        rows[known] = space.read_contexts([named[k] for k in np.flatnonzero(known)], partial=True)
    return rows


def _missing(column: NDArray[Any]) -> NDArray[np.bool_]:
    return np.array([part is None or part != part for part in column], dtype=np.bool_)


def _numbers(columns: Columns, name: str, count: int) -> NDArray[np.float64] | None:
    """A column of numbers, NaN where it is empty or not finite; None if there is none."""
    if name not in columns:
        return None
    gone = _missing(columns[name])
    try:
        numbers = np.where(gone, np.nan, np.where(gone, 0.0, columns[name]).astype(np.float64))
    except (TypeError, ValueError):
        raise InvalidValueError(f"the column {name!r} holds what is no number", "convert it, or leave it out") from None
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _at(column: NDArray[np.float64] | None, k: int) -> float | None:
    return None if column is None or np.isnan(column[k]) else float(column[k])


def _words(columns: Columns, k: int) -> str | None:
    why = columns["why"][k] if "why" in columns else None
    return why if isinstance(why, str) else None


def _check_row(columns: Columns, k: int) -> None:
    """That it is of a run which ended and counts."""
    if "status" in columns and columns["status"][k] not in ("reported", "failed"):
        hint = 'choose rows: frame[frame["status"] == "reported"]'
        raise InvalidValueError(f"row {k} of the data frame is of a run that is {columns['status'][k]}", hint)
    if "control" in columns and not _missing(columns["control"])[k]:
        hint = "report runs with a control one by one: tell(design, context, value, control=…)"
        raise InvalidValueError(f"row {k} of the data frame has a control", hint)
    if "dropped" in columns and bool(columns["dropped"][k]):
        hint = 'leave those out: frame[~frame["dropped"]]'
        raise InvalidValueError(f"row {k} of the data frame is of a run that was left out", hint)
