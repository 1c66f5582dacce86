"""context distributions and their compression."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.stats import wasserstein_distance

from edrbo.contexts.distributions import (
    KDE,
    MAX_ATOMS,
    MAX_ATOMS_LINE,
    Box,
    ContextDistribution,
    ContextHistory,
    ContextPoints,
    Empirical,
    Given,
    Grid,
    box_points,
    compress,
    smoothed,
)
from edrbo.contexts.uncertainty import DistributionUncertainty, distribution_uncertainty, known_distribution
from edrbo.errors import InvalidContextError, InvalidValueError

pytestmark = pytest.mark.numpy_numeric

CONTEXT_DISTRIBUTIONS: list[ContextDistribution] = [
    Empirical(),
    Empirical(half_life=5.0),
    KDE(samples=64, max_atoms=64),
    Box(),
    Grid(),
    Grid(size=64),
]


def history(n: int, dim: int, seed: int = 0) -> ContextHistory:
    contexts = torch.rand(n, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    zeros = torch.zeros(dim, dtype=torch.float64)
    return ContextHistory(contexts, torch.ones(n, dtype=torch.float64), zeros, zeros + 1.0)


@pytest.mark.parametrize("context_distribution", CONTEXT_DISTRIBUTIONS, ids=str)
@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("n", [0, 1, 2, 300])
def test_every_distribution_gives_a_distribution_in_the_box(
    context_distribution: ContextDistribution, dim: int, n: int
) -> None:
    points = context_distribution.points(history(n, dim), support_size=40, seed=5)
    assert points.atoms.dtype == points.weights.dtype == points.support.dtype == torch.float64
    assert points.support.shape == (40, dim)
    assert points.all.shape == (len(points.atoms) + 40, dim)
    assert bool(((points.all >= 0) & (points.all <= 1)).all())
    assert bool((points.weights >= 0).all())
    assert abs(float(points.weights.sum()) - 1.0) < 1e-12
    assert torch.equal(points.mass, torch.cat([points.weights, torch.zeros(40, dtype=torch.float64)]))


def test_a_distribution_spread_out_a_little() -> None:
    """Mean and covariance of a kernel density: those of the contexts, and the square of half the rule's bandwidth."""
    drawn = history(60, 2)
    seen = ContextHistory(0.4 + 0.2 * drawn.contexts, drawn.weights, drawn.lower, drawn.upper)  # far from the walls
    points = smoothed(Empirical(), seen, seed=0)
    assert points is not None
    assert points.atoms.shape == (256, 2)
    assert len(points.support) == 0
    spread = seen.contexts.numpy().std(axis=0)
    bandwidth = 0.5 * spread * (4.0 / (4 * 60)) ** (1.0 / 6)
    np.testing.assert_allclose(points.atoms.mean(0), seen.contexts.mean(0), atol=0.1 * spread.min())
    found = points.atoms.numpy().var(axis=0)
    np.testing.assert_allclose(found, spread**2 + bandwidth**2, rtol=0.1)
    gaps = np.abs(points.atoms.numpy()[:, None] - seen.contexts.numpy()).max(axis=2).min(axis=1)
    assert gaps.max() < 4 * bandwidth.max()


def test_contexts_that_repeat_are_not_spread_out() -> None:
    few = history(3, 1)
    repeated = ContextHistory(few.contexts.repeat(5, 1), torch.ones(15, dtype=torch.float64), few.lower, few.upper)
    assert smoothed(Empirical(), repeated, seed=0) is None
    assert smoothed(Empirical(), few, seed=0) is not None
    assert smoothed(Empirical(), history(0, 1), seed=0) is None
    assert smoothed(Empirical(), history(4, 0), seed=0) is None
    assert smoothed(Grid(), few, seed=0) is None
    context_half_life = smoothed(Empirical(half_life=0.05), few, seed=0)  # only the last one counts
    assert context_half_life is not None
    torch.testing.assert_close(context_half_life.atoms, few.contexts[-1:].expand(256, -1), rtol=0.0, atol=2e-3)


@pytest.mark.parametrize("context_distribution", CONTEXT_DISTRIBUTIONS, ids=str)
def test_no_context_variables(context_distribution: ContextDistribution) -> None:
    points = context_distribution.points(history(4, 0), support_size=10, seed=0)
    assert points.all.shape == (1, 0)
    assert points.weights.tolist() == [1.0]


