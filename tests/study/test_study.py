"""A study is an optimizer that lives longer than a process: same numbers, whoever asks and whenever."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from edrbo.errors import (
    InvalidContextError,
    InvalidValueError,
    RecordedAlreadyError,
    StudyError,
    UnknownNameError,
    UnknownStudyError,
    UnknownSuggestionError,
)
from edrbo.lab import Study, claims
from edrbo.lab.maintenance import copy
from edrbo.lab.store import turns
from edrbo.optimizer.optimizer import Optimizer
from edrbo.space import Space
from factories import same_state


@pytest.fixture
def where(tmp_path: Path) -> Path:
    return tmp_path / "study.db"


def outcome(design: dict[str, Any], humidity: float) -> float:
    return float(-((design["speed"] - 4.0 - humidity) ** 2))


def do_everything(first: Any, second: Any = None) -> None:
    """A life with everything in it; ``second`` takes over half of the calls."""
    second = second or first
    first.observe_context([[0.1], [0.2], [0.9]], weights=[1.0, 2.0, 0.5])
    suggestions = [first.ask() for _ in range(3)]
    second.tell(suggestions[1], {"humidity": 0.3}, outcome(suggestions[1].design, 0.3), noise_variance=0.01)
    first.tell(suggestions[0].id, None, outcome(suggestions[0].design, 0.5))
    second.tell(suggestions[2], failed=True)
    first.tell_context(suggestions[0], {"humidity": 0.5})
    for humidity in (0.2, 0.8, 0.4):
        suggestion = second.ask(forecast=[[0.2], [0.4]])
        first.tell(suggestion, {"humidity": humidity}, outcome(suggestion.design, humidity))
    first.ask(context={"humidity": 0.7})
    second.ask()


def test_same_numbers_as_an_optimizer(where: Path, space: Space) -> None:
    arguments: dict[str, Any] = {"seed": 7, "initial": 3, "context_half_life": 10.0, "direction": "maximize"}
    optimizer = Optimizer(space, "erbo", **arguments)
    study = Study.open(where, space, method="erbo", **arguments)
    do_everything(optimizer)
    do_everything(study)
    assert same_state(study.state, optimizer.state)
    assert study.recommend() == optimizer.recommend()
    assert study.recommend(goal="cvar:0.2").design == optimizer.recommend(goal="cvar:0.2").design
    assert study.pending == optimizer.pending


def test_two_processes_and_a_third_read_the_same(where: Path, line: Space) -> None:
    one = Study.open(where, line, method="erbo", initial=3)
    two = Study.open(where)
    do_everything(one, two)
    three = Study.open(where)
    assert same_state(one.state, two.state)
    assert same_state(one.state, three.state)
    expected = Optimizer.from_json(three.optimizer.to_json()).ask()
    assert one.ask() == expected


def test_a_stored_fit_changes_no_number(where: Path, tmp_path: Path, line: Space) -> None:
    study = Study.open(where, line, method="edrbo", initial=3)
    for humidity in np.linspace(0.1, 0.9, 24):
        study.tell({"speed": 1.0 + 8.0 * humidity}, [humidity], outcome({"speed": 3.0}, humidity))
    study.ask()
    for speed in (2.0, 3.0):
        study.tell({"speed": speed}, [0.5], speed)
    copy(where, tmp_path / "copy.db")  # without the cache
    with_fit, without = Study.open(where), Study.open(tmp_path / "copy.db", name="study")
    assert with_fit.optimizer.fit is not None
    assert without.optimizer.fit is None
    assert with_fit.ask() == without.ask()


def test_own_designs_and_late_contexts(where: Path, line: Space) -> None:
    study = Study.open(where, line)
    study.tell({"speed": 2.0}, None, 1.5)
    study.tell({"speed": 3.0}, failed=True)
    study.tell_context(0, [0.25])
    assert study.observations.c.tolist() == [[0.25]]
    assert list(study.state.failed) == [1]
    with pytest.raises(InvalidContextError):
        study.tell_context(0, [0.5])
    with pytest.raises(UnknownSuggestionError):
        study.tell_context(1, [0.5])
    assert study.ask().id == 2


def test_an_error_leaves_the_study_as_it_was(where: Path, line: Space) -> None:
    study = Study.open(where, line)
    suggestion = study.ask()
    before = study.state.history
    for arguments in (
        {"value": float("nan")},
        {"value": 1.0, "context": {"wind": 1.0}},
        {"value": 1.0, "noise_variance": -1.0},
    ):
        with pytest.raises((InvalidValueError, InvalidContextError)):
            study.tell(suggestion, **arguments)
    for call in (
        lambda: study.ask(0),
        lambda: study.ask(forecast=[]),
        lambda: study.tell(17, [0.5], 1.0),
        lambda: study.observe_context([[0.5]], weights=[-1.0]),
        lambda: study.recommend(),
    ):
        with pytest.raises(Exception, match=r"."):
            call()
    assert Study.open(where).state.history[-1].ref == before[-1].ref
    study.tell(suggestion, [0.5], 1.0)
    with pytest.raises(UnknownSuggestionError):
        study.tell(suggestion, [0.5], 1.0)


def test_a_batch_is_aware_of_itself(where: Path, line: Space) -> None:
    study = Study.open(where, line, method="ucb", initial=2)
    for speed in (2.0, 5.0, 8.0):
        study.tell({"speed": speed}, [0.5], -abs(speed - 4.0))
    suggestions = study.ask(3)
    assert [suggestion.id for suggestion in suggestions] == [3, 4, 5]
    assert np.diff(np.sort([suggestion["speed"] for suggestion in suggestions])).min() > 1e-3


def test_a_million_contexts_take_little_room(where: Path, line: Space) -> None:
    study = Study.open(where, line, context_half_life=1e6)
    samples = np.random.default_rng(0).beta(2.0, 5.0, (1_000_000, 1))
    study.observe_context(samples)
    assert len(Study.open(where).context_log) == 1_000_000
    assert where.stat().st_size < 200_000
    rows, weights = Study.open(where).context_log.weighted(1, None)
    assert np.average(rows[:, 0], weights=weights) == pytest.approx(2 / 7, abs=0.05)


def test_two_tellers_of_one_suggestion(where: Path, line: Space) -> None:
    """Both saw that it is pending. The first to store is right, with its context; the other hears who that
    was."""
    one, two = Study.open(where, line), Study.open(where)
    suggestion = one.ask()
    assert two.pending == [suggestion]
    two.tell(suggestion, [0.75], 2.0)
    with pytest.raises(UnknownSuggestionError):
        one.tell(suggestion, [0.25], 1.0)
    for study in (one, two, Study.open(where)):
        assert study.observations.y.tolist() == [2.0]
        assert study.observations.c.tolist() == [[0.75]]
        assert len(study.context_log) == 1


def test_what_was_sent_twice_is_stored_once(where: Path, line: Space) -> None:
    one, two = Study.open(where, line), Study.open(where)
    one.tell({"speed": 2.0}, [0.5], 1.0, key="entry 7")
    with pytest.raises(RecordedAlreadyError):
        two.tell({"speed": 2.0}, [0.5], 1.0, key="entry 7")
    assert len(two) == 1


@pytest.fixture
def overtaken(where: Path, line: Space, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Study], Any]], Study]:
    """A study in which somebody else does something while the first suggestion is computed."""

    def make(act: Callable[[Study], Any]) -> Study:
        study, other, todo = Study.open(where, line, initial=100), Study.open(where), [act]
        ask = Optimizer.ask

        def slow(self: Optimizer, *arguments: Any, **more: Any) -> Any:
            suggestion = ask(self, *arguments, **more)
            while todo:
                todo.pop()(other)
            return suggestion

        monkeypatch.setattr(Optimizer, "ask", slow)
        return study

    return make


def test_a_suggestion_that_was_overtaken_knows_the_other(overtaken: Any, line: Space, tmp_path: Path) -> None:
    study = overtaken(lambda other: other.ask())
    expected = Optimizer(line, initial=100)
    assert [expected.ask(), expected.ask()][1] == study.ask()
    assert [suggestion.id for suggestion in study.pending] == [0, 1]


def test_a_suggestion_is_computed_anew_where_the_settings_changed(overtaken: Any) -> None:
    wider = Space(design={"speed": (1.0, 20.0)}, context={"humidity": (0.0, 1.0)})
    study = overtaken(lambda other: other.amend({"space": wider.to_dict()}))
    suggestion = study.ask()
    expected = Optimizer(wider, initial=100).ask()
    assert suggestion == expected


def test_a_run_of_somebodys_own_may_take_the_number(overtaken: Any) -> None:
    study = overtaken(lambda other: other.tell({"speed": 2.0}, [0.5], 1.0))
    suggestion = study.ask()
    assert suggestion.id == 1
    study.tell(suggestion, [0.25], 2.0)
    assert study.observations.y.tolist() == [1.0, 2.0]


def holding(where: Path, code: str) -> subprocess.Popen[str]:
    """A process that has the turn to compute, and then does ``code``."""
    words = (
        "import os, signal, sys; from edrbo.lab import Study; from edrbo.lab.store.turns import turn\n"
        "study = Study.open(sys.argv[1])\n"
        f"with turn(study._store, study._id): print('mine', flush=True); {code}"
    )
    process = subprocess.Popen([sys.executable, "-c", words, where], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "mine\n"
    return process


def test_who_was_killed_while_computing_holds_nobody_up(
    where: Path, line: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = Study.open(where, line, initial=100)
    process = holding(where, "signal.pause()")
    process.kill()
    process.communicate()
    monkeypatch.setattr(turns.time, "sleep", lambda seconds: pytest.fail("it waited"))
    assert study.ask().id == 0


def test_who_was_stopped_holds_others_up_for_a_stated_time(
    where: Path, line: Space, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    study = Study.open(where, line, initial=100)
    process = holding(where, "os.kill(os.getpid(), signal.SIGSTOP)")
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
    now = [0.0]
    monkeypatch.setattr(turns.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(turns.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    try:
        assert study.ask().id == 0
    finally:
        process.kill()
        process.communicate()
    assert turns.PATIENCE < now[0] <= turns.PATIENCE + 1.0
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith(f"waiting for process {process.pid} on ")
    assert said.endswith("without a sign of life for 10 s I go on")
    assert study.ask().id == 1  # and nobody waits again


def test_who_computes_for_long_gives_signs_of_life(where: Path, line: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    study = Study.open(where, line)
    monkeypatch.setattr(claims, "HEARTBEAT", 0.001)
    seen = threading.Event()
    transaction = study._store.database.transaction

    def watched() -> Any:
        if threading.current_thread() is not threading.main_thread():
            seen.set()
        return transaction()

    monkeypatch.setattr(study._store.database, "transaction", watched)
    with turns.turn(study._store, study._id):
        assert seen.wait(60)
    assert not turns.is_taken(study._store, study._id)


def test_threads_share_one_study(where: Path, line: Space) -> None:
    study = Study.open(where, line, initial=1000)

    def work() -> None:
        for _ in range(5):
            suggestion = study.ask()
            study.tell(suggestion, [0.5], float(suggestion.id))

    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(work) for _ in range(4)]:
            future.result()
    assert sorted(study.observations.y.tolist()) == list(range(20))
    assert study.state.next_id == 20


class Lives(RuleBasedStateMachine):
    """Whatever happens, in whatever order, and however often it is opened anew: as an optimizer that saw it all."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.where = Path(self.folder.name) / "study.db"
        space = Space(design={"x": (0.0, 1.0), "k": ["a", "b"]}, context={"c": None})
        self.optimizer = Optimizer(space, initial=10_000, context_half_life=3.0)
        self.study = Study.open(self.where, space, initial=10_000, context_half_life=3.0)

    def teardown(self) -> None:
        self.folder.cleanup()

    @rule()
    def ask(self) -> None:
        assert self.study.ask() == self.optimizer.ask()

    @precondition(lambda self: self.optimizer.pending)
    @rule(data=st.data(), context=st.none() | st.floats(-9, 9), value=st.none() | st.floats(-9, 9))
    def tell(self, data: st.DataObject, context: float | None, value: float | None) -> None:
        suggestion = data.draw(st.sampled_from(self.optimizer.pending))
        row = None if context is None else [context]
        for one in (self.study, self.optimizer):
            one.tell(suggestion, row, value, failed=value is None)

    @precondition(lambda self: not self.optimizer.observations.complete.all())
    @rule(data=st.data(), context=st.floats(-9, 9))
    def tell_context(self, data: st.DataObject, context: float) -> None:
        complete = self.optimizer.observations.complete
        late = [key for key, row in self.optimizer.state.reported.items() if not complete[row]]
        key = data.draw(st.sampled_from(late))
        for one in (self.study, self.optimizer):
            one.tell_context(key, [context])

    @rule(rows=st.lists(st.floats(-9, 9), max_size=3))
    def observe(self, rows: list[float]) -> None:
        for one in (self.study, self.optimizer):
            one.observe_context(np.reshape(rows, (-1, 1)))

    @rule()
    def open_anew(self) -> None:
        self.study = Study.open(self.where)

    @invariant()
    def same(self) -> None:
        assert same_state(self.study.state, self.optimizer.state)


