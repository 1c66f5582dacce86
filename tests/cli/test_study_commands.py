"""A study by command line, from `new` to `report`."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edrbo.lab import Study
from edrbo.lab.cli.output import safe_file_name
from edrbo.lab.config import read_toml
from edrbo.space import Categorical, Integer, Real, Space

Run = Callable[..., Any]  # gives an Ended of tests/cli/conftest.py


@pytest.fixture
def coating(edrbo: Run) -> Run:
    """A study with one design and one context variable, in this folder."""
    ended = edrbo(
        "new", "coating.toml", "-d", "speed=1:9", "-c", "humidity=0:1", "--method", "ucb", "--initial", 2, "--seed", 3
    )
    assert ended.code == 0, ended.err
    return edrbo


def test_from_new_to_recommend(coating: Run, folder: Path) -> None:
    for value in (1.0, 2.0, 3.0):
        ((suggestion),) = coating("ask", "--json").json
        assert 1 <= suggestion["design"]["speed"] <= 9
        ended = coating("tell", suggestion["id"], "--value", value, "-c", "humidity=0.5", "--json")
        assert ended.code == 0
    assert ended.json == {"id": 2, "observations": 3}
    found = coating("recommend", "--json").json
    assert found["observations"] == 3
    assert found["interval"][0] <= found["expected"] <= found["interval"][1]
    words = coating("recommend").out
    assert "expected on average" in words
    shown = coating("show", "--json").json
    assert [row["value"] for row in shown["observations"]] == [1.0, 2.0, 3.0]
    assert shown["observations"][0]["context"] == {"humidity": 0.5}
    assert shown["settings"]["method"] == "ucb"
    assert Study.open(folder / "coating.db").observations.y.tolist() == [1.0, 2.0, 3.0]


def test_new_describes_what_was_said(edrbo: Run, folder: Path) -> None:
    words = ["-d", "speed=1:9", "-d", "rate=1e-4:1:log", "-d", "layers=1:8:int", "-d", "kind=a,b,c"]
    words += [
        "-c",
        "humidity=0:1",
        "-c",
        "price",
        "-c",
        "load=0:",
        "--direction",
        "minimize",
        "--context-half-life",
        "20",
    ]
    words += ["--least-success", "0.9"]
    assert edrbo("new", "study.toml", *words).code == 0
    described = read_toml(folder / "study.toml")
    assert described.settings.space == Space(
        {
            "speed": (1.0, 9.0),
            "rate": Real(1e-4, 1.0, log=True),
            "layers": Integer(1, 8),
            "kind": Categorical(("a", "b", "c")),
        },
        {"humidity": (0.0, 1.0), "price": None, "load": Real(0.0, None)},
    )
    assert (described.settings.direction, described.settings.context_half_life) == ("minimize", 20.0)
    assert described.settings.least_success == 0.9
    assert Study.described(described).settings == Study.open(folder / "study.db").settings
    for name in ("study.toml", "study.db"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["new", "coating.toml", "-d", "x=0:1"], "exists already"),
        (["new", "coating.txt", "-d", "x=0:1"], "does not end in .toml"),
        (["new", "b.toml", "-d", "x=zero:one"], "neither a range nor a list of names"),
        (["new", "b.toml", "-d", "x=0:1.5:int"], "the bound 1.5 is not a whole number"),
        (["new", "b.toml"], "run this in a terminal"),
        (["new", "b.toml", "-d", "x=1:0"], "must be below"),
        (["new", "b.toml", "-d", "x=0:1", "--method", "nonsense"], "no method is called"),
        (["new", "b.toml", "-d", "x=0:1", "--direction", "up"], "direction is 'up'"),
        (["new", "b.toml", "-d", "x=0:1", "--storage", "coating.db", "--name", "coating"], "has other settings"),
        (["ask", "--study", "missing.toml"], "No such file"),
        (["ask", "--study", "missing.db"], "there is no study at"),
        (["ask", "-c", "humidity"], "is not NAME=VALUE"),
        (["ask", "-c", "humidity=wet"], "not a number"),
        (["ask", "-c", "wind=1"], "'wind' is not a condition"),
        (["tell", "7", "--value", "1"], "was never asked"),
        (["tell", "--value", "1"], "not clear"),
        (["tell", "0", "-d", "speed=2", "--value", "1"], "was never asked"),
        (["tell", "0"], "the result is missing"),
        (["edit", "0", "--value", "1"], "there is no run 0"),
        (["drop", "0"], "there is no run 0"),
        (["undo"], "nothing to undo"),
        (["show", "0"], "there is no run 0"),
        (["amend"], "nothing changes"),
        (["amend", "--level", "speed=3"], "has no levels"),
        (["cancel", "0"], "was never asked"),
        (["tell", "-d", "speed=fast", "--value", "1"], "not a number"),
        (["tell", "-d", "sped=1", "--value", "1"], "not a setting"),
        (["tell", "-d", "speed=11", "--value", "1"], "speed is 11, outside 1 to"),
        (["tell", "-d", "speed=2", "--value", "nan"], "tell a failed run as failed"),
        (["recommend"], "nothing was reported yet"),
        (["context", "add", "missing.csv"], "No such file"),
        (["import", "missing.csv"], "No such file"),
        (["export", "coating.toml"], "exists already"),
        (["report", "--out", "coating.toml"], "exists already"),
        (["run", "coating.toml", "--", "./simulate", "{sped}"], "did you mean 'speed'"),
        (["run", "coating.toml", "--", "./missing", "{speed}"], "cannot start './missing'"),
    ],
)
def test_errors_have_a_line_and_a_hint_but_no_traceback(
    coating: Run, folder: Path, words: list[str], message: str
) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix == ".toml"}
    ended = coating(*words)
    assert ended.code == 2
    assert message in ended.err
    assert ended.err.startswith("error: ")
    assert "Traceback" not in ended.err
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix == ".toml"} == before


def test_which_study_is_meant(coating: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "pyproject.toml").write_text("[project]\n")
    assert coating("show").code == 0
    assert coating("new", "other.toml", "-d", "x=0:1").code == 0
    assert "say which with --study" in coating("show").err
    assert "coating" in coating("show", "-s", "coating.db").out
    monkeypatch.setenv("EDRBO_STUDY", "other.toml")
    assert "other" in coating("show").out
    (folder / "empty").mkdir()
    monkeypatch.chdir(folder / "empty")
    monkeypatch.delenv("EDRBO_STUDY")
    assert "there is no study here" in coating("ask").err


def test_own_designs_failures_and_late_contexts(coating: Run) -> None:
    assert coating("tell", "-d", "speed=2", "--value", 1, "--noise-variance", 0.1).code == 0
    assert coating("tell", "-d", "speed=3", "--failed").code == 0
    assert coating("context", "tell", 0, "humidity=0.25").code == 0
    shown = coating("show", "--json").json
    assert shown["failed"] == 1
    assert [run["status"] for run in shown["runs"]] == ["reported", "failed"]
    (reported,) = shown["observations"]
    assert (reported["design"], reported["context"], reported["value"]) == ({"speed": 2.0}, {"humidity": 0.25}, 1.0)


def test_contexts_and_forecasts_from_files(coating: Run, folder: Path) -> None:
    (folder / "seen.csv").write_text("weight,humidity\n1,0.1\n3,0.2\n")
    assert coating("context", "add", "seen.csv", "--json").json == {"added": 2, "contexts": 2}
    (folder / "tomorrow.csv").write_text("humidity\n0.7\n0.8\n")
    assert coating("ask", "--forecast", "tomorrow.csv").code == 0
    assert coating("ask", "--forecast", "tomorrow.csv", "-c", "humidity=0.5").code == 2
    for text, message in (
        ("wind\n1\n", "'wind'"),
        ("humidity\nwet\n", "not a number"),
        ("humidity\n1,2\n", "stands in no column"),
    ):
        (folder / "bad.csv").write_text(text)
        assert message in coating("context", "add", "bad.csv").err
    (folder / "wide.csv").write_text("humidity\n1.5\n")
    ended = coating("context", "add", "wide.csv")
    assert ended.code == 0
    assert ended.err.startswith("warning: contexts outside their bounds")


def test_export_and_import_are_exact(coating: Run, folder: Path) -> None:
    for _ in range(2):
        (suggestion,) = coating("ask", "--json").json
    coating("tell", suggestion["id"], "--value", 0.1, "-c", "humidity=0.3")
    assert coating("export", "table.csv", "--exact").code == 0
    assert coating("export", "--exact").out == (folder / "table.csv").read_text()
    assert coating("export", "table.csv").code == 2
    assert coating("export", "table.csv", "--force", "--exact").code == 0
    assert coating("new", "copy.toml", "-d", "speed=1:9", "-c", "humidity=0:1").code == 0
    assert coating("import", "table.csv", "-s", "copy.toml", "--json").json == {
        **{"reported": 1, "pending": 1, "known": 0},
        "notes": [],
        "doubts": [],
    }
    one, two = Study.open(folder / "coating.db").state, Study.open(folder / "copy.db").state
    assert one.observations.x.tobytes() == two.observations.x.tobytes()
    assert one.observations.y.tobytes() == two.observations.y.tobytes()
    assert one.log.weighted(1, None)[0].tobytes() == two.log.weighted(1, None)[0].tobytes()


# -------------------------------------------------------------------- two versions of a TOML file


def test_a_changed_toml_says_what_changed(coating: Run, folder: Path) -> None:
    path = folder / "coating.toml"
    path.write_text(
        path.read_text().replace("speed = [1.0, 9.0]", "speed = [1.0, 12.0]").replace("seed = 3", "seed = 4")
    )
    ended = coating("ask")
    assert ended.code == 2
    assert "seed: 4 is not 3; design variable 'speed' has changed: 1 to 12 is not 1 to 9" in ended.err


def test_a_toml_of_another_version(coating: Run, folder: Path) -> None:
    path = folder / "coating.toml"
    text = path.read_text()
    path.write_text(text.replace("format = 1\n", ""))  # before there were formats
    assert coating("show").code == 0
    path.write_text(text.replace("format = 1", "format = 2"))
    assert "upgrade edrbo" in coating("show").err
    path.write_text("color = 3\n" + text)
    assert "'color' is not known here" in coating("show").err
    path.write_text("[design")
    assert "is not TOML" in coating("show").err
    path.write_text("design = 3")
    assert "must be tables" in coating("show").err
    path.write_text("[design]\nspeed = {low = 1, hihg = 2}")
    assert "write [low, high]" in coating("show").err


def test_a_toml_by_hand(folder: Path) -> None:
    path = folder / "hand.toml"
    path.write_text('[design]\nspeed = [1, 9]\nkind = ["a", "b"]\n[context]\nprice = {}\n')
    described = read_toml(path)
    assert described.settings.space == Space({"speed": (1, 9), "kind": ["a", "b"]}, {"price": None})
    assert (described.name, described.storage) == ("hand", str(folder / "hand.db"))


# -------------------------------------------------------------------- names that try to be something else


def test_names_are_harmless_in_terminals_and_files(edrbo: Run, folder: Path) -> None:
    name, study = "[red]\x1b[31m{x}</script>", "../../outside\x1b[2J"
    assert edrbo("new", "odd.toml", "-d", f"{name}=0:1", "--name", study).code == 0
    assert tomllib.loads((folder / "odd.toml").read_text())["design"] == {name: [0.0, 1.0]}
    for words in (["ask"], ["tell", "0", "--value", "1"], ["show"], ["recommend"], ["report"]):
        ended = edrbo(*words)
        assert ended.code == 0, ended.err
        assert "\x1b" not in ended.out + ended.err
    assert "[red]\\x1b[31m{x}</script>" in edrbo("show").out
    assert sorted(path.name for path in folder.iterdir()) == ["odd.db", "odd.toml", "outside--2J.html"]


@pytest.mark.parametrize("name", ["../a", "/etc/passwd", "..", "", "a/b\\c", "x" * 300, "\x00", "naïve"])
def test_file_names_from_study_names(name: str) -> None:
    safe = safe_file_name(name)
    assert 0 < len(safe) <= 80
    assert not set(safe) & set("/\\.\x00")


def test_help_is_quick_to_load() -> None:
    """No heavy library is loaded before a command needs it."""
    heavy = ("torch", "scipy", "optuna", "pandas", "matplotlib")
    code = f"import sys, edrbo.lab.cli; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "words",
    [
        *(
            [],
            ["new"],
            ["ask"],
            ["tell"],
            ["context", "add"],
            ["context", "tell"],
            ["recommend"],
            ["show"],
            ["studies"],
        ),
        *(["edit"], ["undo"], ["drop"], ["restore"], ["cancel"], ["note"], ["amend"], ["check"]),
        *(["import"], ["export"], ["report"], ["run"]),
    ],
)
def test_every_command_has_help(edrbo: Run, words: list[str]) -> None:
    ended = edrbo(*words, "--help")
    assert ended.code == 0
    assert "Usage:" in ended.out


@pytest.mark.parametrize("words", [("show",), ("studies",), ("report",), ("tell", "0", "--value", "1")])
def test_a_study_without_its_option_is_understood_as_a_slip(coating: Run, words: tuple[str, ...]) -> None:
    ended = coating(*words, "coating.toml")
    assert ended.code == 2
    assert "coating.toml stands alone" in ended.err
    assert "write --study before coating.toml" in ended.err
    hidden = coating(words[0], "postgresql://me:secret@host/db")
    assert hidden.code == 2
    assert "secret" not in hidden.err + hidden.out
