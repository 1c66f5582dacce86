"""Cases of simulators that no extra brings, in small size, where they are installed."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "cases"))

SIMULATORS = {"dike": "uqtestfuns", "airfoil": "neuralfoil", "windfarm": "py_wake", "irrigation": "aquacrop"}

pytestmark = pytest.mark.filterwarnings("ignore")  # those of simulators, while they are imported and run


@pytest.fixture(params=sorted(SIMULATORS))
def case(request: pytest.FixtureRequest) -> Any:
    pytest.importorskip(SIMULATORS[request.param], reason="its simulator is not installed")
    return import_module(request.param).CASE


def test_outcomes_are_of_the_design_and_the_context(case: Any) -> None:
    rng = np.random.default_rng(0)
    contexts = [case.draw(rng) for _ in range(12)]
    values = np.array([case.outcome(case.usual, context, rng) for context in contexts])
    assert np.isfinite(values).all()
    assert np.ptp(values) > 0  # the world sets part of it
    assert np.isfinite(case.mean(case.usual))
    (other,) = case.space.decode_designs(np.linspace([0.9], [0.6], case.space.d_x).T)
    assert case.mean(other) != case.mean(case.usual)


def test_a_short_run_repeats_itself(case: Any) -> None:
    from case import run

    first, again = (run(case, "edrbo-mean", evaluations=5, seed=1) for _ in range(2))
    assert first == again
    assert set(first) == set(case.usual)
