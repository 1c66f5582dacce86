"""Every table of numbers in the documentation says where its numbers are from, and that is in the repository."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from edrbo.bench.analysis.results import Results, load_results
from edrbo.bench.analysis.tables import regret_table, relative_table, render

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
COMPARISON = ["docs/results/regret.csv.gz"]

# Page and section: the runs its tables stand on.
RUNS = {
    "calibration.md: Every goal, on problems that nothing was chosen on": [
        "research/results/unseen.csv.gz",
        "research/results/unseen-0.2.csv.gz",
    ],
    "calibration.md: What was measured in 0.2": ["research/results/calibration.jsonl.gz"],
    "calibration.md: What is left to gain, in 0.2": [
        "research/results/calibration.jsonl.gz",
        "research/results/roughness.jsonl.gz",
    ],
    "cases.md: Real cases": ["research/results/cases.csv"],
    "cases.md: An arm that carries parts": ["research/results/cases-40.csv"],
    "goals.md: What was measured": ["docs/results/goals.csv", "research/results/goals-recommended.csv.gz"],
    "guides/many-machines.md: What grows with what": ["benchmarks/results/growth.csv"],
    "guides/outcomes.md: How sure a limit is": ["research/results/outcomes.csv"],
    "results/README.md: While regret counts": COMPARISON,
    "results/README.md: If only the design in the end counts": [
        *COMPARISON,
        "docs/results/identify-50.csv.gz",
        "docs/results/identify-100.csv.gz",
        "docs/results/identify-robust-50.csv.gz",
        "docs/results/identify-robust-100.csv.gz",
        "docs/results/goal-told.csv.gz",
        "docs/results/regret-before.csv.gz",
        "docs/results/identify-before-50.csv.gz",
        "docs/results/identify-before-100.csv.gz",
    ],
    "results/README.md: When the world changes": COMPARISON,
    "results/README.md: With noise": [
        "docs/results/noise.csv.gz",
        "docs/results/identify-noise-50.csv.gz",
        "docs/results/identify-noise-100.csv.gz",
    ],
    "results/README.md: Do I need this at all?": [*COMPARISON, "docs/results/instead.csv.gz"],
    "results/README.md: What an expert would build": ["docs/results/rivals.csv.gz"],
    "results/README.md: The portfolio on the original data": ["docs/results/original.csv.gz"],
    "results/tables.md: ": COMPARISON,
    "spaces.md: What a run costs": ["research/results/cost.csv"],
    "why.md: The ablation": ["docs/results/ablation.csv.gz"],
    "why.md: How the default was chosen": ["docs/results/warped.csv.gz", "docs/results/further.csv.gz"],
    "why.md: Journal: other rules for asking": ["research/results/trials.csv"],
    "why.md: The model itself": ["research/results/trials-2.csv"],
    "why.md: After the sixty": ["research/results/trials-3.csv"],
    "why.md: Optimism under other goals": ["research/results/trials-2.csv"],
    "why.md: The mean in every second step": ["research/results/goal-turns.csv"],
    "why.md: Which of two designs is recommended": ["research/results/goal-trials.csv"],
    "why.md: Other turns": ["research/results/goal-trials.csv"],
    "why.md: Batches": ["research/results/batches.csv"],
    "why.md: Stuck runs": [
        "research/results/stuck-complicated-hartmann-103.jsonl",
        "research/results/stuck-modified-branin-101.jsonl",
    ],
    "why.md: Targets": [*COMPARISON, "docs/results/default.csv.gz", "docs/results/original.csv.gz"],
    "why.md: Higher dimensions": ["research/results/high.csv.gz"],
}
# What a clock or a fixed seed says: the program that says it. There are no runs to keep.
PROGRAMS = {
    "goals.md: What was measured": ["benchmarks/goal_speed.py"],
    "lab-page.md: What is promised": ["tests/web/load.py"],
    "reliability.md: The attack": ["tests/attack/test_fuzz.py"],
    "reliability.md: Load": ["benchmarks/load.py", "benchmarks/commands.py", "tests/web/load.py"],
    "speed.md: Answers on the command line": ["benchmarks/commands.py"],
    "speed.md: One thread": ["benchmarks/run.py"],
    "speed.md: The default": ["benchmarks/suggestion_speed.py"],
    "speed.md: One EDRBO suggestion on ackley": ["benchmarks/run.py"],
    "speed.md: Every method at 200 observations, with a refit": ["benchmarks/run.py"],
    "speed.md: Larger things": ["benchmarks/run.py"],
    "speed.md: Compression does not move the maximizer": ["tests/test_acquisition.py"],
    "speed.md: The maximizer against BoTorch's": ["benchmarks/maximizer.py"],
    "theory.md: The numbers": ["scripts/draw_theory.py"],
}
# What is defined or worked out exactly, and the tests that hold it.
EXACT = {
    "cli.md: Exit codes": ["tests/cli/test_study_commands.py"],
    "problems.md: The problems": ["tests/conformance/test_problems.py"],
    "problems.md: Further problems": ["tests/conformance/test_problems.py"],
    "problems.md: Classic problems": ["tests/conformance/test_classic_problems.py"],
    "problems.md: Many designs": ["tests/conformance/test_high_problems.py"],
    "problems.md: Problems with a limit": ["tests/bench/test_limited_problems.py"],
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
                found.add(f"{page.relative_to(DOCS).as_posix()}: {section}")
            rows = []
    return found


def test_every_table_of_numbers_has_its_source() -> None:
    known = {**EXACT, **PROGRAMS, **RUNS}
    found = set().union(*(tables_of_numbers(page) for page in DOCS.rglob("*.md")))
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
    page = (DOCS / "results" / "tables.md").read_text(encoding="utf-8")
    text = render(load_results(ROOT / COMPARISON[0]), style="markdown", statistic="final")
    missing = [row for row in rows_of(text) if row not in page]
    assert missing == []


def test_the_table_of_the_ablation_is_that_of_its_runs() -> None:
    page = (DOCS / "why.md").read_text(encoding="utf-8")
    rows = rows_of(relative_table(load_results(DOCS / "results" / "ablation.csv.gz"), "after", "edrbo").to_markdown())
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
    page = (DOCS / "results" / "README.md").read_text(encoding="utf-8")
    numbers = program("scripts/numbers_in_docs.py", monkeypatch)
    runs = {
        name: load_results(DOCS / "results" / f"{name}.csv.gz") for name in ("regret", "noise", "instead", "rivals")
    }
    both = Results((*runs["regret"].runs, *runs["instead"].runs))
    tables = [
        numbers.recommendations(runs["regret"]),
        numbers.instead(runs["rivals"]),
        *(numbers.by_problem(both, numbers.INSTEAD, kind) for kind in ("final", "simple")),
        *(regret_table(runs[name], "final") for name in ("regret", "noise")),
        numbers.on_the_way(runs["regret"], numbers.planned_runs("identify")),
        numbers.reported_the_goal(runs["regret"], numbers.planned_runs("identify")),
        numbers.twice(numbers.two_states(runs["regret"])),
        numbers.on_the_way(runs["noise"], numbers.planned_runs("identify-noise")),
    ]
    assert [row for table in tables for row in rows_of(table.to_markdown()) if row not in page] == []


def test_the_table_of_growth_is_that_of_its_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    growth = program("benchmarks/growth.py", monkeypatch)
    kept = growth.table(growth.RESULTS)
    assert len(kept) == len(growth.ROWS)  # all were run
    page = (DOCS / "guides" / "many-machines.md").read_text(encoding="utf-8")
    assert [row for row in kept if row not in page] == []


def test_the_tables_of_higher_dimensions_are_those_of_their_runs() -> None:
    page, runs = (
        (DOCS / "why.md").read_text(encoding="utf-8"),
        load_results(ROOT / RUNS["why.md: Higher dimensions"][0]),
    )
    rows = [row for kind in ("after", "simple") for row in rows_of(relative_table(runs, kind, "mean").to_markdown())]
    assert [row for row in rows if row not in page] == []
