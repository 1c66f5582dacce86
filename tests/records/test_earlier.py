"""Earlier studies: what is matched by name, what is converted, and what is refused."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edrbo import Categorical, EarlierStudy, Limit, Maximize, Optimizer, Real, Space, Study
from edrbo.errors import (
    EdrboError,
    InvalidContextError,
    InvalidDesignError,
    InvalidValueError,
    StudyError,
    UnknownNameError,
)
from edrbo.lab.config import read_toml, write_toml
from edrbo.optimizer.training_data import TrainingData
from edrbo.records.earlier import conversion
from edrbo.records.settings import Settings

SPACE = Space({"speed": Real(10, 60, unit="m/min"), "kind": ["plain", "matt"]}, {"humidity": Real(0, 100, unit="%")})


def line(count: int = 8, seed: int = 0, **changed: Any) -> EarlierStudy:
    draw = np.random.default_rng(seed)
    given: dict[str, Any] = {
        "name": "line 1",
        "designs": {"speed": draw.uniform(10, 60, count), "kind": ["plain", "matt"] * (count // 2)},
        "contexts": {"humidity": draw.uniform(0, 100, count)},
        "outcomes": draw.uniform(50, 70, count),
    }
    return EarlierStudy(**(given | changed))


def runs_of(study: EarlierStudy, space: Space = SPACE, **choices: Any) -> Any:
    settings = Settings(space, earlier=[study], **choices)
    assert settings.earlier is not None
    return settings.earlier.runs(settings.outcome, settings.unit)[0]


@pytest.mark.parametrize(
    ("given", "wanted", "expected"),
    [
        ("m/s", "m/min", (60.0, 0.0)),
        ("um", "mm", (1e-3, 0.0)),
        ("°C", "K", (1.0, 273.15)),
        ("K", "°C", (1.0, -273.15)),
        ("", "mm", (1.0, 0.0)),
        ("GU", "GU", (1.0, 0.0)),
        ("GU", "%", None),
        ("m/min", "kg", None),
        ("m/s", "m", None),
        ("s/m", "m/s", None),
    ],
)
def test_only_what_is_certain_is_converted(given: str, wanted: str, expected: tuple[float, float] | None) -> None:
    found = conversion(given, wanted)
    assert found == (expected if expected is None else pytest.approx(expected))


def test_values_are_matched_by_name_and_unit() -> None:
    whole = runs_of(line())
    other = runs_of(
        line(
            designs={
                "kind": ["plain", "matt"] * 4,
                "speed": np.random.default_rng(0).uniform(10, 60, 8) / 60.0,
                "operator": ["A"] * 8,
            },
            units={"speed": "m/s"},
        )
    )
    np.testing.assert_allclose(other.x, whole.x, atol=1e-12)
    assert np.array_equal(other.c, whole.c)


def test_an_outcome_is_converted_with_its_noise() -> None:
    found = runs_of(
        line(outcomes={"haze": [0.5] * 8}, noise_variances={"haze": [0.01] * 8}, units={"haze": "mm"}),
        outcome="haze",
        unit="um",
    )
    np.testing.assert_allclose(found.y, 500.0)
    np.testing.assert_allclose(found.noise_variance, 1e4)


def test_what_a_new_variable_was_is_its_default() -> None:
    space = Space({**SPACE.design, "dose": Real(1, 9, default=3.0)}, SPACE.context)
    assert np.allclose(runs_of(line(), space).x[:, -1], 0.25)


def test_runs_outside_or_without_a_value_are_left_out_and_counted() -> None:
    designs = {"speed": [5.0, 20.0, 30.0, 40.0], "kind": ["plain"] * 4}
    found = runs_of(
        line(4, designs=designs, contexts={"humidity": [50, None, 40, 30]}, outcomes=[60.0, 61.0, math.nan, 62.0])
    )
    assert (len(found.y), found.outside) == (1, 2)
    assert found.y.tolist() == [62.0]


@pytest.mark.parametrize(
    ("changed", "error", "match"),
    [
        ({"designs": {"speed": [20.0] * 8}}, InvalidDesignError, "no 'kind'"),
        ({"contexts": ()}, InvalidContextError, "no 'humidity'"),
        ({"designs": {**dict(line().designs), "rate": list(range(8))}}, InvalidDesignError, "varied 'rate'"),
        ({"designs": {"speed": [20.0] * 8, "kind": ["mat"] * 8}}, InvalidDesignError, "'mat', which is no level"),
        ({"units": {"speed": "kg"}}, InvalidValueError, "in kg, and here it is in m/min"),
        ({"outcomes": {"haze": [1.0] * 8}}, UnknownNameError, "no outcome 'value'"),
        ({"designs": {"speed": [90.0] * 8, "kind": ["matt"] * 8}}, InvalidValueError, "none of the 8 runs"),
        ({"outcomes": [1.0] * 7}, InvalidValueError, "7 to 8 rows"),
        ({"outcomes": ["high"] * 8}, InvalidValueError, "finite number"),
        ({"name": " "}, InvalidValueError, "name"),
    ],
)
def test_what_does_not_match_is_an_error(changed: dict[str, Any], error: type[EdrboError], match: str) -> None:
    with pytest.raises(error, match=match) as caught:
        Settings(SPACE, earlier=[line(**changed)])
    assert caught.value.hint


@pytest.mark.parametrize("given", [[3], {"nonsense": 1}, [line(), line()], [line(name=str(k)) for k in range(9)]])
def test_what_is_no_earlier_study_is_an_error(given: Any) -> None:
    with pytest.raises(InvalidValueError):
        Settings(SPACE, earlier=given)


def told(study: Any, count: int = 6) -> Any:
    draw = np.random.default_rng(1)
    for k in range(count):
        value = {"gloss": 60 + draw.normal(), "haze": draw.normal()} if study.settings.outcomes else draw.normal()
        study.tell({"speed": draw.uniform(10, 60), "kind": "matt"}, {"humidity": 10.0 * k}, value)
    return study


def test_a_study_becomes_values_and_back() -> None:
    optimizer = told(Optimizer(SPACE, outcomes={"gloss": Maximize(unit="GU"), "haze": Limit(upper=2.0)}))
    study = EarlierStudy.of(optimizer, name="line 1")
    assert EarlierStudy.from_dict(json.loads(json.dumps(study.to_dict()))) == study
    settings = Settings(SPACE, earlier=[study], outcomes=optimizer.settings.outcomes)
    assert settings.earlier is not None
    for name in ("gloss", "haze"):
        own = optimizer.state.of_outcome(name).observations
        (found,) = settings.earlier.runs(name, "GU" if name == "gloss" else "")
        assert np.array_equal(found.y, own.y)
        np.testing.assert_allclose(found.x, own.x, atol=1e-12)
        assert np.array_equal(found.c, own.c)


def test_nothing_can_be_learned_from_a_study_without_runs() -> None:
    with pytest.raises(EdrboError, match="no runs yet"):
        Optimizer(SPACE, earlier=[Optimizer(SPACE)])


def test_files_are_read_once_and_may_move(tmp_path: Path) -> None:
    first = told(Study.open(tmp_path / "line1.db", SPACE))
    with pytest.raises(InvalidValueError, match="was not read"):
        Optimizer(SPACE, earlier=[tmp_path / "line1.db"])
    study = Study.open(tmp_path / "line2.db", SPACE, earlier=[tmp_path / "line1.db"])
    told(first)  # what comes later is not ours
    again = Study.open(tmp_path / "line2.db", SPACE, earlier=[tmp_path / "elsewhere" / "line1.db"])
    for one in (study, again):
        assert one.settings.earlier is not None
        assert [len(part) for part in one.settings.earlier.parts] == [6]
    with pytest.raises(StudyError, match="other settings"):
        Study.open(tmp_path / "line2.db", SPACE)
    with pytest.raises(StudyError, match="cannot be read"):
        Study.open(tmp_path / "line3.db", SPACE, earlier=["nowhere.db"])
    again.amend({"earlier": [str(tmp_path / "line1.db")]})
    assert again.settings.earlier is not None
    assert len(again.settings.earlier.parts[0]) == 12
    again.amend({"earlier": None})
    assert again.settings.earlier is None


def test_the_description_names_the_file_beside_it(tmp_path: Path) -> None:
    told(Study.open(tmp_path / "line1.db", SPACE))
    settings = Settings(SPACE, earlier=[tmp_path / "line1.db"])
    write_toml(tmp_path / "line2.toml", "line2.db", "line2", settings)
    assert 'earlier = ["line1.db"]' in (tmp_path / "line2.toml").read_text()
    described = read_toml(tmp_path / "line2.toml")
    study = Study.described(described)
    assert study.settings.earlier is not None
    assert study.settings.earlier.to_text() == "line1 (6 runs)"
    (tmp_path / "line1.db").unlink()
    assert len(Study.described(described).settings.earlier.parts[0]) == 6  # type: ignore[union-attr]


def test_more_context_is_known_only_as_far_as_it_was_met() -> None:
    """Earlier contexts are expected until one is met here, and never counted among those met."""
    optimizer = Optimizer(SPACE, earlier=[line()])
    data = TrainingData(optimizer.state, uses_context=True)
    assert not data.knows_contexts
    assert len(data.earlier_contexts) == 8
    optimizer.tell({"speed": 20, "kind": "matt"}, {"humidity": 30}, 60.0)
    assert TrainingData(optimizer.state, uses_context=True).knows_contexts
    assert len(optimizer.state.log.weighted(1, None)[0]) == 1


def smooth(design: dict[str, Any], humidity: float) -> float:
    return 60.0 - ((design["speed"] - 30.0 - 0.1 * humidity) / 10.0) ** 2 + (design["kind"] == "matt")


def test_the_first_run_is_where_a_like_study_was_good_and_it_goes_on_bit_for_bit() -> None:
    draw = np.random.default_rng(4)
    designs = [{"speed": s, "kind": k} for s, k in zip(draw.uniform(10, 60, 24), ["plain", "matt"] * 12, strict=True)]
    humidity = draw.uniform(40, 60, 24)
    outcomes = [2.0 * smooth(x, h) + 3.0 for x, h in zip(designs, humidity, strict=True)]
    study = EarlierStudy("like", designs, outcomes, {"humidity": humidity})
    optimizer = Optimizer(SPACE, earlier=[study], seed=3)
    first = optimizer.ask()
    assert first.design["kind"] == "matt"
    assert abs(first.design["speed"] - 35.0) < 4.0
    for k in range(4):
        suggestion = first if k == 0 else optimizer.ask()
        optimizer.tell(suggestion, {"humidity": 50.0 + k}, smooth(suggestion.design, 50.0 + k))
    again = Optimizer.from_json(optimizer.to_json())
    assert again.ask().design == optimizer.ask().design
    answer = optimizer.recommend()
    known = answer.earlier["like"]
    assert known["runs"] == 24
    assert known["correlation"] > 0.7
    assert "like like: correlation" in str(answer)


def test_a_method_that_learns_nothing_from_them_says_so() -> None:
    from edrbo import Method
    from edrbo.acquisition.methods import METHODS
    from edrbo.theory import FixedSurrogate

    usual = METHODS["edrbo-mean"]
    own = Method(FixedSurrogate(), usual.score, usual.context_distribution, usual.functional)
    with pytest.raises(InvalidValueError, match="learns nothing from earlier studies"):
        Optimizer(SPACE, own, earlier=[line()])


def test_levels_in_an_order_and_missing_units_fit() -> None:
    space = Space({"size": Categorical(("small", "large"), ordered=True)})
    found = runs_of(EarlierStudy("a", {"size": ["small", "large"]}, [1.0, 2.0]), space)
    assert found.x.shape == (2, 1)
