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
        missing = [name for name in new.design if name not in design and name not in defaults]
        if missing:
            raise InvalidSpaceError(f"{missing[0]!r} is new", "say which value the runs so far had of it")
        values = {name: design[name] if name in design else defaults[name] for name in new.design}
        try:
            x = new.encode_designs(values)[0]
        except EdrboError as problem:
            raise InvalidSpaceError(f"a run would leave the space: {problem.message}", problem.hint) from None
    return x


def recode_contexts(rows: Array, steps: Sequence[Step]) -> Array:
    """The same contexts (n × d_c) with the variables of the last space."""
    for old, new, defaults in steps:
        if old.context_names == new.context_names:
            continue
        gone = [name for name in old.context_names if name not in new.context]
        if gone:
            raise InvalidSpaceError(f"the context variable {gone[0]!r} is gone", "variables cannot be taken away")
        columns = []
        for name in new.context_names:
            if name in old.context:
                columns.append(rows[:, old.context_names.index(name)])
                continue
            value = defaults.get(name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
                raise InvalidContextError(f"{name!r} is new", "say which value the runs so far had of it")
            columns.append(np.full(len(rows), float(value)))
        rows = np.stack(columns, axis=1)
    return rows
