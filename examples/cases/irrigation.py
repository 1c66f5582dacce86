"""A field that is watered under a summer nobody knows: how dry may the soil get before the sprinklers start?

Simulator: AquaCrop of the FAO, as the package aquacrop, with potatoes on sandy loam in Suffolk, England. The weather is
that of the climate model CanESM5 (CMIP6), which comes with the package: 1995 to 2014, and 2080 to 2099 under SSP5-8.5.
The context is the season: rain and reference evapotranspiration, known when it is over. What else differs between
seasons is noise to the learner. The outcome is what the harvest earns less what the water costs.

Designs are for the weather of 1995 to 2014. What they earn in 2080 to 2099 is ``later``: a distribution shift that
nobody invented.

    pip install aquacrop && python examples/cases/irrigation.py
"""

from __future__ import annotations

import os
import warnings
from functools import cache, lru_cache
from pathlib import Path

os.environ["DEVELOPMENT"] = "True"  # plain Python: a season takes a fifth of a second, compiling takes minutes

import aquacrop
import numpy as np
import pandas as pd
from case import Case, Context, Design, run

import edrbo

MODEL = Path(aquacrop.__file__).parent / "data" / "cmip6_woolpit" / "CanESM5"
# thousand pounds for a tonne of dry matter (five tonnes of potatoes), and for a millimeter of water on a hectare
PRICE, WATER = 0.75, 0.003
THEN, LATER = range(1995, 2015), range(2080, 2100)

SPACE = edrbo.Space(
    design={  # the share of the water in the root zone below which it is irrigated, by stage of growth
        "emerging": edrbo.Real(0, 100, unit="%"),
        "growing": edrbo.Real(0, 100, unit="%"),
        "flowering": edrbo.Real(0, 100, unit="%"),
        "ripening": edrbo.Real(0, 100, unit="%"),
    },
    context={"rain": edrbo.Real(0, 600, unit="mm"), "evaporation": edrbo.Real(200, 900, unit="mm")},
)


@cache
def weather(later: bool) -> pd.DataFrame:
    name = "ssp585_2080_2099" if later else "historical_1995_2014"
    days = pd.read_csv(next(MODEL.glob(f"CanESM5_{name}_*.csv")), parse_dates=["Date"])
    return days[["MinTemp", "MaxTemp", "Precipitation", "ReferenceET", "Date"]]


@cache
def season(year: int) -> Context:
    days = weather(year in LATER)
    part = days[(days.Date >= f"{year}-04-15") & (days.Date <= f"{year}-09-30")]
    return float(part.Precipitation.sum()), float(part.ReferenceET.sum())


@lru_cache(maxsize=4096)
def _profit(thresholds: tuple[float, ...], year: int) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the package, about pandas
        model = aquacrop.AquaCropModel(
            f"{year}/04/15",
            f"{year}/12/01",
            weather(year in LATER),
            aquacrop.Soil("SandyLoam"),
            aquacrop.Crop("PotatoLocalGDD", planting_date="04/25"),
            aquacrop.InitialWaterContent(value=["FC"]),
            irrigation_management=aquacrop.IrrigationManagement(irrigation_method=1, SMT=list(thresholds)),
        )
        model.run_model(till_termination=True)
    (harvest,) = model.get_simulation_results().to_dict("records")
    return PRICE * harvest["Dry yield (tonne/ha)"] - WATER * harvest["Seasonal irrigation (mm)"]


def profit(design: Design, year: int) -> float:
    return _profit(tuple(round(float(design[name]), 2) for name in SPACE.design_names), year)


def year_of(context: Context) -> int:
    return min(THEN, key=lambda year: abs(season(year)[0] - context[0]) + abs(season(year)[1] - context[1]))


def outcome(design: Design, context: Context, rng: np.random.Generator) -> float:
    return profit(design, year_of(context))


def mean(design: Design) -> float:
    return float(np.mean([profit(design, year) for year in THEN]))


def later(design: Design) -> float:
    """What a design earns in 2080 to 2099."""
    return float(np.mean([profit(design, year) for year in LATER]))


CASE = Case(
    name="irrigation",
    space=SPACE,
    direction="maximize",
    outcome=outcome,
    context_distribution=np.array([season(year) for year in THEN]),
    mean=mean,
    usual={"emerging": 60.0, "growing": 60.0, "flowering": 60.0, "ripening": 60.0},  # keep it above 60 %, says the book
)

if __name__ == "__main__":
    found = run(CASE, "edrbo-identify", evaluations=40, seed=0)
    print("after 40 seasons:", {name: round(value) for name, value in found.items()})
    print(f"thousand pounds a hectare: {CASE.mean(found):.2f}, as usual {CASE.mean(CASE.usual):.2f}")
    print(f"in 2080 to 2099: {later(found):.2f}, as usual {later(CASE.usual):.2f}")