TestLives = Lives.TestCase
TestLives.settings = settings(max_examples=12, stateful_step_count=25, deadline=None)


# -------------------------------------------------------------------- opening


def test_opening(where: Path, line: Space, space: Space) -> None:
    with pytest.raises(UnknownStudyError):
        Study.open(where)
    assert not where.exists()
    study = Study.open(where, line, method="erbo", seed=3, direction="minimize")
    assert study.name == "study"
    assert stat.S_IMODE(where.stat().st_mode) == 0o600
    again = Study.open(where)
    assert again.settings == study.settings
    assert Study.open(where, line, method="erbo", seed=3, direction="minimize").settings == study.settings
    with pytest.raises(StudyError, match="seed"):
        Study.open(where, line, method="erbo", seed=4, direction="minimize")
    with pytest.raises(StudyError, match=r"'rate'.*'kind'"):
        Study.open(where, space, method="erbo", seed=3, direction="minimize")
    with pytest.raises(StudyError, match="'humidity'"):
        Study.open(where, Space({"speed": (1, 9)}, {"humidity": (0, 2)}), method="erbo", seed=3, direction="minimize")


def test_bad_settings_write_nothing(where: Path, line: Space) -> None:
    with pytest.raises(UnknownNameError):
        Study.open(where, line, method="nonsense")
    with pytest.raises(InvalidValueError):
        Study.open(where, line, initial=0)
    with pytest.raises(StudyError):
        Study.open(where, line, name="")
    assert not where.exists()


