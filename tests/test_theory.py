"""Maximum information gain, Lipschitz constants, regret bound and fixed surrogate, against direct computation."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from edrbo import Optimizer
from edrbo.acquisition.scores import UCB
from edrbo.errors import InvalidValueError
from edrbo.surrogate.kernels import EXPERTS
from edrbo.theory import (
    FixedSurrogate,
    acquisition_lipschitz,
    beta,
    information_gain,
    lipschitz_constants,
    max_information_gain,
    posterior_norm,
    regret_bound,
    regret_bounds,
    section_lipschitz_constants,
    trivial_bound,
    unit_kernel,
)

pytestmark = pytest.mark.torch_numeric


def points(n: int, d: int, seed: int) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).uniform(size=(n, d)))


def outcomes(x: Tensor) -> Tensor:
    return torch.sin(5 * x[..., 0]) * x[..., -1] + 0.3 * x.sum(-1)


# ---------------------------------------------------------------- maximum information gain


@pytest.mark.parametrize("name", EXPERTS)
def test_greedy_takes_the_best_next_point_and_bounds_the_maximum(name: str) -> None:
    x, noise_variance, steps = points(7, 2, 3), 0.1, 3
    kernel = unit_kernel(name, 0.6)
    gram = kernel(x, x)

    def gain(rows: tuple[int, ...]) -> float:
        return float(information_gain(gram[list(rows)][:, list(rows)], noise_variance))

    found = max_information_gain(kernel, x, steps, noise_variance)
    chosen: tuple[int, ...] = ()
    for t in range(steps):
        chosen = max(((*chosen, j) for j in range(7)), key=gain)
        assert tuple(found.chosen[: t + 1].tolist()) == chosen
        assert float(found.gain[t]) == pytest.approx(gain(chosen), rel=1e-10)
    best = max(gain(rows) for rows in itertools.combinations_with_replacement(range(7), steps))
    assert float(found.gain[-1]) <= best * (1 + 1e-12)
    assert best <= float(found.upper[-1])
    assert float(found.upper[-1]) == pytest.approx(min(found.gain[-1] * math.e / (math.e - 1), 3 * math.log(11)))
    halved = max_information_gain(kernel, x, steps, noise_variance, halved=True)
    torch.testing.assert_close(2 * halved.gain, found.gain)


def test_a_single_candidate_is_measured_again_and_again() -> None:
    found = max_information_gain(unit_kernel("se", 0.3), points(1, 2, 0), 5, 0.5)
    assert found.chosen.tolist() == [0] * 5
    assert float(found.gain[-1]) == pytest.approx(math.log1p(5 / 0.5))
    assert float(found.upper[-1]) == pytest.approx(math.log1p(5 / 0.5) / (1 - 1 / math.e))


# ---------------------------------------------------------------- the surrogate of the theorems


@pytest.mark.parametrize("scaled", [True, False])
def test_the_fixed_surrogate_is_the_posterior_of_the_paper(scaled: bool) -> None:
    x, query, noise_variance = points(14, 3, 4), points(6, 3, 5), 0.04
    y = outcomes(x)
    lengthscale = (0.3, 0.5, 0.9)
    model = FixedSurrogate(lengthscale=lengthscale, noise_variance=noise_variance, shape=2.0, scaled=scaled).fit(x, y)
    mean, sd = model.moments(query)
    for m, name in enumerate(EXPERTS):
        kernel = unit_kernel(name, torch.tensor(lengthscale, dtype=torch.float64), 2.0)
        cross = kernel(query, x)
        inverse = torch.linalg.inv(kernel(x, x) + noise_variance * torch.eye(14, dtype=torch.float64))
        variance = 1.0 - (cross @ inverse * cross).sum(-1)
        torch.testing.assert_close(mean[m], cross @ inverse @ y, rtol=1e-8, atol=1e-10)
        torch.testing.assert_close(sd[m], (variance / (noise_variance if scaled else 1.0)).sqrt(), rtol=1e-7, atol=0)


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("scaled", [True, False])
def test_extending_the_fixed_surrogate_is_conditioning_on_all(scaled: bool, known: bool) -> None:
    x = points(10, 2, 6)
    y = outcomes(x)
    variance = torch.linspace(0.01, 0.2, 10, dtype=torch.float64) if known else None
    surrogate = FixedSurrogate(lengthscale=0.4, noise_variance=0.02, scaled=scaled)
    beginning = surrogate.fit(x[:7], y[:7], None if variance is None else variance[:7])
    grown, whole = surrogate.extend(beginning, x, y, variance), surrogate.fit(x, y, variance)
    for one, other in zip(grown.moments(points(5, 2, 7)), whole.moments(points(5, 2, 7)), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)
    if known:  # in units of y, so the mean does not depend on the scaling
        plain = FixedSurrogate(lengthscale=0.4, noise_variance=0.02, scaled=False).fit(x, y, variance)
        torch.testing.assert_close(whole.moments(x)[0], plain.moments(x)[0], rtol=1e-9, atol=1e-12)


# ---------------------------------------------------------------- Lipschitz constants


@pytest.mark.parametrize("name", EXPERTS)
@pytest.mark.parametrize("shape", [0.3, 2.0])
def test_lipschitz_constants_bound_the_kernel_and_are_the_least(name: str, shape: float) -> None:
    """Along the shorter of two context lengthscales, on a fine line; the design only adds distance."""
    lengthscale = torch.tensor([0.5, 0.3, 0.7], dtype=torch.float64)  # one design, two contexts
    kernel = unit_kernel(name, lengthscale, shape)
    feature = float(lipschitz_constants([name], lengthscale[None, 1:])[0])
    section = float(section_lipschitz_constants([name], lengthscale[None, 1:], shape)[0])
    line = torch.full((1601, 3), 0.5, dtype=torch.float64)
    line[:, 1] = 0.5 + torch.linspace(-1.6, 1.6, 1601, dtype=torch.float64)
    values = kernel(line, line[800:801]).squeeze(-1)
    distance = (line[:, 1] - line[800, 1]).abs()
    far = distance > 0
    by_feature = ((2 - 2 * values).clamp_min(0).sqrt() / distance)[far]
    assert feature * 0.985 < float(by_feature.max()) <= feature * (1 + 1e-6)
    by_section = values.diff().abs() / line[:, 1].diff()
    assert section * 0.999 < float(by_section.max()) <= section * (1 + 1e-9)
    assert section < feature
    anywhere = points(400, 3, 0)
    moved = torch.cat([anywhere[:, :1], points(400, 2, 1)], dim=-1)
    apart = (anywhere - moved).norm(dim=-1)
    change = (2 - 2 * kernel(anywhere, moved).diagonal()).sqrt()
    assert bool((change <= feature * apart * (1 + 1e-9)).all())
    fixed = kernel(anywhere, points(1, 3, 2)) - kernel(moved, points(1, 3, 2))
    assert bool((fixed.abs().squeeze(-1) <= section * apart * (1 + 1e-9)).all())


def test_the_acquisition_is_as_lipschitz_as_stated() -> None:
    """|Δμ_m| ≤ ‖μ_m‖ L_m ‖Δc‖ and |Δσ_m| ≤ λ^(−½) L_m ‖Δc‖, for the paper's σ."""
    x, noise_variance = points(12, 3, 4), 0.02
    lengthscale = (0.5, 0.2, 0.4)
    model = FixedSurrogate(lengthscale=lengthscale, noise_variance=noise_variance).fit(x, outcomes(x))
    constants = lipschitz_constants(EXPERTS, torch.tensor(lengthscale, dtype=torch.float64)[1:].expand(4, 2))
    here = points(500, 3, 5)
    there = torch.cat([here[:, :1], points(500, 2, 6)], dim=-1)
    apart = (here - there).norm(dim=-1)
    (mean, sd), (mean_there, sd_there) = model.moments(here), model.moments(there)
    assert bool(((sd - sd_there).abs() <= constants[:, None] / math.sqrt(noise_variance) * apart * (1 + 1e-9)).all())
    norms = posterior_norm(model)
    assert bool(((mean - mean_there).abs() <= (norms * constants)[:, None] * apart * (1 + 1e-9)).all())
    weight = max(float(norms.max()) * math.sqrt(noise_variance), 1.0)
    score = UCB(weight)
    change = (score(mean, sd) - score(mean_there, sd_there)).abs()
    assert bool((change <= acquisition_lipschitz(weight, noise_variance, constants) * apart).all())
    assert acquisition_lipschitz(2.0, 0.25, torch.tensor([1.0, 3.0])) == pytest.approx(24.0)


