"""The one maximizer of acquisition functions: quasi-random screening, then batched multi-start local search.

The objective comes as a list of approximations from coarse to exact, the objective itself last (it may be alone).

1. A scrambled-Sobol' set plus the given starts (and points around the best of them) is scored by the coarsest
   approximation; the best are scored again by the next one, if there are four, or by the finest approximation.
2. From several of the best, far apart, bounded L-BFGS climbs on the approximation below the top in the continuous
   variables; the best ends that are not the same climb on with the objective itself. If that is expensive, the
   approximation below guides them.
3. Integer and categorical variables are searched by exchanging one variable's level at a time, with climbs between,
   until nothing improves.

In a region (constraints, variables that are held) all of these stay inside: points are brought there, climbs are those
of ``constrained``, and the end is moved to the best of the designs around it that can be set.

One ``Budget`` for all methods. Of designs that are given as a list the best is found by ``best_listed``.

Where a search for designs may go, and designs there: quasi-random ones, neighbors, some that are far apart.

A search goes everywhere in the unit cube, or in a region of it. Neighbors differ from a design in the level of one
discrete variable. ``MaximinDistance`` is how far a design is from all that were tried, whatever a model says of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.acquisition.objective import Given, Objective, as_objectives
from edrbo.acquisition.search.local_search import MERGE_DISTANCE, climb_inside, trust_region_climbs
from edrbo.contexts.distributions import sobol_points
from edrbo.space import Region, Space
from edrbo.surrogate.quasi_newton import minimize_lbfgs

OVERSAMPLED = 3  # times as many quasi-random designs as are wanted inside of constraints
BORDER = 1e-3  # of the range of a constraint
WALL = 2.0  # a bound counts as tried at so many times its distance: corners are far from all, but seldom good


@dataclass(frozen=True, eq=False)
class MaximinDistance(Objective):
    """The distance of a design from the nearest of ``tried`` (n × d_x), or from a bound if that is nearer.

    Only numbers have bounds (``walled``, d_x); without any, tried designs alone count.
    """

    tried: Tensor
    walled: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        """Of designs ``x`` (N × d_x), N numbers; differentiable but where two designs are equally near."""
        apart = (x.unsqueeze(-2) - self.tried).square().sum(-1).amin(-1)
        free = x[:, self.walled]
        if free.shape[1]:
            apart = torch.minimum(apart, WALL**2 * torch.minimum(free, 1.0 - free).square().amin(-1))
        return apart.clamp_min(1e-300).sqrt()


BLOCK = 96  # points whose distances from each other are looked at together


def select_diverse(points: Tensor, values: Tensor, count: int, apart: float) -> Tensor:
    """Indices of the best points, each more than ``apart`` (largest coordinate) from those already taken."""
    order = values.argsort(descending=True, stable=True).numpy()
    columns = points.numpy()[order].T.copy()  # d × N: a maximum over few columns is faster than one along short rows
    taken: list[int] = []  # by rank
    for start in range(0, len(order), BLOCK):  # the best are apart long before the worst are looked at
        block = columns[:, start : start + BLOCK]
        near = np.abs(block[:, :, None] - block[:, None]).max(axis=0) <= apart
        free = (np.abs(columns[:, taken, None] - block[:, None]).max(axis=0) > apart).all(axis=0)
        while len(taken) < count and free.any():
            best = int(free.argmax())
            taken.append(start + best)
            free &= ~near[best]
            free[best] = False  # near itself unless it is not a number
        if len(taken) >= count:
            break
    return torch.from_numpy(order[taken])


def design_neighbors(space: Space, x: Tensor, most: int = 32) -> Tensor:
    """Designs that differ from ``x`` in one discrete variable; of a long integer range the nearest and a spread."""
    rows = []
    for column in space.columns:
        if column.kind == "real":
            continue
        here = x[column.start : column.stop].numpy()
        levels = torch.from_numpy(space.design[column.name].neighbors(here, most))
        changed = x.repeat(len(levels), 1)
        changed[:, column.start : column.stop] = levels
        rows.append(changed)
    return torch.cat(rows)


@dataclass(frozen=True, eq=False)
class SearchRegion:
    """``region`` is None where nothing limits the designs of ``space``."""

    space: Space
    region: Region | None = None

    @cached_property
    def free(self) -> Tensor:
        """The columns (d_x) that may stop anywhere, as far as the search goes: those of real variables."""
        free = torch.ones(self.space.d_x, dtype=torch.bool)
        for column in self.space.columns:
            free[column.start : column.stop] = column.kind == "real"
        return free if self.region is None else free & torch.from_numpy(self.region.free)

    @property
    def constrained(self) -> bool:
        return self.region is not None and self.region.constrained

    def at_border(self, x: Tensor) -> bool:
        """Whether a constraint holds with next to nothing to spare at ``x`` (d_x): there climbs may stall."""
        if self.region is None or not self.constrained:
            return False
        margin = self.region.margins(x.numpy()[None])[0][0]
        return bool((self.region.equal | ~(margin < -BORDER)).any())

    def cloud(self, count: int, seed: int) -> Tensor:
        """Quasi-random designs (N × d_x), in a region at most ``count``."""
        more = OVERSAMPLED if self.constrained else 1  # most regions are large enough to be filled by drawing on
        points = sobol_points(self.space.d_x, more * count, seed)
        if self.region is None:
            return self.admit(points)
        return torch.from_numpy(self.region.points(points.numpy(), count, seed))

    def admit(self, points: Tensor) -> Tensor:
        """Designs with levels that exist near ``points`` (N × d_x); in a region those that can be brought inside."""
        if self.region is not None:
            return torch.from_numpy(self.region.admit(points.numpy()))
        return points if self.space.continuous else torch.from_numpy(self.space.snap(points.numpy()))

    def moved(self, points: Tensor) -> Tensor:
        """``points`` (N × d_x) that differ from a design inside: in a region those that ``free`` can bring inside."""
        if self.region is None:
            return points
        near = self.region.onto(self.region.hold(points.numpy()), self.free.numpy())
        return torch.from_numpy(near[self.region.inside(near)])


@dataclass(frozen=True)
class Budget:
    """How hard to search."""

    screened: int = 768  # quasi-random designs scored by the coarsest approximation
    near: int = 64  # of them drawn around the best given start
    kept: int = 40  # of them scored again
    starts: int = 5  # local searches
    expensive_kept: int = 28  # and of objectives that are expensive
    expensive_starts: int = 4
    iterations: int = 15  # L-BFGS iterations of each
    line_search: int = 5  # evaluations of one line search at most,
    last_line_search: int = 3  # and once the hill is known: what fails then is a kink
    finalists: int = 3  # ends on different hills that go on with the objective itself,
    grid_finalists: int = 2  # of one that needs a grid of contexts, and
    multimodal_finalists: int = 5  # where several are nearly as high
    tolerance: float = 1e-4  # of the objective's spread, at which a climb ends,
    first_tolerance: float = 1e-3  # and the first one, on an approximation
    patience: int | None = None  # evaluations in a row that may bring less than that before a climb ends as well,
    expensive_patience: int = 3  # and the first one on the approximation of an expensive objective
    apart: float = 0.0  # from a better one, at which a climb ends as well
    probes: int = 12  # points of one round of direct search, and
    probe_rounds: int = 10  # rounds of it (objectives with kinks only)
    exchange_rounds: int = 4  # rounds of level exchange (mixed spaces only),
    level_moves: int = 16  # exchanges of one level in a round, and
    exchange_starts: int = 2  # designs that differ in one level and climb
    settling_rounds: int = 4  # moves from the end to designs that can be set (regions only)


BUDGET = Budget()


Array = NDArray[np.float64]


@dataclass(frozen=True)
class Maximum:
    x: Tensor  # d_x
    value: float


@dataclass(frozen=True)
class _Units:
    """Level and spread of the objective over the candidates: what a small change is small against."""

    level: float
    spread: float

    @classmethod
    def of(cls, values: Tensor) -> _Units:
        level = float(values.max())
        return cls(level, max(level - float(values.min()), 1e-6 * abs(level), 1e-300))


def maximize(
    approximations: Sequence[Given],
    space: Space,
    *,
    seed: int,
    starts: Tensor | None = None,
    kinks: bool = False,
    region: Region | None = None,
    budget: Budget = BUDGET,
) -> Maximum:
    """The design (coded, feasible) with the largest objective ``approximations[-1]`` that the budget finds.

    ``starts`` (S × d_x) are designs worth looking at: observed ones, the last suggestion. With ``kinks`` the best end
    is improved by direct search, since gradients stall where pieces of a worst case meet. ``region`` is where to look,
    in place of that of the space's own constraints.
    """
    levels = as_objectives(approximations)
    objective, rough = levels[-1], levels[0]
    fair = levels[max(len(levels) - 2, 0)]
    sieve = levels[max(len(levels) - 3, 1)] if len(levels) > 2 else fair
    expensive = objective.expensive
    if expensive:
        budget = replace(budget, kept=budget.expensive_kept, starts=budget.expensive_starts)
    search_region = SearchRegion(space, space.region if region is None else region)
    if search_region.region is not None and starts is not None and len(starts):
        starts = search_region.admit(starts)
    with torch.no_grad():
        candidates = _screen(rough, search_region, seed, starts, budget)
        values = sieve(candidates)
    units = _Units.of(values)
    starts = candidates[select_diverse(candidates, values, budget.starts, apart=0.05)]
    on_grid = objective.needs_context_grid
    goes_on = on_grid or fair is not objective
    first = replace(budget, tolerance=budget.first_tolerance) if goes_on else budget
    if expensive:
        first = replace(first, patience=budget.expensive_patience, apart=MERGE_DISTANCE)
    ends, values = _climb(fair, starts, search_region, units, first)
    # searches that ended at one place would climb on together, and the hills that they left out might be higher
    finalists = budget.grid_finalists if on_grid else budget.finalists
    finalists = budget.multimodal_finalists if objective.multimodal else finalists
    best = select_diverse(ends, values, finalists, apart=0.01)
    objective = objective.near(ends[best])
    if fair is not objective:
        last = replace(budget, line_search=budget.last_line_search)
        ends, values = _climb(objective, ends[best], search_region, units, last, fair if expensive else None)
    winner = int(values.argmax())
    x, value = ends[winner], float(values[winner])
    if not space.continuous:
        x, value = _exchanged(objective, fair, search_region, x, value, units, budget)
    if (kinks or search_region.at_border(x)) and bool(search_region.free.any()):
        x, value = _probe(objective, search_region, x, value, seed, budget)
    return Maximum(x, value) if search_region.region is None else _settle(objective, search_region.region, x, budget)


def _screen(rough: Objective, search_region: SearchRegion, seed: int, starts: Tensor | None, budget: Budget) -> Tensor:
    """The ``kept`` most promising designs of stage one, and the best given start whatever its rank.

    Half of them are the best, half the best that are apart: the best alone may all lie on one hill, and the rough
    objective need not rank the hills right.
    """
    points = search_region.cloud(budget.screened, seed)
    values = rough(points)
    incumbents = []
    if starts is not None and len(starts):
        at_starts = rough(starts)
        incumbent = starts[at_starts.argmax()]
        generator = torch.Generator().manual_seed(seed)
        noise = torch.randn(budget.near, len(incumbent), generator=generator, dtype=torch.float64)
        # steps from about 0.1 down to 0.001: the approximation need not have the right scale
        steps = torch.logspace(-1, -3, budget.near, dtype=torch.float64)[:, None]
        near = search_region.admit((incumbent + steps * noise).clamp(0.0, 1.0))
        points, values = torch.cat([points, starts, near]), torch.cat([values, at_starts, rough(near)])
        incumbents = [incumbent[None]]
    best = values.argsort(descending=True, stable=True)[: budget.kept // 2]
    kept = torch.zeros(len(points), dtype=torch.bool)
    kept[best] = True
    kept[select_diverse(points, values, budget.kept - len(best), apart=0.1)] = True
    return torch.cat([points[kept], *incumbents])


def _climb(
    objective: Objective,
    start: Tensor,
    search_region: SearchRegion,
    units: _Units,
    budget: Budget,
    guide: Objective | None = None,
) -> tuple[Tensor, Tensor]:
    """Bounded L-BFGS from each row of ``start`` in the free columns, or with a ``guide`` what ``guided`` has; ends
    (S × d_x) and values (S)."""
    free = search_region.free
    if not bool(free.any()):
        with torch.no_grad():
            return start, objective(start)
    if search_region.constrained:
        return _climb_inside(objective, start, search_region, units, budget)
    return _climb_anywhere(objective, start, free, units, budget, guide)


def _climb_anywhere(
    objective: Objective, start: Tensor, free: Tensor, units: _Units, budget: Budget, guide: Objective | None = None
) -> tuple[Tensor, Tensor]:
    """The same where nothing limits the ``free`` columns."""
    negative = _negative(objective, free, units)
    if guide is not None:
        guiding = _negative(guide, free, units)
        ends, costs = trust_region_climbs(negative, guiding, start.numpy(), free.numpy(), budget.tolerance)
    else:
        ends, costs = minimize_lbfgs(
            negative,
            start.numpy(),
            np.zeros(start.shape[1]),
            np.ones(start.shape[1]),
            max_iterations=budget.iterations,
            # a worst case has kinks, where a line search finds nothing: give up soon, the best point seen counts
            max_line_search=budget.line_search,
            ftol=budget.tolerance,
            gtol=1e-4,
            patience=budget.patience,
            apart=budget.apart,
        )
    return torch.from_numpy(ends), torch.from_numpy(units.level - costs * units.spread)


def _climb_inside(
    objective: Objective, start: Tensor, search_region: SearchRegion, units: _Units, budget: Budget
) -> tuple[Tensor, Tensor]:
    """The same under constraints. Most hills have their top inside: all starts climb together as if nothing were
    limited, and only those that leave the region climb again, one by one, from where they come back to it."""
    region, free = search_region.region, search_region.free
    assert region is not None
    negative, begun = _negative(objective, free, units), start
    outside = np.ones(len(start), dtype=np.bool_)
    if not region.equal.any():  # of equations nothing lies inside
        ends = _climb_anywhere(objective, start, free, units, budget)[0].numpy()
        outside = ~region.inside(ends)
        back = ends.copy()
        if outside.any():
            back[outside] = region.onto(ends[outside], free.numpy())
        fine = region.inside(back)
        begun = _better(objective, start, torch.from_numpy(np.where(fine[:, None], back, start.numpy())))[0]
    if outside.any():
        limits = budget.iterations, budget.tolerance
        climbed = climb_inside(negative, begun.numpy()[outside], free.numpy(), region, *limits)
        begun = begun.clone()
        begun[torch.from_numpy(outside)] = torch.from_numpy(climbed)
    return _better(objective, start, begun)


def _negative(objective: Objective, free: Tensor, units: _Units) -> Callable[..., tuple[Array, Array]]:
    """How far points (b × d_x) are below the level (b), in units of the spread, and the slope in the free columns."""
    downhill = free.numpy() / -units.spread

    def negative(points: Array, rows: list[int] | None = None) -> tuple[Array, Array]:
        value, gradient = objective.value_and_gradient(torch.from_numpy(points))
        return (units.level - value.numpy()) / units.spread, gradient.numpy() * downhill

    return negative


def _better(objective: Objective, start: Tensor, end: Tensor) -> tuple[Tensor, Tensor]:
    """Of each row of the two (S × d_x) the one with the larger objective; and that (S)."""
    with torch.no_grad():
        before, after = objective(torch.cat([start, end])).chunk(2)
    improved = after > before
    return torch.where(improved[:, None], end, start), torch.where(improved, after, before)


def _probe(
    objective: Objective, search_region: SearchRegion, x: Tensor, value: float, seed: int, budget: Budget
) -> tuple[Tensor, float]:
    """Direct search around ``x``: Gaussian steps that shrink whenever a round brings nothing."""
    generator = torch.Generator().manual_seed(seed)
    step = 0.05
    for _ in range(budget.probe_rounds):
        noise = torch.randn(budget.probes, len(x), generator=generator, dtype=torch.float64)
        around = search_region.moved((x + step * noise * search_region.free).clamp(0.0, 1.0))
        with torch.no_grad():
            values = objective(around) if len(around) else around.new_full((1,), -torch.inf)
        best = int(values.argmax())
        if float(values[best]) > value:
            x, value = around[best], float(values[best])
        else:
            step *= 0.35
    return x, value


def _exchanged(
    objective: Objective,
    fair: Objective,
    search_region: SearchRegion,
    x: Tensor,
    value: float,
    units: _Units,
    budget: Budget,
) -> tuple[Tensor, float]:
    """Where the exchange of levels leads from ``x`` on the approximation, with the objective itself at the end."""
    with torch.no_grad():
        at_start = float(fair(x[None]))
    moved, _ = _exchange(fair, search_region, x, at_start, units, budget)
    ends, values = _climb(
        objective, moved[None], search_region, units, replace(budget, line_search=budget.last_line_search)
    )
    return (ends[0], float(values[0])) if float(values[0]) > value else (x, value)


def _exchange(
    objective: Objective, search_region: SearchRegion, x: Tensor, value: float, units: _Units, budget: Budget
) -> tuple[Tensor, float]:
    """Coordinate exchange over the levels of the discrete variables, and climbs between.

    Levels are exchanged as long as that alone is better; then the best design and the most promising of the others
    climb, since a level may pay only once the continuous variables have followed; until nothing improves.
    """
    for _ in range(budget.exchange_rounds):
        x, value, neighbors, values = _exchange_levels(objective, search_region, x, value, budget)
        promising = neighbors[values.argsort(descending=True, stable=True)[: budget.exchange_starts]]
        ends, found = _climb(objective, torch.cat([x[None], promising]), search_region, units, budget)
        best = int(found.argmax())
        if not float(found[best]) > value:
            break
        gain, x, value = float(found[best]) - value, ends[best], float(found[best])
        if gain < budget.tolerance * units.spread:
            break
    return x, value


def _exchange_levels(
    objective: Objective, search_region: SearchRegion, x: Tensor, value: float, budget: Budget
) -> tuple[Tensor, float, Tensor, Tensor]:
    """From ``x`` by the best exchange of one level at a time; the end, and the neighbors (k × d_x) that are no better
    with their values (k)."""
    for _ in range(budget.level_moves):
        neighbors = search_region.moved(design_neighbors(search_region.space, x))
        if search_region.region is not None:  # what is bound together must move together
            neighbors = torch.cat([neighbors, torch.from_numpy(search_region.region.neighbors(x.numpy()))])
        with torch.no_grad():
            values = objective(neighbors)
        best = int(values.argmax())
        if not float(values[best]) > value:
            break
        x, value = neighbors[best], float(values[best])
    return x, value, neighbors, values


def _settle(objective: Objective, region: Region, x: Tensor, budget: Budget) -> Maximum:
    """From ``x`` to the best design around it that can be set, and on from there while that is better."""
    value = -torch.inf
    for _ in range(budget.settling_rounds):
        around = torch.from_numpy(region.neighbors(x.numpy()))
        with torch.no_grad():
            values = objective(around)
        best = int(values.argmax())
        if not float(values[best]) > value:
            break
        x, value = around[best], float(values[best])
    return Maximum(x, value)


def best_listed(approximations: Sequence[Given], x: Tensor, budget: Budget = BUDGET) -> Maximum:
    """Of designs ``x`` (N × d_x) the one with the largest objective ``approximations[-1]``, the last of its
    approximations.

    As many as are screened otherwise are ranked by the finest approximation, and the best of these by the objective.
    """
    levels = as_objectives(approximations)
    objective, fair = levels[-1], levels[max(len(levels) - 2, 0)]
    with torch.no_grad():
        for level, kept in ((levels[0], budget.screened), (fair, budget.kept)):
            if len(x) > kept:
                values = torch.cat([level(some) for some in torch.split(x, budget.screened)])
                x = x[values.argsort(descending=True, stable=True)[:kept].sort().values]
        objective = objective.near(x)
        values = objective(x)
    best = int(values.argmax())
    return Maximum(x[best], float(values[best]))
