"""A gas burner that burns clean whatever the pipeline sends: how lean, and how long does the gas stay?

Simulator: Cantera, a well-stirred reactor with the mechanism GRI-Mech 3.0 that comes with it (53 species). The context
is the gas of the hour (its share of ethane) and the temperature of the air outside. Too rich makes nitric oxide, too
lean or too short leaves carbon monoxide, or the flame goes out, which is told as a failure; a long stay needs a large
chamber. The outcome, to be made small, is the sum of both as shares of their limits, 25 and 100 ppm of dry gas at 15 %
oxygen, and of what the chamber costs.

    python examples/cases/combustor.py
"""

from __future__ import annotations

from functools import cache

import cantera
import numpy as np
from case import Case, Context, Design, run

import edrbo

NITRIC, CARBON = 25.0, 100.0  # ppm
CHAMBER = 0.05  # per ms
OUT = 10.0  # what an hour without a flame counts as
COLD = 1300.0  # K: nothing burns in a reactor that is colder

SPACE = edrbo.Space(
    design={"richness": (0.4, 0.8), "stay": edrbo.Real(1.5, 40, log=True, unit="ms")},
    context={"ethane": edrbo.Real(0, 20, unit="% of the gas"), "outside": edrbo.Real(-15, 40, unit="°C")},
)


@cache
def gas() -> cantera.Solution:
    return cantera.Solution("gri30.yaml")


def emissions(design: Design, context: Context) -> tuple[float, float] | None:
    """Nitric oxides and carbon monoxide in ppm of dry gas, corrected to 15 % oxygen, at the reactor's steady state;
    None if the flame went out."""
    ethane, outside = context
    fresh, ratio = gas(), 10.0 ** (0.4 / 1.4)
    fresh.TP = (outside + 273.15) * (1.0 + (ratio - 1.0) / 0.87), 10.0 * cantera.one_atm  # behind the compressor
    fresh.set_equivalence_ratio(design["richness"], {"CH4": 100 - ethane, "C2H6": ethane}, {"O2": 1.0, "N2": 3.76})
    tank = cantera.Reservoir(fresh, clone=True)
    fresh.equilibrate("HP", solver="gibbs", estimate_equil=-1)  # lit, and not as the last call left it
    reactor = cantera.IdealGasReactor(fresh, clone=True, volume=1.0)
    exhaust = cantera.Reservoir(fresh, clone=True)
    feed = cantera.MassFlowController(tank, reactor, mdot=lambda t: reactor.mass / (design["stay"] / 1000))
    cantera.PressureController(reactor, exhaust, primary=feed, K=0.01)
    cantera.ReactorNet([reactor]).advance_to_steady_state()
    end = reactor.phase
    if end.T < COLD:
        return None
    dry = 1.0 - end["H2O"].X[0]
    scale = 1e6 / dry * (0.209 - 0.15) / max(0.209 - end["O2"].X[0] / dry, 1e-6)
    return scale * float(end["NO", "NO2"].X.sum()), scale * float(end["CO"].X[0])


def dirt(design: Design, context: Context) -> float | None:
    if (found := emissions(design, context)) is None:
        return None
    nitric, carbon = found
    return nitric / NITRIC + carbon / CARBON + CHAMBER * design["stay"]


def outcome(design: Design, context: Context, rng: np.random.Generator) -> float | None:
    """As the analyzer reads it, with an error of two percent; nothing to read without a flame."""
    error = float(np.exp(0.02 * rng.normal()))
    return None if (read := dirt(design, context)) is None else read * error


def mean(design: Design) -> float:
    read = [dirt(design, tuple(hour)) for hour in hours().tolist()]
    return float(np.mean([OUT if one is None else min(one, OUT) for one in read]))


@cache
def hours() -> np.ndarray:
    """(32, 2) ethane and air: quasi-random, ethane skewed as gas of several fields is, the air of a temperate year."""
    from scipy.stats import beta, norm, qmc

    u = qmc.Sobol(2, seed=1).random(32)
    return np.column_stack([20 * beta.ppf(u[:, 0], 1.5, 4), np.clip(norm.ppf(u[:, 1], 11, 8), -15, 40)])


CASE = Case(
    name="combustor",
    space=SPACE,
    direction="minimize",
    outcome=outcome,
    law=hours(),
    mean=mean,
    usual={"richness": 0.55, "stay": 10.0},
)

if __name__ == "__main__":
    found = run(CASE, "edrbo", evaluations=80, seed=0)
    print("after 80 hours:", {name: round(value, 3) for name, value in found.items()})
    print(f"mean outcome: {CASE.mean(found):.2f}, as usual {CASE.mean(CASE.usual):.2f}")
