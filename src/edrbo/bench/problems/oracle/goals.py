"""The exact value and optimum of every goal on a problem, in either direction.

    Expected            the problem's own expectation
    MeanSd, TargetLoss  means of f and f² by Gauss–Legendre quadrature and the atoms
    CVaR, Quantile,     from the distribution of f over contexts (:mod:`edrbo.bench.problems.oracle.goals`)
    ProbabilityBetterThan, ProbabilityWithin
    WorstCase           the least f on a fine lattice of the box, and on finer ones around the best point
    Robust              the dual of the worst distribution in a Wasserstein ball
                        (:mod:`edrbo.bench.problems.oracle.robust`)

All but the first need a problem of three context variables at most, and their optimum one whose designs are all real
(``Problem.knows_goals``). Any other goal is taken on the quadrature rule as its ``value`` says. Values in units of f
are exact to 1e-5 of the range of f over contexts with one context variable, 1e-4 with two (3e-4 for Robust), 3e-3 with
three; probabilities to 1e-4, 5e-4 and 1e-2 (``tests/conformance/test_goal_oracles.py`` and
``research/goal_oracles.py``).

How f(x, ·) is distributed when the context varies: its distribution function, quantiles and tails, without draws.

The cube is cut into cells whose masses under P are exact. Within a cell f is taken as linear, so that its values there
are spread evenly: over f(center) ± slope·width/2 with one context variable, over an interval of the same variance with
several. Atoms of P are cells without width. The error is of the second order in the width of the cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from edrbo.bench.problems.oracle.distributions import Array, Clipped, Product, gauss_legendre, panel_edges
from edrbo.bench.problems.oracle.maximum import evolve, polish, quasi_random_designs
from edrbo.bench.problems.problem import Problem, in_chunks
from edrbo.errors import InvalidValueError
from edrbo.records.goals import (
    CVaR,
    Direction,
    Expected,
    Goal,
    ProbabilityBetterThan,
    ProbabilityWithin,
    Quantile,
    Robust,
    WorstCase,
    sign_of,
)

# Cells a line for one, two, three context variables; a rough look takes a fraction of them.
CELLS = {1: 16384, 2: 256, 3: 48}
ROUGH_CELLS = {1: 256, 2: 40, 3: 12}
NODES_PER_CELL = 4
BISECTIONS = 60
PRUNE_EVERY = 8


@dataclass(frozen=True, eq=False)
class Cells:
    """Of a distribution: for each context variable the cells' centers (their conditional means) and widths, and all
    masses."""

    centers: tuple[Array, ...]
    widths: tuple[Array, ...]
    masses: Array  # (m_1 ⋯ m_d_c,)


@lru_cache(maxsize=32)
def cells_of(context_distribution: Product, breaks: tuple[float, ...], rough: bool = False) -> Cells:
    sizes = ROUGH_CELLS if rough else CELLS
    if context_distribution.d_c not in sizes:
        raise InvalidValueError(
            f"the goals over {context_distribution.d_c} context variables are not known exactly",
            "problems of one to three have them",
        )
    lines = [_line(component, breaks, sizes[context_distribution.d_c]) for component in context_distribution.components]
    masses = lines[0][2]
    for _, _, more in lines[1:]:
        masses = masses[..., None] * more
    return Cells(tuple(line[0] for line in lines), tuple(line[1] for line in lines), masses.reshape(-1))


def _line(context_distribution: Clipped, breaks: tuple[float, ...], size: int) -> tuple[Array, Array, Array]:
    """Centers, widths and masses of one context variable, atoms among them; cells without mass are left out."""
    edges = panel_edges((*breaks, *context_distribution.base.kinks()), size)
    nodes, weights = gauss_legendre(edges, NODES_PER_CELL)
    density = (weights * context_distribution.density(nodes)).reshape(len(edges) - 1, -1)
    masses = np.diff(context_distribution.base.cdf(edges))
    values, points = context_distribution.base.points()  # which are edges: each counts for the cell that it ends
    for value, mass in zip(values[(values > 0) & (values <= 1)], points[(values > 0) & (values <= 1)], strict=True):
        cell = int(np.searchsorted(edges, value)) - 1
        masses[cell] = max(0.0, masses[cell] - mass)
    middle = (edges[1:] + edges[:-1]) / 2
    moments, totals = (density * nodes.reshape(density.shape)).sum(1), density.sum(1)
    centers = np.where(totals > 0, moments / np.where(totals > 0, totals, 1.0), middle)
    locations, atoms = context_distribution.atoms()
    centers, masses = np.concatenate([centers, locations]), np.concatenate([masses, atoms])
    widths = np.concatenate([np.diff(edges), 0.0 * locations])
    order = np.argsort(centers, kind="stable")
    order = order[masses[order] > 0]
    return centers[order], widths[order], masses[order] / masses.sum()


@dataclass(frozen=True, eq=False)
class OutcomeSpread:
    """f of one design as a mixture of even spreads: ``centers`` ± ``halves`` with ``masses``, (m,) each."""

    centers: Array
    halves: Array
    masses: Array

    @property
    def mean(self) -> float:
        return float(self.centers @ self.masses)

    @property
    def variance(self) -> float:
        return float(((self.centers - self.mean) ** 2 + self.halves**2 / 3) @ self.masses)

    def share_below(self, level: float) -> float:
        """P(f < level)."""
        above = level - (self.centers - self.halves)
        width = 2 * self.halves
        share = np.where(width > 0, above / np.where(width > 0, width, 1.0), above > 0)
        return float(np.clip(share, 0.0, 1.0) @ self.masses)

    def mean_below(self, level: float) -> float:
        """E max(level − f, 0)."""
        short = level - self.centers
        inside = np.abs(short) < self.halves
        halves = np.where(inside, self.halves, 1.0)
        return float(np.where(inside, (short + halves) ** 2 / (4 * halves), np.maximum(short, 0)) @ self.masses)

    def quantile(self, share: float) -> float:
        """The least value that f stays at or below with probability ``share``.

        By bisection; now and then cells that lie wholly on one side of the bracket are taken out of it.
        """
        wanted, part = share * (1 - 1e-12), self
        low, high = float((self.centers - self.halves).min()), float((self.centers + self.halves).max())
        for step in range(1, BISECTIONS + 1):
            middle = (low + high) / 2
            # A hair above the middle, so that a plateau of f counts as reached where it lies.
            if part.share_below(float(np.nextafter(middle, np.inf))) >= wanted:
                high = middle
            else:
                low = middle
            if step % PRUNE_EVERY == 0:
                below = part.centers + part.halves < low
                wanted -= float(part.masses[below].sum())
                kept = ~below & (part.centers - part.halves <= np.nextafter(high, np.inf))
                part = OutcomeSpread(part.centers[kept], part.halves[kept], part.masses[kept])
        return high

    def tail_mean(self, share: float) -> float:
        """The mean of f over its lowest ``share``: max_t t − E max(t − f, 0)/share, reached at the quantile."""
        level = self.quantile(share)
        return level - self.mean_below(level) / share


def spread_of(values: Array, cells: Cells) -> OutcomeSpread:
    """The spread of f from its values (m_1 ⋯ m_d_c,) at the cells' centers."""
    shape = tuple(len(line) for line in cells.centers)
    table = values.reshape(shape)
    variance = np.zeros(shape)
    for axis, (line, widths) in enumerate(zip(cells.centers, cells.widths, strict=True)):
        if len(line) > 1:
            slope = np.gradient(table, line, axis=axis)
            variance += (slope * widths.reshape([-1 if k == axis else 1 for k in range(len(shape))])) ** 2 / 12
    return OutcomeSpread(values, np.sqrt(3 * variance).reshape(-1), cells.masses)


