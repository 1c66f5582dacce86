"""A building's control: ten settings that all act on each other, under the weather and those inside.

Comfort is a balance of nearly all settings and contexts at once, in three zones that want different things; two loops
hunt, which makes ripples across the balances. So nothing is gained by moving one setting at a time.
"""

from __future__ import annotations

from edrbo.bench.problems.oracle.distributions import Clipped, Mixture, Normal, Product, Uniform, clipped_normal
from edrbo.bench.problems.plant import Loss, Plant
from edrbo.bench.problems.problem import Problem
from edrbo.space import Space

SETTINGS = ("slope", "base", "setback", "start", "valve", "fan", "shading", "storage", "mixing", "ventilation")
CONTEXTS = ("cold", "sun", "people", "wind")
EARNINGS = {"setback": 0.8, "ventilation": -0.4, "storage": -1.2, "base": -0.3}
LOSSES = (
    # three zones, each with its own balance of heat
    Loss(
        "square",
        8.0,
        {
            **{"slope": 0.8, "base": 0.7, "valve": 0.6, "setback": -0.6, "mixing": -0.3, "ventilation": -0.4},
            **{"cold": -0.9, "sun": 0.4, "people": 0.3},
        },
        at=0.55,
    ),
    Loss(
        "square",
        7.0,
        {
            **{"slope": 0.7, "valve": -0.5, "shading": -0.8, "fan": 0.5, "storage": 0.4, "start": 0.3},
            **{"cold": -0.5, "sun": 0.9, "wind": -0.3},
        },
        at=0.25,
    ),
    Loss(
        "square",
        6.0,
        {
            **{"base": 0.6, "mixing": 0.7, "fan": -0.6, "ventilation": 0.5, "storage": -0.5, "shading": 0.3},
            **{"people": 0.6, "cold": -0.4, "wind": -0.4},
        },
        at=0.2,
    ),
    # the morning: an early start makes up for a deep setback, on cold days above all
    Loss("square", 5.0, {"start": 1.0, "setback": -0.9, "storage": 0.5, "cold": -0.6}, at=0.2),
    # air: people need it, wind brings it
    Loss("square", 5.0, {"ventilation": 1.0, "fan": 0.5, "people": -1.0, "wind": 0.5}, at=0.35),
    # mixing follows the fan and the sun
    Loss("square", 5.0, {"mixing": 1.0, "fan": -0.9, "sun": 0.7, "setback": 0.4}, at=0.6),
    # peaks of the load: a steep curve with little storage on cold days
    Loss("exp", 1.0, {"slope": 2.2, "valve": 1.2, "storage": -1.8, "start": -0.8, "cold": 1.5}, at=1.4),
    # draft
    Loss("exp", 1.0, {"fan": 2.0, "ventilation": 1.6, "mixing": -0.8, "wind": 1.2}, at=1.8),
    # two loops hunt
    Loss("wave", 0.5, {"slope": 5.0, "valve": -4.0, "mixing": 3.0, "cold": 1.0}, at=1.0),
    Loss("wave", 0.4, {"fan": 4.0, "shading": 4.0, "start": -4.0, "storage": 3.0, "sun": -1.5}, at=2.0),
)
PLANT = Plant.of(Space(dict.fromkeys(SETTINGS, (0.0, 1.0))), CONTEXTS, 3.0, EARNINGS, LOSSES)


def building_problem() -> Problem:
    winter_and_summer = Mixture((Normal(0.7, 0.12), Normal(0.25, 0.1)), (0.6, 0.4))
    return Problem(
        name="building",
        description="Ten settings of a building's control that all act on each other, in any weather.",
        d_x=len(SETTINGS),
        context_distribution=Product(
            (
                Clipped(winter_and_summer),
                Clipped(Uniform(0.0, 0.9)),
                clipped_normal(0.5, 0.25),
                clipped_normal(0.3, 0.2),
            )
        ),
        objective=PLANT.value,
        expectation=PLANT.expected,
    )
