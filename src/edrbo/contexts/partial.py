"""Partly known contexts: the conditional distribution of the rest, given that part and the contexts seen.

A context with known part k is completed by *donors*, contexts that are known in all of what it lacks: its own part
stays, the rest is the donor's. Their weights are those of the distribution times a Gaussian kernel in the known part; a
choice without order must be the same, as long as any donor has it. So of a distribution of choices alone this is the
conditional distribution.

Donors are not quite where the known part is, mostly nearer to the middle. So what a donor gives is moved along the
regression of the rest on the known part, among the donors as they weigh (local linear regression; Fan, 1992).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edrbo.space.context_scale import ContextScale

Array = NDArray[np.float64]

DONORS = 1024  # the last contexts that are looked at
COMPLETIONS = 16  # that stand for one context
NARROWEST = 0.02  # bandwidth, as a share of the range


class Donors(NamedTuple):
    """The mean of what is lacking is known as from ``effective`` equal ones, its spread as from ``number``.

    These are no fewer: where the known part lies aside of the donors the line through them is less sure.
    """

    effective: float
    number: float


@dataclass(frozen=True, eq=False)
class Completion:
    """What a context may be: ``contexts`` (k × width, coded), ``weights`` (k) that sum to one; and how well."""

    contexts: Array
    weights: Array
    donors: Donors


def complete(row: Array, seen: Array, weights: Array, scale: ContextScale) -> Completion:
    """Of ``row`` (d_c, NaN where it is not known) by what was ``seen`` (n × d_c, NaN likewise) with ``weights`` (n)."""
    lacks = np.isnan(row)
    donors = np.flatnonzero(~np.isnan(seen[:, lacks]).any(axis=1) & (weights > 0))[-DONORS:]
    if len(donors):
        shares = conditional(row, seen[donors], weights[donors], scale)
        found, known = _moved(row, seen[donors], shares, scale)
    else:
        found, shares = _marginals(lacks, seen, weights, scale)
        met = max(1.0, float((~np.isnan(seen[:, lacks]) & (weights > 0)[:, None]).sum(axis=0).min()))
        known = Donors(met, met)
    whole = np.where(lacks, found, row)
    coded, place = np.unique(scale.encode(whole), axis=0, return_inverse=True)
    total = np.bincount(place.reshape(-1), shares, len(coded)).astype(np.float64, copy=False)
    return Completion(coded[total > 0], total[total > 0] / total.sum(), known)


def _moved(row: Array, donors: Array, shares: Array, scale: ContextScale) -> tuple[Array, Donors]:
    """``donors`` (n × d_c) with what ``row`` (d_c) lacks moved to where its known part is; no farther than others are
    seen, and only numbers, by numbers that all donors have. And how that is known."""
    coded, own = scale.encode(donors), scale.encode(row[None])[0]
    real = [k for k, (choices, whole) in enumerate(zip(scale.choices, scale.whole, strict=True)) if not choices | whole]
    columns = [scale.blocks[k].start for k in real]
    known = [j for j in columns if not np.isnan(own[j]) and not np.isnan(coded[:, j]).any()]
    lacking = [j for j in columns if np.isnan(own[j])]
    equal = 1.0 / float(np.sum(shares**2))
    if not known or not lacking:
        return donors, Donors(equal, equal)
    away = coded[:, known] - own[known]
    apart = away - shares @ away
    spread = shares @ apart**2
    square = apart.T @ (shares[:, None] * apart) + np.diag(spread / max(equal, 1.0) + 1e-12)
    moved = coded.copy()
    for j in lacking:
        slope = np.linalg.solve(square, apart.T @ (shares * coded[:, j]))
        moved[:, j] = np.clip(coded[:, j] - away @ slope, coded[:, j].min(), coded[:, j].max())
    # what each donor counts in the mean at the known part: the weights of the local line there
    counts = shares * (1.0 - apart @ np.linalg.solve(square, shares @ away))
    return np.where(np.isnan(donors), np.nan, scale.decode(moved)), Donors(
        min(equal, 1.0 / float(np.sum(counts**2))), equal
    )


def conditional(row: Array, donors: Array, weights: Array, scale: ContextScale) -> Array:
    """The weights of ``donors`` (n × d_c) given what is known of ``row`` (d_c); they sum to one."""
    coded, own = scale.encode(donors), scale.encode(row[None])[0]
    odds = np.log(weights)
    for k, block in enumerate(scale.blocks):
        theirs = coded[:, block]
        both = ~np.isnan(theirs[:, 0])
        if np.isnan(own[block.start]) or not both.any():
            continue
        if scale.choices[k]:
            same = (theirs == own[block]).all(axis=1)
            if (same & np.isfinite(odds)).any():
                odds = np.where(same, odds, -np.inf)
            continue
        width = bandwidth(theirs[both, 0], weights[both])
        distance = np.where(both, (theirs[:, 0] - own[block.start]) / width, 0.0)
        odds = odds - 0.5 * distance**2
    shares = np.exp(odds - odds.max())
    total: Array = shares / shares.sum()
    return total


def bandwidth(values: Array, weights: Array) -> float:
    """Of a kernel in one coded variable: Silverman's for the number of donors that count."""
    share = weights / weights.sum()
    spread = float(np.sqrt(share @ (values - share @ values) ** 2))
    number = 1.0 / float(np.sum(share**2))
    return float(max(spread * (4.0 / (3.0 * number)) ** 0.2, NARROWEST))


