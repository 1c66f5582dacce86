"""Any BoTorch model as a surrogate: its numbers against dense linear algebra, and its way through every interface."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import EnsembleMapSaasSingleTaskGP, MultiTaskGP, SingleTaskGP
from botorch.models.model import Model
from botorch.models.transforms.outcome import Log
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

import edrbo
from edrbo import Method, Optimizer, Space
from edrbo.acquisition import methods
from edrbo.acquisition.risk import Expectation
from edrbo.acquisition.scores import UCB, MeanUCB, Score
from edrbo.contexts import Empirical
from edrbo.errors import InvalidValueError
from edrbo.integrations.botorch import BotorchSurrogate, StockEnsemble
from edrbo.optimizer.calibration import one_step_ahead
from edrbo.surrogate.exact_gp import ExactGP
from edrbo.surrogate.kernels import Hyperparameters, get_kernel

# a multi-task model of GPyTorch makes sparse tensors; that is nobody's business here
pytestmark = pytest.mark.filterwarnings("ignore:Sparse invariant checks")

SPACE = Space({"x": (0, 1), "z": (0, 1)}, {"c": (0, 1)})


@dataclass(frozen=True)
class Plain(BotorchSurrogate):
    """BoTorch's own model."""

    def fit_model(self, X: Tensor, Y: Tensor, Yvar: Tensor | None) -> Model:
        model = SingleTaskGP(X, Y, Yvar)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        return model


@dataclass(frozen=True)
class Saas(BotorchSurrogate):
    """An ensemble of sparse axis-aligned models: the posterior is a mixture."""

    def fit_model(self, X: Tensor, Y: Tensor, Yvar: Tensor | None) -> Model:
        model = EnsembleMapSaasSingleTaskGP(X, Y, Yvar)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        return model


