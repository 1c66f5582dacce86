"""The best design for each context, and what knowing the context is worth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

import edrbo
from edrbo.errors import EdrboError, InvalidContextError, NothingReportedError, SeveralOutcomesError, UnknownNameError

Problem = Callable[[float, np.ndarray], float]


def known_well(
    f: Problem, d_c: int = 1, n: int = 60, noise: float = 0.0, seed: int = 0, **settings: object
) -> edrbo.Optimizer:
    space = edrbo.Space({"x": (0, 1)}, {f"c{k}": (0, 1) for k in range(d_c)})
    optimizer = edrbo.Optimizer(space, seed=seed, **settings)  # type: ignore[arg-type]
    draw = np.random.default_rng(seed)
    for _ in range(n):
        x, c = float(draw.random()), draw.random(d_c)
        y = f(x, c) + noise * draw.standard_normal()
        optimizer.tell({"x": x}, {f"c{k}": float(v) for k, v in enumerate(c)}, y)
    return optimizer


def track(x: float, c: np.ndarray) -> float:
    return -((x - c[0]) ** 2)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_the_policy_follows_the_context_and_its_worth_is_the_variance(direction: str) -> None:
    sign = 1.0 if direction == "maximize" else -1.0
    optimizer = known_well(lambda x, c: sign * track(x, c), direction=direction)
    found = optimizer.policy()
    assert found.known == ("c0",)
    assert len(found.rows) == 21
    for row in found.rows:
        if 0.2 < row.context["c0"] < 0.9:  # near the ends few runs say where the top is
            assert row.design["x"] == pytest.approx(row.context["c0"], abs=0.02)
        assert row.interval[0] <= sign * track(row.design["x"], np.array([row.context["c0"]])) <= row.interval[1]
    contexts = optimizer.observations.c[:, 0]
    assert found.one["x"] == pytest.approx(contexts.mean(), abs=0.02)
    assert found.worth == pytest.approx(contexts.var(), abs=0.005)
    assert sign * (found.value - found.one_value) == pytest.approx(found.worth, abs=1e-9)
    assert found.worth_interval[0] <= 1 / 12 <= found.worth_interval[1]


def test_where_the_best_design_is_the_same_everywhere_it_is_worth_nothing() -> None:
    found = known_well(lambda x, c: -((x - 0.3) ** 2) + 2.0 * c[0]).policy()
    assert abs(found.worth) < 0.003
    assert found.worth_interval[0] <= 0.0 <= found.worth_interval[1] + 1e-12
    assert "may as well be worth nothing" in str(found)
    assert [row.design["x"] for row in found.rows] == pytest.approx([0.3] * len(found.rows), abs=0.05)


def test_each_variable_is_worth_what_it_tells() -> None:
    optimizer = known_well(lambda x, c: -((x - c[0]) ** 2) + c[1], d_c=2, n=80)
    both, first, second = (optimizer.policy(known=known) for known in (None, "c0", ["c1"]))
    assert both.known == ("c0", "c1")
    assert len(both.rows) == 81
    variance = optimizer.observations.c[:, 0].var()
    assert both.worth == pytest.approx(variance, abs=0.01)
    assert first.worth == pytest.approx(variance, abs=0.01)
    assert abs(second.worth) < 0.01
    assert [list(row.context) for row in first.rows] == [["c0"]] * 21


def test_the_worth_is_that_of_a_sum_over_the_contexts_seen() -> None:
    """Brute force: the posterior mean at every context, at the policy's design and at the one design."""
    optimizer = known_well(lambda x, c: float(np.sin(5 * x + 3 * c[0]) + 0.3 * c[0]), noise=0.05, n=40)
    contexts = optimizer.observations.c[:, 0]
    policy = optimizer.policy(contexts=[{"c0": c} for c in contexts.tolist()])
    model = optimizer.model
    assert model is not None

    def mean(x: list[float]) -> float:
        points = torch.tensor(np.column_stack([x, contexts]))
        return float(model.barycenter(*model.moments(points))[0].mean())

    grid = np.linspace(0, 1, 401)
    best = [mean_at.max() for mean_at in _surfaces(model, grid, contexts)]
    follows = mean([row.design["x"] for row in policy.rows])
    assert follows == pytest.approx(np.mean(best), abs=0.02)
    worth = follows - mean([policy.one["x"]] * len(contexts))
    assert policy.worth == pytest.approx(worth, abs=0.05)  # that is by draws of the hyper-parameters
    assert policy.worth_interval[0] <= worth <= policy.worth_interval[1]


def _surfaces(model: edrbo.surrogate.ensemble.ExpertEnsemble, grid: np.ndarray, contexts: np.ndarray) -> list:
    found = []
    for c in contexts:
        points = torch.tensor(np.column_stack([grid, np.full(len(grid), c)]))
        found.append(model.barycenter(*model.moments(points))[0].numpy())
    return found


def test_a_row_is_the_recommendation_for_its_context() -> None:
    optimizer = known_well(track, n=25)
    (row,) = optimizer.policy(contexts={"c0": 0.7}).rows
    answer = optimizer.recommend(context={"c0": 0.7})
    assert row.design["x"] == pytest.approx(answer.design["x"], abs=1e-3)
    assert row.expected == pytest.approx(answer.expected, abs=1e-4)
    assert row.interval == pytest.approx(answer.interval, abs=1e-3)