def test_several_studies_in_one_file(where: Path, line: Space, space: Space) -> None:
    Study.open(where, line, name="line")
    Study.open(where, space, name="space").tell(Study.open(where, name="space").ask(), [0.5], 1.0)
    assert len(Study.open(where, name="line")) == 0
    assert len(Study.open(where, name="space")) == 1
    with pytest.raises(StudyError, match="2"):
        Study.open(where)
    with pytest.raises(UnknownStudyError):
        Study.open(where, name="lin")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"SQLite format 3\x00 and more" + bytes(100), "another program"),
        (b"speed,humidity\n1,2\n3,4\n", "not a study file"),
        (b'{"op_code":0,"worker_id":"1","study_name":"coating"}\n', r"edrbo 0\.2"),
    ],
)
def test_files_that_are_something_else(where: Path, line: Space, content: bytes, message: str) -> None:
    where.write_bytes(content)
    for arguments in ((where,), (where, line)):
        with pytest.raises(StudyError, match=message):
            Study.open(*arguments)
    assert where.read_bytes() == content


def test_places_that_cannot_be(tmp_path: Path, line: Space) -> None:
    with pytest.raises(StudyError, match="folder"):
        Study.open(tmp_path, line)
    with pytest.raises(StudyError):
        Study.open(tmp_path / "nowhere" / "study.db", line)
    with pytest.raises(StudyError, match="PostgreSQL"):
        Study.open("mysql://user:secret@host/database", line)


