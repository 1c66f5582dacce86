"""What ask expects of its designs, and what tell makes of it."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from edrbo.errors import ImplausibleWarning
from edrbo.optimizer.calibration import earned_trust
from edrbo.optimizer.optimizer import Optimizer
from edrbo.optimizer.outcome_model import OutcomeForecaster
from edrbo.optimizer.training_data import TrainingData
from edrbo.records.sanity import read_outcome_forecast
from edrbo.space import Space

SPACE = Space({"x": (0, 1)}, {"c": (0, 100)})


def world(x: float, c: float) -> float:
    return 500.0 - 90.0 * (x - 0.3 - 0.004 * c) ** 2 + 0.1 * c


def run(n: int, seed: int = 0) -> tuple[Optimizer, int, int]:
    """An optimizer after ``n`` evaluations, how many of them were predicted, and how many came out as predicted."""
    optimizer, rng = Optimizer(SPACE, seed=seed), np.random.default_rng(seed)
    predicted = right = 0
    for _ in range(n):
        suggestion = optimizer.ask()
        c = float(rng.uniform(20, 80))
        y = world(suggestion["x"], c)
        outcome_forecast = read_outcome_forecast(suggestion.outcome_forecast)
        if outcome_forecast is not None:
            interval = outcome_forecast.at({"c": c})
            predicted, right = predicted + 1, right + (interval.low <= y <= interval.high)
        optimizer.tell(suggestion, {"c": c}, y)
    return optimizer, predicted, right


@pytest.fixture(scope="module")
def made() -> tuple[Optimizer, int, int]:
    return run(16)


def test_every_design_of_the_model_says_what_it_expects(made: tuple[Optimizer, int, int]) -> None:
    optimizer, predicted, right = made
    assert predicted == 11
    assert right >= 9
    kept = [run.outcome_forecast for run in optimizer.runs]
    assert kept[:5] == [None] * 5
    assert all(len(json.dumps(outcome_forecast)) < 1000 for outcome_forecast in kept[5:])


def test_the_table_is_the_models_belief(made: tuple[Optimizer, int, int]) -> None:
    """Between its points too, as far as its intervals allow; drawn from the experts, one outcome each."""
    optimizer = made[0]
    suggestion = optimizer.ask()
    outcome_forecast, model = read_outcome_forecast(suggestion.outcome_forecast), optimizer.model
    assert outcome_forecast is not None
    assert model is not None
    random = torch.Generator().manual_seed(0)
    for c in (25.0, 43.0, 61.0, 79.0):
        joint = torch.tensor([[suggestion["x"], c / 100]], dtype=torch.float64)
        means, sds = (part[:, 0] for part in model.moments(joint))
        interval = outcome_forecast.at({"c": c})
        assert interval.value == pytest.approx(float(means.mean()), abs=0.2 * interval.half)
        draws = means + sds * torch.randn(4000, len(means), dtype=torch.float64, generator=random)
        inside = ((draws >= interval.low) & (draws <= interval.high)).double().mean()
        assert float(inside) > 0.9  # no narrower than the model says, and Student's besides


def test_without_contexts_it_is_the_interval_of_predict() -> None:
    """Of the hyper-parameters that fit best: a suggestion does not wait for draws of them, as an answer does."""
    optimizer = Optimizer(Space({"x": (0, 1)}), seed=1)
    for x in np.linspace(0, 1, 7):
        optimizer.tell({"x": float(x)}, None, world(float(x), 0.0))
    suggestion = optimizer.ask()
    known = optimizer._main.knowledge((None, None), 0)
    fitted = replace(known, worlds=known.posterior.model, trust=earned_trust(known.posterior.model))
    reported = fitted.predict(torch.from_numpy(optimizer.space.encode_designs(dict(suggestion.design))))
    outcome_forecast = read_outcome_forecast(suggestion.outcome_forecast)
    assert outcome_forecast is not None
    assert outcome_forecast.table is None
    wide = reported.outcome_upper[0] - reported.outcome_lower[0]
    found = (outcome_forecast.overall.value, outcome_forecast.overall.low, outcome_forecast.overall.high)
    assert found == pytest.approx(
        (reported.expected[0], reported.outcome_lower[0], reported.outcome_upper[0]), abs=0.01 * wide
    )


@pytest.mark.parametrize("d_c", [2, 3, 4])
def test_several_contexts(d_c: int) -> None:
    space = Space({"x": (0, 1)}, {f"c{k}": (0, 1) for k in range(d_c)})
    optimizer, rng = Optimizer(space, "ucb" if d_c == 4 else "edrbo", seed=0), np.random.default_rng(0)
    for _ in range(8):
        x, c = rng.random(), rng.random(d_c)
        optimizer.tell({"x": x}, c.tolist(), -((x - c[0]) ** 2) + c[-1] * c[0])
    outcome_forecast = read_outcome_forecast(optimizer.ask().outcome_forecast)
    assert outcome_forecast is not None
    assert (outcome_forecast.table is None) == (d_c == 4)
    within = outcome_forecast.at({f"c{k}": 0.4 for k in range(d_c)})
    assert within.low < within.value < within.high


def test_resumed_it_expects_the_same(made: tuple[Optimizer, int, int]) -> None:
    again = Optimizer.from_json(made[0].to_json())
    assert [run.outcome_forecast for run in again.runs] == [run.outcome_forecast for run in made[0].runs]
    assert again.ask() == Optimizer.from_json(made[0].to_json()).ask()


def test_a_wild_outcome_is_kept_with_a_warning_that_says_what_was_expected() -> None:
    optimizer, _, _ = run(8)
    before = optimizer.to_json()
    suggestion = optimizer.ask()
    near = read_outcome_forecast(suggestion.outcome_forecast)
    assert near is not None
    with pytest.warns(ImplausibleWarning, match=r"50\.1.*501") as caught:
        optimizer.tell(suggestion, {"c": 50.0}, 50.1)
    assert caught[0].filename == __file__
    assert optimizer.observations.y[-1] == 50.1
    (doubt,) = optimizer.implausible()
    assert doubt.run == suggestion.id
    assert "expected was" in doubt.reasons[0]
    optimizer.correct(suggestion, value=501.0)
    assert optimizer.implausible() == []
    assert Optimizer.from_json(before).implausible() == []


def test_outcome_and_context_swapped() -> None:
    optimizer, _, _ = run(8)
    suggestion = optimizer.ask()
    with pytest.warns() as caught:
        optimizer.tell(suggestion, {"c": 501.0}, 50.0)
    assert "value and c look as if they had been swapped" in [str(w.message).split(" (")[0] for w in caught]
    assert any("swapped" in reason for reason in optimizer.implausible()[0].reasons)


def test_what_was_really_set_is_not_judged_by_what_was_suggested() -> None:
    optimizer, _, _ = run(8)
    suggestion = optimizer.ask()
    other = 1.0 if suggestion["x"] < 0.5 else 0.0
    optimizer.tell(suggestion, {"c": 50.0}, world(other, 50.0), design={"x": other})


def test_pending_designs_do_not_make_it_surer(made: tuple[Optimizer, int, int]) -> None:
    """An expectation is of what is known, not of what is being found out."""
    optimizer = Optimizer.from_json(made[0].to_json())
    training_data, model = TrainingData(optimizer.state, True), optimizer.model
    assert model is not None
    first, second = optimizer.ask(2)
    for suggestion in (first, second):
        outcome_forecast = read_outcome_forecast(suggestion.outcome_forecast)
        assert outcome_forecast is not None
        posterior = optimizer._main.posterior(training_data, (None, None), pending=[], asking=True)
        alone = OutcomeForecaster.by(model, posterior.points, training_data, None).outcome(np.array([suggestion["x"]]))
        assert alone is not None
        assert outcome_forecast.overall.half == pytest.approx(alone.overall.half, rel=0.01)
