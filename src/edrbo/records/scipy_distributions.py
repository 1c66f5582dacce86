"""Distributions of SciPy by their names. SciPy is loaded where a distribution is first said, and where it is used."""

from __future__ import annotations

import numpy as np

from edrbo.errors import InvalidValueError
from edrbo.records.known_distribution import KnownDistribution, Named
from edrbo.records.quantiles import quantiles
from edrbo.space import Space
from edrbo.space.point_tables import close_match


def check_distribution(context_distribution: KnownDistribution | None, space: Space) -> None:
    """InvalidValueError if SciPy has no such distribution, or not with these arguments."""
    for name, part in () if context_distribution is None else context_distribution.parts:
        if isinstance(part, Named):
            if not space.context[name].numeric:
                raise InvalidValueError(
                    f"{name!r} has choices, and its distribution is {part.to_text()}", "give shares"
                )
            check_named(name, part)


def check_named(variable: str, part: Named) -> None:
    """InvalidValueError if SciPy has no such distribution, or cannot say its quantiles in bounds of time and size."""
    from scipy import stats

    known = getattr(stats, part.name, None)
    if not isinstance(known, stats.rv_continuous | stats.rv_discrete):
        names = [
            name for name in dir(stats) if isinstance(getattr(stats, name), stats.rv_continuous | stats.rv_discrete)
        ]
        hint = close_match(part.name, names, "it is one of scipy.stats, as norm, uniform, lognorm, beta or poisson")
        raise InvalidValueError(f"SciPy has no distribution {part.name!r}", hint)
    hint = f"its arguments are {known.shapes or 'none'}, then loc and scale"
    reported = f"the distribution of {variable!r}, {part.to_text()}"
    try:
        ends = quantiles(part.name, (part.arguments, part.keywords), np.array([0.001, 0.5, 0.999]))
    except InvalidValueError as problem:
        raise InvalidValueError(f"{reported}: {problem.message}", problem.hint or hint) from None
    if not np.isfinite(ends).all():
        raise InvalidValueError(f"{reported}, has no quantiles", f"{hint}; each has a range")
