"""What objects show when they are printed, and in a notebook."""

from __future__ import annotations

import math
import subprocess
import sys
from base64 import b64decode
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

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
        self.pictures: list[ElementTree.Element] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        self.tags.add(tag)
        if tag == "img":
            kind, _, data = dict(attributes)["src"].partition(";base64,")
            assert kind == "data:image/svg+xml"
            self.pictures.append(ElementTree.fromstring(b64decode(data)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def shown(thing: Any) -> list[str]:
    """The texts of a table, without those of the legend."""
    cells = Cells(thing._repr_html_())
    assert cells.tags <= {"table", "caption", "thead", "tbody", "tr", "th", "td", "p", "span", "img"}
    return cells.texts[: cells.texts.index("■")] if "■" in cells.texts else cells.texts


def picture(thing: Any) -> ElementTree.Element:
    """The one picture, which is a document of its own that loads nothing."""
    (found,) = Cells(thing._repr_html_()).pictures
    assert found.tag == "{http://www.w3.org/2000/svg}svg"
    assert not [one for one in found.iter() if one.tag.rpartition("}")[2] in ("script", "image", "use", "a")]
    assert "url(" not in "".join(found.itertext())
    return found


def drawn(thing: Any, kind: str) -> int:
    """How many things of a kind a picture shows."""
    return sum(kind in one.get("class", "").split() for one in picture(thing).iter())


def words(thing: Any) -> list[str]:
    return [one.text or "" for one in picture(thing).iter("{http://www.w3.org/2000/svg}text")]


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
    wanted = {"yield": edrbo.Maximize(), NASTY: edrbo.Minimize(unit="eur"), "cost": edrbo.Limit(upper=1.0)}
    settings = edrbo.Optimizer(edrbo.Space({"x": (0, 1), "kind": [NASTY, "b"]}), outcomes=wanted).settings
    values, ends = {"yield": 3.04, NASTY: 1.0}, {"yield": (2.9, 3.2), NASTY: (0.5, math.inf)}
    point = ParetoPoint({"x": 0.25, "kind": NASTY}, values, ends, {"cost": 0.93})
    front = ParetoFront((point,), 1.5, {"yield": 1.0, NASTY: 2.0}, sure=False, settings=settings)
    cells = shown(front)
    assert cells[:6] == ["Pareto front", "x", "kind", "yield", f"{NASTY} [eur]", "cost holds"]
    assert cells[6:11] == ["0.25", NASTY, "3.04 (2.90 to 3.20)", "1", "93 % sure"]
    assert "hypervolume of 1.5" in cells[11]
    assert "as surely as was asked for" in cells[12]
    assert str(front).splitlines()[0].startswith("x 0.25; ")
    assert drawn(front, "dot") == 1
    assert f"{NASTY} [eur]" in words(front)


def test_pictures_show_what_there_is() -> None:
    optimizer = experienced()
    assert drawn(optimizer, "dot") == 8
    assert "gloss [GU]" in words(optimizer)
    assert Cells(edrbo.Optimizer(nasty_space())._repr_html_()).pictures == []
    found = optimizer.recommend()
    assert drawn(found, "dot") == 8 + 2
    assert drawn(found, "span") == 2
    assert {"results", "next run", "on average"} <= set(words(found))
    other = optimizer.recommend(goal="cvar:0.2")
    assert (drawn(other, "span"), "goal" in words(other)) == (3, True)
    policy = optimizer.policy()
    assert drawn(policy, "dot") == len(policy.rows)
    assert "c [%]" in words(policy)
    space = edrbo.Space({"x": (0, 1), "y": (0, 1)}, constraints=["x + y <= 0.5"])
    assert drawn(space, "dot") == 150
    high = [float(one.get("cy", "nan")) for one in picture(space).iter() if "dot" in one.get("class", "")]
    assert min(high) > 90  # none in the upper half, which the constraint forbids
    assert drawn(edrbo.Space({"x": (0, 1)}), "dot") == 150


def test_a_result_is_its_recommendation_and_its_results() -> None:
    result = edrbo.maximize(lambda design: -((design["x"] - 0.4) ** 2), edrbo.Space({"x": (0, 1)}), 6, progress=False)
    assert str(result) == f"{result.recommendation}\n{result.optimizer!r}"
    assert len(Cells(result._repr_html_()).pictures) == 2


def test_what_is_printed_is_short() -> None:
    optimizer = experienced(title="Coating")
    assert str(optimizer).splitlines()[:2] == ["Optimizer Coating", "outcome: gloss [GU], maximize"]
    assert str(optimizer.space).splitlines()[0] == "x (set): 0 to 1"
    (first, *_), last = optimizer.runs, optimizer.ask()
    assert repr(first).startswith("NamedRun(0, reported, design={'x': ")
    assert (first.design[NASTY], list(first.met), first.met["c"]) == (
        optimizer.space.decode_designs(first.x)[0][NASTY],
        ["c"],
        first.context[0],
    )
    waiting = optimizer.runs[-1]
    assert (waiting.design, waiting.met, waiting.status) == (last.design, {}, "pending")


def test_nothing_heavy_is_loaded_for_it() -> None:
    code = (
        "import sys, edrbo; o = edrbo.Optimizer(edrbo.Space({'x': (0, 1)}))\n"
        "for x in (0.1, 0.5, 0.7): o.tell({'x': x}, value=x)\n"
        "found = o.recommend(); str(found); found._repr_html_(); o._repr_html_(); o.space._repr_html_()\n"
        "sys.exit('matplotlib' in sys.modules or 'pandas' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=300).returncode == 0
