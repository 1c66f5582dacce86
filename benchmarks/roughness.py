"""How much rougher than fitted f must be taken to be, for the bound on what is left to gain to hold.

    nice -n 15 python benchmarks/roughness.py try benchmarks/results/calibration-runs.npz ROUGHNESS.jsonl --seeds 0:2
    python benchmarks/roughness.py table benchmarks/results/roughness.jsonl.gz

``try`` replays runs of ``calibration_runs.py`` and works out, at 20, 40, 100 and 200 outcomes and for each factor of
the lengthscales, the bound, the probabilities of being within 1 and 5 % of the range of the best, and what ten more
runs are said to bring. Numbers are shares of the range. It goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from arguments import seed_range
from calibration import DELTAS, Run, problem_of, read_judged, read_runs, replay
from calibration_runs import CHECKPOINTS

from edrbo.optimizer import stopping

FACTORS = (1.0, 0.8, 0.6, 0.4)


def try_factors(run: Run) -> Iterator[dict[str, Any]]:
    """One line for each checkpoint and factor."""
    name, share, seed, _ = run
    problem = problem_of(name, share)
    unit = problem.value_range
    for n, optimizer in replay(*run, CHECKPOINTS):
        for factor in FACTORS:
            stopping.ROUGHER = factor
            answer = optimizer.recommend(ball=0.0)
            yield {
                **{"problem": name, "noise": share, "seed": seed, "outcomes": n, "factor": factor},
                "regret": _short(problem.regret(np.array(list(answer.design.values()))) / unit),
                "bound": _short(answer.left_to_gain / unit),
                "within": [_short(answer.probability_best_within(delta * unit)) for delta in DELTAS],
                "ten more": _short(answer.ten_more_runs / unit),
            }


def _short(number: Any) -> float:
    return float(f"{float(number):.4g}")


def print_table(lines: list[dict[str, Any]]) -> None:
    print(f"{len({(one['problem'], one['noise'], one['seed']) for one in lines})} runs\n")
    heads = ["lengthscales ×", "bound holds", "mean bound"]
    heads += [f"within {delta:.0%}: said, true at {n}" for delta in DELTAS for n in CHECKPOINTS]
    print("| " + " | ".join(heads) + " |\n|" + "---:|" * len(heads))
    for factor in sorted({one["factor"] for one in lines}, reverse=True):
        found = [one for one in lines if one["factor"] == factor]
        holds = np.mean([one["regret"] <= one["bound"] for one in found])
        cells = [f"{factor:g}", f"{holds:.1%}", f"{np.mean([one['bound'] for one in found]):.3f}"]
        for i, delta in enumerate(DELTAS):
            for n in CHECKPOINTS:
                here = [one for one in found if one["outcomes"] == n]
                said, true = ([one["within"][i] for one in here], [one["regret"] <= delta for one in here])
                cells.append(f"{np.mean(said):.0%}, {np.mean(true):.0%}")
        print("| " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    trying = commands.add_parser("try")
    trying.add_argument("runs", type=Path)
    trying.add_argument("lines", type=Path)
    trying.add_argument("--seeds", type=seed_range, default="0:2")
    showing = commands.add_parser("table")
    showing.add_argument("lines", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    done = read_judged(options.lines) if options.lines.exists() else []
    if options.command == "table":
        print_table(done)
        return
    known = {(one["problem"], one["noise"], one["seed"]) for one in done}
    for run in read_runs(options.runs):
        if run[2] in options.seeds and run[:3] not in known:
            lines = "".join(json.dumps(line) + "\n" for line in try_factors(run))
            with options.lines.open("a") as file:
                file.write(lines)


if __name__ == "__main__":
    main()