# For one, two, three context variables: (panels, nodes a panel) of the quadrature rule, points a line of the lattice.
RULE = {1: (64, 16), 2: (8, 8), 3: (4, 5)}
LATTICE = {1: 16385, 2: 129, 3: 33}
ZOOMS, ZOOM_POINTS = 4, 17
STARTS, LAST = 6, 2  # designs that are polished roughly, and then exactly
SEARCH = {1: 14, 2: 10, 3: 8}  # quasi-random designs, as powers of two
POPULATION = {1: 100, 2: 40, 3: 40}  # of differential evolution
POPULATION_FEWEST, POPULATION_OTHERWISE = 8, 40  # of both with more of them
APART = 0.01  # between designs that are polished: less than a ripple of Ackley's function


def need_goal(problem: Problem, goal: Goal) -> None:
    """InvalidValueError if regrets under ``goal`` are not known exactly on this problem."""
    if not isinstance(goal, Expected) and not problem.knows_goals:
        raise InvalidValueError(
            f"the best design of {problem.name} under {goal.to_text()} is not known exactly",
            "measure goals on the nine problems and the further ones; on this one the goal is expected",
        )
    if isinstance(goal, WorstCase | Robust) and not problem.independent:
        raise InvalidValueError(
            f"{goal.to_text()} is not known on {problem.name}, whose contexts are a list or draws",
            "other goals are; so is this one where contexts are independent",
        )


def goal_value(problem: Problem, goal: Goal, x: Array, direction: Direction = "maximize") -> Array:
    """(…, d_x) → (…), in the goal's own units."""
    x = np.asarray(x, dtype=float)
    flat = x.reshape(-1, problem.d_x)
    return _value(problem, goal, flat, direction).reshape(x.shape[:-1])


