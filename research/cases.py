"""The real cases (examples/cases): edrbo beside what people would do instead.

    OMP_NUM_THREADS=1 python research/cases.py run [--seeds 0:10] [--evaluations 80] [--only CASE] [--out RUNS]
    python research/cases.py table [--out RUNS]
    python research/cases.py figure [--out RUNS]        writes docs/pictures/cases.png

RUNS is research/results/cases.csv unless reported otherwise. A row is one run: the case, the method, the seed, the
recommended design and its true value, the mean over the case's whole distribution of contexts. ``usual`` is what a
textbook says, ``ucb`` a Gaussian process that does not know of contexts, ``random`` the best of random designs on its
day; ``best`` a long search on the truth. What is there is not run again.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "cases"))

METHODS = ("edrbo-identify", "edrbo-mean", "edrbo", "ucb", "random")
COLUMNS = ("case", "method", "seed", "evaluations", "value", "design", "seconds")
SEARCH = {"solar": 3000, "arm": 400, "combustor": 60}  # looks at the truth, which cost differently
UNITS = {
    "solar": "income a day",
    "arm": "return",
    "combustor": "shares of limits, less is better",
}
RESULTS = Path(__file__).parent / "results" / "cases.csv"


def cases() -> list:
    import arm
    import combustor
    import solar

    return [solar.CASE, arm.CASE, combustor.CASE]


def rows(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def add(path: Path, *values: object) -> None:
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([COLUMNS, values] if new else [values])


def names(found: list[dict[str, str]]) -> list[str]:
    """The cases that were run, in the order of the page."""
    return [name for name in UNITS if any(row["case"] == name for row in found)]


def text(design: dict) -> str:
    return json.dumps({name: round(value, 5) for name, value in design.items()})


def run_all(path: Path, seeds: range, evaluations: int, only: str | None) -> None:
    from case import best, run

    chosen = [case for case in cases() if only in (None, case.name)]
    done = {(row["case"], row["method"], row["seed"]) for row in rows(path)}
    for seed in seeds:
        for case in chosen:
            for method in METHODS:
                if (case.name, method, str(seed)) in done:
                    continue
                begun = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # a simulator has surprises and no typing errors
                    design = run(case, method, evaluations, seed)
                seconds = time.process_time() - begun
                value = f"{case.mean(design):.6g}"
                add(path, case.name, method, seed, evaluations, value, text(design), f"{seconds:.2f}")
                print(case.name, method, seed, value, flush=True)
    for case in chosen:
        if (case.name, "usual", "") not in done:
            add(path, case.name, "usual", "", 0, f"{case.mean(case.usual):.6g}", text(dict(case.usual)), 0)
        if (case.name, "best", "") not in done:
            found = sorted(
                (row for row in rows(path) if row["case"] == case.name),
                key=lambda row: -case.sign * float(row["value"]),
            )
            tried = [json.loads(row["design"]) for row in found[:3]]
            design, value = best(case, tried, SEARCH[case.name])
            add(path, case.name, "best", "", SEARCH[case.name], f"{value:.6g}", text(dict(design)), 0)


def values_of(found: list[dict[str, str]], name: str) -> dict[str, np.ndarray]:
    """Method → true values of its recommendations in the case ``name``."""
    return {
        method: np.array([float(row["value"]) for row in found if (row["case"], row["method"]) == (name, method)])
        for method in (*METHODS, "best", "usual")
    }


def table(path: Path) -> str:
    """Mean ± standard deviation over seeds of the true value, and the mean share of the way from usual to best."""
    found = rows(path)
    lines = ["| | best there is | " + " | ".join(METHODS) + " | as usual |", "|---|" + "---:|" * (len(METHODS) + 2)]
    for name in names(found):
        values = values_of(found, name)
        (usual,), best = values["usual"], values["best"]  # which is missing until it has been searched for
        cells = [f"{best[0]:.4g}" if len(best) else "–"]
        for value in (values[method] for method in METHODS):
            share = f" ({(value.mean() - usual) / (best[0] - usual):.0%})" if len(best) else ""
            spread = float(f"{value.std(ddof=1):.2g}")
            cells.append(f"{value.mean():.4g} ± {spread:g}{share}")
        lines.append(f"| {name} | {' | '.join(cells)} | {usual:.4g} |")
    return "\n".join(lines)


def figure(path: Path, to: Path) -> None:
    """The true value of every recommendation, one panel a case, beside the usual design and the best there is."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    from edrbo.bench.analysis.method_style import style
    from edrbo.palette import GRAY, GRID

    found = rows(path)
    shown = names(found)
    lines = -(-len(shown) // 2)  # two panels beside each other can be read on a page, more cannot
    drawing, axes = pyplot.subplots(lines, 2, figsize=(6.8, 2.9 * lines), layout="constrained")
    for axis in axes.flat[len(shown) :]:
        axis.set_axis_off()
    for axis, name in zip(axes.flat, shown, strict=False):
        values = values_of(found, name)
        for place, method in enumerate(METHODS):
            color, _ = style(method, METHODS)
            spread = np.linspace(-0.18, 0.18, len(values[method]))
            axis.plot(place + spread, values[method], "o", ms=5, alpha=0.8, color=color)
            axis.plot([place - 0.28, place + 0.28], [np.mean(values[method])] * 2, color=color, lw=2)
        for line, dashes in (("best", "-"), ("usual", "--")):
            for value in values[line]:
                axis.axhline(value, color=GRAY, lw=1, ls=dashes)
        axis.set_title(f"{name} ({UNITS[name]})", fontsize=9)
        axis.set_xticks(range(len(METHODS)), METHODS, rotation=25, ha="right", fontsize=8)
        axis.grid(axis="y", color=GRID)
    title = "True value of the recommended design, one dot a seed; full line: the best there is, broken: as usual"
    drawing.suptitle(title, fontsize=9)
    drawing.savefig(to, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "table", "figure"])
    parser.add_argument("--seeds", default="0:10")
    parser.add_argument("--evaluations", type=int, default=80)
    parser.add_argument("--only", choices=list(UNITS), help="run this case and no other")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    if arguments.what == "run":
        first, last = map(int, arguments.seeds.split(":"))
        run_all(arguments.out, range(first, last), arguments.evaluations, arguments.only)
    if arguments.what == "figure":
        figure(arguments.out, Path(__file__).parents[1] / "docs" / "pictures" / "cases.png")
    print(table(arguments.out))


if __name__ == "__main__":
    main()
