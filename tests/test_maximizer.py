"""The maximizer: known optima, enumerated mixed spaces, BoTorch's optimize_acqf, and compression that moves nothing."""

from __future__ import annotations

import importlib.util
import itertools
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from edrbo.acquisition.acquisition import ModelGoal, RobustAcquisition
from edrbo.acquisition.methods import get_method
from edrbo.acquisition.risk import Expectation
from edrbo.acquisition.scores import BarycenterUCB
from edrbo.acquisition.search.maximizer import Budget, maximize, select_diverse
from edrbo.bench.problems import get
from edrbo.contexts.distributions import ContextHistory, ContextPoints, Empirical, sobol_points
from edrbo.records.goals import Quantile
from edrbo.records.outcomes import Units
from edrbo.space import Categorical, Integer, Real, Space
from edrbo.streams import stream
from edrbo.surrogate.ensemble import ExpertEnsemble, Surrogate

pytestmark = pytest.mark.torch_numeric

SMALL = Budget(screened=128, near=16, kept=16, starts=4, iterations=30)


def reals(d: int) -> Space:
    return Space(design={f"x{i}": (0.0, 1.0) for i in range(d)})


def waves(d: int, seed: int) -> Callable[[Tensor], Tensor]:
    """A random sum of cosines with several local maxima, on N × d."""
    rng = np.random.default_rng(seed)
    frequency = torch.from_numpy(rng.normal(0.0, 4.0, size=(d, 6)))
    phase, height = torch.from_numpy(rng.uniform(0, 2 * math.pi, 6)), torch.from_numpy(rng.uniform(0.2, 1.0, 6))
    return lambda x: (height * torch.cos(x @ frequency + phase)).sum(-1)


@pytest.mark.parametrize("seed", range(5))
def test_the_maximum_of_a_wavy_function(seed: int) -> None:
    function = waves(2, seed)
    axis = torch.linspace(0, 1, 401, dtype=torch.float64)
    dense = function(torch.cartesian_prod(axis, axis))
    found = maximize([function], reals(2), seed=seed)
    assert found.value >= float(dense.max()) - 1e-9
    assert found.value == pytest.approx(float(function(found.x[None])), abs=1e-12)


def test_a_maximum_at_a_corner_and_one_inside() -> None:
    target = torch.tensor([0.3, 1.7, -0.4], dtype=torch.float64)  # two coordinates want out of the cube
    found = maximize([lambda x: -(x - target).square().sum(-1)], reals(3), seed=0)
    torch.testing.assert_close(found.x, torch.tensor([0.3, 1.0, 0.0], dtype=torch.float64), rtol=0, atol=1e-4)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_the_scale_of_the_objective_does_not_matter(scale: float) -> None:
    function = waves(3, seed=7)
    plain = maximize([function], reals(3), seed=1)
    scaled = maximize([lambda x: scale * function(x)], reals(3), seed=1)
    assert float(function(scaled.x[None])) == pytest.approx(plain.value, abs=1e-6)


def test_a_given_start_is_climbed_even_when_screening_misses_it() -> None:
    """A needle 0.004 wide that no quasi-random point hits."""
    needle = torch.tensor([0.61803, 0.27182], dtype=torch.float64)

    def function(x: Tensor) -> Tensor:
        return torch.exp(-0.5 * ((x - needle) / 0.004).square().sum(-1))

    start = (needle + 0.005)[None]
    assert maximize([function], reals(2), seed=0, starts=start).value == pytest.approx(1.0, abs=1e-4)


def test_the_best_start_is_climbed_whatever_the_rough_objective_thinks_of_it() -> None:
    needle = torch.tensor([0.61803, 0.27182], dtype=torch.float64)

    def function(x: Tensor) -> Tensor:
        return torch.exp(-0.5 * ((x - needle) / 0.004).square().sum(-1))

    # the lowest approximation sees nothing but the corner at 0
    approximations = [lambda x: -x.sum(-1), function, function]
    found = maximize(approximations, reals(2), seed=0, starts=(needle + 0.005)[None])
    assert found.value == pytest.approx(1.0, abs=1e-4)


def test_screening_keeps_more_than_one_hill() -> None:
    """On the lowest approximation the best hundred points lie on the hill that is in truth the lower one."""

    def hills(lower: float, upper: float) -> Callable[[Tensor], Tensor]:
        return lambda x: sum(
            height * torch.exp(-0.5 * ((x - center) / 0.2).square().sum(-1))
            for height, center in ((lower, 0.2), (upper, 0.7))
        )

    objective = hills(1.2, 1.0)
    found = maximize([hills(0.7, 1.0), objective, objective], reals(2), seed=0)
    torch.testing.assert_close(found.x, torch.full((2,), 0.2, dtype=torch.float64), rtol=0, atol=0.02)


