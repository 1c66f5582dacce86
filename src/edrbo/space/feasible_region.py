"""The designs that may be suggested: those that satisfy the constraints, with some of their variables held if need be.

All points are coded. ``Region`` finds such designs near given ones: by Gauss-Newton steps onto what is violated, many
points at once, clipped to the box, and then, for levels and steps, by the nearest combination that is inside. Whether
linear constraints can be met at all is found out exactly, by a program of real and integer variables.

Points spread over a region walk along random directions, with steps that shrink until they stay inside. Every second
direction leads from one of the points to another, so that walks are as long as the region is: along a thin one a
direction at random leads out at once (an adaptive direction sampler; Gilks, Roberts and George, 1994).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from edrbo.errors import InvalidSpaceError
from edrbo.space.expressions import Constraint, Relation
from edrbo.space.point_tables import Array
from edrbo.space.variables import Column, Design, Variable, columns_of, natural_values, snap

INFEASIBLE = 2  # what SciPy calls a proof that there is no solution
LONGEST = 5.0  # seconds


def solve_linear(
    design: Design, columns: Sequence[Column], affine: Array, equal: NDArray[np.bool_], held: Array
) -> tuple[Array | None, bool]:
    """A coded design (d_x) with slopes · values + constant at most zero, or zero where ``equal`` (J), and whether the
    question was settled: None if none was found, for sure or for want of time.

    ``affine`` is J × (k + 1), the constants last; ``held`` (d_x) has the codes that are given, NaN elsewhere.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    base, unit, low, high, whole = (np.zeros(len(design)) for _ in range(5))
    for k, ((_, variable), column) in enumerate(zip(design, columns, strict=True)):
        if not variable.numeric:
            continue
        base[k], unit[k], high[k], whole[k] = variable.lattice()
        if not np.isnan(held[column.start]):
            (value,) = variable.decode(held[column.start : column.stop][None])
            low[k] = high[k] = (float(value) - base[k]) / unit[k]
            whole[k] = 0
    slopes, constants = affine[:, :-1] * unit, affine[:, :-1] @ base + affine[:, -1]
    size = np.abs(slopes).max(axis=1, initial=1e-300)
    limits = LinearConstraint(slopes / size[:, None], np.where(equal, -constants, -np.inf) / size, -constants / size)
    found = milp(
        np.zeros(len(design)),
        integrality=whole.astype(np.int64),
        bounds=Bounds(low, high),
        constraints=limits,
        options={"time_limit": LONGEST},
    )
    if found.x is None:
        return None, found.status == INFEASIBLE
    values = base + unit * found.x
    row = np.zeros(columns[-1].stop)
    for value, (_, variable), column in zip(values, design, columns, strict=True):
        row[column.start : column.stop] = variable.nearest(float(value))
    return np.where(np.isnan(held), row, held), True


AIM = 1e-12  # how far inside an inequality to stop, in its range
MAX_STEPS = 40
DAMPINGS = (1.0, 0.4)  # of the steps, in a first and a second attempt
RIDGE = 1e-12
Mask = NDArray[np.bool_]


class Relations(Protocol):
    """At most zero or, where ``equal`` (J), zero."""

    equal: Mask

    def margins(self, coded: Array) -> tuple[Array, Array]: ...


def project(relations: Relations, coded: Array, movable: Mask) -> Array:
    """Points (n × d) of the unit box near ``coded`` that violate less, as far as it is found; only ``movable`` columns
    (d) differ. A point that violates nothing stays."""
    coded = np.array(coded)
    if not movable.any() or not len(relations.equal):
        return coded
    for damping in DAMPINGS:
        rows = np.flatnonzero(_missed(relations, relations.margins(coded)[0]) > 0.0)
        if not len(rows):
            break
        # what was violated once is kept level, which ends the zigzag between two; not so in the second attempt
        coded[rows] = _descend(relations, coded[rows], movable, damping, sticky=damping == 1.0)
    return coded


