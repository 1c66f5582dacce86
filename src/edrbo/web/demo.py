"""A study with invented data, to look at the page: a coating line that dries differently from day to day."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import numpy as np

from edrbo.space import Integer, Real, Space
from edrbo.streams import stream
from edrbo.study.study import Study

PEOPLE = ("Ada", "Grace", "Emmy")
RUNS = 14


def demo_space() -> Space:
    return Space(
        design={
            "speed": Real(10, 60, unit="m/min", step=0.5),
            "temperature": Real(80, 160, unit="°C", step=1.0),
            "layers": Integer(1, 4),
            "nozzle": ["slot", "roll"],
        },
        context={"humidity": Real(20, 90, unit="%"), "viscosity": Real(1, 9, unit="Pa s")},
    )


def gloss(design: dict[str, object], humidity: float, viscosity: float) -> float:
    """An invented truth: gloss units, best where the film just dries."""
    speed, heat, layers = (float(design[name]) for name in ("speed", "temperature", "layers"))  # type: ignore[arg-type]
    dry = heat - 70 - 0.55 * speed - 0.5 * (humidity - 50) - 4 * layers
    thick = layers * (1.2 if design["nozzle"] == "slot" else 1.0) - 0.25 * viscosity
    return 92 - 22 * (1 - math.exp(-((dry / 34) ** 2))) - 6 * (thick - 1.6) ** 2 + 0.06 * speed


def make_demo(folder: str) -> str:
    """The study's file: runs of a week, one that failed, one without its context, one to be done."""
    path = Path(folder) / "coating.db"
    study = Study.open(path, demo_space(), name="Coating line 2", seed=3, by="Ada", outcome="gloss", unit="GU")
    chance = stream(0, "demonstration study")
    start = time.time() - 5 * 86_400
    for k in range(RUNS):
        suggestion = study.ask()
        humidity, viscosity = (
            float(np.clip(chance.normal(52, 11), 20, 90)),
            float(np.clip(chance.normal(4.5, 1.2), 1, 9)),
        )
        stamp: dict[str, Any] = {"by": PEOPLE[k % 3], "at": start + k * 29_000}
        if k == 5:
            study.tell(suggestion, failed=True, why="the nozzle was blocked", **stamp)
            continue
        value = gloss(suggestion.design, humidity, viscosity) + float(chance.normal(0, 0.8))
        context = {"humidity": round(humidity, 1), "viscosity": round(viscosity, 2)}
        late = k == RUNS - 1
        study.tell(suggestion, None if late else context, round(value, 1), **stamp)
    study.note(3, "new batch of lacquer from here on", by="Ada", at=start + 3 * 29_000 + 600)
    study.ask()
    return str(path)
