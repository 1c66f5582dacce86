"""Files that are there in whole or not at all, on a full disk too."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from full_disk import largest_file
from typer.testing import CliRunner

from edrbo.errors import EdrboError, ExistsAlreadyError, StudyError, UnavailableError
from edrbo.lab import Study
from edrbo.lab.cli import make_app
from edrbo.lab.files import new_file
from edrbo.lab.maintenance import back_up, problems_of
from edrbo.space import Space


def write(path: Path, content: bytes, problem: Exception | None = None) -> None:
    with new_file(path, force=True) as file:
        file.write(content)
        if problem is not None:
            raise problem


@pytest.mark.parametrize("name", ["n" * 252 + ".db", "n" * 300 + ".db", "a\x00b.db"])
def test_a_name_that_no_file_can_have(tmp_path: Path, line: Space, name: str) -> None:
    """The first is too long with what SQLite appends to it."""
    with pytest.raises(StudyError, match="cannot"):
        Study.open(tmp_path / name, line)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["a?mode=ro#b%20c.db", "'\n\u202e\".db", os.fsdecode(b"\xff.db"), ":memory:", "file:a.db"]
)
def test_odd_names_are_names(tmp_path: Path, line: Space, name: str) -> None:
    Study.open(tmp_path / name, line).tell({"speed": 2.0}, [0.5], 1.0)
    back_up(tmp_path / name, tmp_path / f"{name}.bak")
    (tmp_path / name).unlink()
    assert len(Study.open(tmp_path / f"{name}.bak")) == 1
    assert problems_of(tmp_path / f"{name}.bak") == []


@pytest.mark.skipif(os.name != "posix", reason="folders are files on POSIX alone")
def test_its_name_is_on_the_disk_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a power cut what is not is gone: first the file, then, under its own name, the folder."""
    synced, sync = list[tuple[bool, list[str]]](), os.fsync

    def seen(number: int) -> None:
        names = sorted(one.name for one in tmp_path.iterdir() if one.suffix != ".part")
        synced.append((stat.S_ISDIR(os.fstat(number).st_mode), names))
        sync(number)

    monkeypatch.setattr(os, "fsync", seen)
    write(tmp_path / "table.csv", b"new")
    assert synced == [(False, []), (True, ["table.csv"])]


def test_a_file_that_could_not_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(b"old")
    path.chmod(0o640)
    with pytest.raises(UnavailableError), largest_file(100):
        write(path, bytes(1000))
    assert path.read_bytes() == b"old"
    with pytest.raises(KeyError):
        write(path, b"half", KeyError())
    assert [one.name for one in tmp_path.iterdir()] == ["table.csv"]
    with new_file(path, force=True) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o640
    with pytest.raises(ExistsAlreadyError), new_file(path):
        pass
    with pytest.raises(EdrboError), new_file(tmp_path / "nowhere" / "x"):
        pass


COMMANDS = {
    "export": ["export", "out.csv"],
    "export to Excel": ["export", "out.xlsx"],
    "report": ["report", "--out", "out.html"],
    "backup": ["backup", "out.db"],
    "copy": ["copy", "coating.db", "out.db"],
    "new": ["new", "out.toml", "--design", "speed=1:9", "--context", "humidity=0:1"],
}


FULL = """
import resource, sys
sys.dont_write_bytecode = True
resource.setrlimit(resource.RLIMIT_FSIZE, (300, resource.RLIM_INFINITY))
from edrbo.lab.cli import main
main()
"""


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_on_a_full_disk(tmp_path: Path, name: str, line: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line that says so, nothing left behind that blocks the name, and then it works. Reading goes on."""
    monkeypatch.chdir(tmp_path)
    with Study.open("coating.db", line, method="ucb", initial=3) as study:
        for k in range(6):
            study.tell(study.ask(), [k / 6], float(k))
    words = [*COMMANDS[name], *([] if name in ("copy", "new") else ["--study", "coating.db"])]
    found = subprocess.run([sys.executable, "-c", FULL, *words], capture_output=True, text=True, check=False)
    assert found.returncode == 2, found.stderr
    assert re.search("^error: cannot (write|read) .*(large|full)", found.stderr, re.MULTILINE), found.stderr
    assert "Traceback" not in found.stderr
    left = {path.name for path in tmp_path.iterdir()} - {"coating.db-wal", "coating.db-shm"}  # SQLite's own, empty
    assert left == {"coating.db"}
    again = CliRunner().invoke(make_app(words), words)
    assert again.exit_code == 0, again.output
    if name == "new":
        assert Study.open("out.db").settings.space == line


def test_a_study_on_a_full_disk_can_be_read(tmp_path: Path, line: Space) -> None:
    where = tmp_path / "coating.db"
    with Study.open(where, line) as study:
        study.tell(study.ask(), [0.5], 1.0)
    with largest_file(0):
        reader = Study.open(where)
        assert reader.observations.y.tolist() == [1.0]
        with pytest.raises(UnavailableError):
            reader.tell({"speed": 2.0}, [0.5], 2.0)
    reader.tell({"speed": 2.0}, [0.5], 2.0)
    assert len(Study.open(where)) == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has a device for this")
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_what_cannot_be_printed_is_said_in_a_line(tmp_path: Path, line: Space, more: list[str]) -> None:
    Study.open(tmp_path / "x.db", line)
    words = [sys.executable, "-c", "from edrbo.lab.cli import main; main()", "show", "--study", "x.db", *more]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(words, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    said = ["error: cannot write the output: No space left on device"] if not more else []  # errors are JSON too
    assert done.stderr.splitlines()[:1] == said
    assert len(done.stderr.splitlines()) == 2 * len(said)
