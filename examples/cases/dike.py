"""A dike along a river: how high, when most years are harmless and a few are not?

Simulator: the flood model of Iooss and Lemaître (2015), as the package uqtestfuns has it, with the distributions of its
inputs. One experiment is a year in the model. The context is what was measured that year: the highest flow, and how
rough the river bed was; levels and widths differ too and are noise to the learner. The outcome is what the year cost,
damage and upkeep, in units of the damage of an overflow (the cost function of the same paper).

    pip install uqtestfuns && python examples/cases/dike.py
"""

from __future__ import annotations

from functools import cache

import numpy as np
from case import Case, Context, Design, run
from scipy.stats import qmc
from uqtestfuns import Flood

import edrbo

SPACE = edrbo.Space(
    design={"height": edrbo.Real(4, 14, unit="m")},
    context={"flow": edrbo.Real(500, 3000, unit="m³/s"), "roughness": edrbo.Real(15, 60)},
)
FLOW, ROUGHNESS, HEIGHT = 0, 1, 4  # columns of the model
BOOK = 8.0  # m, up to which upkeep does not grow


@cache
def model() -> Flood:
    return Flood()


def years(count: int, seed: int) -> np.ndarray:
    """(count, 8) inputs of the model, quasi-random."""
    unit = qmc.Sobol(8, seed=seed).random(count).clip(1e-9, 1 - 1e-9)
    marginals = model().prob_input.marginals
    inputs = np.column_stack([one.icdf(unit[:, k]) for k, one in enumerate(marginals)])
    inputs[:, HEIGHT] = BOOK
    return inputs


def cost(height: float, inputs: np.ndarray) -> np.ndarray:
    """Of each year (n): overflow, damage that grows as the water comes near the crest, and upkeep."""
    # the model gives by how much the water stays below the crest, for heights of 7 to 9 m only; it is linear in them
    above = BOOK - height - np.asarray(model()(inputs))
    near = 0.2 + 0.8 * (1 - np.exp(-1000 / np.where(above < 0, above, 1) ** 4))
    return np.where(above >= 0, 1.0, near) + max(height, BOOK) / 20


@cache
def everything() -> np.ndarray:
    return years(2**14, seed=1)


@cache
def measured() -> np.ndarray:
    """(1024, 2)."""
    return years(1024, seed=2)[:, [FLOW, ROUGHNESS]]


def outcome(design: Design, context: Context, rng: np.random.Generator) -> float:
    row = years(1, seed=int(rng.integers(2**31)))
    row[0, [FLOW, ROUGHNESS]] = context
    return float(cost(design["height"], row)[0])


def mean(design: Design) -> float:
    return float(cost(design["height"], everything()).mean())


CASE = Case(
    name="dike",
    space=SPACE,
    direction="minimize",
    outcome=outcome,
    context_distribution=measured(),
    mean=mean,
    usual={"height": BOOK},
)

if __name__ == "__main__":
    found = run(CASE, "edrbo-identify", evaluations=80, seed=0)
    print(f"after 80 years: {found['height']:.2f} m")
    print(f"mean cost a year: {CASE.mean(found):.3f}, as usual {CASE.mean(CASE.usual):.3f}")
