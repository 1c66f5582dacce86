"""Studies under fire: killed processes, many processes, full disks, files that may only be read."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
import pytest

from edrbo.errors import StudyError
from edrbo.records.state import same_state
from edrbo.space import Space
from edrbo.study import Study

WORKERS = Path(__file__).with_name("workers.py")
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}


class Workers:
    """One process of workers.py, which has imported everything and forks for each command."""

    def __init__(self, process: subprocess.Popen[str], errors: IO[str]) -> None:
        self._process, self._errors = process, errors

    def __call__(self, command: str, where: str, first: int, second: int, said: Path) -> list[list]:
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
            state.pending[number] if number in state.pending else state.observations.x[state.told[number]]
        )
        assert stored == design
    for _, number, context, value in (line for line in said if line[0] == "told"):
        row = state.told[number]
        assert state.observations.y[row] == value
        assert state.observations.c[row] == context
    assert len(state.observations) == len(state.told)
    assert len(state.log) == len(state.observations)


def test_killed_at_a_hundred_random_moments(tmp_path: Path, line: Space, run_workers: Workers) -> None:
    where = tmp_path / "study.db"
    Study.open(where, line, method="ucb", initial=100_000)
    said = run_workers("kill", str(where), 100, 5, tmp_path / "said")
    assert len(said) > 100  # they got somewhere before they died
    study = Study.open(where)
    check_against_what_was_said(study, said)
    # Killed between storing and saying so: at most one ask or tell per process.
    told = [line for line in said if line[0] == "told"]
    assert len(told) <= len(study) <= len(told) + 100
    begun = time.monotonic()
    study.tell(study.ask(), [0.01], 1.0)
    assert time.monotonic() - begun < 10  # Optuna's own lock would make it wait for 30 s


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
    assert sorted(study.state.told) == list(range(count))
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
    assert [words[1:3] for words in lines if words[0] == "told" and study.state.runs[words[1]].value != words[3]] == []


@pytest.mark.parametrize(("place", "races"), [("one file", 60), ("PostgreSQL", 20)])
def test_the_acknowledged_teller_wins_with_its_context(
    tmp_path: Path, line: Space, place: str, races: int, run_workers: Workers, request: pytest.FixtureRequest
) -> None:
    where = str(tmp_path / "study.db")
    if place == "PostgreSQL":
        where = empty_database(request.getfixturevalue("postgresql"), "raced")
    Study.open(where, line, method="ucb", initial=1000)
    lines = run_workers("race", where, races, 3, tmp_path / "said")
    told = {words[1]: words[2] for words in lines if words[0] == "told"}
    assert sum(words[0] == "told" for words in lines) == len(told) == races  # one of three each time
    study = Study.open(where)
    stored = {key: float(study.observations.c[row, 0]) for key, row in study.state.told.items()}
    assert stored == told
    assert len(study.context_log) == races


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
    # nothing is told: the best design that is known may be asked for again
    lines = run_workers("asks", str(where), 4, 2, tmp_path / "said")
    speeds = np.sort([words[2]["speed"] for words in lines if words[0] == "asked"])
    assert len(speeds) == 8
    assert np.diff(speeds).min() > 1e-3  # without the others' suggestions four processes would find the same maximum


# -------------------------------------------------------------------- disks


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """The kernel refuses to let files grow beyond ``size``, in the middle of a write, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def tell_many(study: Study) -> None:
    for _ in range(5):
        study.tell(study.ask(), [0.5], 2.0)


@pytest.mark.parametrize("room", [0, 40, 200, 700])
def test_a_full_disk_loses_nothing_that_was_told(tmp_path: Path, line: Space, room: int) -> None:
    where = tmp_path / "study.db"
    study = Study.open(where, line, method="ucb", initial=100)
    study.tell(study.ask(), [0.25], 1.0)
    with largest_file(where.stat().st_size + room), pytest.raises(StudyError, match="cannot write") as caught:
        tell_many(study)
    assert caught.value.hint is not None
    assert "space" in caught.value.hint
    study.tell(study.ask(), [0.75], 3.0)  # at once, without waiting for what failed
    again = Study.open(where)
    assert same_state(again.state, study.state)
    assert again.observations.y[0] == 1.0
    assert again.observations.y[-1] == 3.0


@pytest.mark.parametrize("room", [0, 40, 200])
def test_a_study_that_could_not_be_made_leaves_no_file(tmp_path: Path, line: Space, room: int) -> None:
    where = tmp_path / "study.db"
    with largest_file(room), pytest.raises(StudyError, match="cannot"):
        Study.open(where, line)
    assert not where.exists()
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


def test_a_file_that_may_only_be_read(line: Space) -> None:
    folder = Path(tempfile.mkdtemp(prefix="edrbo-read-only-"))
    try:
        where = folder / "study.db"
        study = Study.open(where, line, method="ucb", initial=2)
        for _ in range(3):
            study.tell(study.ask(), [0.5], 1.0)
        expected = study.recommend()
        where.chmod(0o444)
        folder.chmod(0o555)
        before = where.read_bytes()
        with unprivileged():
            reader = Study.open(where)
            assert reader.recommend() == expected
            with pytest.raises(StudyError, match=r"cannot write .*: Permission denied"):
                reader.ask()
            with pytest.raises(StudyError, match=r"cannot write .*: Permission denied"):
                reader.tell({"speed": 3.0}, [0.5], 1.0)
            assert len(reader) == 3
        assert where.read_bytes() == before
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)
