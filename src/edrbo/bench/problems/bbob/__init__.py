"""A family of problems from COCO's bbob suite, some of the inputs being contexts: 24 functions × three sizes, and noisy
ones.

    f(x, c) = g(z*) − g(z),  z = 10 (x, c) − 5

with g the function of the suite on [−5, 5]^d and z* where it is least (Hansen, Finck, Ros and Auger, "Real-parameter
black-box optimization benchmarking 2009: noiseless functions definitions"; the package ``coco-experiment``). The last
d_c inputs are contexts. So f is at most 0, and E f less, since no design is best in all contexts.

Names say function, designs + contexts and instance: ``bbob-f03-2+1-1``; with ``-noisy`` behind, noise of 5 % of what
the best design has more than the median one is added.

The distribution of the first context goes round normal, bimodal, skewed and discrete, a second one is discrete, so that
a rule of few nodes is exact. Functions with steps or finer waves
than a quadrature rule can follow (``ROUGH``) have discrete ones alone, under which every oracle is an exact sum.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Literal

import numpy as np

from edrbo.bench.problems.oracle.distributions import (
    AnyArray,
    Array,
    Clipped,
    Discrete,
    Mixture,
    Normal,
    Product,
    clipped_burr,
    clipped_normal,
)
from edrbo.bench.problems.problem import Problem, Reference, in_chunks
from edrbo.errors import InvalidValueError, MissingExtraError

Part = Literal["all", "choose", "confirm"]

SIZES = ((2, 1), (3, 1), (4, 2))  # designs, contexts
INSTANCES = (1,)  # another one needs its rows in reference.csv
# Split once, before any method was run on them: rules are chosen on the one half and confirmed on the other. Both have
# functions of all five groups of the suite (1–5, 6–9, 10–14, 15–19, 20–24), and the two or three versions of one
# function are on one side: 2 and 10, 3, 4 and 15, 8, 9 and 19, 17 and 18, 21 and 22.
CHOOSE = (1, 3, 4, 6, 7, 11, 14, 15, 17, 18, 21, 22)
CONFIRM = (2, 5, 8, 9, 10, 12, 13, 16, 19, 20, 23, 24)
ROUGH = (7, 16, 19, 23)
TITLES = {
    1: "sphere",
    2: "ellipsoid",
    3: "Rastrigin",
    4: "Büche-Rastrigin",
    5: "linear slope",
    6: "attractive sector",
    7: "step ellipsoid",
    8: "Rosenbrock",
    9: "Rosenbrock, rotated",
    10: "ellipsoid, rotated",
    11: "discus",
    12: "bent cigar",
    13: "sharp ridge",
    14: "different powers",
    15: "Rastrigin, rotated",
    16: "Weierstrass",
    17: "Schaffer F7",
    18: "Schaffer F7, ill-conditioned",
    19: "Griewank-Rosenbrock",
    20: "Schwefel",
    21: "Gallagher, 101 peaks",
    22: "Gallagher, 21 peaks",
    23: "Katsuura",
    24: "Lunacek bi-Rastrigin",
}
DISCRETE = Clipped(Discrete((0.1, 0.3, 0.45, 0.7, 0.95), (0.3, 0.25, 0.2, 0.15, 0.1)))
CONTEXTS = (
    clipped_normal(0.5, 0.2),
    Clipped(Mixture((Normal(0.25, 0.08), Normal(0.75, 0.1)), (0.6, 0.4))),
    clipped_burr(2.0, 8.0),
    DISCRETE,
)
# Panels and nodes a panel of each context; the second where the first would make more nodes than MOST_NODES.
FINE, PLAIN, MOST_NODES = (64, 16), (16, 8), 8192
NOISE_SHARE = 0.05
STEP = 2e-4  # of central differences of fourth order, in the unit cube


@dataclass(frozen=True)
class Function:
    """f of one member: (…, d_x), (…, d_c) → (…).

    Complex steps come in, as from analytic functions, and are answered to first order: their slope is a difference
    quotient, since the suite knows real numbers alone.
    """

    number: int
    d_x: int
    d_c: int
    instance: int

    def __call__(self, x: AnyArray, c: AnyArray) -> AnyArray:
        shape = np.broadcast_shapes(x.shape[:-1], c.shape[:-1])
        parts = [np.broadcast_to(part, (*shape, part.shape[-1])) for part in (x, c)]
        inputs = np.concatenate(parts, axis=-1).reshape(-1, self.d_x + self.d_c)
        if not np.iscomplexobj(inputs):
            return self._real(inputs).reshape(shape)
        points, steps = inputs.real, inputs.imag
        lengths = np.sqrt(np.square(steps).sum(axis=-1))
        toward = STEP * steps / np.where(lengths > 0, lengths, 1.0)[:, None]
        near = self._real(points + toward) - self._real(points - toward)
        far = self._real(points + 2 * toward) - self._real(points - 2 * toward)
        slopes = (8 * near - far) / (12 * STEP)
        return np.asarray(self._real(points) + 1j * lengths * slopes).reshape(shape)

    def average(self, x: AnyArray, context_distribution: Product) -> AnyArray:
        """E f under the distribution: (n, d_x) → (n,)."""
        fine = (
            math.prod(len(component.quadrature((), *FINE)[1]) for component in context_distribution.components)
            <= MOST_NODES
        )
        nodes, weights = context_distribution.quadrature((), *(FINE if fine else PLAIN))
        return in_chunks(lambda part: self(part[:, None, :], nodes) @ weights, x, len(weights))

    def best_input(self) -> Array:
        """Where f is largest, (d_x + d_c,): designs and contexts."""
        return np.asarray((self._bare.best_parameter() + 5.0) / 10.0, dtype=float)

    @property
    def _bare(self) -> Any:
        return _bare(self.number, self.d_x + self.d_c, self.instance)

    def _real(self, inputs: Array) -> Array:
        return np.asarray(self._bare.best_value() - self._bare(np.ascontiguousarray(10.0 * inputs - 5.0)))


@lru_cache(maxsize=16)
def _bare(number: int, dimension: int, instance: int) -> Any:
    try:
        from cocoex import BareProblem
    except ModuleNotFoundError:
        raise MissingExtraError("the bbob functions need coco-experiment", "pip install 'edrbo[bbob]'") from None
    return BareProblem("bbob", number, dimension, instance)


@dataclass(frozen=True)
class Member:
    """One problem of the family."""

    number: int
    d_x: int
    d_c: int
    instance: int
    noisy: bool = False

    @property
    def name(self) -> str:
        return f"bbob-f{self.number:02d}-{self.d_x}+{self.d_c}-{self.instance}" + self.noisy * "-noisy"

    @property
    def context_distribution(self) -> Product:
        """The distribution of the contexts."""
        if self.number in ROUGH:
            return Product((DISCRETE,) * self.d_c)
        first = self.number + SIZES.index((self.d_x, self.d_c)) + self.instance
        return Product((CONTEXTS[first % len(CONTEXTS)], DISCRETE)[: self.d_c])

    @property
    def function(self) -> Function:
        return Function(self.number, self.d_x, self.d_c, self.instance)


def members(part: Part = "all", noisy: bool = False) -> list[Member]:
    """All of a half, or of both. The noisy ones are those of the first instance."""
    numbers = {"all": tuple(sorted((*CHOOSE, *CONFIRM))), "choose": CHOOSE, "confirm": CONFIRM}[part]
    instances = INSTANCES[:1] if noisy else INSTANCES
    return [Member(number, *size, instance, noisy) for instance in instances for size in SIZES for number in numbers]


def problem_of(member: Member) -> Problem:
    """The problem as it is searched, without what is known of its optimum."""
    distributions = " × ".join(component.describe() for component in member.context_distribution.components)
    return Problem(
        name=member.name,
        description=f"{TITLES[member.number]} (bbob f{member.number}, instance {member.instance}), contexts: "
        f"{distributions}.",
        d_x=member.d_x,
        context_distribution=member.context_distribution,
        objective=member.function,
        expectation=member.function.average,
    )


def bbob_problem(member: Member) -> Problem:
    found = references()[replace(member, noisy=False).name]
    problem = replace(problem_of(member), reference=Reference(member.context_distribution, found.x_star, found.lowest))
    if not member.noisy:
        return problem
    return replace(problem, noise_sd=NOISE_SHARE * (problem.optimum - found.median))


@dataclass(frozen=True)
class Found:
    """A line of reference.csv, which ``research/bbob_reference.py`` writes: x*, E f there, the least and the median
    E f of 1,024 quasi-random designs, and how far the quadrature of E f is off at most, as a share of the range."""

    x_star: tuple[float, ...]
    optimum: float
    lowest: float
    median: float
    accuracy: float


@cache
def references() -> dict[str, Found]:
    text = files("edrbo.bench.problems.bbob").joinpath("reference.csv").read_text(encoding="utf-8")
    rows = {row["problem"]: row for row in csv.DictReader(text.splitlines())}
    if missing := [member.name for member in members() if member.name not in rows]:
        raise InvalidValueError(f"reference.csv lacks {', '.join(missing)}", "run research/bbob_reference.py")
    return {
        name: Found(
            tuple(map(float, row["x_star"].split())),
            *(float(row[key]) for key in ("optimum", "lowest", "median", "accuracy")),
        )
        for name, row in rows.items()
    }
