"""What a chart shows is drawn where its axes say, on pages as in notebooks; every word is escaped."""

from __future__ import annotations

import math
import re
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edrbo.charts import Axis, Band, Bars, Chart, Heat, Line, Points, Rule, Spans, chart_html, number, span, typeset
from edrbo.charts.description import date_ticks, tick_texts, ticks
from edrbo.charts.figure import draw_all
from edrbo.errors import InvalidValueError
from edrbo.palette import CIVIDIS, NAMED, shade
from edrbo.records.goals import Robust

SVG = re.compile(r"<svg.*</svg>", re.DOTALL)


def picture(chart: Chart) -> ElementTree.Element:
    """The one picture of a chart that is not wide, without its legend."""
    return ElementTree.fromstring(SVG.findall(chart_html(chart).partition("<ul")[0])[0])


def plot(chart: Chart) -> tuple[ElementTree.Element, float, float]:
    """What stands inside the frame, and how large that is."""
    frame = picture(chart).find("svg[@class='plot']")
    assert frame is not None
    return frame, float(frame.attrib["width"]), float(frame.attrib["height"])


def chart_of(*marks: Any, x: Axis | None = None, y: Axis | None = None) -> Chart:
    return Chart("t", x or Axis.of("x", (0.0, 10.0)), y or Axis.of("y", (0.0, 1.0)), marks)


# -------------------------------------------------------------------- numbers and words


@given(st.floats(-1e12, 1e12), st.floats(1e-6, 1e9))
def test_ticks_are_inside_and_round(low: float, width: float) -> None:
    high = low + max(width, 1e-9 * abs(low))
    found = ticks(low, high)
    slack = 1e-6 * (high - low)
    assert 1 <= len(found) <= 12
    assert all(low - slack <= value <= high + slack for value in found)


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True, width=32), max_size=5))
def test_spans_are_never_empty(values: list[float]) -> None:
    low, high = span(values)
    assert low < high
    finite = [value for value in values if np.isfinite(value)]
    assert all(low <= value <= high for value in finite)


def test_numbers_for_people() -> None:
    assert [number(v) for v in (0.0, 1.23456, -2.0, 1e-7, 123456.0, float("nan"))] == [
        "0",
        "1.235",
        "−2",
        "1e−7",
        "1.235e5",
        "–",
    ]


def test_numbers_of_an_axis_have_the_same_decimals() -> None:
    assert tick_texts([0.0, 0.5, 1.0]) == ["0.0", "0.5", "1.0"]
    assert tick_texts([-20.0, 0.0, 20.0]) == ["−20", "0", "20"]
    assert [text for _, text in Axis.of("runs", (0.4, 2.6), whole=True).ticks()] == ["1", "2"]


@given(st.floats(1e9, 2e9), st.floats(60.0, 3e8))
def test_dates_are_inside_in_order_and_few(low: float, width: float) -> None:
    found = date_ticks(low, low + width)
    assert 1 <= len(found) <= 9
    assert all(low <= at <= low + width for at, _ in found)
    assert all(a < b for (a, _), (b, _) in pairwise(found))


def test_dates_of_a_week_are_days() -> None:
    start = datetime(2026, 3, 2).timestamp()
    assert [text for _, text in date_ticks(start, start + 5 * 86_400)][:2] == ["2 Mar", "3 Mar"]


def test_a_thin_space_stands_before_per_cent() -> None:
    assert typeset("95 % of 3 %, and % alone") == "95\u202f% of 3\u202f%, and % alone"


# -------------------------------------------------------------------- where things stand


@given(st.floats(0.0, 10.0), st.floats(0.0, 1.0))
def test_a_dot_stands_where_its_axes_say(x: float, y: float) -> None:
    chart = chart_of(Points([x], [y], tips=["here"], runs=[7]))
    frame, wide, high = plot(chart)
    (dot,) = picture(chart).findall("circle")
    left, top = float(frame.attrib["x"]), float(frame.attrib["y"])
    assert float(dot.attrib["cx"]) == pytest.approx(left + wide * x / 10, abs=0.11)
    assert float(dot.attrib["cy"]) == pytest.approx(top + high * (1 - y), abs=0.11)
    assert (dot.attrib["data-tip"], dot.attrib["data-run"]) == ("here", "7")