def test_the_value_is_that_of_the_exact_objective() -> None:
    function = waves(2, seed=11)
    approximations = [lambda x: function(x) + 5.0, lambda x: function(x + 0.02) - 3.0, function]
    found = maximize(approximations, reals(2), seed=0)
    assert found.value == pytest.approx(float(function(found.x[None])), abs=1e-12)
    assert found.value == pytest.approx(maximize([function], reals(2), seed=0).value, abs=1e-6)


def test_a_flat_objective_has_some_feasible_maximum() -> None:
    found = maximize([lambda x: 0.0 * x.sum(-1) + 3.0], reals(2), seed=0)
    assert found.value == 3.0
    assert bool(((found.x >= 0) & (found.x <= 1)).all())


@pytest.mark.parametrize("space", [reals(3), Space(design={"x": (0, 1), "k": Integer(0, 5), "c": ["a", "b"]})])
def test_it_is_deterministic_and_leaves_global_streams_alone(space: Space) -> None:
    function = waves(space.d_x, seed=3)
    starts = torch.from_numpy(space.snap(sobol_points(space.d_x, 5, seed=1).numpy()))
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first = maximize([function], space, seed=4, starts=starts)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(6)
    second = maximize([function], space, seed=4, starts=starts)
    assert torch.equal(first.x, second.x)
    assert first.value == second.value


# ---------------------------------------------------------------- integers and categoricals

MIXED = {
    "one of each": Space(design={"x": (0, 1), "k": Integer(0, 7), "kind": Categorical(["a", "b", "c"])}),
    "log real first": Space(design={"rate": Real(1e-4, 1.0, log=True), "a": ["u", "v"], "n": Integer(1, 12)}),
    "discrete only": Space(design={"k": Integer(-3, 8), "kind": ["a", "b", "c", "d"], "l": Integer(0, 9)}),
    "long integer": Space(design={"k": Integer(0, 400), "kind": ["a", "b"]}),
}


def every_design(space: Space, fineness: int = 201) -> Tensor:
    """All coded designs of a mixed space, reals on a fine grid."""
    blocks = [
        np.linspace(0, 1, fineness)[:, None] if column.kind == "real" else space.levels(column.name)
        for column in space.columns
    ]
    return torch.from_numpy(np.stack([np.concatenate(parts) for parts in itertools.product(*blocks)]))


@pytest.mark.parametrize("name", MIXED)
@pytest.mark.parametrize("seed", range(4))
def test_mixed_spaces_reach_the_enumerated_optimum(name: str, seed: int) -> None:
    space = MIXED[name]
    function = waves(space.d_x, seed)
    values = function(every_design(space))
    found = maximize([function], space, seed=seed)
    assert found.value >= float(values.max()) - 1e-9
    np.testing.assert_array_equal(space.snap(found.x.numpy()), found.x.numpy())
    assert found.value == pytest.approx(float(function(found.x[None])), abs=1e-12)


def test_exchange_leaves_the_levels_that_screening_found() -> None:
    """The optimum needs the one level in a thousand that the coarse objective hides."""
    space = Space(design={"k": Integer(0, 999), "x": (0.0, 1.0)})

    def function(x: Tensor) -> Tensor:
        return -(x[:, 0] - 777.0 / 999.0).abs() - (x[:, 1] - 0.37).square()

    found = maximize([lambda x: -function(x), function, function], space, seed=0, budget=SMALL)
    design = space.decode_designs(found.x.numpy())[0]
    assert design["k"] == 777
    assert design["x"] == pytest.approx(0.37, abs=1e-3)


@pytest.mark.parametrize("name", MIXED)
def test_an_acquisition_on_a_mixed_space(name: str) -> None:
    space = MIXED[name]
    designs = torch.from_numpy(space.snap(sobol_points(space.d_x, 12, seed=2).numpy()))
    contexts = sobol_points(1, 12, seed=3)
    joint = torch.cat([designs, contexts], dim=-1)
    model = Surrogate(("se", "matern32")).fit(joint, waves(joint.shape[1], seed=4)(joint))
    context_distribution = ContextPoints(
        contexts, torch.full((12,), 1 / 12, dtype=torch.float64), torch.zeros(0, 1).double()
    )
    acquisition = RobustAcquisition(model, BarycenterUCB(), context_distribution, Expectation())
    found = maximize(acquisition.approximations(), space, seed=5, starts=designs)
    with torch.no_grad():
        values = acquisition.evaluate(every_design(space, fineness=41))
    assert found.value >= float(values.max()) - 1e-3 * float(values.max() - values.min())
    np.testing.assert_array_equal(space.snap(found.x.numpy()), found.x.numpy())


# ---------------------------------------------------------------- against BoTorch, and compression


@pytest.fixture(scope="module")
def benchmark() -> Iterator[ModuleType]:
    path = Path(__file__).resolve().parents[1] / "benchmarks" / "maximizer.py"
    spec = importlib.util.spec_from_file_location("maximizer_benchmark", path)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:  # dataclasses look their module up
        patch.setitem(sys.modules, spec.name, script)
        spec.loader.exec_module(script)
        yield script


