"""Control runs: outcomes relative to a reference run in the same context, through every interface."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import edrbo
from edrbo.errors import InvalidValueError
from edrbo.lab.cli.entries import edit, tell
from edrbo.lab.report.page import run_table
from edrbo.lab.runner import read_answer
from edrbo.lab.study import Study
from edrbo.lab.tables.csv_export import export_csv, minimal_events
from edrbo.lab.tables.csv_import import plan_table
from edrbo.lab.tables.sheet import read_sheet
from edrbo.records.descriptions import describe_run
from edrbo.records.state import State
from factories import same_state

SPACE = edrbo.Space({"speed": (0, 10)}, {"humidity": (0, 1)})


def optimizer(**settings: object) -> edrbo.Optimizer:
    return edrbo.Optimizer(SPACE, **settings)  # type: ignore[arg-type]


def test_an_outcome_counts_relative_to_its_control() -> None:
    first, second = optimizer(), optimizer()
    draw = np.random.default_rng(0)
    for _ in range(12):
        speed, humidity, day = 10 * draw.random(), draw.random(), 50 * draw.standard_normal()
        value = -((speed - 6) ** 2)
        reference = humidity
        first.tell({"speed": speed}, {"humidity": humidity}, value + day, control=reference + day)
        second.tell({"speed": speed}, {"humidity": humidity}, (value + day) - (reference + day))
    np.testing.assert_array_equal(first.observations.y, second.observations.y)
    assert first.ask().design == second.ask().design
    assert first.recommend().design == second.recommend().design
    run = first.runs[0]
    assert run.control is not None
    assert run.measured is not None
    assert run.value == run.measured - run.control
    assert first.recommend().design["speed"] == pytest.approx(6, abs=0.5)  # the days moved values by fifty


def test_it_is_corrected_and_taken_back() -> None:
    one = optimizer()
    one.tell({"speed": 1}, {"humidity": 0.5}, 5.0, control=3.0)
    one.correct(0, value=6.0)
    assert one.runs[0].value == 3.0
    one.correct(0, control=1.0)
    assert (one.runs[0].value, one.runs[0].measured, one.runs[0].control) == (5.0, 6.0, 1.0)
    one.undo()
    assert one.runs[0].value == 3.0
    assert "relative to a control run (6 and 3)" in describe_run(one.state, one.runs[0])


def test_all_or_none() -> None:
    one = optimizer()
    one.tell({"speed": 1}, {"humidity": 0.5}, 5.0)
    with pytest.raises(InvalidValueError, match="control"):
        one.tell({"speed": 2}, {"humidity": 0.5}, 5.0, control=1.0)
    assert len(one) == 1
    one.drop(0)
    one.tell({"speed": 2}, {"humidity": 0.5}, 5.0, control=1.0)
    with pytest.raises(InvalidValueError, match="control"):
        one.restore(0)
    with pytest.raises(InvalidValueError, match="control"):
        one.tell({"speed": 2}, {"humidity": 0.5}, 5.0)


def test_contradictions() -> None:
    with pytest.raises(InvalidValueError, match="range"):
        optimizer(outcome_range=(0, 10)).tell({"speed": 1}, {"humidity": 0.5}, 5.0, control=1.0)
    one = optimizer()
    with pytest.raises(InvalidValueError, match="control"):
        one.tell({"speed": 1}, contexts=[{"humidity": 0.5}], values=[1.0], control=1.0)
    with pytest.raises(InvalidValueError, match="failed"):
        one.tell({"speed": 1}, {"humidity": 0.5}, failed=True, control=1.0)
    with pytest.raises(InvalidValueError, match="control"):
        one.tell({"speed": 1}, {"humidity": 0.5}, 1.0, control=float("nan"))
    several = optimizer(outcomes={"gloss": edrbo.Maximize(), "haze": edrbo.Limit(upper=2.0)})
    with pytest.raises(InvalidValueError):
        several.tell({"speed": 1}, {"humidity": 0.5}, {"gloss": 5.0, "haze": 1.0}, control={"haze": 1.0})
    several.tell({"speed": 1}, {"humidity": 0.5}, {"gloss": 5.0, "haze": 1.0}, control={"gloss": 1.5})
    assert several.runs[0].value == 3.5
    assert several.runs[0].others == {"haze": 1.0}
    assert several.state.of_outcome("haze").runs[0].value == 1.0


Pair = st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(0, 10))


@given(st.lists(Pair, min_size=1, max_size=4))
def test_what_is_exported_is_the_same_again(pairs: list[tuple[float, float, float]]) -> None:
    one = optimizer()
    for value, control, speed in pairs:
        one.tell({"speed": speed}, {"humidity": 0.5}, value, control=control)
    fewest = State.start(one.settings).apply(*minimal_events(one.state))
    assert same_state(fewest, one.state)
    again = edrbo.Optimizer.from_json(one.to_json())
    assert same_state(again.state, one.state)


def test_tables_hold_both(tmp_path: Path) -> None:
    with Study.open(tmp_path / "one.db", SPACE) as study, Study.open(tmp_path / "two.db", SPACE) as other:
        study.tell({"speed": 1}, {"humidity": 0.5}, 5.1, control=3.3)
        study.tell({"speed": 2}, {"humidity": 0.25}, 7.0, control=0.1)
        text = io.StringIO()
        export_csv(study.state, text)
        assert "control" in text.getvalue().splitlines()[0]
        path = tmp_path / "runs.csv"
        path.write_text(text.getvalue())
        other.record_all(lambda state: plan_table(state, read_sheet(path)).events)
        assert same_state(other.state, study.state)
        assert not plan_table(study.state, read_sheet(path)).events  # known already
        frame = study.to_frame()
        assert frame["control"].tolist() == [3.3, 0.1]
        shown = run_table(study.state, study.runs)
        assert "control" in shown.heads
    plain = optimizer()
    plain.tell({"speed": 1}, {"humidity": 0.5}, 5.0)
    text = io.StringIO()
    export_csv(plain.state, text)
    assert "control" not in text.getvalue().splitlines()[0]
    assert "control" not in plain.to_frame()


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "one.db"
    Study.open(path, SPACE, unit="GU").close()
    tell(study=str(path), design=["speed=3"], context=["humidity=0,5"], value=["5,5 GU"], control="4,5")
    assert "1 GU relative to a control run (5.5 and 4.5)" in capsys.readouterr().out.replace("\n", " ")
    edit(0, study=str(path), control="4", yes=True)
    with Study.open(path) as study:
        assert study.runs[0].value == 1.5
        study.ask()
        answer = read_answer(
            study.pending[0], json.dumps({"value": 3, "control": 2, "context": {"humidity": 1}}), SPACE
        )
        assert answer.control == 2
        assert read_answer(study.pending[0], '{"value": 3, "control": "x"}', SPACE).problem is not None


def test_every_signature_takes_it() -> None:
    import inspect

    from edrbo.client import RemoteStudy

    for method in (edrbo.Optimizer.tell, edrbo.Optimizer.correct, Study.tell, RemoteStudy.tell, RemoteStudy.correct):
        assert "control" in inspect.signature(method).parameters
