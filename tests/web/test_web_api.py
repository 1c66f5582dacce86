"""The API: the command line's operations as events of the study, each stored once."""

from __future__ import annotations

import csv
import html
import io
import re
from pathlib import Path

import pytest
from live import Client, new_key, study_server

from edrbo import Space, Study
from edrbo.records import events as e

CONTEXT = {"humidity": "45,5", "load": 3}


def test_a_run_from_ask_to_undo(client: Client, study: Study) -> None:
    job = client.wait("ask", by="Ada")
    assert job["status"] == "done"
    (suggestion,) = job["result"]
    assert study.pending[0].id == suggestion["id"]
    assert study.pending[0].design == suggestion["design"]
    reported = client.write("tell", id=0, value="1,75", context=CONTEXT, by="Grace", note="wet")
    assert reported.status == 200
    run = study.state.runs[0]
    assert (run.status, run.value) == ("reported", 1.75)
    assert run.context is not None
    assert run.context.tolist() == [45.5, 3.0]
    asked, event = study.state.history
    assert (asked.by, event.by, event.note) == ("Ada", "Grace", "wet")
    assert client.write("undo", ref=reported.json["ref"]).status == 200
    assert study.state.runs[0].status == "pending"


def test_a_control_run(client: Client, study: Study) -> None:
    page = client.get("/s/coating/enter")
    assert "control run" in page.text
    design = {"speed": "2", "layers": "1", "kind": "plain"}
    assert client.write("tell", design=design, value="5,5", control="4", context=CONTEXT).status == 200
    assert study.state.runs[0].value == 1.5
    assert client.write("correct", id=0, control="3,5", why="typo").status == 200
    assert study.state.runs[0].value == 2.0
    refused = client.write("tell", design=design, value="5,5", context=CONTEXT)
    assert refused.status == 422
    assert "control" in refused.json["title"]
    shown = client.get("/s/coating/run/0").text
    assert "3.5 by the control run" in shown
    assert 'name="control"' in shown
    assert "required" in client.get("/s/coating/enter").text.split('name="control"')[1][:80]


def test_second_thoughts_are_the_events_of_the_command_line(client: Client, study: Study) -> None:
    study.tell({"speed": 2, "layers": 1, "kind": "plain"}, None, 5.0)
    assert client.write("context-tell", id=0, context=CONTEXT).status == 200
    assert client.write("correct", id=0, value=6, why="read wrongly", by="Ada").status == 200
    assert client.write("correct", id=0, design={"speed": "2,5"}, why="dial").status == 200
    assert client.write("drop", id=0, why="spilled").status == 200
    assert study.state.runs[0].dropped
    assert client.write("restore", id=0).status == 200
    assert client.write("note", id=0, note="new batch").status == 200
    assert client.write("context-add", rows=[CONTEXT, {"humidity": 50, "load": 1}]).status == 200
    kinds = [event.kind for event in study.state.history]
    assert kinds == ["reported", "context", "corrected", "corrected", "dropped", "restored", "noted", "seen"]
    run = study.state.runs[0]
    assert run.value == 6.0
    assert study.space.decode_designs(run.x)[0]["speed"] == pytest.approx(2.5)


def test_a_failure_keeps_its_reason_and_a_skip_says_nothing(client: Client, study: Study) -> None:
    study.ask(2)
    assert client.write("tell", id=0, failed=True, why="blocked").status == 200
    assert client.write("cancel", id=1, why="no material").status == 200
    runs = study.state.runs
    assert (runs[0].status, runs[0].why) == ("failed", "blocked")
    assert (runs[1].status, runs[1].why) == ("cancelled", "no material")


def test_what_was_really_set(client: Client, study: Study) -> None:
    study.ask()
    before = study.pending[0].design
    client.write("tell", id=0, value=1, context=CONTEXT, design={"kind": "glossy", "layers": "2"})
    design = study.space.decode_designs(study.state.runs[0].x)[0]
    assert (design["kind"], design["layers"]) == ("glossy", 2)
    assert design["speed"] == pytest.approx(before["speed"])


@pytest.mark.parametrize("operation", ["tell", "undo", "note", "context-add"])
def test_sent_twice_it_is_stored_once(client: Client, study: Study, operation: str) -> None:
    study.tell({"speed": 2, "layers": 1, "kind": "plain"}, None, 5.0)
    body = {
        "tell": {"value": 2, "design": {"speed": 3, "layers": 1, "kind": "plain"}},
        "undo": {},
        "note": {"id": 0, "note": "x"},
        "context-add": {"rows": [CONTEXT]},
    }[operation]
    key = new_key()
    first = client.write(operation, key=key, **body)
    second = client.write(operation, key=key, **body)
    assert (first.status, second.status) == (200, 200)
    assert first.json["ref"] == second.json["ref"]
    assert (first.json["again"], second.json["again"]) == (False, True)
    assert len(study.state.history) == 2


