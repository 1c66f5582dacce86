"""Check, back up, copy, salvage and export studies; and files that are damaged."""

from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path

import numpy as np
import optuna
import pytest

from edrbo.errors import (
    DamagedStudyError,
    EdrboError,
    ExistsAlreadyError,
    NetworkFileWarning,
    StudyError,
    UnavailableError,
    UnknownStudyError,
)
from edrbo.integrations.optuna.export import export_study
from edrbo.lab import Study
from edrbo.lab.files import warn_of_network
from edrbo.lab.maintenance import back_up, copy, problems_of
from edrbo.records.events import Reported
from edrbo.records.state import State
from edrbo.space import Integer, Real, Space
from factories import same_state


@pytest.fixture
def where(tmp_path: Path) -> Path:
    return tmp_path / "study.db"


def a_life(where: str | Path, space: Space, name: str | None = None) -> State:
    """A study with events of every kind; closed, so that the file holds all of it."""
    with Study.open(where, space, name=name, method="ucb", initial=100, by="Ada") as study:
        study.observe_context([[0.2], [0.9]])
        for k in range(12):
            study.tell(study.ask(), None if k == 3 else [k / 12], float(k), note="words" if k == 5 else None)
        study.tell_context(3, [0.5])
        study.tell(study.ask(), failed=True, why="it broke")
        study.cancel(study.ask(), why="enough")
        study.drop(4, why="implausible")
        study.correct(5, value=-1.0, why="a slip")
        study.tell({"speed": 2.0}, [0.1], 3.0)
        study.undo()
        study.undo()
        study.amend({"title": "Coating"})
        study.restore(4)
        study.ask()
        return study.state


# -------------------------------------------------------------------- damage


def test_a_file_that_is_well(where: Path, line: Space) -> None:
    a_life(where, line)
    assert problems_of(where) == []


def outcome_of(where: Path, state: State) -> str:
    """What becomes of a spoiled file: a typed error, or all of its events."""
    try:
        with Study.open(where, name="study") as study:
            found = study.state
    except DamagedStudyError:
        return "damaged"
    except StudyError:
        return "refused"
    return "whole" if same_state(found, state) and len(found.history) == len(state.history) else "CHANGED IN SILENCE"


def spoiled(whole: bytes, rng: np.random.Generator) -> bytes:
    """A bit flipped, a stretch or a page made zero or replaced by another, or the end cut off."""
    way, at = rng.integers(6), int(rng.integers(100, len(whole)))
    page, other = 4096 * int(rng.integers(1, len(whole) // 4096)), 4096 * int(rng.integers(1, len(whole) // 4096))
    if way <= 1:
        return whole[:at] + bytes([whole[at] ^ 1 << int(rng.integers(8))]) + whole[at + 1 :]
    if way == 2:
        length = int(rng.integers(1, 200))
        return (whole[:at] + bytes(length) + whole[at + length :])[: len(whole)]
    if way == 3:
        return whole[:page] + bytes(4096) + whole[page + 4096 :]
    if way == 4:
        return whole[:page] + whole[other : other + 4096] + whole[page + 4096 :]
    return whole[:at]


def test_a_damaged_file_is_an_error_or_whole(where: Path, tmp_path: Path, line: Space) -> None:
    """Never fewer events, or other ones, in silence."""
    state = a_life(where, line)
    whole, rng, counts = where.read_bytes(), np.random.default_rng(3), Counter[str]()
    assert len(whole) % 4096 == 0
    for k in range(600):
        found = tmp_path / f"spoiled-{k}.db"
        found.write_bytes(spoiled(whole, rng))
        counts[outcome_of(found, state)] += 1
        if k % 20 == 0 and outcome_of(found, state) == "damaged":
            assert problems_of(found)
        found.unlink()
    print(dict(counts))
    assert counts["CHANGED IN SILENCE"] == 0
    assert counts["damaged"] > 100
    assert counts["whole"] > 20  # what was spoiled was not in use, or only said twice


def change(where: Path, statement: str) -> None:
    """By another program."""
    connection = sqlite3.connect(where)
    with connection:
        connection.execute(statement)
    connection.close()


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM edrbo_events WHERE seq = 7",
        "DELETE FROM edrbo_events WHERE seq = (SELECT MAX(seq) FROM edrbo_events)",
        "UPDATE edrbo_events SET body = replace(body, '3.0', '4.0') WHERE seq = 8",
        "UPDATE edrbo_events SET seq = 1000 WHERE seq = 7",
        "UPDATE edrbo_events SET body = (SELECT body FROM edrbo_events WHERE seq = 3) WHERE seq = 5",
        "UPDATE edrbo_studies SET settings = replace(settings, '9.0', '8.0')",
        "UPDATE edrbo_events SET body = x'00ff'",
        "UPDATE edrbo_events SET checksum = '' WHERE seq = 3",
    ],
)
def test_a_changed_row_is_seen(where: Path, line: Space, statement: str) -> None:
    a_life(where, line)
    change(where, statement)
    with pytest.raises(DamagedStudyError) as caught:
        Study.open(where)
    assert "copy --salvage" in str(caught.value.hint)
    assert len(problems_of(where)) == 1


