"""CPU seconds of every command that keeps records, beside importing torch: user and system, in processes of their own.

    python benchmarks/commands.py [--runs 500] [--repeats 3]

The study has ``--runs`` runs, told with a context each. The bar is 0.8 s (issues 13 and 16).
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


def make_study(folder: Path, runs: int) -> None:
    from edrbo.space import Space
    from edrbo.study import Study
    from edrbo.study.toml_file import write_toml

    space = Space({"speed": (1.0, 9.0), "kind": ["plain", "glossy"]}, {"humidity": (0.0, 1.0)})
    study = Study.open(folder / "coating.db", space)
    write_toml(folder / "coating.toml", "coating.db", "coating", study.settings)
    table = folder / "runs.csv"
    rows = (f"pending,{1 + 8 * k / runs},plain,,\n" if k < 2 else told(k, runs) for k in range(runs))
    table.write_text("status,speed,kind,humidity,value\n" + "".join(rows))
    from edrbo.study.csv_import import import_file

    import_file(study, table)
    (folder / "seen.csv").write_text("humidity\n" + "0.25\n0.75\n" * 20)
    (folder / "table.csv").write_text(
        "speed,kind,humidity,value\n" + "".join(f"{k % 9},glossy,0.5,{k}\n" for k in range(1, 9))
    )


def told(k: int, runs: int) -> str:
    return f"told,{1 + 8 * k / runs},{'plain' if k % 2 else 'glossy'},{(k * 0.618) % 1},{k % 17}\n"


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
    program = "import sys; from edrbo.cli import main; sys.argv[0] = 'edrbo'; main()"
    table = Table(title=f"CPU seconds with {options.runs} runs in the study: median of {options.repeats}; bar {BAR}")
    for heading in ("command", "seconds"):
        table.add_column(heading)
    with tempfile.TemporaryDirectory() as name:
        whole, work = Path(name) / "whole", Path(name) / "work"
        whole.mkdir()
        make_study(whole, options.runs)
        rows = [("python -c 'import torch'", [*python, "import torch"])]
        rows += [(f"edrbo {command}", [*python, program, *command.split()]) for command in COMMANDS]
        for title, words in rows:
            times = []
            for _ in range(options.repeats):
                shutil.copytree(whole, work)
                times.append(cpu_seconds(words, work))
                shutil.rmtree(work)
            middle = statistics.median(times)
            late = title.startswith("edrbo") and middle > BAR
            table.add_row(title, f"{middle:.2f}{' above the bar' if late else ''}")
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
