"""What a benchmark problem is: one function f, one context distribution, and exact oracles made from the two.

Symbols: x design (…, d_x), c context (…, d_c), f(x, c) outcome, P distribution of c, E f(x) = E_{c~P} f(x, c),
x* a maximizer of E f over the unit cube. Observations and oracles come from the same f.

Gradients are taken by the complex step, ∂g/∂x_j = Im g(x + ih e_j)/h with h = 1e-30: exact to rounding and
free of a step-size choice, as long as f is written with analytic NumPy functions and comparisons of real
parts (``np.minimum`` and ``np.maximum`` do that, ``np.abs`` does not).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from edrbo.bench.problems.oracle.distributions import AnyArray, Array, JointDistribution, Product, tensor_nodes
from edrbo.bench.problems.oracle.maximum import (
    SEARCH_SIZE_LOG2,
    climb,
    maximize_over_levels,
    maximize_rough,
    maximize_smooth,
    polish,
    quasi_random_designs,
    real_columns,
)
from edrbo.bench.problems.oracle.robust import OverGrid, expected_loss
from edrbo.bench.problems.oracle.search import searched
from edrbo.errors import InvalidContextError, InvalidDesignError, InvalidValueError
from edrbo.space import Space

COMPLEX_STEP = 1e-30
DIFFERENCE = 1e-5  # of a simulator, in the unit cube: large against its rounding, small against its features
# Large enough to keep the interpreter out of the loop, small enough for the cache.
CHUNK_ELEMENTS = 1 << 18
# Quasi-random designs, as powers of two, among which a robust optimum is looked for: with several context variables
# the worst case of one takes some ten milliseconds.
SEARCH, ROUGH_SEARCH = 10, 8

Objective = Callable[[AnyArray, AnyArray], AnyArray]
Expectation = Callable[[AnyArray, Product], AnyArray]


@dataclass(frozen=True)
class Reference:
    """What a longer search found beforehand, and the ``context_distribution`` it holds for: a maximizer of E f, (d_x,),
    and the least E f of the quasi-random designs."""

    context_distribution: JointDistribution
    x_star: tuple[float, ...]
    lowest: float


@dataclass(frozen=True)
class Problem:
    """Maximize E f(x) over x in [0, 1]^d_x.

    ``objective(x, c)`` broadcasts (…, d_x) with (…, d_c) to (…). ``expectation(x, context_distribution)`` maps (n, d_x)
    to (n,) by a product rule or closed form where there is one; without it the tensor quadrature rule is used, with
    panels ending at ``breaks``. ``landmark`` is a design worth trying first when E f is maximized (a symmetry point).
    ``grid_objective`` is f over tensor grids of contexts where that is much cheaper than point by point. ``noise_sd``
    is the standard deviation of the observation noise; oracles never contain it. ``data`` says which data a problem
    stands on when it is not a formula.

    ``design`` is the space of designs where some are whole numbers or choices; x is then what the space codes, d_x its
    coded width, and a point between levels stands for the nearest design. ``objective`` and ``expectation`` are given
    coded designs alone (and complex steps from them in real variables).

    ``reference`` spares the search for x* where it would take long; under another distribution there is a search all
    the same.

    An ``objective`` that is not ``analytic`` (any simulator) is climbed by differences instead of complex steps, and
    once more without any.
    """

    name: str
    description: str
    d_x: int
    context_distribution: JointDistribution
    objective: Objective
    expectation: Expectation | None = None
    breaks: tuple[float, ...] = ()
    landmark: tuple[float, ...] | None = None
    grid_objective: OverGrid | None = None
    noise_sd: float = 0.0
    data: str | None = None
    design: Space | None = None
    reference: Reference | None = None
    analytic: bool = True

    def __post_init__(self) -> None:
        if self.design is not None and (self.design.d_x != self.d_x or self.design.d_c or self.design.constraints):
            raise InvalidValueError(
                f"the design space of {self.name} has coded width {self.design.d_x}, d_x is {self.d_x}",
                "give a space of d_x coded columns, without contexts and constraints",
            )
        if not (np.isfinite(self.noise_sd) and self.noise_sd >= 0):
            raise InvalidValueError(f"noise_sd must be a non-negative number, got {self.noise_sd}.")

    @property
    def d_c(self) -> int:
        return self.context_distribution.d_c

    @property
    def knows_goals(self) -> bool:
        """Whether best designs for other goals than the mean are known: all designs real, three contexts at most, or
        any number of them in a list."""
        return self.design is None and (self.d_c <= 3 or not self.independent)

    @property
    def independent(self) -> bool:
        """Whether contexts are independent: then worst cases over the box and over distributions are known, too."""
        return isinstance(self.context_distribution, Product)

    def snap(self, x: Array) -> Array:
        """Points of the unit cube (…, d_x) → the designs they stand for."""
        return x if self.design is None else self.design.snap(x)

    def quasi_random(self, log2_size: int = SEARCH_SIZE_LOG2) -> Array:
        """2^log2_size designs that fill the space, shape (n, d_x)."""
        return self.snap(quasi_random_designs(self.d_x, log2_size))

    @property
    def bounds(self) -> Array:
        """Bounds of the design, 2 × d_x: lower row, upper row."""
        return np.stack([np.zeros(self.d_x), np.ones(self.d_x)])

    def evaluate(self, x: Array, c: Array) -> Array:
        """f(x, c) without noise: (…, d_x), (…, d_c) → (…)."""
        x, c = self._designs(x), np.asarray(c, dtype=float)
        if c.ndim == 0 or c.shape[-1] != self.d_c:
            raise InvalidContextError(
                f"{self.name} takes contexts of length {self.d_c}, got shape {c.shape}.",
                "the last dimension runs over the context variables",
            )
        return np.asarray(self.objective(x, c))

    def observe(self, x: Array, c: Array, rng: np.random.Generator) -> Array:
        """What a learner sees: f(x, c) plus noise of standard deviation ``noise_sd``."""
        value = self.evaluate(x, c)
        return value + self.noise_sd * rng.standard_normal(value.shape) if self.noise_sd else value

    def sample_contexts(self, n: int, rng: np.random.Generator) -> Array:
        """n contexts drawn from P, shape (n, d_c)."""
        return self.context_distribution.sample(n, rng)

    def expected(self, x: Array, context_distribution: JointDistribution | None = None) -> Array:
        """E f(x) under P, or under another ``context_distribution``: (…, d_x) → (…), exact."""
        x = self._designs(x)
        return self._expectation(x.reshape(-1, self.d_x), context_distribution).reshape(x.shape[:-1])

    def expected_and_gradient(
        self, x: Array, context_distribution: JointDistribution | None = None
    ) -> tuple[Array, Array]:
        """E f(x) and its gradient: (…, d_x) → (…), (…, d_x); zero along whole numbers and choices."""
        x = self._designs(x)
        flat = x.reshape(-1, self.d_x)
        if not self.analytic:
            values, gradient = self._by_differences(flat, context_distribution)
            return values.reshape(x.shape[:-1]), gradient.reshape(x.shape)
        steps = flat[None] + 1j * COMPLEX_STEP * np.eye(self.d_x)[:, None, :]
        values = self._expectation(steps.reshape(-1, self.d_x), context_distribution).reshape(self.d_x, -1)
        gradient = self._along_reals(values.imag.T / COMPLEX_STEP)
        return values[0].real.reshape(x.shape[:-1]), gradient.reshape(x.shape)

    def _by_differences(self, x: Array, context_distribution: JointDistribution | None) -> tuple[Array, Array]:
        """The same (n, d_x) → (n,), (n, d_x) from values alone, at points of the cube."""
        steps = DIFFERENCE * np.eye(self.d_x)[:, None, :]
        ends = [np.clip(x[None] + side * steps, 0.0, 1.0) for side in (1.0, -1.0)]
        high, low = (self._expectation(end.reshape(-1, self.d_x), context_distribution) for end in ends)
        width = (ends[0] - ends[1]).sum(-1)
        gradient = self._along_reals(((high - low).reshape(self.d_x, -1) / width).T)
        return np.asarray(self._expectation(x, context_distribution)), gradient

    def _along_reals(self, gradient: Array) -> Array:
        return gradient if self.design is None else gradient * real_columns(self.design)

    def standard_error(self, x: Array, other: Array | None = None) -> Array:
        """Of E f(x), or of E f(``other``) − E f(x), which is less since both are taken over the same contexts:
        (…, d_x) → (…). Zero but where expectations are means over draws."""
        x = self._designs(x)
        if self.context_distribution.exact:
            return np.zeros(x.shape[:-1])
        nodes, weights = self.context_distribution.quadrature(self.breaks)
        values = self.objective(x[..., None, :], nodes)
        if other is not None:
            values = self.objective(self._designs(other)[..., None, :], nodes) - values
        return np.asarray(values.std(-1) / np.sqrt(len(weights)))

    def over_grid(self, x: Array, lines: Sequence[Array]) -> Array:
        """f at designs (n, d_x) and all nodes of the tensor product of ``lines`` (m_k,): (n, m_1 ⋯ m_d_c)."""
        if self.grid_objective is not None:
            return self.grid_objective(x, lines)
        nodes = tensor_nodes(lines)
        return in_chunks(lambda part: self.objective(part[:, None, :], nodes), x, len(nodes)).reshape(-1, len(nodes))

    def worst_case(self, x: Array, radius: float, rough: bool = False) -> Array:
        """Worst E_Q f(x) over distributions Q on the context cube within Wasserstein-1 distance ``radius`` of P.

        ``rough`` is faster and less exact.
        """
        if not isinstance(self.context_distribution, Product):
            raise InvalidValueError(
                f"the worst distribution near that of {self.name} is not known",
                "of independent contexts it is: context_distribution=Product(…)",
            )
        x = self._designs(x)
        flat = x.reshape(-1, self.d_x)
        loss = expected_loss(self.over_grid, self.context_distribution, self.breaks, flat, radius, rough)
        return np.asarray(self.expected(flat) - loss).reshape(x.shape[:-1])

    def robust_optimum(self, radius: float) -> tuple[Array, float]:
        """argmax (d_x,) and max over x of the worst case: the reference of a robust regret."""
        if not (self.knows_goals and self.independent):
            raise InvalidValueError(
                f"the best design of {self.name} under the worst distribution is not known exactly",
                "problems whose designs are all real, with one to three independent context variables, have it",
            )
        return _robust_optimum(self, radius)

    @cached_property
    def x_star(self) -> Array:
        """A maximizer of E f, shape (d_x,): found by optimization at first use, unless one is known."""
        if self._known is not None:
            known = np.array(self._known.x_star)
            known.flags.writeable = False
            return known
        return self.searched("expected", self._search)

    def searched(self, question: str, search: Callable[[], Array]) -> Array:
        """The best design (d_x,) in the sense of ``question``, found by ``search`` or before."""
        same = replace(self, noise_sd=0.0)  # no best design hangs on that
        return searched(f"{self.name} ({question})", same.fingerprint, self.d_x, search)

    def fingerprint(self) -> str:
        """What the problem is, by its values: f and E f at fixed points, to nine digits to be the same on all
        machines."""
        rng = np.random.default_rng(0)
        x, c = self.snap(rng.random((32, self.d_x))), rng.random((32, self.d_c))
        if not self.independent:  # a simulator may know no other contexts
            c = self.sample_contexts(32, rng)
        values = [*self.evaluate(x, c), *self.expected(x[:8])]
        text = " ".join(
            [self.context_distribution.describe(), f"{self.noise_sd:.9g}", *(f"{value:.9g}" for value in values)]
        )
        if self.design is not None:
            text += json.dumps(self.design.to_dict(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def _search(self) -> Array:
        if self.design is not None:
            return maximize_over_levels(self.expected, self.expected_and_gradient, self.design, self.landmark)
        if self.analytic:
            return maximize_smooth(self.expected, self.expected_and_gradient, self.d_x, self.landmark)
        known = np.full(self.d_x, 0.5) if self.landmark is None else np.array(self.landmark)
        rough = maximize_rough(self.expected, known, SEARCH)
        return max(rough, climb(self.expected_and_gradient, rough[0]), key=lambda end: end[1])[0]

    @cached_property
    def optimum(self) -> float:
        """max_x E f(x) = E f(x*)."""
        return float(self.expected(self.x_star))

    @cached_property
    def value_range(self) -> float:
        """max − min of E f, the minimum over a quasi-random set: a scale for comparing regrets."""
        if self._known is not None:
            return self.optimum - self._known.lowest
        designs = self.quasi_random() if self.analytic else self.quasi_random(SEARCH)
        return self.optimum - float(self.expected(designs).min())

    @property
    def _known(self) -> Reference | None:
        """What was found beforehand, if it is about this distribution."""
        return (
            self.reference
            if self.reference is not None and self.reference.context_distribution == self.context_distribution
            else None
        )

    def regret(self, x: Array) -> Array:
        """Instantaneous expected regret E f(x*) − E f(x): (…, d_x) → (…)."""
        return self.optimum - self.expected(x)

    def mirrored(self) -> Problem:
        """The problem of −f, whose maximum is minus the minimum of this one."""
        objective, expectation, grid = self.objective, self.expectation, self.grid_objective
        return replace(
            self,
            name=f"-{self.name}",
            objective=lambda x, c: -objective(x, c),
            expectation=None
            if expectation is None
            else lambda x, context_distribution: -expectation(x, context_distribution),
            grid_objective=None if grid is None else lambda x, lines: -grid(x, lines),
            landmark=None,
            reference=None,
        )

    def _designs(self, x: Array) -> Array:
        x = np.asarray(x, dtype=float)
        if x.ndim == 0 or x.shape[-1] != self.d_x:
            raise InvalidDesignError(
                f"{self.name} takes designs of length {self.d_x}, got shape {x.shape}.",
                "the last dimension runs over the design variables",
            )
        return self.snap(x)

    def _expectation(self, x: AnyArray, context_distribution: JointDistribution | None) -> AnyArray:
        """(n, d_x) → (n,), real or complex."""
        context_distribution = self.context_distribution if context_distribution is None else context_distribution
        if context_distribution.d_c != self.d_c:
            raise InvalidContextError(
                f"{self.name} has {self.d_c} context variables, the distribution has {context_distribution.d_c}."
            )
        if self.expectation is not None and isinstance(context_distribution, Product):
            return self.expectation(x, context_distribution)
        nodes, weights = context_distribution.quadrature(self.breaks)
        return in_chunks(lambda part: self.objective(part[:, None, :], nodes) @ weights, x, len(weights))


@lru_cache(maxsize=64)
def _robust_optimum(problem: Problem, radius: float) -> tuple[Array, float]:
    x = problem.searched(f"worst distribution within {radius!r}", lambda: _search_robust(problem, radius))
    return x, float(problem.worst_case(x, radius))


def _search_robust(problem: Problem, radius: float) -> Array:
    def exact(x: Array) -> Array:
        return problem.worst_case(x, radius)

    def rough(x: Array) -> Array:
        return problem.worst_case(x, radius, rough=True)

    if problem.d_c == 1:
        return maximize_rough(exact, problem.x_star, SEARCH, quick=rough)[0]
    x, _ = maximize_rough(rough, problem.x_star, ROUGH_SEARCH)
    return polish(exact, x, 25 * problem.d_x, size=1e-3)[0]


def in_chunks(function: Callable[[AnyArray], AnyArray], x: AnyArray, width: int) -> AnyArray:
    """``function`` over the rows of x, a few at a time so that rows × width temporaries stay small."""
    rows = max(1, CHUNK_ELEMENTS // max(1, width))
    if len(x) == 0:
        return np.zeros(0)
    return np.concatenate([function(x[i : i + rows]) for i in range(0, len(x), rows)])
