"""Runs as a pandas data frame."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from edrbo.errors import MissingExtraError
from edrbo.records.run import Run
from edrbo.records.settings import Settings
from edrbo.records.state import State, spending

if TYPE_CHECKING:
    from pandas import DataFrame

OURS = ("status", "value", "control", "noise_variance", "run_cost", "dropped", "why")


def frame_of(state: State) -> DataFrame:
    """One row a run, or all of its rows, also of those that failed, wait or are left out; the index is its number.

    A variable that is called as one of our columns stands under design:NAME or context:NAME.
    """
    try:
        from pandas import DataFrame, Index
    except ImportError:
        raise MissingExtraError("data frames need pandas", "pip install 'edrbo[pandas]'") from None
    space = state.space
    roles = [("design", name) for name in space.design_names] + [("context", name) for name in space.context_names]
    heads = {(role, name): f"{role}:{name}" if name in OURS else name for role, name in roles}
    rows = {run.id: list(_rows(state, run, heads)) for run in state.runs.values()}
    numbers = [key for key, own in rows.items() for _ in own]
    others = other_columns(state.settings, OURS)
    spent = spending(state)
    costs, costly = ({}, []) if spent is None else (spent.costs, ["run_cost"])
    controlled = ["control"] * any(run.control is not None for run in state.runs.values())
    columns = ["status", *heads.values(), "value", *controlled, *others, "noise_variance", *costly, "dropped", "why"]
    cells = [{**row, **dict.fromkeys(costly, costs.get(key))} for key, own in rows.items() for row in own]
    return DataFrame(cells, columns=columns, index=Index(numbers, name="run"))


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