def test_the_records_remember_the_key_after_a_restart(study: Study, tmp_path: Path) -> None:
    key, body = new_key(), {"value": 2, "design": {"speed": 3, "layers": 1, "kind": "plain"}}
    for again in (False, True):
        with study_server(tmp_path / "coating.db") as client:
            assert client.write("tell", key=key, **body).json["again"] is again
    assert len(study) == 1


def test_an_ask_sent_twice_is_one(client: Client, study: Study) -> None:
    key = new_key()
    client.write("ask", key=key)
    client.wait("ask", key=key)
    assert len(study.pending) == 1


def test_an_ask_for_today(client: Client, study: Study) -> None:
    for k in range(6):
        study.tell({"speed": 1 + k, "layers": 1 + k % 4, "kind": "plain"}, [40 + k, k], float(k))
    assert client.wait("ask", count=2, context=CONTEXT)["status"] == "done"
    assert client.wait("ask", forecast="40 1,5\n50 2")["status"] == "done"
    assert len(study.pending) == 3
    assert client.write("ask", forecast="40").status == 422


@pytest.mark.parametrize(
    ("operation", "body", "words"),
    [
        ("tell", {"id": 7, "value": 1}, "never asked"),
        ("tell", {"value": 1}, "not clear"),
        ("tell", {"id": 0, "value": "a lot"}, "number"),
        ("tell", {"id": 0, "value": "nan"}, "nan"),
        ("tell", {"id": 0, "value": 1, "context": {"lod": 4}}, "load"),
        ("tell", {"id": 0, "value": 1, "surprise": 2}, "surprise"),
        ("correct", {"id": 0}, "nothing is corrected"),
        ("amend", {}, "nothing is changed"),
    ],
)
def test_what_cannot_be_is_said(client: Client, study: Study, operation: str, body: dict, words: str) -> None:
    study.ask()
    answer = client.write(operation, **body)
    assert answer.status in (409, 422)
    assert words in str(answer.json)
    assert len(study.state.history) == 1


def test_the_answer_for_all_and_for_today(client: Client, study: Study) -> None:
    for k in range(6):
        study.tell({"speed": 1 + k, "layers": 1 + k % 4, "kind": "plain"}, [40 + k, k], float(k))

    def recommend(query: str) -> dict:
        return client.until(f"/api/v1/studies/coating/recommend{query}", lambda a: a.status == 200).json["result"]

    everywhere, today = recommend(""), recommend("?context.humidity=41&context.load=2")
    found = study.recommend()
    assert everywhere["design"] == found.design
    assert everywhere["record"]["expected"] == pytest.approx(found.expected)
    assert today["context"] == {"humidity": 41.0, "load": 2.0}
    assert [run["run"] for run in everywhere["nearest"]] == [run.run for run in found.nearest]
    record = everywhere["record"]
    assert record["optimality_gap"] == pytest.approx(found.optimality_gap)
    assert record["expected_improvement_10"] == pytest.approx(found.expected_improvement_10)
    assert (record["is_extrapolation"], record["beats_observations"]) == (
        found.is_extrapolation,
        found.beats_observations,
    )
    assert len(everywhere["doubts"]) == found.is_extrapolation + found.beats_observations
    assert client.get("/api/v1/studies/coating/recommend?context.humidity=41").status == 422


def test_the_policy(client: Client, study: Study) -> None:
    for k in range(6):
        study.tell({"speed": 1 + k, "layers": 1 + k % 4, "kind": "plain"}, [40 + k, k], float(k))
    address = "/api/v1/studies/coating/policy?known=humidity"
    result = client.until(address, lambda answer: answer.status == 200).json["result"]
    found = study.policy(known="humidity")
    assert [row["design"] for row in result["record"]["rows"]] == [row.design for row in found.rows]
    assert result["record"]["worth"] == pytest.approx(found.worth)
    assert len(result["rows"]) == len(found.rows)
    assert result["facts"][0].startswith("Knowing humidity before choosing is worth")
    wrong = client.until("/api/v1/studies/coating/policy?known=wind", lambda answer: answer.status == 200).json
    assert wrong["status"] == "failed"
    assert "'wind' is not a context variable" in wrong["problem"]["title"]