def _missed(relations: Relations, margin: Array) -> Array:
    """By how much each point (n) misses the aim; zero if it is reached."""
    missed = np.where(relations.equal, np.abs(margin), np.maximum(margin + AIM, 0.0))
    worst: Array = np.where(np.isfinite(margin), missed, np.inf).max(axis=1)
    return np.where(worst <= 0.5 * AIM, 0.0, worst)


def _descend(relations: Relations, start: Array, movable: Mask, damping: float, *, sticky: bool) -> Array:
    point, best = start.copy(), start.copy()
    least = np.full(len(start), np.inf)
    held = np.zeros((len(start), len(relations.equal)), dtype=bool)
    rows = np.arange(len(start))
    for _ in range(MAX_STEPS):
        margin, gradient = relations.margins(point[rows])
        missed = _missed(relations, margin)
        better = missed < least[rows]
        best[rows[better]], least[rows[better]] = point[rows[better]], missed[better]
        going = (missed > 0.0) & np.isfinite(missed)
        rows, margin, gradient = rows[going], margin[going], gradient[going]
        if not len(rows):
            break
        active = relations.equal | (margin > -AIM)
        held[rows] = active | held[rows] if sticky else active
        step = _newton(point[rows], margin, gradient * movable, held[rows], relations.equal)
        moved = np.clip(point[rows] + damping * step, 0.0, 1.0)
        changed = np.abs(moved - point[rows]).max(axis=1) > 1e-15  # where it leads nowhere it ends
        point[rows], rows = moved, rows[changed]
    return best


def _newton(point: Array, margin: Array, gradient: Array, active: Mask, equal: Mask) -> Array:
    """The shortest step (n × d) that meets the active relations to first order without leaving the box at once."""
    wanted = np.where(active, np.where(equal, margin, np.maximum(margin + AIM, 0.0)), 0.0)[..., None]
    gradient = np.where(np.isfinite(gradient), gradient, 0.0) * active[..., None]
    blocked = np.zeros(point.shape, dtype=bool)
    step = np.zeros(point.shape)
    for _ in range(3):
        open_columns = gradient * ~blocked[:, None, :]
        gram = open_columns @ open_columns.swapaxes(1, 2)
        diagonal = np.einsum("njj->nj", gram)
        diagonal += np.where(active, RIDGE * (1.0 + diagonal), 1.0)
        step = -(open_columns.swapaxes(1, 2) @ np.linalg.solve(gram, wanted))[..., 0]
        outward = ((point <= 0.0) & (step < 0.0)) | ((point >= 1.0) & (step > 0.0))
        if not outward.any():
            break
        blocked |= outward
    return step


ROUNDS = 24  # directions
SHRINKS = 10  # lengths tried along each
DRAWN_IN = 0.1  # of the way to the middle, before the first step


class Place(Relations, Protocol):
    free: Mask

    def inside(self, coded: Array) -> Mask: ...


def mix(place: Place, points: Array, seed: int) -> Array:
    """``points`` (n × d) inside, moved at random in the free columns; what was inside stays so."""
    random = np.random.default_rng(seed)
    if not place.free.any():
        return points.copy()
    points = _drawn_in(place, points)
    for turn in range(ROUNDS):
        direction = random.standard_normal(points.shape)
        if turn % 2:
            one, other = (points[random.permutation(len(points))] for _ in range(2))
            direction = np.where((one == other).all(axis=1, keepdims=True), direction, other - one)
        direction = _along(place, points, direction * place.free)
        low, high = _box_interval(points, direction)
        rows = np.arange(len(points))
        for _ in range(SHRINKS):
            length = low[rows] + (high[rows] - low[rows]) * random.random(len(rows))
            tried = np.clip(points[rows] + length[:, None] * direction[rows], 0.0, 1.0)
            ok: Mask = np.ones(len(rows), dtype=np.bool_)
            if place.equal.any():
                # what is outside must not be brought to the wall, where points would gather
                ok = np.asarray((place.margins(tried)[0][:, ~place.equal] <= 0.0).all(axis=1))
                tried = project(place, tried, place.free)
            ok = ok & place.inside(tried)
            points[rows[ok]] = tried[ok]
            left = rows[~ok]
            short = length[~ok]
            low[left], high[left] = np.where(short < 0, short, low[left]), np.where(short < 0, high[left], short)
            rows = left
            if not len(rows):
                break
    return points


