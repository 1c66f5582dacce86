"""Nothing is final: correct, leave out, cancel, undo, amend; who and when; what is questioned."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

from edrbo.lab import Study
from edrbo.lab.config import read_toml

Run = Callable[..., Any]


@pytest.fixture
def coating(edrbo: Run) -> Run:
    words = ["-d", "speed=10:60 m/min step 0.5", "-d", "kind=plain,glossy", "-c", "humidity=0:100 %"]
    assert edrbo("new", "coating.toml", *words, "--outcome", "gloss", "--unit", "GU", "--initial", 20).code == 0
    return edrbo


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Somebody sits at the terminal; what is appended are the answers to yes or no."""
    answers: list[str] = []
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(typer, "confirm", lambda *words, **more: answers.pop(0) == "y")
    return answers


def test_what_was_stored_is_said_in_a_sentence(coating: Run) -> None:
    ended = coating("tell", "-d", "speed=38", "-d", "kind=Plain", "--value", "1,7", "-c", "humidity=55%")
    assert ended.out.splitlines()[0] == "run 0: speed 38 m/min, kind plain at humidity 55 % gave gloss 1.7 GU"
    assert "1 result so far" in ended.out


def test_what_was_really_set(coating: Run, folder: Path) -> None:
    (suggestion,) = coating("ask", "--json").json
    assert coating("tell", 0, "-v", 1, "-d", "speed=38.2", "-c", "humidity=50").code == 0
    study = Study.open(folder / "coating.db")
    (design,) = study.space.decode_designs(study.observations.x)
    assert design == {"speed": pytest.approx(38.2), "kind": suggestion["design"]["kind"]}
    assert study.runs[0].suggested


def test_a_history_with_who_when_and_why(coating: Run, folder: Path) -> None:
    coating("ask", "--by", "Ana")
    coating("tell", 0, "-v", 1, "-c", "humidity=50", "--by", "Ana", "--note", "a bubble", "--at", "2026-03-14 15:30")
    ended = coating("edit", 0, "--value", 1.5, "--why", "typo", "--by", "Ben")
    assert ended.code == 0
    was, now = ended.out.splitlines()
    assert was.startswith("was  run 0")
    assert was.endswith("gave gloss 1 GU")
    assert now.endswith("gave gloss 1.5 GU")
    coating("drop", 0, "--why", "smeared", "--by", "Ben")
    coating("note", 0, "washed", "twice")
    shown = coating("show", 0)
    for text in (
        "2026-03-14 15:30",
        "Ana",
        "Ben",
        "corrected: gloss 1.5 GU (typo)",
        "left out (smeared)",
        "washed twice",
    ):
        assert text in shown.out
    history = coating("show", 0, "--json").json["history"]
    assert [event["kind"] for event in history] == ["asked", "reported", "corrected", "dropped", "noted"]
    assert [event["by"] for event in history][:4] == ["Ana", "Ana", "Ben", "Ben"]
    assert len(Study.open(folder / "coating.db")) == 0
    coating("restore", 0)
    assert Study.open(folder / "coating.db").observations.y.tolist() == [1.5]


def test_editing_one_of_two_contexts(edrbo: Run, folder: Path) -> None:
    edrbo("new", "s.toml", "-d", "x=0:1", "-c", "a=0:1", "-c", "b=0:1")
    edrbo("tell", "-d", "x=0.5", "-v", 1, "-c", "a=0.1", "-c", "b=0.2")
    assert edrbo("edit", 0, "-c", "b=0.9").code == 0
    assert Study.open(folder / "s.db").observations.c.tolist() == [[0.1, 0.9]]


def test_undo_and_cancel(coating: Run, folder: Path) -> None:
    coating("ask", "-n", 2)
    assert ": not tried (no time)" in coating("cancel", 0, "--why", "no time").out
    coating("tell", 1, "-v", 3, "-c", "humidity=50")
    ended = coating("undo")
    assert "taken back: run 1, result: gloss 3 GU, humidity 50 %" in ended.out
    assert [run.status for run in Study.open(folder / "coating.db").runs] == ["cancelled", "pending"]
    assert "taken back: run 0, not tried" in coating("undo").out
    assert [run.status for run in Study.open(folder / "coating.db").runs] == ["pending", "pending"]
    assert "taken back" in coating("show", 1).out
    shown = coating("show", "--json").json
    assert [run["status"] for run in shown["runs"]] == ["pending", "pending"]


