"""The rules of research/rules: what they compute, against grids, draws and quadrature."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.ndimage import maximum_filter
from scipy.stats import norm

from edrbo.acquisition.methods import Method
from edrbo.acquisition.scores import MeanUCB
from edrbo.bench.learners.learner import OptimizerLearner, Setup
from edrbo.surrogate.ensemble import ExpertEnsemble, Surrogate
from edrbo.surrogate.gaussian_model import pairs

ROOT = Path(__file__).parents[1]
NAMES = ("hills", "models", "scores", "methods")


@pytest.fixture(scope="module")
def rules() -> Iterator[dict[str, ModuleType]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "research"))
        yield {name: importlib.import_module(f"rules.{name}") for name in NAMES}
    for name in [name for name in sys.modules if name.partition(".")[0] == "rules"]:
        sys.modules.pop(name)


def two_hills(x: np.ndarray, c: np.ndarray) -> np.ndarray:
    """A broad hill at (0.25, 0.3) and a narrower, higher one at (0.8, 0.7); the context moves both a little."""
    broad = np.exp(-8 * ((x[:, 0] - 0.25) ** 2 + (x[:, 1] - 0.3 - 0.1 * (c[:, 0] - 0.5)) ** 2))
    narrow = np.exp(-25 * ((x[:, 0] - 0.8) ** 2 + (x[:, 1] - 0.7 + 0.1 * (c[:, 0] - 0.5)) ** 2))
    return np.asarray(broad + 1.2 * narrow)


@pytest.fixture(scope="module")
def model() -> ExpertEnsemble:
    """Many designs on the broad hill, a few elsewhere, one of them at the foot of the other."""
    rng = np.random.default_rng(0)
    x = np.vstack([0.25 + 0.1 * rng.standard_normal((18, 2)), rng.random((10, 2)), [[0.7, 0.75]]]).clip(0, 1)
    c = rng.random((len(x), 1))
    return Surrogate().fit(torch.from_numpy(np.hstack([x, c])), torch.from_numpy(two_hills(x, c)))


# -------------------------------------------------------------------- hills


@pytest.mark.parametrize("optimism", [0.0, 1.0])
def test_tops_are_those_of_a_grid(rules: dict[str, ModuleType], model: ExpertEnsemble, optimism: float) -> None:
    hills = rules["hills"]
    surface = hills.surface_of(model, hills.context_points(model, 2), optimism)
    line = torch.linspace(0, 1, 121, dtype=torch.float64)
    designs = torch.cartesian_prod(line, line)
    values = surface.evaluate(designs).numpy().reshape(121, 121)
    peaks = np.argwhere(values == maximum_filter(values, 9, mode="nearest"))
    tops = hills.tops_of(surface, model.inputs[:, :2], seed=3)
    assert len(tops) >= 2
    heights = surface.evaluate(tops)
    assert bool((heights.diff() <= 0).all())
    assert float(heights[0]) >= values.max() - 1e-9  # a grid cannot be higher than the top
    for top in tops:
        assert min(np.abs(peaks / 120 - top.numpy()).max(axis=1)) < 0.02
    # a peak of the grid that was left out has no valley of the depth asked for to a top that is as high
    spread = float(np.ptp(values))
    for peak in peaks[values[*peaks.T] > values.min() + 0.1 * spread]:  # nobody would visit one lower than that
        place = torch.from_numpy(peak / 120)
        if float((tops - place).abs().max(1).values.min()) > 0.05:
            depth = 1.5 * hills.VALLEY * spread
            assert not all(hills.has_valley(surface, place, top, depth) for top in tops)


def test_means_and_doubts_are_those_of_draws(rules: dict[str, ModuleType], model: ExpertEnsemble) -> None:
    """F at each top, drawn jointly from each expert's posterior of f in all contexts."""
    hills = rules["hills"]
    points = hills.context_points(model, 2)
    tops = hills.tops_of(hills.surface_of(model, points, 0.0), model.inputs[:, :2], seed=3)
    found = hills.compared(model, points, tops)
    mean, covariance = (
        model.expert_moments(pairs(tops, points.atoms))[0],
        model.gp.posterior(pairs(tops, points.atoms))[1],
    )
    rng = np.random.default_rng(5)
    for m in range(model.num_experts):
        joint = model.scaling.scale**2 * covariance[m].numpy()
        f = rng.multivariate_normal(mean[m].numpy(), joint, size=40_000, method="svd")
        worth = f.reshape(len(f), len(tops), -1) @ points.weights.numpy()
        ahead = worth - worth[:, :1]
        np.testing.assert_allclose(found.ahead[m], ahead.mean(0), atol=5 * ahead.std(0).max() / 200)
        np.testing.assert_allclose(found.doubt[m], ahead.std(0), rtol=0.03, atol=1e-6)


