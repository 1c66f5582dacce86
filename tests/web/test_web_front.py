"""On the lab page: the front of several main outcomes, a distribution that is known, and what runs cost."""

from __future__ import annotations

import html
from pathlib import Path

from live import Client, study_server

import edrbo
from edrbo import Space, Study

SPACE = Space({"speed": (1, 9)}, {"humidity": (0, 100)})


def settled(client: Client, path: str) -> str:
    """The page once what it waits for is there."""
    return client.until(path, lambda answer: "seen=" in answer.text).text


def test_a_front_is_a_table_and_a_picture(tmp_path: Path) -> None:
    outcomes = {"gloss": edrbo.Maximize(unit="GU"), "<price>": edrbo.Minimize()}
    study = Study.open(tmp_path / "coating.db", SPACE, method="erbo", outcomes=outcomes)
    for k in range(3):
        speed = 1.5 + 2 * k
        study.tell({"speed": speed}, {"humidity": 20 + 25 * k}, {"gloss": speed, "<price>": speed**2 / 10})
    with study_server(tmp_path / "coating.db") as client:
        page = settled(client, "/s/coating/answer?context.humidity=50")
        assert "Set one of these" in page
        assert "gloss [GU]" in page
        assert "&lt;price&gt;" in page
        assert "<price>" not in page
        assert "for humidity 50" in page
        assert "<svg" in settled(client, "/s/coating/charts")
        record = client.get("/api/v1/studies/coating/recommend?context.humidity=50").json["result"]["record"]
        assert {"design", "values", "intervals", "holds"} == set(record["points"][0])
        assert "minimize" in html.unescape(client.get("/s/coating/setup").text)


def test_a_distribution_and_a_cost_are_shown_and_changed(tmp_path: Path) -> None:
    study = Study.open(tmp_path / "coating.db", SPACE, context_distribution="norm(55, 12)", initial=20)
    with study_server(tmp_path / "coating.db") as client:
        assert "humidity = norm(55, 12)" in client.get("/s/coating/setup").text
        assert "What it cost" not in client.get("/s/coating/enter").text
        assert (
            client.write(
                "amend", context_distribution="humidity = uniform(40, 20)", cost="5 + speed", note="measured"
            ).status
            == 200
        )
        page = client.get("/s/coating/setup").text
        assert "humidity = uniform(40, 20)" in page
        assert "cost: none → 5 + speed" in page
        asked = study.ask()
        assert "will cost" in client.get("/s/coating/").text
        assert "What it cost" in client.get(f"/s/coating/enter/{asked.id}").text
        assert client.write("tell", id=asked.id, value=1.5, cost="12,5").status == 200
        assert client.write("correct", id=asked.id, cost=11, why="typo").status == 200
        assert "corrected: cost 11" in client.get(f"/s/coating/run/{asked.id}").text
        assert "Cost so far 11" in client.get("/s/coating/").text
        assert client.get("/api/v1/studies/coating/show").json["spent"] == 11
        refused = client.write("amend", cost="5 + sped", note="typo")
        assert refused.status == 422
        assert "did you mean 'speed'" in refused.text
        assert client.write("amend", context_distribution="none", cost="none", note="enough").status == 200
    assert (study.state.settings.context_distribution, study.state.settings.cost) == (None, None)


def test_a_distribution_of_samples_has_no_field(tmp_path: Path) -> None:
    Study.open(tmp_path / "coating.db", SPACE, context_distribution=[{"humidity": 40}, {"humidity": 60}])
    with study_server(tmp_path / "coating.db") as client:
        page = client.get("/s/coating/setup").text
        assert "2 samples of humidity" in page
        assert 'name="law"' not in page
