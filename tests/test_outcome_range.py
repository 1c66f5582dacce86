"""What an outcome can be at all, and that nothing is said beyond it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edrbo import Optimizer, Space
from edrbo.errors import InvalidValueError
from edrbo.lab.config import read_toml, write_toml
from edrbo.records.outcomes import OutcomeRange, Units, read_outcome_range
from edrbo.records.settings import Settings

SPACE = Space(design={"x": (0, 1)}, context={"wind": (0, 1)})


@pytest.mark.parametrize(
    ("given", "text", "ends"),
    [
        ((0, None), "0:", (0.0, math.inf)),
        ("0:100", "0:100", (0.0, 100.0)),
        ([None, 2.5], ":2.5", (-math.inf, 2.5)),
        (" -1e-3 : 4 ", "-0.001:4", (-0.001, 4.0)),
        ((0, math.inf), "0:", (0.0, math.inf)),
    ],
)
def test_ranges_are_read_and_written(given: Any, text: str, ends: tuple[float, float]) -> None:
    found = read_outcome_range(given)
    assert found is not None
    assert found.to_text() == text
    assert found.ends == ends
    assert read_outcome_range(found.to_text()) == found


@pytest.mark.parametrize(
    "given", [(1, 0), (2, 2), "3", "a:b", ":", (None, None), (True, 2), (0, math.nan), 7, (1, 2, 3)]
)
def test_what_is_no_range(given: Any) -> None:
    with pytest.raises(InvalidValueError):
        read_outcome_range(given)


def test_it_is_a_setting_like_any_other(tmp_path: Path) -> None:
    settings = Settings(SPACE, outcome_range=(0, None))
    assert Settings.from_dict(settings.to_dict()) == settings
    assert Settings(SPACE).outcome_range is None
    assert Settings.from_dict({key: v for key, v in settings.to_dict().items() if key != "outcome_range"}) == Settings(
        SPACE
    )
    path = tmp_path / "power.toml"
    write_toml(path, "power.db", "power", settings)
    assert 'outcome_range = "0:"' in path.read_text()
    assert read_toml(path).settings == settings
    assert settings.differences(Settings(SPACE)) == ["outcome_range: 0: is not None"]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_units_hold_values_and_not_differences(sign: float) -> None:
    units = Units(sign, 4.0, lowest=50.0, highest=100.0)
    assert units.to_user([sign * 5.0, sign * 20.0, sign * 40.0, -sign * math.inf]).tolist() == [50.0, 80.0, 100.0, 50.0]
    assert units.spread_to_user([0.5, 3.0]).tolist() == [2.0, 12.0]
    assert units.ends == ((12.5, 25.0) if sign > 0 else (-25.0, -12.5))


def power(direction: str, **settings: Any) -> Optimizer:
    """Power of a wind turbine that is nothing in many winds; the sign turned where it is a cost."""
    optimizer = Optimizer(SPACE, direction=direction, seed=1, **settings)
    rng = np.random.default_rng(0)
    sign = 1.0 if direction == "maximize" else -1.0
    for x, wind in rng.random((14, 2)):
        optimizer.tell({"x": x}, {"wind": wind}, sign * max(0.0, 2 * wind - 0.8 * x - 0.5 + 0.3 * np.sin(9 * wind)))
    return optimizer


GOALS = ("expected", "cvar:0.2", "robust:0.1", "worst-case", "quantile:0.1", "mean-sd:1")


@pytest.mark.parametrize(("direction", "given"), [("maximize", (0, None)), ("minimize", (None, 0))])
def test_nothing_is_said_that_is_physically_impossible(direction: Any, given: Any) -> None:
    """Without the range the worst case of this turbine is well below nothing."""
    free, held = power(direction), power(direction, outcome_range=given)
    sign = 1.0 if direction == "maximize" else -1.0
    x = {"x": 0.6}
    beyond = 0
    for goal in GOALS:
        loose, found = free.predict(x, goal=goal), held.predict(x, goal=goal)
        beyond += int(min(sign * loose.value_lower[0], sign * loose.value_upper[0]) < -0.01)
        for ends in (
            (found.value_lower, found.value_upper),
            (found.lower, found.upper),
            (found.outcome_lower, found.outcome_upper),
        ):
            assert min(sign * ends[0][0], sign * ends[1][0]) >= 0.0
            assert ends[0][0] <= ends[1][0]
        assert found.value_lower[0] <= found.value[0] <= found.value_upper[0]
        assert found.from_model[0] == pytest.approx(loose.from_model[0])  # a half-width is no value
    assert beyond >= 3
    bound, loose_bound = (sign * one.recommend().worst_case for one in (held, free))
    assert bound >= 0.0
    assert loose_bound < bound or loose_bound >= 0.0


def _numbers(name: str, value: Any) -> Iterator[tuple[str, float]]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _numbers(f"{name}.{key}", part)
    elif isinstance(value, list | tuple | np.ndarray):
        for k, part in enumerate(value):
            yield from _numbers(f"{name}[{k}]", part)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield name, float(value)


@pytest.mark.parametrize("method", ["edrbo", "edrbo-warped"])
@pytest.mark.parametrize("goal", ["expected", "robust:0.1"])
def test_every_answer_and_every_forecast_lies_in_it(method: str, goal: str) -> None:
    """A share of power from 0 to 1, many of them at an end. Forecasts by context said -0.07 to 1.04."""
    optimizer = Optimizer(SPACE, method, seed=1, outcome_range=(0, 1), goal=goal)
    for x, wind in np.random.default_rng(0).random((14, 2)):
        y = 1.3 * (2 * wind - 0.8 * x - 0.5 + 0.3 * np.sin(9 * wind))
        optimizer.tell({"x": x}, {"wind": wind}, float(np.clip(y, 0, 1)))
    answer, suggestion = optimizer.recommend(radius=0.2), optimizer.ask()
    forecast = optimizer.state.runs[suggestion.id].outcome_forecast
    assert forecast is not None
    said = [*_numbers("answer", answer.to_dict()), *_numbers("forecast", {"table": forecast["table"]})]
    policy, tradeoff = optimizer.policy(), optimizer.tradeoff()
    said += _numbers("policy", [policy.value, policy.value_interval, policy.one_value, policy.one_interval])
    said += _numbers("trade-off", [tradeoff.mean, tradeoff.value])
    counts = ("run", "observations", "distance", "design")
    said = [(name, number) for name, number in said if not any(count in name for count in counts)]
    assert [(name, number) for name, number in said if not 0.0 <= number <= 1.0] == []
    assert len(said) > 100


def test_gains_do_not_lead_beyond_it() -> None:
    """Of a yield in percent that is 97 there are three left to gain at most."""
    optimizer = Optimizer(SPACE, outcome_range=(0, 100), seed=1)
    for x, wind in np.random.default_rng(2).random((9, 2)):
        optimizer.tell({"x": x}, {"wind": wind}, 97.0 - 60.0 * (x - 0.5) ** 2 - 10.0 * (wind - 0.5) * (x - 0.5))
    answer = optimizer.recommend()
    assert answer.value <= 100.0
    assert answer.optimality_gap <= 100.0 - answer.interval[0]
    assert answer.interval[1] <= 100.0
    assert answer.outcome_interval[1] <= 100.0


def test_other_outcomes_have_no_range() -> None:
    import edrbo

    optimizer = Optimizer(SPACE, outcomes={"a": edrbo.Maximize(), "b": edrbo.Minimize(weight=0.1)}, outcome_range="0:")
    state = optimizer.state
    assert state.of_outcome("a").settings.outcome_range == OutcomeRange(0.0, None)
    assert state.of_outcome("b").settings.outcome_range is None
