"""What giving the goal brings: runs of 100 evaluations on all problems, with the goal, with the mean only, and by the
paper's robust methods.

    OMP_NUM_THREADS=1 nice -n 15 python research/goals_evidence.py RUNS [--seeds 0:10] [--problems all] [--arms all]
        [--again]

An arm is the default with one of four goals, or one of four methods that ask by an idea of their own. Contexts, noise
and first designs are those of ``edrbo bench run`` for the same seed. Reach asks for the best mean there is, max E f, to
four digits.

One file a run, RUNS/PROBLEM/ARM/SEED.json: designs ``x``, ``outcomes``, and ``recommended`` designs by goal (what
``recommend(goal=…)`` gives on these data; of an arm with a goal its own alone), ``seconds`` of all suggestions, the
``code`` that asked and the one that ``answered``. What is there is not run again; with --again the designs and outcomes
of stored runs are reported anew and only the recommendations are made again, where other code had made them. Seeds come
first, so that a few seeds of everything are there early.
``research/goals_tables.py`` judges the runs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from arguments import problem_names, seed_range

import edrbo
from edrbo.bench import problems
from edrbo.bench.problems.problem import Problem
from edrbo.streams import stream

EVALUATIONS, INITIAL = 100, 5
GOALS = ("expected", "cvar", "robust", "reach")
METHODS = ("drbo-mmd", "drbo-kde", "wdrbo", "stableopt")
ARMS = (*GOALS, *METHODS)


def goal_of(name: str, problem: Problem) -> str:
    """The text of the goal called ``name`` on a problem."""
    return {"cvar": "cvar:0.1", "robust": "robust:0.1", "reach": f"reach:{problem.optimum:.4g}"}.get(name, name)


def run(name: str, arm: str, seed: int) -> dict[str, Any]:
    problem, optimizer = problems.get(name), optimizer_of(name, arm, seed)
    designs, outcomes, seconds = [], [], 0.0
    for t, c in enumerate(contexts_of(name, seed)):
        started = time.process_time()
        suggestion = optimizer.ask()
        seconds += time.process_time() - started
        x = np.array(list(suggestion.design.values()))
        y = float(problem.observe(x, c, stream(seed, "observation noise", name, t)))
        optimizer.tell(suggestion, list(map(float, c)), y)
        designs.append(x.tolist())
        outcomes.append(y)
    return {"x": designs, "outcomes": outcomes, "seconds": seconds, "code": code(), **answer(optimizer, name, arm)}


def again(name: str, arm: str, seed: int, record: dict[str, Any]) -> dict[str, Any]:
    """The record of a run with recommendations by this code."""
    optimizer = optimizer_of(name, arm, seed)
    for x, c, y in zip(record["x"], contexts_of(name, seed), record["outcomes"], strict=True):
        optimizer.tell(dict(zip(optimizer.space.design_names, x, strict=True)), list(map(float, c)), y)
    return record | answer(optimizer, name, arm)


def optimizer_of(name: str, arm: str, seed: int) -> edrbo.Optimizer:
    problem = problems.get(name)
    space = edrbo.Space(
        design={f"x{j + 1}": (0.0, 1.0) for j in range(problem.d_x)},
        context={f"c{k + 1}": (0.0, 1.0) for k in range(problem.d_c)},
    )
    if arm in METHODS:
        return edrbo.Optimizer(space, arm, seed=seed, initial=INITIAL)
    return edrbo.Optimizer(space, goal=goal_of(arm, problem), seed=seed, initial=INITIAL)


def contexts_of(name: str, seed: int) -> np.ndarray:
    return problems.get(name).sample_contexts(EVALUATIONS, stream(seed, "contexts", name))


def answer(optimizer: edrbo.Optimizer, name: str, arm: str) -> dict[str, Any]:
    """The designs that ``recommend`` gives, without what it says of them, which would take longer than the search."""
    problem = problems.get(name)
    found = {
        each: list(optimizer.recommend(goal=goal_of(each, problem)).design.values())
        for each in (GOALS if arm in ("expected", *METHODS) else (arm,))
    }
    return {"recommended": found, "answered": code()}


@cache
def code() -> str:
    """A digest of the package's sources: runs of different code are not to be mixed unseen."""
    root = Path(edrbo.__file__).parent
    parts = ("acquisition", "context", "optimizer", "surrogate", "records")
    digest = hashlib.sha256()
    for path in sorted(file for part in parts for file in (root / part).rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--seeds", type=seed_range, default="0:10")
    parser.add_argument("--problems", type=problem_names, default="all")
    parser.add_argument("--arms", default="all")
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    arms = list(ARMS) if options.arms == "all" else options.arms.split(",")
    for seed in options.seeds:
        for name in options.problems:
            for arm in arms:
                target = options.runs / name / arm / f"{seed}.json"
                stored = json.loads(target.read_text()) if target.exists() else None
                if options.again == (stored is None) or (stored and stored.get("answered") == code()):
                    continue
                target.parent.mkdir(parents=True, exist_ok=True)
                record = run(name, arm, seed) if stored is None else again(name, arm, seed, stored)
                partial = target.with_suffix(".part")
                partial.write_text(json.dumps(record))
                os.replace(partial, target)
                print(f"{name} {arm} {seed} {record['seconds']:.1f} s", flush=True)


if __name__ == "__main__":
    main()