@dataclass(frozen=True)
class Tasks(BotorchSurrogate):
    """Early and late outcomes as two tasks; the late one is asked."""

    outputs: int = 1

    def fit_model(self, X: Tensor, Y: Tensor, Yvar: Tensor | None) -> Model:
        task = (torch.arange(len(X)) >= len(X) // 2).to(X)[:, None]
        wanted = [1.0] if self.outputs == 1 else None
        return MultiTaskGP(torch.cat([X, task], dim=-1), Y, task_feature=-1, output_tasks=wanted)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Logged(BotorchSurrogate):
    """Its posterior is not Gaussian."""

    def fit_model(self, X: Tensor, Y: Tensor, Yvar: Tensor | None) -> Model:
        return SingleTaskGP(X, Y.exp(), outcome_transform=Log())


@pytest.fixture(autouse=True)
def registered() -> object:
    for part in (Plain, Saas, Tasks):
        edrbo.register(part)
    yield
    for part in (Plain, Saas, Tasks):
        methods.PARTS.pop(part.__name__, None)


def method(surrogate: BotorchSurrogate, score: Score | None = None) -> Method:
    return Method(surrogate, score or UCB(1.0), Empirical(), Expectation())


def data(n: int = 9) -> tuple[Tensor, Tensor]:
    x = torch.rand(n, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    noise = torch.randn(n, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    return x, 40.0 + 6.0 * torch.sin(5.0 * x).sum(-1) + 1.5 * noise


def by_hand(model: StockEnsemble) -> ExactGP:
    """The engine's exact GP with the hyper-parameters that BoTorch fitted, in the units of the surrogate."""
    fitted = model.gp.posterior_.model  # type: ignore[attr-defined]
    assert isinstance(fitted, SingleTaskGP)
    with torch.no_grad():
        unit = fitted.outcome_transform
        scale, shift = float(unit.stdvs), float(unit.means)
        lengthscale = fitted.covar_module.lengthscale
        hyper = Hyperparameters(
            lengthscale,
            torch.tensor([scale**2], dtype=torch.float64),
            scale**2 * fitted.likelihood.noise.reshape(1),
            (shift + scale * fitted.mean_module.constant).reshape(1).to(torch.float64),
            torch.ones(1, dtype=torch.float64),
        )
    return ExactGP.condition((get_kernel("se"),), hyper, model.gp.x, model.gp.y)


def test_the_numbers_of_botorchs_model_are_those_of_an_exact_gp_with_its_hyper_parameters() -> None:
    x, y = data()
    model = Plain().fit(x, y)
    reference = by_hand(model)
    points = torch.rand(5, 3, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    for mine, theirs in zip(model.gp.posterior(points), reference.posterior(points), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-6, atol=1e-8)
    torch.testing.assert_close(model.gp.alpha, reference.alpha, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(
        model.gp.chol @ model.gp.chol.mT, reference.chol @ reference.chol.mT, rtol=1e-5, atol=1e-6
    )
    exact = replace(edrbo.Surrogate().fit(x, y), gp=reference, scaling=model.scaling, replicates=None)
    for mine, theirs in zip(model.leave_one_out(), exact.leave_one_out(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(one_step_ahead(model).mean, one_step_ahead(exact).mean, rtol=1e-5)
    rows = torch.tensor([1, 4])
    for mine, theirs in zip(
        model.gp.posterior_beside(points, rows), reference.posterior_beside(points, rows), strict=True
    ):
        torch.testing.assert_close(mine, theirs, rtol=1e-6, atol=1e-8)


def test_further_observations_condition_it() -> None:
    x, y = data(12)
    before = Plain().fit(x[:9], y[:9])
    reference = by_hand(before)
    noise = torch.full((3,), 0.04, dtype=torch.float64)
    more = before.scaling.standardize(y)[9:]
    after = before.with_modelled(x[9:10], more[:1], noise[:1]).with_modelled(x[10:], more[1:], noise[1:])
    expected = reference.extend(x[9:], more, noise)
    points = torch.rand(4, 3, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    for mine, theirs in zip(after.gp.posterior(points), expected.posterior(points), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-6, atol=1e-8)
    torch.testing.assert_close(after.gp.moments(points)[1], expected.moments(points)[1], rtol=1e-6, atol=1e-8)
    extended = Plain().extend(before, x, y)
    assert extended.observations == 12
    torch.testing.assert_close(
        extended.gp.posterior(points)[0], reference.extend(x[9:], more).posterior(points)[0], rtol=1e-6, atol=1e-8
    )


@pytest.mark.parametrize("surrogate", [Plain(), Saas(), Tasks()], ids=lambda one: type(one).__name__)
def test_moments_and_gradients_on_designs_and_contexts(surrogate: BotorchSurrogate) -> None:
    x, y = data(12)
    model = surrogate.extend(surrogate.fit(x[:10], y[:10]), x, y)
    contexts, designs = x[:3, 2:], x[:4, :2].clone()
    weights = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64)
    paired = model.paired_with(contexts)
    joint = torch.cat([designs.repeat_interleave(3, 0), contexts.repeat(4, 1)], dim=-1)
    mean, covariance = model.gp.posterior(joint)
    experts = len(mean)
    assert model.num_experts == experts
    unit = model.scaling.scale
    torch.testing.assert_close(paired.moments(designs)[0], model.scaling.value(mean), rtol=1e-8, atol=1e-8)
    averages, spreads = paired.integrated(designs, weights)
    torch.testing.assert_close(
        averages, model.scaling.value(mean.reshape(experts, 4, 3) @ weights), rtol=1e-8, atol=1e-8
    )
    blocks = covariance.reshape(experts, 4, 3, 4, 3)
    for i in range(4):
        variance = weights @ blocks[:, i, :, i] @ weights
        torch.testing.assert_close(spreads[:, i], unit * variance.sqrt(), rtol=1e-6, atol=1e-8)
    values, _, pullback = paired.integrated_and_pullback(designs, weights)
    gradient = pullback(torch.ones_like(values), torch.zeros_like(values))
    for k in range(2):
        step = torch.zeros_like(designs)
        step[:, k] = 1e-5
        up, down = paired.integrated(designs + step, weights)[0], paired.integrated(designs - step, weights)[0]
        torch.testing.assert_close(gradient[:, k], ((up - down) / 2e-5).sum(0), rtol=1e-4, atol=1e-5)


def test_members_of_a_mixture_are_experts() -> None:
    x, y = data()
    model = Saas().fit(x, y)
    assert model.num_experts == 4
    mean, covariance = model.gp.posterior(x[:2])
    for m in range(4):
        alone = model.expert(m)
        assert alone.num_experts == 1
        for one, all_ in zip(alone.gp.posterior(x[:2]), (mean, covariance), strict=True):
            torch.testing.assert_close(one, all_[m : m + 1])


@pytest.mark.parametrize("surrogate", [Tasks(outputs=2), Logged()], ids=["two outputs", "not Gaussian"])
def test_what_is_no_surrogate_says_so(surrogate: BotorchSurrogate) -> None:
    with pytest.raises(InvalidValueError):
        surrogate.fit(*data())


def tell_some(optimizer: Optimizer, count: int) -> None:
    chance = random.Random(0)
    for _ in range(count):
        suggestion, c = optimizer.ask(), chance.random()
        optimizer.tell(suggestion, {"c": c}, -((suggestion["x"] - c) ** 2) - (suggestion["z"] - 0.3) ** 2)


@pytest.mark.parametrize(("surrogate", "score"), [(Plain(), UCB(1.0)), (Saas(), MeanUCB()), (Tasks(), UCB(1.0))])
def test_a_loop_with_everything_that_is_not_ordinary(surrogate: BotorchSurrogate, score: Score) -> None:
    optimizer = Optimizer(SPACE, method(surrogate, score), seed=0, initial=4)
    tell_some(optimizer, 6)
    optimizer.tell(optimizer.ask(), failed=True)
    optimizer.tell(optimizer.ask(), value=-0.2)  # in a context that nobody knows
    batch = optimizer.ask(3)
    assert len({tuple(one.design.values()) for one in batch}) == 3
    answer = optimizer.recommend()
    assert answer.interval[0] < answer.value < answer.interval[1]
    for goal in ("cvar:0.2", "robust:0.1"):
        assert np.isfinite(optimizer.recommend(goal=goal).value)


def test_it_finds_the_best_design() -> None:
    optimizer = Optimizer(SPACE, method(Plain()), seed=0, initial=4)
    tell_some(optimizer, 18)
    design = optimizer.recommend().design
    assert design["x"] == pytest.approx(0.5, abs=0.2)
    assert design["z"] == pytest.approx(0.3, abs=0.1)


def test_a_study_is_stored_and_goes_on_to_the_same_numbers(tmp_path: Path) -> None:
    path, space = tmp_path / "study.db", Space({"x": (0, 1)}, {"c": (0, 1)})
    study = edrbo.Study.open(path, space, method=method(Plain()), initial=3, seed=1)
    alone = Optimizer(space, method(Plain()), initial=3, seed=1)
    for c in (0.2, 0.6, 0.9, 0.4, 0.5):
        study = edrbo.Study.open(path)  # as another process would
        suggestion, expected = study.ask(), alone.ask()
        assert suggestion.design == expected.design
        for optimizer, one in ((study, suggestion), (alone, expected)):
            optimizer.tell(one, {"c": c}, -((one["x"] - c) ** 2))
    assert study.settings.method["surrogate"]["part"] == "Plain"  # type: ignore[index,call-overload]