def test_chances_and_gains_are_those_of_draws(rules: dict[str, ModuleType]) -> None:
    hills = rules["hills"]
    ahead = torch.tensor([[0.0, -0.5, 0.1], [0.0, -2.0, -0.1]], dtype=torch.float64)
    doubt = torch.tensor([[0.0, 0.4, 0.2], [0.0, 1.0, 0.3]], dtype=torch.float64)
    found = hills.Hills(torch.zeros(3, 2), ahead, doubt)
    rng, draws = np.random.default_rng(6), 200_000
    for stretch in (1.0, 2.0):
        tails = ahead.numpy() + stretch * doubt.numpy() * rng.standard_t(hills.FREEDOM, (draws, 2, 1))
        np.testing.assert_allclose(found.chances(stretch)[1:], (tails > 0).mean((0, 1))[1:], atol=0.005)
        normal = ahead.numpy() + stretch * doubt.numpy() * rng.standard_normal((draws, 2, 1))
        more, less = found.gains(stretch)
        np.testing.assert_allclose(more, normal.clip(0).mean((0, 1)), atol=0.01)
        np.testing.assert_allclose(less, (-normal).clip(0).mean((0, 1)), atol=0.01)
    assert float(found.chances(1.0)[0]) == 0.5


@settings(deadline=None, max_examples=30)
@given(ahead=st.floats(-3, 3), doubt=st.floats(1e-3, 3), stretch=st.floats(1, 4))
def test_chance_rises_with_what_is_expected(ahead: float, doubt: float, stretch: float) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "research"))
        hills = importlib.import_module("rules.hills")

    def chance(by: float) -> float:
        rows = torch.tensor([[0.0, by]], dtype=torch.float64), torch.tensor([[0.0, doubt]], dtype=torch.float64)
        return float(hills.Hills(torch.zeros(2, 1), *rows).chances(stretch)[1])

    assert 0.0 <= chance(ahead) < chance(ahead + 0.1) <= 1.0
    assert chance(ahead) + chance(-ahead) == pytest.approx(1.0)


def run(learner: OptimizerLearner, count: int) -> np.ndarray:
    rng, designs = np.random.default_rng(1), []
    for c in rng.random((count, 1)):
        designs.append(learner.suggest())
        learner.observe(designs[-1], c, float(two_hills(designs[-1][None], c[None])[0]))
    return np.array(designs)


def test_the_rival_is_visited_in_turn_and_the_default_goes_on_between(rules: dict[str, ModuleType]) -> None:
    hills, setup = rules["hills"], Setup(2, 1, 4, 5)
    rule = hills.Rule(turn=0.5, pays=False)
    visitor = hills.HillVisitor(setup, rule)
    designs = run(visitor, 16)
    assert visitor.visited
    assert all(hills.in_turn(number - 5) < 0.5 for number in visitor.visited)
    np.testing.assert_array_equal(designs, run(hills.HillVisitor(setup, rule), 16))
    never = run(hills.HillVisitor(setup, replace(rule, least=2.0)), 12)
    np.testing.assert_array_equal(never, run(OptimizerLearner(setup, "edrbo-mean"), 12))
    np.testing.assert_array_equal(designs[: visitor.visited[0]], never[: visitor.visited[0]])


def test_visits_make_a_rival_less_likely(rules: dict[str, ModuleType], model: ExpertEnsemble) -> None:
    hills = rules["hills"]
    tried = model.inputs[:, :2]
    assert hills.visits(model, torch.tensor([0.25, 0.25], dtype=torch.float64), tried) >= 10
    assert hills.visits(model, torch.tensor([9.0, 9.0], dtype=torch.float64), tried) == 0


# -------------------------------------------------------------------- scores