def test_dots_beyond_the_axes_are_not_drawn() -> None:
    marks = Points([-1.0, 5.0, 11.0, 5.0], [0.5, 0.5, 0.5, math.nan])
    assert len(picture(chart_of(marks)).findall("circle")) == 1


def test_a_logarithm_is_as_far_for_ten_times_as_much() -> None:
    axis = Axis.of("rate", (1e-4, 1.0), log=True)
    assert [axis.place(10.0**k) for k in (-4, -3, -2, 0)] == pytest.approx([0.0, 0.25, 0.5, 1.0])
    assert [text for _, text in axis.ticks()] == ["0.0001", "0.001", "0.01", "0.1", "1"]


def test_lines_and_bands_end_at_the_frame() -> None:
    """They stand in a picture of their own, which shows nothing beyond its edges."""
    frame, _, high = plot(chart_of(Line([0, 10], [-50, 50]), Band([0, 10], [-9, -9], [9, 9])))
    assert {part.tag for part in frame} == {"polyline", "polygon"}
    assert "overflow" not in frame.attrib
    bar = plot(chart_of(Bars([0, 5, 10], [0.5, 0.25])))[0].findall("rect")[0]
    assert float(bar.attrib["height"]) == pytest.approx(high / 2, abs=0.1)


def test_a_limit_goes_right_across() -> None:
    frame, wide, high = plot(chart_of(Rule("y", 0.25, label="limit: at most 0.25")))
    (line,) = frame.findall("line")
    assert [float(line.attrib[end]) for end in ("x1", "y1", "x2", "y2")] == pytest.approx(
        [0.0, 0.75 * high, wide, 0.75 * high], abs=0.06
    )


def test_every_point_of_a_line_says_its_numbers() -> None:
    frame, wide, _ = plot(chart_of(Line([0, 5, 10], [0, 1, 0], tips=["a", "b", "c"])))
    rooms = frame.findall("rect[@class='hit']")
    assert [room.attrib["data-tip"] for room in rooms] == ["a", "b", "c"]
    middle = float(rooms[1].attrib["x"]), float(rooms[1].attrib["width"])
    assert middle == pytest.approx((wide / 4, wide / 2), abs=0.1)


def test_a_heat_map_is_bright_where_it_is_high_and_blank_where_nothing_is() -> None:
    heat = Heat([0, 5, 10], [0, 0.5, 1.0], [[1.0, 2.0], [math.nan, 3.0]], "gloss", [["a", "b"], ["c", "d"]])
    cells = plot(chart_of(heat))[0].findall("rect")
    assert [cell.attrib["data-tip"] for cell in cells] == ["a", "b", "d"]
    assert [cell.attrib["fill"] for cell in cells] == [shade(0.0), shade(0.5), shade(1.0)]
    assert heat.ends == (1.0, 3.0)


def test_shades_are_those_of_matplotlib() -> None:
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    for k, color in enumerate(CIVIDIS):
        assert to_hex(colormaps["cividis"](k / 9)).upper() == color
        assert shade(k / 9).upper() == color


# -------------------------------------------------------------------- words


def test_words_are_escaped() -> None:
    chart = Chart(
        "<t>",
        Axis("<x>", -1, 1, ("<a>",)),
        Axis.of("&y", (0, 1)),
        (Points([0], [0.5], label="<l>", tips=['"><script>']),),
    )
    text = chart_html(chart)
    assert not re.search(r"<(t|x|a|l|script)>", text)
    for word in ("&lt;t&gt;", "&lt;x&gt;", "&lt;a&gt;", "&lt;l&gt;", "&amp;y", "&quot;&gt;&lt;script&gt;"):
        assert word in text