def test_undoing_what_somebody_else_did_asks_first(coating: Run, terminal: list[str], folder: Path) -> None:
    coating("tell", "-d", "speed=38", "-d", "kind=plain", "-v", 1, "-c", "humidity=50", "--by", "Ana")
    terminal.append("n")
    assert coating("undo", "--by", "Ben").code == 1
    assert len(Study.open(folder / "coating.db")) == 1
    terminal.append("y")
    assert coating("undo", "--by", "Ben").code == 0
    assert len(Study.open(folder / "coating.db")) == 0


# -------------------------------------------------------------------- plausible?


@pytest.fixture
def experienced(coating: Run, folder: Path) -> Run:
    study = Study.open(folder / "coating.db")
    for k in range(9):
        study.tell({"speed": 20.0 + k, "kind": "plain"}, [40 + 2.5 * k], 60.0 + k)
    return coating


WORDS = ["tell", "-d", "speed=38", "-d", "kind=plain"]


@pytest.mark.parametrize(
    ("more", "question"),
    [
        (
            ["-v", "65", "-c", "humidity=0.55"],
            "humidity is 0.55 %, far from the 40 % to 60 % seen so far; did you mean 55",
        ),
        (["-v", "65", "-c", "humidity=155"], "humidity is 155 %, outside 0 to 100 %"),
        (
            ["-v", "650", "-c", "humidity=50"],
            "gloss is 650 GU, far from the 60 GU to 68 GU reported so far; did you mean 65?",
        ),
    ],
)
def test_implausible_values_ask_first(experienced: Run, terminal: list[str], more: list[str], question: str) -> None:
    terminal += ["n"]
    ended = experienced(*WORDS, *more)
    assert question in ended.out
    assert "nothing was stored" in ended.err
    assert ended.code == 1
    assert len(experienced("show", "--json").json["observations"]) == 9
    terminal += ["y"]
    assert experienced(*WORDS, *more).code == 0
    assert experienced(*WORDS, *more, "--yes").out.count("did you mean") == 0
    assert len(experienced("show", "--json").json["observations"]) == 11


def test_without_a_terminal_it_is_stored_with_a_warning(experienced: Run) -> None:
    ended = experienced(*WORDS, "-v", 65, "-c", "humidity=155")
    assert ended.code == 0
    assert ended.err == "warning: humidity is 155 %, outside 0 to 100 % (stored as it is)\n"
    ended = experienced(*WORDS, "-v", 65, "-c", "humidity=155", "--json")
    assert ended.json["observations"] == 11
    assert '"warning": "humidity is 155' in ended.err


def test_what_is_plausible_is_not_questioned(experienced: Run, terminal: list[str]) -> None:
    for humidity, value in ((38, 70), (62, 58), (50, 75), (70, 80)):
        assert experienced(*WORDS, "-v", value, "-c", f"humidity={humidity}").code == 0


def test_doubtful_runs_are_listed_with_reasons(experienced: Run) -> None:
    assert experienced("show", "--implausible").out.strip() == "no run looks doubtful"
    experienced(*WORDS, "-v", 650, "-c", "humidity=50", "--yes")
    experienced(*WORDS, "-v", 50, "-c", "humidity=65", "--yes")  # which might be meant
    ended = experienced("show", "--implausible")
    assert "gave gloss 650 GU" in ended.out
    assert "gloss is 650 GU, far from the 50 GU to 68 GU reported so far; did you mean 65?" in ended.out
    assert [found["id"] for found in experienced("show", "--implausible", "--json").json] == [9]


def test_narrow_contexts_are_said_once_and_shown(experienced: Run) -> None:
    assert experienced("amend", "-c", "humidity=0:10000").code == 0
    ended = experienced(*WORDS, "-v", 65, "-c", "humidity=50")
    assert ended.err.startswith("warning: humidity was 40 % to 60 % so far, a small part of 0 to 10000 %")
    assert experienced(*WORDS, "-v", 64, "-c", "humidity=51").err == ""
    assert "humidity was 40 % to 60 % so far" in experienced("show").out


# -------------------------------------------------------------------- changing one's mind


