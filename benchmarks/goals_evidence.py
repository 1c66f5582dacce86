"""What giving the goal brings: runs of 100 evaluations on all problems, with the goal, with the mean only, and by the
paper's robust methods.

    OMP_NUM_THREADS=1 nice -n 15 python benchmarks/goals_evidence.py RUNS [--seeds 0:10] [--problems all] [--arms all]

An arm is ``edrbo`` with one of four goals, or one of four methods that ask by an idea of their own. Contexts, noise and
first designs are those of ``edrbo bench run`` for the same seed. Reach asks for the best mean there is, max E f, to
four digits.

One file a run, RUNS/PROBLEM/ARM/SEED.json: designs ``x``, ``outcomes``, and ``recommended`` designs by goal (what
``recommend(goal=…)`` gives on these data; of an arm with a goal its own alone), ``seconds`` of all suggestions, and the
``code``. What is there is not run again. Seeds come first, so that a few seeds of everything are there early.
``benchmarks/goals_tables.py`` judges the runs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

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
    problem = problems.get(name)
    space = edrbo.Space(
        design={f"x{j + 1}": (0.0, 1.0) for j in range(problem.d_x)},
        context={f"c{k + 1}": (0.0, 1.0) for k in range(problem.d_c)},
    )
    method, goal = (arm, "expected") if arm in METHODS else ("edrbo", goal_of(arm, problem))
    optimizer = edrbo.Optimizer(space, method, goal=goal, seed=seed, initial=INITIAL)
    contexts = problem.sample_contexts(EVALUATIONS, stream(seed, "contexts", name))
    designs, outcomes, seconds = [], [], 0.0
    for t, c in enumerate(contexts):
        started = time.process_time()
        suggestion = optimizer.ask()
        seconds += time.process_time() - started
        x = np.array(list(suggestion.design.values()))
        y = float(problem.observe(x, c, stream(seed, "observation noise", name, t)))
        optimizer.tell(suggestion, list(map(float, c)), y)
        designs.append(x.tolist())
        outcomes.append(y)
    recommended = {
        each: list(optimizer.recommend(goal=goal_of(each, problem)).design.values())
        for each in (GOALS if arm in ("expected", *METHODS) else (arm,))
    }
    return {"x": designs, "outcomes": outcomes, "recommended": recommended, "seconds": seconds, "code": code()}


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
    parser.add_argument("--seeds", default="0:10")
    parser.add_argument("--problems", default="all")
    parser.add_argument("--arms", default="all")
    options = parser.parse_args()
    torch.set_num_threads(1)
    everything = [*problems.names(), *problems.further_names()]
    chosen = everything if options.problems == "all" else options.problems.split(",")
    arms = list(ARMS) if options.arms == "all" else options.arms.split(",")
    for seed in range(*map(int, options.seeds.split(":"))):
        for name in chosen:
            for arm in arms:
                target = options.runs / name / arm / f"{seed}.json"
                if target.exists():
                    continue
                target.parent.mkdir(parents=True, exist_ok=True)
                record = run(name, arm, seed)
                partial = target.with_suffix(".part")
                partial.write_text(json.dumps(record))
                os.replace(partial, target)
                print(f"{name} {arm} {seed} {record['seconds']:.1f} s", flush=True)


if __name__ == "__main__":
    main()
