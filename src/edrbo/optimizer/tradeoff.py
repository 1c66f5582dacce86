"""The trade-off frontier between the mean and a robust goal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.charts import Axis, Chart, Line, Mark, Points, Shape, span
from edrbo.contexts.distributions import sobol_points
from edrbo.optimizer.answers import Prediction
from edrbo.optimizer.goal_posterior import text_of
from edrbo.optimizer.outcome_posterior import OutcomePosterior
from edrbo.records.goals import Expected
from edrbo.records.settings import Settings
from edrbo.space import Space

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

TRIED = 1024  # quasi-random designs looked at, beside those evaluated and the best ones
NEGLIGIBLE = 1e-3  # of what designs differ by at all
MAX_SHOWN = 12  # of the frontier


@dataclass(frozen=True, eq=False)
class Tradeoff:
    """``designs`` from the best on average to the best under the goal, with posterior expectations (n each).

    ``mean`` is E_c f(x, c) in the user's units, ``value`` the goal's. ``mean_axis`` and ``value_axis`` say so in words.
    """

    goal: str
    designs: list[dict[str, Any]]
    mean: Array
    value: Array
    mean_axis: str
    value_axis: str

    def chart(self, tips: Sequence[str] = ()) -> Chart:
        """The frontier as a picture, a dot a design; ``tips`` say what each of them is."""
        mean, value = self.mean.tolist(), self.value.tolist()
        said = list(tips) or [", ".join(f"{name} {part}" for name, part in design.items()) for design in self.designs]
        shapes: tuple[Shape, Shape] = ("dot", "star")
        ends = [
            Points([mean[k]], [value[k]], "orange", words, [said[k]], shape=shape, size=5.5)
            for k, words, shape in zip((0, -1), ("best on average", "best under the goal"), shapes, strict=True)
        ]
        between = Points(mean, value, "blue", "a choice between them", said, size=4.5)
        marks: tuple[Mark, ...] = (Line(mean, value), between, *ends)
        across, up = Axis.of(self.mean_axis, span(mean)), Axis.of(self.value_axis, span(value))
        return Chart("The average against the goal", across, up, marks)

    def draw(self) -> Figure:
        """The frontier with matplotlib."""
        from edrbo.charts.figure import draw_all

        return draw_all([self.chart()])

    def save(self, path: str | Path) -> None:
        """Write the picture; the kind follows from the ending of ``path``."""
        self.draw().savefig(path)


def candidates(space: Space, tried: Array, best: list[Tensor], seed: int) -> Tensor:
    """Designs to choose a frontier from (N × d_x)."""
    spread, known = sobol_points(space.d_x, TRIED, seed).numpy(), np.array(tried)
    if space.region is None:
        spread = space.snap(spread)
    else:
        spread, known = space.region.points(spread, TRIED, seed), known[space.region.inside(known)]
    return torch.cat([torch.stack(best), torch.from_numpy(known), torch.from_numpy(spread)])


def frontier(mean: Array, value: Array) -> NDArray[np.intp]:
    """Of numbers of which larger is better, the designs that none beats in both, from the best mean on; few enough.

    Where there is next to nothing to trade it is the one that is best in the second.
    """
    order = np.lexsort((-value, -mean))
    kept = [i for k, i in enumerate(order) if k == 0 or value[i] > value[order[:k]].max()]
    if any(np.ptp(part[kept]) < NEGLIGIBLE * np.ptp(part) for part in (mean, value)):
        kept = kept[-1:]
    chosen = np.unique(np.linspace(0, len(kept) - 1, min(len(kept), MAX_SHOWN)).round().astype(np.intp))
    return np.array(kept, dtype=np.intp)[chosen]


def trade_off(
    posteriors: Sequence[OutcomePosterior],
    x: Tensor,
    settings: Settings,
    predict: Callable[[list[dict[str, Any]]], Prediction],
) -> Tradeoff:
    """The frontier among designs ``x`` (N × d_x) of two beliefs, whose goals are the mean and another one.

    Chosen by the quick value of the search, reported by ``predict``, which takes time for each design.
    """
    other = posteriors[1].model_goal
    with torch.no_grad():
        better = [
            posterior.model_goal.posterior(posterior.model, posterior.points).evaluate(x).numpy()
            for posterior in posteriors
        ]
    chosen = settings.space.decode_designs(x[torch.from_numpy(frontier(*better))].numpy())
    found = predict(chosen)
    kept = frontier(other.units.sign * found.expected, other.sense * found.value)
    words = [each.axis(settings.direction, settings.outcome, settings.unit) for each in (Expected(), other.goal)]
    return Tradeoff(text_of(other.goal), [chosen[i] for i in kept], found.expected[kept], found.value[kept], *words)
