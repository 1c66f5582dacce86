"""The charts of a study show its runs, its limits and what is believed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import edrbo
from edrbo import Optimizer, Space, Study
from edrbo.charts import Bars, Chart, Heat, Line, Points, Rule, Spans
from edrbo.errors import NothingReportedError
from edrbo.plot import Pictures, thinned
from edrbo.space import Integer, Real

SPACE = Space(
    {"speed": Real(10, 60, unit="m/min"), "layers": Integer(1, 4), "primer": ["A", "B"]},
    {"humidity": Real(0, 100, unit="%"), "shift": ["day", "night"]},
    constraints=["speed + 10 * layers <= 80"],
)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Ten runs: two break the limit, one failed, one is left out, one waits, one was not tried."""
    outcomes = {"gloss": edrbo.Maximize(unit="GU"), "roughness": edrbo.Limit(upper=2.0, unit="µm", probability=0.5)}
    study = Study.open(tmp_path_factory.mktemp("p") / "s.db", SPACE, outcomes=outcomes, method="erbo", by="Kim")
    draw = np.random.default_rng(0)
    for k in range(8):
        design = {"speed": 12.0 + 5 * k, "layers": 1 + k % 4 if k < 6 else 1, "primer": "AB"[k % 2]}
        context = {"humidity": 30 + 5.0 * k, "shift": ("day", "night")[k % 2]}
        gloss = 80 - ((design["speed"] - 35) / 5) ** 2 + draw.normal()
        study.tell(design, context, {"gloss": gloss, "roughness": 2.5 if k > 5 else 1.0 + 0.1 * k})
    study.tell({"speed": 55, "layers": 1, "primer": "A"}, failed=True, why="tore")
    study.drop(2, "smeared")
    study.cancel(study.ask(), "no primer")
    study.ask()
    return study


@pytest.fixture(scope="module")
def pictures(study: Study) -> Pictures:
    return Pictures(study.optimizer)


def labeled(chart: Chart) -> dict[str, Any]:
    return {mark.label: mark for mark in chart.marks if not isinstance(mark, Heat) and mark.label}


def runs_of(mark: Points) -> list[int]:
    return list(mark.runs)


def test_progress_shows_every_run_for_what_it_is(pictures: Pictures) -> None:
    marks = labeled(pictures.progress())
    assert runs_of(marks["result"]) == [0, 1, 3, 4, 5]
    assert runs_of(marks["breaks a limit"]) == [6, 7]
    assert runs_of(marks["left out"]) == [2]
    assert runs_of(marks["failed, no result"]) == [8]
    assert marks["failed, no result"].x == [9.0]
    values = [pictures.state.runs[key].value for key in (0, 1, 3, 4, 5)]
    assert list(marks["result"].y) == values
    assert "gloss" in marks["result"].tips[0]
    assert "humidity 30 %" in marks["result"].tips[0]
    assert "Kim" in marks["result"].tips[0]
    assert "breaks the limit on roughness" in marks["breaks a limit"].tips[0]


@given(st.integers(0, 100), st.integers(200, 1500), st.integers(1, 8), st.sampled_from([1e-300, 1.0, 1e300]))
def test_of_many_points_those_that_lie_alone_are_drawn(seed: int, most: int, alone: int, scale: float) -> None:
    """A crowd of thousands is thinned evenly; what lies apart from it stays, wherever it came."""
    draw = np.random.default_rng(seed)
    x, y = np.arange(3000.0), draw.normal(size=3000)
    rows = draw.choice(3000, alone, replace=False)
    y[rows] = 20.0 * (1 + np.arange(alone)) * draw.choice([-1, 1], alone)
    keep = thinned(x, y * scale, most=most)
    assert len(keep) == most
    assert (np.diff(keep) > 0).all()
    assert set(rows) <= set(keep)
    assert np.histogram(keep, bins=4, range=(0, 3000))[0].min() > most / 8
    assert thinned(x[:most], y[:most], most=most).tolist() == list(range(most))


def test_the_best_so_far_keeps_the_limits(pictures: Pictures) -> None:
    line = labeled(pictures.progress())["best so far within the limits"]
    kept = {key: pictures.state.runs[key].value for key in (0, 1, 3, 4, 5)}
    assert max(line.y) == max(value for value in kept.values() if value is not None)
    assert list(line.y) == sorted(line.y)


def test_a_limit_is_a_line_in_every_chart_of_its_outcome(pictures: Pictures) -> None:
    for chart in (
        pictures.progress("roughness"),
        pictures.along(pictures.slices[0], "roughness"),
        pictures.outcome_by_context(0, "roughness"),
        pictures.ranked("roughness"),
    ):
        (line,) = [mark for mark in chart.marks if isinstance(mark, Rule) and mark.label.startswith("limit")]
        assert (line.axis, line.at, line.label) == ("y", 2.0, "limit: at most 2 µm")
        assert chart.y.low < 2.0 < chart.y.high
        assert runs_of(labeled(chart)["breaks a limit"]) in ([6, 7], [7, 6])


