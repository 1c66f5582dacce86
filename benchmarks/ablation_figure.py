"""The figure and the table of the ablation: ``python benchmarks/ablation_figure.py RESULTS [--out FILE]``.

RESULTS is a directory of ``edrbo bench run`` or an exported table. The statistic is the cumulative regret after the
initial designs; a variant is compared with edrbo on the same seeds by the ratio of the means of each problem, and over
problems by the geometric mean of the ratios. Intervals are 95 % percentile bootstrap intervals over seeds.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from edrbo import palette
from edrbo.bench.analysis.results import Results, load_results

REFERENCE = "edrbo"
DRAWS = 2000
GROUPS = {
    "radius": palette.BLUE,
    "prior": palette.VERMILION,
    "expert": palette.GREEN,
    "beta": palette.PURPLE,
    "integrated": palette.BLACK,
    "law": palette.SKY,
    "warped": palette.ORANGE,
}


def regrets(results: Results, problem: str, method: str, seeds: list[int]) -> np.ndarray:
    runs = results.of(problem, method)
    return np.array([runs[seed].regret[runs[seed].initial :].sum() for seed in seeds])


def compare(results: Results, method: str) -> tuple[dict[str, float], tuple[float, float, float]]:
    """Ratio of means by problem, and their geometric mean with its interval."""
    rng = np.random.default_rng(0)
    ratios, draws = {}, []
    for problem in results.problems:
        seeds = sorted(results.of(problem, method).keys() & results.of(problem, REFERENCE).keys())
        if not seeds:
            continue
        ours, theirs = regrets(results, problem, REFERENCE, seeds), regrets(results, problem, method, seeds)
        ratios[problem] = theirs.mean() / ours.mean()
        pick = rng.integers(len(seeds), size=(DRAWS, len(seeds)))
        draws.append(np.log(theirs[pick].mean(-1) / ours[pick].mean(-1)))
    center = float(np.exp(np.mean(np.log(list(ratios.values())))))
    low, high = np.exp(np.percentile(np.mean(draws, axis=0), [2.5, 97.5]))
    return ratios, (center, float(low), float(high))


def group(method: str) -> str:
    """The part of the method that is changed first."""
    return next((key for key in GROUPS if method.startswith(key)), "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--out", type=Path, default=Path("ablation.png"))
    options = parser.parse_args()
    results = load_results(options.results)
    methods = [method for method in results.methods if method != REFERENCE]
    found = {method: compare(results, method) for method in methods}
    places = [*GROUPS, ""]
    order = sorted(methods, key=lambda method: (places.index(group(method)), found[method][1][0]))
    print("| variant | " + " | ".join(results.problems) + " | geometric mean (95 %) |")
    print("|---|" + "---:|" * (len(results.problems) + 1))
    for method in order:
        ratios, (center, low, high) = found[method]
        cells = [f"{ratios[p]:.2f}" if p in ratios else "–" for p in results.problems]
        print(f"| {method} | " + " | ".join(cells) + f" | {center:.2f} ({low:.2f} … {high:.2f}) |")
    figure = Figure(figsize=(8.5, 0.36 * len(order) + 1.3), layout="constrained")
    axes = figure.subplots()
    for row, method in enumerate(reversed(order)):
        ratios, (center, low, high) = found[method]
        shade = GROUPS.get(group(method), palette.GRAY)
        axes.plot(list(ratios.values()), [row] * len(ratios), "o", color=shade, alpha=0.25, markersize=5, mew=0)
        axes.plot([low, high], [row, row], color=shade, linewidth=2.5, solid_capstyle="round")
        axes.plot([center], [row], "o", color=shade, markersize=9)
    axes.axvline(1.0, color=palette.GRAY, linewidth=1, zorder=0)
    axes.set_xscale("log")
    ticks = [0.25, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0, 8.0]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_yticks(range(len(order)), list(reversed(order)))
    axes.set_xlabel("regret after the initial designs, relative to edrbo (left is better; small dots: problems)")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(options.out, dpi=150)
    print(f"\nwrote {options.out}")


if __name__ == "__main__":
    main()
