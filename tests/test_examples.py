"""The examples run, and their own assertions hold."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
NEEDS = {"xopt_contexts.py": ("xopt",)}  # besides the extras
OPTIONS = {"xopt_contexts.py": ("--steps", "5")}  # Xopt's own generators take most of the time
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src"), "COLUMNS": "100"}


def run(words: list[str], cwd: Path, path: str = "") -> str:
    environment = {**ENVIRONMENT, "PATH": f"{path}{os.pathsep}{os.environ['PATH']}"} if path else ENVIRONMENT
    done = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_python_examples(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process, which has imported torch already; one starts processes of its own."""
    for library in NEEDS.get(path.name, ()):
        pytest.importorskip(library, reason=f"{library} is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", ENVIRONMENT["PYTHONPATH"])
    monkeypatch.setattr(sys, "argv", [str(path), *OPTIONS.get(path.name, ())])
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.strip()
    assert list(tmp_path.iterdir()) == []


def test_command_line_example(tmp_path: Path) -> None:
    """With an ``edrbo`` and a ``python`` that are those of this test, installed or not."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, code in {"edrbo": " -c 'from edrbo.lab.cli import main; main()'", "python": ""}.items():
        (tools / name).write_text(f'#!/bin/sh\nexec "{sys.executable}"{code} "$@"\n')
        (tools / name).chmod(0o755)
    output = run(["sh", str(EXAMPLES / "simulator" / "run.sh"), "study"], tmp_path, str(tools))
    assert "24 evaluated, 0 failed" in output
    assert "the best there is" in output
    names = sorted(path.name for path in (tmp_path / "study").iterdir())
    assert names == ["coating.db", "coating.html", "coating.toml"]


def test_every_example_is_in_the_list() -> None:
    words = (EXAMPLES / "README.md").read_text()
    for path in EXAMPLES.iterdir():
        assert path.name in words or path.name == "README.md"