def test_a_slice_is_what_is_predicted(pictures: Pictures) -> None:
    part = pictures.slices[0]
    assert part.name == "speed"
    answer = pictures.recommendation.design
    for name in ("gloss", "roughness"):
        chart = pictures.along(part, name)
        (line,) = [mark for mark in chart.marks if isinstance(mark, Line) and mark.tips]
        k = 20
        believed = pictures.optimizer.predict({**answer, "speed": part.values[k]}, outcome=name)
        assert line.y[k] == pytest.approx(believed.expected[0], rel=1e-6)


@pytest.mark.parametrize(
    ("x", "y"),
    [("speed", "humidity"), ("humidity", "speed"), ("speed", "layers"), ("humidity", "shift"), ("primer", "shift")],
)
def test_a_map_of_any_two_is_what_is_predicted(pictures: Pictures, x: str, y: str) -> None:
    chart = pictures.surface(x, y)
    (heat,) = [mark for mark in chart.marks if isinstance(mark, Heat)]
    table = np.array(heat.values)
    across, upward = pictures._grid(x), pictures._grid(y)
    assert table.shape == (len(upward), len(across))
    i, j = len(across) // 3, len(upward) // 2
    given = {x: across[i], y: upward[j]}
    design = {name: given.get(name, value) for name, value in pictures.recommendation.design.items()}
    context = {name: value for name, value in given.items() if name not in design}
    believed = pictures.optimizer.predict(design, context=context or None)
    assert table[j, i] == pytest.approx(believed.expected[0], rel=1e-6)
    assert x in chart.x.name
    assert y in chart.y.name
    assert {5, 6, 7} <= set(next(mark for mark in chart.marks if isinstance(mark, Points)).runs)


def test_a_map_is_blank_where_a_constraint_is_broken(pictures: Pictures) -> None:
    (heat,) = [mark for mark in pictures.surface("speed", "layers").marks if isinstance(mark, Heat)]
    table = np.array(heat.values)
    for j, layers in enumerate(pictures._grid("layers")):
        for i, speed in enumerate(pictures._grid("speed")):
            assert np.isnan(table[j, i]) == (speed + 10 * layers > 80 + 1e-9)


def test_how_the_answer_moved(pictures: Pictures) -> None:
    charts = pictures.answers()
    assert [chart.title for chart in charts[1:]] == [f"{name} in the answer" for name in SPACE.design_names]
    counts, expected = pictures._earlier[-1]
    assert counts == len(pictures.state.reported)
    assert expected.expected == pytest.approx(pictures.recommendation.expected)
    history = pictures.state.history
    third = next(k for k, event in enumerate(history) if event.kind == "reported" and event.id == 2)  # type: ignore[attr-defined]
    earlier = dict(pictures._earlier)[3]
    again = Optimizer.of(type(pictures.state).start(pictures.settings).replay(history[: third + 1])).recommend()
    assert earlier.design == again.design


def test_the_results_are_ranked_and_counted(pictures: Pictures) -> None:
    chart = pictures.ranked()
    places = sorted(
        (x, y) for mark in chart.marks if isinstance(mark, Points) for x, y in zip(mark.x, mark.y, strict=True)
    )
    assert [x for x, _ in places] == list(range(1, 9))
    assert [y for _, y in places] == sorted((y for _, y in places), reverse=True)
    (bars,) = [mark for mark in pictures.distribution_of_results().marks if isinstance(mark, Bars)]
    assert sum(bars.heights) == len(pictures.reported) == 7


def test_the_timeline_holds_every_run(pictures: Pictures) -> None:
    chart = pictures.timeline()
    assert chart is not None
    spans = [mark for mark in chart.marks if isinstance(mark, Spans)]
    kinds = {mark.label: set(mark.runs) for mark in spans}
    assert kinds == {
        "result": {0, 1, 3, 4, 5, 6, 7},
        "left out": {2},
        "failed, no result": {8},
        "not tried": {9},
        "being tried": {10},
    }
    assert all(
        a <= b for mark in chart.marks if isinstance(mark, Spans) for a, b in zip(mark.start, mark.end, strict=True)
    )


def test_few_conditions_are_one_group(pictures: Pictures) -> None:
    marks = pictures.context_distribution(0).marks
    assert [mark.label for mark in marks if isinstance(mark, Bars)] == ["all"]
    assert sum(marks[0].heights) == pytest.approx(100.0)  # type: ignore[union-attr]


def test_a_wide_band_does_not_press_the_runs_into_a_corner(pictures: Pictures) -> None:
    low, high = pictures.outcome_span()
    values = [run.value for run in pictures.ended if run.value is not None]
    assert (max(values) - min(values)) / (high - low) > 0.45


def test_charts_of_an_empty_study_say_so(tmp_path: Path) -> None:
    study = Study.open(tmp_path / "s.db", Space({"x": (0, 1)}))
    with pytest.raises(NothingReportedError):
        edrbo.plot.results(study)


def test_belief_shows_the_truth_where_it_is_known() -> None:
    optimizer = Optimizer(Space({"x": (0, 1)}, {"c": (0, 1)}), method="erbo", seed=1)
    for k in range(6):
        optimizer.tell({"x": k / 5}, {"c": (0.37 * k) % 1}, k / 5)
    figure = edrbo.plot.belief(optimizer, truth=lambda x: x + 0.125)
    true = next(line for axes in figure.axes for line in axes.lines if line.get_label() == "true")
    np.testing.assert_allclose(true.get_ydata(), np.asarray(true.get_xdata()) + 0.125)
