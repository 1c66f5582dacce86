"""Models of very many observations: against the textbook formula of FITC, the exact model and GPyTorch's SGPR."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import gpytorch
import numpy as np
import pytest
import torch
from torch import Tensor

from edrbo import Optimizer, Real, Space
from edrbo.acquisition.methods import Method, get_method
from edrbo.integrations.botorch import Ensemble
from edrbo.optimizer.calibration import earned_trust, leave_one_out
from edrbo.surrogate.ensemble import ExpertEnsemble, Surrogate, advance, fit_sizes, single_gp
from edrbo.surrogate.exact_gp import ExactGP
from edrbo.surrogate.fit import default_theta, unpack
from edrbo.surrogate.inducing_gp import InducingGP, PseudoGP, find_inducing_points
from edrbo.surrogate.kernels import Hyperparameters, ensemble_priors, get_kernel
from edrbo.surrogate.warping import WarpedSurrogate

pytestmark = [pytest.mark.torch_numeric]

SPARSE = Surrogate(sparse_from=100, inducing_points=60)


def data(n: int = 160, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Two thirds of the inputs lie around a good one, as in a run."""
    random = np.random.default_rng(seed)
    x = random.random((n, 2))
    near = random.random(n) < 2.0 / 3.0
    x[near] = np.clip(0.4 + 0.1 * random.standard_normal((int(near.sum()), 2)), 0.0, 1.0)
    y = np.sin(4.0 * x[:, 0]) + x[:, 1] ** 2 + 0.1 * random.standard_normal(n)
    return torch.from_numpy(x), torch.from_numpy(5.0 + 3.0 * y)


def hyper_of(surrogate: Surrogate, d: int = 2) -> Hyperparameters:
    """Not fitted: the priors' modes, each expert with a lengthscale and a noise of its own."""
    found = unpack(default_theta(tuple(get_kernel(name) for name in surrogate.experts), d, ensemble_priors(d)))
    steps = torch.linspace(0.8, 1.4, len(surrogate.experts), dtype=torch.float64)
    return replace(found, lengthscale=found.lengthscale * steps[:, None], noise_variance=0.01 * steps)


def models(n: int = 160, surrogate: Surrogate = SPARSE) -> tuple[ExpertEnsemble, ExpertEnsemble]:
    """The sparse model and the exact one at the same hyper-parameters."""
    x, y = data(n)
    exact = replace(surrogate, sparse_from=10**6)
    return surrogate.at(x, y, None, hyper_of(surrogate)), exact.at(x, y, None, hyper_of(surrogate))


def inducing_gp(model: ExpertEnsemble) -> InducingGP:
    assert isinstance(model.gp, InducingGP)
    return model.gp


def queries(count: int = 9) -> Tensor:
    return torch.rand(count, 2, generator=torch.Generator().manual_seed(4), dtype=torch.float64)


def dense(gp: InducingGP) -> tuple[Tensor, Tensor]:
    """The covariance Q + Λ of the data (M × n × n), and y − mean (M × n), written out."""
    z = gp.x[: gp.prior.shape[-1]]
    own, cross = gp.prior @ gp.prior.mT, gp._gram(z, gp.data)
    q = cross.mT @ torch.linalg.solve(own, cross)
    residual = gp.hyper.outputscale[:, None] - q.diagonal(dim1=-2, dim2=-1)
    return q + torch.diag_embed(gp.noise_variance + residual), gp.y - gp.hyper.mean[:, None]


def test_the_posterior_is_fitc_of_all_data() -> None:
    gp = inducing_gp(models()[0])
    z, points = gp.x, queries()
    covariance, centered = dense(gp)
    cross = gp._gram(points, z) @ torch.linalg.solve(gp.prior @ gp.prior.mT, gp._gram(z, gp.data))
    mean = gp.hyper.mean[:, None] + (cross @ torch.linalg.solve(covariance, centered.unsqueeze(-1))).squeeze(-1)
    joint = gp._gram(points, points) - cross @ torch.linalg.solve(covariance, cross.mT)
    found = gp.posterior(points)
    assert torch.allclose(found[0], mean, atol=1e-5)
    assert torch.allclose(found[1], joint, atol=1e-5)
    moments = gp.moments(points)
    assert torch.allclose(moments[0], mean, atol=1e-5)
    assert torch.allclose(moments[1].square(), joint.diagonal(dim1=-2, dim2=-1), atol=1e-5)
    ones = torch.ones_like(centered).unsqueeze(-1)
    solved = torch.linalg.solve(covariance, torch.cat([ones, gp.y.expand_as(centered).unsqueeze(-1)], dim=-1))
    profiled = solved[..., 1].sum(-1) / (solved[..., 0].sum(-1) + 1.0)
    assert torch.allclose(gp.hyper.mean, profiled, atol=1e-5)