@pytest.mark.parametrize("context_distribution", [Empirical(), KDE(samples=256, max_atoms=256)], ids=str)
def test_before_the_first_context_the_box_is_uniform(context_distribution: ContextDistribution) -> None:
    points = context_distribution.points(history(0, 2), support_size=0, seed=1)
    torch.testing.assert_close(points.weights @ points.atoms, torch.tensor([0.5, 0.5]).double(), rtol=0, atol=0.02)
    torch.testing.assert_close(
        points.weights @ points.atoms.square(), torch.tensor([1 / 3, 1 / 3]).double(), rtol=0, atol=0.02
    )


def test_empirical_is_the_contexts_with_their_weights() -> None:
    seen = history(20, 2)
    weights = torch.arange(1.0, 21.0, dtype=torch.float64)
    points = Empirical().points(ContextHistory(seen.contexts, weights, seen.lower, seen.upper), 0, 0)
    assert torch.equal(points.atoms, seen.contexts)
    torch.testing.assert_close(points.weights, weights / 210.0)
    assert points.compression_error == 0.0


def test_forgetting_halves_after_each_half_life() -> None:
    points = Empirical(half_life=3.0).points(history(7, 2), 0, 0)
    ratio = points.weights / points.weights[-1]
    torch.testing.assert_close(ratio[[0, 3, 6]], torch.tensor([0.25, 0.5, 1.0]).double())
    with pytest.raises(InvalidValueError, match="half_life"):
        Empirical(half_life=0.0).points(history(7, 2), 0, 0)


@pytest.mark.parametrize(("dim", "most"), [(1, MAX_ATOMS_LINE), (2, MAX_ATOMS)])
def test_empirical_of_many_contexts_is_compressed_and_keeps_the_mean(dim: int, most: int) -> None:
    seen = history(1000, dim)
    points = Empirical().points(seen, 0, 0)
    assert len(points.atoms) == most
    assert 0.0 < points.compression_error < 0.1
    torch.testing.assert_close(points.weights @ points.atoms, seen.contexts.mean(0))
    assert len(Empirical(max_atoms=10).points(seen, 0, 0).atoms) == 10


def test_kde_bandwidth_is_the_published_one() -> None:
    """The sample has the contexts' mean, and their variance widened by the square of the bandwidth."""
    seen = history(50, 2)
    far = ContextHistory(seen.contexts, seen.weights, seen.lower - 9.0, seen.upper + 9.0)  # no clamping
    points = KDE(samples=2**15, max_atoms=2**15).points(far, 0, seed=3)
    variance = seen.contexts.var(0, correction=0)
    factor = (4.0 / (4.0 * 50.0)) ** (1.0 / 6.0)
    torch.testing.assert_close(points.atoms.mean(0), seen.contexts.mean(0), rtol=0, atol=2e-3)
    torch.testing.assert_close(points.atoms.var(0), variance * (1 + factor**2), rtol=0.01, atol=0)


def test_kde_clamps_and_depends_on_its_seed() -> None:
    first, second = (KDE(max_atoms=512).points(history(10, 1), 0, seed) for seed in (1, 2))
    assert float(first.atoms.min()) == 0.0  # some of the sample fell below and was put on the bound
    assert not torch.equal(first.atoms, second.atoms)


def test_kde_weights_count_like_repetitions_in_the_mean() -> None:
    seen = history(3, 1)
    weighted = ContextHistory(seen.contexts, torch.tensor([8.0, 1.0, 1.0]).double(), seen.lower - 9, seen.upper + 9)
    points = KDE(samples=4096, max_atoms=4096).points(weighted, 0, seed=0)
    expected = weighted.normalized_weights() @ seen.contexts
    torch.testing.assert_close(points.atoms.mean(0), expected, rtol=0, atol=2e-3)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_box_is_mean_plus_minus_std_with_ddof_one_and_has_its_corners(dim: int) -> None:
    seen = history(6, dim)
    mean, std = seen.contexts.mean(0), seen.contexts.std(0, correction=1)
    lower, upper = (mean - std).clamp(0, 1), (mean + std).clamp(0, 1)
    atoms = Box().points(seen, 0, 0).atoms
    torch.testing.assert_close(atoms.amin(0), lower)
    torch.testing.assert_close(atoms.amax(0), upper)
    for corner in itertools.product((0, 1), repeat=dim):
        target = torch.where(torch.tensor(corner) == 1, upper, lower)
        assert float((atoms - target).abs().amax(-1).min()) < 1e-12


def test_box_weights_equal_repetition() -> None:
    seen = history(4, 1)
    halved = ContextHistory(seen.contexts, seen.weights * 0.5, seen.lower, seen.upper)
    for a, b in zip(Box().bounds(seen), Box().bounds(halved), strict=True):
        torch.testing.assert_close(a, b)
    certain = ContextHistory(seen.contexts, torch.eye(4, dtype=torch.float64)[1], seen.lower, seen.upper)
    assert torch.equal(Box().bounds(certain)[0], seen.lower)


