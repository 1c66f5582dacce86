"""The picture of all rules that were tried: ``python research/frontier.py [--out FILE]``.

Each rule beside the default, on the problems and seeds that both were run on (no noise, the mean, 100 evaluations; of
the rules that have runs of 200 alone, those): how much cumulative regret it pays, and how many more of its runs end
more than 5 % of the range below the best. Rules of fewer than eight common runs are left out.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from kept_runs import rows
from matplotlib.figure import Figure
from trials import STUCK

from edrbo import palette

RESULTS = Path(__file__).parent / "results"
FILES = ("trials.csv", "trials-2.csv")
DEFAULT = "mean-1.5"
FEWEST = 8
LABELS = {
    "base": "the paper's",
    "mean-1": "β = 1",
    "mean-2": "β = 2",
    "identify": "identify",
    "mean-1.5 + hole within a fifth": "looks for a fifth of the regret",
    "restless-1.5/8": "restless",
    "drawn beta 0.75 + 0.75": "β drawn",
    "mean-1.5 + hole at squares": "looks at squares",
    "spread40:mean-1.5": "scale from outcomes far apart (one run of 20)",
}


@dataclass(frozen=True)
class Place:
    """Of a rule: the ratio of cumulative regrets, stuck runs more than the default's in a hundred, common runs."""

    rule: str
    ratio: float
    stuck: float
    runs: int


def places() -> list[Place]:
    found: dict[str, Place] = {}
    for file in FILES:
        for size in ("100", "200"):
            kept = [
                row
                for row in rows(RESULTS / file)
                if (row["noise"], row["goal"], row["evaluations"]) == ("0.0", "expected", size)
            ]
            by_rule = {rule: {(r["problem"], r["seed"]): r for r in kept if r["rule"] == rule} for rule in _rules(kept)}
            for rule, runs in by_rule.items():
                common = sorted(runs.keys() & by_rule.get(DEFAULT, {}).keys())
                if rule != DEFAULT and len(common) >= FEWEST and rule not in found:
                    found[rule] = _place(rule, [(runs[key], by_rule[DEFAULT][key]) for key in common], f"at {size}")
    return list(found.values())


def _rules(kept: list[dict[str, str]]) -> list[str]:
    return list(dict.fromkeys(row["rule"] for row in kept))


def _place(rule: str, pairs: list[tuple[dict[str, str], dict[str, str]]], look: str) -> Place:
    names = sorted({one["problem"] for one, _ in pairs})
    logs = []
    for name in names:
        both = np.array([[float(run["cumulative"]) for run in pair] for pair in pairs if pair[0]["problem"] == name])
        logs.append(np.log(both[:, 0].mean() / both[:, 1].mean()))
    stuck = [sum(float(pair[k][look]) > STUCK for pair in pairs) for k in (0, 1)]
    return Place(rule, float(np.exp(np.mean(logs))), 100 * (stuck[0] - stuck[1]) / len(pairs), len(pairs))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "docs" / "pictures" / "frontier.png")
    options = parser.parse_args()
    found = sorted(places(), key=lambda place: place.ratio)
    figure = Figure(figsize=(8.5, 5.0), layout="constrained")
    axes = figure.subplots()
    axes.axhline(0.0, color=palette.GRAY, linewidth=1, zorder=0)
    axes.axvline(1.0, color=palette.GRAY, linewidth=1, zorder=0)
    axes.fill_between([0.6, 1.0], -9, 0, color=palette.GREEN, alpha=0.12, linewidth=0)
    axes.text(0.61, -8.4, "would be better in both", color=palette.GREEN, fontsize=10)
    for place in found:
        size = 3.0 + 1.2 * place.runs**0.5
        axes.plot(place.ratio, place.stuck, "o", color=palette.BLUE, alpha=0.45, markersize=size, mew=0)
        if place.rule in LABELS:
            axes.annotate(
                LABELS[place.rule], (place.ratio, place.stuck), (6, 5), textcoords="offset points", fontsize=9
            )
        print(f"{place.rule}: {place.ratio:.2f}, {place.stuck:+.1f} in a hundred, {place.runs} runs")
    axes.plot(1.0, 0.0, "o", color=palette.VERMILION, markersize=11)
    axes.annotate("the default", (1.0, 0.0), (8, -14), textcoords="offset points", fontsize=10)
    axes.set_xscale("log")
    ticks = [0.7, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0, 4.0]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlim(0.6, 4.6)
    axes.set_xlabel("cumulative regret after the initial designs, relative to the default's (left is better)")
    axes.set_ylabel("stuck runs more than the default's, in a hundred")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(options.out, dpi=150)
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
