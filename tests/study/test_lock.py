"""The lock of a study file: torn lines, links of the dead, and other programs."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock

from edrbo.study import lock
from edrbo.study.lock import StudyFileLock, drop_torn_line


@given(st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"")), max_size=5), st.binary(max_size=30))
def test_only_a_torn_line_is_dropped(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], torn: bytes) -> None:
    path = tmp_path_factory.mktemp("torn") / "file"
    whole = b"".join(line + b"\n" for line in lines)
    path.write_bytes(whole + torn.replace(b"\n", b""))
    descriptor = os.open(path, os.O_RDWR)
    drop_torn_line(descriptor)
    os.close(descriptor)
    assert path.read_bytes() == whole


def test_a_long_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"{}\n" + b"x" * (3 * lock.CHUNK + 17))
    descriptor = os.open(path, os.O_RDWR)
    drop_torn_line(descriptor)
    os.close(descriptor)
    assert path.read_bytes() == b"{}\n"


def test_appending_after_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "file"
    backend = JournalFileBackend(str(path), StudyFileLock(str(path)))
    backend.append_logs([{"a": 1}])
    with path.open("ab") as file:
        file.write(b'{"b": ')
    assert list(backend.read_logs(0)) == [{"a": 1}]
    backend.append_logs([{"c": 3}])
    assert list(backend.read_logs(0)) == [{"a": 1}, {"c": 3}]


def test_the_link_of_a_dead_process_is_removed_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.touch()
    dead = StudyFileLock(str(path))
    dead.acquire()
    os.close(dead._descriptor)  # what the kernel does when a process dies
    assert os.path.islink(f"{path}.lock")
    monkeypatch.setattr("time.sleep", lambda seconds: pytest.fail("it waited"))
    heir = StudyFileLock(str(path))
    assert heir.acquire()
    heir.release()
    assert not os.path.lexists(f"{path}.lock")


def test_the_lock_of_another_program_is_respected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.touch()
    foreign, ours = JournalFileSymlinkLock(str(path)), StudyFileLock(str(path))
    foreign.acquire()
    waits = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        foreign.release()

    monkeypatch.setattr("time.sleep", wait)
    assert ours.acquire()
    assert len(waits) == 1
    ours.release()
    foreign.acquire()  # and ours is gone for it
    foreign.release()


@pytest.mark.parametrize("has_flock", [True, False])
def test_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_flock: bool) -> None:
    path = tmp_path / "file"
    path.touch()
    if not has_flock:  # as on some network file systems
        monkeypatch.setattr("fcntl.flock", lambda *arguments: (_ for _ in ()).throw(OSError("no locks available")))
    inside, most = 0, []

    def work() -> None:
        nonlocal inside
        mine = StudyFileLock(str(path))
        for _ in range(20):
            mine.acquire()
            inside += 1
            most.append(inside)
            inside -= 1
            mine.release()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 80


def test_a_read_only_lock_leaves_no_descriptor(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    missing = StudyFileLock(str(tmp_path / "missing"))
    for _ in range(3):
        with pytest.raises(FileNotFoundError):
            missing.acquire()
    assert len(os.listdir("/proc/self/fd")) == before
