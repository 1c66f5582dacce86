"""A study with invented data, to look at the page: a coating line that dries differently from day to day."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from edrbo.lab.study import Study
from edrbo.optimizer.optimizer import Optimizer
from edrbo.records.events import Event
from edrbo.records.settings import DEFAULT, Settings
from edrbo.space import Integer, Real, Space
from edrbo.streams import stream

PEOPLE = ("Ada", "Grace", "Emmy")
RUNS = 14
BETWEEN = 29_000.0  # seconds from one run to the next
WAITS = {"asked": 3_000.0, "reported": 900.0, "failed": 2_100.0, "noted": 600.0}  # how long before the next one's turn


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
    settings = Settings(demo_space(), DEFAULT, seed=3, outcome="gloss", unit="GU")
    with Study.open_with(path, settings, name="Coating line 2", by=PEOPLE[0]) as study:
        study.record_all(lambda state: _week(Optimizer.of(state), time.time()))
    return str(path)


def _week(optimizer: Optimizer, now: float) -> list[Event]:
    """What would have been recorded if the runs had been made until ``now``, each with who and when."""
    chance = stream(0, "demonstration study")
    for k in range(RUNS):
        suggestion = optimizer.ask()
        humidity, viscosity = (
            float(np.clip(chance.normal(52, 11), 20, 90)),
            float(np.clip(chance.normal(4.5, 1.2), 1, 9)),
        )
        if k == 5:
            optimizer.tell(suggestion, failed=True, why="the nozzle was blocked")
            continue
        value = gloss(suggestion.design, humidity, viscosity) + float(chance.normal(0, 0.8))
        context = {"humidity": round(humidity, 1), "viscosity": round(viscosity, 2)}
        optimizer.tell(suggestion, None if k == RUNS - 1 else context, round(value, 1))
        if k == 3:
            optimizer.note(suggestion, "new batch of lacquer from here on")
    optimizer.ask()
    events = []
    for event in optimizer.state.history:
        run: int = event.id  # type: ignore[attr-defined]
        at = now - (RUNS - run) * BETWEEN - WAITS[event.kind]
        events.append(replace(event, by=PEOPLE[run % len(PEOPLE)], at=at))
    return events
