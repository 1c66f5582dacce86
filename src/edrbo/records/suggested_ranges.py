"""Ranges and levels that are suggested from, where runs of before lie outside of them.

A run stays what it was, so a variable keeps every value that a run had. What is not suggested any more is said by
constraints on that variable alone, speed >= 30 and primer != C. For people that is one thing: the range of a setting.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from edrbo.records.state import State
from edrbo.space import Categorical, Integer, Real, Space
from edrbo.space.variables import Variable, number_text

END = re.compile(r"`?(?P<name>[^`<>=!]+?)`?\s*(?P<sign>>=|<=|!=)\s*(?P<value>.+)")


@dataclass(frozen=True)
class SuggestedRanges:
    """Of a space: settings with the ranges and levels that are suggested, and what else must hold."""

    design: dict[str, Variable]
    constraints: list[str]

    @classmethod
    def of(cls, space: Space, names: Collection[str] | None = None) -> SuggestedRanges:
        """Of the settings of these ``names``, by default of all; of others constraints stay what they are."""
        design, others = dict(space.design), list[str]()
        for constraint in space.constraints:
            narrowed = None if constraint.function is not None else _narrowed(design, constraint.text)
            if narrowed is None or (names is not None and not set(narrowed) <= set(names)):
                others.append(constraint.text)
            else:
                design |= narrowed
        return cls(design, others)


def _narrowed(design: Mapping[str, Variable], text: str) -> dict[str, Variable] | None:
    """The one variable that a constraint narrows; None if it says something else."""
    found = END.fullmatch(text)
    variable = None if found is None else design.get(found["name"].strip())
    if found is None or variable is None:
        return None
    name, value = found["name"].strip(), found["value"].strip()
    if isinstance(variable, Categorical):
        left = tuple(choice for choice in variable.choices if str(choice) != value)
        fits = found["sign"] == "!=" and 2 <= len(left) < len(variable.choices)
        return {name: replace(variable, choices=left)} if fits else None
    if not isinstance(variable, Real | Integer) or found["sign"] == "!=":
        return None
    try:
        end = float(value)
    except ValueError:
        return None
    kept: Any = int(end) if isinstance(variable, Integer) else end
    low, high = variable.limits()
    ends: dict[str, Any] = {"lower": kept} if found["sign"] == ">=" else {"upper": kept}
    if not low <= end <= high or ends.get("lower") == high or ends.get("upper") == low or kept != end:
        return None
    return {name: replace(variable, **ends)}


def keeping_runs(
    state: State, design: Mapping[str, Variable], context: Mapping[str, Variable], constraints: Iterable[str]
) -> Space:
    """The space with these ranges to suggest from, wide enough for all runs.

    Args:
        state: With the runs so far.
        design: Settings with the ranges and levels that are to be suggested.
        context: Conditions.
        constraints: What else must hold.
    """
    designs = state.space.decode_designs(_coded(state)) if state.runs else []
    wide, ends = dict(design), list[str]()
    for name, variable in design.items():
        was = state.space.design.get(name)
        if was is not None and type(was) is type(variable):
            wide[name], own = _wide_enough(name, variable, was, [one[name] for one in designs])
            ends += own
    return Space(wide, dict(context), [*constraints, *ends])


def _coded(state: State) -> Any:
    import numpy as np

    return np.stack([run.x for run in state.runs.values()])


def _wide_enough(name: str, new: Variable, was: Variable, values: Sequence[Any]) -> tuple[Variable, list[str]]:
    """``new`` so that it holds all ``values``, and the constraints that say what of it is suggested."""
    shown = f"`{name}`" if not name.isidentifier() else name
    if isinstance(new, Categorical) and isinstance(was, Categorical):
        gone = [choice for choice in was.choices if choice not in new.choices and choice in values]
        choices = list(new.choices)
        for choice in gone:  # where it stood before
            before = [one for one in was.choices[: was.choices.index(choice)] if one in choices]
            choices.insert(choices.index(before[-1]) + 1 if before else 0, choice)
        return replace(new, choices=tuple(choices)), [f"{shown} != {choice}" for choice in gone]
    if not isinstance(new, Real | Integer) or not isinstance(was, Real | Integer) or not values:
        return new, []
    (low, high), (first, last) = new.limits(), was.limits()
    ends: dict[str, Any] = {}
    if min(values) < low:
        ends["lower"] = int(first) if isinstance(new, Integer) else first
    if max(values) > high:
        ends["upper"] = int(last) if isinstance(new, Integer) else last
    own = [f"{shown} >= {low:.15g}"] * ("lower" in ends)
    own += [f"{shown} <= {high:.15g}"] * ("upper" in ends)
    return (replace(new, **ends) if ends else new), own


def describe_range(space: Space, name: str) -> str:
    """The range of a setting, and what is no longer suggested of it."""
    whole, narrow = space.design[name], SuggestedRanges.of(space).design[name]
    if whole == narrow:
        return whole.describe()
    if isinstance(whole, Categorical) and isinstance(narrow, Categorical):
        gone = [str(choice) for choice in whole.choices if choice not in narrow.choices]
        return f"{narrow.describe()}; {' and '.join(gone)} no longer suggested"
    ends = whole.limits()
    return f"{narrow.describe()}; runs may lie from {number_text(ends[0])} to {number_text(ends[1])}"
