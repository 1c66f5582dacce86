"""From one version of a space to the next: runs keep their settings, and new variables have the value old runs had."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edrbo.errors import EdrboError, InvalidContextError, InvalidSpaceError
from edrbo.space import Space

Array = NDArray[np.float64]
Step = tuple[Space, Space, Mapping[str, Any]]  # the space before, after, and the values of what is new


def recode_design(x: Array, steps: Sequence[Step]) -> Array:
    """The same design (d_x) as a point of the last space."""
    for old, new, defaults in steps:
        if old._design == new._design:
            continue
        (design,) = old.decode_designs(x)
        gone = [name for name in design if name not in new.design]
        if gone:
            raise InvalidSpaceError(f"the design variable {gone[0]!r} is gone", "variables cannot be taken away")
        before = {name: variable.default for name, variable in new.design.items() if variable.default is not None}
        values = {**before, **defaults, **design}
        missing = [name for name in new.design if name not in values]
        if missing:
            raise InvalidSpaceError(f"{missing[0]!r} is new", "say which value the runs so far had: its default")
        values = {name: values[name] for name in new.design}
        try:
            x = new.encode_designs(values)[0]
        except EdrboError as problem:
            raise InvalidSpaceError(f"a run would leave the space: {problem.message}", problem.hint) from None
    return x


def recode_contexts(rows: Array, steps: Sequence[Step]) -> Array:
    """The same contexts (n × d_c) with the variables of the last space."""
    for old, new, defaults in steps:
        if old._context == new._context:
            continue
        gone = [name for name in old.context_names if name not in new.context]
        if gone:
            raise InvalidSpaceError(f"the context variable {gone[0]!r} is gone", "variables cannot be taken away")
        columns = []
        for name in new.context_names:
            if name in old.context:
                columns.append(_moved(name, old, new, rows[:, old.context_names.index(name)]))
                continue
            value = defaults[name] if defaults.get(name) is not None else new.context[name].default
            if value is None:
                raise InvalidContextError(f"{name!r} is new", "say which value the runs so far had: its default")
            columns.append(np.full(len(rows), new.context_numbers({name: value})[name]))
        rows = np.stack(columns, axis=1)
    return rows


def same_positions(old: Space, new: Space) -> bool:
    """Whether the numbers by which contexts of the old space are held mean the same in the new one."""
    return all(was.same_numbers(new.context.get(name)) for name, was in old.context.items())


def _moved(name: str, old: Space, new: Space, numbers: Array) -> Array:
    """The same values (n) of a context variable as the new space holds them: choices may stand elsewhere."""
    was, now = old.context[name], new.context[name]
    if was == now or (was.numeric and not now.size):
        return numbers
    moved = np.full(len(numbers), np.nan)
    for number in np.unique(numbers[~np.isnan(numbers)]).tolist():
        try:
            place = new.context_numbers({name: was.value_of(number)})[name]
        except EdrboError as problem:
            raise InvalidSpaceError(f"a context would leave the space: {problem.message}", problem.hint) from None
        moved[numbers == number] = place
    return moved
