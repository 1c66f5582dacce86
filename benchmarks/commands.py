"""CPU seconds of commands: user and system, in processes of their own.

    python benchmarks/commands.py [--runs 500] [--repeats 3]

First every command that keeps records, beside importing torch: the study has ``--runs`` runs, reported with a context
each, and the bar is 0.8 s. Then those that answer, of a study as a lab has it: 19 runs and two failures, three design
variables and a constraint. The bars there are what the answer takes beside loading the engine: of the row before, which
loads all of it and does nothing.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

BAR = 0.8
COMMANDS = [
    "--help",
    "new other.toml -d x=0:1",
    "tell 0 --value 1 -c humidity=0.5",
    "edit 3 --value 1.5",
    "drop 4",
    "undo",
    "cancel 0",
    "note 3 a bubble",
    "show",
    "show --json",
    "show 3",
    "context add seen.csv",
    "import table.csv",
    "import --dry-run table.csv",
    "export out.csv",
    "amend -d speed=1:10",
    "studies",
    "check",
]

ANSWERS = [("limit", "recommend", 1.0), ("limit", "report --force --out page.html", 2.0), ("tail", "tradeoff", 2.0)]
LOADING = "import edrbo.lab.cli, edrbo.lab, edrbo.optimizer.optimizer, edrbo.lab.report, scipy.optimize, scipy.special"


def make_lab_study(folder: Path, goal: str, limit: bool) -> None:
    """Gloss of a coat, and its roughness under a limit; the first runs were made before roughness was measured."""
    import numpy as np

    import edrbo
    from edrbo.lab import Study
    from edrbo.lab.config import write_toml

    design = {"speed": edrbo.Real(5, 60), "layers": edrbo.Integer(1, 5), "primer": ["A", "B", "C"]}
    space = edrbo.Space(design, {"humidity": (20, 80)}, constraints=["speed + 8*layers <= 85"])
    outcomes = {"gloss": edrbo.Maximize(unit="GU"), "roughness": edrbo.Limit(upper=2.2)} if limit else None
    study = Study.open(folder / "coating.db", space, name="coating", seed=0, goal=goal, outcomes=outcomes)
    write_toml(folder / "coating.toml", "coating.db", "coating", study.settings)
    weather = np.random.default_rng(0)
    for k in range(21):
        suggestion, humidity = study.ask(), float(weather.uniform(20, 80))
        speed, layers, primer = (suggestion[name] for name in ("speed", "layers", "primer"))
        damp = (humidity - 50) / 30
        if k in (6, 11):
            study.tell(suggestion, {"humidity": humidity}, failed=True)
            continue
        gloss = 80 + 10 * np.sin(speed / 12) + 2 * layers - 3 * "ABC".index(primer) - 4 / 3 * damp * layers
        gloss += weather.normal()
        roughness = 1.2 + speed / 40 + 0.3 * damp + 0.1 * layers + 0.05 * weather.normal()
        reported = {"gloss": gloss, "roughness": roughness} if k >= 3 else {"gloss": gloss}
        study.tell(suggestion, {"humidity": humidity}, reported if limit else gloss)


def make_study(folder: Path, runs: int) -> None:
    from edrbo.lab import Study
    from edrbo.lab.config import write_toml
    from edrbo.space import Space

    space = Space({"speed": (1.0, 9.0), "kind": ["plain", "glossy"]}, {"humidity": (0.0, 1.0)})
    study = Study.open(folder / "coating.db", space)
    write_toml(folder / "coating.toml", "coating.db", "coating", study.settings)
    table = folder / "runs.csv"
    rows = (f"pending,{1 + 8 * k / runs},plain,,\n" if k < 2 else reported(k, runs) for k in range(runs))
    table.write_text("status,speed,kind,humidity,value\n" + "".join(rows))
    from edrbo.lab.tables.csv_import import import_file

    import_file(study, table)
    (folder / "seen.csv").write_text("humidity\n" + "0.25\n0.75\n" * 20)
    (folder / "table.csv").write_text(
        "speed,kind,humidity,value\n" + "".join(f"{k % 9},glossy,0.5,{k}\n" for k in range(1, 9))
    )


def reported(k: int, runs: int) -> str:
    return f"reported,{1 + 8 * k / runs},{'plain' if k % 2 else 'glossy'},{(k * 0.618) % 1},{k % 17}\n"


def cpu_seconds(words: list[str], folder: Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, cwd=folder, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is compiled once, not at each start
    python = [sys.executable, "-c"]
    program = [*python, "import sys; from edrbo.lab.cli import main; sys.argv[0] = 'edrbo'; main()"]
    with tempfile.TemporaryDirectory() as name:
        console = Console(width=100)
        console.print(records(Path(name), options.runs, options.repeats, python, program))
        console.print(answers(Path(name), options.repeats, python, program))


def records(folder: Path, runs: int, repeats: int, python: list[str], program: list[str]) -> Table:
    table = Table(title=f"CPU seconds with {runs} runs in the study: median of {repeats}; bar {BAR}")
    for heading in ("command", "seconds"):
        table.add_column(heading)
    whole = folder / "whole"
    whole.mkdir()
    make_study(whole, runs)
    rows = [("python -c 'import torch'", [*python, "import torch"])]
    rows += [(f"edrbo {command}", [*program, *command.split()]) for command in COMMANDS]
    for title, words in rows:
        middle = median_seconds(words, whole, repeats)
        late = title.startswith("edrbo") and middle > BAR
        table.add_row(title, f"{middle:.2f}{' above the bar' if late else ''}")
    return table


def answers(folder: Path, repeats: int, python: list[str], program: list[str]) -> Table:
    table = Table(title=f"CPU seconds of answers from 19 runs: median of {repeats}")
    for heading in ("command", "seconds", "beside loading", "bar"):
        table.add_column(heading)
    studies = {"limit": folder / "limit", "tail": folder / "tail"}
    for kind, place in studies.items():
        place.mkdir()
        make_lab_study(place, "cvar:0.1" if kind == "tail" else "expected", kind == "limit")
    loading = median_seconds([*python, LOADING], studies["limit"], repeats)
    table.add_row("loading the engine", f"{loading:.2f}", "", "")
    for kind, command, bar in ANSWERS:
        middle = median_seconds([*program, *command.split()], studies[kind], repeats)
        apart = middle - loading
        title = f"edrbo {command.split()[0]}, {'a limit' if kind == 'limit' else 'the worst tenth'}"
        table.add_row(title, f"{middle:.2f}", f"{apart:.2f}", f"{bar:g}{' not met' if apart > bar else ''}")
    return table


def median_seconds(words: list[str], whole: Path, repeats: int) -> float:
    """Each time in a copy of the folder ``whole``."""
    times, work = [], whole.with_name("work")
    for _ in range(repeats):
        shutil.copytree(whole, work)
        times.append(cpu_seconds(words, work))
        shutil.rmtree(work)
    return statistics.median(times)


if __name__ == "__main__":
    main()
