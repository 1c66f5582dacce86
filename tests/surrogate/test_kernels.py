"""Kernels: values against GPyTorch, derivatives against finite differences and autograd."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from gpytorch.kernels import ScaleKernel
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import BASE_KERNELS, random_data, random_hyper, uniform
from torch import Tensor

from edrbo.errors import InvalidValueError, UnknownNameError
from edrbo.surrogate.ensemble import Surrogate
from edrbo.surrogate.kernels import (
    EXPERTS,
    KERNELS,
    Kernel,
    RationalQuadratic,
    get_kernel,
    gram,
    gram_and_slope,
    register,
    scaled_sqdist,
)
from edrbo.surrogate.paired_gp import averaged_gram, context_parts, product_gram, slope_factors
from edrbo.theory import FixedSurrogate, lipschitz_constants, section_lipschitz_constants

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


def test_distances_hold_where_the_farthest_contexts_are_coded() -> None:
    """From −9 to 10 (space/context_scale.py), at the shortest lengthscale a fit may take: K is right to far below its
    noise."""
    lengthscale = torch.full((1, 2), 5e-3, dtype=torch.float64)
    a = torch.tensor([[9.9, 0.3], [-8.9, 0.7], [0.5, 0.5]], dtype=torch.float64)
    b = torch.cat([a, a + 1e-4])
    explicit = ((a[:, None] - b) / lengthscale).square().sum(-1)
    torch.testing.assert_close(scaled_sqdist(a, b, lengthscale)[0], explicit, rtol=1e-14, atol=1e-8)


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


@pytest.mark.parametrize("averaged", [False, True])
def test_the_gram_of_sums_of_distances(averaged: bool) -> None:
    shape = random_hyper(4, 2, seed=7).shape
    a, b = uniform(4, 5, 6, seed=8, high=5.0), uniform(4, 3, 6, seed=9, high=5.0)
    sums = a.unsqueeze(2) + b.unsqueeze(1)
    weights, parts = uniform(3, seed=10), context_parts(ALL, b, shape)

    def found(slope: bool) -> tuple[Tensor, tuple[Tensor, ...]]:
        if averaged:
            return averaged_gram(ALL, a, parts, weights, shape, slope=slope)
        return product_gram(ALL, a, parts, shape, slope=slope)

    def expected(values: Tensor) -> Tensor:  # of 5 × 3 × 6
        return torch.einsum("j,ijn->in", weights, values) if averaged else values.reshape(15, 6)

    (value, slopes), (only, none) = found(True), found(False)
    for m, kernel in enumerate(ALL):
        g, slope = kernel.value_and_slope(sums[m], shape[m])
        scaled = slope_factors(ALL, a)[m] * slopes[m]
        torch.testing.assert_close(value[m], expected(g), rtol=1e-13, atol=1e-300)
        torch.testing.assert_close(scaled, expected(slope), rtol=1e-13, atol=1e-300)
    assert none == ()
    torch.testing.assert_close(only, value, rtol=1e-13, atol=1e-300)  # other rounding: one product less


def test_autograd_through_coinciding_points_is_finite() -> None:
    hyper = random_hyper(4, 2, seed=9)
    x = uniform(3, 2, seed=10).requires_grad_()
    total = gram(ALL, scaled_sqdist(x, x, hyper.lengthscale), hyper.outputscale, hyper.shape).sum()
    (gradient,) = torch.autograd.grad(total, x)
    assert bool(gradient.isfinite().all())


# ---------------------------------------------------------------- a fifth kernel


class Smooth(Kernel):
    """Matérn 7/2, in no ensemble of ours."""

    name, title = "matern72", "Matérn 7/2"
    feature_slope = math.sqrt(7.0 / 5.0)

    def value(self, sqdist: Tensor, shape: Tensor) -> Tensor:
        z = (7.0 * sqdist).clamp_min(1e-30).sqrt()
        return (1.0 + z + 0.4 * z.square() + z**3 / 15.0) * torch.exp(-z)

    def value_and_slope(self, sqdist: Tensor, shape: Tensor) -> tuple[Tensor, Tensor]:
        z = (7.0 * sqdist).clamp_min(1e-30).sqrt()
        return self.value(sqdist, shape), -0.7 * (1.0 + z + z.square() / 3.0) * torch.exp(-z)

    def section_slope(self, shape: float) -> float:
        r = torch.linspace(0.0, 5.0, 100_001, dtype=torch.float64)
        return float((2.0 * r * self.value_and_slope(r.square(), r)[1]).abs().max())


@pytest.fixture
def clean_registry() -> Iterator[None]:
    """Without what other tests of this process registered, the kernel of docs/methods.md for one."""
    before = dict(KERNELS)
    for name in before.keys() - set(EXPERTS):
        del KERNELS[name]
    yield
    KERNELS.clear()
    KERNELS.update(before)


def numbers_of_the_default() -> list[Tensor]:
    """The default ensemble, its fit, and what the theory says of it."""
    x, y = random_data(9, 2, seed=11)
    fitted, fixed = Surrogate().fit(x, y), FixedSurrogate().fit(x, y)
    lengthscale = torch.full((len(Surrogate().experts), 1), 0.4, dtype=torch.float64)
    return [
        *fitted.moments(uniform(5, 2, seed=12)),
        fitted.gp.hyper.lengthscale,
        *fixed.moments(uniform(5, 2, seed=12)),
        lipschitz_constants(Surrogate().experts, lengthscale),
        section_lipschitz_constants(Surrogate().experts, lengthscale),
    ]


@pytest.mark.usefixtures("clean_registry")
def test_a_fifth_kernel_changes_nothing_until_it_is_asked_for() -> None:
    before = numbers_of_the_default()
    register(Smooth())
    assert Surrogate().experts == FixedSurrogate().experts == EXPERTS == ("se", "rq", "matern32", "matern52")
    for old, new in zip(before, numbers_of_the_default(), strict=True):
        assert torch.equal(old, new)
    five = Surrogate(experts=(*EXPERTS, "matern72")).fit(*random_data(9, 2, seed=11))
    assert [kernel.title for kernel in five.gp.kernels][-1] == "Matérn 7/2"
    # and it leaves the others alone, up to the rounding of a matrix product with one row more
    torch.testing.assert_close(five.gp.hyper.lengthscale[:4], before[2], rtol=1e-6, atol=0)
    with pytest.raises(InvalidValueError, match="matern72"):
        register(Smooth())


@pytest.mark.usefixtures("clean_registry")
def test_every_kernel_is_what_it_says() -> None:
    """Those of the package, one of this file and the one docs/methods.md shows."""
    register(Smooth())
    page = (Path(__file__).parents[2] / "docs" / "methods.md").read_text()
    (code,) = (block for block in re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL) if "register" in block)
    exec(compile(code, "methods.md", "exec"), {})
    assert list(KERNELS) == [*EXPERTS, "matern72", "cauchy"]
    assert len({kernel.title for kernel in KERNELS.values()}) == 6
    shape = torch.tensor(0.8, dtype=torch.float64)
    for kernel in KERNELS.values():
        r = torch.linspace(1e-4, 8.0, 80_000, dtype=torch.float64, requires_grad=True)
        value = kernel.value(r.square(), shape)
        (by_r,) = torch.autograd.grad(value.sum(), r)
        slope = kernel.value_and_slope(r.square(), shape)[1]
        torch.testing.assert_close(slope.detach(), (by_r / (2.0 * r)).detach(), rtol=1e-8, atol=1e-12)
        assert kernel.section_slope(0.8) == pytest.approx(float(by_r.abs().max()), rel=1e-6)
        at_zero = float(kernel.value_and_slope(r[:1].detach().square(), shape)[1])
        assert kernel.feature_slope == pytest.approx(math.sqrt(-2.0 * at_zero), rel=1e-3)
        if not kernel.has_shape:
            other = kernel.value(r.square(), 2.0 * shape)
            assert torch.equal(other, value)
            assert not bool(kernel.shape_slope(r, shape, value).any())
