"""Are the intervals true? Recommendations and predictions of stored runs, judged by the exact oracles.

    nice -n 15 python research/calibration.py judge RUNS JUDGED.jsonl [--part 0/1]
    python research/calibration.py table research/results/calibration.jsonl.gz

RUNS is a folder of ``calibration_runs.py``, or the packed file research/results/calibration-runs.npz (made by
``pack RUNS FILE``). ``judge`` tells the data of each run to an optimizer and asks it at 20, 40, 100 and 200 outcomes;
it writes one line a run (about 4 s each) and goes on where it was stopped. ``table`` makes the tables of
docs/calibration.md.
"""

from __future__ import annotations

import argparse
import gzip
import json
import warnings
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from arguments import seed_range
from calibration_runs import CHECKPOINTS, EVALUATIONS, optimizer_of
from calibration_tables import print_tables

from edrbo import Optimizer
from edrbo.bench import problems
from edrbo.bench.problems.oracle.shift import with_noise
from edrbo.bench.problems.problem import Problem
from edrbo.errors import ImplausibleWarning
from edrbo.streams import stream

RANDOM = 40  # designs anywhere, besides the recommended one
OUTCOMES = 2_000  # drawn to see how many fall into the interval of a single one
LATER = 10  # outcomes after which the recommendation is looked at again
DELTAS = (0.01, 0.05)  # of the range: how probable is it that nothing is better by more?
FIGURES = 5

Run = tuple[str, float, int, Any]  # problem, noise, seed, designs


def judge(name: str, share: float, seed: int, designs: Any) -> dict[str, Any]:
    """One run (200 × d_x): what was answered at the checkpoints, and what is true."""
    problem = problem_of(name, share)
    looks: dict[int, dict[str, Any]] = {}
    later: dict[int, int] = {n + LATER: n for n in CHECKPOINTS if n + LATER <= len(designs)}
    for n, optimizer in replay(name, share, seed, designs, {*CHECKPOINTS, *later}):
        if n in CHECKPOINTS:
            looks[n] = _look(optimizer, problem, name, seed)
        else:
            x_then = np.array(list(optimizer.recommend(radius=0.0).design.values()))
            looks[later[n]]["regret later"] = float(problem.regret(x_then))
    record = {"problem": name, "noise": share, "seed": seed, "range": problem.value_range}
    return {**record, "looks": {str(n): _rounded(look) for n, look in looks.items()}}


def replay(name: str, share: float, seed: int, designs: Any, stops: Collection[int]) -> Iterator[tuple[int, Optimizer]]:
    """The optimizer of a run after each number of outcomes in ``stops``."""
    problem = problem_of(name, share)
    contexts = problem.sample_contexts(EVALUATIONS, stream(seed, "contexts", name))
    optimizer = optimizer_of(problem, seed)
    for t, (x, c) in enumerate(zip(designs, contexts[: len(designs)], strict=True)):
        y = float(problem.observe(x, c, stream(seed, "observation noise", name, t)))
        design = dict(zip(optimizer.space.design_names, x.tolist(), strict=True))
        with warnings.catch_warnings():  # nobody typed these
            warnings.simplefilter("ignore", ImplausibleWarning)
            optimizer.tell(design, c.tolist(), y)
        if t + 1 in stops:
            yield t + 1, optimizer


@cache
def problem_of(name: str, share: float) -> Problem:
    """Looking for its optimum takes a second."""
    base = problems.get(name)
    return with_noise(base, share * base.value_range)


def _look(optimizer: Optimizer, problem: Problem, name: str, seed: int) -> dict[str, Any]:
    answer = optimizer.recommend(radius=0.0)  # no worst case, which takes time and is not judged
    x = np.array(list(answer.design.values()))
    y = problem.observe(
        np.broadcast_to(x, (OUTCOMES, problem.d_x)),
        problem.sample_contexts(OUTCOMES, stream(seed, "calibration contexts", name)),
        stream(seed, "calibration noise", name),
    )
    anywhere = stream(seed, "calibration designs", name).random((RANDOM, problem.d_x))
    posterior = optimizer.predict(anywhere)
    half = 0.5 * (posterior.upper - posterior.lower)
    return {
        "truth": float(problem.expected(x)),
        "expected": answer.expected,
        "interval": answer.interval,
        "parts": list(answer.interval_parts.values()),
        "outcome inside": float(np.mean((y >= answer.outcome_interval[0]) & (y <= answer.outcome_interval[1]))),
        "regret": float(problem.regret(x)),
        "left to gain": answer.optimality_gap,
        "within": [answer.probability_best_within(delta * problem.value_range) for delta in DELTAS],
        "ten more": answer.expected_improvement_10,
        "is_extrapolation": answer.is_extrapolation,
        "beats_observations": answer.beats_observations,
        "random off": np.round((problem.expected(anywhere) - posterior.expected) / half, 3).tolist(),
        "random half": float(half.mean()),
    }


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(part) for part in value]
    if isinstance(value, bool) or not isinstance(value, float | np.floating):
        return bool(value) if isinstance(value, np.bool_) else value
    return float(f"{value:.{FIGURES}g}")


def read_runs(source: Path) -> Iterator[Run]:
    """From a folder of runs, or from the packed file; seeds first."""
    if source.is_dir():
        names = sorted(path for path in source.glob("*.npz") if ".part" not in path.name)
        found = [(*path.stem.rsplit("-", 2), path) for path in names]
        for name, share, seed, path in sorted(found, key=lambda one: int(one[2])):
            yield name, float(share), int(seed), np.load(path)["x"]
        return
    with np.load(source) as packed:
        for key in sorted(packed.files, key=lambda key: int(key.rsplit("-", 1)[1])):
            name, share, seed = key.rsplit("-", 2)
            yield name, float(share), int(seed), packed[key].astype(np.float64)


def pack(source: Path, target: Path) -> None:
    """The designs to single precision; contexts, noise and so the outcomes follow from problem and seed."""
    parts = {f"{name}-{share:g}-{seed}": x.astype(np.float32) for name, share, seed, x in read_runs(source)}
    np.savez_compressed(target, **parts)  # type: ignore[arg-type]


def read_judged(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        return [json.loads(line) for line in file]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    judging = commands.add_parser("judge")
    judging.add_argument("runs", type=Path)
    judging.add_argument("judged", type=Path)
    judging.add_argument("--part", default="0/1", help="i/n: every n-th run, beginning with the i-th")
    judging.add_argument("--seeds", type=seed_range, default="0:10")
    packing = commands.add_parser("pack")
    packing.add_argument("runs", type=Path)
    packing.add_argument("packed", type=Path)
    showing = commands.add_parser("table")
    showing.add_argument("judged", type=Path)
    showing.add_argument("--seeds", type=seed_range, default="0:10")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.command == "pack":
        pack(options.runs, options.packed)
        return
    if options.command == "table":
        print_tables([one for one in read_judged(options.judged) if one["seed"] in options.seeds])
        return
    index, count = map(int, options.part.split("/"))
    done = read_judged(options.judged) if options.judged.exists() else []
    known = {(one["problem"], one["noise"], one["seed"]) for one in done}
    todo = [run for run in read_runs(options.runs) if run[2] in options.seeds]
    for run in todo[index::count]:
        if run[:3] not in known:
            line = json.dumps(judge(*run))
            with options.judged.open("a") as file:
                file.write(line + "\n")


if __name__ == "__main__":
    main()
