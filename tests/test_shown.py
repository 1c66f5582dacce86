"""What objects show when they are printed, and in a notebook."""

from __future__ import annotations

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import edrbo
from edrbo.optimizer.pareto import ParetoFront, ParetoPoint
from edrbo.text import answer_text

pytestmark = pytest.mark.torch_numeric

NASTY = "<script>alert(1)</script>"


class Cells(HTMLParser):
    """The tags and the texts of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def shown(thing: Any) -> list[str]:
    cells = Cells(thing._repr_html_())
    assert cells.tags <= {"table", "caption", "thead", "tbody", "tr", "th", "td", "p"}
    return cells.texts


def nasty_space() -> edrbo.Space:
    return edrbo.Space({"x": (0, 1), NASTY: [NASTY, "plain"]}, {"c": edrbo.Real(0, 100, unit="%")})


def experienced(**settings: Any) -> edrbo.Optimizer:
    optimizer = edrbo.Optimizer(nasty_space(), seed=0, outcome="gloss", unit="GU", **settings)
    rng = np.random.default_rng(0)
    for _ in range(8):
        suggestion = optimizer.ask()
        c = rng.uniform(20, 80)
        optimizer.tell(suggestion, {"c": c}, -((suggestion.design["x"] - 0.3 - c / 1000) ** 2))
    return optimizer


def test_a_printed_recommendation_says_what_every_interface_says() -> None:
    optimizer = experienced()
    found = optimizer.recommend()
    lines = str(found).splitlines()
    text = answer_text(found, optimizer.settings)
    assert lines[0].startswith(f"x = {found.design['x']:.3g}"[:5])
    assert lines[1] == "best for: mean over the conditions"
    assert lines[2:] == [
        *(f"{f.label}: {f.value} ({f.explanation})" for f in text.facts),
        *(f"! {d}" for d in text.doubts),
    ]
    assert len(str(found)) < 1500
    cells = shown(found)
    assert all(fact.value in cells for fact in text.facts)
    assert repr(found).startswith("Recommendation({")


def test_a_printed_recommendation_tells_names_that_are_not_of_the_space() -> None:
    found = experienced().recommend().in_words(lambda design: {"other": "thing"}, ["color"])
    assert str(found).startswith("other = thing\n")
    assert str(found).endswith("! Left open: color")
    assert shown(found)[-1] == "Left open: color"
    assert {tuple(run.design.items()) for run in found.nearest} == {(("other", "thing"),)}


def test_an_optimizer_and_a_study_show_how_far_they_are(tmp_path: Path) -> None:
    optimizer = experienced(title=NASTY)
    optimizer.ask()
    cells = shown(optimizer)
    assert "8 reported, 1 pending, 0 failed" in cells
    assert "gloss [GU], maximize" in cells
    with edrbo.Study.open(tmp_path / "one.edrbo", nasty_space(), title=NASTY) as study:
        study.tell(study.ask(), failed=True)
        cells = shown(study)
    assert cells[0] == f"Study {NASTY}"
    assert "0 reported, 0 pending, 1 failed" in cells


def test_a_space_shows_its_variables() -> None:
    cells = shown(edrbo.Space({"x": (0, 1), NASTY: [NASTY, "b"]}, {"c": edrbo.Real(0, 9, unit="%")}, ["x <= 0.5"]))
    assert NASTY in cells
    assert "0 to 9 %" in cells
    assert cells[-1] == "x <= 0.5"


def test_a_front_shows_its_designs() -> None:
    point = ParetoPoint({"x": 0.25, "kind": NASTY}, {"yield": 3.04}, {"yield": (2.9, 3.2)}, {"cost": 0.93})
    cells = shown(ParetoFront((point,), 1.5, {"yield": 1.0}, sure=False))
    assert cells[:6] == ["Pareto front", "x", "kind", "yield (95 %)", "cost holds", "0.25"]
    assert cells[6:9] == [NASTY, "3.04 (2.90 to 3.20)", "93 %"]
    assert "hypervolume of 1.5" in cells[9]
    assert "as surely as was asked for" in cells[10]


def test_nothing_heavy_is_loaded_for_it() -> None:
    code = (
        "import sys, edrbo; o = edrbo.Optimizer(edrbo.Space({'x': (0, 1)}))\n"
        "for x in (0.1, 0.5, 0.7): o.tell({'x': x}, value=x)\n"
        "found = o.recommend(); str(found); found._repr_html_(); o._repr_html_(); o.space._repr_html_()\n"
        "sys.exit('matplotlib' in sys.modules or 'pandas' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=300).returncode == 0
