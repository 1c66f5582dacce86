"""Draw docs/pictures/gallery-*.png, the pictures of docs/gallery.md, from one study of a coating line; a minute.

Public functions only (``edrbo.plot``): what is drawn here, a user draws in one line.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import fill
from typing import TYPE_CHECKING

from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from picture_style import take_style

import edrbo
from edrbo import plot
from edrbo.palette import EITHER

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OUT = Path(__file__).resolve().parents[1] / "docs" / "pictures"
RUNS = 24
LETTERS = 36  # a line of an axis' name
WIDTH, HEIGHT = 5.0, 3.2  # inches of one panel: as wide as the column of a phone, twice as sharp


def coat(speed: float, oven: float, humidity: float) -> float:
    """An invented gloss: the best speed follows the humidity, and a hot oven helps on wet days."""
    wet = (humidity - 55) / 30
    return 92 - ((speed - 34 - 8 * wet) / 9) ** 2 - ((oven - 130 - 15 * wet) / 25) ** 2 + random.gauss(0, 0.6)


def measured(study: edrbo.Study) -> None:
    for _ in range(RUNS):
        suggestion = study.ask()
        humidity = min(max(random.gauss(55, 14), 0), 100)
        study.tell(suggestion, {"humidity": humidity}, coat(suggestion["speed"], suggestion["oven"], humidity))


def stacked(draw: Callable[[list[Axes]], object], panels: int) -> Figure:
    """One panel below the other, so that each can be read on a phone."""
    figure = Figure(figsize=(WIDTH, HEIGHT * panels), layout="constrained")
    axes = [figure.add_subplot(panels, 1, k + 1) for k in range(panels)]
    draw(axes)
    for one in axes:
        one.grid(color=EITHER, alpha=0.2)  # a line for light pages would be bright on dark ones
        one.set_ylabel(fill(one.get_ylabel(), LETTERS))
        if one.collections and isinstance(one.collections[0], QuadMesh):  # words on the colors of the map
            one.grid(visible=False)
            for words in one.get_legend().get_texts():
                words.set_color("white")
    return figure


def main() -> None:
    take_style()
    random.seed(3)
    space = edrbo.Space(
        design={"speed": edrbo.Real(10, 60, unit="m/min"), "oven": edrbo.Real(80, 180, unit="°C")},
        context={"humidity": edrbo.Real(0, 100, unit="%")},
    )
    with (
        TemporaryDirectory() as folder,
        edrbo.Study.open(Path(folder) / "coating.db", space, seed=3, outcome="gloss", unit="GU") as study,
    ):
        measured(study)
        for name, panels, draw in (
            ("progress", 1, lambda axes: plot.progress(study, ax=axes)),
            ("slices", 2, lambda axes: plot.slices(study, ax=axes)),
            ("surface", 1, lambda axes: plot.surface(study, "speed", "humidity", ax=axes[0])),
            ("contexts", 2, lambda axes: plot.contexts(study, ax=axes)),
            ("sensitivity", 2, lambda axes: plot.sensitivity(study, ax=axes)),
            ("calibration", 1, lambda axes: plot.calibration(study, ax=axes[0])),
            ("tradeoff", 1, lambda axes: plot.tradeoff(study, ax=axes[0])),
            ("answers", 3, lambda axes: plot.answers(study, ax=axes)),
            ("results", 2, lambda axes: plot.results(study, ax=axes)),
        ):
            stacked(draw, panels).savefig(OUT / f"gallery-{name}.png")
            print(OUT / f"gallery-{name}.png")


if __name__ == "__main__":
    main()
