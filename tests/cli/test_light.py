"""Keeping records costs little: what each command loads, and how often it reads the storage. And how many modules take
part in an ask and a tell."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import edrbo as package
from edrbo import Optimizer, Space
from edrbo.lab import Study
from edrbo.lab.store.database import SQLite
from edrbo.lab.store.event_store import EVENTS
from edrbo.records.reducer import Draft

Run = Callable[..., Any]
PACKAGE = str(Path(package.__file__).parent)

HEAVY = ("torch", "gpytorch", "scipy", "optuna", "psycopg2", "matplotlib", "pandas", "openpyxl")
LIGHT = [
    ["--help"],
    ["new", "other.toml", "-d", "x=0:1"],
    ["tell", "0", "--value", "1", "-c", "humidity=0.5"],
    ["tell", "-d", "speed=2", "--value", "1"],
    ["show"],
    ["show", "0"],
    ["show", "--json"],
    ["context", "add", "seen.csv"],
    ["import", "table.csv"],
    ["import", "--dry-run", "table.csv"],
    ["export", "out.csv"],
    ["edit", "1", "--value", "2"],
    ["drop", "1"],
    ["note", "1", "words"],
    ["undo"],
    ["cancel", "0"],
    ["amend", "-d", "speed=1:10"],
    ["studies"],
    ["check"],
    ["backup", "backup.db"],
    ["copy", "coating.toml", "copy.db"],
]


@pytest.fixture
def coating(edrbo: Run, folder: Path) -> Run:
    assert edrbo("new", "coating.toml", "-d", "speed=1:9", "-c", "humidity=0:1").code == 0
    study = Study.open(folder / "coating.db")
    study.ask()
    study.tell({"speed": 2.0}, [0.5], 1.0)
    (folder / "seen.csv").write_text("humidity\n0.5\n")
    (folder / "table.csv").write_text("speed,humidity,value\n3,0.5,1\n")
    return edrbo


# One after the other in a process that has loaded nothing else, each in a copy of the folder.
RUN_ALL = """
import json, os, shutil, sys
from edrbo.lab.cli import main
heavy, commands = json.loads(sys.argv[1])
home, before, ended = os.getcwd(), set(), []
for number, words in enumerate(commands):
    shutil.copytree(home, f"{home}-{number}")
    os.chdir(f"{home}-{number}")
    sys.argv = ["edrbo", *words]
    try:
        code = main()
    except SystemExit as problem:
        code = problem.code
    loaded = {name for name in heavy if name in sys.modules}
    ended.append([words, code or 0, sorted(loaded - before)])
    before |= loaded
with open(f"{home}/ended.json", "w") as file:
    json.dump(ended, file)
"""


@pytest.mark.usefixtures("coating")
def test_no_heavy_library_is_loaded(folder: Path) -> None:
    words = [sys.executable, "-c", RUN_ALL, json.dumps([HEAVY, LIGHT])]
    subprocess.run(words, cwd=folder, env=os.environ, capture_output=True, check=True, timeout=120)
    assert json.loads((folder / "ended.json").read_text()) == [[words, 0, []] for words in LIGHT]


@pytest.mark.parametrize(
    "words", [words for words in LIGHT if words[0] not in ("--help", "new", "check", "backup", "copy")], ids=" ".join
)
def test_the_storage_is_read_and_replayed_once(
    coating: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    """Every event is read once and applied once; of what the command itself writes, once more to check it first."""
    rows, applied = [0], [0]
    read, apply = SQLite._read, Draft.apply

    def counted_read(self: SQLite, statement: str, values: Any) -> Any:
        found = read(self, statement, values)
        rows[0] += len(found) if statement == EVENTS else 0
        return found

    def counted(self: Draft, event: Any) -> None:
        applied[0] += 1
        apply(self, event)

    events = len(Study.open(folder / "coating.db").state.history)
    monkeypatch.setattr(SQLite, "_read", counted_read)
    monkeypatch.setattr(Draft, "apply", counted)
    assert coating(*words).code == 0
    monkeypatch.undo()
    written = len(Study.open(folder / "coating.db").state.history) - events
    previews = len(words) > 1 and words[1] == "--dry-run"
    assert rows[0] == events
    # A table's rows are checked by a plan and by the study that takes them.
    assert applied[0] <= events + 2 * written + 2 * previews


def entered(call: Callable[[], Any]) -> set[str]:
    """The modules of the package of which a function runs while ``call`` does: what a reader would have to open."""
    found: set[str] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_flags & inspect.CO_OPTIMIZED and code.co_filename.startswith(PACKAGE):
            found.add(code.co_filename.removeprefix(PACKAGE))  # the body of a class or a module is no function

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


def test_an_ask_enters_forty_modules_at_most() -> None:
    def optimizer() -> Optimizer:
        made, rng = Optimizer(Space({"x": (0, 1), "y": (0, 1)}, {"c": (0, 1)}), seed=0), np.random.default_rng(0)
        for x, y, c in rng.random((12, 3)):
            made.tell({"x": x, "y": y}, {"c": c}, float((x - 0.5) ** 2 + (y - c) ** 2))
        return made

    optimizer().ask()  # what is imported with the first is not counted
    modules = entered(optimizer().ask)
    assert "/optimizer/optimizer.py" in modules
    assert len(modules) <= 40, sorted(modules)


def test_a_tell_enters_thirty_modules_at_most(coating: Run) -> None:
    words = ("tell", "-d", "speed=2", "--value", "1", "-c", "humidity=0.5")
    assert coating(*words).code == 0
    modules = entered(lambda: coating(*words))
    assert "/records/reducer.py" in modules
    assert len(modules) <= 30, "\n".join(sorted(modules))
