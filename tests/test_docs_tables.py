"""Every table of numbers in the documentation says where its numbers are from, and that is in the repository."""

from __future__ import annotations

import csv
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from edrbo.bench.analysis.results import Results, load_results
from edrbo.bench.analysis.tables import regret_table, relative_table, render

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
RESULTS = ROOT / "research" / "results"
PAGES = [*DOCS.rglob("*.md"), *(ROOT / "research").rglob("*.md")]
COMPARISON = ["research/results/regret.csv.gz"]

# Page and section: the runs its tables stand on.
RUNS = {
    "docs/calibration.md: Every goal, on problems that nothing was chosen on": [
        "research/results/unseen.csv.gz",
        "research/results/unseen-chances.csv.gz",
    ],
    "docs/calibration.md: Limits": ["research/results/unseen-limits.csv.gz"],
    "research/calibration.md: First table of unseen problems": [
        "research/results/unseen.csv.gz",
        "research/results/unseen-0.2.csv.gz",
    ],
    "research/calibration.md: What was measured in 0.2": ["research/results/calibration.jsonl.gz"],
    "research/calibration.md: What is left to gain, in 0.2": [
        "research/results/calibration.jsonl.gz",
        "research/results/roughness.jsonl.gz",
    ],
    "docs/cases.md: Real cases": ["research/results/cases.csv"],
    "docs/cases.md: An arm that carries parts": ["research/results/cases-40.csv"],
    "research/goals.md: Goals: what was measured": [
        "research/results/goals.csv",
        "research/results/goals-recommended.csv.gz",
    ],
    "docs/comparison.md: While regret counts": COMPARISON,
    "docs/comparison.md: Do I need this at all?": [
        *COMPARISON,
        "research/results/instead.csv.gz",
        "research/results/rivals.csv.gz",
    ],
    "docs/goals.md: What giving the goal brings": [
        "research/results/goals.csv",
        "research/results/goals-recommended.csv.gz",
    ],
    "docs/guides/many-machines.md: What grows with what": ["benchmarks/results/growth.csv"],
    "docs/guides/xopt.md: Xopt's own generator beside ours": ["research/results/xopt-contexts.csv"],
    "docs/guides/noise.md: Where the noise is not the same everywhere": ["research/results/noise-varies.csv"],
    "docs/guides/outcomes.md: How sure a limit is": ["research/results/outcomes.csv"],
    "research/comparison.md: While regret counts": COMPARISON,
    "research/comparison.md: If only the design in the end counts": [
        *COMPARISON,
        "research/results/identify-50.csv.gz",
        "research/results/identify-100.csv.gz",
        "research/results/identify-robust-50.csv.gz",
        "research/results/identify-robust-100.csv.gz",
        "research/results/goal-told.csv.gz",
        "research/results/regret-before.csv.gz",
        "research/results/identify-before-50.csv.gz",
        "research/results/identify-before-100.csv.gz",
    ],
    "research/comparison.md: When the world changes": COMPARISON,
    "research/comparison.md: With noise": [
        "research/results/noise.csv.gz",
        "research/results/identify-noise-50.csv.gz",
        "research/results/identify-noise-100.csv.gz",
    ],
    "research/comparison.md: Do I need this at all?": [*COMPARISON, "research/results/instead.csv.gz"],
    "research/comparison.md: What an expert would build": ["research/results/rivals.csv.gz"],
    "research/comparison.md: The portfolio on the original data": ["research/results/original.csv.gz"],
    "research/results/tables.md: ": COMPARISON,
    "research/journal.md: The ablation": ["research/results/ablation.csv.gz"],
    "research/journal.md: How the default was chosen": [
        "research/results/warped.csv.gz",
        "research/results/further.csv.gz",
    ],
    "research/journal.md: Journal: other rules for asking": ["research/results/trials.csv"],
    "research/journal.md: The model itself": ["research/results/trials-2.csv"],
    "research/journal.md: After the sixty": ["research/results/trials-3.csv"],
    "research/journal.md: Optimism under other goals": ["research/results/trials-2.csv"],
    "research/journal.md: The mean in every second step": ["research/results/goal-turns.csv"],
    "research/journal.md: Which of two designs is recommended": ["research/results/goal-trials.csv"],
    "research/journal.md: Other turns": ["research/results/goal-trials.csv"],
    "research/journal.md: Batches": ["research/results/batches.csv"],
    "research/journal.md: Stuck runs": [
        "research/results/stuck-complicated-hartmann-103.jsonl",
        "research/results/stuck-modified-branin-101.jsonl",
    ],
    "research/journal.md: Targets": [
        *COMPARISON,
        "research/results/default.csv.gz",
        "research/results/original.csv.gz",
    ],
    "research/journal.md: Higher dimensions": ["research/results/high.csv.gz"],
    "docs/speed.md: Many runs": ["benchmarks/results/scaling.csv"],
    "docs/speed.md: As good as exact?": ["benchmarks/results/many-runs.csv"],
}
# What a clock or a fixed seed says: the program that says it. There are no runs to keep.
PROGRAMS = {
    "research/goals.md: Goals: what was measured": ["benchmarks/goal_speed.py"],
    "docs/lab-page.md: What is promised": ["tests/web/load.py"],
    "docs/reliability.md: Load": ["benchmarks/load.py", "benchmarks/commands.py", "tests/web/load.py"],
    "docs/speed.md: On the command line": ["benchmarks/commands.py"],
    "docs/speed.md: Smaller things": ["benchmarks/scaling.py"],
    "docs/speed.md: What each feature adds": ["benchmarks/feature_speed.py"],
    "research/speed.md: Answers on the command line": ["benchmarks/commands.py"],
    "research/speed.md: One thread": ["benchmarks/run.py"],
    "research/speed.md: The default": ["benchmarks/suggestion_speed.py"],
    "research/speed.md: One EDRBO suggestion on ackley": ["benchmarks/run.py"],
    "research/speed.md: Every method at 200 observations, with a refit": ["benchmarks/run.py"],
    "research/speed.md: Larger things": ["benchmarks/run.py"],
    "research/speed.md: Compression does not move the maximizer": ["tests/test_acquisition.py"],
    "research/speed.md: The maximizer against BoTorch's": ["benchmarks/maximizer.py"],
    "docs/theory.md: The numbers": ["scripts/draw_theory.py"],
}
# What is defined or worked out exactly, and the tests that hold it.
EXACT = {
    "docs/published.md: After the last evaluation": ["tests/bench/test_paper.py"],
    "research/published.md: The mean over the steps": ["tests/bench/test_paper.py"],
    "docs/cli.md: Exit codes": ["tests/cli/test_study_commands.py"],
    "docs/problems.md: The problems": ["tests/conformance/test_problems.py"],
    "docs/problems.md: Further problems": ["tests/conformance/test_problems.py"],
    "docs/problems.md: Classic problems": ["tests/conformance/test_classic_problems.py"],
    "docs/problems.md: Many designs": ["tests/conformance/test_high_problems.py"],
    "docs/problems.md: Problems with a limit": ["tests/research/test_limited_problems.py"],
}


