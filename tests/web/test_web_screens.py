"""What the screens say, without a browser: now, answer, runs, studies, charts and forms."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import pytest
from live import Client, study_server

import edrbo
from edrbo import Space, Study
from edrbo.lab.web import views
from edrbo.lab.web.setup import goal_choices
from edrbo.records.goals import Goal, goal_classes, parse_goal
from edrbo.records.settings import Settings
from edrbo.space import Integer, Real

SPACE = Space({"speed": Real(10, 60, unit="m/min"), "layers": Integer(1, 4)}, {"humidity": Real(0, 100, unit="%")})
OUTCOMES = {"gloss": edrbo.Maximize(unit="GU"), "roughness": edrbo.Limit(upper=2.0, unit="µm", probability=0.5)}


def words_of(page: str) -> str:
    """What is read of a page, on one line."""
    text = re.sub(r"<(script|style).*?</\1>|<[^>]+>", " ", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(text))


def settled(client: Client, path: str) -> str:
    """The page once what it waits for is there."""
    return client.until(path, lambda answer: "seen=" in answer.text and "thinking" not in answer.text).text


@pytest.fixture
def line(tmp_path: Path) -> Study:
    """Six runs by Kim: one breaks the limit, one failed, one is left out, one waits."""
    study = Study.open(tmp_path / "line.db", SPACE, name="line", outcomes=OUTCOMES, method="erbo", by="Kim")
    for k in range(4):
        result = {"gloss": 80.0 + k, "roughness": 2.5 if k == 3 else 1.5}
        study.tell({"speed": 20.0 + 5 * k, "layers": 1 + k}, {"humidity": 40.0 + k}, result)
    study.tell({"speed": 50, "layers": 1}, failed=True, why="tore")
    study.drop(0, "smeared")
    study.ask()
    return study


@pytest.fixture
def at_line(line: Study, tmp_path: Path) -> Any:
    with study_server(tmp_path / "line.db") as client:
        yield client


# -------------------------------------------------------------------- now


def test_now_knows_the_study(at_line: Client) -> None:
    words = words_of(at_line.get("/s/line/").text)
    assert "results 3 1 run failed" in words
    assert "best so far 82 GU run 2" in words  # run 3 is better and breaks the limit
    assert re.search(r"last result \d+ \w+ \d\d:\d\d Kim", words)
    assert "being tried 1" in words
    assert "gloss 83 GU, roughness 2.5 µm speed 35 m/min, layers 4" in words


def test_one_button_is_the_main_one(line: Study, at_line: Client) -> None:
    line.ask()
    page = at_line.get("/s/line/").text
    assert re.findall(r'class="(?:button )?main"[^>]*id="([\w-]+)"', page) == ["done-5"]
    for key in (5, 6):
        line.cancel(key)
    assert re.findall(r'class="(?:button )?main"[^>]*id="([\w-]+)"', at_line.get("/s/line/").text) == ["ask"]


def test_the_words_of_entry(at_line: Client) -> None:
    words = words_of(at_line.get("/s/line/").text)
    assert "Enter result Failed, no result Not tried" in words
    assert "It was tried and gave no result." in words_of(at_line.get("/s/line/enter/5?kind=failed").text)
    assert "this says nothing about its settings" in words_of(at_line.get("/s/line/enter/5?kind=skip").text)


@pytest.mark.parametrize("initial", [1])
def test_what_is_expected_of_a_pending_run(client: Client, study: Study) -> None:
    for k in range(4):
        study.tell({"speed": 2 + k, "layers": 1, "kind": "plain"}, [50 + k, 3], 10.0 + k)
    asked = study.ask()
    assert asked.outcome_forecast is not None
    said = views.expected_of(study.state, study.state.runs[asked.id])
    assert re.fullmatch(r"-?[\d.]+ to -?[\d.]+", said)
    assert f"Result expected: {said}" in words_of(client.get("/s/coating/").text)
    assert f"Result expected: {said}" in words_of(client.get(f"/s/coating/enter/{asked.id}").text)


def test_todays_conditions_stay_on_the_card_and_in_the_form(line: Study, at_line: Client) -> None:
    at_line.wait("ask", "line", context={"humidity": "71 %"})
    assert "for humidity 71 %" in words_of(at_line.get("/s/line/").text)
    page = at_line.get("/s/line/enter/6").text
    assert re.search(r'name="context.humidity"[^>]*value="71"', re.sub(r"\s+", " ", page))
    again = Study.open(line.where, name="line")
    assert again.ask(context={"humidity": 12.5}).id == 7
    assert "for humidity 12.5 %" in words_of(at_line.get("/s/line/").text)
    assert "for humidity" not in words_of(at_line.get("/s/line/enter/5").text)


# -------------------------------------------------------------------- answer


def test_the_answer_comes_first_and_says_what_to_do_next(at_line: Client) -> None:
    page = settled(at_line, "/s/line/answer")
    words = words_of(page)
    order = ["Set this", "expected on average", "next step", "Today is different?", "Nearest runs", "Job card"]
    places = [words.index(word) for word in order]
    assert places == sorted(places)
    assert "How near gloss GU speed m/min layers" in words
    card = words[words.index("Job card") :]
    assert "gloss, GU roughness, µm humidity, % Date, name" in card


def test_an_answer_for_conditions_is_headed_by_them(at_line: Client) -> None:
    words = words_of(settled(at_line, "/s/line/answer?context.humidity=60"))
    assert "for humidity 60 %" in words
    assert "Other conditions?" in words


@pytest.mark.parametrize("screen", ["", "runs", "answer", "charts"])
def test_an_empty_study_says_what_to_do(client: Client, screen: str) -> None:
    page = client.get(f"/s/coating/{screen}").text
    assert 'href="/s/coating/import"' in page.partition("<main")[2]
    assert 'type="range"' not in page


# -------------------------------------------------------------------- runs


def shown_ids(page: str) -> list[int]:
    return [int(key) for key in re.findall(r'name="run" value="(\d+)"', page)]


def test_runs_are_sorted(at_line: Client) -> None:
    assert shown_ids(at_line.get("/s/line/runs").text) == [5, 4, 3, 2, 1, 0]
    assert shown_ids(at_line.get("/s/line/runs?sort=y.gloss&down=true").text)[:4] == [3, 2, 1, 0]
    assert shown_ids(at_line.get("/s/line/runs?sort=y.gloss").text)[:4] == [0, 1, 2, 3]
    assert shown_ids(at_line.get("/s/line/runs?sort=c.humidity&down=true").text)[:2] == [3, 2]
    assert shown_ids(at_line.get("/s/line/runs?sort=run").text) == [0, 1, 2, 3, 4, 5]
    assert shown_ids(at_line.get("/s/line/runs?sort=nonsense").text) == [5, 4, 3, 2, 1, 0]
    assert 'aria-sort="descending"' in at_line.get("/s/line/runs?sort=y.gloss&down=true").text


def test_many_runs_are_listed_in_windows(at_line: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "WINDOW", 2)
    seen, path = [], "/s/line/runs?sort=y.gloss&down=true"
    while path:
        page = at_line.get(path).text
        seen.append(shown_ids(page))
        assert f"{2 * len(seen) - 1} to {2 * len(seen)} of 6" in page
        found = re.search(r'rel="next" href="([^"]+)"', page)
        path = found[1].replace("&amp;", "&") if found else ""
    assert len(seen) == 3
    assert seen[:2] == [[3, 2], [1, 0]]
    assert 'rel="prev"' not in at_line.get("/s/line/runs").text
    assert shown_ids(at_line.get("/s/line/runs?first=999").text) == [1, 0]  # of a list that was longer
    assert "first=2&amp;" in at_line.get("/s/line/runs?first=2").text  # what is asked for every second
    assert at_line.get("/s/line/runs?first=-1").status == 422


def test_runs_are_found(line: Study, at_line: Client) -> None:
    line.note(1, "new roll")
    for words, ids in (
        ("roll", [1]),
        ("KIM smeared", [0]),
        ("failed", [4]),
        ("being tried", [5]),
        ("run 2", [2]),
        ("82", [2]),
        ("8", []),
        ("nothing like it", []),
    ):
        assert shown_ids(at_line.get(f"/s/line/runs?q={words.replace(' ', '%20')}").text) == ids, words
    assert "No run is like that." in at_line.get("/s/line/runs?q=zebra").text
    assert "<b>" not in at_line.get("/s/line/runs?q=%3Cb%3E").text


def test_the_best_and_what_breaks_a_limit_stand_out(at_line: Client) -> None:
    page = at_line.get("/s/line/runs").text
    rows = {int(re.findall(r'value="(\d+)"', row)[0]): words_of(row) for row in page.split("<tr")[2:]}
    assert "best" in rows[2]
    assert not any("best" in rows[key] for key in (0, 1, 3, 4, 5))
    assert "breaks roughness" in rows[3]
    assert "left out" in rows[0]
    assert "Download CSV" in page


def test_numbers_of_a_column_have_the_same_decimals(line: Study, at_line: Client) -> None:
    line.tell({"speed": 22.25, "layers": 1}, {"humidity": 40}, {"gloss": 79.55, "roughness": 1})
    page = at_line.get("/s/line/runs").text
    assert {"82.00", "79.55"} <= set(re.findall(r"<strong[^>]*>([\d.]+)</strong>", page))
    speeds = re.findall(r'data-name="speed[^"]*">([\d.]+)<', page)
    assert len(speeds) == 7
    assert len({len(text.partition(".")[2]) for text in speeds}) == 1


def test_who_measured_is_not_who_corrected(line: Study) -> None:
    line.by = "Ada"
    line.correct(1, value={"gloss": 81.5}, why="misread")
    line.note(2, "new roll")
    rows = {row["id"]: row for row in views.runs_of(line.state)}
    assert (rows[1]["by"], rows[2]["by"]) == ("Kim", "Kim")
    assert rows[1]["note"] == "corrected (misread)"
    assert rows[2]["note"] == "new roll"


def test_two_runs_are_compared(at_line: Client) -> None:
    words = words_of(at_line.get("/s/line/compare?run=1&run=3").text)
    assert "gloss GU 81 83 +2" in words
    assert "speed m/min 25 35 +10" in words
    assert "roughness µm 1.5 2.5 +1" in words
    for address in ("compare?run=1", "compare?run=1&run=1", "compare", "compare?run=1&run=2&run=3"):
        assert at_line.get(f"/s/line/{address}").status == 422
    assert at_line.get("/s/line/compare?run=1&run=99").status == 404


def test_a_run_that_looks_mistyped_is_marked(client: Client, study: Study) -> None:
    for k in range(8):
        study.tell({"speed": 2 + 0.5 * k, "layers": 1, "kind": "plain"}, [50 + k, 3], 10.0 + 0.1 * k)
    study.tell({"speed": 3, "layers": 1, "kind": "plain"}, [50, 3], 1045.0)
    page = client.get("/s/coating/runs").text
    (row,) = [row for row in page.split("<tr")[2:] if "mistyped?" in row]
    assert re.findall(r'value="(\d+)"', row) == ["8"]


# -------------------------------------------------------------------- studies


def test_studies_are_listed_with_how_far_they_are(line: Study, tmp_path: Path) -> None:
    Study.open(tmp_path / "new.db", SPACE, name="Nothing yet")
    with study_server(tmp_path) as client:
        words = words_of(client.get("/").text)
        assert "Nothing yet results 0 being tried 0" in words
        assert "line results 3 1 run failed best so far 82 GU run 2" in words
        assert '<a class="up" href="/">' in client.get("/s/line/").text


# -------------------------------------------------------------------- charts


def test_every_chart_has_a_legend_and_leads_to_its_runs(at_line: Client) -> None:
    page = settled(at_line, "/s/line/charts")
    titles = [html.unescape(title) for title in re.findall(r"<figcaption>(.*?)</figcaption>", page)]
    for title in (
        "Progress: gloss",
        "Progress: roughness",
        "gloss along speed",
        "roughness along layers",
        "gloss over speed and humidity",
        "gloss over speed and layers",
        "What was expected of the answer: gloss",
        "speed in the answer",
        "Results from the best down: roughness",
        "Distribution of results: gloss",
        "Timeline",
    ):
        assert title in titles
    progress = page[page.index("Progress: gloss</figcaption>") :]
    progress = progress[: progress.index("</figure>")]
    legend = words_of(progress.partition("<ul")[2])
    for word in ("best so far within the limits", "result", "breaks a limit", "left out", "failed, no result"):
        assert word in legend
    assert set(re.findall(r'data-run="(\d+)"', progress)) == {"0", "1", "2", "3", "4"}
    assert 'data-runs="/s/line/run/"' in page


def test_a_map_of_two_that_were_chosen(at_line: Client) -> None:
    page = at_line.get("/s/line/charts?x=humidity&y=layers").text
    assert "/s/line/pair?x=humidity&amp;y=layers" in page
    chosen = settled(at_line, "/s/line/pair?x=humidity&y=layers&part=live")
    assert "gloss over humidity and layers" in chosen
    assert at_line.get("/s/line/pair?x=humidity&y=humidity").status == 422
    assert at_line.get("/s/line/pair?x=humidity&y=%3Cb%3E").status == 422


# -------------------------------------------------------------------- forms


BUILT_IN = [goal for goal in goal_classes() if goal.__module__.startswith("edrbo.")]


@pytest.mark.parametrize("kind", BUILT_IN, ids=lambda kind: kind.name)
def test_a_goal_is_chosen_by_its_sentence(kind: type[Goal]) -> None:
    name, usual, scale = kind.name, kind.usual, 100 if kind.per_cent else 1
    text = name + (":" + ",".join(f"{value / scale:g}" for value in usual) if usual else "")
    goal = parse_goal(text)
    assert goal.to_text() == text
    choices = goal_choices(Settings(SPACE, goal=goal))
    (chosen,) = [choice for choice in choices if choice["chosen"]]
    assert chosen["name"] == name
    assert chosen["numbers"] == [f"{value:g}" for value in usual]
    assert len(chosen["pieces"]) == len(usual) + 1
    assert "".join(chosen["pieces"]) == kind.sentence.replace("{better}", "more").replace("{}", "")


def test_a_goal_without_a_sentence_stays_as_it_is() -> None:
    choices = goal_choices(Settings(SPACE, goal="robust:0.1:kl"))
    (chosen,) = [choice for choice in choices if choice["chosen"]]
    assert chosen["name"] == "robust:0.1:kl"
    assert len(choices) == len(goal_choices(None)) + 1


def test_set_up_says_of_what_more_is_better(at_line: Client) -> None:
    assert "more gloss is better" in words_of(at_line.get("/s/line/setup").text)


def test_a_study_without_settings_is_refused_in_plain_words(tmp_path: Path) -> None:
    with study_server(tmp_path) as client:
        answer = client.post("/api/v1/new", {"name": "Kiln", "design": []})
        assert answer.status == 422
        assert (answer.json["title"], answer.json["detail"]) == ("there is no setting yet", "add at least one setting")


def test_a_forecast_of_one_condition_is_asked_for_in_one_word(at_line: Client) -> None:
    assert "humidity to expect, a line each" in words_of(at_line.get("/s/line/").text)