@pytest.mark.parametrize(("dim", "count"), [(1, 100), (2, 10), (3, 5)])
def test_grid_gives_every_context_to_its_nearest_point(dim: int, count: int) -> None:
    seen = history(80, dim)
    points = Grid().points(seen, 0, 0)
    assert len(points.atoms) == count**dim
    nearest = torch.cdist(seen.contexts, points.atoms).argmin(-1)
    torch.testing.assert_close(points.weights, torch.bincount(nearest, minlength=count**dim).double() / 80)
    assert float(points.atoms.min()) == 0.0
    assert float(points.atoms.max()) == 1.0


def test_grid_too_large_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="grid"):
        Grid().points(history(5, 15), 0, 0)


def test_grid_outside_contexts_go_to_the_ends() -> None:
    seen = history(2, 1)
    out = ContextHistory(torch.tensor([[-4.0], [7.0]]).double(), seen.weights, seen.lower, seen.upper)
    weights = Grid(size=5).points(out, 0, 0).weights
    assert weights.tolist() == [0.5, 0.0, 0.0, 0.0, 0.5]


def test_given() -> None:
    samples = torch.tensor([[0.1, 0.2], [0.7, 0.9]]).double()
    points = Given(samples, torch.tensor([1.0, 3.0]).double()).points(history(9, 2), 4, 0)
    assert torch.equal(points.atoms, samples)
    assert points.weights.tolist() == [0.25, 0.75]
    assert len(Given(history(999, 1).contexts, max_atoms=7).points(history(0, 1), 0, 0).atoms) == 7
    with pytest.raises(InvalidContextError):
        Given(samples).points(history(9, 1), 0, 0)
    with pytest.raises(InvalidContextError, match="finite"):
        Given(samples * torch.nan)
    with pytest.raises(InvalidContextError, match="samples"):
        Given(samples[:0])
    with pytest.raises(InvalidValueError, match="weights"):
        Given(samples, torch.tensor([-1.0, 2.0]).double())
    with pytest.raises(InvalidValueError, match="weights"):
        Given(samples, torch.ones(3).double())


def test_context_points_must_be_a_distribution() -> None:
    atoms = torch.zeros(2, 1, dtype=torch.float64)
    with pytest.raises(InvalidContextError):
        ContextPoints(atoms, torch.tensor([0.5, 0.6]).double(), atoms[:0])
    with pytest.raises(InvalidContextError, match="fit"):
        ContextPoints(atoms, torch.tensor([1.0]).double(), atoms[:0])


@pytest.mark.parametrize(("dim", "size"), [(1, 7), (2, 4), (3, 64), (8, 64), (2, 0)])
def test_box_points(dim: int, size: int) -> None:
    lower, upper = torch.full((dim,), -2.0).double(), torch.full((dim,), 3.0).double()
    points = box_points(lower, upper, size)
    assert points.shape == (size, dim)
    assert torch.equal(points, box_points(lower, upper, size))
    if size:
        corner = ((points == -2.0) | (points == 3.0)).all(-1)
        assert int(corner.sum()) == {1: 2, 2: 4, 3: 8, 8: 32}[dim]


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 200), size=st.integers(1, 40), whole=st.booleans())
def test_compression_on_the_line(seed: int, n: int, size: int, whole: bool) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n) * 10 if not whole else rng.integers(0, 30, n).astype(float)
    w = rng.random(n) ** 3 + 1e-9
    small = compress(torch.from_numpy(x[:, None]), torch.from_numpy(w), size)
    atoms, weights = small.atoms[:, 0].numpy(), small.weights.numpy()
    w /= w.sum()
    assert len(atoms) <= size
    np.testing.assert_allclose(weights.sum(), 1.0, atol=1e-12)
    np.testing.assert_allclose(weights @ atoms, w @ x, atol=1e-9)
    np.testing.assert_allclose(small.w1, wasserstein_distance(x, atoms, w, weights), atol=1e-7)
    np.testing.assert_allclose(small.error**2, squared_w2(x, w, atoms, weights), atol=1e-9)
    if len(atoms) == size < len(np.unique(x)):
        np.testing.assert_allclose(weights, 1.0 / size, rtol=1e-12)  # equal mass exactly


