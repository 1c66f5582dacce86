"""Colors are written down once, and the pages use the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from edrbo import palette

ROOT = Path(__file__).parents[1]
HEX = re.compile(r"[\"']#[0-9A-Fa-f]{3,6}[\"']")
PROGRAMS = [
    path for room in ("src", "benchmarks", "research", "scripts") for path in sorted((ROOT / room).rglob("*.py"))
]


def test_no_program_has_a_color_of_its_own() -> None:
    own = [str(path.relative_to(ROOT)) for path in PROGRAMS if HEX.search(path.read_text(encoding="utf-8"))]
    assert own == ["src/edrbo/palette.py"]


@pytest.mark.parametrize(
    ("name", "color"), [("blue", palette.BLUE), ("orange", palette.VERMILION), ("green", palette.GREEN)]
)
def test_the_report_has_these_colors(name: str, color: str) -> None:
    style = (ROOT / "src/edrbo/lab/report/page.css").read_text(encoding="utf-8")
    light = style.partition("@media")[0]
    assert f"--{name}: {color.lower()};" in light


def test_colors_differ() -> None:
    assert len({color.lower() for color in palette.OKABE_ITO}) == len(palette.OKABE_ITO) == 8