@pytest.mark.parametrize("name", ["ackley", "modified-branin", "hartmann", "newsvendor"])
def test_no_worse_than_botorch(benchmark: ModuleType, name: str) -> None:
    """Eight states; benchmarks/maximizer.py compares a hundred."""
    rows = [benchmark.compare(state, seed=3) for state in benchmark.states(name, (6, 12), seed=3)]
    assert [row.n for row in rows] == [6, 12]
    assert all(row.gap <= benchmark.TOLERANCE for row in rows), benchmark.report(rows)


def state_with_many_contexts(name: str, seed: int) -> tuple[ExpertEnsemble, ContextHistory]:
    """A model of few observations and a history of many more contexts than a distribution keeps."""
    problem, rng = get(name), np.random.default_rng(seed)
    n = 6 + 2 * seed
    x, c = sobol_points(problem.d_x, n, seed=seed).numpy(), problem.sample_contexts(n, rng)
    y = torch.from_numpy(problem.evaluate(x, c))
    model = Surrogate().fit(torch.from_numpy(np.concatenate([x, c], axis=1)), y)
    contexts = torch.from_numpy(problem.sample_contexts(400, rng))
    zeros = torch.zeros(problem.d_c, dtype=torch.float64)
    return model, ContextHistory(contexts, torch.ones(400, dtype=torch.float64), zeros, zeros + 1.0)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", ["ackley", "modified-branin", "hartmann", "six-hump-camel"])
def test_compression_does_not_move_the_maximizer(name: str, seed: int) -> None:
    model, history = state_with_many_contexts(name, seed)
    space = reals(get(name).d_x)
    compressed, full = (
        RobustAcquisition(model, BarycenterUCB(), context_distribution.points(history, 0, seed=0), Expectation())
        for context_distribution in (Empirical(), Empirical(max_atoms=len(history.contexts)))
    )
    assert len(compressed.points.atoms) < 200 < len(full.points.atoms)
    assert compressed.points.compression_error > full.points.compression_error == 0.0
    found = maximize([compressed.evaluate], space, seed=seed, budget=SMALL)
    best = maximize([full.evaluate], space, seed=seed, starts=found.x[None], budget=SMALL)
    with torch.no_grad():
        sample = full.evaluate(sobol_points(space.d_x, 64, seed=seed))
        reached = float(full.evaluate(found.x[None]))
    top = max(best.value, float(sample.max()))
    assert reached >= top - 1e-3 * (top - float(sample.min()))


@settings(max_examples=60, deadline=None)
@given(
    size=st.integers(1, 250),
    dim=st.integers(1, 3),
    count=st.integers(1, 40),
    apart=st.sampled_from([0.0, 0.01, 0.1, 0.6]),
    seed=st.integers(0, 10**6),
)
def test_points_spread_out_are_those_of_taking_the_best_that_is_apart(
    size: int, dim: int, count: int, apart: float, seed: int
) -> None:
    """One after the other, as the definition says; with repeated points and ties."""
    generator = torch.Generator().manual_seed(seed)
    points = torch.rand(size, dim, generator=generator, dtype=torch.float64).mul(20).round().div(20)
    values = torch.rand(size, generator=generator, dtype=torch.float64).mul(10).round()
    taken: list[int] = []
    for i in values.argsort(descending=True, stable=True).tolist():
        if len(taken) < count and all(float((points[i] - points[k]).abs().max()) > apart for k in taken):
            taken.append(i)
    assert select_diverse(points, values, count, apart).tolist() == taken


def test_of_several_hills_nearly_as_high_the_highest_is_found() -> None:
    """A quantile of contexts has many: from three ends of climbs on an approximation the search missed the best by
    1.9 % of the range here."""
    problem = get("modified-branin")
    rng = stream(4, "benchmark state", problem.name, 80)  # benchmarks/search_misses.py
    near = np.clip(problem.x_star + 0.15 * rng.standard_normal((40, problem.d_x)), 0.0, 1.0)
    designs = np.concatenate([rng.random((40, problem.d_x)), near])
    contexts = problem.sample_contexts(80, rng)
    x, c, y = (torch.from_numpy(part) for part in (designs, contexts, problem.evaluate(designs, contexts)))
    zero, one = torch.zeros(c.shape[1]).double(), torch.ones(80).double()
    goal = ModelGoal(Quantile(0.1), Units())
    points = Empirical().points(ContextHistory(c, one, zero, zero + 1.0), goal.functional(soft=True).support_size, 0)
    acquisition = goal.acquisition(Surrogate().fit(torch.cat([x, c], dim=1), y), get_method("edrbo-mean").score, points)
    found = maximize(acquisition.approximations(), reals(problem.d_x), seed=4, starts=x)
    axis = torch.linspace(0, 1, 41, dtype=torch.float64)
    with torch.no_grad():
        everywhere = acquisition(torch.cartesian_prod(axis, axis))
    assert found.value > float(everywhere.max()) - 0.005 * float(everywhere.max() - everywhere.min())