# ---------------------------------------------------------------- the regret bound


def test_the_regret_bound_by_hand() -> None:
    delta = 6 * math.exp(-2)  # 2 ln(6/δ) = 4
    assert regret_bound(4, 0.0, 1.0, 1.0, 4, delta) == pytest.approx(22 * 4)
    assert regret_bound(4, 3.0, 1.5, 2.0, 4, delta) == pytest.approx(22 * 2 * 1.5 * 8)
    assert trivial_bound(200, 2.3) == pytest.approx(460)


def test_bounds_along_a_run() -> None:
    x = points(6, 2, 0)
    model = FixedSurrogate(lengthscale=0.4).fit(x, outcomes(x))
    regret = [3.0, 1.0, 2.0, 0.5, 0.0, 0.5]
    found = regret_bounds(model, regret, 3.0, beta=1.5, noise_variance=0.1, delta=0.1)
    np.testing.assert_allclose(found.regret, [3, 4, 6, 6.5, 6.5, 7])
    np.testing.assert_allclose(found.trivial, [3, 6, 9, 12, 15, 18])
    for t in (1, 6):
        gain = max(float(information_gain(unit_kernel(name, 0.4)(x[:t], x[:t]), 0.1)) for name in EXPERTS)
        assert found.theorem[t - 1] == pytest.approx(regret_bound(t, gain, 1.5, 1.0, 4, 0.1))
    with pytest.raises(InvalidValueError):
        regret_bounds(model, regret[:3], 3.0, beta=1.5, noise_variance=0.1)