def test_what_matters(client: Client, study: Study) -> None:
    for k in range(6):
        study.tell({"speed": 1 + k, "layers": 1 + k % 4, "kind": "plain"}, [40 + k, k], float(k))
    address = "/api/v1/studies/coating/sensitivity"
    result = client.until(address, lambda answer: answer.status == 200).json["result"]
    found = study.sensitivity()
    assert result["record"]["variables"]["speed"]["first"]["value"] == pytest.approx(
        found.variables["speed"].first.value
    )
    assert [row[0] for row in result["rows"]] == ["speed", "layers", "kind", "humidity", "load"]
    assert result["facts"][0].startswith("Of the variance of results")


@pytest.mark.parametrize("screen", ["answer", "charts"])
def test_what_is_shown_follows_new_results(client: Client, study: Study, screen: str) -> None:
    for k in range(3):
        study.tell({"speed": 1 + k, "layers": 1 + k, "kind": "plain"}, [40 + k, k], float(k))
    page = client.until(f"/s/coating/{screen}", lambda answer: "seen=" in answer.text).text
    again = html.unescape(re.findall('hx-get="([^"]*seen=[^"]*)"', page)[0])
    assert client.get(again).status == 204  # nothing new: what is shown stays
    study.tell({"speed": 9, "layers": 4, "kind": "glossy"}, [44, 2], 2.5)
    found = client.until(again, lambda answer: answer.status == 200).text
    assert again not in html.unescape(found)
    assert "from 4 results" in found if screen == "answer" else "run 3: 2.5" in found


def test_export_is_the_table_of_the_command_line(client: Client, study: Study) -> None:
    study.tell({"speed": 2, "layers": 1, "kind": "plain"}, [1, 2], 5.0)
    rows = list(csv.DictReader(io.StringIO(client.get("/api/v1/studies/coating/export").text)))
    assert [(row["value"], row["kind"]) for row in rows] == [("5.0", "plain")]


def test_amendments_are_recorded(client: Client, study: Study) -> None:
    study.tell({"speed": 2, "layers": 1, "kind": "plain"}, [1, 2], 5.0)
    study.amend({"space": {**study.space.to_dict(), "constraints": ["speed >= layers / 2"]}})
    variable = {"name": "speed", "kind": "real", "low": "1", "high": "12,5"}
    rest = [
        {"name": "layers", "kind": "integer", "low": 1, "high": 4},
        {"name": "kind", "kind": "categorical", "choices": "plain, glossy, matt"},
        {"name": "angle", "low": 0, "high": 90, "before": 45},
    ]
    answer = client.write("amend", design=[variable, *rest], note="a faster motor", by="Ada")
    assert answer.status == 200, answer.text
    space = study.space
    assert space.design["speed"].upper == 12.5
    assert [constraint.text for constraint in space.constraints] == ["speed >= layers / 2"]  # which no form shows yet
    assert space.design["kind"].choices == ("plain", "glossy", "matt")
    assert space.decode_designs(study.state.runs[0].x)[0]["angle"] == pytest.approx(45)
    assert isinstance(study.state.history[-1], e.Amended)
    assert client.write("amend", goal="cvar:0.2", note="bad days cost most").status == 200
    assert client.write("amend", aim="identify", note="the line is not sold from yet").status == 200
    assert client.write("amend", aim="win", note="no such aim").status == 422
    page = client.get("/s/coating/setup").text
    assert "goal: mean over the conditions → mean of the worst 20\u202f% of conditions" in page
    assert "aim: operate → identify" in page
    assert "only the settings found in the end</td>" in page
    assert "mean of the worst 20\u202f% of conditions" in page
    assert "speed: 1 to 9 → 1 to 12.5" in page
    assert "a faster motor" in page


def test_a_new_study_in_a_folder(tmp_path: Path, space: Space) -> None:
    Study.open(tmp_path / "one.db", space)
    with study_server(tmp_path) as client:
        body = {
            "name": "Kiln №2 ../../etc",
            "design": [
                {"name": "heat", "low": 1, "high": "9,5"},
                {"name": "k", "kind": "categorical", "choices": "a,b"},
            ],
            "context": [{"name": "wind"}],
            "direction": "minimize",
        }
        made = client.post("/api/v1/new", body)
        assert made.status == 200, made.text
        assert client.wait("ask", made.json["study"])["status"] == "done"
        assert client.post("/api/v1/new", body).status == 422
        assert client.get("/api/v1/studies").json[-1]["name"] == body["name"]
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.endswith(("-wal", "-shm"))) == [
        "kiln-no2-etc.db",
        "kiln-no2-etc.toml",
        "one.db",
    ]


