"""Observations of earlier sources: gradients against differences, posteriors against dense algebra."""

from dataclasses import replace

import pytest
import torch
from reference import uniform

from edrbo.surrogate.earlier import EarlierRows, beside_priors
from edrbo.surrogate.ensemble import FittedModel, Surrogate, advance
from edrbo.surrogate.fit import Likelihood, default_theta, pack, unpack
from edrbo.surrogate.kernels import EXPERTS, Hyperparameters, ensemble_priors, get_kernel
from edrbo.surrogate.replicates import Replicates
from edrbo.surrogate.sparse import SparseGP
from edrbo.surrogate.warping import WarpedSurrogate

KERNELS = tuple(get_kernel(name) for name in EXPERTS)
SOURCES = 2


def smooth(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(5.0 * x[:, 0]) + x[:, 1].square() + 0.3 * x[:, 0] * x[:, 1]


def earlier_rows(d: int = 2) -> EarlierRows:
    """The first source is like f, the second is not."""
    x = torch.cat([uniform(9, d, seed=1), uniform(7, d, seed=2)])
    y = torch.cat([3.0 + 2.0 * smooth(x[:9]), torch.cos(9.0 * x[9:, 1])])
    source = torch.tensor([1] * 9 + [2] * 7)
    known = torch.full_like(y, torch.nan)
    known[3] = 0.01
    return EarlierRows(x, y, known, source)


def data(n: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    x = uniform(n, 2, seed=3)
    return x, smooth(x)


def likelihood(*, repeated: bool = False) -> Likelihood:
    earlier = earlier_rows()
    x, y = data()
    replicates = None
    if repeated:
        x, y = torch.cat([x, x[:2]]), torch.cat([y, y[:2] + 0.1])
        replicates = Replicates.among(x, y, None)
        assert replicates is not None
        x, y = x[replicates.first], replicates.mean(y)
    source = torch.cat([earlier.source, torch.zeros(len(y), dtype=torch.long)])
    known = torch.cat([earlier.noise_variance, torch.full_like(y, torch.nan)])
    outcomes = torch.cat([0.5 * earlier.y, y])
    return Likelihood(torch.cat([earlier.x, x]), outcomes, known, beside_priors(ensemble_priors(2)), replicates, source)


def some_theta(seed: int = 5) -> torch.Tensor:
    start = default_theta(KERNELS, 2, beside_priors(ensemble_priors(2)), SOURCES)
    return start + 0.5 * (uniform(*start.shape, seed=seed) - 0.5)


@pytest.mark.parametrize("repeated", [False, True])
def test_the_gradient_is_that_of_the_value(repeated: bool) -> None:
    known, theta, step = likelihood(repeated=repeated), some_theta(), 1e-5
    _, gradient, curvature = known.evaluate(theta, KERNELS, curved=True)
    for k in range(theta.shape[1]):
        moved = torch.zeros_like(theta)
        moved[:, k] = step
        above, below = (known.value_and_gradient(theta + side * moved, KERNELS)[0] for side in (1.0, -1.0))
        torch.testing.assert_close(gradient[:, k], (above - below) / (2.0 * step), rtol=1e-5, atol=1e-6)
    assert curvature is not None
    assert bool((torch.linalg.eigvalsh(curvature) > 0).all())


def test_the_curvature_is_the_average_information() -> None:
    """½ (∂K α)ᵀ K⁻¹ (∂K α), ∂K by differences of the covariance that conditioning makes."""
    known, theta, step = likelihood(), some_theta(), 1e-6
    _, _, curvature = known.evaluate(theta, KERNELS, curved=True)
    assert curvature is not None
    means, _ = dense(known, theta)[2:]
    covariance, alpha = dense(known, theta)[:2]
    columns = []
    for k in range(theta.shape[1]):
        moved = torch.zeros_like(theta)
        moved[:, k] = step
        slope = (dense(known, theta + moved)[0] - dense(known, theta - moved)[0]) / (2.0 * step)
        columns.append((slope @ alpha.unsqueeze(-1)).squeeze(-1))
    stacked = torch.stack(columns, dim=-1)
    expected = 0.5 * stacked.mT @ torch.linalg.solve(covariance, stacked)
    expected.diagonal(dim1=-2, dim2=-1).add_(known._prior_curvature)
    assert means.shape == (len(KERNELS), SOURCES + 1)
    torch.testing.assert_close(curvature, expected, rtol=1e-5, atol=1e-6)


def dense(known: Likelihood, theta: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Covariance, α, means and log density without priors of θ, entry by entry."""
    hyper = unpack(theta, SOURCES)
    assert hyper.correlation is not None
    assert hyper.source_noise is not None
    assert known.source is not None
    n, covariances, alphas, all_means, values = len(known.y), [], [], [], []
    for m, kernel in enumerate(KERNELS):
        rho, amplitude = [1.0, *hyper.correlation[m].tolist()], [float(hyper.outputscale[m]) ** 0.5, 1.0, 1.0]
        noises = [float(hyper.noise_variance[m]), *hyper.source_noise[m].tolist()]
        covariance = torch.zeros(n, n, dtype=torch.float64)
        for i in range(n):
            for j in range(n):
                s, t = int(known.source[i]), int(known.source[j])
                related = 1.0 if s == t else rho[s] * rho[t]
                distance = ((known.x[i] - known.x[j]) / hyper.lengthscale[m]).square().sum()
                covariance[i, j] = amplitude[s] * amplitude[t] * related * kernel.value(distance, hyper.shape[m])
            of_row = float("nan") if known.known_noise is None else float(known.known_noise[i])
            covariance[i, i] += noises[int(known.source[i])] if of_row != of_row else of_row
        members = torch.nn.functional.one_hot(known.source, SOURCES + 1).double()
        sds = torch.tensor([3.0, 1.0, 1.0], dtype=torch.float64)
        precision = members.mT @ torch.linalg.solve(covariance, members) + torch.diag(sds**-2)
        means = torch.linalg.solve(precision, members.mT @ torch.linalg.solve(covariance, known.y))
        residual = known.y - members @ means
        alpha = torch.linalg.solve(covariance, residual)
        normal = torch.distributions.MultivariateNormal(members @ means, covariance)
        covariances.append(covariance)
        alphas.append(alpha)
        all_means.append(means)
        values.append(normal.log_prob(known.y) - 0.5 * (means / sds).square().sum())
    return torch.stack(covariances), torch.stack(alphas), torch.stack(all_means), torch.stack(values)


def test_the_likelihood_is_that_of_the_dense_covariance() -> None:
    known, theta = likelihood(), some_theta()
    value, _ = known.value_and_gradient(theta, KERNELS)
    prior, _ = known._log_prior(theta, KERNELS)
    torch.testing.assert_close(value - prior, dense(known, theta)[3], rtol=1e-9, atol=1e-9)


def conditioned(theta: torch.Tensor | None = None, *, kind: type[Surrogate] = Surrogate):  # type: ignore[no-untyped-def]
    """The surrogate beside the earlier rows, and its model at given hyper-parameters."""
    surrogate = kind().beside(earlier_rows())
    return surrogate, surrogate.at(*data(), None, unpack(some_theta() if theta is None else theta, SOURCES))


def test_the_posterior_is_that_of_dense_algebra() -> None:
    """As GPyTorch's IndexKernel has it: the covariance of tasks times that of inputs."""
    _, model = conditioned()
    gp, hyper, points = model.gp, model.gp.hyper, uniform(5, 2, seed=8)
    assert gp.source is not None
    assert hyper.correlation is not None
    known = Likelihood(gp.x, gp.y, None, ensemble_priors(2), None, gp.source)
    mean, sd = gp.moments(points)
    joint_mean, joint = gp.posterior(points)
    for m, kernel in enumerate(KERNELS):
        scale = float(hyper.outputscale[m])
        related = torch.cat([torch.ones(1), hyper.correlation[m]]).double()[gp.source]
        amplitude = 1.0 + (gp.source == 0).double() * (scale**0.5 - 1.0)
        tasks = related[:, None] * related
        tasks[gp.source[:, None] == gp.source] = 1.0
        distance = (known.x[:, None] - known.x).div(hyper.lengthscale[m]).square().sum(-1)
        covariance = amplitude[:, None] * amplitude * tasks * kernel.value(distance, hyper.shape[m])
        covariance += torch.diag(gp.noise_variance[m])
        to_rows = (points[:, None] - known.x).div(hyper.lengthscale[m]).square().sum(-1)
        cross = scale**0.5 * amplitude * related * kernel.value(to_rows, hyper.shape[m])
        residual = gp.y - gp.mean[m]
        expected = hyper.mean[m] + cross @ torch.linalg.solve(covariance, residual)
        variance = scale - (cross * torch.linalg.solve(covariance, cross.mT).mT).sum(-1)
        torch.testing.assert_close(mean[m], expected, rtol=1e-8, atol=1e-8)
        torch.testing.assert_close(sd[m], variance.sqrt(), rtol=1e-7, atol=1e-7)
        torch.testing.assert_close(joint_mean[m], expected, rtol=1e-8, atol=1e-8)
        torch.testing.assert_close(joint[m].diagonal().sqrt(), variance.sqrt(), rtol=1e-7, atol=1e-7)


def test_gradients_of_paired_moments_are_those_of_the_joint_posterior() -> None:
    _, model = conditioned()
    contexts, x = uniform(3, 1, seed=9), uniform(4, 1, seed=10).requires_grad_()
    weights = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)
    found = model.paired_with(contexts).integrated(x, weights)
    pairs = torch.cat([x[:, None].expand(-1, 3, -1), contexts.expand(4, -1, -1)], dim=-1)
    mean, covariance = model.gp.posterior(pairs)
    scale = model.scaling.scale
    expected = (
        model.scaling.shift + scale * (mean @ weights).mT,
        scale * torch.einsum("nmij,i,j->mn", covariance, weights, weights).sqrt(),
    )
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-7, atol=1e-8)
        ours, theirs = (torch.autograd.grad(part.sum(), x, retain_graph=True)[0] for part in (one, other))
        torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-7)


