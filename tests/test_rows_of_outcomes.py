"""Several rows of one run in a study of several outcomes: as if they had been reported one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edrbo import Limit, Maximize, Minimize, Optimizer, Space, Study
from edrbo.errors import EdrboError, InvalidValueError, UnknownNameError
from edrbo.lab.tables.csv_export import export_csv
from edrbo.lab.tables.csv_import import import_file, read_outcomes
from factories import same_state

SPACE = Space({"speed": (0, 1)}, {"humidity": (0, 100)})
OUTCOMES = {"gloss": Maximize(), "haze": Limit(upper=2.0), "price": Minimize(weight=0.1)}
CONTEXTS = [{"humidity": 30.0}, {"humidity": 55.0}, {"humidity": 70.0}]
VALUES: dict[str, list[Any]] = {"gloss": [1.0, None, 1.5], "haze": [0.1, 0.3, None]}


def by_row(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [{name: column[k] for name, column in columns.items()} for k in range(3)]


def new() -> Optimizer:
    return Optimizer(SPACE, "erbo", outcomes=OUTCOMES, initial=9)


@pytest.mark.parametrize("values", [VALUES, by_row(VALUES)])
def test_rows_at_once_are_rows_one_by_one(values: Any) -> None:
    once, looped = new(), new()
    noise_variance = {"gloss": [0.01, None, None], "haze": [0.04, 0.04, None]}
    for k in range(3):
        once.tell({"speed": k / 4}, contexts=CONTEXTS, values=values, noise_variance=noise_variance)
        for c, y, s in zip(CONTEXTS, by_row(VALUES), by_row(noise_variance), strict=True):
            looped.tell({"speed": k / 4}, c, y, noise_variance=s)
    assert (len(once), len(once.observations), len(once.context_log)) == (3, 6, 9)
    for name in ("gloss", "haze"):
        one, two = (found.state.of_outcome(name) for found in (once, looped))
        for a, b in zip(vars(one.observations).values(), vars(two.observations).values(), strict=True):
            np.testing.assert_array_equal(a, b)
        assert one.owners.tolist() == [0, 0, 1, 1, 2, 2]
        assert len(one.log) == len(two.log) == 9
        answers = [found.predict({"speed": 0.4}, outcome=name).expected for found in (once, looped)]
        assert answers[0] == pytest.approx(answers[1], rel=1e-9)
    assert not once.state.of_outcome("price").reported
    run = once.runs[0]
    assert (run.value, dict(run.others)) == (1.25, {"haze": 0.2})


def test_kept_exported_corrected(tmp_path: Path) -> None:
    study = Study.open(tmp_path / "a.db", SPACE, outcomes=OUTCOMES, initial=9)
    study.tell(
        study.ask(), contexts=CONTEXTS, values=VALUES, noise_variance={"gloss": 0.01} | {"haze": [None, 0.04, None]}
    )
    study.tell({"speed": 0.5}, contexts=CONTEXTS[:2], values={"price": [3.0, 4.0]}, cost=2.5)  # the main one is missing
    study.correct(0, row=1, value={"gloss": 1.2, "price": 5.0}, context={"humidity": 56})
    run = study.runs[0]
    assert run.value == pytest.approx((1.0 + 1.2 + 1.5) / 3)
    assert run.others == pytest.approx({"haze": 0.2, "price": 5.0})
    assert same_state(Study.open(tmp_path / "a.db").state, study.state)
    optimizer = Optimizer.of(study.state)
    assert same_state(Optimizer.from_json(optimizer.to_json()).state, study.state)
    assert study.to_frame()["haze"].tolist()[:2] == [0.1, 0.3]
    with (tmp_path / "a.csv").open("w") as file:
        export_csv(study.state, file)
    again = Study.open(tmp_path / "b.db", SPACE, outcomes=OUTCOMES, initial=9)
    import_file(again, tmp_path / "a.csv")
    assert import_file(again, tmp_path / "a.csv").events == ()  # all of it is known
    for one, two in zip(study.runs, again.runs, strict=True):
        assert one.series is not None
        assert two.series is not None
        assert one.series.same(two.series)
        assert (one.value, dict(one.others), one.cost) == (two.value, dict(two.others), two.cost)


def test_a_table_of_rows(tmp_path: Path) -> None:
    (tmp_path / "hour.csv").write_text("humidity,gloss,haze,noise_variance:haze\n30,1.0,0.1,0.04\n55,,0.3,\n70,1.5,,\n")
    optimizer = new()
    reported = read_outcomes(optimizer.state, tmp_path / "hour.csv")
    optimizer.tell({"speed": 0.5}, **reported)
    series = optimizer.runs[0].series
    assert series is not None
    np.testing.assert_array_equal(series.values, [1.0, np.nan, 1.5])
    np.testing.assert_array_equal(series.others["haze"][1], [0.04, np.nan, np.nan])


@pytest.mark.parametrize(
    ("reported", "words"),
    [
        ({"values": [1.0, 2.0, 3.0]}, "there are several outcomes"),
        ({"values": {"gloss": 1.0}}, "lists by name"),
        ({"values": {"gloss": [1.0, 2.0, 3.0], "haze": [1.0]}}, "3 of gloss, 1 of haze"),
        ({"values": {"glos": [1.0, 2.0, 3.0]}}, "'glos' is not an outcome"),
        ({"values": {"gloss": [1.0, None, 2.0]}}, "row 1 has no value"),
        ({"values": {"gloss": [1.0, "2", 3.0]}}, "not text"),
        ({"values": {"gloss": [1.0, 2.0]}}, "3 contexts for 2 values"),
        ({"values": {}}, "no value"),
        ({"values": VALUES, "noise_variance": 0.1}, "there are several outcomes"),
        ({"values": VALUES, "noise_variance": {"price": 0.1}}, "'price' has a noise and no value"),
        ({"values": VALUES, "noise_variance": {"gloss": [0.1, 0.1, 0.1]}}, "a noise and no value"),
        ({"values": VALUES, "noise_variance": {"gloss": [0.1, -1, None]}}, "noise variance"),
    ],
)
def test_rows_that_cannot_be(reported: dict[str, Any], words: str) -> None:
    optimizer = new()
    with pytest.raises((InvalidValueError, UnknownNameError, EdrboError), match=words):
        optimizer.tell({"speed": 0.5}, contexts=CONTEXTS, **reported)
    assert len(optimizer.runs) == 0


def test_corrections_that_cannot_be() -> None:
    optimizer = new()
    optimizer.tell({"speed": 0.5}, contexts=CONTEXTS, values=VALUES)
    haze = {"haze": 1.0}
    wrong: list[dict[str, Any]] = [
        {"row": 3, "value": haze},
        {"value": haze},
        {"row": 0, "noise_variance": {"price": 1.0}},
    ]
    for correction in wrong:
        with pytest.raises(EdrboError):
            optimizer.correct(0, **correction)
