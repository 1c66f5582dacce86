"""What grows with what: CPU seconds of a suggestion and of keeping records, for docs/guides/many-machines.md.

growth.py run      three of each in benchmarks/results/growth.csv; what is there is not run again
growth.py table    the rows of the page: medians of three (smallest … largest)

One thread, CPU seconds of the processes concerned, so that other programs on the machine do not count. One size varies,
the others are those of ``USUAL``. A suggestion is one at its dearest, with a refit of all hyper-parameters. Workers are
processes that ask and tell on one study in a file, with a model and, for the records alone, with random designs.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent))
import load

from edrbo import Optimizer, Space, Study
from edrbo.optimizer.outcome_model import StoredFit
from edrbo.surrogate.ensemble import fit_sizes

RESULTS = Path(__file__).parent / "results" / "growth.csv"
REPEATS = 3
COLUMNS = ("what", "n", "d", "d_c", "contexts", "workers", "method", "repeat", "cpu_seconds")
TELLS = 20  # of one measurement of a tell
STEPS_WITH_MODEL, STEPS_OF_RECORDS = 24, 120  # of all workers together


@dataclass(frozen=True)
class Size:
    """n observations, d designs, d_c contexts, ``contexts`` seen without an outcome, ``workers`` on one study."""

    n: int = 200
    d: int = 2
    d_c: int = 1
    contexts: int = 0
    workers: int = 1


USUAL = Size()
ROWS: dict[str, tuple[str, list[Size]]] = {
    "observations n": ("suggestion", [replace(USUAL, n=n) for n in (50, 200, 500, 1000)]),
    "design variables": ("suggestion", [replace(USUAL, d=d) for d in (2, 5, 10, 20)]),
    "context variables": ("suggestion", [replace(USUAL, d_c=d_c) for d_c in (1, 2, 3)]),
    "contexts seen": ("suggestion", [replace(USUAL, contexts=many) for many in (200, 10_000, 1_000_000)]),
    "contexts reported at once": ("context", [replace(USUAL, contexts=many) for many in (200, 10_000, 1_000_000)]),
    "a tell, observations n": ("tell", [replace(USUAL, n=n) for n in (50, 200, 500, 1000)]),
    "a step, workers": ("step", [replace(USUAL, n=STEPS_WITH_MODEL, workers=some) for some in (1, 2, 4)]),
    "a step without a model, workers": (
        "record",
        [replace(USUAL, n=STEPS_OF_RECORDS, workers=some) for some in (1, 2, 4)],
    ),
}


def cpu(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def space_of(size: Size) -> Space:
    return Space(
        design={f"x{i + 1}": (0, 1) for i in range(size.d)}, context={f"c{i + 1}": (0, 1) for i in range(size.d_c)}
    )


def evaluations(size: Size, n: int, rng: np.random.Generator) -> Iterator[tuple[dict[str, float], list[float], float]]:
    """``n`` designs, half of them near the best, with contexts and the outcomes of a smooth function with ripples."""
    for k in range(n):
        x = rng.random(size.d) if k % 2 else np.clip(0.4 + 0.15 * rng.standard_normal(size.d), 0, 1)
        c = rng.beta(2, 2, size.d_c)
        y = -float(((x - 0.2 - 0.4 * c.mean()) ** 2).mean()) + 0.05 * float(np.sin(9 * x + 3 * c[0]).mean())
        yield {f"x{i + 1}": float(value) for i, value in enumerate(x)}, c.tolist(), y


def reported(size: Size, n: int, seed: int) -> Optimizer:
    optimizer = Optimizer(space_of(size), seed=seed)
    for design, context, value in evaluations(size, n, np.random.default_rng([seed, n])):
        optimizer.tell(design, context, value)
    return optimizer


def suggestion(size: Size, repeat: int) -> float:
    """One ask with a refit that starts from the fit before it, as in a run."""
    before, n = fit_sizes(size.n)[-2:]
    optimizer = reported(size, n, repeat)
    if size.contexts:
        optimizer.observe_context(np.random.default_rng(repeat).beta(2, 2, (size.contexts, size.d_c)))
    training_data = optimizer._main.data()
    outcomes = torch.tensor(optimizer.observations.y[:before])
    earlier = optimizer.method.surrogate.fit(training_data.inputs(before)[:before], outcomes)
    stored = StoredFit(before, earlier.gp.hyper, before, training_data.digest(before))
    ready = Optimizer.of(optimizer.state, stored)
    assert ready.fit is not None  # else all fits since the first would be made
    return cpu(ready.ask)


def context(size: Size, repeat: int) -> float:
    optimizer = reported(size, 5, repeat)
    samples = np.random.default_rng(repeat).beta(2, 2, (size.contexts, size.d_c))
    return cpu(lambda: optimizer.observe_context(samples))


def tell(size: Size, repeat: int) -> float:
    """A tell on a study in a file, in the middle of ``TELLS`` of them."""
    with tempfile.TemporaryDirectory() as folder:
        study = Study.open(str(Path(folder) / "study.db"), space_of(size), seed=repeat)
        many = list(evaluations(size, size.n + TELLS, np.random.default_rng([repeat, size.n])))
        for design, met, value in many[: size.n]:
            study.tell(design, met, value)
        return cpu(lambda: [study.tell(design, met, value) for design, met, value in many[size.n :]]) / TELLS


def shared(size: Size, **settings: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        where = str(Path(folder) / "study.db")
        Study.open(where, load.SPACE, **settings)
        found = load.load(where, size.workers, size.n // size.workers, None)
    return float(found["cpu"]) / size.n


def step(size: Size, repeat: int) -> float:
    return shared(size, seed=repeat)


def record(size: Size, repeat: int) -> float:
    return shared(size, seed=repeat, initial=1_000_000)


MEASURES: dict[str, Callable[[Size, int], float]] = {
    "suggestion": suggestion,
    "context": context,
    "tell": tell,
    "step": step,
    "record": record,
}


def key(row: dict[str, str]) -> tuple[str, ...]:
    return (*(row[name] for name in COLUMNS[:6]), row["repeat"])


def run(path: Path) -> None:
    torch.set_num_threads(1)
    done = {key(row) for row in rows(path)}
    method = str(Optimizer(space_of(USUAL)).settings.method)
    for what, sizes in ROWS.values():
        for size in sizes:
            for repeat in range(REPEATS):
                asked: dict[str, object] = {"what": what, **asdict(size), "method": method, "repeat": repeat}
                if key({name: str(value) for name, value in asked.items()}) in done:
                    continue
                seconds = MEASURES[what](size, repeat)
                row = {**asked, "cpu_seconds": f"{seconds:.4g}"}
                add(path, row)
                done.add(key({name: str(value) for name, value in row.items()}))
                print(row, flush=True)


def rows(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def add(path: Path, row: dict[str, object]) -> None:
    """Append a row, under a heading where the file is new."""
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(row)


def words(seconds: list[float]) -> str:
    low, middle, high = min(seconds), statistics.median(seconds), max(seconds)
    if high < 0.1:
        return f"{1e3 * middle:.3g} ms ({1e3 * low:.3g} … {1e3 * high:.3g})"
    return f"{middle:.2g} s ({low:.2g} … {high:.2g})"


def table(path: Path) -> list[str]:
    """The rows of the page, as far as they were run."""
    kept: dict[tuple[str, ...], list[float]] = {}
    for row in rows(path):
        kept.setdefault(key(row)[:-1], []).append(float(row["cpu_seconds"]))
    lines = []
    for title, (what, sizes) in ROWS.items():
        cells = []
        for size in sizes:
            times = kept.get((what, *map(str, asdict(size).values())))
            if times is not None:
                (varied,) = [name for name in asdict(size) if len({getattr(one, name) for one in sizes}) > 1]
                cells.append(f"{getattr(size, varied):,}: {words(times)}")
        if cells:
            lines.append(f"| {title} | " + "<br>".join(cells) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("path", nargs="?", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    if arguments.what == "run":
        run(arguments.path)
    print("\n".join(table(arguments.path)))


if __name__ == "__main__":
    main()
