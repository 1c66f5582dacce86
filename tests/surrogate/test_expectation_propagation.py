"""Expectation propagation against integrals taken by brute force."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import norm
from torch import Tensor

from edrbo.surrogate import feasibility as module
from edrbo.surrogate.feasibility import EPPosterior, propagate


def tensor(values: object) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def likelihood(f: np.ndarray, mean: float, luck: float, yes: np.ndarray) -> np.ndarray:
    """P(answers | f) by its definition; ``f`` is ... × n."""
    success = (1.0 - luck) * norm.cdf(mean + f)
    return np.where(yes, success, 1.0 - success).prod(-1)


def solve(covariance: np.ndarray, mean: float, luck: float, yes: list[bool]) -> EPPosterior:
    return propagate(tensor(covariance)[None], tensor([mean]), tensor([luck]), torch.tensor(yes))


def grid_integral(covariance: np.ndarray, mean: float, luck: float, yes: list[bool]) -> tuple[float, np.ndarray]:
    """Evidence, and posterior mean and variance of each f (2 × n), on a grid of the n ≤ 2 dimensions."""
    n = len(yes)
    root = np.linalg.cholesky(covariance)
    axis = np.linspace(-8, 8, 801)
    white = np.stack(np.meshgrid(*[axis] * n, indexing="ij"), -1).reshape(-1, n)
    weight = norm.pdf(white).prod(-1) * (axis[1] - axis[0]) ** n
    f = white @ root.T
    weight = weight * likelihood(f, mean, luck, np.array(yes))
    training_data = weight.sum()
    center = weight @ f / training_data
    return float(training_data), np.stack([center, weight @ (f - center) ** 2 / training_data])


def moments(found: EPPosterior, covariance: np.ndarray) -> np.ndarray:
    k = tensor(covariance)
    mean = k @ found.alpha[0]
    variance = k.diagonal() - (k @ found.precision[0] @ k).diagonal()
    return torch.stack([mean, variance]).numpy()


@pytest.mark.parametrize("yes", [True, False])
@pytest.mark.parametrize(("size", "mean", "luck"), [(1.0, 0.3, 0.05), (4.0, 2.0, 0.2), (9.0, 3.0, 0.01)])
def test_one_answer_is_exact(yes: bool, size: float, mean: float, luck: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TOLERANCE", 1e-10)
    covariance = np.array([[size]])
    training_data, exact = grid_integral(covariance, mean, luck, [yes])
    found = solve(covariance, mean, luck, [yes])
    assert float(found.log_evidence[0].exp()) == pytest.approx(training_data, rel=1e-6)
    assert moments(found, covariance)[0] == pytest.approx(exact[0], abs=1e-5)
    # one "no" that may be bad luck can leave more variance than there was; then the site keeps that of the prior
    assert moments(found, covariance)[1] == pytest.approx(np.minimum(exact[1], size), rel=1e-4)


@pytest.mark.parametrize("yes", [[True, True], [True, False], [False, False]])
@pytest.mark.parametrize("luck", [0.01, 0.2])
def test_two_answers_are_close_to_the_integral(yes: list[bool], luck: float) -> None:
    covariance = 4.0 * np.array([[1.0, 0.6], [0.6, 1.0]])
    training_data, exact = grid_integral(covariance, 1.5, luck, yes)
    found = solve(covariance, 1.5, luck, yes)
    assert float(found.log_evidence[0].exp()) == pytest.approx(training_data, rel=0.03)
    apart = np.abs(moments(found, covariance) - exact)
    assert apart[0].max() < 0.15  # of a standard deviation of two
    assert apart[1].max() < 0.7  # of a variance of four: where a "no" may be luck, sites keep it too small


def test_probabilities_agree_with_sampling() -> None:
    rng = np.random.default_rng(0)
    x = rng.random((9, 2))
    points = np.concatenate([x, [[0.1, 0.1], [0.9, 0.9], [0.5, 0.5]]])
    apart = ((points[:, None] - points[None]) ** 2).sum(-1)
    covariance = 9.0 * np.exp(-apart / (2 * 0.5**2)) + 1e-9 * np.eye(len(points))
    yes, mean, luck = x.sum(1) < 1.1, 2.0, 0.05
    assert 2 <= yes.sum() <= 7
    f = rng.normal(size=(400_000, len(points))) @ np.linalg.cholesky(covariance).T
    weight = likelihood(f[:, :9], mean, luck, yes)
    exact = weight @ norm.cdf(mean + f[:, 9:]) / weight.sum()
    found = solve(covariance[:9, :9], mean, luck, yes.tolist())
    cross, own = tensor(covariance[9:, :9]), tensor(covariance[9:, 9:]).diagonal()
    center = mean + cross @ found.alpha[0]
    variance = own - (cross @ found.precision[0] @ cross.T).diagonal()
    predicted = torch.special.ndtr(center / (1.0 + variance).sqrt()).numpy()
    assert np.abs(predicted - exact).max() < 0.02
    assert float(found.log_evidence[0]) == pytest.approx(np.log(weight.mean()), abs=0.05)


def test_many_problems_are_solved_as_each_alone() -> None:
    generator = torch.Generator().manual_seed(1)
    x = torch.rand(12, 2, generator=generator, dtype=torch.float64)
    apart = (x[:, None] - x).square().sum(-1)
    covariance = torch.stack([4.0 * torch.exp(-apart / ell) for ell in (0.1, 0.5)])
    mean, luck, yes = tensor([1.0, 2.0]), tensor([0.02, 0.2]), x[:, 0] < 0.6
    together = propagate(covariance, mean, luck, yes, sweeps=40)
    for i in range(2):
        alone = propagate(covariance[i : i + 1], mean[i : i + 1], luck[i : i + 1], yes, sweeps=40)
        assert torch.allclose(together.log_evidence[i], alone.log_evidence[0], atol=1e-3)
        assert torch.allclose(together.alpha[i], alone.alpha[0], atol=2e-2)


def test_where_it_starts_does_not_matter() -> None:
    generator = torch.Generator().manual_seed(2)
    x = torch.rand(20, 2, generator=generator, dtype=torch.float64)
    covariance = 36.0 * torch.exp(-(x[:, None] - x).square().sum(-1) / 0.3)[None]
    yes = x.sum(-1) < 1.0
    yes[0] = ~yes[0]  # one accident
    problem = (covariance, tensor([5.0]), tensor([0.05]), yes)
    cold = propagate(*problem, sweeps=300)
    elsewhere = propagate(*problem, sweeps=300, start=torch.full((2, 1, 20), 0.3, dtype=torch.float64))
    assert torch.allclose(cold.log_evidence, elsewhere.log_evidence, atol=1e-2)
    assert torch.allclose(covariance @ cold.alpha[..., None], covariance @ elsewhere.alpha[..., None], atol=0.1)