def test_what_is_left_out_and_held_out_is_that_of_the_written_out_model() -> None:
    model = models()[0]
    gp = inducing_gp(model)
    covariance, centered = dense(gp)
    inverse = torch.linalg.inv(covariance)
    solved, precision = gp.held_out()
    assert torch.allclose(precision, inverse.diagonal(dim1=-2, dim2=-1), rtol=1e-4)
    assert torch.allclose(solved, (inverse @ centered.unsqueeze(-1)).squeeze(-1), rtol=1e-4, atol=1e-3)
    some = torch.tensor([3, 50, 120])
    few = gp.held_out(some)
    assert torch.allclose(few[0], solved[:, some])
    assert torch.allclose(few[1], precision[:, some])
    root = torch.linalg.cholesky(covariance)
    half = torch.linalg.solve_triangular(root, centered.unsqueeze(-1), upper=False).squeeze(-1)
    sd = root.diagonal(dim1=-2, dim2=-1)
    error, spread = gp.one_step_ahead()
    assert torch.allclose(spread, sd, rtol=1e-5)
    assert torch.allclose(error, half * sd, atol=1e-4)
    evidence = -0.5 * half.square().sum(-1) - sd.log().sum(-1) - 80.0 * math.log(2.0 * math.pi)
    assert torch.allclose(gp.log_evidence(), evidence, atol=1e-2)
    gain = 2.0 * sd.log().sum(-1) - gp.noise_variance.log().sum(-1)
    assert torch.allclose(gp.information_gain(), gain, atol=1e-3)
    residual = (covariance.diagonal(dim1=-2, dim2=-1) - gp.hyper.outputscale[:, None] - gp.noise_variance).abs()
    assert float(residual.max()) < 1e-6  # FITC has the prior variance at every row
    assert model.approximation is not None
    assert model.approximation.error == pytest.approx(float(gp.residual.mean().sqrt()) * model.scaling.scale)


def test_all_rows_as_inducing_points_are_the_exact_model() -> None:
    exact = models(70)[1].gp
    full = InducingGP.of(
        *(exact.kernels, exact.hyper, exact.x, exact.y, exact.noise_variance, torch.arange(70)), mean_sd=1.0
    )
    for a, b in ((full.moments(queries()), exact.moments(queries())), (full.held_out(), exact.held_out())):
        assert all(torch.allclose(one, other, rtol=1e-4, atol=1e-4) for one, other in zip(a, b, strict=True))
    assert torch.allclose(full.log_evidence(), exact.log_evidence(), atol=1e-3)
    assert torch.allclose(full.hyper.mean, exact.hyper.mean, atol=1e-6)


def test_where_nothing_is_left_out_it_is_the_sgpr_of_gpytorch() -> None:
    """SGPR takes no residual for noise. Of ten outcomes at each of twelve inputs, these are all that is to be known."""
    ends = torch.linspace(0.0, 1.0, 4, dtype=torch.float64)
    x = torch.cartesian_prod(ends, ends[:3]).repeat(10, 1)
    y = torch.sin(4.0 * x[:, 0]) + 0.1 * torch.randn(120, generator=torch.Generator().manual_seed(1)).double()
    hyper = replace(hyper_of(single_gp()), lengthscale=torch.full((1, 2), 0.4, dtype=torch.float64))
    noise_variance = hyper.noise_variance[:, None].expand(1, 120)
    gp = InducingGP.of((get_kernel("se"),), hyper, x, y, noise_variance, torch.arange(12), mean_sd=1.0)
    assert float(gp.residual) < 1e-8

    class Reference(gpytorch.models.ExactGP):
        def __init__(self) -> None:
            likelihood = gpytorch.likelihoods.GaussianLikelihood()
            super().__init__(x, gp.y, likelihood)
            self.mean_module = gpytorch.means.ConstantMean()
            base = gpytorch.kernels.RBFKernel(ard_num_dims=2)
            self.covar_module = gpytorch.kernels.InducingPointKernel(base, gp.x.clone(), likelihood)
            self.double()
            base.lengthscale = gp.hyper.lengthscale
            likelihood.noise = gp.hyper.noise_variance
            self.mean_module.constant.data.fill_(float(gp.hyper.mean))

        def forward(self, inputs: Tensor) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(inputs), self.covar_module(inputs))

    reference = Reference().eval()
    with torch.no_grad(), gpytorch.settings.cholesky_jitter(double_value=1e-9):
        found = reference(queries())
        mean, sd = found.mean, found.variance.sqrt()
    ours = gp.moments(queries())
    assert torch.allclose(ours[0][0], mean, atol=1e-5)
    assert torch.allclose(ours[1][0], sd, atol=1e-5)