def test_a_legend_explains_each_kind_of_mark_once() -> None:
    marks = (
        Points([1], [0.5], "blue", "result"),
        Points([2], [0.5], "blue", "result"),
        Points([3], [0.5], "orange", "breaks a limit"),
        Line([0, 1], [0, 1]),
        Rule("y", 0.5, label="limit"),
        Spans([1], [0], [1], label="tried"),
    )
    legend = chart_html(chart_of(*marks)).partition("<ul")[2]
    assert re.findall(r"</svg>([^<]+)</li>", legend) == ["result", "breaks a limit", "limit", "tried"]


def test_a_wide_chart_has_a_picture_for_either_screen() -> None:
    text = chart_html(Chart("t", Axis.of("x", (0, 1)), Axis.of("y", (0, 1)), wide=True))
    assert re.findall(r'<svg class="(\w+)" viewBox="0 0 (\d+)', text) == [("broad", "920"), ("narrow", "440")]


def test_long_names_of_axes_take_lines_and_room() -> None:
    goal = Robust(0.1).axis("maximize", "thickness of the layer", "µm")
    one, many = (chart_of(y=Axis.of(name, (0.0, 1.0))) for name in ("y", goal))
    names = [text.text for text in picture(many).findall("text[@class='name']")]
    assert " ".join(str(name) for name in names) == typeset(f"x {goal}")
    assert plot(many)[1] == pytest.approx(plot(one)[1] - 15 * (len(names) - 2))
    endless = picture(chart_of(y=Axis.of("y" * 400, (0.0, 1.0)))).findall("text[@class='name']")
    assert len(endless) == 4
    assert str(endless[-1].text).endswith("…")


# -------------------------------------------------------------------- with matplotlib


def test_a_notebook_shows_the_same() -> None:
    marks = (
        Band([0, 10], [0.1, 0.2], [0.5, 0.6], label="95 % sure"),
        Line([0, 10], [0.3, 0.4], "green", "expected"),
        Points([1, 2], [0.5, 0.6], "orange", "run", lower=[0.4, 0.5], upper=[0.6, 0.7]),
        Rule("y", 0.9, label="limit"),
        Spans([0.2], [1], [3], "purple", "tried"),
    )
    figure = draw_all([chart_of(*marks), chart_of(Bars([0, 1, 2], [0.5, 0.2]), x=Axis.of("day", (0, 2), ["a", "b"]))])
    one, two = figure.axes
    assert (one.get_xlim(), one.get_ylim()) == ((0.0, 10.0), (0.0, 1.0))
    lines = {line.get_label(): line for line in one.lines}
    assert lines["expected"].get_xydata().tolist() == [[0.0, 0.3], [10.0, 0.4]]
    assert lines["expected"].get_color() == NAMED["green"]
    assert lines["run"].get_xydata().tolist() == [[1.0, 0.5], [2.0, 0.6]]
    assert {text.get_text() for text in one.get_legend().get_texts()} == {
        typeset("95 % sure"),
        "expected",
        "run",
        "limit",
        "tried",
    }
    assert [label.get_text() for label in two.get_xticklabels()] == ["a", "b"]


def test_on_axes_that_are_given() -> None:
    from matplotlib.figure import Figure

    axes = Figure().subplots(1, 2)
    assert draw_all([chart_of(), chart_of()], axes) is axes[0].figure
    with pytest.raises(InvalidValueError):
        draw_all([chart_of(), chart_of()], axes[0])


@pytest.mark.parametrize("kind", ["pdf", "svg"])
def test_a_stored_picture_has_fonts_that_journals_take_and_no_date(kind: str, tmp_path: Path) -> None:
    chart = Chart("A title", Axis("x", 0.0, 1.0), Axis("y", 0.0, 1.0), (Points([0.5], [0.5], label="dot"),))
    path = tmp_path / f"picture.{kind}"
    draw_all([chart]).savefig(path)
    stored = path.read_bytes()
    assert b"Type3" not in stored
    assert b"CreationDate" not in stored
    assert b"<dc:date>" not in stored
    if kind == "pdf":
        assert b"CIDFontType2" in stored
    draw_all([chart]).savefig(path)
    assert path.read_bytes() == stored
