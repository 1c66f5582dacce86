"""Scores and the ensemble's radius, against loops, finite differences and the special cases of the paper."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from edrbo.acquisition.scores import BETA, SQRT2, UCB, BarycenterUCB, DesignUCB
from edrbo.surrogate.ensemble import Surrogate, barycenter, radius, single_gp

pytestmark = pytest.mark.torch_numeric


def moments(experts: int, points: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    mean = torch.randn(experts, points, generator=generator, dtype=torch.float64)
    return mean, torch.rand(experts, points, generator=generator, dtype=torch.float64) + 0.1


def looped_radius(mean: Tensor, sd: Tensor) -> list[float]:
    experts, points = mean.shape
    result = []
    for j in range(points):
        center = sum(float(mean[m, j]) for m in range(experts)) / experts
        spread = sum(float(sd[m, j]) for m in range(experts)) / experts
        result.append(max(math.hypot(float(mean[m, j]) - center, float(sd[m, j]) - spread) for m in range(experts)))
    return result


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), experts=st.integers(1, 5), points=st.integers(1, 6))
def test_radius_is_the_largest_distance_from_the_barycenter(seed: int, experts: int, points: int) -> None:
    mean, sd = moments(experts, points, seed)
    assert radius(mean, sd).tolist() == pytest.approx(looped_radius(mean, sd), rel=1e-12, abs=1e-12)
    assert radius(mean.requires_grad_(), sd).tolist() == pytest.approx(
        looped_radius(mean.detach(), sd), rel=1e-12, abs=1e-12
    )


def test_radius_takes_batches() -> None:
    mean, sd = moments(4, 30, seed=1)
    split = [t.reshape(4, 5, 6).transpose(0, 1) for t in (mean, sd)]  # 5 × 4 × 6
    torch.testing.assert_close(radius(*split).reshape(-1), radius(mean, sd), rtol=1e-14, atol=0)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_sub_gradient_of_the_radius(seed: int) -> None:
    mean, sd = moments(4, 1, seed)
    distances = sorted(
        (mean - mean.mean(0)).square().add((sd - sd.mean(0)).square()).sqrt().flatten().tolist(), reverse=True
    )
    if distances[0] - distances[1] < 1e-3:  # a tie has no gradient to compare with
        return
    inputs = [mean.clone().requires_grad_(), sd.clone().requires_grad_()]
    gradients = torch.autograd.grad(radius(*inputs).sum(), inputs)
    step = 1e-6
    for which, gradient in enumerate(gradients):
        for m in range(4):
            shifted = []
            for sign in (1.0, -1.0):
                moved = [mean.clone(), sd.clone()]
                moved[which][m, 0] += sign * step
                shifted.append(float(radius(*moved)))
            assert float(gradient[m, 0]) == pytest.approx((shifted[0] - shifted[1]) / (2 * step), abs=1e-7)


@pytest.mark.parametrize("experts", [1, 4])
def test_where_experts_agree_the_radius_and_its_gradient_are_zero(experts: int) -> None:
    mean = torch.full((experts, 3), 0.7, dtype=torch.float64, requires_grad=True)
    sd = torch.full((experts, 3), 0.2, dtype=torch.float64, requires_grad=True)
    value = radius(mean, sd)
    assert value.tolist() == [0.0, 0.0, 0.0]
    for gradient in torch.autograd.grad(value.sum(), (mean, sd)):
        assert not bool(gradient.any())  # and in particular no NaN


def test_ucb_multiplies_the_standard_deviation_by_beta() -> None:
    mean, sd = moments(1, 5, seed=2)
    torch.testing.assert_close(UCB(beta=2.0)(mean, sd), mean[0] + 2.0 * sd[0])
    torch.testing.assert_close(UCB()(mean, sd), mean[0] + 1.5 * sd[0])
    assert BETA == 1.5
    torch.testing.assert_close(DesignUCB()(mean, sd), UCB()(mean, sd))
    assert UCB.uses_context
    assert not DesignUCB.uses_context


def test_edrbo_score_is_the_papers_formula() -> None:
    mean, sd = moments(4, 7, seed=3)
    radii = torch.tensor(looped_radius(mean, sd), dtype=torch.float64)
    expected = mean.mean(0) + 1.5 * sd.mean(0) - math.sqrt(2.0) * radii
    torch.testing.assert_close(BarycenterUCB()(mean, sd), expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(BarycenterUCB(radius_weight=0.0)(mean, sd), UCB()(mean, sd))
    assert math.sqrt(2.0) == SQRT2


def test_the_radius_is_taken_at_each_point() -> None:
    """One maximum over a batch would make every point's radius depend on its neighbors and cancel in comparisons."""
    mean, sd = moments(4, 6, seed=4)
    batch = BarycenterUCB()(mean, sd)
    for j in range(6):
        alone = BarycenterUCB()(mean[:, j : j + 1], sd[:, j : j + 1])
        assert float(batch[j]) == pytest.approx(float(alone), rel=1e-14)
    penalties = UCB()(mean, sd) - batch
    assert float(penalties.max() - penalties.min()) > 0.1


def test_identical_experts_make_edrbo_erbo() -> None:
    generator = torch.Generator().manual_seed(5)
    x = torch.rand(10, 2, generator=generator, dtype=torch.float64)
    y, points = torch.sin(4.0 * x).sum(-1), torch.rand(20, 2, generator=generator, dtype=torch.float64)
    gp = single_gp()
    for experts in (("se",), ("se", "se")):
        model = Surrogate(experts, gp.priors).fit(x, y)
        edrbo = BarycenterUCB()(*model.moments(points))
        erbo = UCB()(*gp.fit(x, y).moments(points))
        torch.testing.assert_close(edrbo, erbo, rtol=0, atol=1e-8)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), scale=st.floats(1e-3, 1e3), shift=st.floats(-100, 100))
def test_scores_follow_the_units_of_y(seed: int, scale: float, shift: float) -> None:
    mean, sd = moments(4, 5, seed)
    for score in (UCB(), BarycenterUCB()):
        moved = score(scale * mean + shift, scale * sd)
        torch.testing.assert_close(moved, scale * score(mean, sd) + shift, rtol=1e-9, atol=1e-9 * max(scale, 1.0))


def test_the_order_of_the_experts_does_not_matter() -> None:
    mean, sd = moments(4, 5, seed=6)
    order = torch.tensor([2, 0, 3, 1])
    torch.testing.assert_close(BarycenterUCB()(mean[order], sd[order]), BarycenterUCB()(mean, sd), rtol=1e-13, atol=0)
    center, spread = barycenter(mean, sd)
    torch.testing.assert_close(center, mean.sum(0) / 4)
    torch.testing.assert_close(spread, sd.sum(0) / 4)
