"""The report of a study: its numbers, its safety, and what a real browser makes of it."""

from __future__ import annotations

import html
import json
import math
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from edrbo.lab import Study
from edrbo.lab.report import report_page
from edrbo.lab.report.contents import gather
from edrbo.plot import drawn_contexts
from edrbo.space import Categorical, Integer, Real, Space
from edrbo.text import rounded

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NASTY = "</script><script>document.title='hacked'</script><img src=x onerror=document.title='hacked'>\x1b[31m"


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    space = Space(
        {
            "speed": (1.0, 9.0),
            "rate": Real(1e-4, 1.0, log=True),
            "layers": Integer(1, 6),
            NASTY: Categorical((NASTY, "plain")),
        },
        {"humidity": (0.0, 1.0), "<b>price": None},
    )
    where = tmp_path_factory.mktemp("report") / "study.db"
    study = Study.open(where, space, name=NASTY, method="erbo", initial=20, direction="minimize")
    rng = np.random.default_rng(0)
    study.observe_context(np.column_stack([rng.beta(2, 5, 60), rng.normal(30, 3, 60)]))
    for _ in range(14):
        suggestion = study.ask()
        humidity = min(1.0, rng.beta(2, 5) + 0.5)
        value = (suggestion["speed"] - 4 - humidity) ** 2 + rng.normal()
        study.tell(suggestion, {"humidity": humidity, "<b>price": rng.normal(30, 3)}, value)
    study.tell(study.ask(), None, 3.0)
    study.tell(study.ask(), failed=True)
    study.ask()
    return study


@pytest.fixture(scope="module")
def page(study: Study) -> str:
    return report_page(study)


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_it_tells_what_is_known(study: Study, page: str) -> None:
    words = " ".join(Tags(page).words)
    found = study.recommend()
    assert rounded(found.expected, found.interval) in words
    for text in ("15 results", "1 failed", "1 being tried", "74 conditions met"):
        assert text in re.sub(r"\s+", " ", words)
    assert "have shifted" in words
    assert "humidity went up by" in words
    assert "14 of 14" in words or "13 of 14" in words or "12 of 14" in words
    assert "one model" in words
    assert str(study.where) not in page
    assert "minimize value: mean over the conditions" in words


def test_every_run_is_there_with_units_date_and_goal(tmp_path: Path) -> None:
    space = Space({"speed": Real(10, 60, unit="m/min")}, {"humidity": Real(0, 100, unit="%")})
    settings = {"outcome": "gloss", "unit": "GU", "title": "Line 2", "initial": 20}
    study = Study.open(tmp_path / "s.db", space, method="erbo", **settings)
    for k in range(6):
        study.tell({"speed": 20.0 + 5 * k}, [40.0 + k], 60.0 + k)
    study.tell({"speed": 50.0}, failed=True, why="the film tore")
    study.cancel(study.ask(), "no time")
    waiting = study.ask()
    study.drop(2, "smeared")
    study.note(3, "new roll")
    study.correct(4, value=63.5, why="misread")
    study.correct(5, value=1.0)
    study.undo()
    words = re.sub(r"\s+", " ", " ".join(Tags(report_page(study, {"humidity": 60.0})).words))
    for text in (
        "Line 2",
        "m/min",
        "humidity [%]",
        "gloss [GU]",
        "failed, no result, the film tore",
        "left out, smeared",
    ):
        assert text in words
    assert "new roll" in words
    assert set(re.findall(r"corrected( \(\w+\))?", words)) == {" (misread)"}  # what was undone is not reported
    for text in (
        "not tried, no time",
        "being tried",
        "When humidity 60 % is known to come: speed",
        "gloss against humidity",
    ):
        assert text in words
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d", words)
    amount = r"-?[\d.]+ GU"
    said = rf"expected on average {amount} 95 % sure: -?[\d.]+ to {amount}"
    assert len(re.findall(said, words)) == 2  # for all conditions, and for these
    facts = gather(study)
    x = space.encode_designs(facts.recommendation.design)
    apart = {
        key: abs(float(run.x[0] - x[0, 0])) for key, run in study.state.runs.items() if key in study.state.reported
    }
    nearest = sorted(apart, key=apart.__getitem__)[:3]
    assert [tried.run for tried in facts.recommendation.nearest] == nearest
    page = report_page(study)
    table = page[page.index('class="near"') :]
    shown = re.findall(r'data-name="run">(\d+)', table[: table.index("</table>")])
    assert [int(number) for number in shown] == nearest
    assert waiting.id not in apart


