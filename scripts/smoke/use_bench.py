"""A benchmark in its smallest size, with every rival that another library brings."""

from __future__ import annotations

from common import run

METHODS = "edrbo,tpe,optuna-gp,lognei,expectation-nei"
run("bench", "run", "--smoke", "--problems", "newsvendor", "--methods", METHODS, "--out", "out", "--workers", "1")
table = run("bench", "table", "out")
assert all(name in table for name in METHODS.split(",")), table
