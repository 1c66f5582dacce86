"""A front in words, the same for the terminal, the report and the lab page."""

from __future__ import annotations

import math

from edrbo.optimizer.front import Front, FrontPoint
from edrbo.records.settings import Settings
from edrbo.records.words import heading, outcome_headings


def front_table(settings: Settings, front: Front) -> tuple[list[str], list[list[str]]]:
    """Headings, and the cells of each design: what to set, what to expect of each main outcome with its 95 % interval,
    and how sure each limit is."""
    design, outcomes = settings.space.design, outcome_headings(settings)
    limits = list(front.points[0].holds)
    heads = [heading(name, variable.unit) for name, variable in design.items()]
    heads += [*(outcomes[name] for name in front.reference), *(f"{name} holds" for name in limits)]
    rows = []
    for point in front.points:
        cells = [design[name].text(value) for name, value in point.design.items()]
        cells += [_expected(point, name) for name in front.reference]
        rows.append(cells + [f"{point.holds[name]:.0%} sure" for name in limits])
    return heads, rows


def _expected(point: FrontPoint, name: str) -> str:
    value, (low, high) = point.values[name], point.intervals[name]
    return f"{value:.4g} ({low:.4g} to {high:.4g})" if math.isfinite(high - low) else f"{value:.4g}"


def volume_words(front: Front) -> str:
    """What the designs of a front dominate together."""
    behind = ", ".join(f"{name} {value:.4g}" for name, value in front.reference.items())
    return f"They dominate a hypervolume of {front.hypervolume:.4g}, down to {behind}."


def doubt_words(front: Front) -> str | None:
    """What is to be said of limits that may not hold."""
    return None if front.sure else "No design is known yet that keeps all limits as surely as was asked for."
