"""The portfolio data set that is shipped, and the script that makes it."""

from __future__ import annotations

import csv
import gzip
import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from portfolio_simulator import COLUMNS, MARKET_SEED, TOLERANCE, Market, backtest, make_market

pytestmark = pytest.mark.numpy_numeric

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "src" / "edrbo/bench/problems/portfolio/data_files"


@pytest.fixture(scope="module")
def market() -> Market:
    return make_market(MARKET_SEED)


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_portfolio_data", ROOT / "research" / "make_portfolio_data.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def shipped() -> np.ndarray:
    with gzip.open(DATA / "portfolio.csv.gz", "rt", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == [*COLUMNS, "y"]
    return np.array(rows, dtype=np.float64)


def test_shipped_rows_are_remade(market: Market, shipped: np.ndarray) -> None:
    """Whole back-tests. Solving far more exactly moves y by some 5e-4, another machine's rounding by less."""
    rows = [7, 1500]
    again = backtest(shipped[rows, :5], market)
    np.testing.assert_allclose(again.values, shipped[rows, 5], rtol=0, atol=1e-4)


def test_shipped_inputs_are_the_seeded_ones(script: ModuleType, shipped: np.ndarray) -> None:
    assert np.array_equal(shipped[:, :5], script.make_inputs())
    assert shipped.shape == (3000, 6)
    assert np.all(np.isfinite(shipped))


def test_meta_data_describe_the_shipped_file(script: ModuleType, shipped: np.ndarray) -> None:
    meta = json.loads((DATA / "portfolio_meta.json").read_text())
    assert meta["rows"] == len(shipped)
    assert (meta["market_seed"], meta["input_seed"]) == (MARKET_SEED, script.INPUT_SEED)
    assert meta["solver"]["problems_solved"] == 3000 * 500
    assert meta["solver"]["tolerance"] == TOLERANCE
    assert set(meta["versions"]) == {"python", "numpy", "scipy"}


def test_an_interrupted_run_goes_on_where_it_stopped(
    script: ModuleType, market: Market, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs, short = script.make_inputs(5), market.first_days(1)
    sizes: list[int] = []

    def counted(chunk: np.ndarray, market: Market) -> Any:
        sizes.append(len(chunk))
        return backtest(chunk, market)

    def stop(rows: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(script, "backtest", counted)
    with pytest.raises(KeyboardInterrupt):
        script.run_chunks(inputs, short, tmp_path, 2, stop)
    assert sizes == [2]
    progress: list[int] = []
    values, capped_days = script.run_chunks(inputs, short, tmp_path, 2, progress.append)
    assert sizes == [2, 2, 1]
    assert progress == [2, 2, 1]
    assert not list(tmp_path.glob("*.part"))
    np.testing.assert_allclose(values, backtest(inputs, short).values, rtol=0, atol=1e-6)
    assert np.array_equal(capped_days, np.zeros(5))


def test_the_same_rows_give_the_same_bytes(script: ModuleType, tmp_path: Path) -> None:
    inputs, values = script.make_inputs(4), np.array([1.0, -2.123456789123, 3e-5, -17.0])
    for directory in ("first", "second"):
        script.write_data(tmp_path / directory, inputs, values, {"rows": 4})
    first, second = ((tmp_path / d / "portfolio.csv.gz").read_bytes() for d in ("first", "second"))
    assert first == second
    assert first[4:8] == bytes(4)  # the time stamp of the gzip header
    lines = gzip.decompress(first).decode().splitlines()
    assert lines[0] == "x1,x2,x3,c1,c2,y"
    assert lines[2].endswith(",-2.12345679")


def test_fingerprint_depends_on_the_inputs(script: ModuleType) -> None:
    assert script.fingerprint(script.make_inputs(8)) != script.fingerprint(script.make_inputs(16))
