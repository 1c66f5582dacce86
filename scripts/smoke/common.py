"""What the smoke tests share. They run in an environment that has the wheel, its extra and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import edrbo

SPACE = edrbo.Space({"x": (0, 1)}, {"c": (0, 1)})
COMMAND = Path(sys.executable).with_name("edrbo")


def run(*words: str) -> str:
    """What ``edrbo WORDS`` of this environment prints; an error of it is one of the smoke test."""
    done = subprocess.run([COMMAND, *words], check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"edrbo {' '.join(words)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def some_runs() -> edrbo.Optimizer:
    """An optimizer that was asked and reported four times, the last two by its model."""
    optimizer = edrbo.Optimizer(SPACE, seed=0, initial=2)
    for i in range(4):
        suggestion = optimizer.ask()
        optimizer.tell(suggestion, {"c": i / 4}, -((suggestion["x"] - 0.5) ** 2))
    assert 0 <= optimizer.recommend().design["x"] <= 1
    return optimizer


def a_study() -> Path:
    """A study with three runs, made and filled from the command line."""
    file = Path("coating.toml")
    run("new", str(file), "-d", "speed=1:9", "-c", "humidity=0:100")
    for speed, value in ((2, 1 / 3), (4, 1e-300), (8, 2.5)):
        run("tell", "--study", str(file), "-d", f"speed={speed}", "-c", "humidity=40", "--value", repr(value))
    return file


def values(file: Path) -> list[Any]:
    """The values of a study's runs as `edrbo show` gives them."""
    return [one["value"] for one in json.loads(run("show", "--study", str(file), "--json"))["runs"]]