def tables_of_numbers(page: Path) -> set[str]:
    """Page and section of each table with at least three cells that begin with a number."""
    found, section, fenced, rows = set(), "", False, list[str]()
    for line in [*page.read_text(encoding="utf-8").splitlines(), ""]:
        fenced ^= line.startswith("```")
        if line.startswith("#") and not fenced:
            section = line.lstrip("# ")
        if line.startswith("|") and not fenced:
            rows.append(line)
        elif rows:
            cells = [cell.strip(" *") for row in rows[2:] for cell in row.strip("|").split("|")]
            if sum(re.match(r"(<u>)?[−-]?\.?\d", cell) is not None for cell in cells) >= 3:
                found.add(f"{page.relative_to(ROOT).as_posix()}: {section}")
            rows = []
    return found


def test_every_table_of_numbers_has_its_source() -> None:
    known = {**EXACT, **PROGRAMS, **RUNS}
    found = set().union(*(tables_of_numbers(page) for page in PAGES))
    named = {
        table: [key for key in known if table == key or table.startswith((f"{key}:", f"{key} ("))] for table in found
    }
    assert [table for table, keys in sorted(named.items()) if not keys] == []
    assert set(known) - {key for keys in named.values() for key in keys} == set()  # what is gone is not listed
    for paths in [*EXACT.values(), *PROGRAMS.values(), *RUNS.values()]:
        assert [path for path in paths if not (ROOT / path).is_file()] == []


