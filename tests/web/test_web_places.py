"""Where studies may be: TOML files, study files, folders, and a real PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest
from live import study_server

from edrbo import Space, Study
from edrbo.errors import StudyError
from edrbo.lab.config import write_toml
from edrbo.lab.web.demo import _week, demo_space
from edrbo.lab.web.registry import StudyRegistry
from edrbo.optimizer.optimizer import Optimizer
from edrbo.records.settings import Settings
from edrbo.records.state import State

TELL = {"value": 1, "design": {"speed": 3, "layers": 1, "kind": "plain"}}


def test_postgresql_and_two_servers(postgresql: str, space: Space) -> None:
    study = Study.open(postgresql, space, name="coating")
    Study.open(postgresql, space, name="Kiln 2")
    with study_server(postgresql) as one, study_server(postgresql) as two:
        assert [found["study"] for found in one.get("/api/v1/studies").json] == ["coating", "kiln-2"]
        assert one.write("tell", **TELL).status == 200
        assert two.get("/api/v1/studies/coating/runs").json[0]["value"] == 1
        assert two.wait("ask")["status"] == "done"
        assert "/enter/1" in one.get("/s/coating/").text
        body = {"name": "third", "design": [{"name": "x", "low": 0, "high": 1}]}
        assert one.post("/api/v1/new", body).status == 200
        assert f"Studies in {postgresql.rpartition('/')[2].partition('?')[0]}<" in one.get("/").text
    secret = postgresql.replace("postgres:@", "postgres:secret-word@")
    assert "secret-word" in secret
    with study_server(secret) as client:
        for path in ("/", "/s/coating/", "/s/coating/setup", "/api/v1/studies/coating/show"):
            answer = client.get(path)
            assert answer.status == 200
            assert "secret-word" not in answer.text
    assert len(study) == 1
    assert Study.open(postgresql, name="third").space.design_names == ("x",)


def test_a_toml_file_that_was_amended_on_the_page(tmp_path: Path, space: Space) -> None:
    write_toml(tmp_path / "line.toml", "line.db", "Line", Settings(space))
    for upper in (10, 11):
        with study_server(tmp_path / "line.toml") as client:
            variables = client.get("/api/v1/studies/line/show").json["variables"]["design"]
            parts = [{key: part[key] for key in ("name", "kind", "low", "high")} for part in variables]
            parts[0] |= {"high": upper, "unit": "m/min", "step": "0,5"}
            parts[2] |= {"choices": "plain, glossy"}
            answer = client.write("amend", "line", design=parts, note="faster")
            assert answer.status == 200, answer.text
    speed = Study.open(tmp_path / "line.db").space.design["speed"]
    assert (speed.upper, speed.unit, speed.step) == (11.0, "m/min", 0.5)


def test_a_folder_has_every_study_once(tmp_path: Path, space: Space) -> None:
    write_toml(tmp_path / "a.toml", "a.db", "First", Settings(space))
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    Study.open(tmp_path / "b.db", space, name="Second")
    places = StudyRegistry(str(tmp_path))
    assert places.names() == {"first": "First", "second": "Second"}
    places.open("first")  # makes a.db
    places.look()
    assert places.names() == {"first": "First", "second": "Second"}


def test_names_that_make_one_word_are_reported_apart(tmp_path: Path, space: Space) -> None:
    for name in ("a b", "a-b", "A/B"):
        Study.open(tmp_path / "x.db", space, name=name)
    assert set(StudyRegistry(str(tmp_path / "x.db")).names()) == {"a-b", "a-b-2", "a-b-3"}


def test_names_that_make_one_word_have_files_of_their_own(tmp_path: Path, space: Space) -> None:
    registry, other = StudyRegistry(str(tmp_path)), StudyRegistry(str(tmp_path))
    names = ("É", "é", "💥", "☃", "..", "study")
    words = [registry.create(name, Settings(space)) for name in names]
    assert words == ["e", "e-2", "study", "study-2", "study-3", "study-4"]
    assert (
        {path.stem for path in tmp_path.glob("*.toml")} == set(words) == {path.stem for path in tmp_path.glob("*.db")}
    )
    assert [registry.open(word).name for word in words] == list(names)
    assert other.create("☃", Settings(space)) == other.create("☃", Settings(space))
    assert len(list(tmp_path.glob("*.db"))) == len(names)  # one that another server made is found, not made again


@pytest.mark.parametrize("name", ["", " ", "\n\t", "\u200b\u202e"])
def test_a_name_that_shows_nothing_names_nothing(tmp_path: Path, space: Space, name: str) -> None:
    with pytest.raises(StudyError, match="cannot name a study"):
        StudyRegistry(str(tmp_path)).create(name, Settings(space))
    assert list(tmp_path.iterdir()) == []


def test_a_study_that_somebody_makes_meanwhile_is_found(
    tmp_path: Path, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edrbo.lab.web.session.LOOK_AGAIN", -1.0)
    Study.open(tmp_path / "x.db", space)
    with study_server(tmp_path) as client:
        Study.open(tmp_path / "y.db", space)
        assert [found["study"] for found in client.get("/api/v1/studies").json] == ["x", "y"]
        assert client.get("/s/y/").status == 200


def test_the_demonstration_happened_in_order_and_before_now() -> None:
    settings = Settings(demo_space(), "erbo", initial=20)  # no model, which is slow and says nothing of times
    events = _week(Optimizer.of(State.start(settings)), 1e9)
    times = [event.at for event in events]
    assert times == sorted(times)
    assert times[-1] < 1e9
    assert [event.kind for event in events].count("asked") == 15
    assert all(event.by for event in events)