def test_amending_ranges_levels_variables_goal_and_title(coating: Run, folder: Path) -> None:
    coating("tell", "-d", "speed=38", "-d", "kind=plain", "-v", 60, "-c", "humidity=50")
    ended = coating("amend", "-d", "speed=10:80", "--level", "kind=matt", "--goal", "cvar:0.1", "--title", "Line 2")
    assert ended.code == 0, ended.err
    assert "speed: 10 to 60 m/min in steps of 0.5 → 10 to 80 m/min in steps of 0.5" in ended.out
    assert "kind: plain or glossy → plain, glossy or matt" in ended.out
    assert "goal: mean over the conditions → mean of the worst 10 % of conditions" in ended.out
    assert "title: none → Line 2" in ended.out
    assert coating("show").out.startswith("Line 2 (coating)")
    ended = coating("amend", "-d", "dose=0:5 g")
    assert "'dose' is new" in ended.err
    assert "say which value the runs so far had" in ended.err
    assert coating("amend", "-d", "dose=0:5 g", "--was", "dose=1,5").code == 0
    study = Study.described(read_toml(folder / "coating.toml"), "never")  # the file followed
    assert study.space.decode_designs(study.observations.x) == [
        {"speed": pytest.approx(38), "kind": "plain", "dose": pytest.approx(1.5)}
    ]
    assert coating("undo").code == 0
    assert (
        "dose" not in Study.described(read_toml(folder / "coating.toml"), "never").space.design
    )  # the file followed again


def test_a_changed_file_is_refused_until_it_is_made_official(coating: Run, folder: Path) -> None:
    path = folder / "coating.toml"
    path.write_text(path.read_text().replace("high = 60.0", "high = 70.0"))
    ended = coating("show")
    assert "10 to 70 m/min in steps of 0.5 is not 10 to 60 m/min in steps of 0.5" in ended.err
    assert "edrbo amend" in ended.err
    assert "→" in coating("amend", "--json").json["changed"][0]
    assert coating("show").code == 0
    assert Study.open(folder / "coating.db").space.design["speed"].bounds() == (10.0, 70.0)


def test_a_changed_name_is_refused_and_show_makes_nothing(coating: Run, folder: Path) -> None:
    path = folder / "coating.toml"
    text = path.read_text()
    path.write_text(text.replace('name = "coating"', 'name = "other"'))
    for words in (["show"], ["ask"], ["tell", "-d", "speed=38", "-d", "kind=plain", "-v", "1"]):
        ended = coating(*words)
        assert "there is no study 'other'" in ended.err
        assert "'coating'" in ended.err
    assert [row["name"] for row in coating("studies", "-s", "coating.db", "--json").json] == ["coating"]
    path.write_text(text.replace('storage = "coating.db"', 'storage = "elsewhere.db"'))
    assert coating("show").code == 2
    assert not (folder / "elsewhere.db").exists()


def test_several_studies_in_one_place(coating: Run, folder: Path) -> None:
    assert coating("new", "b.toml", "-d", "x=0:1", "--storage", "coating.db", "--name", "second").code == 0
    assert coating("tell", "-s", "coating.db", "--name", "second", "-d", "x=0.5", "-v", 1).code == 0
    assert "name one: 'coating', 'second'" in coating("show", "-s", "coating.db").err
    assert coating("show", "-s", "coating.toml", "--name", "second", "--json").json["name"] == "second"
    rows = coating("studies", "-s", "b.toml", "--json").json
    assert [(row["name"], row["outcomes"]) for row in rows] == [("coating", 0), ("second", 1)]
    assert "second" in coating("studies", "-s", "b.toml").out


def test_a_study_from_a_file_written_by_hand(edrbo: Run, folder: Path) -> None:
    (folder / "hand.toml").write_text("[design]\nspeed = [1, 9]\n")
    assert edrbo("show").code == 2
    assert edrbo("new", "hand.toml").code == 0
    assert edrbo("show").code == 0
    assert "exists already" in edrbo("new", "hand.toml").err


@pytest.mark.parametrize("word", ["coating.toml", "coating.db", "postgresql://me:hunter2@host/db"])
def test_a_study_without_its_option(edrbo: Any, word: str) -> None:
    ended = edrbo("show", word)
    assert ended.code == 2
    assert "--study" in ended.err
    assert "hunter2" not in ended.err