def test_rows_that_are_added_give_what_conditioning_on_all_gives() -> None:
    surrogate, model = conditioned()
    more = uniform(3, 2, seed=11)
    X, Y = torch.cat([data()[0], more]), torch.cat([data()[1], smooth(more)])
    grown, whole = surrogate.extend(model, X, Y), surrogate.at(X, Y, None, model.gp.hyper)
    points = uniform(6, 2, seed=12)
    for one, other in zip(grown.moments(points), whole.moments(points), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-8)
    assert grown.observations == 9
    assert torch.equal(grown.inputs, X)


def test_inducing_points_that_are_all_rows_change_nothing() -> None:
    _, model = conditioned()
    points = uniform(6, 2, seed=13)
    few = SparseGP.of(model.gp, torch.arange(len(model.gp.x))).paired_with(points.new_zeros(1, 0))
    for one, other in zip(few.moments(points), model.gp.moments(points), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def test_leaving_an_outcome_out_is_conditioning_on_the_others() -> None:
    _, model = conditioned()
    _, mean, sd = model.leave_one_out()
    assert mean.shape == (4, 6)
    gp = model.gp
    keep = torch.arange(len(gp.y)) != gp.earlier + 2
    source = None if gp.source is None else gp.source[keep]
    without = type(gp).condition(gp.kernels, gp.hyper, gp.x[keep], gp.y[keep], gp.noise_variance[:, keep], None, source)
    expected, spread = without.moments(data()[0][2:3])
    torch.testing.assert_close(mean[:, 2], expected[:, 0], rtol=1e-7, atol=1e-7)
    noise = gp.noise_variance[:, gp.earlier + 2]
    torch.testing.assert_close(sd[:, 2], (spread[:, 0].square() + noise).sqrt(), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("kind", [Surrogate, WarpedSurrogate])
def test_a_fit_finds_what_is_related_and_what_is_not(kind: type[Surrogate]) -> None:
    x, noise = uniform(40, 2, seed=21), 0.05 * (uniform(40, 1, seed=22)[:, 0] - 0.5)
    unrelated = torch.sin(17.0 * x[:, 0] + 3.0) * torch.cos(13.0 * x[:, 1])
    y = torch.cat([7.0 + 2.0 * smooth(x) + noise, unrelated + noise])
    source = torch.tensor([1] * 40 + [2] * 40)
    earlier = EarlierRows(torch.cat([x, x]), y, torch.full_like(y, torch.nan), source)
    X = uniform(14, 2, seed=23)
    model = kind().beside(earlier).fit(X, smooth(X))
    related = model.correlation
    assert related is not None
    assert related[0] > 0.95
    assert abs(related[1]) < 0.5
    points = uniform(50, 2, seed=24)
    found, alone = (m.moments(points)[0].mean(0) for m in (model, kind().fit(X, smooth(X))))
    errors = [float((mean - smooth(points)).square().mean().sqrt()) for mean in (found, alone)]
    assert errors[0] < 0.5 * errors[1]


def test_going_on_and_starting_from_stored_hyperparameters_are_the_same() -> None:
    surrogate, (X, Y) = Surrogate(experts=("se", "matern52")), data(24)

    def of(
        n: int, previous: FittedModel | None = None, start: tuple[int, Hyperparameters] | None = None
    ) -> FittedModel:
        earlier = earlier_rows()
        return advance(surrogate, previous, n, lambda size: X, Y[:n], lambda size: None, start, lambda size: earlier)

    step = of(23, of(22))
    stored = of(23, start=(step.fitted, Hyperparameters.from_dict(step.hyper.to_dict())))
    for one, other in zip(step.model.moments(X), stored.model.moments(X), strict=True):
        assert torch.equal(one, other)


def test_hyperparameters_are_packed_and_back() -> None:
    theta = some_theta()
    torch.testing.assert_close(pack(unpack(theta, SOURCES)), theta)
    hyper = unpack(theta, SOURCES)
    back = Hyperparameters.from_dict(hyper.to_dict())
    assert back.sources == SOURCES
    assert torch.equal(back.expert(1).correlation, hyper.correlation[1:2])  # type: ignore[index, arg-type]
    assert replace(hyper, correlation=None).sources == 0
