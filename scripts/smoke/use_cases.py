"""One experiment with each simulator of the real cases; the cases themselves are in the repository only."""

from __future__ import annotations

import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "cases"))

import arm
import combustor
import numpy as np
import pendulum
import solar

for case in (solar.CASE, pendulum.CASE, arm.CASE, combustor.CASE):
    rng = np.random.default_rng(0)
    outcome = case.outcome(case.usual, case.draw(rng), rng)
    assert outcome is not None, case.name
    assert math.isfinite(outcome), case.name
