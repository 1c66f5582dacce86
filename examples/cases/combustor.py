"""A gas turbine that burns clean at every load: how lean is the first stage, and how long are the two?

Simulator: Cantera, two well-stirred reactors in a row with the mechanism GRI-Mech 3.0 that comes with it (53 species).
The first stage burns lean; the rest of the fuel that the load asks for joins in the second. The context is the load of
the hour (as richness) and the temperature of the air outside. Hot makes nitric oxide, lean or short leaves carbon
monoxide, or the flame goes out, which is reported as a failure; long stages cost. The outcome, to be made small, is the
sum of both as shares of their limits, 25 and 100 ppm of dry gas at 15 % oxygen, and of what the stages cost.

    python examples/cases/combustor.py
"""

from __future__ import annotations

from functools import cache

import cantera
import numpy as np
from case import Case, Context, Design, run

import edrbo

NITRIC, CARBON = 25.0, 100.0  # ppm
STAGES = 0.05  # per ms
OUT = 10.0  # what an hour without a flame counts as
COLD = 1300.0  # K: nothing burns in a reactor that is colder
FUEL, AIR = {"CH4": 0.95, "C2H6": 0.05}, {"O2": 1.0, "N2": 3.76}
PRESSURE = 10.0 * cantera.one_atm
HOT = 2200.0, PRESSURE, {"N2": 0.72, "CO2": 0.09, "H2O": 0.17, "O2": 0.02}

SPACE = edrbo.Space(
    design={
        "first richness": (0.4, 0.6),
        "first stay": edrbo.Real(1, 20, log=True, unit="ms"),
        "second stay": edrbo.Real(1, 20, log=True, unit="ms"),
    },
    context={"load": edrbo.Real(0.5, 0.7), "outside": edrbo.Real(-15, 40, unit="°C")},
)


@cache
def gas() -> cantera.Solution:
    return cantera.Solution("gri30.yaml")


@cache
def cold_fuel() -> tuple[float, np.ndarray]:
    """Its enthalpy per kg and its mass fractions."""
    fuel = cantera.Solution("gri30.yaml")
    fuel.TPX = 298.15, PRESSURE, FUEL
    return fuel.enthalpy_mass, fuel.Y


def stirred(inlet: cantera.Solution, stay: float) -> bool:
    """Turn ``inlet`` into what leaves a lit reactor after ``stay`` ms; whether it burns."""
    tank = cantera.Reservoir(inlet, clone=True)
    inlet.TPX = HOT  # lit: the steady state that burns, if there is one
    reactor = cantera.IdealGasReactor(inlet, clone=True, volume=1.0)
    exhaust = cantera.Reservoir(inlet, clone=True)
    feed = cantera.MassFlowController(tank, reactor, mdot=lambda t: reactor.mass / (stay / 1000))
    cantera.PressureController(reactor, exhaust, primary=feed, K=0.01)
    cantera.ReactorNet([reactor]).advance_to_steady_state()
    inlet.state = reactor.phase.state
    return bool(inlet.T > COLD)


def emissions(design: Design, context: Context) -> tuple[float, float] | None:
    """Nitric oxides and carbon monoxide in ppm of dry gas, corrected to 15 % oxygen; None if the flame went out."""
    load, outside = context
    stream, first = gas(), min(design["first richness"], load)
    ratio = (PRESSURE / cantera.one_atm) ** (0.4 / 1.4)
    stream.TP = (outside + 273.15) * (1.0 + (ratio - 1.0) / 0.87), PRESSURE  # behind the compressor
    stream.set_equivalence_ratio(first, FUEL, AIR)
    share = stream.mixture_fraction(FUEL, AIR)  # kg of fuel in a kg of the first stage
    if not stirred(stream, design["first stay"]):
        return None
    late, (enthalpy, fuel) = share * (load / first - 1.0), cold_fuel()
    mixed = (stream.Y + late * fuel) / (1.0 + late)
    stream.HPY = (stream.enthalpy_mass + late * enthalpy) / (1.0 + late), PRESSURE, mixed
    if not stirred(stream, design["second stay"]):
        return None
    dry = 1.0 - stream["H2O"].X[0]
    scale = 1e6 / dry * (0.209 - 0.15) / max(0.209 - stream["O2"].X[0] / dry, 1e-6)
    return scale * float(stream["NO", "NO2"].X.sum()), scale * float(stream["CO"].X[0])


def dirt(design: Design, context: Context) -> float | None:
    if (found := emissions(design, context)) is None:
        return None
    nitric, carbon = found
    return nitric / NITRIC + carbon / CARBON + STAGES * (design["first stay"] + design["second stay"])


def outcome(design: Design, context: Context, rng: np.random.Generator) -> float | None:
    """As the analyzer reads it, with an error of two percent; nothing to read without a flame."""
    error = float(np.exp(0.02 * rng.normal()))
    return None if (read := dirt(design, context)) is None else read * error


@cache
def hours() -> np.ndarray:
    """(32, 2) load and air: quasi-random, most hours near full load, the air of a temperate year."""
    from scipy.stats import beta, norm, qmc

    u = qmc.Sobol(2, seed=1).random(32)
    return np.column_stack([0.5 + 0.2 * beta.ppf(u[:, 0], 2.5, 1.5), np.clip(norm.ppf(u[:, 1], 11, 8), -15, 40)])


def mean(design: Design) -> float:
    read = [dirt(design, tuple(hour)) for hour in hours().tolist()]
    return float(np.mean([OUT if one is None else min(one, OUT) for one in read]))


CASE = Case(
    name="combustor",
    space=SPACE,
    direction="minimize",
    outcome=outcome,
    context_distribution=hours(),
    mean=mean,
    usual={"first richness": 0.5, "first stay": 8.0, "second stay": 8.0},  # by eye, for full load on a mild day
)

if __name__ == "__main__":
    found = run(CASE, "edrbo-identify", evaluations=80, seed=0)
    print("after 80 hours:", {name: round(value, 3) for name, value in found.items()})
    print(f"mean outcome: {CASE.mean(found):.2f}, as usual {CASE.mean(CASE.usual):.2f}")
