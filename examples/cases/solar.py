"""A solar array: how steep, facing where, and how large an inverter? Simulator and weather: pvlib.

The farmer has a rig that can be turned, beside an array that stands as the book says: each day one setting is tried,
and at night it is known how much more the rig has earned. What the sky did is known as well: how high the sun stood at
noon, which share of a clear sky's light came through, and which share of that after noon. The archive of such days, a
typical year in Greensboro, North Carolina, comes with pvlib (NREL's TMY3 file 723170).

    python examples/cases/solar.py
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pvlib
from case import Case, Context, Design, run

import edrbo

WEATHER = Path(pvlib.__file__).parent / "data" / "723170TYA.CSV"
LATITUDE, LONGITUDE = 36.1, -79.95
PRICE = np.where((np.arange(24) >= 16) & (np.arange(24) < 21), 0.36, 0.12)  # per kWh; evenings are expensive
PANELS = 10.0  # kW of panels
INVERTER = 0.065  # per kW of inverter and day: 470 per kW over twenty years

USUAL = {"tilt": 36.1, "azimuth": 180.0, "inverter": PANELS / 1.2}  # the latitude, due south, a ratio of 1.2

SPACE = edrbo.Space(
    design={
        "tilt": edrbo.Real(0, 90, unit="°"),
        "azimuth": edrbo.Real(90, 270, unit="°"),
        "inverter": edrbo.Real(4, 12, unit="kW"),
    },
    context={"noon": edrbo.Real(25, 80, unit="°"), "clearness": (0, 1.2), "afternoon": (0, 1)},
)


@cache
def year() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Weather and position of the sun for 365 × 24 hours, the latter in the middle of each."""
    weather, _ = pvlib.iotools.read_tmy3(WEATHER, coerce_year=2001, map_variables=True)
    weather = weather.iloc[: 365 * 24]
    middle = weather.index - pd.Timedelta(minutes=30)
    sun = pvlib.solarposition.get_solarposition(middle, LATITUDE, LONGITUDE)
    return weather.reset_index(drop=True), sun.reset_index(drop=True)


@cache
def days() -> np.ndarray:
    """(365, 3) height of the sun at noon, light as a share of a clear sky's, and which share of it came after noon."""
    weather, sun = year()
    height = 90.0 - sun["apparent_zenith"].to_numpy().reshape(365, 24)
    clear = pvlib.clearsky.haurwitz(sun["apparent_zenith"])["ghi"].to_numpy().reshape(365, 24).sum(axis=1)
    light = weather["ghi"].to_numpy().reshape(365, 24)
    return np.column_stack(
        [height.max(axis=1), light.sum(axis=1) / clear, light[:, 12:].sum(axis=1) / light.sum(axis=1)]
    )


def incomes(design: Design) -> np.ndarray:
    """(365,) the income of each day of the year, less the day's share of the inverter."""
    weather, sun = year()
    light = pvlib.irradiance.get_total_irradiance(
        design["tilt"],
        design["azimuth"],
        sun["apparent_zenith"],
        sun["azimuth"],
        weather["dni"],
        weather["ghi"],
        weather["dhi"],
        dni_extra=pvlib.irradiance.get_extra_radiation(172),
        model="haydavies",
    )["poa_global"].fillna(0.0)
    cell = pvlib.temperature.faiman(light, weather["temp_air"], weather["wind_speed"])
    power = pvlib.pvsystem.pvwatts_dc(light, cell, PANELS, -0.004)
    fed = pvlib.inverter.pvwatts(power, design["inverter"] / 0.96)
    return fed.to_numpy().reshape(365, 24) @ PRICE - INVERTER * design["inverter"]


def outcome(design: Design, context: Context, rng: np.random.Generator) -> float:
    """By how much the rig earned more than the array beside it on the day of this context."""
    day = int(np.abs(days() - np.array(context)).sum(axis=1).argmin())
    return float((incomes(design) - incomes(USUAL))[day])


CASE = Case(
    name="solar",
    space=SPACE,
    direction="maximize",
    outcome=outcome,
    context_distribution=days(),
    mean=lambda design: float(incomes(design).mean()),
    usual=USUAL,
    archive=True,
)

if __name__ == "__main__":
    found = run(CASE, "edrbo-identify", evaluations=80, seed=0)
    print("after 80 days:", {name: round(value, 1) for name, value in found.items()})
    print(f"income a day, mean of the year: {CASE.mean(found):.3f}, as people do it {CASE.mean(CASE.usual):.3f}")
