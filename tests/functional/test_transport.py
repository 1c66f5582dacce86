"""How much of the true Wasserstein loss the refined points hold, against the dual on a fine grid, polished."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

from edrbo.acquisition.risk import Minimum, TotalVariation, Wasserstein
from edrbo.acquisition.risk.base import Field
from edrbo.contexts.distributions import ContextPoints, box_points

Array = np.ndarray
GRID = {1: 2001, 2: 101, 3: 33}  # points an axis of the reference
POLISHED = {1: 501, 2: 51, 3: 21}  # where the reference is improved from the best of them


def wavy(dim: int, seed: int) -> Callable[[Array], Array]:
    """A smooth random field (lengthscale 0.35) on contexts (... × dim), with its slopes."""
    draw = np.random.default_rng(seed)
    rates, phases = draw.normal(size=(40, dim)) / 0.35, draw.uniform(0, 2 * np.pi, 40)
    heights = draw.normal(size=40) * np.sqrt(2 / 40)

    def field(c: Array) -> tuple[Array, Array]:
        angle = c @ rates.T + phases
        return np.cos(angle) @ heights, -(np.sin(angle) * heights) @ rates

    return field


def as_tensors(field: Callable[[Array], tuple[Array, Array]]) -> Field:
    """Of one design."""
    return several([field])


def several(fields: list[Callable[[Array], tuple[Array, Array]]]) -> Field:
    """A field a design."""

    def values_and_slopes(designs: torch.Tensor, c: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        value, slope = np.zeros(len(c)), np.zeros(c.shape)
        for i, field in enumerate(fields):
            mine = (designs == i).numpy()
            value[mine], slope[mine] = field(c.numpy()[mine])
        return torch.from_numpy(value), torch.from_numpy(slope)

    return Field(len(fields), lambda i, c: values_and_slopes(i, c)[0], values_and_slopes)


def context_distribution(dim: int, seed: int, atoms: int) -> ContextPoints:
    draw = np.random.default_rng(seed)
    contexts = np.clip(0.5 + 0.2 * draw.normal(size=(atoms, dim)), 0, 1)
    zero = torch.zeros(dim, dtype=torch.float64)
    return ContextPoints(
        torch.from_numpy(contexts),
        torch.from_numpy(draw.dirichlet(np.full(atoms, 3.0))),
        box_points(zero, zero + 1, 64),
    )


def true_loss(field: Callable[[Array], tuple[Array, Array]], points: ContextPoints, radius: float, order: int) -> float:
    """E s − max_λ Σ_j w_j min_c' [s(c') + λ ‖c_j − c'‖^order] − λ radius^order.

    The inner minimum is taken on a grid and improved by compass search. Were it too high still, this loss would be too
    small and the share that is caught above one, which the test excludes.
    """
    atoms, weights = points.atoms.numpy(), points.weights.numpy()
    dim = atoms.shape[1]
    axis = np.linspace(0, 1, POLISHED[dim])
    grid = np.stack(np.meshgrid(*[axis] * dim, indexing="ij"), -1).reshape(-1, dim)
    heights, own = field(grid)[0], field(atoms)[0]
    apart = np.sqrt(np.maximum((atoms**2).sum(1)[:, None] - 2 * atoms @ grid.T + (grid**2).sum(1), 0)) ** order

    def dual(price: float, polish: bool) -> float:
        total = heights + price * apart
        best = np.minimum(total.min(1), own)
        if polish:
            best = np.minimum(best, compass(price, grid[total.argmin(1)]))
        return float(weights @ best - price * radius**order)

    def compass(price: float, here: Array) -> Array:
        def cost(c: Array) -> Array:
            return field(c)[0] + price * np.linalg.norm(c - atoms[:, None], axis=-1) ** order

        best, step = cost(here[:, None])[:, 0], axis[1]
        moves = np.concatenate([np.eye(dim), -np.eye(dim)])
        while step > 1e-4:
            tried = np.clip(here[:, None] + step * moves, 0, 1)
            found = cost(tried)
            better = found.min(1) < best
            here = np.where(better[:, None], tried[np.arange(len(here)), found.argmin(1)], here)
            best = np.minimum(best, found.min(1))
            if not better.any():
                step /= 2
        return best

    steepest = 1.5 * np.max((own[:, None] - heights) / np.maximum(apart, (0.2 * radius) ** order))
    coarse = minimize_scalar(lambda p: -dual(p, False), bounds=(0, steepest), method="bounded", options={"xatol": 1e-4})
    tried = coarse.x * np.array([0.9, 0.95, 1.0, 1.05, 1.1])
    return float(weights @ own - max(dual(price, True) for price in tried))


def caught(
    functional: Wasserstein | TotalVariation, points: ContextPoints, field: Callable[[Array], tuple[Array, Array]]
) -> float:
    """The loss on the refined points."""
    targets = functional.refine(as_tensors(field), points)
    refined = ContextPoints(points.atoms, points.weights, targets)
    scores = torch.from_numpy(field(refined.all.numpy())[0])
    return float((refined.mass * scores).sum() - functional(scores, refined))


@pytest.mark.parametrize("radius", [0.02, 0.1, 0.3])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_refined_points_hold_the_loss(dim: int, order: int, radius: float) -> None:
    for seed in range(2):
        field, points = wavy(dim, seed), context_distribution(dim, seed, atoms=40)
        truth = true_loss(field, points, radius, order)
        share = caught(Wasserstein(radius, order=order), points, field) / truth
        assert 0.97 <= share <= 1.001, (seed, share)


def test_the_general_support_alone_does_not() -> None:
    field, points = wavy(3, 0), context_distribution(3, 0, atoms=40)
    scores = torch.from_numpy(field(points.all.numpy())[0])
    loss = float((points.mass * scores).sum() - Wasserstein(0.05, order=2)(scores, points))
    assert loss < 0.7 * true_loss(field, points, 0.05, 2)


def test_a_linear_field_is_shifted_by_the_radius() -> None:
    slope = np.array([3.0, -4.0])
    points = ContextPoints(
        torch.full((5, 2), 0.5, dtype=torch.float64) + 0.05 * torch.arange(5, dtype=torch.float64)[:, None],
        torch.full((5,), 0.2, dtype=torch.float64),
        box_points(torch.zeros(2, dtype=torch.float64), torch.ones(2, dtype=torch.float64), 64),
    )
    for order in (1, 2):
        loss = caught(Wasserstein(0.1, order=order), points, lambda c: (c @ slope, np.tile(slope, (len(c), 1))))
        assert loss == pytest.approx(0.5, rel=0.01)


def test_no_radius_no_contexts_nothing_to_refine() -> None:
    field, points = wavy(2, 0), context_distribution(2, 0, atoms=6)
    assert len(Wasserstein(0.0).refine(as_tensors(field), points)) == 0
    empty = torch.zeros(1, 0, dtype=torch.float64)
    nowhere = ContextPoints(empty, empty.new_ones(1), empty[:0])
    flat = Field(1, lambda i, c: c.sum(-1), lambda i, c: (c.sum(-1), c))
    assert len(Wasserstein(0.1).refine(flat, nowhere)) == 0


@pytest.mark.parametrize("functional", [Wasserstein(0.1), Wasserstein(0.1, order=2), TotalVariation(0.4)], ids=str)
def test_designs_together_get_the_points_of_each(functional: Wasserstein | TotalVariation) -> None:
    fields, points = [wavy(2, seed) for seed in range(3)], context_distribution(2, 5, atoms=12)
    together = functional.refine(several(fields), points)
    assert len(together) <= sum(len(functional.refine(as_tensors(field), points)) for field in fields)
    shared = ContextPoints(points.atoms, points.weights, together)
    for field in fields:
        scores = torch.from_numpy(field(shared.all.numpy())[0])
        loss = float((shared.mass * scores).sum() - functional(scores, shared))
        assert loss >= 0.995 * caught(functional, points, field)


@pytest.mark.parametrize("order", [1, 2])
def test_the_stand_in_lies_between_the_worst_case_and_the_mean(order: Literal[1, 2]) -> None:
    points = context_distribution(2, 3, atoms=12)
    rows = torch.stack([torch.from_numpy(wavy(2, seed)(points.all.numpy())[0]) for seed in range(20)])
    functional = Wasserstein(0.1, order=order)
    stand_in, worst, mean = functional.rough()(rows, points), functional(rows, points), rows @ points.mass
    assert bool((stand_in >= worst - 1e-12).all())
    assert bool((stand_in < mean).all())


def test_atoms_without_mass_move_nothing() -> None:
    field, points = wavy(2, 1), context_distribution(2, 1, atoms=12)
    padded = ContextPoints(
        torch.cat([points.atoms, points.atoms[:4] / 2]),
        torch.cat([points.weights, torch.zeros(4, dtype=torch.float64)]),
        points.support,
    )
    assert caught(Wasserstein(0.1, order=2), padded, field) == pytest.approx(
        caught(Wasserstein(0.1, order=2), points, field), rel=0.01
    )


@pytest.mark.parametrize("functional", [Minimum(support_size=64), TotalVariation(0.4)], ids=["minimum", "tv"])
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_the_lowest_point_is_found(functional: Minimum | TotalVariation, dim: int) -> None:
    axis = np.linspace(0, 1, GRID[dim])
    grid = np.stack(np.meshgrid(*[axis] * dim, indexing="ij"), -1).reshape(-1, dim)
    for seed in range(4):
        field, points = wavy(dim, seed), context_distribution(dim, seed, atoms=20)
        lowest = functional.refine(as_tensors(field), points)
        assert field(lowest.numpy())[0].min() <= field(grid)[0].min() + 0.01
