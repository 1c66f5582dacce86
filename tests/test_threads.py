"""One thread in the engine, whatever the caller has, who keeps his own."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

from edrbo import EDRBOSampler, Optimizer, Space, Study
from edrbo.errors import InvalidValueError
from edrbo.optimizer import outcome_model, recommendation
from edrbo.optimizer.calibration import leave_one_out
from edrbo.threads import VARIABLE, engine_threads

CALLERS = 3  # threads that the caller has; no machine has to have as many cores


@pytest.fixture(autouse=True)
def caller(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A caller with his own number of threads, on a machine without a setting."""
    monkeypatch.delenv(VARIABLE, raising=False)
    before = torch.get_num_threads()
    torch.set_num_threads(CALLERS)
    yield
    left = torch.get_num_threads()
    torch.set_num_threads(before)
    assert left == CALLERS


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of threads whenever a belief is made, which every answer begins with."""
    found: list[int] = []

    def condition(*words: Any, **named: Any) -> Any:
        found.append(torch.get_num_threads())
        return made(*words, **named)

    made = outcome_model.condition
    monkeypatch.setattr(outcome_model, "condition", condition)
    return found


def reported(**choices: Any) -> Optimizer:
    optimizer = Optimizer(Space({"x": (0, 1)}, {"c": (0, 1)}), "erbo", seed=0, initial=2, **choices)
    for x, c in ((0.2, 0.4), (0.6, 0.7), (0.9, 0.1), (0.4, 0.8)):
        optimizer.tell({"x": x}, {"c": c}, -((x - c) ** 2))
    return optimizer


@pytest.mark.parametrize(
    "call",
    [
        Optimizer.ask,
        Optimizer.recommend,
        lambda optimizer: optimizer.recommend().to_dict(),
        lambda optimizer: optimizer.predict({"x": 0.3}),
        lambda optimizer: optimizer.tradeoff("cvar:0.2"),
    ],
)
def test_every_answer_is_made_on_one_thread(call: Callable[[Optimizer], Any], seen: list[int]) -> None:
    call(reported())
    assert seen
    assert set(seen) == {1}
    assert torch.get_num_threads() == CALLERS


def test_what_is_computed_when_it_is_read_is_so_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    found, made = [], recommendation.outlook
    recommended = reported().recommend()
    monkeypatch.setattr(recommendation, "outlook", lambda *words: found.append(torch.get_num_threads()) or made(*words))
    assert np.isfinite(recommended.optimality_gap)
    assert found == [1]
    assert torch.get_num_threads() == CALLERS


def blas_threads() -> set[int]:
    """Those of NumPy's OpenBLAS."""
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_numpys_threads_are_limited_while_a_call_lasts_and_put_back() -> None:
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with engine_threads():
            with engine_threads():
                assert blas_threads() == {1}
            assert blas_threads() == {1}
        assert blas_threads() == before


def test_a_study_thinks_on_one_thread(seen: list[int], tmp_path: Path) -> None:
    study = Study.open(tmp_path / "a.db", Space({"x": (0, 1)}, {"c": (0, 1)}), method="erbo", initial=1)
    study.tell({"x": 0.2}, {"c": 0.3}, 1.0)
    study.tell({"x": 0.7}, {"c": 0.6}, 2.0)
    study.ask()
    study.recommend()
    assert set(seen) == {1}


def test_a_sampler_thinks_on_one_thread(seen: list[int]) -> None:
    import optuna

    sampler = EDRBOSampler(method="erbo", seed=0, initial=2)
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda trial: (trial.suggest_float("x", 0, 1) - 0.3) ** 2, n_trials=4)
    assert set(seen) == {1}


