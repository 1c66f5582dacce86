"""Every registered problem, the portfolios also on the original evaluations where they are there; their outcomes."""

from __future__ import annotations

import os

import numpy as np
from numpy.polynomial.chebyshev import chebvander

from edrbo.bench import problems
from edrbo.bench.problems.problem import Problem

# Files that cannot be shipped: the original evaluations of the portfolio, the regrets of the published runs.
ORIGINAL, PUBLISHED_RUNS = os.environ.get("EDRBO_PORTFOLIO_DATA", ""), os.environ.get("EDRBO_PUBLISHED_RUNS", "")
ON_ORIGINAL = "@original"
PAPER_CASES = [*problems.names(), "portfolio-uniform" + ON_ORIGINAL, "portfolio-normal" + ON_ORIGINAL]
CASES = [*PAPER_CASES, *problems.further_names(), "branin-williams", "michalewicz"]
MONTE_CARLO_DRAWS = 1_000_000


def designs_of(problem: Problem, n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((n, problem.d_x))


def outcomes_of(problem: Problem, designs: np.ndarray, contexts: np.ndarray) -> np.ndarray:
    """f at every design and many contexts; the portfolio's, 3,000 kernels a value, by Chebyshev interpolation."""
    if problem.data is None:
        return np.stack([problem.evaluate(x, contexts) for x in designs])
    size = 32  # exact to 1e-12, and to 1e-8 below
    nodes = np.cos(np.pi * (np.arange(size) + 0.5) / size)
    grid = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    values = problem.evaluate(designs[:, None, :], (grid + 1) / 2).reshape(-1, size, size)
    to_coefficients = np.linalg.inv(chebvander(nodes, size - 1))
    coefficients = to_coefficients @ values @ to_coefficients.T
    pieces = []
    for part in np.array_split(2 * contexts - 1, 50):
        first, second = chebvander(part[:, 0], size - 1), chebvander(part[:, 1], size - 1)
        pieces.append(((first @ coefficients) * second).sum(axis=-1))
    interpolated = np.concatenate(pieces, axis=1)
    exact = problem.evaluate(designs[:, None, :], contexts[:200])
    np.testing.assert_allclose(interpolated[:, :200], exact, atol=1e-8)
    return interpolated
