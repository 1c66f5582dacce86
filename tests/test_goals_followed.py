"""A goal given once is followed by ask, recommend and predict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

import edrbo
from edrbo.errors import NothingReportedError, NotStorableError
from edrbo.optimizer import recommendation
from edrbo.optimizer.goal_posterior import LENGTHSCALE_FACTOR
from edrbo.records.goals import Robust

SPACE = edrbo.Space(design={"x": (0, 1)}, context={"c": (0, 1)})


def lever(x: float, c: float) -> float:
    """The mean wants x = 1, the worst fifth x = 0."""
    return 6 * x * (c - 0.35) - 0.3 * (x - 0.5) ** 2


def reported(optimizer: edrbo.Optimizer, evaluations: int, f=lever, seed: int = 0) -> edrbo.Optimizer:
    contexts = np.random.default_rng(seed)
    for _ in range(evaluations):
        s = optimizer.ask()
        c = float(contexts.uniform())
        optimizer.tell(s, {"c": c}, f(s["x"], c))
    return optimizer


@pytest.fixture(scope="module")
def lever_data() -> edrbo.Optimizer:
    return reported(edrbo.Optimizer(SPACE, seed=0), 16)


@pytest.mark.parametrize("goal", [edrbo.CVaR(0.2), edrbo.WorstCase(), edrbo.Robust(0.3), edrbo.Quantile(0.1)], ids=str)
def test_the_worst_contexts_want_the_other_end(goal: edrbo.Goal, lever_data: edrbo.Optimizer) -> None:
    assert lever_data.recommend().design["x"] > 0.95
    robust = lever_data.recommend(goal=goal, radius=0.3)
    assert robust.design["x"] < 0.2
    assert robust.goal == goal.to_text()
    best = robust.price["recommended"], robust.price["on average"]
    assert best[0]["mean"] < best[1]["mean"]
    assert best[0]["mean of the worst 10%"] > best[1]["mean of the worst 10%"]
    assert best[0]["worst mean in the ball"] > best[1]["worst mean in the ball"]


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize("goal", ["cvar:0.2", "worst-case"])
def test_asking_follows_the_goal(goal: str, direction: str) -> None:
    sign = 1.0 if direction == "maximize" else -1.0
    optimizer = edrbo.Optimizer(SPACE, seed=1, goal=goal, direction=direction)
    reported(optimizer, 20, lambda x, c: sign * lever(x, c), seed=1)
    answer = optimizer.recommend()
    assert answer.design["x"] < 0.1
    assert np.median(optimizer.observations.x[8:]) < 0.2
    assert answer.value == pytest.approx(sign * -0.075, abs=0.1)
    low, high = answer.value_interval
    assert low <= answer.value <= high


def ridge(x: float, c: float) -> float:
    """At x the outcome is 10 x, spread by the context most at both ends."""
    return 10 * x + 8 * (x - 0.5) * (c - 0.5)


@pytest.mark.parametrize(
    ("goal", "best"), [("hit:3", 0.3), ("within:2.5,3.5", 0.3), ("mean-sd:0", 1.0), ("reach:4", 0.55)]
)
def test_specifications_are_met(goal: str, best: float) -> None:
    optimizer = reported(edrbo.Optimizer(SPACE, seed=0, goal=goal), 14, ridge)
    answer = optimizer.recommend()
    if goal == "reach:4":  # every design from about here on is certain to reach it
        assert answer.design["x"] > 0.44
        assert answer.value == pytest.approx(1.0, abs=0.02)
    else:
        assert answer.design["x"] == pytest.approx(best, abs=0.06)


def test_the_value_is_that_of_the_contexts_seen() -> None:
    optimizer = reported(edrbo.Optimizer(SPACE, seed=0, goal="hit:3"), 16, ridge)
    contexts = optimizer.context_log.weighted(1, None)[0][:, 0]
    at = {"x": 0.4}
    found = optimizer.predict(at)
    assert found.value[0] == pytest.approx(np.mean((ridge(0.4, contexts) - 3) ** 2), abs=0.1)
    assert found.value_lower[0] <= found.value[0] <= found.value_upper[0]
    assert found.expected[0] == pytest.approx(np.mean(ridge(0.4, contexts)), abs=0.1)
    reach = optimizer.predict(at, goal=edrbo.ProbabilityBetterThan(4.0))
    assert reach.value[0] == pytest.approx(np.mean(ridge(0.4, contexts) >= 4.0), abs=0.15)


def test_the_worst_case_is_careful_where_no_context_was_seen(lever_data: edrbo.Optimizer) -> None:
    """The model behind it is rougher in the contexts, and in them alone."""
    answers = lever_data._main.knowledge((None, None), 0).answers
    model, careful = answers.posterior.model, answers.model_under(Robust(0.1))
    torch.testing.assert_close(careful.gp.hyper.lengthscale[:, 0], model.gp.hyper.lengthscale[:, 0])
    torch.testing.assert_close(
        careful.gp.hyper.lengthscale[:, 1], LENGTHSCALE_FACTOR * model.gp.hyper.lengthscale[:, 1]
    )
    joint = torch.tensor([[0.9, 3.0]], dtype=torch.float64)  # a context far from all that were seen
    with torch.no_grad():
        (_, sd), (_, careful_sd) = model.moments(joint), careful.moments(joint)
    assert bool((careful_sd > sd).all())
    answer = lever_data.recommend()
    assert answer.worst_case < answer.price["recommended"]["worst mean in the ball"]


def test_what_is_not_read_is_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    lever_data = reported(edrbo.Optimizer(SPACE, seed=0), 16)
    read = lever_data.recommend(goal="worst-case:seen")
    expected = read.to_dict()
    calls: list[str] = []
    for name in ("outlook", "value_intervals", "context_effects"):
        whole = getattr(recommendation, name)
        monkeypatch.setattr(
            recommendation, name, lambda *args, name=name, whole=whole: (calls.append(name), whole(*args))[1]
        )
    found = lever_data.recommend(goal="worst-case:seen")
    assert found.design == read.design
    assert calls == []
    lever_data.tell({"x": 0.5}, {"c": 0.5}, 0.3)  # it speaks of the data as they were
    assert found.optimality_gap == read.optimality_gap
    assert calls == ["outlook"]
    assert found.to_dict() == expected
    assert calls.count("outlook") == 1
    with pytest.raises(NothingReportedError):
        edrbo.Optimizer(lever_data.space).recommend()


def test_a_known_context_and_a_forecast(lever_data: edrbo.Optimizer) -> None:
    assert lever_data.recommend(goal="worst-case", context={"c": 0.9}).design["x"] > 0.95
    assert lever_data.recommend(goal="cvar:0.5", forecast=[{"c": 0.8}, {"c": 0.9}]).design["x"] > 0.95
    assert lever_data.recommend(goal="cvar:0.5", forecast=[{"c": 0.1}, {"c": 0.9}]).design["x"] < 0.1


def half_known(direction: str) -> edrbo.Optimizer:
    """Data on the lower half of the designs alone; contexts matter on both."""
    draw, sign = np.random.default_rng(0), 1.0 if direction == "maximize" else -1.0
    optimizer = edrbo.Optimizer(SPACE, seed=0, direction=direction)
    for _ in range(30):
        x, c = float(draw.uniform(0.0, 0.5)), float(draw.uniform())
        optimizer.tell({"x": x}, {"c": c}, sign * (np.cos(7 * c) * np.sin(8 * x) - 0.3 * x))
    return optimizer


def drawn_cvar(known: Any, x: torch.Tensor, level: float) -> float:
    """The posterior expectation of the mean of the worst contexts, maximized, by draws that share no code with ours:
    of f from every expert's joint posterior in all contexts seen, and of distributions from the Bayesian bootstrap."""
    draw, contexts = np.random.default_rng(1), torch.tensor(known.training_data.observations.c)
    model, values = known.posterior.model, []
    with torch.no_grad():
        mean, covariance = model.gp.posterior(torch.cat([x.expand(len(contexts), 1), contexts], dim=-1))
    for m in range(len(mean)):
        rows = model.scaling.value(
            torch.from_numpy(draw.multivariate_normal(mean[m].numpy(), covariance[m].numpy(), 500))
        ).numpy()
        for row, context_distribution in zip(rows, draw.dirichlet(np.ones(len(contexts)), 500), strict=True):
            order = np.argsort(row)
            before = np.cumsum(context_distribution[order]) - context_distribution[order]
            kept = np.clip(level - before, 0.0, context_distribution[order])
            values.append(kept @ row[order] / level)
    return float(np.mean(values))


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_of_two_designs_the_one_with_the_better_posterior_expectation(direction: str) -> None:
    known = half_known(direction)._main.knowledge((None, None), 0, edrbo.CVaR(0.2))
    promised, tried = torch.tensor([[0.8], [0.44]], dtype=torch.float64)
    surface = known.model_goal.posterior(known.posterior.model, known.posterior.points)(torch.stack([promised, tried]))
    assert surface[0] > surface[1] + 0.1  # where nothing was tried the mean surface promises more …
    assert drawn_cvar(known, promised, 0.2) < drawn_cvar(known, tried, 0.2) - 0.05  # … than can be expected
    for pair in ((promised, tried), (tried, promised)):
        assert torch.equal(known.better(*pair), tried)