@pytest.mark.parametrize(("tilt", "words"), [(6.0, "between the best on average and"), (0.0, "No settings are known")])
def test_the_frontier_is_drawn_where_there_is_one(tmp_path: Path, tilt: float, words: str) -> None:
    """With the tilt the mean wants x = 1 and the worst contexts want x = 0."""
    study = Study.open(tmp_path / "lever.db", Space({"x": (0.0, 1.0)}, {"c": (0.0, 1.0)}), goal="cvar:0.2")
    draw = np.random.default_rng(0)
    for x, c in draw.random((14, 2)):
        study.tell({"x": x}, [c], tilt * x * (c - 0.35) - 0.3 * (x - 0.5) ** 2)
    assert words in report_page(study)


def test_the_slices_share_their_axis_of_outcomes(study: Study) -> None:
    facts = gather(study)
    assert len({facts.along(part).y for part in facts.slices}) == 1


def test_it_is_one_small_file_without_a_network(page: str) -> None:
    assert len(page.encode()) < 500_000
    for tag, attributes in Tags(page).tags:
        assert tag not in ("link", "iframe", "img", "object", "embed", "base"), tag
        assert not {"src", "href", "srcset", "action"} & set(attributes)
        assert not any(name.startswith("on") for name in attributes)
    assert "url(" not in page
    assert "@import" not in page


def test_names_are_harmless_in_pages(page: str) -> None:
    scripts = [attributes for tag, attributes in Tags(page).tags if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "data"}, {}]
    assert "<img" not in page
    assert "\x1b" not in page
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    assert json.loads(data[1])["name"] == NASTY
    assert html.escape("<b>price") in page


def test_the_numbers_behind_the_page(study: Study) -> None:
    facts = gather(study)
    assert [part.name for part in facts.slices] == list(study.space.design_names)
    for part in facts.slices:
        place = part.values.index(part.recommended) if part.recommended in part.values else None
        assert np.all(part.posterior.lower <= part.posterior.upper)
        if place is not None:
            assert part.posterior.expected[place] == pytest.approx(facts.recommendation.expected, rel=1e-6)
    assert facts.calibration is not None
    np.testing.assert_allclose(facts.units.to_user(facts.calibration.y), study.observations.y[:14])
    assert len(facts.contexts) == 74


def test_values_of_extreme_size_come_back_in_the_users_units(tmp_path: Path) -> None:
    study = Study.open(tmp_path / "study.db", Space({"x": (0, 1)}, {"c": (0, 1)}), method="erbo", direction="minimize")
    for k in range(6):
        study.tell({"x": k / 5}, [0.5], 1e200 * (k - 2) ** 2)
    facts = gather(study)
    assert facts.calibration is not None
    np.testing.assert_allclose(facts.units.to_user(facts.calibration.y), study.observations.y, atol=1e188)
    assert "<svg" in report_page(study)


@pytest.mark.parametrize("reported", [1, 2, 4])
@pytest.mark.parametrize("context", [{}, {"c": (0.0, 1.0)}])
def test_young_studies(tmp_path: Path, reported: int, context: dict[str, tuple[float, float]]) -> None:
    study = Study.open(tmp_path / "study.db", Space({"x": (0.0, 1.0), "k": Integer(1, 2)}, context), method="erbo")
    plan = report_page(study)
    assert "Nothing was measured yet" in plan
    assert "0 to 1" in plan
    assert ("Conditions we meet" in plan) == bool(context)
    for _ in range(reported):
        study.tell(study.ask(), [0.5] if context else None, 1.0)
    page = report_page(study)
    assert "too early" in page or reported > 4 or "Too few" in page


