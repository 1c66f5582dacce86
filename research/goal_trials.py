"""Trials of other ways to ask and to recommend under goals, beside how it is or was done: tables of the journal.

    python research/goal_trials.py [research/results/goal-trials.csv]

A row a run: ``goal``, ``way``, ``beside`` (what it is compared with), ``problem``, ``seed``, and the regrets of both
under the goal as shares of its range over designs. The means are over problems of the means over seeds; a problem
counts as the same where these differ by less than a thousandth of the range.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from goals_tables import counts
from kept_runs import rows

FILE = Path(__file__).parent / "results" / "goal-trials.csv"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="?", default=FILE)
    found = rows(parser.parse_args().file)
    print("| goal | way | beside | runs | regret | the other's | better | same | worse |\n|---|---|---|" + "---:|" * 6)
    for goal, way, beside in dict.fromkeys((row["goal"], row["way"], row["beside"]) for row in found):
        some = [row for row in found if (row["goal"], row["way"], row["beside"]) == (goal, way, beside)]
        names = dict.fromkeys(row["problem"] for row in some)
        pairs = 1e3 * np.array(
            [
                np.mean([[float(r["regret"]), float(r["other"])] for r in some if r["problem"] == name], axis=0)
                for name in names
            ]
        )
        cells = [len(some), *(f"{mean:.1f}" for mean in pairs.mean(0)), *counts(pairs[:, 1] - pairs[:, 0])]
        print(f"| {goal} | {way} | {beside} | " + " | ".join(map(str, cells)) + " |")


if __name__ == "__main__":
    main()
