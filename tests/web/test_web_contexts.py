"""Forms and the API take contexts as they come."""

from __future__ import annotations

from pathlib import Path

import pytest
from live import Client

from edrbo import Integer, Space, Study

MET = {"shift": "night", "pallets": "4", "humidity": "45,5"}


@pytest.fixture
def space() -> Space:
    return Space({"speed": (1, 9)}, {"shift": ["day", "night"], "pallets": Integer(1, 8), "humidity": (0, 100)})


def test_levels_in_forms(client: Client, study: Study, tmp_path: Path) -> None:
    assert client.write("tell", design={"speed": 3}, value=1.5, context=MET).status == 200
    (run,) = study.runs
    assert run.context is not None
    assert study.space.name_contexts(run.context[None]) == [{"shift": "night", "pallets": 4, "humidity": 45.5}]
    assert client.write("tell", design={"speed": 3}, value=1.5, context={**MET, "shift": "noon"}).status == 422
    assert client.write("context-add", rows=[MET, {**MET, "shift": "day"}]).status == 200
    for page in ("/", "/runs", "/run/0", "/enter", "/setup", "/answer"):
        shown = client.get(f"/s/coating{page}")
        assert shown.status == 200, (page, shown.text)
    answer = client.get("/s/coating/answer").text
    assert '<select id="s1" name="context.shift">' in answer
    assert 'name="context.pallets" min="1.0" max="8.0" step="1"' in answer
    assert "shift</dt><dd>night" in client.get("/s/coating/run/0").text
    more = [
        {"name": "shift", "kind": "categorical", "choices": "day, night, late"},
        {"name": "pallets", "kind": "integer", "low": 1, "high": 9},
        {"name": "humidity", "low": 0, "high": 100},
        {"name": "crew", "kind": "categorical", "choices": "a,b", "before": "b"},
    ]
    assert client.write("amend", context=more).status == 200
    (run,) = study.runs
    assert run.context is not None
    assert study.space.name_contexts(run.context[None])[0]["crew"] == "b"
    forecast = client.wait("ask", forecast="day 3 50 a\nlate 8 20 b")
    assert forecast["status"] == "done"


def test_rows_and_parts_in_forms(client: Client, study: Study) -> None:
    rows = [{"value": "1,5", "context": MET}, {"value": 2, "context": {"shift": "day"}, "noise_variance": 0.1}]
    assert client.write("tell", design={"speed": 3}, rows=rows).status == 200
    assert study.observations.y.tolist() == [1.5, 2.0]
    assert client.write("tell", design={"speed": 3}, rows=rows, value=3).status == 422
    assert client.write("correct", id=0, row=1, value=2.5).status == 200
    assert study.observations.y.tolist() == [1.5, 2.5]
    assert client.write("tell", design={"speed": 5}, value=1, context={"humidity": 40}).status == 200
    late = client.get("/s/coating/runs?status=late").text
    assert "/run/1" in late
    assert "/run/0" not in late
    for page in ("/runs", "/run/0", "/run/1", "/enter"):
        assert client.get(f"/s/coating{page}").status == 200
    assert client.write("context-tell", id=1, context={"shift": "day", "pallets": 2}).status == 200
    assert study.state.runs[1].known