def test_a_long_history_is_drawn_from_its_summary(tmp_path: Path) -> None:
    study = Study.open(tmp_path / "study.db", Space({"x": (0.0, 1.0)}, {"c": (0.0, 1.0)}))
    study.observe_context(np.random.default_rng(0).beta(2, 5, (20_000, 1)))
    drawn = drawn_contexts(study.context_log, 1)
    assert len(drawn) == 2_000
    assert drawn.mean() == pytest.approx(2 / 7, abs=0.02)


# -------------------------------------------------------------------- in a browser


def dom(path: Path, tmp_path: Path) -> str:
    """The page after a real browser has read it and run its script."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"]
    done = subprocess.run([CHROMIUM, *options, path.as_uri()], capture_output=True, text=True, timeout=120, check=True)
    return done.stdout


def test_in_a_browser(page: str, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(page, encoding="utf-8")
    seen = dom(path, tmp_path)
    charts = page.count("<figure ")
    assert charts == 24
    assert f'data-ready="{charts}"' in seen  # the script ran, under the page's own security policy
    title = re.search(r"<title>(.*?)</title>", seen, re.DOTALL)
    assert title is not None
    assert "hacked" in html.unescape(title[1])  # as a word of the name
    assert title[1] != "hacked"


def test_on_a_phone(page: str, tmp_path: Path) -> None:
    """In a frame as wide as a small phone nothing sticks out to the side."""
    path = tmp_path / "phone.html"
    measure = "const d = this.contentDocument.documentElement; document.title = d.scrollWidth + ' ' + d.scrollHeight"
    frame = (
        f'<iframe width="360" height="700" style="border:0" srcdoc="{html.escape(page)}" onload="{measure}"></iframe>'
    )
    path.write_text(f'<!doctype html><meta charset="utf-8"><title>-</title>{frame}', encoding="utf-8")
    title = re.search(r"<title>(\d+) (\d+)</title>", dom(path, tmp_path))
    assert title is not None
    assert int(title[1]) <= 360
    assert int(title[2]) > 2_000  # it is all there


@pytest.mark.filterwarnings("ignore::edrbo.errors.ImplausibleWarning")
def test_errors_are_right_when_a_large_value_came_without_its_context(tmp_path: Path) -> None:
    """The unit is that of the model, whatever values it was not fitted to."""
    study = Study.open(tmp_path / "study.db", Space({"speed": (1.0, 9.0)}, {"humidity": (0.0, 1.0)}))
    for i in range(12):
        study.tell({"speed": 1.0 + 0.6 * i}, [i / 12], math.sin(i))
    alone = gather(study)
    study.tell({"speed": 5.0}, None, 40.0)
    beside = gather(study)
    assert alone.calibration is not None
    assert beside.calibration is not None
    rmse = [float(facts.units.spread_to_user(facts.calibration.rmse)) for facts in (alone, beside)]  # type: ignore[union-attr]
    assert rmse[1] == pytest.approx(rmse[0], rel=1e-6)


def test_outcomes_as_large_as_numbers_can_be(tmp_path: Path) -> None:
    study = Study.open(tmp_path / "huge.db", Space({"x": (0, 1)}, {"c": (0, 1)}))
    for x, y in ((0.1, 1e308), (0.5, -1e308), (0.7, 0.0), (0.9, 5.0), (0.3, 1e307), (0.2, -1e300)):
        study.tell({"x": x}, {"c": 1.0 - x}, y)
    page = report_page(study)
    assert "1e308" in page
    assert not re.search(r"\b(nan|inf|NaN|Infinity)\b", page)