def test_models_of_botorch_think_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    from edrbo.acquisition.risk import Expectation
    from edrbo.acquisition.scores import UCB
    from edrbo.contexts.distributions import ContextPoints
    from edrbo.integrations.botorch import Ensemble, RobustAcquisition
    from edrbo.surrogate import ensemble

    found: list[int] = []
    for name in ("joint", "with_modelled", "paired_with"):
        whole = getattr(ensemble.ExpertEnsemble, name)

        def watched(self: Any, *words: Any, whole: Any = whole, **named: Any) -> Any:
            found.append(torch.get_num_threads())
            return whole(self, *words, **named)

        monkeypatch.setattr(ensemble.ExpertEnsemble, name, watched)
    x = torch.from_numpy(np.random.default_rng(0).random((6, 2)))
    model = Ensemble.fit(x, x.sum(-1, keepdim=True))
    model.posterior(x)
    model.condition_on_observations(x[:1], x[:1, :1])
    points = ContextPoints(x[:3, 1:], torch.full((3,), 1 / 3, dtype=torch.float64), x[:0, 1:])
    RobustAcquisition(model, UCB(beta=1.0), points, Expectation())(x[:2, None, :1])
    assert len(found) >= 3
    assert set(found) == {1}


def test_looks_at_a_model_are_taken_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    model, found = reported().model, []
    assert model is not None
    whole = type(model).leave_one_out

    def watched(self: Any, *rows: Any) -> Any:
        found.append(torch.get_num_threads())
        return whole(self, *rows)

    monkeypatch.setattr(type(model), "leave_one_out", watched)
    leave_one_out(model)
    assert found == [1]


def test_an_error_gives_the_caller_his_threads_back() -> None:
    with pytest.raises(InvalidValueError), engine_threads():
        raise InvalidValueError("no", None)
    assert torch.get_num_threads() == CALLERS


def test_a_thread_that_begins_meanwhile_has_the_callers_number() -> None:
    """``torch.set_num_threads`` alone would leave it with the engine's for good."""
    with engine_threads(), ThreadPoolExecutor(1) as fresh:
        assert torch.get_num_threads() == 1
        assert fresh.submit(torch.get_num_threads).result() == CALLERS


def test_threads_of_python_do_not_disturb_each_other() -> None:
    """Each has its own number, and enters and leaves while others are inside."""
    barrier, rounds, errors = threading.Barrier(4, timeout=60), 20, []

    def work(own: int) -> None:
        torch.get_num_threads()  # the first look of a thread takes the number of the process over what it set
        torch.set_num_threads(own)
        for _ in range(rounds):
            barrier.wait()
            with engine_threads():
                inside = torch.get_num_threads()
                barrier.wait()
            if (inside, torch.get_num_threads()) != (1, own):
                errors.append((own, inside, torch.get_num_threads()))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, (2, 3, 4, 5)))
    assert errors == []


def test_the_environment_or_a_call_around_may_want_more(monkeypatch: pytest.MonkeyPatch, seen: list[int]) -> None:
    monkeypatch.setenv(VARIABLE, "2")
    reported().recommend()
    with engine_threads(4):
        reported().recommend()
    assert set(seen[: len(seen) // 2]) == {2}
    assert set(seen[len(seen) // 2 :]) == {4}


@pytest.mark.parametrize("wrong", ["0", "-1", "two", "1.5", "²"])
def test_a_number_of_threads_that_is_none(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, wrong)
    with pytest.raises(InvalidValueError, match=VARIABLE):
        reported().recommend()


def test_suggestions_do_not_hang_on_the_callers_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bit for bit as with one thread; with more threads in the engine only rounding differs."""
    own = reported().ask()
    torch.set_num_threads(1)
    assert reported().ask() == own
    torch.set_num_threads(CALLERS)
    monkeypatch.setenv(VARIABLE, "2")
    assert reported().ask()["x"] == pytest.approx(own["x"], abs=1e-5)


def test_every_library_that_is_loaded_later_takes_one_thread_too() -> None:
    """SciPy has an OpenBLAS of its own, and is loaded where it is used."""
    code = """
import numpy, torch
from threadpoolctl import threadpool_info
from edrbo.threads import engine_threads
with engine_threads():
    pass  # the first call, before SciPy was used
import scipy.linalg, scipy.optimize
with engine_threads():
    print({part["num_threads"] for part in threadpool_info() if part["user_api"] == "blas"})
"""
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}
    environment.pop("EDRBO_THREADS", None)
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "{1}"
