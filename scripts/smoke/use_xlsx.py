"""A study becomes a sheet and comes back exactly."""

from __future__ import annotations

from pathlib import Path

from common import a_study, run, values

file, copy = a_study(), Path("copy.toml")
run("export", "--exact", "runs.xlsx", "--study", str(file))
run("new", str(copy), "-d", "speed=1:9", "-c", "humidity=0:100")
run("import", "runs.xlsx", "--study", str(copy))
assert values(copy) == values(file) == [1 / 3, 1e-300, 2.5]
