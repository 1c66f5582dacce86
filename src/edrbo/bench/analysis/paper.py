"""Figure and tables in the layout of the paper, for a paper of one's own: methods in rows, five columns side by side,
and mean ± standard deviation over seeds of the cumulative regret, a panel a problem.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from edrbo.bench.analysis.figures import LINES, Size, label_panels, legend_below, plain_axes, problem_panels
from edrbo.bench.analysis.method_style import style
from edrbo.bench.analysis.results import Results
from edrbo.bench.analysis.stats import cumulative_regret, rank, summarize, title_of
from edrbo.bench.analysis.table import Entry, Table, TableRow, mean_entry, with_places
from edrbo.palette import LIGHT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = {
    "edrbo": "EDRBO",
    "sbo-kde": "SBO-KDE",
    "ucb": "UCB",
    "wdrbo": "WDRBO",
    "erbo": "ERBO",
    "drbo-kde": "DRBO-KDE",
    "stableopt": "StableOpt",
    "drbo-mmd": "DRBO-MMD",
    "drbo-mmd-minmax": "DRBO-MMD Minmax",
    "three-hump-camel": "Three-Hump Camel",
    "six-hump-camel": "Six-Hump Camel",
    "ackley": "Ackley",
    "hartmann": "Hartmann",
    "complicated-hartmann": "Complicated Hartmann",
    "modified-branin": "Modified Branin",
    "newsvendor": "Newsvendor",
    "portfolio-uniform": "Portfolio (Uniform)",
    "portfolio-normal": "Portfolio (Normal)",
}  # in the order of the paper
STATISTICS = ("final", "mean")
ACROSS = 5  # columns side by side
BAND = 0.12  # opacity: there are as many bands as methods
WIDTH = 7.0  # inches, of a text on two columns


def as_in_paper(results: Results, keep_order: bool = False) -> Results:
    """By the paper's names unless others are given, and with its methods first, in its order, unless that is kept."""
    methods = results.methods
    order = [name for name in NAMES if name in methods] + [name for name in methods if name not in NAMES]
    order = methods if keep_order else order
    runs = sorted(results.runs, key=lambda run: (results.problems.index(run.problem), order.index(run.method)))
    return replace(results, runs=tuple(runs), names={**NAMES, **results.names})


def paper_table(results: Results, statistic: str) -> str:
    """LaTeX of one statistic: best bold and second underlined in each column, the average rank last.

    Args:
        results: Runs; problems and methods stand in their order and under their names.
        statistic: One of ``STATISTICS``: after the last evaluation, or the mean over the steps.
    """
    columns = list(_columns(results, statistic))
    lines = [
        "% needs \\usepackage{booktabs} and \\usepackage{graphicx}",
        "\\begin{table*}[t]",
        "\\centering",
        f"\\caption{{{_caption(results, statistic)}}}\\label{{tab:{statistic}}}",
    ]
    for first in range(0, len(columns), ACROSS):
        block = columns[first : first + ACROSS]
        rows = tuple(
            TableRow(method, tuple(entries[j] for _, entries in block)) for j, method in enumerate(results.methods)
        )
        shown = Table("", tuple(name for name, _ in block), rows, corner="Method").named(results.label)
        lines += ["\\vspace{1em}"] * (first > 0)
        lines += ["\\resizebox{\\textwidth}{!}{%", *shown.to_latex().splitlines()[1:-1], "\\end{tabular}}"]
    return "\n".join([*lines, "\\end{table*}"]) + "\n"


def _columns(results: Results, statistic: str) -> Iterator[tuple[str, Sequence[Entry]]]:
    """Of each problem, then of the average rank, an entry a method."""
    cells = summarize(results, statistic)
    for problem in results.problems:
        found = [cells.get((problem, method)) for method in results.methods]
        yield problem, with_places(mean_entry(one.mean, one.std, one.seeds) if one else Entry() for one in found)
    ranks = rank(cells, results.problems, results.methods)
    if ranks.problems:
        pairs = zip(ranks.mean, ranks.std, strict=True)
        yield "Average rank", with_places(mean_entry(float(m), float(s), len(ranks.problems)) for m, s in pairs)


def _caption(results: Results, statistic: str) -> str:
    steps, seeds = len(results.runs[0].regret), len({run.seed for run in results.runs})
    what = {
        "final": f"cumulative regret after {steps} evaluations",
        "mean": f"cumulative regret, averaged over the evaluations after the initial designs up to the {steps}th",
    }[statistic]
    under = "" if results.goal == "expected" else f" ({title_of('final', results.goal)})".replace("%", "\\%")
    return (
        f"Mean $\\pm$ standard deviation over {seeds} seeds of the {what}{under}. The best result of each column is in "
        "bold, the second best underlined. The average rank is computed over all problems."
    )


def draw_paper(results: Results, size: Size | None = None) -> Figure:
    """Mean and standard deviation of the cumulative regret, a panel a problem; the rest is for its caption."""
    rows = -(-len(results.problems) // max(1, round(len(results.problems) ** 0.5)))
    figure, panels = problem_panels(results, size or (WIDTH, 1.6 * rows + 0.9))
    for axes, problem in zip(panels, results.problems, strict=True):
        top = 0.0
        for method in results.methods:
            runs = list(results.of(problem, method).values())
            if not runs:
                continue
            steps = min(len(run.regret) for run in runs)
            table = np.stack([cumulative_regret(run)[:steps] for run in runs])
            mean, spread = table.mean(axis=0), table.std(axis=0, ddof=1) if len(runs) > 1 else 0 * table[0]
            color, dashes = style(method, results.methods)
            at = np.arange(1, steps + 1)
            axes.plot(at, mean, color=color, linestyle=LINES[dashes], linewidth=1.2)
            axes.fill_between(at, mean - spread, mean + spread, color=color, alpha=BAND, linewidth=0)
            top = max(top, float((mean + spread).max()))
        axes.set_ylim(0.0, 1.03 * top or 1.0)
        plain_axes(axes, LIGHT)
        axes.tick_params(labelsize=7)
        axes.title.set_fontsize(9)
    label_panels(panels, "cumulative regret")
    legend_below(figure, results, LIGHT)
    return figure


def write_paper(
    results: Results,
    directory: Path,
    formats: Sequence[str] = ("pdf",),
    size: Size | None = None,
    keep_order: bool = False,
) -> list[Path]:
    """Write ``regret.pdf``, ``table-final.tex`` and ``table-mean.tex``; returns the files."""
    results = as_in_paper(results, keep_order)
    directory.mkdir(parents=True, exist_ok=True)
    figure = draw_paper(results, size)
    files = [directory / f"regret.{kind}" for kind in formats]
    for file in files:
        figure.savefig(file, dpi=300)
    for statistic in STATISTICS:
        files.append(directory / f"table-{statistic}.tex")
        files[-1].write_text(paper_table(results, statistic), encoding="utf-8")
    return files
