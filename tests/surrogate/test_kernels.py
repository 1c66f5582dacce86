"""Kernels: values against GPyTorch, derivatives against finite differences and autograd."""

from __future__ import annotations

import pytest
import torch
from gpytorch.kernels import ScaleKernel
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import BASE_KERNELS, random_hyper, uniform

from edrbo.errors import UnknownNameError
from edrbo.surrogate.kernels import (
    EXPERTS,
    KERNELS,
    RationalQuadratic,
    get_kernel,
    gram,
    gram_and_slope,
    product_gram,
    scaled_sqdist,
)

pytestmark = pytest.mark.torch_numeric

ALL = tuple(KERNELS.values())


def test_the_papers_four_experts() -> None:
    assert EXPERTS == ("se", "rq", "matern32", "matern52")
    with pytest.raises(UnknownNameError, match="matern12") as caught:
        get_kernel("matern12")
    assert "matern32" in caught.value.hint


def test_gram_matrices_are_gpytorchs() -> None:
    d, hyper = 3, random_hyper(4, 3, seed=0)
    a, b = uniform(7, d, seed=1), uniform(5, d, seed=2)
    ours = gram(ALL, scaled_sqdist(a, b, hyper.lengthscale), hyper.outputscale, hyper.shape)
    assert ours.shape == (4, 7, 5)
    for m, name in enumerate(EXPERTS):
        kernel = ScaleKernel(BASE_KERNELS[name](d)).double()
        kernel.outputscale = hyper.outputscale[m]
        kernel.base_kernel.lengthscale = hyper.lengthscale[m]
        if name == "rq":
            kernel.base_kernel.alpha = hyper.shape[m]
        with torch.no_grad():
            torch.testing.assert_close(ours[m], kernel(a, b).to_dense(), rtol=0, atol=1e-12)


def test_scaled_distances_are_those_of_a_loop() -> None:
    lengthscale = uniform(2, 3, seed=3, low=0.1, high=2.0)
    a, b = uniform(4, 6, 3, seed=4), uniform(5, 3, seed=5)
    ours = scaled_sqdist(a, b, lengthscale)
    assert ours.shape == (4, 2, 6, 5)
    for m in range(2):
        for batch in range(4):
            for i in range(6):
                explicit = ((a[batch, i] - b) / lengthscale[m]).square().sum(-1)
                torch.testing.assert_close(ours[batch, m, i], explicit, rtol=1e-12, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(
    name=st.sampled_from(EXPERTS),
    sqdist=st.floats(1e-6, 40.0),
    shape=st.floats(0.05, 50.0),
)
def test_slope_is_the_derivative_in_the_squared_distance(name: str, sqdist: float, shape: float) -> None:
    kernel, alpha = get_kernel(name), torch.tensor(shape, dtype=torch.float64)
    at = torch.tensor([sqdist], dtype=torch.float64, requires_grad=True)
    value, slope = kernel.value_and_slope(at, alpha)
    torch.testing.assert_close(value, kernel.value(at, alpha), rtol=1e-14, atol=0)
    (autograd,) = torch.autograd.grad(kernel.value(at, alpha).sum(), at)
    torch.testing.assert_close(slope.detach(), autograd, rtol=1e-8, atol=1e-12)
    assert 0.0 < value.item() <= 1.0
    assert slope.item() < 0.0


def test_slope_at_zero_distance_is_the_limit() -> None:
    zero, one = torch.zeros(1, dtype=torch.float64), torch.tensor(1.0, dtype=torch.float64)
    expected = {"se": -0.5, "rq": -0.5, "matern32": -1.5, "matern52": -5.0 / 6.0}
    for name, limit in expected.items():
        value, slope = get_kernel(name).value_and_slope(zero, one)
        assert float(value) == pytest.approx(1.0, abs=1e-14)
        assert float(slope) == pytest.approx(limit, abs=1e-12)


def test_shape_slope_is_the_derivative_in_alpha() -> None:
    kernel = RationalQuadratic()
    sqdist = uniform(20, seed=6, high=30.0)
    alpha = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    slope = kernel.shape_slope(sqdist, alpha.detach(), kernel.value(sqdist, alpha.detach()))
    for i in range(len(sqdist)):
        (autograd,) = torch.autograd.grad(kernel.value(sqdist[i], alpha), alpha)
        assert float(slope[i]) == pytest.approx(float(autograd), rel=1e-10)


def test_gram_and_slope_scales_both() -> None:
    hyper = random_hyper(4, 2, seed=7)
    sqdist = uniform(4, 30, seed=8, high=5.0)
    value, slope = gram_and_slope(ALL, sqdist, hyper.outputscale, hyper.shape)
    expected = gram(ALL, sqdist[:, None], hyper.outputscale, hyper.shape)[:, 0]
    torch.testing.assert_close(value, expected, rtol=1e-14, atol=0)
    for m, kernel in enumerate(ALL):
        expected = hyper.outputscale[m] * kernel.value_and_slope(sqdist[m], hyper.shape[m])[1]
        torch.testing.assert_close(slope[m], expected, rtol=1e-14, atol=0)


def test_the_gram_of_sums_of_distances() -> None:
    hyper = random_hyper(4, 2, seed=7)
    a, b = uniform(4, 5, 6, seed=8, high=5.0), uniform(4, 3, 6, seed=9, high=5.0)
    sums = (a.unsqueeze(2) + b.unsqueeze(1)).reshape(4, 15, 6)
    value, slope = product_gram(ALL, a, b, hyper.outputscale, hyper.shape, slope=True)
    torch.testing.assert_close(value, gram(ALL, sums, hyper.outputscale, hyper.shape), rtol=1e-13, atol=1e-300)
    assert slope is not None
    for m, kernel in enumerate(ALL):
        expected = hyper.outputscale[m] * kernel.value_and_slope(sums[m], hyper.shape[m])[1]
        torch.testing.assert_close(slope[m], expected, rtol=1e-13, atol=1e-300)
    only, none = product_gram(ALL, a, b, hyper.outputscale, hyper.shape, slope=False)
    assert none is None
    torch.testing.assert_close(only, value, rtol=1e-13, atol=1e-300)  # other rounding: one product less


def test_autograd_through_coinciding_points_is_finite() -> None:
    hyper = random_hyper(4, 2, seed=9)
    x = uniform(3, 2, seed=10).requires_grad_()
    total = gram(ALL, scaled_sqdist(x, x, hyper.lengthscale), hyper.outputscale, hyper.shape).sum()
    (gradient,) = torch.autograd.grad(total, x)
    assert bool(gradient.isfinite().all())
