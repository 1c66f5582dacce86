"""What the runs of an experiment cost: as it was reported, or else as the function says that the user gave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from edrbo.records.run import Run
from edrbo.records.state import State
from edrbo.space.cost_function import Cost


@dataclass(frozen=True)
class Spending:
    """``costs`` by run, of those that have ended and whose cost is known, in order; left out ones are paid too."""

    costs: Mapping[int, float]
    unknown: int  # runs that have ended and whose cost nobody said

    @property
    def total(self) -> float:
        return float(sum(self.costs.values()))


def spending(state: State) -> Spending | None:
    """None where nothing is known of costs at all."""
    cost, ended = state.settings.cost, [run for run in state.runs.values() if run.status in ("reported", "failed")]
    if cost is None and all(run.cost is None for run in ended):
        return None
    costs = {run.id: known for run in ended if (known := _cost(run, cost)) is not None}
    return Spending(costs, len(ended) - len(costs))


def _cost(run: Run, cost: Cost | None) -> float | None:
    if run.cost is not None or cost is None:
        return run.cost
    return float(cost.of(np.asarray(run.x)[None])[0])
