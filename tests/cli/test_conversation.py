"""`edrbo new` as a conversation, variables as people write them, completion, JSON and narrow terminals."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer

from edrbo.errors import InvalidSpaceError
from edrbo.lab import Study
from edrbo.lab.cli.options import complete_contexts, complete_designs, complete_ids, complete_pending
from edrbo.lab.config import read_toml
from edrbo.lab.entry import read_specification, read_variable_argument, specification
from edrbo.space import Categorical, Integer, Real, Space

Run = Callable[..., Any]
Talk = Callable[..., Any]


@pytest.fixture
def talk(edrbo: Run, monkeypatch: pytest.MonkeyPatch) -> Talk:
    """Answer the questions of `edrbo new study.toml`; a KeyboardInterrupt when there are no more answers."""
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)

    def run(*given: str, words: tuple[str, ...] = (), file: tuple[str, ...] = ("study.toml",)) -> Any:
        answers = list(given)

        def prompt(question: str, default: str = "", **more: Any) -> str:
            print(question)
            if not answers:
                raise KeyboardInterrupt
            return answers.pop(0) or default

        monkeypatch.setattr(typer, "prompt", prompt)
        monkeypatch.setattr(typer, "confirm", lambda question, **more: prompt(question, "y") == "y")
        return edrbo("new", *file, *words)

    return run


def test_a_study_by_questions(talk: Talk, folder: Path) -> None:
    ended = talk(
        *("gloss", "GU", "more"),
        *("speed", "10 to 60", "m/min", "0,5"),
        *("kind", "plain, glossy"),
        *("layers", "1..8 int", ""),
        "",
        *("humidity", "0-100 %"),
        *("price", "", "€"),
        "",
        "y",
    )
    assert ended.code == 0, ended.err
    described = read_toml(folder / "study.toml").settings
    assert described.space == Space(
        {
            "speed": Real(10, 60, unit="m/min", step=0.5),
            "kind": Categorical(("plain", "glossy")),
            "layers": Integer(1, 8),
        },
        {"humidity": Real(0, 100, unit="%"), "price": Real(unit="€")},
    )
    assert (described.outcome, described.unit, described.direction) == ("gloss", "GU", "maximize")
    for word in ("10 to 60 m/min in steps of 0.5", "1 to 8, whole numbers", "more is better"):
        assert word in ended.out
    for word in ("Real(", "dict", "None", "True"):
        assert word not in ended.out


def test_a_wrong_answer_is_asked_again(talk: Talk, folder: Path) -> None:
    ended = talk(
        "", "", "sideways", "less", "", "speed", "fast", "60-10", "10-60", "", "100", "5", "speed", "", "", "y"
    )
    assert ended.code == 0, ended.err
    for word in (
        "answer more or less",
        "at least one is needed",
        "neither a range nor",
        "60 is not below 10",
        "does not fit",
    ):
        assert word in ended.out
    assert "speed=10:60" not in ended.out  # the words of flags are not those of answers
    assert "there is a 'speed' already" in ended.out
    described = read_toml(folder / "study.toml").settings
    assert described.space == Space({"speed": Real(10, 60, step=5)})
    assert described.direction == "minimize"


def test_a_study_without_a_file_is_asked_for_its_name(talk: Talk, folder: Path) -> None:
    (folder / "old.toml").write_text("")
    ended = talk("", "a/b", "old", "line 3", "", "", "", "speed", "10-60", "", "", "", "", "y", file=())
    assert ended.code == 0, ended.err
    assert "old.toml exists already" in ended.out
    assert read_toml(folder / "line 3.toml").name == "line 3"
    assert talk(file=()).code == 130  # Ctrl-C at the first question


def test_a_file_is_needed_where_nobody_can_be_asked(edrbo: Run) -> None:
    assert "no file" in edrbo("new", "-d", "speed=1:9").err
    assert edrbo("new", "--json").json["error"] == "no file was given"


def test_a_summary_that_is_wrong_is_mended(talk: Talk, folder: Path) -> None:
    answers = ["", "", "", "speed", "10-60", "", "", "kind", "a,b", "", "", "n", "sped", "speed", "10-80", "", "", "y"]
    assert talk(*answers).code == 0
    assert read_toml(folder / "study.toml").settings.space == Space({"speed": (10, 80), "kind": ["a", "b"]})


def test_nothing_typed_is_lost(talk: Talk, edrbo: Run, folder: Path) -> None:
    ended = talk("gloss", "GU", "less", "speed", "10-60 m/min step 0.5", "kind", "a b, c", "dose", "1-2", "g")
    assert ended.code == 130
    assert not (folder / "study.toml").exists()
    line = ended.err.split("to go on from here: ")[1]
    import shlex

    assert edrbo(*shlex.split(line)[1:]).code == 0
    described = read_toml(folder / "study.toml").settings
    variables = {"speed": Real(10, 60, unit="m/min", step=0.5), "kind": ["a b", "c"], "dose": Real(1, 2, unit="g")}
    assert described.space == Space(variables)
    assert (described.outcome, described.direction) == ("gloss", "minimize")


@pytest.mark.parametrize("text", ["10:60", "10-60", "10..60", "10 to 60", "10…60", "10 – 60", "10,0-60,0", "1e1:6e1"])
def test_ranges_as_people_write_them(text: str) -> None:
    assert read_specification(text) == Real(10, 60)


@pytest.mark.parametrize(
    ("text", "variable"),
    [
        ("-5--1", Real(-5, -1)),
        ("1e-4:1:log", Real(1e-4, 1, log=True)),
        ("1:8:int", Integer(1, 8)),
        ("1:8:integer", Integer(1, 8)),
        ("1.0:8.0:int", Integer(1, 8)),
        ("1 to 8 Integer", Integer(1, 8)),
        ("1-8 whole pieces", Integer(1, 8, unit="pieces")),
        ("1:1000:int:logarithmic", Integer(1, 1000, log=True)),
        ("0:1 unit=log", Real(0, 1, unit="log")),
        ("10 to 60 m/min in steps of 0.5", Real(10, 60, unit="m/min", step=0.5)),
        ("0:1 digits=2", Real(0, 1, digits=2)),
        ("0:", Real(0, None)),
        ("a, b", Categorical(("a", "b"))),
        ("", Real()),
    ],
)
def test_variables_as_people_write_them(text: str, variable: Any) -> None:
    assert read_specification(text) == variable
    if variable != Real(0, 1, digits=2):
        assert read_specification(specification(variable)) == variable


def test_variables_that_cannot_be_read() -> None:
    problems = {"x=fast": "neither a range", "x=1:2.5:int": "2.5 is not", "x=:5:int": "both bounds", "x=9:1": "9"}
    for word, problem in problems.items():
        with pytest.raises(InvalidSpaceError, match=problem):
            read_variable_argument(word)


# -------------------------------------------------------------------- completion


def test_completion_offers_runs_names_and_levels(edrbo: Run, folder: Path) -> None:
    nothing: Any = SimpleNamespace(params={})
    assert complete_ids(nothing, "") == []  # no study here, and no word
    edrbo("new", "s.toml", "-d", "speed=1:9", "-d", "kind=plain,glossy", "-c", "humidity=0:1")
    study = Study.open(folder / "s.db")
    study.ask(2)
    study.tell(0, [0.5], 1.0)
    assert [word for word, _ in complete_ids(nothing, "")] == ["1", "0"]
    assert [word for word, _ in complete_pending(nothing, "")] == ["1"]
    assert [word for word, _ in complete_designs(nothing, "")] == ["speed=", "kind=plain", "kind=glossy"]
    assert [word for word, _ in complete_designs(nothing, "kind=p")] == ["kind=plain"]
    assert [word for word, _ in complete_contexts(nothing, "h")] == ["humidity="]
    there: Any = SimpleNamespace(params={"study": "s.db", "name": "missing"})
    assert complete_ids(there, "") == []


# -------------------------------------------------------------------- for scripts, and for narrow terminals


@pytest.mark.parametrize(
    "words", [["show"], ["tell", "0", "--value", "1"], ["tell", "zero", "--value", "1"], ["ask", "--nonsense"]]
)
def test_errors_are_json_under_json(edrbo: Run, words: list[str]) -> None:
    ended = edrbo(*words, "--json")
    assert ended.code == 2
    assert set(ended.json) == {"error", "hint", "code"}
    assert ended.err == ""


def test_eleven_variables_on_eighty_columns(edrbo: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    words = [word for k in range(8) for word in ("-d", f"temperature_{k}=100:900 °C")]
    words += [word for name in ("humidity", "pressure", "dust") for word in ("-c", f"{name}=0:1")]
    edrbo("new", "s.toml", *words)
    reported = [word for k in range(8) for word in ("-d", f"temperature_{k}=123.456")]
    reported += ["-c", "humidity=0.1", "-c", "pressure=0.2", "-c", "dust=0.3"]
    edrbo("tell", *reported, "-v", 1)
    edrbo("tell", *reported, "--failed", "--why", "it tore")
    edrbo("ask")
    monkeypatch.setenv("COLUMNS", "80")
    shown = edrbo("show").out
    assert max(len(row) for row in shown.splitlines() if not row.startswith("kept in")) <= 80  # a path may be long
    for word in ("temperature_7 [°C]", "123.456", "failed, no result, it tore"):
        assert word in shown
    assert "│ t" not in shown.split("being tried")[1]  # no column is squeezed: one record per block


def test_files_for_others_and_files_for_oneself(edrbo: Run, folder: Path) -> None:
    before = os.umask(0o027)
    try:
        edrbo("new", "s.toml", "-d", "x=0:1")
        edrbo("new", "t.toml", "-d", "x=0:1", "--shared")
        edrbo("tell", "-s", "s.toml", "-d", "x=0.5", "-v", 1)
        edrbo("export", "out.csv", "-s", "s.toml")
    finally:
        os.umask(before)
    modes = {
        name: stat.S_IMODE((folder / name).stat().st_mode) for name in ("s.toml", "s.db", "t.toml", "t.db", "out.csv")
    }
    assert modes == {"s.toml": 0o600, "s.db": 0o600, "t.toml": 0o660, "t.db": 0o660, "out.csv": 0o640}


def test_dry_run_shows_and_stores_nothing(edrbo: Run, folder: Path) -> None:
    edrbo("new", "s.toml", "-d", "speed=1:9", "-c", "humidity=0:1")
    (folder / "t.csv").write_text("Speed;Humidity;Value;Shift\n3,5;55%;1,25;night\n")
    ended = edrbo("import", "t.csv", "--dry-run")
    assert "would take in 1 run" in ended.out
    assert "kept as notes: Shift" in ended.out
    assert "3.5" in ended.out
    assert edrbo("show", "--json").json["runs"] == []
    assert "took in 1 run" in edrbo("import", "t.csv").out
    assert "took in nothing new; 1 row known already and passed over" in edrbo("import", "t.csv").out


def test_a_wide_study_is_answered_in_eighty_columns(edrbo: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One value a line, all of them alike; long words are broken between words; what nobody knows is said in words."""
    monkeypatch.setenv("COLUMNS", "80")
    names = [f"temperature_{k}" for k in range(9)]
    edrbo("new", "s.toml", *(word for name in names for word in ("-d", f"{name}=1:9")), "--method", "ucb")
    study = Study.open(folder / "s.db")
    study.tell(dict.fromkeys(names, 2.0), None, 1.0, note="a word " * 30)
    answered = edrbo("recommend").out
    assert "inf" not in answered
    assert all(f"\n  {name}  2" in answered for name in names)
    lines = edrbo("show").out.splitlines()
    assert max(len(line) for line in lines if not line.startswith("kept in")) <= 80  # a path stays whole
    assert sum("a word" in line for line in lines) > 2
    assert len({line.index("a word") for line in lines if "a word" in line}) == 1
