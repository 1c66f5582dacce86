"""Several outcomes as values and on record: what each is for, and that whatever was reported is read again."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import pytest
from notebook import Notebook

import edrbo
from edrbo.errors import EdrboError, InvalidEventError, InvalidValueError, UnknownNameError
from edrbo.lab import Study
from edrbo.lab.tables.csv_export import export_csv
from edrbo.lab.tables.csv_import import import_file
from edrbo.optimizer.optimizer import Optimizer
from edrbo.records.descriptions import describe_run
from edrbo.records.outcomes import Outcomes, read_outcome_argument, read_outcomes
from edrbo.records.settings import Settings
from edrbo.space import Space
from factories import same_state

SPACE = Space(design={"speed": (0.0, 1.0)}, context={"humidity": (0.0, 1.0)})
OUTCOMES = {
    "gloss": edrbo.Maximize(unit="GU"),
    "roughness": edrbo.Limit(upper=2.0, probability=0.9, unit="µm"),
    "cost": edrbo.Minimize(weight=0.1, goal="cvar:0.2"),
    "noise_variance": edrbo.Limit(lower=-1.0, upper=1.0),  # a heading of tables
}


def tell_some(one: Any) -> None:
    for k in range(4):
        x, c = 0.2 * k, 0.1 + 0.2 * k
        one.tell(
            {"speed": x}, [c], {"gloss": 1.0 + x, "roughness": 0.5 + c, "cost": 3.0 - x, "noise_variance": 0.1 * k}
        )
    one.tell({"speed": 0.9}, [0.5], {"roughness": 0.7}, noise_variance={"roughness": 0.01})
    one.tell({"speed": 0.8}, None, {"gloss": 1.7, "cost": None}, noise_variance={"gloss": 0.1})
    one.tell({"speed": 0.7}, [0.4], failed=True)
    one.correct(4, value={"gloss": 1.8, "cost": 2.0})


@pytest.fixture
def notebook() -> Notebook:
    made = Notebook(SPACE, outcomes=OUTCOMES)
    tell_some(made)
    return made


def test_runs_hold_what_was_measured(notebook: Notebook) -> None:
    runs = notebook.state.runs
    assert runs[0].value == 1.0
    assert runs[0].others == {"roughness": 0.6, "cost": 3.0, "noise_variance": 0.0}
    assert (runs[4].value, runs[4].others) == (1.8, {"roughness": 0.7, "cost": 2.0})
    assert runs[4].others_noise_variance == {"roughness": 0.01}
    assert (runs[5].value, runs[5].noise_variance, runs[5].others) == (1.7, 0.1, {})
    assert describe_run(notebook.state, runs[4]) == (
        "run 4: speed 0.9 at humidity 0.5 gave gloss 1.8 GU, roughness 0.7 µm, cost 2"
    )


def test_an_outcome_by_itself(notebook: Notebook) -> None:
    state = notebook.state
    for name, direction, goal, reported in (
        ("gloss", "maximize", "expected", [0, 1, 2, 3, 4, 5]),
        ("roughness", "minimize", "reach:2", [0, 1, 2, 3, 4]),
        ("cost", "minimize", "cvar:0.2", [0, 1, 2, 3, 4]),
        ("noise_variance", "maximize", "within:-1,1", [0, 1, 2, 3]),
    ):
        alone = state.of_outcome(name)
        settings = alone.settings
        assert (settings.outcome, settings.outcomes) == (name, None)
        assert settings.goal.to_text() == goal
        assert list(alone.reported) == reported
        assert list(alone.failed) == [6]
        assert len(alone.log) == len(state.log)
        if name != "noise_variance":  # both ends: either direction
            assert settings.direction == direction
    assert state.of_outcome("roughness").observations.y.tolist() == pytest.approx([0.6, 0.8, 1.0, 1.2, 0.7])
    assert state.of_outcome("roughness").observations.noise_variance[4] == 0.01
    with pytest.raises(UnknownNameError, match="'gloss'"):
        state.of_outcome("glos")


def test_everything_is_read_again(notebook: Notebook, tmp_path: Path) -> None:
    optimizer = Optimizer(SPACE, outcomes=OUTCOMES, initial=100)
    tell_some(optimizer)
    assert same_state(Optimizer.from_json(optimizer.to_json()).state, optimizer.state)
    study = Study.open(tmp_path / "study.db", SPACE, outcomes=OUTCOMES, initial=100)
    asked = study.ask()
    study.tell(asked, [0.3], {"roughness": 1.0})  # without its main outcome
    tell_some(study)
    again = Study.open(tmp_path / "study.db")
    assert again.settings.outcomes == Outcomes(tuple(OUTCOMES.items()))
    assert same_state(again.state, study.state)
    table = io.StringIO()
    export_csv(study.state, table)
    head = table.getvalue().splitlines()[0]
    assert (
        "humidity,roughness,cost,outcome:noise_variance,noise_variance:roughness,noise_variance:cost,noise_variance:noise_variance,value,noise_variance"
        in head
    )
    (tmp_path / "table.csv").write_text(table.getvalue(), encoding="utf-8")
    other = Study.open(tmp_path / "other.db", SPACE, outcomes=OUTCOMES, initial=100)
    import_file(other, tmp_path / "table.csv")
    reported = [
        [(run.value, run.others) for run in one.state.runs.values() if run.status == "reported"]
        for one in (study, other)
    ]
    assert reported[0] == reported[1]
    assert not import_file(other, tmp_path / "table.csv").events
    frame = study.to_frame()
    assert frame["roughness"].tolist()[:2] == [1.0, 0.6]
    assert math.isnan(frame["value"][0])
    assert frame["outcome:noise_variance"][1] == 0.0


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (1.0, "several outcomes"),
        ({"glos": 1.0}, "'glos' is not an outcome"),
        ({}, "the value is None"),
        ({"gloss": None}, "the value is None"),
        ({"gloss": "7"}, "the value is '7'"),
        ({"gloss": 1.0, "cost": math.nan}, "the value is nan"),
        ([1.0, 2.0], "several outcomes"),
    ],
)
def test_what_cannot_be_reported(notebook: Notebook, value: Any, words: str) -> None:
    before = notebook.state
    with pytest.raises(EdrboError, match=words):
        notebook.tell({"speed": 0.5}, [0.5], value)
    assert notebook.state is before


def test_noise_needs_its_value(notebook: Notebook) -> None:
    with pytest.raises(InvalidValueError, match="'cost'"):
        notebook.tell({"speed": 0.5}, [0.5], {"gloss": 1.0}, noise_variance={"cost": 0.1})
    with pytest.raises(InvalidValueError, match="'gloss'"):
        notebook.tell({"speed": 0.5}, [0.5], {"cost": 1.0}, noise_variance={"gloss": 0.1})


def test_one_outcome_is_one_number() -> None:
    single = Notebook(SPACE)
    with pytest.raises(InvalidValueError):
        single.tell({"speed": 0.5}, [0.5], {"value": 1.0})


@pytest.mark.parametrize(
    ("outcomes", "words"),
    [
        ({}, "outcomes are"),
        (3, "outcomes are 3"),
        ({"a": edrbo.Limit(upper=1)}, "main"),
        ({"a": edrbo.Maximize(weight=2.0)}, "main"),
        ({name: "maximize" for name in "abcd"}, "4 main outcomes"),
        ({"a": "maximize", "b": "minimize", "d": edrbo.Minimize(weight=1)}, "a weight beside them"),
        ({"a": "most"}, "the outcome 'a' is 'most'"),
        ({"a": edrbo.Maximize}, "the outcome 'a' is"),
        ({"a": {"aim": []}}, "the outcome 'a' is"),
        ({"a": {"aim": "limit", "uper": 1.0}}, "'uper'"),
        ({"speed": edrbo.Maximize()}, "an outcome and a variable"),
        ({3: edrbo.Maximize()}, "an outcome is called 3"),
    ],
)
def test_contradictions(outcomes: Any, words: str) -> None:
    with pytest.raises(InvalidValueError, match=words):
        Settings(SPACE, outcomes=outcomes)


@pytest.mark.parametrize(
    "make",
    [
        lambda: edrbo.Limit(),
        lambda: edrbo.Limit(upper=math.inf),
        lambda: edrbo.Limit(upper="2"),  # type: ignore[arg-type]
        lambda: edrbo.Limit(lower=2, upper=1),
        lambda: edrbo.Limit(upper=1, probability=1.0),
        lambda: edrbo.Limit(upper=1, confidence=95),
        lambda: edrbo.Maximize(weight=0.0),
        lambda: edrbo.Minimize(weight=True),
        lambda: edrbo.Minimize(goal="cvr:0.1"),
        lambda: edrbo.Minimize(unit=3),  # type: ignore[arg-type]
    ],
)
def test_aims_that_cannot_be(make: Any) -> None:
    with pytest.raises(EdrboError):
        make()


def test_settings_follow_the_main_outcome() -> None:
    settings = Settings(SPACE, outcomes={"limit": edrbo.Limit(upper=1), "cost": edrbo.Minimize(goal="cvar:0.1")})
    assert (settings.outcome, settings.direction, settings.goal) == ("cost", "minimize", edrbo.CVaR(0.1))
    with pytest.raises(InvalidValueError, match="'minimize'"):
        Settings(SPACE, direction="minimize", outcomes={"gloss": "maximize"})


def test_words_of_a_command_line() -> None:
    assert read_outcome_argument("gloss=maximize") == ("gloss", edrbo.Maximize())
    assert read_outcome_argument("cost=minimize,weight=0.1,goal=within:3,5") == (
        "cost",
        edrbo.Minimize(weight=0.1, goal=edrbo.ProbabilityWithin(3, 5)),
    )
    assert read_outcome_argument("r=limit,upper=2,probability=0.9") == ("r", edrbo.Limit(upper=2, probability=0.9))
    with pytest.raises(InvalidValueError):
        read_outcome_argument("gloss")
    made = read_outcomes(OUTCOMES)
    assert made is not None
    assert dict(map(read_outcome_argument, made.to_text().split("; "))) == OUTCOMES


def test_outcomes_are_amended_but_never_lost(notebook: Notebook) -> None:
    wider = {**OUTCOMES, "roughness": edrbo.Limit(upper=3.0), "haze": edrbo.Limit(upper=0.1)}
    notebook.amend({"outcomes": Settings(SPACE, outcomes=wider).to_dict()["outcomes"]})
    notebook.tell({"speed": 0.5}, [0.5], {"haze": 0.01})
    fewer = {name: part for name, part in wider.items() if name != "cost"}
    with pytest.raises(InvalidEventError, match="'cost'"):
        notebook.amend({"outcomes": Settings(SPACE, outcomes=fewer).to_dict()["outcomes"]})
    with pytest.raises(EdrboError):
        notebook.amend({"outcomes": None})
    single = Notebook(SPACE, outcome="gloss")
    single.tell({"speed": 0.5}, [0.5], 1.0)
    single.amend({"outcomes": Settings(SPACE, outcomes=OUTCOMES).to_dict()["outcomes"]})
    single.tell({"speed": 0.5}, [0.4], {"gloss": 1.0, "cost": 2.0})
    assert list(single.state.of_outcome("cost").reported) == [1]
