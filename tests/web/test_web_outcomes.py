"""A study of several outcomes on the lab page: a field for each, some left empty."""

from __future__ import annotations

from pathlib import Path

import pytest
from live import study_server

import edrbo
from edrbo import Space, Study


def test_reported_and_corrected_by_name(tmp_path: Path) -> None:
    outcomes = {"gloss": edrbo.Maximize(unit="GU"), "haze <b>": edrbo.Limit(upper=2.0)}
    study = Study.open(tmp_path / "coating.db", Space({"speed": (1, 9)}), outcomes=outcomes, initial=20)
    asked = study.ask()
    with study_server(tmp_path / "coating.db") as client:
        page = client.get(f"/s/coating/enter/{asked.id}").text
        assert 'name="outcomes.gloss"' in page
        assert 'name="outcomes.haze &lt;b&gt;"' in page
        assert "in 95\u202f% of conditions" in page
        assert client.write("tell", id=0, outcomes={"gloss": "1,5", "haze <b>": ""}).status == 200
        assert client.write("tell", design={"speed": 3}, outcomes={"haze <b>": 0.5}).status == 200
        assert client.write("correct", id=0, outcomes={"haze <b>": "0,25"}, why="measured later").status == 200
        rows = [{"outcomes": {"gloss": "1,2", "haze <b>": 0.2}}, {"outcomes": {"haze <b>": 0.4}}]
        assert client.write("tell", design={"speed": 4}, rows=rows).status == 200
        refused = client.write("tell", design={"speed": 3}, value=1.0)
        assert refused.status == 422
        assert "several outcomes" in refused.text
        assert 'name="outcomes.gloss"' in client.get("/s/coating/run/0").text
        assert client.get("/s/coating/runs").status == 200
    runs = study.state.runs
    assert (runs[0].value, runs[0].others) == (1.5, {"haze <b>": 0.25})
    assert runs[2].value == 1.2
    assert runs[2].others == pytest.approx({"haze <b>": 0.3})
    assert (runs[1].value, runs[1].others) == (None, {"haze <b>": 0.5})