def squared_w2(x: np.ndarray, w: np.ndarray, y: np.ndarray, v: np.ndarray) -> float:
    """W₂² on the line by merging the two quantile functions."""
    order, other = np.argsort(x), np.argsort(y)
    first, second = np.cumsum(w[order]), np.cumsum(v[other])
    levels = np.sort(np.concatenate([[0.0], first, second]))
    middle = (levels[1:] + levels[:-1]) / 2
    at_x = x[order][np.searchsorted(first, middle).clip(max=len(x) - 1)]
    at_y = y[other][np.searchsorted(second, middle).clip(max=len(y) - 1)]
    return float(np.diff(levels) @ (at_x - at_y) ** 2)


def test_compression_in_the_plane_finds_separate_clusters() -> None:
    rng = np.random.default_rng(0)
    centers = np.array([[0.1, 0.1], [0.9, 0.2], [0.5, 0.9]])
    label = rng.choice(3, 600, p=[0.5, 0.3, 0.2])
    x = centers[label] + 1e-3 * rng.normal(size=(600, 2))
    w = rng.random(600)
    small = compress(torch.from_numpy(x), torch.from_numpy(w), 3)
    order = np.argsort(small.weights.numpy())[::-1]
    expected = np.array([w[label == k].sum() for k in range(3)]) / w.sum()
    np.testing.assert_allclose(small.weights.numpy()[order], expected, rtol=1e-12)
    np.testing.assert_allclose(small.atoms.numpy()[order], centers, atol=1e-3)
    assert small.error == pytest.approx(1e-3 * 2**0.5, rel=0.1)
    assert small.w1 <= small.error


def test_compression_in_the_plane_keeps_few_distinct_contexts_exactly() -> None:
    rng = np.random.default_rng(1)
    levels = rng.random((5, 2))
    small = compress(torch.from_numpy(levels[rng.integers(0, 5, 300)]), torch.ones(300), 20)
    np.testing.assert_allclose(np.sort(small.atoms.numpy(), 0), np.sort(levels, 0), atol=1e-12)
    assert small.error < 1e-12


def test_repeated_contexts_in_the_plane_become_one_atom() -> None:
    x = torch.tensor([[0.5, 0.5], [0.1, 0.9], [0.5, 0.5]], dtype=torch.float64)
    small = compress(x, torch.tensor([1.0, 2.0, 5.0]).double(), 100)
    assert small.atoms.tolist() == [[0.5, 0.5], [0.1, 0.9]]
    assert small.weights.tolist() == [0.75, 0.25]
    assert small.error == small.w1 == 0.0


def test_compression_error_falls_with_the_size_and_long_distributions_are_sampled_only_to_place_centers() -> None:
    x = history(30_000, 2).contexts
    w = torch.linspace(0.1, 1.0, 30_000, dtype=torch.float64)
    by_size = [compress(x, w, size) for size in (4, 16, 64)]
    errors = [small.error for small in by_size]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.06  # a 64-cell square partition has √(1/6)/8 = 0.051
    for small in by_size:
        torch.testing.assert_close(small.weights @ small.atoms, w @ x / w.sum())
    assert torch.equal(by_size[1].atoms, compress(x, w, 16).atoms)


def test_compression_ignores_contexts_without_weight() -> None:
    x = torch.tensor([[0.0], [1.0], [2.0]]).double()
    small = compress(x, torch.tensor([0.0, 1.0, 1.0]).double(), 2)
    assert small.atoms[:, 0].tolist() == [1.0, 2.0]
    with pytest.raises(InvalidValueError, match="atoms"):
        compress(x, torch.ones(3), 0)


# ------------------------------------------------------------------ how well a distribution is known


def test_drawn_distributions_have_the_moments_of_the_bayesian_bootstrap() -> None:
    rng = np.random.default_rng(3)
    weights = torch.from_numpy(rng.dirichlet(np.ones(12)))
    context_distribution = DistributionUncertainty(torch.from_numpy(rng.random((12, 2))), weights, 7.5)
    drawn, g = context_distribution.draw(40_000, seed=1).numpy(), rng.normal(size=12)
    assert drawn.sum(1) == pytest.approx(np.ones(40_000))
    mean = float(weights.numpy() @ g)
    assert (drawn @ g).mean() == pytest.approx(mean, abs=0.01)
    spread = float(weights.numpy() @ (g - mean) ** 2)
    assert (drawn @ g).var() == pytest.approx(spread / 8.5, rel=0.03)


def test_a_known_distribution_is_never_another() -> None:
    context_distribution = known_distribution(
        torch.tensor([[0.1], [0.7]], dtype=torch.float64), torch.tensor([3.0, 1.0], dtype=torch.float64)
    )
    assert context_distribution.exact
    assert torch.equal(context_distribution.draw(3, seed=0), torch.tensor([[0.75, 0.25]] * 3, dtype=torch.float64))


