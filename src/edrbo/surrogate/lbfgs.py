"""Bounded L-BFGS for many small problems at once: a thin typed door to BoTorch's batched L-BFGS-B."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from botorch.optim.batched_lbfgs_b import fmin_l_bfgs_b_batched
from numpy.typing import NDArray

Array = NDArray[np.float64]


def minimize_batch(
    value_and_gradient: Callable[[Array, list[int]], tuple[Array, Array]],
    start: Array,
    lower: Array,
    upper: Array,
    *,
    max_iterations: int,
    ftol: float,
    gtol: float = 1e-6,
    max_line_search: int = 20,
) -> tuple[Array, Array]:
    """Minimize b independent problems of p variables from ``start`` (b × p) inside [lower, upper] (p).

    ``value_and_gradient(points, rows)`` gets the rows still at work and returns values (b') and gradients
    (b' × p). Returns the best points (b × p) and their values (b).
    """
    best = np.clip(start, lower, upper)
    best_value = np.full(len(best), np.inf)

    def evaluate(points: Array, batch_indices: list[int]) -> tuple[Array, Array]:
        value, gradient = value_and_gradient(points, batch_indices)
        # A line search may pass through points where the objective overflows: a wall, not a crash.
        broken = ~np.isfinite(value) | ~np.isfinite(gradient).all(axis=-1)
        value = np.where(broken, 1e10, value)
        gradient = np.where(broken[:, None], 0.0, gradient)
        for row, i in enumerate(batch_indices):
            if value[row] < best_value[i]:  # what was seen counts, even if the search ends elsewhere
                best_value[i], best[i] = value[row], points[row]
        return value, gradient

    search: Callable[..., object] = fmin_l_bfgs_b_batched  # BoTorch leaves it untyped
    search(
        evaluate,
        best.copy(),
        bounds=list(zip(lower, upper, strict=True)),
        maxiter=max_iterations,
        factr=None,
        ftol=ftol,
        pgtol=gtol,
        maxls=max_line_search,
        pass_batch_indices=True,
    )
    return best, best_value