def test_a_recommended_design_is_no_worse_than_the_one_that_is_best_on_average() -> None:
    answer = half_known("maximize").recommend(goal=edrbo.CVaR(0.1))
    assert answer.design["x"] < 0.6
    both = [answer.price[which]["mean of the worst 10%"] for which in ("recommended", "on average")]
    assert both[0] >= both[1]


def test_the_search_for_shares_spreads_contexts_out_but_no_forecast(lever_data: edrbo.Optimizer) -> None:
    forecast = np.linspace(0.0, 1.0, 12)[:, None]
    for goal, context_distribution, spread_out in [
        ("reach:0.5", (None, None), True),
        ("quantile:0.1", (None, None), True),
        ("reach:0.5", (forecast, None), False),
        ("reach:0.5", (None, forecast[:1]), False),
        ("robust:0.1", (None, None), False),
        ("expected", (None, None), False),
    ]:
        assert (lever_data._main.knowledge(context_distribution, 0, goal).posterior.smooth is not None) == spread_out


def test_the_goal_is_stored_and_resumed() -> None:
    optimizer = reported(edrbo.Optimizer(SPACE, seed=2, goal=edrbo.CVaR(0.2)), 7)
    again = edrbo.Optimizer.from_json(optimizer.to_json())
    assert again.settings.goal == edrbo.CVaR(0.2)
    assert again.ask() == optimizer.ask()


