"""``Study.optimize`` and ``Study.claim``: workers share a number of evaluations, die, and take up what others left."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edrbo.errors import EdrboError, EdrboWarning, ImplausibleWarning, InvalidValueError
from edrbo.lab import Study
from edrbo.lab import claims as heartbeat
from edrbo.lab.claims import Claim, claims
from edrbo.space import Space

ELSEWHERE = "process 1 on another machine 0123456789abcdef0123456789abcdef"


def gloss(design: dict[str, Any]) -> tuple[dict[str, float], float]:
    return {"humidity": 0.5}, -((design["speed"] - 4) ** 2)


@pytest.fixture(params=["one file", "PostgreSQL"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where studies are kept; each test has one of its own name."""
    if request.param == "one file":
        return str(tmp_path / "study.db")
    url: str = request.getfixturevalue("postgresql")
    return url


@pytest.fixture
def study(tmp_path: Path, line: Space) -> Study:
    return Study.open(tmp_path / "study.db", line, method="ucb", initial=1000)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """So many seconds pass, for whoever looks at claims."""
    now = heartbeat.time.time

    def pass_by(seconds: float) -> None:
        monkeypatch.setattr(heartbeat.time, "time", lambda: now() + seconds)

    return pass_by


def test_threads_make_as_many_as_were_asked_for(study: Study) -> None:
    at_once = threading.Barrier(4)  # nobody goes on before four evaluate at the same time

    def measured(design: dict[str, Any]) -> tuple[dict[str, float], float]:
        at_once.wait(60)
        return gloss(design)

    seen: list[int] = []
    assert study.optimize(measured, evaluations=12, workers=4, progress=lambda one: seen.append(len(one))) == 12
    assert len(study) == len(study.state.runs) == 12
    assert not study.pending
    assert len(seen) == 12
    assert max(seen) == 12
    assert study.observations.y == pytest.approx(-((1 + 8 * study.observations.x[:, 0] - 4) ** 2))
    assert not claims(study._store, study._id)


def test_the_number_counts_what_was_evaluated_before(study: Study, caplog: pytest.LogCaptureFixture) -> None:
    study.tell({"speed": 2.0}, [0.5], 1.0)  # a design of one's own is no suggestion
    study.tell(study.ask(), [0.5], 1.0)
    study.tell(study.ask(), failed=True)
    waiting = study.ask()  # somebody holds it by hand
    assert study.optimize(gloss, evaluations=5) == 3
    assert [one.id for one in study.pending] == [waiting.id]
    assert study.optimize(gloss, evaluations=5) == 0
    assert "nothing is left to do: 5 suggestions of study have been evaluated" in caplog.text


WORKER = """
import json, os, sys
from edrbo.lab import Study

def gloss(design):
    if len(sys.argv) > 4:  # is to be killed in the middle
        print(json.dumps(design), flush=True)
        sys.stdin.read()
    return {"humidity": 0.5}, -((design["speed"] - 4) ** 2)

study = Study.open(sys.argv[1], name=sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
made = study.optimize(gloss, evaluations=int(sys.argv[2]))
print(made, flush=True)
"""