def _drawn_in(place: Place, points: Array) -> Array:
    """``points`` (n × d) a little toward their middle, those that are inside there too: where several walls meet, most
    directions lead out, and a walk might never leave the corner."""
    nearer = points + DRAWN_IN * (points.mean(axis=0) - points) * place.free
    return np.where(place.inside(nearer)[:, None], nearer, points)


def _along(place: Place, points: Array, direction: Array) -> Array:
    """The part of ``direction`` (n × d) along which the equalities stay what they are."""
    if not place.equal.any():
        return direction
    gradient = place.margins(points)[1][:, place.equal] * place.free
    gradient = np.where(np.isfinite(gradient), gradient, 0.0)
    across = np.linalg.pinv(gradient, rcond=1e-10) @ (gradient @ direction[..., None])
    along: Array = direction - across[..., 0]
    return along


def _box_interval(points: Array, direction: Array) -> tuple[Array, Array]:
    """How far (n each) one can go backward and forward without leaving the unit box."""
    with np.errstate(all="ignore"):
        ends = np.stack([-points / direction, (1.0 - points) / direction])
    flat = np.abs(direction) < 1e-12
    low = np.where(flat, -np.inf, ends.min(axis=0)).max(axis=1)
    high = np.where(flat, np.inf, ends.max(axis=0)).min(axis=1)
    stuck = ~(np.isfinite(low) & np.isfinite(high))
    return np.where(stuck, 0.0, low), np.where(stuck, 0.0, high)


# In units of a relation's range over the box: what counts as inside, for rounding errors must not matter.
TOLERANCE = 1e-9
PROBES = 256  # points from which a first design is looked for,
MORE_PROBES = 4096  # and if none was found
WALK = 12  # moves from level to level
MANY_MOVES = 60  # of one variable each; if there are more, two are not moved together