def test_postgresql_and_file_give_the_same(where: Path, line: Space, postgresql: str) -> None:
    file = Study.open(where, line, method="erbo", initial=3)
    database = Study.open(postgresql, line, name="same", method="erbo", initial=3)
    do_everything(file)
    do_everything(database, Study.open(postgresql, name="same"))
    assert same_state(file.state, database.state)
    assert file.recommend() == database.recommend()


def test_a_relative_path_after_a_change_of_folder(tmp_path: Path, line: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    study = Study.open("study.db", line)
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    study.tell(study.ask(), [0.5], 1.0)
    assert len(Study.open(tmp_path / "study.db")) == 1
    assert list((tmp_path / "other").iterdir()) == []


def test_numbers_of_numpy_are_numbers(where: Path, line: Space) -> None:
    study = Study.open(where, line)
    assert len(study.ask(np.int64(2))) == 2
    for wrong in (True, 0, 1.5, "2"):
        with pytest.raises(InvalidValueError):
            study.ask(wrong)


@pytest.mark.parametrize("name", ["\x00", "a\ud800", "", "a" * 600])
def test_names_that_cannot_be_stored(where: Path, line: Space, name: str) -> None:
    with pytest.raises(StudyError):
        Study.open(where, line, name=name)
    assert not where.exists()
