"""RobustAcquisition: an explicit double loop, finite differences, and what compression costs."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from edrbo.acquisition import acquisition as module
from edrbo.acquisition.acquisition import RobustAcquisition
from edrbo.acquisition.risk import (
    Expectation,
    Functional,
    Minimum,
    TotalVariation,
    Wasserstein,
    WassersteinLipschitz,
)
from edrbo.acquisition.scores import UCB, BarycenterUCB, Score
from edrbo.contexts.distributions import ContextHistory, ContextPoints, Empirical, box_points
from edrbo.surrogate.ensemble import ExpertEnsemble, Surrogate, single_gp

pytestmark = pytest.mark.torch_numeric


def uniform(*size: int, seed: int) -> Tensor:
    return torch.rand(*size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def data(n: int, d: int, seed: int) -> tuple[Tensor, Tensor]:
    inputs = uniform(n, d, seed=seed)
    return inputs, 10.0 + 3.0 * (torch.sin(6.0 * inputs).sum(-1) + inputs[:, 0] * inputs[:, -1])


def model_on(d: int, n: int = 14, surrogate: Surrogate | None = None) -> ExpertEnsemble:
    return (surrogate or Surrogate()).fit(*data(n, d, seed=d))


def points_in(d_c: int, atoms: int = 5, support: int = 0) -> ContextPoints:
    weights = uniform(atoms, seed=3) + 0.1
    zeros = torch.zeros(d_c, dtype=torch.float64)
    return ContextPoints(uniform(atoms, d_c, seed=4), weights / weights.sum(), box_points(zeros, zeros + 1.0, support))


FUNCTIONALS: dict[str, Functional] = {
    "expectation": Expectation(),
    "minimum": Minimum(),
    "total variation": TotalVariation(0.4),
    "wasserstein": Wasserstein(0.1),
    "lipschitz": WassersteinLipschitz(0.2),
}


def double_loop(acquisition: RobustAcquisition, x: Tensor) -> list[float]:
    """Σ_j over contexts and over designs one (x, c) at a time, with every expert's GP asked by itself."""
    model, points = acquisition.model, acquisition.points
    assert isinstance(model, ExpertEnsemble)
    values = []
    for row in x:
        scores = []
        for context in points.all:
            joint = torch.cat([row, context])[None]
            pairs = [model.expert(m).joint(joint) for m in range(model.num_experts)]
            mean = torch.tensor([[float(center)] for center, _ in pairs], dtype=torch.float64)
            sd = torch.tensor([[math.sqrt(float(variance))] for _, variance in pairs], dtype=torch.float64)
            scores.append(float(acquisition.score(mean, sd)))
        row_scores = torch.tensor([scores], dtype=torch.float64)
        slope = None
        if acquisition.functional.needs_slope:
            dense = points.support if len(points.support) else points.atoms
            slope = torch.tensor([max(context_slope(acquisition, row, c) for c in dense)], dtype=torch.float64)
        values.append(float(acquisition.functional(row_scores, points, slope)))
    return values


def context_slope(acquisition: RobustAcquisition, x: Tensor, context: Tensor, step: float = 1e-5) -> float:
    """‖∇_c s(x, c)‖ by central differences."""
    model = acquisition.model
    assert isinstance(model, ExpertEnsemble)
    total = 0.0
    for k in range(len(context)):
        ends = []
        for sign in (1.0, -1.0):
            moved = context.clone()
            moved[k] += sign * step
            ends.append(float(acquisition.score(*model.moments(torch.cat([x, moved])[None]))))
        total += ((ends[0] - ends[1]) / (2 * step)) ** 2
    return math.sqrt(total)


@pytest.mark.parametrize("name", FUNCTIONALS)
@pytest.mark.parametrize("score", [BarycenterUCB(), UCB()], ids=["edrbo", "ucb"])
@pytest.mark.parametrize("support", [0, 6])
def test_values_are_those_of_a_double_loop(name: str, score: Score, support: int) -> None:
    acquisition = RobustAcquisition(model_on(4), score, points_in(2, support=support), FUNCTIONALS[name])
    x = uniform(4, 2, seed=5)
    with torch.no_grad():
        assert acquisition.evaluate(x).tolist() == pytest.approx(double_loop(acquisition, x), rel=1e-6)


