"""Portfolio problems: three settings of a trading policy, two market frictions, a back-test as the outcome.

f is a Gaussian-process fit of simulator evaluations. Which evaluations is part of the problem: the original
ones give the problem of the published comparison; the ones shipped with edrbo come from our own simulator and
are not comparable with published numbers. :attr:`Problem.data` says which.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

from edrbo.bench.problems.oracle.distributions import Product, clipped_normal, iid, uniform
from edrbo.bench.problems.portfolio.data import PortfolioData, data_path, read_portfolio_data, user_data_directory
from edrbo.bench.problems.portfolio.surrogate import D_X, PUBLISHED, PortfolioHyperparameters, PortfolioSurrogate
from edrbo.bench.problems.problem import Problem

SHIPPED_FIT = Path(__file__).parent / "data_files" / "portfolio.json"
CONTEXT_DISTRIBUTIONS: dict[str, Product] = {
    "portfolio-uniform": iid(uniform(), 2),
    "portfolio-normal": iid(clipped_normal(0.5, 0.2), 2),
}


def portfolio_uniform() -> Problem:
    return _current("portfolio-uniform")


def portfolio_normal() -> Problem:
    return _current("portfolio-normal")


def _current(name: str) -> Problem:
    path = data_path()
    stamp = path.stat() if path.exists() else None
    # A file that changes is another problem; reading a missing one raises the error that names it.
    return _portfolio(name, path, stamp.st_mtime_ns if stamp else 0)


@lru_cache(maxsize=8)
def _portfolio(name: str, path: Path, modified: int) -> Problem:
    surrogate, record, data = _surrogate(path, modified)
    landmark = record.get("x_star", {}).get(name)
    return Problem(
        name=name,
        description=f"Settings of a trading policy under random market frictions; data: {data}.",
        d_x=D_X,
        context_distribution=CONTEXT_DISTRIBUTIONS[name],
        objective=surrogate.objective,
        grid_objective=surrogate.over_grid,
        expectation=surrogate.expectation,
        landmark=tuple(landmark) if landmark else None,
        data=data,
    )


@lru_cache(maxsize=2)
def _surrogate(path: Path, modified: int) -> tuple[PortfolioSurrogate, dict[str, Any], str]:
    table = read_portfolio_data(path)
    record = fit_record(table)
    hyperparameters = PortfolioHyperparameters(
        **{**record["hyperparameters"], "lengthscales": tuple(record["hyperparameters"]["lengthscales"])}
    )
    return PortfolioSurrogate.of(table, hyperparameters), record, provenance(table, record)


def provenance(table: PortfolioData, record: dict[str, Any]) -> str:
    """Which data a portfolio problem stands on, for descriptions and results."""
    if table.original:
        return "original simulator evaluations (imported)"
    if table.shipped:
        return f"regenerated, seed {record['seed']}: not comparable with published numbers"
    return f"imported evaluations {table.fingerprint[:12]}: not comparable with published numbers"


def fit_record(table: PortfolioData) -> dict[str, Any]:
    """Hyper-parameters of a table, and the maximizers found with them where they are stored.

    The original table has the published ones, the shipped table has a file; any other is fitted once and the
    result kept in the user's data directory.
    """
    if table.original:
        return {"hyperparameters": asdict(PUBLISHED)}
    if table.shipped:
        return _read_record(SHIPPED_FIT)
    cache = user_data_directory() / f"portfolio-{table.fingerprint[:16]}.json"
    if cache.exists():
        with suppress(ValueError):  # a torn file is made again
            return _read_record(cache)
    record = make_record(table)
    with suppress(OSError):  # a read-only home only costs the fit again
        cache.parent.mkdir(parents=True, exist_ok=True)
        partial = cache.with_suffix(".partial")
        partial.write_text(json.dumps(record, indent=1), encoding="utf-8")
        partial.replace(cache)
    return record


def make_record(table: PortfolioData, max_rows: int = 1_000) -> dict[str, Any]:
    """Fit a table by maximum likelihood and find x* of both problems."""
    from edrbo.bench.problems.portfolio.surrogate import fit_portfolio_surrogate

    hyperparameters = fit_portfolio_surrogate(table, max_rows)
    surrogate = PortfolioSurrogate.of(table, hyperparameters)
    maximizers = {}
    optima = {}
    for name, context_distribution in CONTEXT_DISTRIBUTIONS.items():
        problem = Problem(name, "", D_X, context_distribution, surrogate.objective, surrogate.expectation)
        maximizers[name] = problem.x_star.tolist()
        optima[name] = problem.optimum
    return {
        "fingerprint": table.fingerprint,
        "hyperparameters": asdict(hyperparameters),
        "x_star": maximizers,
        "optimum": optima,
    }


def _read_record(path: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return record