def test_it_says_nearly_what_the_exact_model_says() -> None:
    sparse, exact = models(400)
    (mean, sd), (true_mean, true_sd) = (model.moments(data(60, seed=3)[0]) for model in (sparse, exact))
    assert float((mean - true_mean).abs().mean()) < 0.3 * float(true_sd.mean())
    assert 0.98 < float((sd / true_sd).mean()) < 1.3
    assert earned_trust(sparse).reach == pytest.approx(earned_trust(exact).reach, rel=0.1)
    held, found = leave_one_out(exact), leave_one_out(sparse)
    assert np.corrcoef(held.mean, found.mean)[0, 1] > 0.98
    nowhere = torch.zeros(1, 0, dtype=torch.float64)
    for other in (lambda model: model.rougher(0.8), lambda model: model.sparse().paired_with(nowhere)):
        wider = [
            float(other(model).moments(queries())[1].mean() / model.moments(queries())[1].mean())
            for model in (sparse, exact)
        ]
        assert wider[0] == pytest.approx(wider[1], rel=0.1)


def test_one_row_after_the_other_is_all_rows_at_once() -> None:
    x, y = data(160)
    hyper, whole = hyper_of(SPARSE), inducing_gp(models()[0])
    base = SPARSE.at(x[:120], y[:120], None, hyper)
    at_once = SPARSE.extend(base, x, y)
    grown = base
    for n in (121, 140, 141, 160):
        grown = SPARSE.extend(grown, x[:n], y[:n])
    assert (base.observations, grown.observations) == (120, 160)
    for one, other in zip(grown.moments(queries()), at_once.moments(queries()), strict=True):
        assert torch.allclose(one, other, rtol=1e-6, atol=1e-6)
    assert torch.equal(inducing_gp(grown).x, inducing_gp(base).x)
    again = InducingGP.of(
        *(whole.kernels, hyper, x, base.scaling.standardize(y), whole.noise_variance),
        *(torch.cat([torch.nonzero((x == row).all(1))[0] for row in inducing_gp(base).x]), 1.0),
    )
    for one, other in zip(again.moments(queries()), inducing_gp(at_once).moments(queries()), strict=True):
        assert torch.allclose(one, other, rtol=1e-6, atol=1e-6)


def test_few_rows_and_rough_functions_stay_exact() -> None:
    x, y = data(99)
    assert type(SPARSE.at(x, y, None, hyper_of(SPARSE)).gp) is ExactGP
    x, y = data(160)
    rough = replace(hyper_of(SPARSE), lengthscale=torch.full((4, 2), 0.02, dtype=torch.float64))
    assert type(SPARSE.at(x, y, None, rough).gp) is ExactGP
    x, y = data(400)  # … but not of many more
    model = SPARSE.at(x, y, None, rough)
    assert model.approximation is not None
    assert model.approximation.left_out > 1.0
    assert model.approximation.points == 60


