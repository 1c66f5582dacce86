"""Six turbines on a square kilometer: where do the last two go, when the wind comes from anywhere?

Simulator: PyWake of the Technical University of Denmark, with the wake model of Bastankhah and Porté-Agel (2014),
the turbine V80 and the wind of the offshore park Horns Rev 1. Four turbines stand at the corners; the places of two
more are the design. The context is the wind of the hour, direction and speed. The outcome is what the six bring that
hour. The truth is as cheap as a sample: the mean over the wind rose.

    pip install py-wake && python examples/cases/windfarm.py
"""

from __future__ import annotations

from functools import cache

import numpy as np
from case import Case, Context, Design, run
from py_wake.examples.data.hornsrev1 import V80, Hornsrev1Site
from py_wake.literature.gaussian_models import Bastankhah_PorteAgel_2014
from scipy.stats import qmc

import edrbo

SIDE = 1000.0  # m
SPACE = edrbo.Space(
    design={name: edrbo.Real(0, SIDE, unit="m") for name in ("x1", "y1", "x2", "y2")},
    context={"direction": edrbo.Real(0, 360, unit="°"), "speed": edrbo.Real(3, 25, unit="m/s")},
)


@cache
def park() -> Bastankhah_PorteAgel_2014:
    return Bastankhah_PorteAgel_2014(Hornsrev1Site(), V80(), k=0.0324555)


def power(design: Design, winds: np.ndarray) -> np.ndarray:
    """Megawatts in each of ``winds`` (n × 2)."""
    x = np.array([0.0, SIDE, 0.0, SIDE, design["x1"], design["x2"]])
    y = np.array([0.0, SIDE, SIDE, 0.0, design["y1"], design["y2"]])
    direction, speed = winds.T
    return np.asarray(park()(x, y, wd=direction, ws=speed, time=True).Power.sum("wt")) / 1e6


@cache
def winds() -> np.ndarray:
    """(512, 2) hours of the wind rose: sectors of 30° with a Weibull distribution each, quasi-random within."""
    sectors = Hornsrev1Site().ds
    share = np.asarray(sectors["Sector_frequency"])[:12]
    scale, form = (np.asarray(sectors[name])[:12] for name in ("Weibull_A", "Weibull_k"))
    u = qmc.Sobol(2, seed=3).random(512)
    below = np.concatenate([[0.0], np.cumsum(share / share.sum())])
    sector = np.searchsorted(below, u[:, 0], side="right").clip(1, 12) - 1
    within = (u[:, 0] - below[sector]) / (below[sector + 1] - below[sector])
    speed = scale[sector] * (-np.log1p(-u[:, 1].clip(0, 1 - 1e-9))) ** (1 / form[sector])
    return np.column_stack([(30 * (sector + within) - 15) % 360, speed.clip(3, 25)])


def outcome(design: Design, context: Context, rng: np.random.Generator) -> float:
    """As the meters read it, with an error of one percent of what one turbine can do."""
    return float(power(design, np.array([context]))[0]) + 0.02 * float(rng.normal())


def mean(design: Design) -> float:
    return float(power(design, winds()).mean())


CASE = Case(
    name="wind farm",
    space=SPACE,
    direction="maximize",
    outcome=outcome,
    context_distribution=winds(),
    mean=mean,
    usual={"x1": SIDE / 3, "y1": SIDE / 2, "x2": 2 * SIDE / 3, "y2": SIDE / 2},  # in two rows, evenly
    archive=True,
)

if __name__ == "__main__":
    found = run(CASE, "edrbo-identify", evaluations=60, seed=0)
    print("after 60 hours:", {name: round(value) for name, value in found.items()})
    print(f"megawatts: {CASE.mean(found):.3f}, as usual {CASE.mean(CASE.usual):.3f}")