def test_what_is_left_of_a_damaged_file_is_salvaged(where: Path, tmp_path: Path, line: Space) -> None:
    state = a_life(where, line)
    change(where, "DELETE FROM edrbo_events WHERE seq = 16")
    with pytest.raises(DamagedStudyError):
        copy(where, tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()
    (copied,) = copy(where, tmp_path / "new.db", salvage=True)
    assert copied.lost == ("event 16: it is missing or damaged",)
    assert problems_of(tmp_path / "new.db") == []
    with Study.open(tmp_path / "new.db") as study:
        assert study.name == "study"
        assert len(study.state.history) == len(state.history) - 1
        lost = state.history[16]
        assert isinstance(lost, Reported)
        assert set(study.state.reported) == set(state.reported) - {lost.id}
        study.tell(lost.id, [0.5], 1.0)


def test_around_a_page_that_cannot_be_read(where: Path, tmp_path: Path, line: Space) -> None:
    """Each page in turn: what is salvaged was said, in its order, and every event is either there or named as lost."""
    state = a_life(where, line)
    whole, saved = where.read_bytes(), []
    said = [event.at for event in state.history]
    for page in range(1, len(whole) // 4096):
        where.write_bytes(whole[: 4096 * page] + bytes(4096) + whole[4096 * (page + 1) :])
        target = tmp_path / f"new-{page}.db"
        try:
            (copied,) = copy(where, target, salvage=True)
        except StudyError:
            assert not target.exists()
            continue
        with Study.open(target) as study:
            times = [event.at for event in study.state.history]
        assert [at for at in said if at in times] == times
        assert len(times) + len(copied.lost) == len(said)
        saved.append(len(times))
    assert sorted(saved)[len(saved) // 2] > 0.7 * len(said)


# -------------------------------------------------------------------- copies


def test_a_backup_is_whole_and_private(where: Path, tmp_path: Path, line: Space) -> None:
    state = a_life(where, line)
    with Study.open(where) as study:  # somebody is at work
        study.tell({"speed": 2.0}, [0.5], 1.0)
        size = back_up(where, tmp_path / "backup.db")
        state = study.state
    assert size == (tmp_path / "backup.db").stat().st_size
    assert (tmp_path / "backup.db").stat().st_mode & 0o777 == 0o600
    with Study.open(tmp_path / "backup.db") as again:
        assert same_state(again.state, state)
        again.tell({"speed": 3.0}, [0.5], 1.0)
    with pytest.raises(ExistsAlreadyError):
        back_up(where, tmp_path / "backup.db")
    back_up(where, tmp_path / "backup.db", force=True)
    assert len(Study.open(tmp_path / "backup.db")) == len(state.reported)
    with pytest.raises(ExistsAlreadyError):
        back_up(where, where, force=True)
    with Study.open(tmp_path / "backup.db"), pytest.raises(ExistsAlreadyError):
        back_up(where, tmp_path / "backup.db", force=True)  # SQLite's log of the old file would be taken for the new
    with pytest.raises(UnknownStudyError):
        back_up(tmp_path / "missing.db", tmp_path / "x.db")
    with pytest.raises(StudyError, match="pg_dump"):
        back_up("postgresql://me@nowhere/lab", tmp_path / "x.db")
    with pytest.raises(UnavailableError):
        back_up(where, tmp_path / "nowhere" / "x.db")


def test_copies_between_a_file_and_postgresql(where: Path, tmp_path: Path, line: Space, postgresql: str) -> None:
    state, other = a_life(where, line, "to and fro"), a_life(where, line, "beside it")
    copied = copy(where, postgresql)
    assert [(one.name, one.events) for one in copied] == [
        ("to and fro", len(state.history)),
        ("beside it", len(other.history)),
    ]
    back = tmp_path / "back.db"
    copy(postgresql, back, name="to and fro")
    with Study.open(back) as study, Study.open(where, name="to and fro") as first:
        assert same_state(study.state, state)
        assert [event.to_dict() for event in study.state.history] == [e.to_dict() for e in first.state.history]
        assert study.ask() == first.ask()
    with pytest.raises(StudyError, match="already"):
        copy(where, postgresql)
    with pytest.raises(UnknownStudyError):
        copy(where, tmp_path / "other.db", name="missing")
    assert not (tmp_path / "other.db").exists()


def test_an_optuna_study(where: Path, tmp_path: Path) -> None:
    space = Space(
        {"speed": Real(1, 9, log=True), "layers": Integer(1, 4), "kind": ["a", "b"]}, {"humidity": (0.0, 1.0)}
    )
    with Study.open(where, space, direction="minimize", initial=20) as study:
        suggestion = study.ask()
        study.tell(suggestion, [0.25], 1.5)
        study.tell(study.ask(), failed=True, why="it broke")
        study.cancel(study.ask())
        study.ask()
        state = study.state
    for target in (f"sqlite:///{tmp_path}/theirs.sqlite", str(tmp_path / "theirs.log")):
        assert export_study(state, "coating", target) == 4
        with pytest.raises(StudyError, match="already"):
            export_study(state, "coating", target)
    theirs = optuna.load_study(study_name="coating", storage=f"sqlite:///{tmp_path}/theirs.sqlite")
    assert [trial.state.name for trial in theirs.trials] == ["COMPLETE", "FAIL", "FAIL", "RUNNING"]
    assert theirs.best_trial.params == suggestion.design
    assert theirs.best_value == 1.5
    assert theirs.best_trial.user_attrs["context"] == {"humidity": 0.25}
    reported = state.history[1]
    assert theirs.best_trial.datetime_complete is not None
    assert theirs.best_trial.datetime_complete.timestamp() == pytest.approx(reported.at, abs=1e-3)
    with pytest.raises(EdrboError):
        export_study(state, "coating", str(tmp_path / "nowhere" / "x.log"))


# -------------------------------------------------------------------- places


@pytest.mark.parametrize(("kind", "warned"), [("ext4", False), ("nfs4", True), ("fuse.sshfs", True), ("tmpfs", False)])
def test_a_network_file_system_is_warned_about(
    tmp_path: Path, kind: str, warned: bool, recwarn: pytest.WarningsRecorder
) -> None:
    table = tmp_path / "mounts"
    table.write_text(
        f"/dev/a / ext4 rw 0 0\nserver:/x {tmp_path} {kind} rw 0 0\nserver:/y {tmp_path}/other nfs rw 0 0\n"
    )
    warn_of_network(tmp_path / "study.db", table)
    assert [one.category for one in recwarn.list] == [NetworkFileWarning] * warned