@pytest.mark.parametrize("name", FUNCTIONALS)
@pytest.mark.parametrize("score", [BarycenterUCB(), UCB()], ids=["edrbo", "ucb"])
@pytest.mark.parametrize("d_c", [1, 2])
def test_gradient_is_that_of_finite_differences(name: str, score: Score, d_c: int) -> None:
    acquisition = RobustAcquisition(model_on(2 + d_c), score, points_in(d_c, support=6), FUNCTIONALS[name])
    x = uniform(3, 2, seed=6)
    at = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(acquisition.evaluate(at).sum(), at)
    step = 1e-5
    for i in range(3):
        for k in range(2):
            moved = x.repeat(2, 1, 1)
            moved[0, i, k] += step
            moved[1, i, k] -= step
            with torch.no_grad():
                up, down = (float(acquisition.evaluate(part).sum()) for part in moved)
            assert float(gradient[i, k]) == pytest.approx((up - down) / (2 * step), rel=1e-5, abs=1e-5)


def test_the_lipschitz_penalty_carries_its_gradient() -> None:
    """Danskin: the published program dropped this term."""
    points, x = points_in(1, support=9), uniform(4, 2, seed=7).requires_grad_()
    model = model_on(3, surrogate=single_gp())
    penalized = RobustAcquisition(model, UCB(), points, WassersteinLipschitz(0.5))
    plain = RobustAcquisition(model, UCB(), points, Expectation())
    (difference,) = torch.autograd.grad((plain.evaluate(x) - penalized.evaluate(x)).sum(), x)
    assert float(difference.abs().max()) > 1e-2


def test_values_do_not_depend_on_whether_a_gradient_is_wanted() -> None:
    for name, functional in FUNCTIONALS.items():
        acquisition = RobustAcquisition(model_on(3), BarycenterUCB(), points_in(1, support=5), functional)
        x = uniform(3, 2, seed=8)
        with torch.no_grad():
            without = acquisition.evaluate(x)
        assert not without.requires_grad
        with_graph = acquisition.evaluate(x.clone().requires_grad_()).detach()
        torch.testing.assert_close(with_graph, without, rtol=1e-12, atol=1e-12, msg=name)


