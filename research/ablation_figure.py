"""The figure and the table of the ablation: ``python research/ablation_figure.py [RESULTS] [--out FILE]``.

RESULTS is a directory of ``edrbo bench run`` or an exported table, by default the one behind research/journal.md. The
statistic is the cumulative regret after the initial designs, relative to edrbo on the same seeds (see
:mod:`edrbo.bench.analysis.tables`).
"""

from __future__ import annotations

import argparse
from pathlib import Path

from matplotlib.figure import Figure

from edrbo import palette
from edrbo.bench.analysis.results import load_results
from edrbo.bench.analysis.tables import relative, relative_table

DOCS = Path(__file__).parents[1] / "docs"
REFERENCE = "edrbo"
GROUPS = {
    "radius": palette.BLUE,
    "prior": palette.VERMILION,
    "expert": palette.GREEN,
    "beta": palette.PURPLE,
    "integrated": palette.BLACK,
    "context_distribution": palette.SKY,
    "warped": palette.ORANGE,
}


def group(method: str) -> str:
    """The part of the method that is changed first."""
    return next((key for key in GROUPS if method.startswith(key)), "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("results", type=Path, nargs="?", default=DOCS / "results" / "ablation.csv.gz")
    parser.add_argument("--out", type=Path, default=DOCS / "pictures" / "ablation.png")
    options = parser.parse_args()
    results = load_results(options.results)
    methods = [method for method in results.methods if method != REFERENCE]
    found = {method: relative(results, "after", method, REFERENCE) for method in methods}
    places = [*GROUPS, ""]
    order = sorted(methods, key=lambda method: (places.index(group(method)), found[method].mean))
    print(relative_table(results, "after", REFERENCE, order).to_markdown())
    figure = Figure(figsize=(8.5, 0.36 * len(order) + 1.3), layout="constrained")
    axes = figure.subplots()
    for row, method in enumerate(reversed(order)):
        one, shade = found[method], GROUPS.get(group(method), palette.GRAY)
        axes.plot(list(one.ratios.values()), [row] * len(one.ratios), "o", color=shade, alpha=0.25, markersize=5, mew=0)
        axes.plot(one.interval, [row, row], color=shade, linewidth=2.5, solid_capstyle="round")
        axes.plot([one.mean], [row], "o", color=shade, markersize=9)
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
