"""Runs kept in a CSV file, one a row: what is there is not run again."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np


def rows(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def add(path: Path, columns: Sequence[str], row: Mapping[str, object]) -> None:
    """Append a row, under a heading where the file is new."""
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(row)


def ratio_of(pairs: Sequence[np.ndarray], draws: int = 2000) -> tuple[float, float, float]:
    """Geometric mean over problems of the ratio of the means of two columns (a problem: runs × 2), with its 95 %
    interval, which resamples problems, and runs within them."""
    rng = np.random.default_rng(0)

    def once(groups: Sequence[np.ndarray]) -> float:
        return float(np.exp(np.mean([np.log(g[:, 0].mean() / g[:, 1].mean()) for g in groups])))

    drawn = []
    for _ in range(draws):
        groups = [pairs[i] for i in rng.integers(len(pairs), size=len(pairs))]
        drawn.append(once([g[rng.integers(len(g), size=len(g))] for g in groups]))
    return once(pairs), *np.quantile(drawn, [0.025, 0.975])
