"""Several outcomes on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

Edrbo = Callable[..., Any]


def test_a_study_of_several_outcomes(edrbo: Edrbo, folder: Path) -> None:
    made = edrbo(
        *("new", "coating.toml", "-d", "speed=0:1", "-c", "humidity=0:1", "--initial", 9),
        *("--outcome", "gloss=maximize,unit=GU", "--outcome", "roughness=limit,upper=2,probability=0.9"),
    )
    assert made.code == 0, made.err
    text = (folder / "coating.toml").read_text()
    assert '[outcomes]\ngloss = {aim = "maximize", unit = "GU"}\n' in text
    assert 'roughness = {aim = "limit", upper = 2.0, probability = 0.9}' in text
    assert "then: edrbo tell 0 --value gloss=… --value roughness=… --context humidity=…" in edrbo("ask").out
    assert edrbo("tell", 0, "-v", "gloss=1.2", "-v", "roughness=0.3", "-c", "humidity=0.4").code == 0
    reported = edrbo(
        "tell", "-d", "speed=0.5", "--value", "roughness=0.4", "-c", "humidity=0.5", "--noise-variance", "roughness=0.1"
    )
    assert "gave roughness 0.4" in reported.out
    shown = edrbo("show")
    assert "roughness ≤ 2 in 90 % of conditions" in shown.out
    assert "gloss [GU]" in shown.out
    assert edrbo("edit", 1, "--value", "gloss=1.3", "--yes").code == 0
    runs = edrbo("show", "--json").json["runs"]
    assert runs[1]["outcomes"] == {"gloss": 1.3, "roughness": 0.4}
    exported = edrbo("export")
    assert "roughness" in exported.out.splitlines()[0]


def test_words_that_are_wrong(edrbo: Edrbo, folder: Path) -> None:
    start = ("new", "a.toml", "-d", "speed=0:1", "--outcome", "gloss=maximize")
    assert "given twice" in edrbo(*start, "--outcome", "gloss=minimize").err
    assert "the outcome 'r' is" in edrbo(*start, "--outcome", "r=limt,upper=2").err
    assert edrbo(*start, "--outcome", "r=limit,upper=2").code == 0
    assert "several outcomes" in edrbo("tell", "-d", "speed=0.5", "-v", "1.2").err
    assert "'glos' is not an outcome" in edrbo("tell", "-d", "speed=0.5", "-v", "glos=1.2").err
    assert edrbo("new", "b.toml", "-d", "speed=0:1", "--outcome", "gloss").code == 0
    assert "given 2 times" in edrbo("tell", "--study", "b.toml", "-d", "speed=0.5", "-v", "1", "-v", "2").err


def test_every_outcome_is_answered_for(edrbo: Edrbo, folder: Path) -> None:
    start = ("new", "a.toml", "-d", "speed=0:1", "-c", "humidity=0:1", "--method", "erbo", "--initial", 3)
    edrbo(*start, "--outcome", "gloss=maximize", "--outcome", "roughness=limit,upper=0.9,unit=um")
    for k in range(5):
        x, c = k / 4, (0.2, 0.9, 0.5, 0.7, 0.4)[k]
        words = ("-v", f"gloss={x * (1 + c)}", "-v", f"roughness={x + 0.2 * c}", "-c", f"humidity={c}")
        assert edrbo("tell", "-d", f"speed={x}", *words).code == 0
    shown = edrbo("recommend")
    assert "roughness ≤ 0.9 um in 95 % of conditions" in shown.out
    assert "No settings are known yet that keep the limit on roughness" in shown.out
    found = edrbo("recommend", "--json").json
    assert found["limits_hold"] is False
    assert 0.0 <= found["outcomes"]["roughness"]["holds"] < 0.5
    assert edrbo("report", "--out", "page.html").code == 0
    page = (folder / "page.html").read_text()
    assert "sure that this is enough" in page
    assert "<th>roughness [um]</th>" in page


def test_a_front(edrbo: Edrbo, folder: Path) -> None:
    edrbo(
        "new",
        "a.toml",
        "-d",
        "speed=0:1",
        "--method",
        "erbo",
        "--outcome",
        "gloss=maximize",
        "--outcome",
        "cost=minimize",
    )
    for x in (0.1, 0.35, 0.6, 0.9):
        assert edrbo("tell", "-d", f"speed={x}", "-v", f"gloss={x}", "-v", f"cost={x * x}").code == 0
    found = edrbo("front", "--json").json
    assert len(found["points"]) > 3
    assert found["hypervolume"] > 0
    assert "hypervolume" in edrbo("front", "--fix", "speed=0.5").out
    assert "no single best design" in edrbo("recommend").err


def test_an_outcome_reported_once_has_no_scale(edrbo: Edrbo, folder: Path) -> None:
    edrbo("new", "a.toml", "-d", "speed=0:1", "--method", "erbo", "--goal", "cvar:0.2", "-c", "humidity=0:1")
    assert edrbo("tell", "-d", "speed=0.5", "-v", 1.5, "-c", "humidity=0.5").code == 0
    shown = edrbo("recommend").out
    assert "too early to say how sure this is" in shown
    assert "inf" not in shown


def test_rows_of_several_outcomes(edrbo: Edrbo, folder: Path) -> None:
    start = ("new", "a.toml", "-d", "speed=0:1", "-c", "humidity=0:1", "--outcome", "gloss=maximize")
    assert edrbo(*start, "--outcome", "haze=limit,upper=2").code == 0
    (folder / "hour.csv").write_text("humidity,gloss,haze\n0.3,1.0,0.1\n0.5,,0.3\n")
    reported = edrbo("tell", "-d", "speed=0.5", "--rows", "hour.csv")
    assert "in 2 rows gave gloss 1, haze 0.2 on average" in reported.out
    (run,) = edrbo("show", "--json").json["runs"]
    assert [row["outcomes"] for row in run["rows"]] == [{"gloss": 1.0, "haze": 0.1}, {"haze": 0.3}]
    assert edrbo("edit", 0, "--row", 1, "--value", "gloss=1.5", "--yes").code == 0
    assert "gloss 1.25" in edrbo("show", 0).out
    (folder / "hour.csv").write_text("humidity,gloss,haze\n0.3,,\n0.4,1.0,\n")
    assert "row 0 has no value" in edrbo("tell", "-d", "speed=0.5", "--rows", "hour.csv").err
