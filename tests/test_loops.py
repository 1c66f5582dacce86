"""Loops over a function that fails as simulators do: what was evaluated is never lost."""

from __future__ import annotations

import copy
import inspect
import math
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import edrbo
from edrbo.errors import EdrboError, EdrboWarning, ImplausibleWarning, InvalidValueError, StudyError

pytestmark = pytest.mark.torch_numeric

SPACE = edrbo.Space({"x": (0, 1)}, {"c": (0, 1)})
PLAIN = edrbo.Space({"x": (0, 1)})
Answer = tuple[Any, Any]


@pytest.mark.parametrize(
    ("answer", "words", "met"),
    [
        (({"c": 0.5}, math.nan), "the value is nan", 0.5),
        (({"c": 0.5}, np.float32("inf")), "the value is", 0.5),
        (({"c": 0.5}, np.array(math.nan)), "the value is", 0.5),
        (({"c": math.nan}, 1.0), "the context is", None),
        ((-math.inf, 1.0), "the context is", None),
        (([math.nan], 1.0), "the context is", None),
    ],
)
@pytest.mark.parametrize("loop", [edrbo.maximize, edrbo.minimize])
def test_a_number_that_is_none_is_a_failed_evaluation(loop: Any, answer: Answer, words: str, met: float | None) -> None:
    calls = iter(range(4))

    def f(design: dict[str, float]) -> Answer:
        return answer if next(calls) == 1 else ({"c": 0.5}, design["x"])

    with pytest.warns(EdrboWarning, match=f"evaluation 1 failed: {words}"):
        optimizer = loop(f, SPACE, evaluations=4, progress=False).optimizer
    assert [run.status for run in optimizer.runs] == ["reported", "failed", "reported", "reported"]
    assert optimizer.runs[1].why.startswith(words)
    assert optimizer.runs[1].context == (None if met is None else pytest.approx([met]))


def test_of_several_outcomes_one_that_is_none_fails_the_evaluation() -> None:
    calls = iter(range(4))

    def f(design: dict[str, float]) -> dict[str, float]:
        return {"yield": design["x"], "purity": math.nan if next(calls) == 1 else 0.9}

    outcomes = {"yield": edrbo.Maximize(), "purity": edrbo.Limit(lower=0.5)}
    with pytest.warns(EdrboWarning, match="1"):
        optimizer = edrbo.maximize(f, PLAIN, evaluations=4, outcomes=outcomes, outcome="yield").optimizer
    assert [run.status for run in optimizer.runs] == ["reported", "failed", "reported", "reported"]


def test_nan_again_and_again_ends_the_loop_with_what_is_known() -> None:
    with (
        pytest.warns(EdrboWarning, match="nan"),
        pytest.raises(EdrboError, match=r"3.*nan") as caught,
    ):
        edrbo.maximize(lambda design: math.nan, PLAIN, evaluations=20, progress=False)
    assert [run.status for run in caught.value.optimizer.runs] == ["failed"] * 3  # type: ignore[attr-defined]


@pytest.mark.parametrize("ending", [SystemExit("out of license"), KeyboardInterrupt()])
def test_whatever_ends_the_loop_carries_the_data(ending: BaseException) -> None:
    calls = iter(range(9))

    def f(design: dict[str, float]) -> float:
        if next(calls) == 3 or isinstance(ending, KeyboardInterrupt):
            raise ending
        return design["x"]

    with pytest.raises(type(ending)) as caught:
        edrbo.maximize(f, PLAIN, evaluations=9, progress=False)
    optimizer = caught.value.optimizer  # type: ignore[attr-defined]
    assert len(optimizer) == (3 if isinstance(ending, SystemExit) else 0)
    assert "`optimizer` of this exception" in caught.value.__notes__[0]


def test_an_answer_that_is_not_understood_loses_nothing() -> None:
    calls = iter(range(9))

    def f(design: dict[str, float]) -> Any:
        return "broken" if next(calls) == 3 else design["x"]

    with pytest.raises(InvalidValueError, match="broken") as caught:
        edrbo.maximize(f, PLAIN, evaluations=9, progress=False)
    assert len(caught.value.optimizer) == 3  # type: ignore[attr-defined]


def test_tell_refuses_nan_itself() -> None:
    optimizer = edrbo.Optimizer(PLAIN)
    with pytest.raises(InvalidValueError, match="nan"):
        optimizer.tell(optimizer.ask(), value=math.nan)


def test_a_loop_asks_nothing_and_sums_up_in_the_end() -> None:
    calls = iter(range(12))

    def f(design: dict[str, float]) -> float:
        return design["x"] + (1e6 if next(calls) == 10 else 0.0)

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        result = edrbo.maximize(f, PLAIN, evaluations=12, initial=12, progress=False)
    assert [one.category for one in heard] == [ImplausibleWarning]
    assert "1 of 12 evaluations look odd beside the others: 10;" in str(heard[0].message)
    assert heard[0].filename == __file__
    assert [one.run for one in result.optimizer.implausible()] == [10]


