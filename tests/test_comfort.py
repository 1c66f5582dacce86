"""Mistakes that are easily made are reported from each other; frames, pictures and progress bars."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import edrbo
from edrbo.errors import (
    EdrboError,
    ImplausibleWarning,
    InvalidContextError,
    InvalidDesignError,
    InvalidSpaceError,
    InvalidValueError,
    MissingExtraError,
    NothingReportedError,
    UnknownNameError,
)
from edrbo.optimizer import loop as progress_module
from edrbo.optimizer.optimizer import Optimizer

SPACE = edrbo.Space(
    {"a": (0, 1), "rate": edrbo.Real(0.1, 10, log=True), "n": edrbo.Integer(1, 4), "kind": ["u", "v"]},
    {"load": (0, 1)},
    constraints=["a * n <= 3"],
)
DESIGN = {"a": 0.5, "rate": 1.0, "n": 2, "kind": "u"}


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Optimizer({"a": (0, 1)}), InvalidSpaceError, "edrbo.Space"),
        (lambda: Optimizer(SPACE, seed=None), InvalidValueError, "seed is None.*whole number"),
        (lambda: Optimizer(SPACE, "edrb"), UnknownNameError, "did you mean 'edrbo'"),
        (lambda: Optimizer(SPACE, goal="cvarr:0.1"), EdrboError, "cvar"),
        (lambda: Optimizer(SPACE, "EDRBO"), UnknownNameError, "did you mean 'edrbo'"),
        (lambda: Optimizer(SPACE, random_state=1), TypeError, "did you mean 'seed'"),  # type: ignore[call-arg]
        (lambda: edrbo.maximize(abs, SPACE, n_trials=9), TypeError, "did you mean 'evaluations'"),  # type: ignore[call-arg]
        (lambda: edrbo.maximize(lambda a, n: 1.0, SPACE, 9), InvalidValueError, "missing.*the design as a dict"),
        (lambda: edrbo.maximize(lambda: 1.0, SPACE, 9), InvalidValueError, "the design as a dict"),
        (lambda: edrbo.maximize(None, SPACE, 9), InvalidValueError, "the design as a dict"),
        (lambda: edrbo.Study("coating.db", SPACE), InvalidValueError, "Study.open"),
    ],
)
def test_beginning_wrongly(make: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make()


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((DESIGN, {"load": 0.5}, "7"), InvalidValueError, "the value is '7'.*not text"),
        ((DESIGN, 7.0, {"load": 0.5}), InvalidValueError, "the context comes first"),
        ((DESIGN, {"load": 0.5}, [7.0, 8.0]), InvalidValueError, "it is one number"),
        ((DESIGN, {"load": 0.5}), InvalidValueError, "the value is None.*tell\\(suggestion, context, value\\)"),
        (({**DESIGN, "a": [0.5, 0.6]}, {"load": 0.5}, 7.0), InvalidDesignError, "differ in shape"),
        (({name: [part, part] for name, part in DESIGN.items()}, {"load": 0.5}, 7.0), InvalidDesignError, "one by one"),
        ((DESIGN, {"load": [0.5, 0.6]}, 7.0), InvalidContextError, "2 contexts for one evaluation"),
    ],
)
def test_telling_wrongly(arguments: Any, error: type[EdrboError], words: str) -> None:
    optimizer = Optimizer(SPACE)
    with pytest.raises(error, match=words):
        optimizer.tell(*arguments)
    assert len(optimizer) == 0


def test_a_value_in_the_place_of_a_context() -> None:
    with pytest.raises(InvalidContextError, match="value=…"):
        Optimizer(edrbo.Space({"x": (0, 1)})).tell({"x": 0.5}, 1.7)


# -------------------------------------------------------------------- frames and pictures


@pytest.fixture(scope="module")
def optimizer() -> Optimizer:
    made = Optimizer(SPACE, initial=3, seed=2, outcome="gloss", unit="GU")
    for load in np.random.default_rng(0).random(6):
        suggestion = made.ask()
        made.tell(suggestion, {"load": load}, suggestion["a"] - load + 0.1 * suggestion["n"])
    made.tell(DESIGN, failed=True, why="smeared")
    made.ask()
    return made


def test_runs_as_a_frame(optimizer: Optimizer) -> None:
    frame = optimizer.to_frame()
    assert list(frame.columns) == ["status", *DESIGN, "load", "value", "noise_variance", "dropped", "why"]
    assert frame.index.name == "run"
    assert frame["status"].tolist() == ["reported"] * 6 + ["failed", "pending"]
    np.testing.assert_array_equal(frame["value"][:6], optimizer.observations.y)
    np.testing.assert_array_equal(frame["load"][:6], optimizer.observations.c[:, 0])
    assert frame.loc[6, "why"] == "smeared"
    # and back
    again = SPACE.encode_designs(frame[list(DESIGN)][:6])
    np.testing.assert_allclose(again, optimizer.observations.x, atol=1e-12)


@pytest.mark.parametrize("kind", ["optimizer", "study"])
def test_a_frame_is_reported_as_it_was_shown(optimizer: Optimizer, kind: str, tmp_path: Path) -> None:
    choices: dict[str, Any] = {"initial": 3, "seed": 2, "outcome": "gloss", "unit": "GU"}
    other = (
        Optimizer(SPACE, **choices) if kind == "optimizer" else edrbo.Study.open(tmp_path / "a.db", SPACE, **choices)
    )
    frame = optimizer.to_frame()
    other.tell(frame[frame["status"] != "pending"], by="Ada", note="of last year", key="last-year")
    np.testing.assert_allclose(other.observations.x, optimizer.observations.x, atol=1e-12)
    np.testing.assert_array_equal(other.observations.c, optimizer.observations.c)
    np.testing.assert_array_equal(other.observations.y, optimizer.observations.y)
    assert [(run.status, run.why, run.suggested) for run in other.runs[-2:]] == [
        ("reported", None, False),
        ("failed", "smeared", False),
    ]
    assert {(event.by, event.note) for event in other.state.history} == {("Ada", "of last year")}
    assert len({event.ref for event in other.state.history}) == len({event.key for event in other.state.history}) == 7
    assert other.ask().design  # it can go on


def test_a_frame_of_ones_own() -> None:
    outcomes = {"gloss": edrbo.Maximize(), "heat": edrbo.Limit(upper=1.0)}
    other = Optimizer(SPACE, outcomes=outcomes)
    rows = {name: [part, part] for name, part in DESIGN.items()}
    columns = {**rows, "load": [0.25, None], "gloss": [np.nan, 2.0], "heat": [0.5, np.inf], "cost": [3, 4]}
    other.tell(pd.DataFrame(columns))
    one, two = other.runs
    assert (one.value, dict(one.others), one.met, one.cost) == (None, {"heat": 0.5}, {"load": 0.25}, 3.0)
    assert (two.value, dict(two.others), two.met, two.cost) == (2.0, {}, {}, 4.0)
    other.tell(pd.DataFrame({**columns, "gloss": [np.nan, 1.0], "heat": [None, 0.1]}).iloc[:1])
    assert other.runs[2].status == "failed"


def test_one_row_of_a_frame() -> None:
    frame = pd.DataFrame({name: [part] for name, part in DESIGN.items()} | {"load": [0.25], "value": [3.0]})
    other = Optimizer(SPACE)
    row = frame.iloc[0]
    other.tell(row)
    other.tell(row[list(DESIGN)], row[["load"]], row["value"])
    other.tell(frame[list(DESIGN)], frame[["load"]], frame["value"])
    assert [(run.design, run.met, run.value) for run in other.runs] == [(DESIGN, {"load": 0.25}, 3.0)] * 3
    two = Optimizer(edrbo.Space({"x": (0, 1)}, {"b": (0, 1), "a": (0, 1)}))
    two.tell({"x": 0.5}, pd.Series({"a": 0.25, "b": 0.75}), 1.0)  # by name, not by place
    assert two.runs[0].met == {"a": 0.25, "b": 0.75}


def test_frames_that_cannot_be_reported(optimizer: Optimizer) -> None:
    good = optimizer.to_frame().iloc[:6]
    twice = pd.concat([good, good])
    for frame, words in (
        (optimizer.to_frame(), "pending.*choose rows"),
        (good.assign(dropped=True), "left out"),
        (good.drop(columns="value"), "no outcomes.*'gloss'"),
        (good.drop(columns="a"), "'a'"),
        (good.assign(wether="dry"), "'wether' is of nothing that is known"),
        (good.assign(laod=1.0), "did you mean 'load'"),
        (good.assign(value="high"), "'value' holds what is no number"),
        (good.assign(n=9), "n"),
        (good.assign(load=[0.5] * 5 + [-0.5]).assign(a=[0.5] * 5 + [7.0]), "a is 7"),
        (twice, "names a run twice.*values=…"),
        (good[list(DESIGN)], "no outcomes"),
    ):
        other = Optimizer(SPACE, outcome="gloss")
        with pytest.raises(EdrboError, match=words):
            other.tell(frame)
        assert not other.runs
    with pytest.raises(InvalidValueError):
        Optimizer(SPACE).tell(good, {"load": 0.5})


def test_what_looks_odd_in_a_frame_is_said_once() -> None:
    other = Optimizer(edrbo.Space({"x": (0, 1)}))
    frame = pd.DataFrame({"x": np.linspace(0, 1, 20), "value": np.linspace(0, 1, 20)})
    frame.loc[9, "value"] = 1e6
    with pytest.warns(ImplausibleWarning, match="9") as heard:
        other.tell(frame)
    assert len(heard) == 1
    assert heard[0].filename == __file__


def test_names_that_are_taken_and_no_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    optimizer = Optimizer(edrbo.Space({"value": (0, 1)}))
    optimizer.tell({"value": 0.5}, value=3.0)
    frame = optimizer.to_frame()
    assert (frame["design:value"][0], frame["value"][0]) == (0.5, 3.0)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match="pandas"):
        optimizer.to_frame()


@pytest.mark.parametrize("name", sorted({*edrbo.plot.__all__} - {"belief", "timeline"}))
def test_pictures(optimizer: Optimizer, name: str) -> None:
    figure = getattr(edrbo.plot, name)(optimizer)
    assert figure._repr_png_().startswith(b"\x89PNG")  # as a notebook shows it
    labels = " ".join(axes.get_xlabel() + axes.get_ylabel() for axes in figure.axes)
    words = {"contexts": "load", "slices": "rate", "surface": "rate", "sensitivity": "share"}.get(name, "gloss")
    assert words in labels


def test_what_pictures_show(optimizer: Optimizer) -> None:
    (axes,) = edrbo.plot.progress(optimizer).axes
    reported = next(line for line in axes.lines if line.get_label() == "result")
    np.testing.assert_array_equal(reported.get_ydata(), optimizer.observations.y)
    figure = edrbo.plot.slices(optimizer, ["kind"])
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["u", "v"]
    (mesh,) = edrbo.plot.surface(optimizer, "a", "n").axes[0].collections
    shown = np.ma.getmaskarray(mesh.get_array())  # type: ignore[no-untyped-call]
    assert shown[-1, -1]  # a = 1 with n = 4 is not allowed
    assert not shown[0].any()


def test_pictures_that_cannot_be(optimizer: Optimizer) -> None:
    with pytest.raises(NothingReportedError):
        edrbo.plot.progress(Optimizer(SPACE))
    with pytest.raises(EdrboError):
        edrbo.plot.progress(3)
    with pytest.raises(InvalidSpaceError, match="'rate'"):
        edrbo.plot.slices(optimizer, ["rates"])
    with pytest.raises(InvalidSpaceError, match="'kind'"):
        edrbo.plot.surface(optimizer, "a", "kinds")
    with pytest.raises(InvalidSpaceError):
        edrbo.plot.surface(optimizer, "a", "a")
    with pytest.raises(EdrboError):
        edrbo.plot.timeline(optimizer)
    with pytest.raises(InvalidSpaceError):
        edrbo.plot.belief(optimizer)
    with pytest.raises(InvalidSpaceError):
        edrbo.plot.contexts(Optimizer(edrbo.Space({"x": (0, 1)})))


# -------------------------------------------------------------------- loops

PLAIN = edrbo.Space({"x": (0, 1)})


def test_a_broken_function_ends_the_loop() -> None:
    calls: list[float] = []

    def broken(design: dict[str, float]) -> float:
        calls.append(design["x"])
        raise RuntimeError("no license")

    with pytest.warns(UserWarning, match="no license"), pytest.raises(EdrboError, match="3"):
        edrbo.maximize(broken, PLAIN, evaluations=20)
    assert len(calls) == 3


def test_what_was_evaluated_before_it_broke_is_used() -> None:
    count = iter(range(100))

    def breaks(design: dict[str, float]) -> float:
        number = next(count)
        if number in (1, 2) or number >= 4:  # two errors in a row are bad luck
            raise RuntimeError("out of paint")
        return design["x"]

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        result = edrbo.minimize(breaks, PLAIN, evaluations=20)
    assert len(heard) == 6
    assert "3 times in a row" in str(heard[-1].message)
    assert "stopped after 2 outcomes" in str(heard[-1].message)
    assert (len(result.optimizer), len(result.optimizer.runs)) == (2, 7)
    assert result.optimizer.runs[1].why == "RuntimeError('out of paint')"


def test_errors_may_be_expected() -> None:
    calls: list[float] = []

    def picky(design: dict[str, float]) -> float:
        calls.append(design["x"])
        if len(calls) < 5:
            raise RuntimeError("nothing sticks")
        return 1.0

    with pytest.warns(UserWarning, match="nothing sticks"):
        assert len(edrbo.maximize(picky, PLAIN, evaluations=6, most_errors=None).optimizer) == 2
    with pytest.raises(InvalidValueError, match="most_errors"):
        edrbo.maximize(picky, PLAIN, evaluations=5, most_errors=0)


def test_a_bar_for_those_who_see_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def value(design: dict[str, float]) -> float:
        return design["x"]

    edrbo.maximize(value, PLAIN, evaluations=3)
    assert capsys.readouterr().err == ""
    edrbo.maximize(value, PLAIN, evaluations=3, progress=True)
    assert "3/3" in capsys.readouterr().err
    monkeypatch.setattr(progress_module, "in_notebook", lambda: True)
    edrbo.maximize(value, PLAIN, evaluations=3)
    shown = capsys.readouterr().err
    assert "3/3" in shown
    assert "best 0." in shown
    edrbo.maximize(value, PLAIN, evaluations=3, progress=False)
    assert capsys.readouterr().err == ""
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    edrbo.maximize(value, PLAIN, evaluations=3)
    assert capsys.readouterr().err == ""
    with pytest.raises(InvalidValueError, match="'yes'"):
        edrbo.maximize(value, PLAIN, evaluations=3, progress="yes")  # type: ignore[arg-type]