def goal_optimum(problem: Problem, goal: Goal, direction: Direction = "maximize") -> tuple[Array, float]:
    """A best design (d_x,) under the goal and its value."""
    need_goal(problem, goal)
    return _optimum(problem, goal, direction)


def goal_regret(problem: Problem, goal: Goal, x: Array, direction: Direction = "maximize") -> Array:
    """How much worse designs (…, d_x) are than the best one, never negative: the best one is found by a search."""
    _, best = goal_optimum(problem, goal, direction)
    return np.maximum(0.0, goal.sense(direction) * (best - goal_value(problem, goal, x, direction)))


@lru_cache(maxsize=256)
def goal_range(problem: Problem, goal: Goal, direction: Direction = "maximize") -> float:
    """The best value less the worst of a quasi-random set: a scale for comparing regrets."""
    values = goal.sense(direction) * rough_value(problem, goal, quasi_random_designs(problem.d_x, 9), direction)
    return abs(goal_optimum(problem, goal, direction)[1] - goal.sense(direction) * float(values.min()))


def _value(problem: Problem, goal: Goal, x: Array, direction: Direction, rough: bool = False) -> Array:
    """(n, d_x) → (n,); ``rough`` on fewer cells and moves, but as continuous in x as the exact one."""
    sign = sign_of(direction)
    match goal:
        case Expected():
            return problem.expected(x)
        case WorstCase():
            return np.array([_least(problem, goal, one[None], sign) for one in x])
        case Robust():
            return sign * _mirrored(problem, sign).worst_case(x, _radius(goal), rough)
        case _ if not isinstance(problem.context_distribution, Product):
            return _over_nodes(problem, goal, x, direction)
        case CVaR() | Quantile() | ProbabilityBetterThan() | ProbabilityWithin():
            return np.array([_of_spread(goal, _spread(problem, one[None], sign, rough), sign) for one in x])
        case _:
            return _by_quadrature(problem, goal, x, direction)


def _radius(goal: Robust) -> float:
    if goal.distance != "wasserstein":
        raise InvalidValueError(
            f"the worst distribution within a {goal.distance} ball is not known exactly",
            "take the Wasserstein distance",
        )
    return goal.radius


@lru_cache(maxsize=64)
def _mirrored(problem: Problem, sign: float) -> Problem:
    """The problem of sign·f, which is maximized."""
    return problem if sign > 0 else problem.mirrored()


def _spread(problem: Problem, x: Array, sign: float, rough: bool) -> OutcomeSpread:
    assert isinstance(problem.context_distribution, Product)
    cells = cells_of(problem.context_distribution, problem.breaks, rough)
    return spread_of(sign * problem.over_grid(x, cells.centers)[0], cells)


def _of_spread(goal: Goal, spread: OutcomeSpread, sign: float) -> float:
    """The value of a goal that looks at the distribution of f alone; ``spread`` is that of sign·f."""
    match goal:
        case CVaR(level=level):
            return sign * spread.tail_mean(level)
        case Quantile(level=level):
            return sign * spread.quantile(level)
        case ProbabilityBetterThan(spec=spec):
            return 1 - spread.share_below(sign * spec)
        case ProbabilityWithin(low=low, high=high):
            ends = sorted((sign * low, sign * high))
            return spread.share_below(float(np.nextafter(ends[1], np.inf))) - spread.share_below(ends[0])
        case _:
            raise AssertionError(goal)


def _over_nodes(problem: Problem, goal: Goal, x: Array, direction: Direction) -> Array:
    """The goal's own ``value`` of the outcomes in every context of a list."""
    nodes, weights = problem.context_distribution.quadrature(problem.breaks)
    return in_chunks(
        lambda part: np.asarray(goal.value(problem.objective(part[:, None, :], nodes), weights, direction)),
        x,
        len(nodes),
    )


def _by_quadrature(problem: Problem, goal: Goal, x: Array, direction: Direction) -> Array:
    """The goal's own ``value`` on the nodes of the rule, and on a lattice of the box if it looks there."""
    if problem.d_c not in RULE:
        raise InvalidValueError(
            f"the goals over {problem.d_c} context variables are not known exactly",
            "problems of one to three have them",
        )
    assert isinstance(problem.context_distribution, Product)
    lines, weights = _rule(problem.context_distribution, problem.breaks)
    lattice = [np.linspace(0.0, 1.0, LATTICE[problem.d_c])] * problem.d_c
    values = []
    for one in x:
        outcomes = problem.over_grid(one[None], lines)
        mass = weights
        if goal.over_box:
            extra = problem.over_grid(one[None], lattice)
            outcomes = np.concatenate([outcomes, extra], axis=1)
            mass = np.append(weights, np.zeros(extra.shape[1]))
        values.append(np.asarray(goal.value(outcomes, mass, direction))[0])
    return np.array(values, dtype=np.float64)