def _marginals(lacks: NDArray[np.bool_], seen: Array, weights: Array, scale: ContextScale) -> tuple[Array, Array]:
    """Where no context has all that is lacking: each variable by itself, as it was seen, or over its range."""
    found = np.full((COMPLETIONS, len(lacks)), np.nan)
    levels = (np.arange(COMPLETIONS) + 0.5) / COMPLETIONS
    for turn, k in enumerate(np.flatnonzero(lacks)):
        known = ~np.isnan(seen[:, k]) & (weights > 0)
        # Each variable in an order of its own, so that they are not taken to go together.
        order = np.roll(levels, turn * 5) if turn % 2 == 0 else np.roll(levels[::-1], turn * 5)
        if known.any():
            rank = np.argsort(seen[known, k], kind="stable")
            below = np.cumsum(weights[known][rank]) / weights[known].sum()
            found[:, k] = seen[known, k][rank][np.searchsorted(below, order).clip(0, len(below) - 1)]
        elif scale.choices[k]:
            found[:, k] = np.arange(COMPLETIONS) % scale.choices[k]
        else:
            ends = np.zeros((COMPLETIONS, scale.width))
            ends[:, scale.blocks[k]] = order[:, None]
            found[:, k] = scale.decode(ends)[:, k]
    return found, np.full(COMPLETIONS, 1.0 / COMPLETIONS)


def thinned(found: Completion, size: int) -> Completion:
    """At most ``size`` of the completions with equal weights, drawn at equal steps of the distribution."""
    if len(found.weights) <= size:
        return found
    return Completion(equally_likely(found, size), np.full(size, 1.0 / size), found.donors)


def equally_likely(found: Completion, size: int) -> Array:
    """``size`` of the completions (size × width), drawn at equal steps of the distribution; some of them more than
    once."""
    order = np.lexsort(found.contexts.T[::-1])
    below = np.cumsum(found.weights[order])
    steps = (np.arange(size) + 0.5) / size * below[-1]
    drawn: Array = found.contexts[order[np.searchsorted(below, steps).clip(0, len(below) - 1)]]
    return drawn


def completed(seen: Array, weights: Array, scale: ContextScale) -> tuple[Array, Array]:
    """Contexts (n × d_c, NaN where not known) coded; one that is not wholly known by a few that share its weight."""
    partial = np.atleast_1d(np.isnan(seen).any(axis=1))
    if not partial.any():
        return scale.encode(seen), weights
    coded, rows, shares = scale.encode(seen), list[Array](), list[Array]()
    for k, row in enumerate(seen):  # in their order, since a distribution may forget the older ones
        if not partial[k]:
            rows.append(coded[k : k + 1])
            shares.append(weights[k : k + 1])
            continue
        found = thinned(complete(row, seen, weights, scale), COMPLETIONS)
        rows.append(found.contexts)
        shares.append(weights[k] * found.weights)
    return np.concatenate(rows), np.concatenate(shares)
