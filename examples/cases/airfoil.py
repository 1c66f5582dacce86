"""A wing section that flies clean and dirty, slow and fast: how thick, how cambered, and where?

Simulator: NeuralFoil, a neural network that was fitted to millions of runs of XFOIL. The shape is one of the NACA
four-digit family with any digits. The context is the moment of the flight: the angle of attack, the Reynolds number,
and how clean the surface is (the amplification at which the flow turns turbulent: 9 is a clean wing in calm air, 1 a
dirty one). The outcome is lift over drag, with an error of one percent.

    pip install neuralfoil && python examples/cases/airfoil.py
"""

from __future__ import annotations

from functools import cache

import neuralfoil
import numpy as np
from case import Case, Context, Design, run
from scipy.stats import beta, norm, qmc

import edrbo

SPACE = edrbo.Space(
    design={
        "camber": edrbo.Real(0, 8, unit="%"),
        "position": edrbo.Real(20, 60, unit="%"),
        "thickness": edrbo.Real(8, 20, unit="%"),
    },
    context={
        "angle": edrbo.Real(-4, 18, unit="°"),
        "Reynolds": edrbo.Real(1e5, 4e6, log=True),
        "clean": edrbo.Real(1, 9),
    },
)
POINTS = 60  # on each side


def shape(design: Design) -> np.ndarray:
    """Coordinates from the trailing edge over the upper side and back (2·POINTS − 1, 2), chord one."""
    camber, position, thickness = design["camber"] / 100, design["position"] / 100, design["thickness"] / 100
    x = 0.5 * (1 - np.cos(np.pi * np.linspace(0, 1, POINTS)))
    half = 5 * thickness * (0.2969 * np.sqrt(x) - 0.126 * x - 0.3516 * x**2 + 0.2843 * x**3 - 0.1036 * x**4)
    front = x < position
    line = np.where(
        front,
        camber / position**2 * (2 * position * x - x**2),
        camber / (1 - position) ** 2 * (1 - 2 * position + 2 * position * x - x**2),
    )
    slope = np.where(front, 2 * camber / position**2, 2 * camber / (1 - position) ** 2) * (position - x)
    angle = np.arctan(slope)
    upper = np.column_stack([x - half * np.sin(angle), line + half * np.cos(angle)])
    lower = np.column_stack([x + half * np.sin(angle), line - half * np.cos(angle)])
    return np.concatenate([upper[::-1], lower[1:]])


def glide(design: Design, contexts: np.ndarray) -> np.ndarray:
    """Lift over drag in each of ``contexts`` (n × 3)."""
    angle, reynolds, clean = contexts.T
    found = neuralfoil.get_aero_from_coordinates(
        shape(design), alpha=angle, Re=reynolds, n_crit=clean, model_size="medium"
    )
    return np.asarray(found["CL"] / found["CD"])


@cache
def flights() -> np.ndarray:
    """(256, 3) moments: quasi-random; climbs and cruise, mostly clean."""
    u = qmc.Sobol(3, seed=2).random(256)
    angle = np.where(u[:, 0] < 0.7, norm.ppf(u[:, 0] / 0.7, 3, 1), norm.ppf((u[:, 0] - 0.7) / 0.3, 9, 1.5))
    return np.column_stack(
        [np.clip(angle, -4, 18), 1e5 * 40 ** beta.ppf(u[:, 1], 4, 2), 1 + 8 * beta.ppf(u[:, 2], 1.2, 0.6)]
    )


def outcome(design: Design, context: Context, rng: np.random.Generator) -> float:
    return float(glide(design, np.array([context]))[0]) * float(np.exp(0.01 * rng.normal()))


def mean(design: Design) -> float:
    return float(glide(design, flights()).mean())


CASE = Case(
    name="airfoil",
    space=SPACE,
    direction="maximize",
    outcome=outcome,
    context_distribution=flights(),
    mean=mean,
    usual={"camber": 2.0, "position": 40.0, "thickness": 12.0},  # NACA 2412, on half of the small airplanes there are
)

if __name__ == "__main__":
    found = run(CASE, "edrbo-identify", evaluations=60, seed=0)
    print("after 60 moments in the tunnel:", {name: round(value, 1) for name, value in found.items()})
    print(f"lift over drag: {CASE.mean(found):.1f}, NACA 2412 {CASE.mean(CASE.usual):.1f}")
