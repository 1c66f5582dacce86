"""Distributions of SciPy by their names. SciPy is loaded where a law is first said, and where it is used."""

from __future__ import annotations

from typing import Any

import numpy as np

from edrbo.errors import InvalidValueError
from edrbo.records.law import KnownLaw, Named
from edrbo.space import Space
from edrbo.space.tables import close_match


def check_law(law: KnownLaw | None, space: Space) -> None:
    """InvalidValueError if SciPy has no such distribution, or not with these arguments."""
    for name, part in () if law is None else law.parts:
        if isinstance(part, Named):
            if not space.context[name].numeric:
                raise InvalidValueError(f"{name!r} has choices, and its law is {part.to_text()}", "give shares")
            frozen(name, part)


def frozen(variable: str, part: Named) -> Any:
    """The distribution of SciPy."""
    from scipy import stats

    known = getattr(stats, part.name, None)
    if not isinstance(known, stats.rv_continuous | stats.rv_discrete):
        names = [
            name for name in dir(stats) if isinstance(getattr(stats, name), stats.rv_continuous | stats.rv_discrete)
        ]
        hint = close_match(part.name, names, "it is one of scipy.stats, as norm, uniform, lognorm, beta or poisson")
        raise InvalidValueError(f"SciPy has no distribution {part.name!r}", hint)
    try:
        found = known(*part.arguments, **dict(part.keywords))
        ends = np.asarray(found.ppf([0.001, 0.5, 0.999]), dtype=np.float64)
    except (TypeError, ValueError) as problem:
        hint = f"its arguments are {known.shapes or 'none'}, then loc and scale"
        raise InvalidValueError(f"the law of {variable!r}, {part.to_text()}, cannot be: {problem}", hint) from None
    if not np.isfinite(ends).all():
        hint = f"its arguments are {known.shapes or 'none'}, then loc and scale; each has a range"
        raise InvalidValueError(f"the law of {variable!r}, {part.to_text()}, has no quantiles", hint)
    return found