def test_preparing_ahead_says_so(study: Study, tmp_path: Path) -> None:
    with study_server(tmp_path / "coating.db", prepares=True) as client:
        client.wait("ask")
        page = client.until("/s/coating/", lambda answer: "without its result" in answer.text).text
        assert len(study.pending) == 2
        assert "While a run is made the next suggestion is prepared" in page


def test_the_description_names_every_operation_and_loads_nothing(client: Client) -> None:
    paths = client.get("/api/v1/openapi.json").json["paths"]
    operations = {path.rpartition("/")[2] for path in paths}
    assert {"ask", "tell", "correct", "drop", "restore", "cancel", "note", "undo", "amend", "new"} <= operations
    assert {"import", "export", "recommend", "show", "context-add", "context-tell"} <= operations
    page = client.get("/api/v1/docs").text
    assert "/api/v1/studies/{study}/tell" in page
    assert "number or string" in page
    assert "https://" not in page


@pytest.mark.filterwarnings("ignore::edrbo.errors.ImplausibleWarning")
def test_what_looks_mistyped_is_stored_and_questioned(study: Study, client: Client) -> None:
    for k in range(8):
        study.tell({"speed": 1 + k, "layers": 1 + k % 4, "kind": "plain"}, [40 + 7 * k, k], 50.0 + k)
    own = {"speed": 3, "layers": 1, "kind": "plain"}
    assert client.write("tell", value=55, design=own, context=CONTEXT).json["warnings"] == []
    (warning,) = client.write("tell", value=550, design=own, context=CONTEXT).json["warnings"]
    assert "far from the 50 to 57 reported so far; did you mean 55?" in warning


def test_contexts_that_fill_a_sliver_of_their_bounds_are_said_once(client: Client) -> None:
    own = {"speed": 3, "layers": 1, "kind": "plain"}
    said = [
        client.write("tell", value=5 + k % 3, design=own, context={"humidity": 50 + 0.1 * k, "load": k}).json[
            "warnings"
        ]
        for k in range(12)
    ]
    ((found,),) = [warnings for warnings in said if warnings]
    assert "a small part of" in found


def test_constraints_are_shown_said_and_amended(tmp_path: Path) -> None:
    limit = "speed + layers <= 10"
    variables = [{"name": "speed", "low": 1, "high": 9}, {"name": "layers", "kind": "integer", "low": 1, "high": 4}]
    with study_server(tmp_path) as client:
        made = client.post("/api/v1/new", {"name": "Kiln", "design": variables, "constraints": [limit, " "]})
        assert made.status == 200, made.text
        for page in ("enter", "setup"):
            assert limit in html.unescape(client.get(f"/s/kiln/{page}").text)
        reported = client.write("tell", "kiln", value=1, design={"speed": 9, "layers": 4}).json
        assert reported["warnings"] == [f"what was set breaks {limit}; it is kept as it was run"]
        assert client.write("tell", "kiln", value=1, design={"speed": 2, "layers": 4}).json["warnings"] == []
        assert client.write("amend", "kiln", constraints=["speed >= layers"], note="stiffer").status == 200
        study = Study.open(tmp_path / "kiln.db")
        assert [constraint.text for constraint in study.space.constraints] == ["speed >= layers"]
        trail = html.unescape(client.get("/s/kiln/setup").text)
        assert f"speed >= layers must hold; {limit} need not hold any more (stiffer)" in trail
        refused = client.write("amend", "kiln", constraints=["speed >= 10"])
        assert refused.status == 422
        assert client.write("amend", "kiln", design=variables).status == 422  # what must hold stays as it was


def test_what_cannot_be_stored_now_is_not_refused_for_good(client: Client, study: Study, tmp_path: Path) -> None:
    """A page keeps an entry that met a 503, and sends it again under its key."""
    entry = {"key": new_key(), "value": 5, "design": {"speed": 3, "layers": 1, "kind": "plain"}}
    assert client.get("/s/coating/").status == 200
    (tmp_path / "coating.db").rename(tmp_path / "away.db")
    away = client.write("tell", **entry)
    assert (away.status, "cannot" in away.json["title"]) == (503, True)
    (tmp_path / "away.db").rename(tmp_path / "coating.db")
    assert client.write("tell", **entry).status == 200
    assert len(study) == 1