@dataclass(frozen=True)
class Nearly(edrbo.Utility):
    """A goal of one's own."""

    best: float

    def utility(self, outcomes, direction):
        return 1.0 / (1.0 + (outcomes - self.best) ** 2)


def test_a_goal_of_ones_own_is_followed_and_not_stored_unless_registered() -> None:
    optimizer = reported(edrbo.Optimizer(SPACE, seed=0, goal=Nearly(3.0)), 12, ridge)
    answer = optimizer.recommend()
    assert answer.design["x"] == pytest.approx(0.3, abs=0.1)
    assert answer.goal == "Nearly"
    with pytest.raises(NotStorableError):
        optimizer.to_json()


@pytest.mark.parametrize("method", ["stableopt", "drbo-kde", "ucb", "wdrbo", "drbo-mmd"])
def test_methods_with_a_functional_of_their_own_are_judged_by_the_goal(method: str) -> None:
    plain, aimed = (reported(edrbo.Optimizer(SPACE, method, seed=3, goal=g), 6) for g in ("expected", "reach:0"))
    assert np.array_equal(plain.observations.x, aimed.observations.x)
    assert aimed.recommend().title == "share of conditions with value ≥ 0"


@pytest.mark.parametrize("method", ["edrbo-mean", "edrbo-integrated"])
def test_a_method_of_the_mean_asks_under_goals_that_cannot_be_integrated(method: str) -> None:
    optimizer = reported(edrbo.Optimizer(SPACE, method, seed=0, goal="reach:0"), 5)
    assert 0.0 <= optimizer.ask()["x"] <= 1.0


def next_designs(data: edrbo.Optimizer, goal: str, count: int, method: str = "edrbo-mean") -> list[float]:
    """What would be asked for next, ``count`` designs at once, from the same data under a goal."""
    optimizer = edrbo.Optimizer(SPACE, method, seed=0, goal=goal)
    observed = data.observations
    for x, c, y in zip(observed.x, observed.c, observed.y, strict=True):
        optimizer.tell({"x": float(x[0])}, {"c": float(c[0])}, float(y))
    return [suggestion["x"] for suggestion in optimizer.ask(count)]


@pytest.mark.parametrize("goal", ["robust:0.3", "reach:0.9"])
def test_every_second_suggestion_under_these_goals_is_for_the_mean(goal: str, lever_data: edrbo.Optimizer) -> None:
    assert len(lever_data) % 2 == 0  # so that the next one is the mean's turn
    mean = next_designs(lever_data, "expected", 2)
    asked = next_designs(lever_data, goal, 2)
    assert asked[0] == mean[0]
    assert asked[1] != mean[1]  # which the goal's own turn is
    again = next_designs(lever_data, goal, 1)
    assert again == asked[:1]


@pytest.mark.parametrize(("goal", "method"), [("cvar:0.2", "edrbo-mean"), ("robust:0.3", "stableopt")])
def test_other_goals_and_methods_of_their_own_have_no_turns(goal: str, method: str) -> None:
    optimizer = reported(edrbo.Optimizer(SPACE, method, seed=0, goal=goal), 6)
    asking = optimizer._posterior(optimizer._main.data(), (None, None), [])
    assert asking.for_suggestion(6) is asking


def test_maximize_takes_a_goal() -> None:
    draw = np.random.default_rng(0)

    def f(design):
        c = float(draw.uniform())
        return {"c": c}, lever(design["x"], c)

    assert edrbo.maximize(f, SPACE, 12, goal=edrbo.CVaR(0.2)).recommendation.design["x"] < 0.15