@pytest.mark.parametrize("one", [np.array(0.4), np.array([0.4]), np.float32(0.4)])
def test_arrays_of_one_number_are_numbers(one: Any) -> None:
    space = edrbo.Space({"x": (0, 1), "y": (0, 1)}, {"c": (0, 1), "d": (0, 1)})
    optimizer = edrbo.Optimizer(space)
    optimizer.tell({"x": one, "y": 0.1}, {"c": one, "d": 0.2}, one, noise_variance=one, cost=one)
    optimizer.tell({"x": 0.4, "y": one}, {"c": one}, one)
    first, second = optimizer.runs
    assert [first.value, first.noise_variance, first.cost, second.value] == pytest.approx([0.4] * 4)
    assert first.x == pytest.approx([0.4, 0.1])
    assert first.context == pytest.approx([0.4, 0.2])
    assert second.context is not None
    assert second.context[0] == pytest.approx(0.4)


def test_arrays_of_several_numbers_or_of_none_are_refused_in_words() -> None:
    optimizer = edrbo.Optimizer(PLAIN)
    for wrong in (np.array([1.0, 2.0]), np.array([]), np.array([True]), np.array("1.0")):
        with pytest.raises(InvalidValueError):
            optimizer.tell({"x": 0.5}, value=wrong)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_an_optimizer_is_copied_and_pickled(copied: Callable[[edrbo.Optimizer], edrbo.Optimizer]) -> None:
    optimizer = edrbo.Optimizer(SPACE, seed=3)
    for k in range(6):
        optimizer.tell(optimizer.ask(), {"c": k / 6}, float(np.sin(k)))
    asked = optimizer.ask()
    other = copied(optimizer)
    assert other.pending == [asked]
    expected = optimizer.ask()
    assert expected not in other.pending  # each goes on by itself
    assert other.ask() == expected
    assert other.recommend().design == optimizer.recommend().design


@pytest.mark.parametrize(
    "call",
    [
        lambda: edrbo.Optimizer(PLAIN, sead=1),  # type: ignore[call-arg]
        lambda: edrbo.maximize(lambda design: 1.0, PLAIN, 5, sead=1),  # type: ignore[call-arg]
        lambda: edrbo.minimize(lambda design: 1.0, PLAIN, 5, sead=1),  # type: ignore[call-arg]
        lambda: edrbo.Study.open("none.edrbo", PLAIN, sead=1),  # type: ignore[call-arg]
    ],
)
def test_a_misspelled_argument_is_named_with_what_was_meant(call: Callable[[], object]) -> None:
    with pytest.raises(TypeError, match="'sead'"):
        call()


def test_signatures_stay_explicit() -> None:
    assert "seed" in inspect.signature(edrbo.Optimizer).parameters
    assert list(inspect.signature(edrbo.maximize).parameters)[:3] == ["f", "space", "evaluations"]
    with pytest.raises(TypeError, match="space, method"):
        edrbo.Optimizer(PLAIN, zzz=1)  # type: ignore[call-arg]


def test_an_optimizer_says_what_it_is() -> None:
    assert repr(edrbo.Optimizer(SPACE)) == "Optimizer(x given c, 0 observations)"


def test_warnings_of_a_loop_point_at_the_call() -> None:
    calls = iter(range(9))

    def breaks(design: dict[str, float]) -> float:
        if next(calls) == 0:
            return 1.0
        raise RuntimeError("out of paint")

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        edrbo.maximize(breaks, PLAIN, evaluations=9, progress=False)
    assert {one.filename for one in heard} == {__file__}
    assert any("stopped after 1 outcomes" in str(one.message) for one in heard)


def test_a_study_is_pickled_as_its_place_and_never_copied(tmp_path: Path) -> None:
    study = edrbo.Study.open(tmp_path / "one.db", PLAIN, name="coating", by="Ada")
    study.tell(study.ask(), value=1.0)
    again = pickle.loads(pickle.dumps(study))
    again.tell(again.ask(), value=2.0)
    assert [event.by for event in study.state.history] == ["Ada"] * 4
    assert study.runs[-1].value == 2.0
    for copied in (copy.copy, copy.deepcopy):
        with pytest.raises(StudyError, match=r"copy\.deepcopy\(study\.optimizer\)"):
            copied(study)
    tried = copy.deepcopy(study.optimizer)
    tried.tell(tried.ask(), value=3.0)
    assert len(study) == 2


def test_everything_public_is_listed() -> None:
    assert {*edrbo.__all__, "plot", "__version__"} <= set(dir(edrbo))
    assert all(hasattr(edrbo, name) for name in dir(edrbo))
