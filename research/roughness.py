"""How much rougher than fitted f must be taken to be, for the bound on what is left to gain to hold.

    python research/roughness.py table research/results/roughness.jsonl.gz

A line is a run at 20, 40, 100 or 200 outcomes and a factor of the lengthscales: the bound, the probabilities of being
within 1 and 5 % of the range of the best, and what ten more runs are said to bring, as shares of the range. They were
made by commit 42d7819 from the runs of ``calibration_runs.py``; the factor, 0.6, is not to be chosen from outside.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from calibration import DELTAS, read_judged
from calibration_runs import CHECKPOINTS


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
    commands = parser.add_subparsers(required=True)
    commands.add_parser("table").add_argument("lines", type=Path)
    print_table(read_judged(parser.parse_args().lines))


if __name__ == "__main__":
    main()
