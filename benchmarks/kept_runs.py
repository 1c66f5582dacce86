"""Runs kept in a CSV file, one a row: what is there is not run again."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path


def rows(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def add(path: Path, columns: Sequence[str], row: Mapping[str, object]) -> None:
    """Append a row, under a heading where the file is new."""
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, columns)
        if new:
            writer.writeheader()
        writer.writerow(row)