def rows_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("|") and not line.startswith("|--")]


def test_the_tables_of_the_comparison_are_those_of_its_runs() -> None:
    page = (RESULTS / "tables.md").read_text(encoding="utf-8")
    text = render(load_results(ROOT / COMPARISON[0]), style="markdown", statistic="final")
    missing = [row for row in rows_of(text) if row not in page]
    assert missing == []


def test_the_table_of_the_ablation_is_that_of_its_runs() -> None:
    page = (ROOT / "research" / "journal.md").read_text(encoding="utf-8")
    rows = rows_of(relative_table(load_results(RESULTS / "ablation.csv.gz"), "after", "edrbo").to_markdown())
    assert [row for row in rows[1:] if row not in page] == []


def program(path: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A script of the repository, loaded as a module."""
    monkeypatch.setattr(sys, "path", [*sys.path])  # it may put its folder there
    name = Path(path).stem
    spec = importlib.util.spec_from_file_location(name, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


def test_the_tables_of_the_results_are_those_of_their_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    long, short = ((ROOT / folder / "comparison.md").read_text(encoding="utf-8") for folder in ("research", "docs"))
    numbers = program("scripts/numbers_in_docs.py", monkeypatch)
    runs = {name: load_results(RESULTS / f"{name}.csv.gz") for name in ("regret", "noise", "instead", "rivals")}
    both = Results((*runs["regret"].runs, *runs["instead"].runs))
    tables = [
        numbers.recommendations(runs["regret"]),
        numbers.instead(runs["rivals"]),
        *(numbers.by_problem(both, numbers.INSTEAD, kind) for kind in ("final", "simple")),
        *(regret_table(runs[name], "final") for name in ("regret", "noise")),
        numbers.on_the_way(runs["regret"], numbers.planned_runs("identify")),
        numbers.given_the_goal(runs["regret"], numbers.planned_runs("identify")),
        numbers.twice(numbers.two_states(runs["regret"])),
        numbers.on_the_way(runs["noise"], numbers.planned_runs("identify-noise")),
    ]
    rows = [row for table in tables for row in rows_of(table.to_markdown())]
    assert [row for row in rows if row not in long] == []
    assert [row for row in rows_of(short) if row not in rows] == []  # the page for readers has some of these tables


def test_the_table_of_growth_is_that_of_its_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    growth = program("benchmarks/growth.py", monkeypatch)
    kept = growth.table(growth.RESULTS)
    assert len(kept) == len(growth.ROWS)  # all were run
    page = (DOCS / "guides" / "many-machines.md").read_text(encoding="utf-8")
    assert [row for row in kept if row not in page] == []


def test_the_table_of_both_generators_is_that_of_its_runs() -> None:
    page = (DOCS / "guides" / "xopt.md").read_text(encoding="utf-8")
    with (RESULTS / "xopt-contexts.csv").open(newline="") as file:
        runs = list(csv.DictReader(file))
    wanted = []
    for name in dict.fromkeys(run["generator"] for run in runs):
        cells = []
        for context, kind in ((c, k) for c in ("drifts", "jumps") for k in ("mean_loss", "answer_short")):
            some = [float(run[kind]) for run in runs if (run["generator"], run["context"]) == (name, context)]
            assert len(some) == 10
            cells.append(f"{np.mean(some):.3f} ± {np.std(some, ddof=1) / np.sqrt(len(some)):.3f}")
        wanted.append(f"| {' | '.join(cells)} |")
    assert [row for row in wanted if row not in page] == []


def test_the_tables_of_higher_dimensions_are_those_of_their_runs() -> None:
    page, runs = (
        (ROOT / "research" / "journal.md").read_text(encoding="utf-8"),
        load_results(ROOT / RUNS["research/journal.md: Higher dimensions"][0]),
    )
    rows = [row for kind in ("after", "simple") for row in rows_of(relative_table(runs, kind, "mean").to_markdown())]
    assert [row for row in rows if row not in page] == []
