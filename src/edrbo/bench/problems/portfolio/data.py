"""Where the portfolio problems get their 3,000 simulator evaluations, and how such a file is checked.

In this order: the file named by ``EDRBO_PORTFOLIO_DATA``, a file taken in by ``edrbo bench portfolio
--import``, and the data set shipped with the package, which our own simulator made. A file has the columns
x1, x2, x3, c1, c2, y, where y is minus the annual excess return in percent.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from edrbo.bench.problems.oracle.distributions import Array
from edrbo.errors import InvalidValueError

COLUMNS = ("x1", "x2", "x3", "c1", "c2", "y")
ENVIRONMENT_VARIABLE = "EDRBO_PORTFOLIO_DATA"
SHIPPED = Path(__file__).parent / "data_files" / "portfolio.csv.gz"
# sha256 of the 3,000 evaluations the published runs used, rounded to six decimals.
ORIGINAL_FINGERPRINT = "b6017241bc7c85537f8cfa037c1349663ecfadb64f73dd72563e06f17a881823"
MIN_ROWS = 50
MAX_ROWS = 6_000


@dataclass(frozen=True, eq=False)
class PortfolioData:
    """Simulator evaluations: inputs (n, 5) in the unit cube, outputs (n,), and the identity of the table."""

    inputs: Array
    outputs: Array
    fingerprint: str
    shipped: bool

    @property
    def original(self) -> bool:
        return self.fingerprint == ORIGINAL_FINGERPRINT


def user_data_directory() -> Path:
    """The directory of this user's edrbo data, by the custom of the platform."""
    if sys.platform == "win32":
        root = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        root = Path.home() / "Library" / "Application Support"
    else:
        root = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return root / "edrbo"


def imported_path() -> Path:
    return user_data_directory() / "portfolio.csv"


def data_path() -> Path:
    """The file the portfolio problems stand on right now."""
    named = os.environ.get(ENVIRONMENT_VARIABLE)
    if named:
        return Path(named)
    return imported_path() if imported_path().exists() else SHIPPED


def read_portfolio_data(path: Path) -> PortfolioData:
    """Read and check a table; every complaint names the file and the row."""
    table = _read_table(path)
    outside = np.argwhere((table[:, :5] < 0) | (table[:, :5] > 1))
    if outside.size:
        row, column = outside[0]
        raise InvalidValueError(
            f"{path}: {COLUMNS[column]} is {table[row, column]:g} in data row {row + 1}, outside [0, 1].",
            "designs and contexts are coded to the unit cube",
        )
    if len(table) < MIN_ROWS or len(table) > MAX_ROWS:
        raise InvalidValueError(
            f"{path}: {len(table)} rows; between {MIN_ROWS} and {MAX_ROWS} are supported.",
            "the original file has 3,000",
        )
    if np.ptp(table[:, 5]) == 0:
        raise InvalidValueError(f"{path}: all values of y are equal.", "is this the right file?")
    return PortfolioData(table[:, :5], table[:, 5], fingerprint(table), path == SHIPPED)


def import_portfolio_data(source: Path) -> PortfolioData:
    """Check ``source`` and copy it to the user's data directory, where the problems find it."""
    data = read_portfolio_data(source)
    target = imported_path()
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(".partial")
    with partial.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(COLUMNS)
        writer.writerows(np.column_stack([data.inputs, data.outputs]).tolist())
    partial.replace(target)
    return data


def fingerprint(table: Array) -> str:
    """sha256 of the (n, 6) table rounded to six decimals: it knows the numbers, not how they were printed."""
    rounded = np.round(table, 6) + 0.0  # + 0.0 turns −0 into 0
    return hashlib.sha256(np.ascontiguousarray(rounded, dtype="<f8").tobytes()).hexdigest()


def _read_table(path: Path) -> Array:
    hint = f"a CSV file with the columns {','.join(COLUMNS)}"
    if not path.is_file():
        raise InvalidValueError(f"There is no file {path}.", hint)
    try:
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open(encoding="utf-8") as stream:
            rows = list(csv.reader(stream))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidValueError(f"{path} cannot be read as text: {error}.", hint) from error
    header = tuple(name.strip() for name in rows[0]) if rows else ()
    if set(header) != set(COLUMNS) or len(header) != len(COLUMNS):
        raise InvalidValueError(f"{path} starts with the columns {','.join(header)}.", hint)
    order = [header.index(name) for name in COLUMNS]
    table = np.empty((len(rows) - 1, len(COLUMNS)))
    for i, row in enumerate(rows[1:]):
        try:
            table[i] = [float(row[j]) for j in order]
        except (ValueError, IndexError):
            raise InvalidValueError(f"{path}: data row {i + 1} is not six numbers: {row}.", hint) from None
        if not np.isfinite(table[i]).all():
            raise InvalidValueError(f"{path}: data row {i + 1} has a value that is not finite: {row}.", hint)
    return table
