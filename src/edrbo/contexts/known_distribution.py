"""A distribution that the user knows (``records/known_distribution.py``), as weighted contexts: the same ones every
time.

One variable by itself stands at the middles of ``LINE`` shares of equal probability, or at its levels with their exact
probabilities; several at a Sobol' sequence through their quantiles. What is not said of the distribution is taken from
the contexts seen, independent of the rest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edrbo.contexts.distributions import compress, sobol_points
from edrbo.records.known_distribution import KnownDistribution, Named, Shares
from edrbo.records.scipy_distributions import check_named, masses, quantiles
from edrbo.space import Space

Array = NDArray[np.float64]

LINE, SPACE_POINTS = 512, 1024
MOST_LEVELS = 512  # of a discrete distribution that are taken one by one


def known_contexts(
    context_distribution: KnownDistribution, space: Space, seen: Array, weights: Array
) -> tuple[Array, Array]:
    """Contexts (n × d_c, the user's units) and weights (n); ``seen`` (N × d_c) with ``weights`` (N) for what the
    distribution does not say."""
    if context_distribution.samples:
        return context_distribution.rows(space)
    reported = [space.context_names.index(name) for name, _ in context_distribution.parts]
    numbers, shares = _one(context_distribution, space) if len(reported) == 1 else _several(context_distribution, space)
    rest = [k for k in range(space.d_c) if k not in reported]
    if not rest:
        found = np.empty((len(numbers), space.d_c))
        found[:, reported] = numbers
        return found, shares
    return _beside(numbers, shares, reported, rest, seen, weights, space)


def _one(context_distribution: KnownDistribution, space: Space) -> tuple[Array, Array]:
    """Values (n × 1) of the one variable and their weights."""
    ((name, part),) = context_distribution.parts
    if isinstance(part, Shares):
        values = [space.context_numbers({name: value})[name] for value in part.values]
        return np.array(values)[:, None], np.array(part.shares)
    exact = _levels(name, part)
    if exact is not None:
        return exact
    middles = (np.arange(LINE) + 0.5) / LINE
    return _quantiles(name, part, middles, space)[:, None], np.full(LINE, 1.0 / LINE)


def _levels(name: str, part: Named) -> tuple[Array, Array] | None:
    """Of a discrete distribution all of its levels that matter, if they are not too many."""
    check_named(name, part)
    found = masses(part.name, (part.arguments, part.keywords))
    if found is None:
        return None
    values, mass = found
    matter = mass > 1e-12
    if not 0 < matter.sum() <= MOST_LEVELS or mass.sum() < 1.0 - 1e-6:
        return None
    return values[matter, None], mass[matter] / mass[matter].sum()


def _several(context_distribution: KnownDistribution, space: Space) -> tuple[Array, Array]:
    """Values (n × k) of independent variables with equal weights."""
    unit = sobol_points(len(context_distribution.parts), SPACE_POINTS).numpy().clip(1e-9, 1.0 - 1e-9)
    columns = [_quantiles(name, part, unit[:, k], space) for k, (name, part) in enumerate(context_distribution.parts)]
    return np.stack(columns, axis=1), np.full(SPACE_POINTS, 1.0 / SPACE_POINTS)


def _quantiles(name: str, part: Named | Shares, levels: Array, space: Space) -> Array:
    if isinstance(part, Shares):
        numbers = np.array([space.context_numbers({name: value})[name] for value in part.values])
        order = np.argsort(numbers, kind="stable")
        below = np.cumsum(np.array(part.shares)[order])
        chosen: Array = numbers[order][np.searchsorted(below, levels).clip(0, len(numbers) - 1)]
        return chosen
    found: Array = quantiles(part.name, (part.arguments, part.keywords), levels)
    return np.rint(found) if space.context[name].size else found


def _beside(
    numbers: Array, shares: Array, reported: list[int], rest: list[int], seen: Array, weights: Array, space: Space
) -> tuple[Array, Array]:
    """Every value of what is reported with every context that was seen of the rest."""
    if not len(seen):
        scale = space.context_scale(seen)
        points = sobol_points(scale.width, 32).numpy()
        seen, weights = scale.decode(points), np.ones(32)
    known = ~np.isnan(seen[:, rest]).any(axis=1)
    theirs, mass = seen[known][:, rest], weights[known]
    if not len(theirs):
        return _beside(numbers, shares, reported, rest, np.empty((0, space.d_c)), weights[:0], space)
    few, few_shares = _thinned(numbers, shares, reported, space)
    theirs, mass = _thinned(theirs, mass / mass.sum(), rest, space)
    found = np.empty((len(few) * len(theirs), space.d_c))
    found[:, reported] = np.repeat(few, len(theirs), axis=0)
    found[:, rest] = np.tile(theirs, (len(few), 1))
    return found, np.outer(few_shares, mass).ravel()


def _thinned(values: Array, weights: Array, columns: list[int], space: Space) -> tuple[Array, Array]:
    """At most 64 of them, in the coding of the space."""
    import torch

    part = Space(dict(space._design), {space.context_names[k]: space._context[k][1] for k in columns})
    scale = part.context_scale(values)
    small = compress(torch.from_numpy(scale.encode(values)), torch.from_numpy(weights), 64, discrete=scale.discrete)
    return scale.decode(small.atoms.numpy()), small.weights.numpy()