@settings(deadline=None, max_examples=40)
@given(mean=st.floats(-4, 4), sd=st.floats(0.05, 3), best=st.floats(-4, 4))
def test_improvements_are_integrals(mean: float, sd: float, best: float) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "research"))
        scores = importlib.import_module("rules.scores")
    means, sds = (torch.tensor([[one], [two]], dtype=torch.float64) for one, two in ((mean, mean + 0.3), (sd, 0.5)))
    each = [
        quad(lambda f, a=a, b=b: (f - best) * norm.pdf(f, a, b), best, max(best, a) + 12 * b, epsabs=1e-14)[0]
        for a, b in ((mean, sd), (mean + 0.3, 0.5))
    ]
    expected = sum(each) / 2
    found = float(scores.MixtureLogEI(2, best=best)(means, sds).exp())
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-11)
    eic = scores.ImprovementLessCost(2, best=best, runs=30.0)
    assert float(eic(means, sds)) == pytest.approx(mean + 0.15 + 30 * expected, rel=1e-6, abs=1e-9)
    wide = replace(eic, stretch=1.7)
    assert float(wide(means, sds / 1.7)) == pytest.approx(float(eic(means, sds)), rel=1e-9, abs=1e-9)
    eic, sds = wide, sds / 1.7
    value, by_mean, by_sd = eic.value_and_slopes(means, sds)
    graph_value, graph_mean, graph_sd = super(type(eic), eic).value_and_slopes(means, sds)
    for ours, theirs in ((value, graph_value), (by_mean, graph_mean), (by_sd, graph_sd)):
        torch.testing.assert_close(ours, theirs, rtol=1e-8, atol=1e-10)


def test_log_improvement_is_finite_however_small(rules: dict[str, ModuleType]) -> None:
    z = torch.tensor([-1e7, -1e5, -1e3, -40.0, -1.0, 0.0, 8.0], dtype=torch.float64, requires_grad=True)
    value = rules["scores"].log_h(z)
    (slope,) = torch.autograd.grad(value.sum(), z)
    assert bool(value.isfinite().all())
    assert bool((value.diff() > 0).all())
    assert bool((slope > 0).all())
    series = -0.5 * 1600 - 0.5 * np.log(2 * np.pi) - 2 * np.log(40) + np.log1p(-3 / 1600 + 15 / 40**4)
    assert float(value[3].detach()) == pytest.approx(series, abs=1e-6)


def test_what_was_tried_is_worth_its_mean(rules: dict[str, ModuleType], model: ExpertEnsemble) -> None:
    designs, contexts = model.inputs[:, :2], model.inputs[:, 2:]
    mean = model.barycenter(*model.moments(pairs(designs, contexts)))[0].reshape(len(designs), -1).mean(1)
    torch.testing.assert_close(rules["scores"].tried_values(model, 2), mean, rtol=1e-9, atol=1e-9)


def test_betas_follow_the_data(rules: dict[str, ModuleType], model: ExpertEnsemble) -> None:
    scores, n = rules["scores"], model.observations
    beta = scores.GrowingUCB().at(model).beta
    gain = quad(lambda f: f * norm.pdf(f, -beta, 1.0), 0, 12)[0]
    assert n * gain == pytest.approx(beta, rel=1e-6)
    y, mean, sd = model.leave_one_out()
    share = float(
        ((y - mean.mean(0)) / sd.mean(0) > 0.8416212 * scores.TailUCB(1.0, 0.01, 9).at(model).beta).double().mean()
    )
    assert share == pytest.approx(0.2, abs=1.01 / n)
    late = scores.SeekThenAvoid().at(model).radius_weight
    assert late == pytest.approx(0.7 * (1 - 2 * 2 ** (-n / 20)))


# -------------------------------------------------------------------- models


def test_asked_by_the_same_belief_is_the_default(rules: dict[str, ModuleType]) -> None:
    setup = Setup(2, 1, 7, 5)
    ours = run(rules["models"].AskedBy(setup, lambda model: model), 9)
    np.testing.assert_allclose(ours, run(OptimizerLearner(setup, "edrbo-mean"), 9), atol=1e-3)


def test_a_grid_holds_every_kernel_with_every_factor(rules: dict[str, ModuleType], model: ExpertEnsemble) -> None:
    wide = rules["models"].grid((0.5, 1.0))(model)
    assert wide.num_experts == 2 * model.num_experts
    mean, sd = model.moments(model.inputs[:5] + 0.01)
    both = wide.moments(model.inputs[:5] + 0.01)
    torch.testing.assert_close(both[0][model.num_experts :], mean, rtol=1e-6, atol=1e-8)
    assert bool((both[1][: model.num_experts] > sd).all())


def test_all_rules_have_names_of_their_own(rules: dict[str, ModuleType]) -> None:
    methods = rules["methods"].METHODS
    assert len(methods) >= 15
    for name, method in methods.items():
        if isinstance(method, Method):
            assert Method.from_dict(method.to_dict()) == method
            assert isinstance(method.score, MeanUCB), name
