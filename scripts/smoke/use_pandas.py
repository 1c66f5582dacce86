"""Runs as a data frame."""

from __future__ import annotations

import pandas
from common import some_runs

frame = some_runs().to_frame()
assert isinstance(frame, pandas.DataFrame)
assert list(frame["c"]) == [0.0, 0.25, 0.5, 0.75]
assert (frame["value"] == -((frame["x"] - 0.5) ** 2)).all()