def test_the_interval_holds_the_true_worth_in_most_runs() -> None:
    """Of the policy as it is, over the true distribution: the mean of f at both designs by quadrature."""
    inside, nodes = 0, (np.arange(24) + 0.5) / 24
    for seed in range(12):
        optimizer = known_well(lambda x, c: float(np.sin(6 * x * (0.3 + c[0]))), n=14, noise=0.1, seed=seed)
        found = optimizer.policy(contexts=[{"c0": c} for c in nodes.tolist()])
        designs = np.array([row.design["x"] for row in found.rows])
        true = np.mean(np.sin(6 * designs * (0.3 + nodes)) - np.sin(6 * found.one["x"] * (0.3 + nodes)))
        inside += found.worth_interval[0] <= true <= found.worth_interval[1]
    assert inside >= 10


@pytest.mark.parametrize("goal", ["cvar:0.2", "quantile:0.2", "worst-case", "robust:0.1", "hit:0.0", "mean-sd:1"])
def test_every_goal_has_a_policy(goal: str) -> None:
    found = known_well(track, n=30, goal=goal).policy()
    assert found.goal == edrbo.records.goals.parse_goal(goal).to_text()
    assert found.worth > -1e-3
    assert found.worth_interval[0] <= found.worth <= found.worth_interval[1]
    inner = [row for row in found.rows if 0.2 < row.context["c0"] < 0.9]
    assert [row.design["x"] for row in inner] == pytest.approx([row.context["c0"] for row in inner], abs=0.1)


def test_choices_and_held_variables() -> None:
    space = edrbo.Space({"x": (0, 1), "kind": ["a", "b"]}, {"shift": ["day", "night"]})
    optimizer = edrbo.Optimizer(space, seed=0)
    draw = np.random.default_rng(0)
    for _ in range(40):
        x, kind, shift = float(draw.random()), str(draw.choice(["a", "b"])), str(draw.choice(["day", "night"]))
        good = (kind == "a") == (shift == "day")
        optimizer.tell({"x": x, "kind": kind}, {"shift": shift}, -((x - 0.5) ** 2) + good)
    found = optimizer.policy()
    assert {row.context["shift"]: row.design["kind"] for row in found.rows} == {"day": "a", "night": "b"}
    share = float((optimizer.observations.c[:, 0] == 0).mean())
    assert found.worth == pytest.approx(min(share, 1 - share), abs=0.05)
    held = optimizer.policy(fixed={"kind": "a"})
    assert {row.design["kind"] for row in held.rows} == {"a"}
    assert abs(held.worth) < 0.02
    listed = optimizer.policy(candidates=[{"x": 0.5, "kind": "a"}, {"x": 0.1, "kind": "b"}])
    assert {row.context["shift"]: row.design["x"] for row in listed.rows} == {"day": 0.5, "night": 0.1}


def test_failures_are_avoided_where_they_happen() -> None:
    space = edrbo.Space({"x": (0, 1)}, {"c": (0, 1)})
    optimizer = edrbo.Optimizer(space, seed=0)
    draw = np.random.default_rng(0)
    for _ in range(50):
        x, c = float(draw.random()), float(draw.random())
        if x > 0.5 and c > 0.5:
            optimizer.tell({"x": x}, {"c": c}, failed=True)
        else:
            optimizer.tell({"x": x}, {"c": c}, x)
    low, high = optimizer.policy(contexts=[{"c": 0.15}, {"c": 0.85}]).rows
    assert low.design["x"] > 0.9
    assert high.design["x"] < 0.65


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(InvalidContextError):
        edrbo.Optimizer(edrbo.Space({"x": (0, 1)})).policy()
    optimizer = known_well(track, n=4, d_c=2)
    with pytest.raises(NothingReportedError):
        edrbo.Optimizer(optimizer.space).policy()
    with pytest.raises(InvalidContextError, match="'c9'"):
        optimizer.policy(known=["c9"])
    with pytest.raises(InvalidContextError):
        optimizer.policy(known=[])
    with pytest.raises(InvalidContextError, match="'c1'"):
        optimizer.policy(contexts=[{"c0": 0.5}])
    with pytest.raises((UnknownNameError, EdrboError), match="nonsense"):
        optimizer.policy(goal="nonsense")
    outcomes = {"a": edrbo.Maximize(), "b": edrbo.Limit(upper=1.0)}
    several = edrbo.Optimizer(optimizer.space, outcomes=outcomes)
    with pytest.raises(SeveralOutcomesError):
        several.policy()
    blind = edrbo.Optimizer(optimizer.space, "ucb")
    blind.tell({"x": 0.5}, {"c0": 0.1, "c1": 0.2}, 1.0)
    with pytest.raises(EdrboError):
        blind.policy()


def test_after_one_outcome_nothing_is_sure() -> None:
    optimizer = edrbo.Optimizer(edrbo.Space({"x": (0, 1)}, {"c": (0, 1)}))
    optimizer.tell({"x": 0.5}, {"c": 0.1}, 1.0)
    found = optimizer.policy()
    assert found.worth_interval == (-np.inf, np.inf)
    assert "too early" in str(found)
    assert found.to_dict()["rows"][0]["context"] == {"c": 0.1}