def test_points_are_found_where_the_data_are_and_no_more_than_needed() -> None:
    x, _ = data(300)
    hyper, kernels = hyper_of(SPARSE), tuple(get_kernel(name) for name in SPARSE.experts)
    rows, left_out = find_inducing_points(kernels, hyper, x, 60)
    assert len(rows) == len(rows.unique()) == 60
    assert rows.tolist() == find_inducing_points(kernels, hyper, x, 60)[0].tolist()
    assert left_out > find_inducing_points(kernels, hyper, x, 120)[1]
    smooth = replace(hyper, lengthscale=torch.full((4, 2), 20.0, dtype=torch.float64))
    few, little = find_inducing_points(kernels, smooth, x, 60)
    assert len(few) < 30
    assert little <= 0.05
    same = find_inducing_points(kernels, hyper, x[:1].repeat(50, 1), 60)[0]
    assert len(same) == 1


def test_a_modelled_row_is_gaussian_conditioning() -> None:
    model, x = models()[0], queries(5)
    mean, covariance = model.gp.posterior(x)
    y = mean.mean(0)[:2] + 0.3
    more = model.with_modelled(x[:2], y, torch.full((2,), 0.04, dtype=torch.float64))
    observed = covariance[:, :2, :2] + 0.04 * torch.eye(2, dtype=torch.float64)
    gain = covariance[:, :, :2] @ torch.linalg.inv(observed)
    expected = mean + (gain @ (y - mean[:, :2]).unsqueeze(-1)).squeeze(-1)
    found = more.gp.posterior(x)
    assert more.observations == 162
    assert torch.allclose(found[0], expected, atol=1e-6)
    assert torch.allclose(found[1], covariance - gain @ covariance[:, :2], atol=1e-6)
    sd = observed.diagonal(dim1=-2, dim2=-1)
    assert torch.allclose(more.expert(1).gp.posterior(x)[0][0], expected[1], atol=1e-6)
    chosen = torch.distributions.MultivariateNormal(mean[:, :2], observed).log_prob(y)
    assert torch.allclose(more.log_evidence() - model.log_evidence(), chosen, atol=1e-4)
    assert bool((sd > 0.04).all())


def test_many_modelled_rows_go_into_the_sums() -> None:
    model = models()[0]
    x, y = data(80, seed=5)
    more = model.with_modelled(x, model.scaling.standardize(y))
    assert more.observations == 240
    assert inducing_gp(more).x.shape == inducing_gp(model).x.shape
    assert bool((more.moments(x)[1] <= model.moments(x)[1] + 1e-9).all())


def test_fantasies_and_joint_posteriors_through_botorch() -> None:
    model = Ensemble(models()[0])
    x = queries(6).reshape(3, 2, 2)
    posterior = model.posterior(x)
    mean, sd = models()[0].moments(x.reshape(-1, 2))
    assert torch.allclose(posterior.mean.reshape(-1), mean.mean(0), atol=1e-8)
    assert torch.allclose(posterior.variance.reshape(-1), sd.mean(0).square(), rtol=1e-6)
    fantasies = model.condition_on_observations(x[:, :1], posterior.mean[:, :1])
    after = fantasies.posterior(x)
    assert after.mean.shape == (3, 2, 1)
    assert bool((after.variance[:, 0] < posterior.variance[:, 0]).all())


def test_known_noise_and_replicates_are_heard() -> None:
    x, y = data(160)
    known = torch.where(torch.arange(160) % 2 == 0, 0.5, torch.nan)
    model = SPARSE.at(x, y, known, hyper_of(SPARSE))
    gp = inducing_gp(model)
    assert torch.allclose(gp.noise_variance[:, 0], torch.full((4,), 0.5 / model.scaling.scale**2, dtype=torch.float64))
    more = SPARSE.extend(SPARSE.at(x[:150], y[:150], known[:150], hyper_of(SPARSE)), x, y, known)
    assert inducing_gp(more).noise_variance[0, 158] == pytest.approx(0.5 / more.scaling.scale**2)
    twice = SPARSE.at(torch.cat([x, x[:40]]), torch.cat([y, y[:40] + 0.1]), None, hyper_of(SPARSE))
    assert (twice.observations, len(inducing_gp(twice).data)) == (200, 160)
    assert leave_one_out(twice).y.shape == (200,)
    assert leave_one_out(twice, 50).y.shape == (50,)


