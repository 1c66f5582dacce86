"""Make the data set of the portfolio problems: 3,000 back-tests on the synthetic market.

    python research/make_portfolio_data.py

writes src/edrbo/bench/data/portfolio.csv.gz (x1, x2, x3, c1, c2, y) and portfolio_meta.json beside it. Takes
about a quarter of an hour on one thread. Chunks that are finished are kept in a work directory, so the
script can be stopped (Ctrl-C) and started again; the chunks of another version of the simulator are not used.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import portfolio_simulator
import scipy
from numpy.typing import NDArray
from portfolio_simulator import COLUMNS, MARKET_SEED, Backtest, Market, backtest, make_market
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from scipy.stats import qmc

Array = NDArray[np.float64]

N_ROWS = 3000
INPUT_SEED = 0
CHUNK_ROWS = 250
DIGITS = 9
DATA_DIRECTORY = (
    Path(__file__).resolve().parents[1] / "src" / "edrbo" / "bench" / "problems" / "portfolio" / "data_files"
)


def make_inputs(n: int = N_ROWS) -> Array:
    """The first ``n`` points of a scrambled Sobol sequence, (n, 5), rounded as they are stored."""
    sobol = qmc.Sobol(len(COLUMNS), scramble=True, seed=np.random.default_rng(INPUT_SEED))
    points = sobol.random_base2(max(1, (n - 1).bit_length()))[:n]
    return round_as_stored(points)


def round_as_stored(values: Array) -> Array:
    return np.array([float(f"{v:.{DIGITS}g}") for v in values.ravel()]).reshape(values.shape)


def fingerprint(inputs: Array) -> str:
    """Changes with the inputs and with the source of the simulator, and names the work directory."""
    digest = hashlib.sha256(inputs.tobytes())
    for module in (portfolio_simulator,):
        digest.update(Path(str(module.__file__)).read_bytes())
    return digest.hexdigest()[:16]


def run_chunks(
    inputs: Array, market: Market, work: Path, chunk_rows: int, advance: Callable[[int], None]
) -> tuple[Array, NDArray[np.int64]]:
    """Values (n,) and capped days (n,) of all inputs, chunk by chunk; chunks found in ``work`` are read."""
    work.mkdir(parents=True, exist_ok=True)
    values, capped_days = [], []
    for start in range(0, len(inputs), chunk_rows):
        chunk = inputs[start : start + chunk_rows]
        file = work / f"rows-{start:05d}-{start + len(chunk):05d}.npz"
        if not file.exists():
            result = backtest(chunk, market)
            _write_whole(file, _npz(result))
        with np.load(file) as stored:
            values.append(stored["values"])
            capped_days.append(stored["capped_days"])
        advance(len(chunk))
    return np.concatenate(values), np.concatenate(capped_days)


def write_data(directory: Path, inputs: Array, values: Array, meta: dict[str, object]) -> None:
    """The CSV, compressed without a time stamp so that the same rows give the same bytes, and its meta."""
    lines = [",".join((*COLUMNS, "y"))]
    table = np.column_stack([inputs, values])
    lines += [",".join(f"{v:.{DIGITS}g}" for v in row) for row in table]
    text = "\n".join(lines) + "\n"
    directory.mkdir(parents=True, exist_ok=True)
    _write_whole(directory / "portfolio.csv.gz", gzip.compress(text.encode(), compresslevel=9, mtime=0))
    _write_whole(directory / "portfolio_meta.json", (json.dumps(meta, indent=2) + "\n").encode())


def describe(n_rows: int, capped_days: NDArray[np.int64], market: Market) -> dict[str, object]:
    return {
        "description": "Back-tests on a synthetic market; a regenerated function, comparable across methods "
        "run on it, not with published numbers. y is minus the annual excess return in percent.",
        "command": "python research/make_portfolio_data.py",
        "market_seed": MARKET_SEED,
        "input_seed": INPUT_SEED,
        "rows": n_rows,
        "days": market.n_days,
        "assets": market.n_assets,
        "solver": {
            "tolerance": portfolio_simulator.TOLERANCE,
            "max_iterations": portfolio_simulator.MAX_ITERATIONS,
            "problems_solved": n_rows * market.n_days,
            "problems_at_iteration_cap": int(capped_days.sum()),
            "rows_with_a_capped_day": int(np.count_nonzero(capped_days)),
            "most_capped_days_of_a_row": int(capped_days.max()),
        },
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
        },
    }


def _npz(result: Backtest) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, values=result.values, capped_days=result.capped_days)
    return buffer.getvalue()


def _write_whole(file: Path, content: bytes) -> None:
    """Write beside the file and rename, so that a stop half-way leaves no half file."""
    part = file.with_name(f"{file.name}.part")
    part.write_bytes(content)
    os.replace(part, file)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=DATA_DIRECTORY, help="directory to write to")
    parser.add_argument("--work", type=Path, help="directory for finished chunks (default: a temporary one)")
    options = parser.parse_args()

    inputs = make_inputs()
    work = options.work or Path(tempfile.gettempdir()) / "edrbo-portfolio"
    work = work / fingerprint(inputs)
    market = make_market(MARKET_SEED)
    console = Console(stderr=True)
    console.print(f"Finished chunks are kept in {work}")
    columns = (TextColumn("Back-tests"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    try:
        with Progress(*columns, console=console) as progress:
            task = progress.add_task("", total=len(inputs))
            values, capped_days = run_chunks(
                inputs, market, work, CHUNK_ROWS, lambda rows: progress.advance(task, rows)
            )
    except KeyboardInterrupt:
        console.print("Stopped. Run the same command again to go on from the last finished chunk.")
        return 130
    write_data(options.out, inputs, values, describe(len(inputs), capped_days, market))
    console.print(f"Wrote {options.out / 'portfolio.csv.gz'}; {int(capped_days.sum())} problems hit the cap.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
