"""The real cases, in small size: simulators of other people, and our loop around them."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "cases"))
sys.path.append(str(Path(__file__).parents[1] / "research"))

import arm
import cases
import combustor
import pendulum
import solar
from case import Case, Context, Design, best, run

ROOT = Path(__file__).parents[1]
CASES = [solar.CASE, arm.CASE, combustor.CASE]


@pytest.mark.filterwarnings("ignore::edrbo.errors.ImplausibleWarning")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_short_run_of_each_case(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first experiments of all methods are the same: the slowest simulator need not repeat them."""
    emissions, known = combustor.emissions, {}

    def remembered(design: Design, context: Context) -> tuple[float, float] | None:
        key = (*design.values(), *context)
        if key not in known:
            known[key] = emissions(design, context)
        return known[key]

    monkeypatch.setattr(combustor, "emissions", remembered)
    found = [
        run(case, method, evaluations=6, seed=1) for method in ("edrbo-identify", "edrbo-identify", "ucb", "random")
    ]
    assert found[0] == found[1]
    assert case.space.encode_designs(found).shape == (4, case.space.d_x)


@pytest.mark.parametrize("case", [solar.CASE, arm.CASE], ids=lambda case: case.name)
def test_the_mean_is_that_of_the_outcomes(case: Case) -> None:
    """Of many experiments, each with a context of the distribution."""
    rng = np.random.default_rng(0)
    designs = (case.usual, best(case, [case.usual], steps=3)[0])
    outcomes = [[case.outcome(design, case.draw(rng), rng) for _ in range(60)] for design in designs]
    gaps = [np.mean(values) - case.mean(design) for values, design in zip(outcomes, designs, strict=True)]
    errors = [np.std(values) / np.sqrt(60) for values in outcomes]
    # The solar case tells differences from the usual: what both designs share is gone.
    assert abs(gaps[1] - gaps[0]) < 4 * np.hypot(*errors)


def test_the_panels_obey_the_sun() -> None:
    flat, south, north = (
        solar.incomes({"tilt": tilt, "azimuth": azimuth, "inverter": 12.0}).sum()
        for tilt, azimuth in ((0.0, 180.0), (30.0, 180.0), (90.0, 270.0))
    )
    assert north < flat < south
    assert len(solar.days()) == 365
    assert 76 < solar.days()[:, 0].max() < 78  # 90 − 36.1 + 23.4
    assert 29 < solar.days()[:, 0].min() < 31


def test_a_lean_cold_flame_goes_out_and_a_high_load_makes_nitric_oxide() -> None:
    assert combustor.emissions({"first richness": 0.4, "first stay": 1.0, "second stay": 1.0}, (0.5, -15.0)) is None
    low, high = (combustor.emissions(combustor.CASE.usual, (load, 10.0)) for load in (0.55, 0.65))
    assert low is not None
    assert high is not None
    assert high[0] > 3 * low[0]


def test_the_pendulum_stands_only_if_it_is_pumped() -> None:
    assert pendulum.episode({**pendulum.CASE.usual, "pump": 0.05}, (1.0, 1.0), 0.1) < -1000
    assert pendulum.episode(pendulum.CASE.usual, (1.0, 1.0), 0.1) > -600


def test_the_arm_is_empty_every_second_swing_and_weighs_as_believed_on_average() -> None:
    masses = arm.CASE.context_distribution[:, 0]
    full = masses[masses > 0.75]
    assert len(full) == len(masses) // 2
    assert 0.45 <= masses.min() < np.delete(masses, masses > 0.75).max() <= 0.55
    assert 1.0 <= full.min() < full.max() <= 2.0
    assert masses.mean() == pytest.approx(1.0, abs=0.01)
    # lengths are those of the pendulum
    np.testing.assert_array_equal(arm.CASE.context_distribution[:, 1], pendulum.CASE.context_distribution[:, 1])


def test_the_load_matters_far_more_for_the_arm_than_for_the_pendulum() -> None:
    """Returns of a good design from one angle, over the whole distribution."""
    design = {"pump": 3.3, "spring": 12.0, "damping": 3.0, "catch": 0.8}
    narrow, wide = (
        np.std([pendulum.episode(design, tuple(load), 0.1) for load in case.context_distribution.tolist()])
        for case in (pendulum.CASE, arm.CASE)
    )
    assert wide > 2 * narrow


def test_the_page_has_the_table_of_the_runs() -> None:
    page = (ROOT / "docs" / "cases.md").read_text(encoding="utf-8")
    fewer = cases.RESULTS.with_name("cases-40.csv")
    assert cases.table(cases.RESULTS) in page
    assert cases.table(fewer) in page
    assert {row["evaluations"] for row in cases.rows(fewer) if row["seed"]} == {"40"}
    found = cases.rows(cases.RESULTS)
    seeds = {(case.name, method): 10 for case in CASES for method in cases.METHODS}
    assert {pair: sum((row["case"], row["method"]) == pair for row in found) for pair in seeds} == seeds