def test_hardly_any_context_still_gives_distributions() -> None:
    context_distribution = DistributionUncertainty(
        torch.rand(4, 1, dtype=torch.float64), torch.full((4,), 0.25, dtype=torch.float64), 1e-6
    )
    drawn = context_distribution.draw(500, seed=2)
    assert bool(drawn.isfinite().all())
    assert drawn.sum(1).numpy() == pytest.approx(np.ones(500))


def test_thinning_keeps_the_mean_and_what_is_known() -> None:
    rng = np.random.default_rng(4)
    contexts = torch.from_numpy(rng.random((900, 2)))
    context_distribution = distribution_uncertainty(
        Empirical(), ContextHistory(contexts, torch.ones(900).double(), *_ends(2)), 900.0
    )
    small = context_distribution.thinned(40)
    assert len(small.weights) == 40
    assert small.effective == 900.0
    assert (small.weights @ small.contexts).numpy() == pytest.approx(
        (context_distribution.weights @ context_distribution.contexts).numpy()
    )
    assert context_distribution.thinned(900) is context_distribution


def test_smoothed_contexts_are_a_kernel_density_estimate() -> None:
    """Against SciPy's; and its copies share the weight that is drawn for a context."""
    seen = torch.from_numpy(np.random.default_rng(5).normal(0.5, 0.1, (20, 1)))
    before = DistributionUncertainty(seen, torch.full((20,), 0.05, dtype=torch.float64), 20.0)
    ends = torch.zeros(1).double(), torch.ones(1).double()
    found = before.smoothed(20_000, *ends, seed=1)
    density = stats.gaussian_kde(seen[:, 0].numpy(), "silverman")
    assert float(found.weights @ found.contexts[:, 0]) == pytest.approx(float(seen.mean()), abs=1e-3)
    for level in (0.4, 0.5, 0.6):
        share = float(found.weights[found.contexts[:, 0] <= level].sum())
        assert share == pytest.approx(density.integrate_box_1d(-np.inf, level), abs=0.01)
    few = before.smoothed(60, *ends, seed=1)
    drawn = few.draw(7, 3).reshape(7, 20, 3)
    assert torch.equal(drawn[..., :1].expand_as(drawn), drawn)
    assert drawn.sum((1, 2)).numpy() == pytest.approx(1.0)
    exact = known_distribution(seen)
    again = replace(before, contexts=seen[:1].expand(20, 1))
    assert before.smoothed(39, *ends, seed=1) is before
    assert exact.smoothed(60, *ends, seed=1) is exact
    assert again.smoothed(60, *ends, seed=1) is again


def test_what_a_method_takes_for_granted_of_its_distribution() -> None:
    seen = history(50, 1)
    assert distribution_uncertainty(Empirical(), seen, 50.0).effective == 50.0
    # its own contexts, whatever smooths them
    assert distribution_uncertainty(KDE(), seen, 50.0).contexts is seen.contexts
    forgetful = distribution_uncertainty(Empirical(half_life=4.0), seen, 50.0)
    assert forgetful.effective == pytest.approx((1 + 2**-0.25) / (1 - 2**-0.25), rel=1e-3)
    assert distribution_uncertainty(Given(torch.full((1, 1), 0.5, dtype=torch.float64)), seen, 50.0).exact
    nothing = distribution_uncertainty(Empirical(), history(0, 2), 0.0)
    assert nothing.effective == 1.0
    assert (nothing.weights @ nothing.contexts).numpy() == pytest.approx([0.5, 0.5], abs=0.05)
    assert distribution_uncertainty(Empirical(), history(5, 0), 5.0).contexts.shape == (1, 0)


def test_a_long_log_is_shortened() -> None:
    contexts = torch.rand(20_000, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    context_distribution = known_distribution(contexts)
    assert len(context_distribution.weights) == 2048
    assert float(context_distribution.weights @ context_distribution.contexts[:, 0] ** 2) == pytest.approx(
        float((contexts**2).mean()), rel=1e-5
    )


@pytest.mark.parametrize(("weights", "effective"), [(3, 5.0), (2, 0.0), (2, -1.0)])
def test_a_distribution_that_does_not_fit_together(weights: int, effective: float) -> None:
    with pytest.raises(InvalidValueError):
        DistributionUncertainty(
            torch.zeros(2, 1, dtype=torch.float64), torch.full((weights,), 1.0 / weights).double(), effective
        )


def _ends(dim: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.zeros(dim, dtype=torch.float64), torch.ones(dim, dtype=torch.float64)