@lru_cache(maxsize=32)
def _rule(context_distribution: Product, breaks: tuple[float, ...]) -> tuple[tuple[Array, ...], Array]:
    """Lines of nodes and the weights of their tensor product."""
    rules = [
        component.quadrature(breaks, *RULE[context_distribution.d_c]) for component in context_distribution.components
    ]
    weights = rules[0][1]
    for _, more in rules[1:]:
        weights = weights[..., None] * more
    return tuple(line for line, _ in rules), weights.reshape(-1)


def _least(problem: Problem, goal: WorstCase, x: Array, sign: float) -> float:
    """The worst f over the box, or over the support of P: on a lattice, then on finer ones around its best point."""
    if problem.d_c not in LATTICE:
        raise InvalidValueError(f"the worst case over {problem.d_c} context variables is not known exactly")
    ends = [(0.0, 1.0)] * problem.d_c
    if goal.over == "seen":
        ends = [
            tuple(context_distribution.quantile(np.array([0.0, 1.0])).tolist())
            for context_distribution in problem.context_distribution.components
        ]
    lines, least = [np.linspace(*both, LATTICE[problem.d_c]) for both in ends], np.inf
    for _ in range(1 + ZOOMS):
        values = sign * problem.over_grid(x, lines)[0]
        least = min(least, float(values.min()))
        places = map(int, np.unravel_index(int(values.argmin()), [len(line) for line in lines]))
        around = [line[max(0, k - 1) : k + 2] for line, k in zip(lines, places, strict=True)]
        lines = [np.linspace(part[0], part[-1], ZOOM_POINTS) for part in around]
    return sign * least


def rough_value(problem: Problem, goal: Goal, x: Array, direction: Direction) -> Array:
    """The value on few cells, for many designs at once: good enough to choose designs worth a closer look."""
    sign = sign_of(direction)
    if isinstance(goal, Expected):
        return problem.expected(x)
    if isinstance(goal, Robust):
        return sign * _mirrored(problem, sign).worst_case(x, _radius(goal), rough=True)
    if not isinstance(problem.context_distribution, Product):
        return _over_nodes(problem, goal, x, direction)
    cells = cells_of(problem.context_distribution, problem.breaks, rough=True)
    outcomes = problem.over_grid(x, cells.centers)
    return np.asarray(goal.value(outcomes, cells.masses, direction), dtype=np.float64)


@lru_cache(maxsize=256)
def _optimum(problem: Problem, goal: Goal, direction: Direction) -> tuple[Array, float]:
    sense = goal.sense(direction)
    if isinstance(goal, Expected):
        best = _mirrored(problem, sense)
        return best.x_star, sense * best.optimum
    if isinstance(goal, Robust):
        x, value = _mirrored(problem, sense).robust_optimum(_radius(goal))
        return x, sense * value

    x = problem.searched(f"{goal.to_text()}, {direction}", lambda: _search(problem, goal, direction))
    return x, float(_value(problem, goal, x[None], direction)[0])


def _search(problem: Problem, goal: Goal, direction: Direction) -> Array:
    sense = goal.sense(direction)

    def many(x: Array) -> Array:
        return np.asarray(sense * rough_value(problem, goal, x, direction))

    def roughly(x: Array) -> Array:
        return np.asarray(sense * _value(problem, goal, x[None], direction, rough=True)[0])

    def exactly(x: Array) -> Array:
        return np.asarray(sense * _value(problem, goal, x[None], direction)[0])

    known = _mirrored(problem, sign_of(direction)).x_star
    designs = np.vstack([quasi_random_designs(problem.d_x, SEARCH.get(problem.d_c, POPULATION_FEWEST)), known])
    starts = [known, *_select_diverse(designs, many(designs))]
    if problem.d_x > 1:
        starts.append(evolve(many, problem.d_x, POPULATION.get(problem.d_c, POPULATION_OTHERWISE)))
    ends = [polish(roughly, start, 100 * problem.d_x)[0] for start in starts]
    ranked = sorted(ends, key=lambda x: -float(exactly(x)))
    found = [polish(exactly, x, 40 * problem.d_x, size=5e-3) for x in ranked[:LAST]]
    x, _ = max(found, key=lambda end: end[1])
    return x


def _select_diverse(designs: Array, values: Array) -> list[Array]:
    """The best designs, no two of them closer than ``APART``."""
    chosen: list[Array] = []
    for x in designs[np.argsort(-values, kind="stable")]:
        if all(np.abs(x - other).max() > APART for other in chosen):
            chosen.append(x)
        if len(chosen) == STARTS:
            break
    return chosen