def start(place: str, evaluations: int, name: str, *more: str) -> subprocess.Popen[str]:
    """A process that has opened the study and begins when it is bidden."""
    command = [sys.executable, "-W", "error", "-c", WORKER, place, str(evaluations), name, *more]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def begin(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def test_four_processes_make_no_more_than_was_asked_for(place: str, line: Space) -> None:
    """One by one they would all ask when the last but one is reported."""
    study = Study.open(place, line, name="shared", method="ucb", initial=1000)
    processes = [start(place, 24, study.name) for _ in range(3)]  # and this one
    for process in processes:
        begin(process)
    assert study.optimize(gloss, evaluations=24) + sum(int(one.communicate(timeout=300)[0]) for one in processes) == 24
    assert [one.returncode for one in processes] == [0] * 3
    assert len(study) == len(study.state.runs) == 24


def test_what_a_killed_process_evaluated_is_taken_up(place: str, line: Space) -> None:
    study = Study.open(place, line, name="left", method="ucb", initial=1000)
    victim = start(place, 3, study.name, "wait")
    begin(victim)
    assert victim.stdout is not None
    design = json.loads(victim.stdout.readline())
    (left,) = study.pending
    victim.send_signal(signal.SIGKILL)
    victim.communicate(timeout=60)
    evaluated: list[float] = []

    def noted(design: dict[str, Any]) -> tuple[dict[str, float], float]:
        evaluated.append(design["speed"])
        return gloss(design)

    assert study.optimize(noted, evaluations=3) == 3
    assert evaluated[0] == design["speed"] == left.design["speed"]
    assert len(study.state.runs) == 3
    assert not study.pending


def test_a_worker_elsewhere_is_waited_for_as_long_as_it_lives(study: Study, later: Callable[[float], None]) -> None:
    """It holds the last of two; once it is silent for too long, its suggestion is evaluated here."""
    suggestion, _ = study._next_for(ELSEWHERE, 2, 60.0)
    assert suggestion is not None
    assert study._next_for("somebody else", 1, 60.0) == (None, True)  # one of one: nothing to do but to wait
    mine, _ = study._next_for("somebody else", 2, 60.0)
    assert mine is not None
    assert mine.id != suggestion.id
    assert study._next_for("somebody else", 2, 60.0) == (None, True)
    later(61.0)
    with heartbeat.at_work(study._store, study._id, "somebody else"):
        heartbeat._try(study._store, heartbeat.SIGN, heartbeat.time.time(), study._id, "somebody else")
        again, _ = study._next_for("somebody else", 2, 60.0)
    assert again is not None
    assert again.id == suggestion.id


def test_signs_of_life_keep_a_claim(study: Study, later: Callable[[float], None]) -> None:
    suggestion, _ = study._next_for(ELSEWHERE, 2, 60.0)
    assert suggestion is not None
    later(59.0)
    heartbeat._try(study._store, heartbeat.SIGN, heartbeat.time.time(), study._id, ELSEWHERE)
    later(110.0)
    assert study.claim(stale_after=60.0) is None
    later(120.0)
    found = study.claim(stale_after=60.0)
    assert found is not None
    assert found.id == suggestion.id


def test_claim_takes_up_what_somebody_asked_for_and_left(study: Study, later: Callable[[float], None]) -> None:
    first, second = study.ask(2)
    assert study.claim(stale_after=600.0) is None
    later(601.0)
    assert study.claim(stale_after=600.0) == first
    assert study.claim(stale_after=600.0) == second
    assert study.claim(stale_after=600.0) is None  # both are held now
    study.tell(first, [0.5], 1.0)
    later(1300.0)
    assert study.claim(stale_after=600.0) == second
    assert not [event for event in study.state.history if event.kind not in ("asked", "reported")]


def test_an_ended_process_of_this_machine_is_known_to_be_gone() -> None:
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    holder = heartbeat.new_holder()
    assert not Claim(holder, heartbeat.time.time()).is_stale(60.0)
    assert Claim(holder.replace(str(os.getpid()), gone.stdout.strip(), 1), heartbeat.time.time()).is_stale(60.0)
    assert not Claim(ELSEWHERE, heartbeat.time.time()).is_stale(60.0)


def test_failures_are_kept_and_end_the_loop(study: Study) -> None:
    def broken(design: dict[str, Any]) -> tuple[dict[str, float], float]:
        if len(study.state.failed) == 1:
            raise RuntimeError("the pump stopped")
        return {"humidity": 0.5}, math.nan

    with pytest.warns(EdrboWarning, match="failed: "), pytest.raises(EdrboError, match="3"):
        study.optimize(broken, evaluations=9)
    assert [run.why for run in study.runs] == [
        "the value is nan",
        "RuntimeError('the pump stopped')",
        "the value is nan",
    ]
    assert study.runs[0].context is not None
    study.optimize(gloss, evaluations=4)
    with (
        pytest.warns(EdrboWarning, match="evaluation . failed"),
        pytest.warns(EdrboWarning, match="2"),
    ):
        study.optimize(lambda design: ({"humidity": 0.5}, math.nan), evaluations=9, most_errors=2)
    assert len(study.state.failed) == 5


def test_an_answer_that_is_not_understood_leaves_the_suggestion_to_the_next_call(study: Study) -> None:
    with pytest.raises(InvalidValueError, match=r"\(context, value\)"):
        study.optimize(lambda design: 3.0, evaluations=2)
    (left,) = study.pending
    assert study.optimize(gloss, evaluations=2) == 2
    assert left.id in study.state.reported
    assert len(study.state.runs) == 2


def test_an_outcome_that_somebody_else_reported_meanwhile_stays(study: Study) -> None:
    other = Study.open(study.where)

    def slow(design: dict[str, Any]) -> tuple[dict[str, float], float]:
        if not len(other):
            other.tell(other.pending[0], [0.25], 7.0)
        return gloss(design)

    assert study.optimize(slow, evaluations=2) == 1
    assert study.runs[0].value == 7.0
    assert len(study) == 2


def test_nobody_is_asked_about_numbers_of_a_program(study: Study) -> None:
    values = iter([*(1.0 + 0.01 * i for i in range(19)), 1e6])
    assert study.optimize(lambda design: ({"humidity": 0.5}, next(values)), evaluations=19) == 19
    with pytest.warns(ImplausibleWarning):  # somebody who types it is
        study.tell(study.ask(), [0.5], 1e6)
    study.undo()
    assert study.optimize(lambda design: ({"humidity": 0.5}, next(values)), evaluations=20) == 1  # warnings are errors
    assert [one.run for one in study.implausible()] == [20]


@pytest.mark.parametrize(
    "wrong",
    [
        {"evaluations": 0},
        {"evaluations": True},
        {"evaluations": 2, "workers": 0},
        {"evaluations": 2, "stale_after": 0.0},
        {"evaluations": 2, "stale_after": math.nan},
        {"evaluations": 2, "most_errors": 0},
    ],
)
def test_wrong_numbers_are_refused_before_anything_runs(study: Study, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidValueError):
        study.optimize(gloss, **wrong)
    assert not study.state.runs
