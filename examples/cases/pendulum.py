"""A pendulum to swing up and hold, with a motor too weak to lift it: gains for whatever load hangs on it.

Simulator: gymnasium's Pendulum-v1. The controller pumps energy until the pendulum is near the top and then holds it. It
believes in the nominal mass and length; those of the day are the context (the load differs by a tenth or two, and is
weighed). The outcome is the return of an episode of 200 steps, which begins near the bottom.

    python examples/cases/pendulum.py
"""

from __future__ import annotations

from functools import cache

import gymnasium
import numpy as np
from case import Case, Context, Design, run

import edrbo

DESIGN = {
    "pump": edrbo.Real(0.05, 5, log=True),
    "spring": edrbo.Real(2, 60, log=True),
    "damping": edrbo.Real(0.1, 15, log=True),
    "catch": edrbo.Real(0.1, 1.5, unit="rad"),
}


@cache
def environment() -> gymnasium.Env:
    return gymnasium.make("Pendulum-v1").unwrapped


def episode(design: Design, context: Context, angle: float) -> float:
    """The return of 200 steps from ``angle`` off the bottom."""
    world = environment()
    world.m, world.l = context
    world.reset(seed=0)
    world.state = np.array([np.pi - angle, 0.0])
    total = 0.0
    for _ in range(200):
        theta, speed = world.state
        theta = (theta + np.pi) % (2 * np.pi) - np.pi
        if abs(theta) < design["catch"]:
            torque = -design["spring"] * theta - design["damping"] * speed
        else:  # of a rod of mass and length one, as the controller believes: energy missing to stand at the top
            missing = world.g / 2 * (1 - np.cos(theta)) - speed**2 / 6
            torque = design["pump"] * missing * np.sign(speed if speed else 1.0)
        _, reward, *_ = world.step(np.array([torque]))
        total += float(reward)
    return total


def outcome(design: Design, context: Context, rng: np.random.Generator) -> float:
    return episode(design, context, rng.uniform(-0.3, 0.3))


@cache
def shares() -> np.ndarray:
    """(100, 3) quasi-random numbers between 0 and 1: a column for the masses and one for the lengths."""
    from scipy.stats import qmc

    return qmc.Sobol(3, seed=0).random(128)[:100]


def normal(column: int) -> np.ndarray:
    from scipy.stats import norm

    return norm.ppf(shares()[:, column])


def carrying(name: str, masses: np.ndarray, least: float, most: float) -> Case:
    """The case with these masses, which the space has between ``least`` and ``most``; lengths differ by a sixteenth."""
    context_distribution = np.stack([masses, np.clip(1.0 + normal(1) * 0.0625, 0.75, 1.25)], axis=1)
    angles = np.random.default_rng(0).uniform(-0.3, 0.3, size=len(context_distribution))

    def mean(design: Design) -> float:
        pairs = zip(context_distribution.tolist(), angles.tolist(), strict=True)
        return float(np.mean([episode(design, tuple(load), angle) for load, angle in pairs]))

    context = {"mass": edrbo.Real(least, most, unit="kg"), "length": edrbo.Real(0.7, 1.3, unit="m")}
    return Case(
        name=name,
        space=edrbo.Space(design=DESIGN, context=context),
        direction="maximize",
        outcome=outcome,
        context_distribution=context_distribution,
        mean=mean,
        usual={"pump": 1.0, "spring": 20.0, "damping": 4.0, "catch": 0.5},  # by hand, for mass and length one
    )


def show(case: Case) -> None:
    found = run(case, "edrbo-identify", evaluations=80, seed=0)
    print("after 80 episodes:", {name: round(value, 2) for name, value in found.items()})
    print(f"mean return: {case.mean(found):.1f}, by hand {case.mean(case.usual):.1f}")


CASE = carrying("pendulum", np.clip(1.0 + normal(0) * 0.1, 0.65, 1.35), least=0.6, most=1.4)

if __name__ == "__main__":
    show(CASE)
