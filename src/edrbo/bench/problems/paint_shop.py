"""A paint shop: eight settings, two whole numbers and two choices meet the humidity, the hall's heat and the paint.

The faster the belt, the more it earns and the wetter the coat leaves the oven; more guns and coats cover better and
cost; every resin has its own best primer and its own price, every nozzle its own angle.
"""

from __future__ import annotations

from edrbo.bench.problems.oracle.distributions import Clipped, Mixture, Normal, Product, Uniform, clipped_normal
from edrbo.bench.problems.plant import Loss, Plant, Weights
from edrbo.bench.problems.problem import Problem
from edrbo.space import Categorical, Integer, Space

SPACE = Space(
    {
        **dict.fromkeys(("speed", "oven", "flow", "angle", "distance", "voltage", "air", "primer"), (0.0, 1.0)),
        "coats": Integer(1, 4),
        "guns": Integer(2, 8),
        "resin": Categorical(("acrylic", "epoxy", "urethane", "alkyd")),
        "nozzle": Categorical(("fan", "cone", "slit")),
    }
)
CONTEXTS = ("humidity", "heat", "viscosity")
EARNINGS: Weights = {"speed": 5.0, "coats": -1.0, "guns": -0.8, "primer": -0.6, "resin": (0.0, -0.5, -0.8, 0.4)}
LOSSES = (
    # wet: the belt is too fast for the oven, worst on humid days and under many coats
    Loss(
        "exp",
        1.0,
        {"speed": 2.4, "oven": -2.0, "coats": 0.6, "humidity": 1.4, "resin": (0.0, 0.4, -0.4, 0.5)},
        at=0.9,
    ),
    # blisters: too much heat, from oven and hall
    Loss("exp", 1.0, {"oven": 3.6, "heat": 2.0, "resin": (0.0, -0.8, 0.3, 0.2)}, at=3.4),
    # a thickness off its target
    Loss(
        "square",
        9.0,
        {"flow": 1.0, "guns": 0.5, "speed": -0.6, "coats": 0.4, "viscosity": -0.6, "nozzle": (0.0, 0.12, -0.15)},
        at=0.35,
    ),
    # streaks: the best angle is another with every nozzle and every day
    Loss("square", 7.0, {"angle": 1.0, "humidity": -0.6, "nozzle": (0.0, -0.25, 0.2)}, at=0.2),
    # overspray: too much air from too far, worst with a thin paint
    Loss("exp", 1.0, {"air": 2.2, "distance": 1.4, "voltage": -1.0, "viscosity": -1.5}, at=1.4),
    # drops: too little air for what flows
    Loss("square", 6.0, {"air": 1.0, "flow": -0.5, "viscosity": -0.6, "nozzle": (0.0, 0.15, -0.1)}, at=0.1),
    # the field: voltage and distance balance, less of it on humid days
    Loss("square", 5.0, {"voltage": 0.9, "distance": -1.0, "humidity": 0.5}, at=0.3),
    # thick edges: too close, too much voltage
    Loss("exp", 1.0, {"distance": -2.4, "voltage": 1.5, "flow": 0.6}, at=-0.2),
    # adhesion: every resin wants its own primer, more of it in the heat
    Loss("square", 6.0, {"primer": 1.0, "heat": -0.5, "resin": (0.0, -0.35, -0.15, -0.5)}, at=0.1),
    # the ground shows through: too few coats, too little paint
    Loss("exp", 1.0, {"coats": -2.2, "flow": -1.2, "guns": -1.2, "viscosity": 0.9}, at=-2.3),
)
PLANT = Plant.of(SPACE, CONTEXTS, 1.0, EARNINGS, LOSSES)


def paint_shop_problem() -> Problem:
    dry_and_wet_days = Mixture((Normal(0.25, 0.12), Normal(0.85, 0.1)), (0.7, 0.3))
    return Problem(
        name="paint-shop",
        description="Twelve settings of a paint shop, whole numbers and choices among them, for every day and paint.",
        d_x=SPACE.d_x,
        context_distribution=Product(
            (Clipped(dry_and_wet_days), Clipped(Uniform(0.2, 0.9)), clipped_normal(0.45, 0.2))
        ),
        objective=PLANT.value,
        expectation=PLANT.expected,
        design=SPACE,
    )
