"""Runs read back: from the journals of a directory, or from one compact table such as the published runs.

A compact table is a CSV file (.csv or .csv.gz) with the columns problem, method, seed, seconds, r1, …, rT, where r_t is
the regret of evaluation t, and where known simple and the robust regrets, and those of looks, GOAL@EVALUATIONS; under
another goal than the mean a column goal before them.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from edrbo.bench.problems.oracle.distributions import Array
from edrbo.bench.run.journal import Failure, Record, journal_paths, read_journal
from edrbo.bench.run.replicate import ROBUST_REGRETS
from edrbo.errors import EdrboError, InvalidValueError, UnknownNameError

AT = "@"  # between goal and number of evaluations in the name of a look
PUBLISHED = " (published)"  # added to the name of a method whose runs are not ours


@dataclass(frozen=True, eq=False)
class ReplicateRun:
    """A finished replicate. ``regret`` (T,) is instantaneous; ``seconds`` (T,) per suggestion, their mean if only the
    total is known; ``recommended`` holds the regrets of the recommended design by name, as far as known.
    """

    problem: str
    method: str
    seed: int
    regret: Array
    seconds: Array
    recommended: dict[str, float]
    initial: int = 5


@dataclass(frozen=True)
class FailedRun:
    problem: str
    method: str
    seed: int
    failure: Failure


@dataclass(frozen=True)
class Results:
    """``unfinished`` replicates have a journal without an end; ``headers`` are those of all journals.

    Regrets are those under ``goal``, as text. ``names`` are what tables and figures call problems and methods.
    """

    runs: tuple[ReplicateRun, ...]
    failures: tuple[FailedRun, ...] = ()
    unfinished: int = 0
    headers: tuple[dict[str, Any], ...] = field(default=(), repr=False)
    goal: str = "expected"
    names: Mapping[str, str] = field(default_factory=dict)

    def label(self, name: str) -> str:
        """What a table or figure calls a problem or a method; published runs keep their mark."""
        return self.names.get(name) or self.names.get(base_name(name), base_name(name)) + name[len(base_name(name)) :]

    @property
    def problems(self) -> list[str]:
        return list(dict.fromkeys(run.problem for run in self.runs))

    @property
    def methods(self) -> list[str]:
        return list(dict.fromkeys(run.method for run in self.runs))

    @property
    def looks(self) -> list[str]:
        """The names of all looks that some run has, by ``look_name``."""
        return list(dict.fromkeys(name for run in self.runs for name in run.recommended if AT in name))

    def of(self, problem: str, method: str) -> dict[int, ReplicateRun]:
        """The runs of a method on a problem, by seed."""
        return {run.seed: run for run in self.runs if (run.problem, run.method) == (problem, method)}

    def distinct(self, key: str) -> list[Any]:
        """The different values of a header entry, in order of appearance."""
        return [json.loads(text) for text in dict.fromkeys(json.dumps(header.get(key)) for header in self.headers)]


def look_name(goal: str, evaluations: int) -> str:
    return f"{goal}{AT}{evaluations}"


def load_results(path: Path) -> Results:
    """The results of a directory made by ``edrbo bench run``, or of a compact table."""
    results = _read_table(path) if path.is_file() else _read_directory(path)
    if not results.runs and not results.failures:
        raise EdrboError(f"{path} holds no finished replicate", "make some with edrbo bench run --out DIR")
    return replace(results, runs=tuple(_in_order(results.runs)))


def load_published(path: Path) -> Results:
    """A compact table of published runs; their methods are marked as published."""
    results = load_results(path)
    return replace(results, runs=tuple(replace(run, method=run.method + PUBLISHED) for run in results.runs))


def only_problems(results: Results, problems: Sequence[str]) -> Results:
    return replace(results, runs=tuple(run for run in results.runs if run.problem in problems))


def base_name(method: str) -> str:
    """The method of published runs, whose name is marked; any other as it is."""
    return method.removesuffix(PUBLISHED)


def choose(
    results: Results,
    problems: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    names: Mapping[str, str] | None = None,
) -> Results:
    """What a table or figure shows, in the order that is given; None: all, in their own order.

    Args:
        results: All runs.
        problems: Those to show.
        methods: Those to show; published runs of a method follow it.
        names: What to call problems and methods.
    """
    known = [*results.problems, *dict.fromkeys(map(base_name, results.methods))]
    for name in (*(problems or ()), *(methods or ()), *(names or ())):
        if name not in known:
            raise UnknownNameError(f"there are no runs of {name!r}", f"there are some of {', '.join(known)}")
    first, second = problems or results.problems, methods or list(dict.fromkeys(map(base_name, results.methods)))
    places = {(problem, method): (i, j) for i, problem in enumerate(first) for j, method in enumerate(second)}
    chosen = [run for run in results.runs if (run.problem, base_name(run.method)) in places]
    chosen.sort(key=lambda run: places[run.problem, base_name(run.method)])
    return replace(results, runs=tuple(chosen), names=dict(names or {}))


def _in_order(runs: Iterable[ReplicateRun]) -> list[ReplicateRun]:
    """The order of the registries, then of the alphabet."""
    from edrbo.bench.run.plugin import method_names, problem_names

    problems, methods = problem_names(), method_names()

    def place(name: str, known: list[str]) -> tuple[int, str]:
        return (known.index(name) if name in known else len(known), name)

    return sorted(runs, key=lambda run: (place(run.problem, problems), place(run.method, methods), run.seed))


def _read_directory(directory: Path) -> Results:
    records = [record for path in journal_paths(directory) if (record := read_journal(path)) is not None]
    failed = [
        FailedRun(r.header["problem"], r.header["method"], r.header["seed"], r.failure) for r in records if r.failure
    ]
    finished = tuple(_run(record) for record in records if record.result is not None)
    unfinished = len(records) - len(failed) - len(finished)
    headers = tuple(record.header for record in records)
    return Results(finished, tuple(failed), unfinished, headers, _goal(headers, directory))


def _goal(headers: Sequence[dict[str, Any]], directory: Path) -> str:
    """The one goal of all journals: regrets under different ones are not to be compared."""
    found = list(dict.fromkeys(header["settings"].get("goal", "expected") for header in headers))
    if len(found) > 1:
        raise EdrboError(f"{directory} holds runs under different goals: {', '.join(found)}", "keep them apart")
    return found[0] if found else "expected"


def _run(record: Record) -> ReplicateRun:
    header, result = record.header, record.result
    assert result is not None
    return ReplicateRun(
        header["problem"],
        header["method"],
        header["seed"],
        np.array([one.regret for one in record.evaluations]),
        np.array([one.seconds for one in record.evaluations]),
        {
            "simple": result.simple_regret,
            **result.robust_regret,
            **{look_name(look.goal, look.evaluations): look.regret for look in result.looks},
        },
        header["settings"]["initial"],
    )


def _read_table(path: Path) -> Results:
    try:
        content = path.read_bytes()
        text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
        rows = list(csv.DictReader(StringIO(text)))
        goal = rows[0].get("goal", "expected") if rows else "expected"
        return Results(tuple(_table_run(row) for row in rows), goal=goal)
    except (OSError, EOFError, KeyError, TypeError, ValueError) as problem:
        raise InvalidValueError(
            f"{path} is not a table of runs: {type(problem).__name__} {problem}",
            "a CSV file with the columns problem,method,seed,seconds,r1,r2,…",
        ) from None


def _table_run(row: dict[str, str]) -> ReplicateRun:
    regret = np.array([float(row[f"r{t}"]) for t in range(1, 1 + sum(name[1:].isdigit() for name in row))])
    kinds = ("simple", *ROBUST_REGRETS, *(name for name in row if AT in name))
    known = {name: float(row[name]) for name in kinds if row.get(name)}
    seconds = np.full(len(regret), float(row["seconds"]) / max(1, len(regret)))
    return ReplicateRun(row["problem"], row["method"], int(row["seed"]), regret, seconds, known)


def export(results: Results, path: Path) -> None:
    """Write the compact table of all finished runs, seven digits each."""
    steps = max(len(run.regret) for run in results.runs)
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    kinds = ("simple", *ROBUST_REGRETS, *results.looks)
    goal = {} if results.goal == "expected" else {"goal": results.goal}
    writer.writerow([*goal, "problem", "method", "seed", "seconds", *kinds, *(f"r{t}" for t in range(1, steps + 1))])
    for run in results.runs:
        if len(run.regret) != steps:
            raise InvalidValueError("runs of different lengths do not fit one table", "export them apart")
        values = [run.seconds.sum(), *(run.recommended.get(kind, np.nan) for kind in kinds), *run.regret]
        numbers = ["" if np.isnan(value) else f"{value:.7g}" for value in values]
        writer.writerow([*goal.values(), run.problem, run.method, run.seed, *numbers])
    content = text.getvalue().encode()
    # No time stamp inside: the same results give the same file.
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