class Region:
    """``held`` (d_x) has the codes of variables that must not move, NaN elsewhere."""

    def __init__(
        self,
        design: Design,
        constraints: Sequence[Constraint] = (),
        relations: Sequence[Relation] = (),
        held: Array | None = None,
    ) -> None:
        self._design, self._relations = tuple(design), tuple(relations)
        self.constraints = tuple(constraints)
        self._columns = columns_of(self._design)
        self.d_x = self._columns[-1].stop
        self.held = np.full(self.d_x, np.nan) if held is None else held
        self.equal = np.array([relation.equal for relation in relations], dtype=bool)
        self._shift = np.array([2.0 * TOLERANCE * relation.strict for relation in relations])
        self._scale = np.ones(len(relations))
        self._affine = [relation.margin.affine(len(self._design)) for relation in self._relations]
        numeric, smooth = np.zeros((2, self.d_x), dtype=bool)
        for (_, variable), column in zip(self._design, self._columns, strict=True):
            numeric[column.start : column.stop] = variable.numeric
            smooth[column.start : column.stop] = not variable.steps_apart
        self.free: Mask = numeric & np.isnan(self.held)  # what can move between 0 and 1, levels aside
        self.smooth: Mask = smooth & np.isnan(self.held)  # what may stop anywhere
        self._scale = self._ranges()
        self.example = self._find()

    def holding(self, held: Array) -> Region:
        """The same with some columns held; InvalidSpaceError if no design is left."""
        return Region(self._design, self.constraints, self._relations, held)

    # ---------------------------------------------------------------- inside or not

    @property
    def constrained(self) -> bool:
        return bool(self._relations)

    def margins(self, coded: Array) -> tuple[Array, Array]:
        """Of each relation (n × J), at most zero (or zero) inside, and its gradient (n × J × d_x); in their ranges."""
        values, slopes = natural_values(self._design, self._columns, coded)
        margin = np.zeros((len(coded), len(self._relations)))
        gradient = np.zeros((len(coded), len(self._relations), self.d_x))
        starts = [column.start for column in self._columns]
        with np.errstate(all="ignore"):
            for j, relation in enumerate(self._relations):
                affine = self._affine[j]
                if affine is None:
                    value, by_value = relation.margin.evaluate(values)
                else:  # the same, faster
                    value, by_value = values @ affine[:-1] + affine[-1], affine[:-1]
                margin[:, j] = value / self._scale[j] + self._shift[j]
                gradient[:, j, starts] = by_value * slopes / self._scale[j]
        return margin, gradient

    def violation(self, coded: Array) -> Array:
        """By how much the worst relation is missed (n), in its range; infinite where it is not defined."""
        if not self._relations:
            return np.zeros(len(coded))
        missed = self._missed(self.margins(coded)[0])
        worst: Array = missed.max(axis=1)
        return worst

    def _missed(self, margin: Array) -> Array:
        missed = np.where(self.equal, np.abs(margin), np.maximum(margin, 0.0))
        return np.where(np.isfinite(margin), missed, np.inf)

    def inside(self, coded: Array) -> Mask:
        """Which of the designs (n × d_x) satisfy every constraint."""
        found: Mask = self.violation(coded) <= TOLERANCE
        return found

    def broken(self, coded: Array) -> list[Constraint]:
        """The constraints that one design (d_x) breaks."""
        missed = self._missed(self.margins(coded[None])[0])[0] > TOLERANCE
        numbers = {
            relation.constraint for relation, is_broken in zip(self._relations, missed, strict=True) if is_broken
        }
        return [self.constraints[number] for number in sorted(numbers)]

    # ---------------------------------------------------------------- coming inside

    def hold(self, coded: Array) -> Array:
        """With the held columns in place."""
        return np.where(np.isnan(self.held), coded, self.held)

    def onto(self, coded: Array, movable: Mask) -> Array:
        """``coded`` (n × d_x) brought inside, if it is found how, by moving the ``movable`` columns (d_x) alone."""
        return project(self, coded, movable & self.free)

    def repair(self, coded: Array) -> tuple[Array, Mask]:
        """Designs to suggest near ``coded`` (n × d_x), and which of them are inside."""
        near = project(self, self.hold(coded), self.free) if self._relations else self.hold(coded)
        found = self._snap(near)
        if self._relations and self._discrete:
            found = self._walk(project(self, found, self.smooth))
        return found, self.inside(found)

    def admit(self, coded: Array) -> Array:
        """Designs to suggest near ``coded`` (n × d_x), without those for which there is none; at least one."""
        found, ok = self.repair(coded)
        return found[ok] if ok.any() else self.example[None]

    def points(self, cloud: Array, count: int, seed: int) -> Array:
        """Up to ``count`` designs that fill the region: those of the ``cloud`` (m × d_x) inside, then others."""
        cloud = self.hold(cloud)
        snapped = self._snap(cloud)
        ok = self.inside(snapped)
        found = snapped[ok][:count]
        if len(found) == count:
            return found
        wanted = count - len(found)
        near = project(self, cloud[~ok][: 2 * wanted], self.free)
        near = np.concatenate([near[self.inside(near)], found, self.example[None]])
        starts = near[np.arange(wanted) % len(near)]
        moved, fine = self.repair(mix(self, starts, seed))
        return np.concatenate([found, moved[fine], self.example[None]])[:count]

    def neighbors(self, x: Array) -> Array:
        """Designs to suggest around ``x`` (d_x): the nearest, and those a step or two variables' steps away."""
        around = np.concatenate([self._snap(x[None]), *self._moves(self._snap(x[None]), pairs=True)])
        ok = self.inside(around)
        if self.smooth.any():
            around[~ok] = project(self, around[~ok], self.smooth)
        found = around[self.inside(around)]
        return np.unique(np.concatenate([found, self.admit(x[None])]), axis=0)

    @cached_property
    def _discrete(self) -> list[tuple[Variable, Column]]:
        """Variables and columns whose levels can be chosen."""
        pairs = zip((variable for _, variable in self._design), self._columns, strict=True)
        return [(v, c) for v, c in pairs if v.steps_apart and np.isnan(self.held[c.start])]

    def _snap(self, coded: Array) -> Array:
        return self.hold(snap(self._design, self._columns, coded))

    def _walk(self, coded: Array) -> Array:
        """From level to level, always to what misses least, for those (n × d_x) that are outside."""
        coded = coded.copy()
        missed = self.violation(coded)
        for _ in range(WALK):
            rows = np.flatnonzero(missed > TOLERANCE)
            if not len(rows):
                break
            tried = np.stack(self._moves(coded[rows]), axis=1)  # rows × moves × d_x
            flat = project(self, tried.reshape(-1, self.d_x), self.smooth)
            left = self.violation(flat).reshape(len(rows), -1)
            best = left.argmin(axis=1)
            better = left.min(axis=1) < missed[rows]
            chosen = flat.reshape(tried.shape)[np.arange(len(rows)), best]
            coded[rows[better]], missed[rows[better]] = chosen[better], left.min(axis=1)[better]
            missed[rows[~better]] = 0.0  # no way on from here
        return coded

    def _moves(self, coded: Array, pairs: bool = False) -> list[Array]:
        """Designs one level aside in one discrete variable, or in two (n × d_x each)."""
        single = []
        for number, (variable, column) in enumerate(self._discrete):
            for block in variable.moves(coded[:, column.start : column.stop]):
                moved = coded.copy()
                moved[:, column.start : column.stop] = block
                single.append((number, self._snap(moved) if variable.numeric else moved))
        if not pairs or len(single) > MANY_MOVES:
            return [moved for _, moved in single]
        double = [
            np.where(one == coded, other, one)
            for i, (first, one) in enumerate(single)
            for second, other in single[i + 1 :]
            if second != first
        ]
        return [*(moved for _, moved in single), *double]

    # ---------------------------------------------------------------- is there any?

    def _ranges(self) -> Array:
        """How much each relation (J) changes over the box."""
        if not self._relations:
            return np.ones(0)
        margin, gradient = self.margins(self.hold(self._cloud(PROBES)))
        with np.errstate(all="ignore"):
            widths = np.abs(gradient).sum(axis=2)
        found = np.ones(len(self._relations))
        for j in range(len(found)):
            for numbers in (widths[:, j], np.abs(margin[:, j])):
                known = numbers[np.isfinite(numbers) & (numbers > 0.0)]
                if len(known):
                    found[j] = float(np.median(known))
                    break
        return found

    def _cloud(self, count: int) -> Array:
        return np.random.default_rng(count).random((count, self.d_x))

    def _find(self) -> Array:
        """Some design inside; InvalidSpaceError if there is none."""
        center = np.full((1, self.d_x), 0.5)
        closest = center
        for probes in (center, self._cloud(PROBES), self._cloud(MORE_PROBES)):
            found, ok = self.repair(probes)
            if ok.any():
                example: Array = found[ok.argmax()]
                return example
            missed = self.violation(found)
            closest = found[missed.argmin()][None]
            if len(probes) != PROBES:
                continue
            exact, settled = self._exact()
            if exact is not None:
                found, ok = self.repair(exact)
                if ok.any():
                    return np.asarray(found[0])
            elif settled:
                break
        words = ", ".join(repr(constraint.describe()) for constraint in self.broken(closest[0]))
        held = "" if np.isnan(self.held).all() else " with the variables that are held"
        raise InvalidSpaceError(
            f"no design{held} satisfies the constraints; the closest that was found breaks {words}",
            "loosen one of them, or widen the bounds",
        )

    def _exact(self) -> tuple[Array | None, bool]:
        """A solution (1 × d_x) if everything is linear, and whether it is sure that there is one or none."""

        affine = [row for row in self._affine if row is not None]
        if len(affine) < len(self._affine):
            return None, False
        found, settled = solve_linear(self._design, self._columns, np.array(affine), self.equal, self.held)
        return (None if found is None else found[None]), settled
