"""Several rows of one run reported at once: as if they had been reported one by one, and kept as one run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edrbo import Integer, Optimizer, Space, Study
from edrbo.errors import (
    ImplausibleWarning,
    InvalidContextError,
    InvalidEventError,
    InvalidValueError,
    UnknownSuggestionError,
)
from edrbo.lab.report import report_page
from edrbo.lab.tables.csv_export import export_csv
from edrbo.lab.tables.csv_import import import_file
from edrbo.records.descriptions import describe_run
from edrbo.records.events import from_dict
from factories import same_state

SPACE = Space({"speed": (0, 1)}, {"humidity": (0, 100), "shift": ["day", "night"]})


def hour(seed: int, count: int = 5) -> dict[str, list[Any]]:
    rng = np.random.default_rng(seed)
    contexts = [{"humidity": float(rng.uniform(20, 80)), "shift": ["day", "night"][seed % 2]} for _ in range(count)]
    return {"contexts": contexts, "values": [float(rng.normal(c["humidity"] / 50, 0.1)) for c in contexts]}


def test_rows_at_once_are_rows_one_by_one() -> None:
    once, looped = Optimizer(SPACE), Optimizer(SPACE)
    for k in range(4):
        reported = hour(k)
        once.tell({"speed": k / 4}, **reported, noise_variance=[0.1, None, 0.2, 0.1, None])
        for c, y, s in zip(*reported.values(), [0.1, None, 0.2, 0.1, None], strict=True):
            looped.tell({"speed": k / 4}, c, y, noise_variance=s)
    assert len(once) == 4
    assert len(looped) == 20
    for one, two in zip(vars(once.observations).values(), vars(looped.observations).values(), strict=True):
        assert np.array_equal(one, two, equal_nan=True)
    assert len(once.context_log) == len(looped.context_log) == 20
    assert np.array_equal(once.state.training_order, np.arange(20))
    assert once.state.owners.tolist() == [0] * 5 + [1] * 5 + [2] * 5 + [3] * 5
    for here in ({}, {"context": {"humidity": 50, "shift": "night"}}):
        one, two = (found.predict({"speed": 0.4}, **here) for found in (once, looped))
        assert one.expected == pytest.approx(two.expected, rel=1e-9)
        assert one.from_model == pytest.approx(two.from_model, rel=1e-9)
        if here:
            assert one.lower == pytest.approx(two.lower, rel=1e-9)
        else:  # four shifts were met, not twenty: only a series says so
            assert one.from_contexts[0] > 1.5 * two.from_contexts[0]


def test_one_suggestion_has_several_rows(tmp_path: Path) -> None:
    study = Study.open(tmp_path / "hours.db", SPACE, initial=2)
    for k in range(3):
        study.tell(study.ask(), **hour(k))
    assert not study.pending
    assert [run.status for run in study.runs] == ["reported"] * 3
    assert study.runs[0].value == pytest.approx(np.mean(hour(0)["values"]))
    again = Study.open(tmp_path / "hours.db")
    assert same_state(again.state, study.state)
    assert again.recommend().observations == 15
    with pytest.raises(UnknownSuggestionError):
        study.tell(0, **hour(0))
    frame = study.to_frame()
    assert frame.index.tolist() == [0] * 5 + [1] * 5 + [2] * 5
    assert frame["humidity"].tolist()[:5] == [c["humidity"] for c in hour(0)["contexts"]]
    assert "run 14" not in report_page(study)
    assert "in 5 rows" in describe_run(study.state, study.runs[0])


def test_second_thoughts_about_rows(tmp_path: Path) -> None:
    optimizer = Optimizer(SPACE)
    optimizer.tell({"speed": 0.5}, {"humidity": 30, "shift": "day"}, 1.0)
    optimizer.tell({"speed": 0.2}, **hour(1))
    before = optimizer.state
    optimizer.correct(1, row=2, value=7.0, context={"humidity": 44}, noise_variance=0.3)
    data = optimizer.observations
    assert data.y[3] == 7.0
    assert data.c[3].tolist() == [44.0, 1.0]
    assert data.noise_variance[3] == 0.3
    assert optimizer.runs[1].value == pytest.approx(data.y[1:].mean())
    optimizer.correct(1, design={"speed": 0.25})
    assert optimizer.observations.x[1:, 0].tolist() == [0.25] * 5
    optimizer.undo()
    optimizer.undo()
    assert same_state(optimizer.state, before)
    optimizer.drop(1)
    assert len(optimizer.observations) == len(optimizer.context_log) == 1
    optimizer.restore(1)
    assert same_state(optimizer.state, before)
    wider = Space({"speed": (0, 2)}, {"humidity": (0, 100), "shift": ["late", "day", "night"], "crew": Integer(1, 3)})
    optimizer.amend({"space": wider.to_dict()}, {"crew": 2})
    assert wider.name_contexts(optimizer.observations.c[-1:])[0]["shift"] == "night"
    back = Optimizer.from_json(optimizer.to_json())
    assert same_state(back.state, optimizer.state)
    for _ in ("amended", "restored", "dropped", "reported"):
        optimizer.undo()
    assert [run.id for run in optimizer.runs] == [0]


def test_tables_hold_rows(tmp_path: Path) -> None:
    study = Study.open(tmp_path / "one.db", SPACE)
    study.tell({"speed": 0.5}, {"humidity": 30}, 1.0)
    study.tell({"speed": 0.2}, **hour(1), noise_variance=[0.1, None, 0.2, 0.3, 0.4], note="an hour")
    study.tell({"speed": 0.1}, **hour(2))
    study.drop(2)
    study.observe_context([{"humidity": 30}, {"shift": "day"}])
    table = tmp_path / "runs.csv"
    with table.open("w") as file:
        export_csv(study.state, file)
    other = Study.open(tmp_path / "two.db", SPACE)
    import_file(other, table)
    assert same_state(other.state, study.state)
    assert import_file(other, table).events == ()


SPACE_1 = Space({"speed": (0, 1)})


@pytest.mark.parametrize(
    ("reported", "error", "words"),
    [
        ({"contexts": [{"humidity": 1, "shift": "day"}], "values": [1, 2]}, InvalidContextError, "1 contexts for 2"),
        ({"values": [1, 2]}, InvalidContextError, "no contexts"),
        ({"contexts": [], "values": []}, InvalidValueError, "no value"),
        ({"contexts": [{"humidity": 1}], "values": 3.0}, InvalidValueError, "give a list"),
        ({"contexts": [{"humidity": 1}], "values": [float("nan")]}, InvalidValueError, "nan"),
        ({"contexts": [{"humidity": 1}], "values": [1], "noise_variance": [1, 2]}, InvalidValueError, "2 noise"),
        ({"contexts": [{"humidity": 1}], "values": [1], "noise_variance": [-1]}, InvalidValueError, "noise"),
        ({"contexts": [{}], "values": [1]}, InvalidContextError, "nothing is known"),
        ({"contexts": [{"humidity": 1}], "values": [1], "value": 2}, InvalidValueError, "one or the other"),
        ({"contexts": [{"humdity": 1}], "values": [1]}, InvalidContextError, "did you mean 'humidity'"),
    ],
)
def test_rows_that_cannot_be(reported: dict[str, Any], error: type[Exception], words: str) -> None:
    optimizer = Optimizer(SPACE)
    with pytest.raises(error, match=words):
        optimizer.tell({"speed": 0.5}, **reported)
    assert not optimizer.runs


def test_second_thoughts_that_cannot_be() -> None:
    optimizer = Optimizer(SPACE)
    optimizer.tell({"speed": 0.5}, **hour(0))
    optimizer.tell({"speed": 0.5}, {"humidity": 30, "shift": "day"}, 1.0)
    with pytest.raises(InvalidEventError):
        optimizer.correct(0, value=2.0)
    with pytest.raises(InvalidValueError, match="5"):
        optimizer.correct(0, row=5, value=2.0)
    with pytest.raises(InvalidEventError):
        optimizer.correct(1, row=0, value=2.0)
    with pytest.raises(InvalidContextError):
        optimizer.tell_context(0, {"humidity": 3})
    record = {"kind": "reported", "id": 9, "x": [0.5], "value": 1.0, "values": [1.0, 2.0], "contexts": [[30, 0]]}
    with pytest.raises(InvalidEventError):
        optimizer.apply(from_dict(record))
    with pytest.raises(InvalidContextError):
        optimizer.apply(from_dict({**record, "contexts": [[30, 0], [None, None]]}))


def test_repeats_without_contexts() -> None:
    optimizer = Optimizer(SPACE_1)
    optimizer.tell({"speed": 0.5}, values=[1.0, 1.2, 0.9])
    assert optimizer.observations.y.tolist() == [1.0, 1.2, 0.9]
    assert len(optimizer) == 1
    assert same_state(Optimizer.from_json(optimizer.to_json()).state, optimizer.state)


def test_a_row_that_looks_wrong_is_asked_about() -> None:
    optimizer = Optimizer(SPACE)
    for k in range(4):
        optimizer.tell({"speed": k / 4}, **hour(k))
    reported = hour(9)
    reported["values"][3] = 900.0
    with pytest.warns(ImplausibleWarning, match="3"):
        optimizer.tell({"speed": 0.7}, **reported)
    assert optimizer.implausible()[0].run == 4