def test_the_expert_of_a_sparse_model_is_one_and_so_is_the_search_model() -> None:
    model = models()[0]
    gp = inducing_gp(model)
    for m in range(4):
        alone = gp.expert(m)
        assert torch.allclose(alone.moments(queries())[0][0], gp.moments(queries())[0][m])
        assert torch.allclose(alone.log_evidence(), gp.log_evidence()[m])
    rougher = model.rougher(0.7)
    assert type(rougher.gp) is PseudoGP
    assert torch.allclose(rougher.rougher(1.0 / 0.7).moments(queries())[0], model.moments(queries())[0], atol=1e-4)
    assert torch.allclose(rougher.expert(1).moments(queries())[1][0], rougher.moments(queries())[1][1])


def test_warped_outcomes_can_be_sparse_too() -> None:
    x, y = data(130)
    model = WarpedSurrogate(experts=("se",), sparse_from=100, inducing_points=40).fit(x, y.exp())
    assert model.approximation is not None
    assert np.corrcoef(model.moments(x)[0][0], y.exp())[0, 1] > 0.95


def test_a_fit_to_doubled_data_forgets_so_that_a_cold_start_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = data(1100)
    single, sizes = replace(single_gp(), sparse_from=600, inducing_points=24), list[int]()
    fit = Surrogate._hyperparameters

    def counted(self: Surrogate, X: Tensor, *rest: Any) -> Hyperparameters:
        sizes.append(len(X))
        return fit(self, X, *rest)

    monkeypatch.setattr(Surrogate, "_hyperparameters", counted)
    cold = advance(single, None, 1100, lambda _: x, y, _nothing)
    assert sizes[0] > 1024
    before = fit_sizes(1100)[-2]
    warm = advance(
        single, advance(single, None, before, lambda _: x, y, lambda _: None), 1100, lambda _: x, y, _nothing
    )
    assert torch.equal(warm.model.moments(queries())[0], cold.model.moments(queries())[0])


def _nothing(_: int) -> None:
    return None


# ---------------------------------------------------------------- through the optimizer


def sparse_method() -> Method:
    method = get_method("edrbo")
    return replace(method, surrogate=Surrogate(experts=("se", "matern32"), sparse_from=60, inducing_points=40))


def reported(n: int, method: Method | None = None) -> Optimizer:
    optimizer = Optimizer(Space({"x": (0, 1)}, {"c": (0, 1)}), method or sparse_method(), seed=3)
    for (x, c), y in zip(*(part.tolist() for part in data(n)), strict=True):
        optimizer.tell({"x": x}, {"c": c}, y)
    return optimizer


def test_a_run_that_was_interrupted_asks_the_same() -> None:
    going, resumed = reported(72), None
    going.ask()
    for step in range(3):
        resumed = Optimizer.of(going.state, going.fit)
        suggestion = going.ask()
        assert resumed.ask().design == suggestion.design
        assert resumed.model is not None
        assert resumed.model.approximation is not None
        going.tell(suggestion, {"c": 0.2 * step}, 7.0)
    assert resumed is not None
    assert Optimizer.of(going.state).ask().design == going.ask().design  # not even with a fit


def test_an_answer_says_that_it_is_approximated_and_by_how_much() -> None:
    answer, few = reported(90).recommend(), reported(50).recommend()
    assert few.approximation is None
    assert answer.approximation is not None
    assert answer.approximation["inducing_points"] <= 40
    assert 0.0 < answer.approximation["leave_out"] < 0.1 * answer.outcome_spread
    assert "runs stand for all" in str([fact for fact in answer._text.sources])
    exact = reported(90, replace(sparse_method(), surrogate=Surrogate(experts=("se", "matern32")))).recommend()
    assert exact.approximation is None
    assert answer.expected == pytest.approx(exact.expected, abs=0.1 * exact.outcome_spread)


def test_goals_missing_contexts_pending_designs_and_tolerances() -> None:
    space = Space({"x": Real(0, 1, tolerance=0.05)}, {"c": (0, 1)})
    optimizer = Optimizer(space, sparse_method(), seed=1, goal="cvar:0.2")
    for k, ((x, c), y) in enumerate(zip(*(part.tolist() for part in data(90)), strict=True)):
        optimizer.tell({"x": x}, None if k % 9 == 4 else {"c": c}, y)
    suggestions = optimizer.ask(3)
    assert len({suggestion.design["x"] for suggestion in suggestions}) == 3
    assert optimizer.recommend().approximation is not None
