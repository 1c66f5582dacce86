"""The best of designs that are given as a list."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from edrbo.acquisition.budget import BUDGET, Budget
from edrbo.acquisition.maximizer import Maximum
from edrbo.acquisition.objective import Given, as_objectives


def best_listed(ladder: Sequence[Given], x: Tensor, budget: Budget = BUDGET) -> Maximum:
    """Of designs ``x`` (N × d_x) the one with the largest objective ``ladder[-1]``, the last rung of its stand-ins.

    As many as are screened otherwise are ranked by the rung below the top, and the best of these by the objective.
    """
    levels = as_objectives(ladder)
    objective, fair = levels[-1], levels[max(len(levels) - 2, 0)]
    with torch.no_grad():
        for rung, kept in ((levels[0], budget.screened), (fair, budget.kept)):
            if len(x) > kept:
                values = torch.cat([rung(some) for some in torch.split(x, budget.screened)])
                x = x[values.argsort(descending=True, stable=True)[:kept].sort().values]
        objective = objective.near(x)
        values = objective(x)
    best = int(values.argmax())
    return Maximum(x[best], float(values[best]))
