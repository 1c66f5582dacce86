"""A chemical recipe of eighteen variables, of which thirteen matter, under five contexts, of which three do.

Nobody tells the learner that ramp, purge, reflux, the filters and the supplier do nothing, nor that the season and the
shift are as good as noise.
"""

from __future__ import annotations

from edrbo.bench.problems.oracle.distributions import Clipped, Product, Uniform, clipped_burr, clipped_normal, uniform
from edrbo.bench.problems.plant import Loss, Plant, Weights
from edrbo.bench.problems.problem import Problem
from edrbo.space import Categorical, Integer, Space

REALS = ("feed", "ramp", "catalyst", "temperature", "time", "purge", "stirring", "pressure", "acidity", "reflux")
SPACE = Space(
    {
        **dict.fromkeys(REALS, (0.0, 1.0)),
        "stages": Integer(1, 5),
        "filters": Integer(1, 3),
        "washes": Integer(0, 3),
        "seeds": Integer(1, 6),
        "solvent": Categorical(("water", "ethanol", "toluene", "acetone")),
        "supplier": Categorical(("north", "south", "west")),
        "metal": Categorical(("nickel", "palladium", "copper")),
        "grain": Categorical(("coarse", "medium", "fine"), ordered=True),
    }
)
IDLE = ("ramp", "purge", "reflux", "filters", "supplier")
CONTEXTS = ("purity", "moisture", "ambient", "season", "shift")
EARNINGS: Weights = {
    **{"feed": 3.2, "time": -0.5, "stages": -0.8, "washes": -1.2, "catalyst": -1.0},
    **{"metal": (0.0, -0.9, 0.3), "solvent": (0.2, 0.0, -0.1, -0.2)},
}
LOSSES = (
    # what did not react: too much feed for the heat, the catalyst and the time; impure feed is worse
    Loss(
        "exp",
        1.0,
        {
            **{"feed": 2.6, "catalyst": -2.0, "temperature": -1.4, "time": -2.0, "stages": -0.6, "purity": -1.5},
            **{"metal": (0.0, -1.0, 0.5)},
        },
        at=-0.6,
    ),
    # by-products: hot and long, in a warm hall
    Loss("exp", 1.0, {"temperature": 3.0, "time": 1.5, "ambient": 2.0, "solvent": (0.6, 0.0, -0.3, 0.2)}, at=3.4),
    # the best acidity depends on solvent, metal and moisture
    Loss(
        "square",
        7.0,
        {"acidity": 1.0, "moisture": 0.8, "solvent": (-0.3, 0.0, -0.2, 0.15), "metal": (0.0, 0.2, -0.15)},
        at=0.55,
    ),
    # pressure follows the temperature and the solvent
    Loss("square", 5.0, {"pressure": 1.0, "temperature": -0.8, "solvent": (0.2, 0.0, -0.25, 0.1)}, at=0.1),
    # crystals: seeds, grain and stirring together
    Loss("square", 6.0, {"seeds": 0.8, "grain": 0.5, "stirring": -0.9, "moisture": -0.7}, at=0.0),
    # lumps: hardly stirred, and much feed
    Loss("exp", 1.0, {"stirring": -3.0, "feed": 1.4, "purity": -0.8}, at=-0.4),
    # foam: stirring under low pressure in a wet feed
    Loss("exp", 1.0, {"stirring": 2.4, "pressure": -1.5, "moisture": 1.5}, at=1.6),
    # what is left in the product: few washes, impure feed, a fine grain
    Loss("exp", 1.0, {"washes": -2.4, "purity": -2.0, "grain": 0.9, "feed": 0.8}, at=-1.4),
    # a poisoned catalyst: much of it in a wet feed
    Loss("square", 3.0, {"catalyst": 1.0, "moisture": 0.7, "metal": (0.0, -0.3, 0.3)}, at=0.4),
    # stages balance the feed
    Loss("square", 4.0, {"stages": 0.9, "feed": -0.9, "ambient": 0.6}, at=0.1),
)
PLANT = Plant.of(SPACE, CONTEXTS, 1.0, EARNINGS, LOSSES)


def recipe_problem() -> Problem:
    purity, moisture, ambient = clipped_normal(0.6, 0.2), clipped_burr(2.0, 5.0), Clipped(Uniform(0.1, 0.9))
    return Problem(
        name="recipe",
        description="A recipe of eighteen variables under five contexts; not all of them matter.",
        d_x=SPACE.d_x,
        context_distribution=Product((purity, moisture, ambient, uniform(), clipped_normal(0.5, 0.3))),
        objective=PLANT.value,
        expectation=PLANT.expected,
        design=SPACE,
    )
