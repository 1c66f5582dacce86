"""What people type wrongly, and what they are told: in words of theirs, with what to type."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
PYTHON = ("Real(", "Maximize()", "{}", "None", "(10.0", "List should", "Input should", "Traceback")


@pytest.fixture
def line(edrbo: Run, folder: Path) -> Run:
    """A coating line with one run."""
    words = ("-d", "speed=10-60 m/min step 0.5", "-d", "primer=A, B or C", "-c", "humidity=0-100 %")
    assert edrbo("new", "line.toml", *words, "--outcome", "gloss", "--unit", "GU", "--initial", "50").code == 0
    assert edrbo("tell", "-v", "70", "-d", "speed=20", "-d", "primer=C", "-c", "humidity=55").code == 0
    return edrbo


@pytest.mark.parametrize(
    ("words", "said", "hint"),
    [
        (("amend", "-d", "speed"), "needs a range", "speed=10:80"),
        (("amend", "--outcome", "roughness<=2.2"), "no main result", "gloss=maximize"),
        (("amend", "--goal", "robust"), "more must be said", "robust:0.1"),
        (("amend", "--goal", "cvrr:0.1"), "no goal is called", "did you mean 'cvar'?"),
        (("amend", "-d", "Speed=10:90"), "'Speed' is new", "did you mean 'speed'?"),
        (("tell", "0", "72"), "reported already", "edrbo edit 0"),
        (("tell", "-v", "71", "-d", "speed=20", "-c", "66"), "not NAME=VALUE", "humidity=50"),
        (("new", "x.toml", "-d", "speed=60:10"), "(60) must be below", ""),
        (("--study", "line.toml", "ask"), "comes after the command", "edrbo ask --study"),
        (("cancel",), "not clear", "edrbo cancel 3-9"),
        (("cancel", "0-5"), "none of 0-5 is being tried", "nothing is"),
        (("cancel", "three"), "no number of a suggestion", "edrbo cancel 3"),
        (("undo", "--import"), "no table was taken in", "edrbo undo"),
        (("export", "runs.pdf"), "cannot write a table", ".csv"),
    ],
)
def test_a_mistake_is_answered_with_what_to_type(line: Run, words: tuple[str, ...], said: str, hint: str) -> None:
    ended = line(*words)
    assert ended.code != 0
    assert said in ended.err
    assert hint in ended.err
    assert not [word for word in PYTHON if word in ended.err]


def test_a_result_needs_no_flag(line: Run) -> None:
    line("ask")
    assert "edrbo context tell 1 humidity=…" in line("tell", "1", "71 GU").out
    assert "at humidity 48 %" in line("context", "tell", "1", "humidity=48 %").out


def test_suggestions_are_cancelled_together_or_not_at_all(line: Run) -> None:
    line("ask", "-n", "6")
    assert "4 suggestions, 1 to 3, 5" in line("cancel", "1-3", "5").out
    assert line("cancel", "4", "99").code != 0
    assert len(line("show", "--json").json["pending"]) == 2
    assert "4, 6" in line("cancel", "--all", "--why", "holiday").out
    assert line("show", "--json").json["pending"] == []


def test_a_table_is_taken_back_in_one_go(line: Run, folder: Path) -> None:
    rows = "".join(f"{20 + k},A,50,{70 + k}\n" for k in range(30))
    (folder / "week.csv").write_text(f"Trials of week 47\n\nspeed,primer,humidity,gloss\n{rows}")
    assert "took in 30 runs" in line("import", "week.csv").out
    assert "30 rows" in line("undo", "--import", "--note", "wrong line").out
    assert len(line("show", "--json").json["runs"]) == 1
    assert "took in 30 runs" in line("import", "week.csv").out  # it is not known any more


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("Tempo,primer,humidity,gloss\n20,A,50,70\n", "no column is called speed"),
        ("speed,primer,humidity,Glanz\n20,A,50,70\n", "no column is called gloss"),
        ("speed,primer,humidity,gloss\n20,A,50,\n", "there is no result"),
        ("when,speed,primer,humidity,gloss\nAverage,20,A,50,70\n", "looks like a total: delete the row"),
    ],
)
def test_a_table_says_what_is_wrong_with_it(line: Run, folder: Path, table: str, said: str) -> None:
    (folder / "t.csv").write_text(table)
    assert said in line("import", "t.csv").err


def test_a_range_is_narrowed_and_a_level_retired_while_runs_stay(line: Run, folder: Path) -> None:
    assert "runs may lie from 10 to 50" in line("amend", "-d", "speed=30:50").out
    assert "C no longer suggested" in line("amend", "-d", "primer=A,B").out
    assert "C no longer suggested" in line("show").out
    suggested = line("ask", "-n", "8", "--json").json
    assert all(30 <= one["design"]["speed"] <= 50 and one["design"]["primer"] != "C" for one in suggested)
    assert "10 to 60" in line("amend", "-d", "speed=10:60", "-d", "primer=A,B,C").out
    assert "constraints" not in (folder / "line.toml").read_text()


def test_what_a_limit_needs_is_said_before_it_is_worked_out(line: Run) -> None:
    ended = line("amend", "--outcome", "gloss=maximize", "--outcome", "roughness<=2.2 um")
    assert "45 conditions must be known" in ended.out
    assert "there are 1" in ended.out
    assert "45 conditions must be known" in line("show").out


def test_a_note_is_on_a_run_or_on_the_study(line: Run) -> None:
    assert "run 0: a bubble" in line("note", "0", "a", "bubble").out
    assert "the study: new nozzle" in line("note", "new", "nozzle").out
    assert "new nozzle" in line("show").out
    assert "0 results" not in line("show").out


def test_the_plain_table_is_for_people_and_comes_back(line: Run, folder: Path) -> None:
    line("ask")
    line("tell", "1", "--failed", "--why", "blocked", "-c", "humidity=44")
    assert line("export", "runs.csv").code == 0
    first, *rows = (folder / "runs.csv").read_text().splitlines()
    assert first.startswith("run,speed [m/min],primer,humidity [%],gloss [GU],status,")
    assert rows[0].startswith("0,20,C,55,70,result,")
    assert '"failed, no result",blocked' in rows[1]
    assert "2 rows known already" in line("import", "runs.csv").out
    assert line("export", "--exact").out.startswith("status,id,speed")


def test_help_names_no_type_of_python(line: Run) -> None:
    for command in ("tell", "new", "amend", "ask"):
        options = line(command, "-h").out.partition("Options")[2].replace("<bool>", "")  # the last is --help itself
        assert not [
            word for word in ("<str>", "<int>", "<float>", "<list", "<path>", "method_names") if word in options
        ]
