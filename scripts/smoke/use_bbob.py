"""A problem of the bbob family, run and tabled."""

from __future__ import annotations

from common import run

run("bench", "run", "--smoke", "--problems", "bbob-f08-2+1-1", "--methods", "edrbo", "--out", "out", "--workers", "1")
assert "bbob-f08-2+1-1" in run("bench", "table", "out")
