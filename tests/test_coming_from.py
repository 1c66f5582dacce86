"""What the page for users of other libraries says of them, run with these libraries; test_docs runs what is ours."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "guides" / "coming-from.md").read_text(encoding="utf-8")
THEIRS = dict(re.findall(r'^```py title="(\w+)"\n(.*?)^```', PAGE, re.DOTALL | re.MULTILINE))
OURS = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
MODULES = {"Ax": "ax", "BoTorch": "botorch", "Optuna": "optuna", "Xopt": "xopt", "BayBE": "baybe"}
WORDS = (
    *("contextual variable", "environmental variable", "uncontrollable", "covariate", "confounder", "noise factor"),
    *("state variable", "fixed feature", "read-only parameter", "observable", "measured but not controlled"),
    *("robust parameter design", "input perturbation", "distribution shift"),
)
MADE = {
    "Ax": 'assert 0 <= best["x"] <= 1',
    "BoTorch": "assert x.shape == (1, 1) and 0 <= x.item() <= 1",
    "Optuna": 'assert len(study.trials) == 12 and 0 <= best["x"] <= 1',
    "Xopt": 'assert loop.data[["x", "c", "y"]].shape == (6, 3)',
    "BayBE": 'assert campaign.measurements[["x", "y"]].shape == (3, 2)',
}


RUN = """
import json, sys
for library, program in json.load(sys.stdin).items():
    print(library, file=sys.stderr, flush=True)
    exec(program, {})
"""


def test_theirs_runs(tmp_path: Path) -> None:
    """In a process of their own: some of them set things for the whole process. One for all: they load the same."""
    there = [library for library in MODULES if find_spec(MODULES[library])]
    if not there:
        pytest.skip("none of them is installed")
    # the first block is the world that all share
    programs = {library: "\n".join([OURS[0], THEIRS[library], MADE[library]]) for library in there}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RUN],
        input=json.dumps(programs),
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr  # the last library that it names


def test_each_library_has_ten_lines_and_ours_beside_them() -> None:
    assert list(THEIRS) == list(MODULES)
    for section in PAGE.split("\n## ")[1:]:
        theirs, ours = section.index('```py title="'), section.index("```python\n")
        assert theirs < ours, section.splitlines()[0]
    for code in (*THEIRS.values(), *OURS):
        assert len([line for line in code.splitlines() if line.strip()]) <= 15


def test_whoever_searches_finds_the_page() -> None:
    found = PAGE.casefold()
    assert [word for word in WORDS if word not in found] == []