def test_the_radius_is_inside_the_sum_at_every_context() -> None:
    """The authors' program took one maximum over experts and the whole batch of context means: it cancels."""
    model, points = model_on(3), points_in(1, atoms=6)
    x = uniform(8, 2, seed=9)
    with torch.no_grad():
        robust = RobustAcquisition(model, BarycenterUCB(), points, Expectation()).evaluate(x)
        plain = RobustAcquisition(model, BarycenterUCB(radius_weight=0.0), points, Expectation()).evaluate(x)
        alone = torch.cat(
            [RobustAcquisition(model, BarycenterUCB(), points, Expectation()).evaluate(row[None]) for row in x]
        )
        joint = torch.cat([x.repeat_interleave(6, 0), points.atoms.repeat(8, 1)], dim=-1)
        mean, sd = (part.reshape(4, 8, 6) for part in model.moments(joint))
        radii = ((mean - mean.mean(0)).square() + (sd - sd.mean(0)).square()).sqrt().amax(0)
        mean_of_means, mean_of_sds = mean @ points.weights, sd @ points.weights
        published_radius = (
            (mean_of_means - mean_of_means.mean(0)).square() + (mean_of_sds - mean_of_sds.mean(0)).square()
        ).sqrt()
    penalty = plain - robust
    torch.testing.assert_close(penalty, math.sqrt(2.0) * radii @ points.weights, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(robust, alone, rtol=1e-10, atol=1e-10)  # the batch around a design does not matter
    assert float(penalty.max() / penalty.min()) > 1.05  # it does not cancel
    assert float((penalty - math.sqrt(2.0) * published_radius.max()).abs().max()) > 0.05 * float(penalty.max())


def test_identical_experts_make_edrbo_erbo() -> None:
    points, x = points_in(1), uniform(6, 2, seed=10)
    gp = single_gp()
    twins = model_on(3, surrogate=Surrogate(("se", "se"), gp.priors))
    with torch.no_grad():
        edrbo = RobustAcquisition(twins, BarycenterUCB(), points, Expectation()).evaluate(x)
        erbo = RobustAcquisition(model_on(3, surrogate=gp), UCB(), points, Expectation()).evaluate(x)
    torch.testing.assert_close(edrbo, erbo, rtol=0, atol=1e-8)


@pytest.mark.parametrize("chunk", [1, 700, 5000])
@pytest.mark.parametrize("name", FUNCTIONALS)
def test_chunks_do_not_change_values(chunk: int, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    acquisition = RobustAcquisition(model_on(3), BarycenterUCB(), points_in(1, support=5), FUNCTIONALS[name])
    x = uniform(9, 2, seed=13)
    monkeypatch.setattr(module, "CHUNK", 10**9)
    whole_at = x.clone().requires_grad_()
    whole = acquisition.evaluate(whole_at)
    monkeypatch.setattr(module, "CHUNK", chunk)
    part_at = x.clone().requires_grad_()
    parts = acquisition.evaluate(part_at)
    torch.testing.assert_close(parts, whole, rtol=1e-11, atol=1e-11)
    gradients = [torch.autograd.grad(v.sum(), a)[0] for v, a in ((whole, whole_at), (parts, part_at))]
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", FUNCTIONALS)
def test_no_context_variables(name: str) -> None:
    """One empty context: whatever the functional, the score itself is left."""
    model = model_on(2)
    empty = torch.zeros(1, 0, dtype=torch.float64)
    points = ContextPoints(empty, torch.ones(1, dtype=torch.float64), torch.zeros(0, 0, dtype=torch.float64))
    x = uniform(4, 2, seed=17)
    with torch.no_grad():
        value = RobustAcquisition(model, BarycenterUCB(), points, FUNCTIONALS[name]).evaluate(x)
    torch.testing.assert_close(value, BarycenterUCB()(*model.moments(x)), rtol=1e-11, atol=1e-11)


# ---------------------------------------------------------------- cheaper approximations


@pytest.mark.parametrize("name", ["expectation", "total variation", "lipschitz"])
def test_stand_ins_rank_designs_nearly_as_the_acquisition_does(name: str) -> None:
    points = points_in(1, atoms=60, support=64)
    full = RobustAcquisition(model_on(3), BarycenterUCB(), points, FUNCTIONALS[name])
    rough, _, fair, same = full.approximations()
    x = uniform(300, 2, seed=18)
    with torch.no_grad():
        exact = full.evaluate(x)
        assert torch.equal(same(x), exact)
        ranks = [level(x).argsort().argsort().double() for level in (rough, fair, same)]
        assert float((fair(x) - exact).abs().mean()) < float((rough(x) - exact).abs().mean())
    correlation = torch.corrcoef(torch.stack(ranks))[-1]
    assert 0.7 < float(correlation[0]) < 1.0
    assert 0.95 < float(correlation[1]) < 1.0


def test_few_points_are_kept_as_they_are() -> None:
    full = RobustAcquisition(model_on(3), BarycenterUCB(), points_in(1, atoms=6, support=4), Minimum())
    x = uniform(20, 2, seed=19)
    with torch.no_grad():
        assert torch.equal(full.approximations()[1](x), full.evaluate(x))


# ---------------------------------------------------------------- permutation


@pytest.mark.parametrize("make", [Expectation, Minimum, lambda: TotalVariation(0.4)])
def test_the_order_of_atoms_and_data_does_not_matter(make: Callable[[], Functional]) -> None:
    inputs, y = data(12, 3, seed=19)
    hyper = Surrogate().fit(inputs, y).gp.hyper
    points, x = points_in(1, atoms=7), uniform(5, 2, seed=20)
    atoms = torch.tensor([3, 0, 6, 2, 5, 1, 4])
    rows = torch.randperm(12, generator=torch.Generator().manual_seed(0))
    shuffled = ContextPoints(points.atoms[atoms], points.weights[atoms], points.support)
    with torch.no_grad():
        first, second = (
            RobustAcquisition(Surrogate().at(inputs[r], y[r], None, hyper), BarycenterUCB(), p, make()).evaluate(x)
            for r, p in ((torch.arange(12), points), (rows, shuffled))
        )
    torch.testing.assert_close(first, second, rtol=0, atol=1e-8)


def test_a_weighted_distribution_is_one_with_repeats() -> None:
    zeros = torch.zeros(1, dtype=torch.float64)
    values, x = uniform(4, 1, seed=21), uniform(5, 2, seed=22)
    replicates = torch.tensor([1, 3, 2, 1])
    distributions = [
        ContextHistory(
            values.repeat_interleave(replicates, dim=0), torch.ones(7, dtype=torch.float64), zeros, zeros + 1
        ),
        ContextHistory(values, replicates.double(), zeros, zeros + 1),
    ]
    model = model_on(3)
    with torch.no_grad():
        first, second = (
            RobustAcquisition(
                model, BarycenterUCB(), Empirical().points(context_distribution, 0, 0), Expectation()
            ).evaluate(x)
            for context_distribution in distributions
        )
    torch.testing.assert_close(first, second, rtol=0, atol=1e-10)