@pytest.mark.parametrize(
    "call",
    [
        lambda: beta(1.0, 0.1, 2.0, 4, 1.0),
        lambda: beta(1.0, 0.1, 2.0, 0, 0.1),
        lambda: beta(-1.0, 0.1, 2.0, 4, 0.1),
        lambda: beta(1.0, math.nan, 2.0, 4, 0.1),
        lambda: information_gain(torch.eye(2), 0.0),
        lambda: max_information_gain(unit_kernel("se", 1.0), points(3, 1, 0), 0, 0.1),
        lambda: max_information_gain(unit_kernel("se", 1.0), points(0, 1, 0), 2, 0.1),
        lambda: acquisition_lipschitz(1.0, -1.0, torch.ones(1)),
        lambda: regret_bound(0, 1.0, 1.0, 1.0, 4, 0.1),
        lambda: regret_bound(5, 1.0, 1.0, 0.5, 4, 0.1),
        lambda: FixedSurrogate(noise_variance=0.0),
        lambda: FixedSurrogate(lengthscale=(0.1, -0.1)),
        lambda: FixedSurrogate(lengthscale=(0.1, 0.2)).hyperparameters(3),
        lambda: UCB("practice"),  # type: ignore[arg-type]
    ],
)
def test_what_makes_no_sense_is_refused(call) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidValueError):
        call()


def test_the_code_of_the_page_runs() -> None:
    text = (Path(__file__).parents[1] / "docs" / "theory.md").read_text()
    names: dict[str, object] = {}
    for code in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        exec(compile(code, "theory.md", "exec"), names)
    assert isinstance(names["optimizer"], Optimizer)
