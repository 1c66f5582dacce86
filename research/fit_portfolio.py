"""Fit the surrogate of the shipped portfolio data and store it beside the data, with x* and the optima.

    python research/fit_portfolio.py

Run once after research/make_portfolio_data.py; takes about two minutes on one thread.
"""

from __future__ import annotations

import json
import time

from edrbo.bench.problems.portfolio.data import SHIPPED, read_portfolio_data
from edrbo.bench.problems.portfolio.problem import SHIPPED_FIT, make_record


def main() -> None:
    start = time.perf_counter()
    data = read_portfolio_data(SHIPPED)
    meta = json.loads(SHIPPED.with_name("portfolio_meta.json").read_text(encoding="utf-8"))
    record = {"seed": meta["market_seed"], **make_record(data, max_rows=len(data.outputs))}
    SHIPPED_FIT.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"{SHIPPED_FIT} written in {time.perf_counter() - start:.0f} s")
    print(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
