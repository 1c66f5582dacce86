"""The pictures of the report as matplotlib figures, one function each.

Each takes an ``Optimizer``, a ``Study`` or the ``Result`` of a loop, and gives a ``Figure``: show it in a notebook, or
``figure.savefig("progress.png")``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edrbo.errors import EdrboError, InvalidSpaceError
from edrbo.optimizer.calibration import Z95, leave_one_out
from edrbo.optimizer.optimizer import Optimizer
from edrbo.palette import BLUE, COLOR_MAP, GRAY, GREEN, GRID, VERMILION, notebook_figure
from edrbo.records.descriptions import heading
from edrbo.records.goals import Goal
from edrbo.records.outcomes import Units
from edrbo.space import Variable
from edrbo.space.point_tables import close_match

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["calibration", "contexts", "progress", "slices", "surface", "tradeoff"]

Array = NDArray[np.float64]

POINTS = 49  # of a curve
GRID_POINTS = 25  # of each side of a surface
MOST_COLUMNS = 3  # of pictures beside each other


def progress(of: Any) -> Figure:
    """Reported values in order, the best so far, and the expected value of the recommendation with its interval."""
    optimizer = _reported(of)
    y = optimizer.observations.y
    sign = 1.0 if optimizer.direction == "maximize" else -1.0
    order = np.arange(1, len(y) + 1)
    answer = optimizer.recommend()
    figure, (axes,) = _figure(1, (6.4, 3.8))
    axes.axhspan(*answer.interval, color=GREEN, alpha=0.15, lw=0, label="95 % interval")
    axes.axhline(answer.expected, color=GREEN, ls="--", label="expected of the recommendation")
    axes.plot(order, sign * np.maximum.accumulate(sign * y), color=GRAY, drawstyle="steps-post", label="best so far")
    axes.plot(order, y, "o", color=BLUE, ms=4, label="reported")
    axes.set(xlabel="run reported", ylabel=_outcome(optimizer), title="Progress")
    axes.legend(fontsize="small", loc="upper left")
    return figure


def slices(of: Any, names: list[str] | None = None) -> Figure:
    """The expected value along each design variable (or those of ``names``), the others as recommended."""
    optimizer = _reported(of)
    answer, space = optimizer.recommend(), optimizer.space
    chosen = list(space.design_names) if names is None else [_design_name(optimizer, name) for name in names]
    tried, y = space.decode_designs(optimizer.observations.x), optimizer.observations.y
    figure, many = _figure(len(chosen), (3.8, 3.2))
    for axes, name in zip(many, chosen, strict=True):
        variable = space.design[name]
        values = variable.grid(POINTS)
        posterior = optimizer.predict([{**answer.design, name: value} for value in values])
        places = _places(variable, values)
        axes.plot(_places(variable, [row[name] for row in tried]), y, ".", color=GRAY, alpha=0.5)
        if not variable.numeric:
            reach = [posterior.expected - posterior.lower, posterior.upper - posterior.expected]
            axes.errorbar(places, posterior.expected, yerr=reach, fmt="o", color=BLUE, capsize=4)
            axes.set_xticks(places, [str(value) for value in values])
        else:
            axes.fill_between(places, posterior.lower, posterior.upper, color=BLUE, alpha=0.2, lw=0)
            axes.plot(places, posterior.expected, color=BLUE)
            axes.set_xscale("log" if variable.log else "linear")
        axes.axvline(_places(variable, [answer.design[name]])[0], color=VERMILION, ls=":")
        axes.set(xlabel=heading(name, variable.unit), ylabel=_outcome(optimizer))
    return figure


def contexts(of: Any) -> Figure:
    """Each context variable in the order of arrival, and its distribution."""
    optimizer = _optimizer(of)
    space = optimizer.space
    if not space.d_c:
        raise InvalidSpaceError("there are no context variables to show", "name them in Space(context=...)")
    rows = [row for batch in optimizer.context_log.batches for row in batch.rows]
    if not rows:
        raise EdrboError("no context was seen yet", "tell one")
    context_distribution, weights = optimizer.context_log.weighted(space.d_c, optimizer.settings.context_half_life)
    figure, many = _figure(2 * space.d_c, (4.4, 3.0), columns=2)
    for k, (name, variable) in enumerate(space.context.items()):
        over_time, share = many[2 * k], many[2 * k + 1]
        over_time.plot(np.arange(1, len(rows) + 1), np.array(rows)[:, k], ".", color=BLUE)
        bins: Any = 18
        if (labels := variable.labels()) is not None:
            over_time.set_yticks(range(len(labels)), labels)
            share.set_xticks(range(len(labels)), labels)
            bins = np.arange(len(labels) + 1) - 0.5
        over_time.set(xlabel="context, in order of arrival", ylabel=heading(name, variable.unit))
        known = np.isfinite(context_distribution[:, k])
        share.hist(
            context_distribution[known, k],
            bins=bins,
            weights=weights[known] / weights[known].sum(),
            color=GREEN,
            alpha=0.7,
        )
        share.set(xlabel=heading(name, variable.unit), ylabel="share of the distribution")
    return figure


def calibration(of: Any) -> Figure:
    """Outcomes against what is predicted of each from the others, with 95 % intervals."""
    optimizer = _reported(of)
    model = optimizer.model
    if model is None or len(optimizer) < 2:
        raise EdrboError("two outcomes with their contexts are needed to judge the model", "tell more")
    found, units = leave_one_out(model), Units.of(optimizer.direction, optimizer.observations.y)
    actual, predicted, reach = units.to_user(found.y), units.to_user(found.mean), units.spread_to_user(Z95 * found.sd)
    figure, (axes,) = _figure(1, (4.6, 4.4))
    ends = [min(actual.min(), predicted.min()), max(actual.max(), predicted.max())]
    axes.plot(ends, ends, color=GRAY, ls="--")
    inside = np.abs(actual - predicted) <= reach
    for rows, color in ((inside, BLUE), (~inside, VERMILION)):
        axes.errorbar(predicted[rows], actual[rows], xerr=reach[rows], fmt="o", color=color, ms=4, elinewidth=0.7)
    words = f"Calibration: {inside.sum()} of {len(inside)} inside"
    axes.set(xlabel="predicted from the others", ylabel=f"observed {_outcome(optimizer)}", title=words)
    return figure


def tradeoff(of: Any, goal: Goal | str | None = None) -> Figure:
    """What robustness costs: designs from the best on average to the best under a goal."""
    return _reported(of).tradeoff(goal).draw()


def surface(of: Any, x: str | None = None, y: str | None = None) -> Figure:
    """The expected value over two numeric design variables, the others as recommended.

    Designs that break a constraint stay blank.
    """
    optimizer = _reported(of)
    space = optimizer.space
    numeric = [name for name, variable in space.design.items() if variable.numeric]
    given = [_design_name(optimizer, name) for name in (x, y) if name is not None]
    names = (given + [name for name in numeric if name not in given])[:2]
    if len(names) < 2 or not set(names) <= set(numeric):
        raise InvalidSpaceError("a surface needs two numeric design variables", "see edrbo.plot.slices")
    answer = optimizer.recommend()
    first, second = (space.design[name].grid(GRID_POINTS) for name in names)
    designs = [{**answer.design, names[0]: a, names[1]: b} for b in second for a in first]
    mean = optimizer.predict(designs).expected
    if space.region is not None:
        mean = np.where(space.region.inside(space.encode_designs(designs)), mean, np.nan)
    figure, (axes,) = _figure(1, (5.6, 4.4))
    shade = axes.pcolormesh(first, second, mean.reshape(len(second), len(first)), cmap=COLOR_MAP, shading="nearest")
    tried = space.decode_designs(optimizer.observations.x)
    axes.plot([row[names[0]] for row in tried], [row[names[1]] for row in tried], "o", mfc="none", color="white", ms=5)
    axes.plot(*(answer.design[name] for name in names), "*", color=VERMILION, ms=14, label="recommended")
    labels = [heading(name, space.design[name].unit) for name in names]
    scales = ["log" if getattr(space.design[name], "log", False) else "linear" for name in names]
    axes.set(xlabel=labels[0], ylabel=labels[1], xscale=scales[0], yscale=scales[1])
    figure.colorbar(shade, ax=axes, label=f"expected {_outcome(optimizer)}")
    axes.legend(fontsize="small", loc="upper left")
    return figure


# -------------------------------------------------------------------- parts


def _optimizer(of: Any) -> Optimizer:
    found = getattr(of, "optimizer", of)
    if not isinstance(found, Optimizer):
        raise EdrboError(f"{type(of).__name__} cannot be drawn", "give an Optimizer, a Study or a Result")
    return found


def _reported(of: Any) -> Optimizer:
    optimizer = _optimizer(of)
    if len(optimizer) == 0:
        raise EdrboError("nothing was reported yet, so nothing can be drawn", "tell at least one value")
    return optimizer


def _design_name(optimizer: Optimizer, name: str) -> str:
    if name not in optimizer.space.design:
        names = optimizer.space.design_names
        raise InvalidSpaceError(
            f"{name!r} is not a design variable", close_match(name, names, f"the design variables are {list(names)}")
        )
    return name


def _outcome(optimizer: Optimizer) -> str:
    return heading(optimizer.settings.outcome, optimizer.settings.unit)


def _figure(count: int, size: tuple[float, float], columns: int | None = None) -> tuple[Figure, list[Axes]]:
    """A figure with ``count`` pictures of ``size`` inches."""
    across = min(count, MOST_COLUMNS) if columns is None else columns
    down = -(-count // across)
    figure = notebook_figure()(figsize=(across * size[0], down * size[1]), layout="constrained", dpi=110)
    many = list(figure.subplots(down, across, squeeze=False).flat)
    for axes in many[:count]:
        axes.grid(color=GRID)
        axes.set_axisbelow(True)
    for axes in many[count:]:
        axes.remove()
    return figure, many[:count]


def _places(variable: Variable, values: list[Any]) -> list[float]:
    """Where values stand on an axis: a choice at its number."""
    return [float(number) for number in variable.numbers("", np.array(values, dtype=object))]
