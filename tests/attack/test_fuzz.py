"""The attack: whatever is spoiled is refused with an error of ours and leaves nothing behind, or is stored and read
again the same. The counts are printed (pytest -s, or -rP)."""

from __future__ import annotations

import io
import json
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mutations import HOSTILE, mutate, spoil_bytes
from typer.testing import CliRunner

from edrbo.errors import EdrboError, InvalidValueError, StudyError
from edrbo.lab import Study
from edrbo.lab.cli import make_app
from edrbo.lab.config import read_toml
from edrbo.lab.tables.csv_export import export_csv
from edrbo.lab.tables.csv_import import import_file
from edrbo.optimizer.json_record import signed
from edrbo.optimizer.optimizer import Optimizer
from edrbo.records import events as e
from edrbo.records.outcomes import Limit, Maximize, Minimize
from edrbo.records.settings import Settings
from edrbo.records.state import State
from edrbo.space import Space
from factories import same_state

SPACE = Space(design={"speed": (1.0, 9.0), "kind": ["a", "b"]}, context={"humidity": (0.0, 1.0)})
WIDER = Space(design={"speed": (1.0, 12.0), "kind": ["a", "b"]}, context={"humidity": (0.0, 1.0)})


def live(one: Any) -> None:
    """Every kind of event."""
    one.observe_context([[0.1], [0.9]], weights=[1.0, 2.0])
    for value in (1.0, 3.0, 2.0):
        one.tell(one.ask(), [value / 4], value, noise_variance=0.1, cost=value)
    one.tell({"speed": 2.0, "kind": "b"}, None, 2.5, note="by hand")
    one.tell_context(3, [0.5])
    one.tell(one.ask(), failed=True, why="it broke")
    one.cancel(one.ask(), "no time")
    one.correct(1, value=3.5, cost=4.0, why="a typing error")
    one.drop(2, "a wrong bottle")
    one.restore(2)
    one.note(0, "fine")
    one.tell({"speed": 5.0, "kind": "a"}, [0.25], 1.5)
    one.undo()
    one.amend({"space": WIDER.to_dict(), "seed": 4})
    one.ask()


def tally(name: str, counts: Counter[str]) -> None:
    print(f"{name}: " + ", ".join(f"{count} {what}" for what, count in sorted(counts.items())))


@pytest.fixture(scope="module")
def optimizer() -> Optimizer:
    optimizer = Optimizer(SPACE, "ucb", initial=3)
    live(optimizer)
    optimizer.recommend()
    return optimizer


def read_again(state: State) -> State:
    first = state.amendments[0].before if state.amendments else state.settings
    texts = [json.dumps(event.to_dict(), allow_nan=False) for event in state.history]
    return State.start(Settings.from_dict(first.to_dict())).apply(*(e.from_dict(json.loads(text)) for text in texts))


def test_events(optimizer: Optimizer) -> None:
    """Spoiled histories."""
    rng, counts = np.random.default_rng(0), Counter[str]()
    records = [event.to_dict() for event in optimizer.state.history]
    start = State.start(Settings(SPACE, "ucb", initial=3))
    for _ in range(1000):
        try:
            state = start.apply(*map(e.from_dict, mutate(records, rng)))
        except EdrboError:
            counts["refused"] += 1
            continue
        assert same_state(read_again(state), state)
        counts["accepted and the same when read again"] += 1
    tally("events", counts)
    assert min(counts.values()) > 50


def test_events_of_several_outcomes() -> None:
    """Spoiled histories, with outcomes that are missing, of other names and of other types."""
    rng, counts = np.random.default_rng(6), Counter[str]()
    outcomes = {"gloss": Maximize(), "cost": Minimize(weight=0.5), "haze": Limit(upper=1.0)}
    optimizer = Optimizer(SPACE, "erbo", initial=100, outcomes=outcomes)
    for value in ({"gloss": 1.0, "haze": 0.1}, {"haze": 0.2}, {"gloss": 2.0, "cost": 1.0, "haze": 0.3}):
        optimizer.tell(optimizer.ask(), [0.5], value, noise_variance=dict.fromkeys(value, 0.1))
    rows = {"gloss": [1.0, None], "haze": [0.2, 0.3]}
    optimizer.tell(optimizer.ask(), contexts=[[0.4], [0.6]], values=rows, noise_variance={"haze": [0.1, None]})
    optimizer.correct(1, value={"cost": 2.0})
    optimizer.correct(3, row=1, value={"cost": 2.0}, noise_variance={"cost": 0.1})
    records = [event.to_dict() for event in optimizer.state.history]
    start = State.start(optimizer.settings)
    for _ in range(600):
        try:
            state = start.apply(*map(e.from_dict, mutate(records, rng)))
        except EdrboError:
            counts["refused"] += 1
            continue
        assert same_state(read_again(state), state)
        for name in outcomes:
            state.of_outcome(name).observations  # noqa: B018 - every outcome can be learned from
        counts["accepted and the same when read again"] += 1
    tally("events of several outcomes", counts)
    assert min(counts.values()) > 50


def test_stored_optimizers(optimizer: Optimizer) -> None:
    """Trees spoiled by somebody who also mends the checksum."""
    rng, counts = np.random.default_rng(1), Counter[str]()
    record = json.loads(optimizer.to_json())
    for _ in range(1200):
        text = json.dumps(signed(mutate(record, rng)) if rng.random() < 0.9 else mutate(record, rng))
        try:
            again = Optimizer.from_json(text)
        except InvalidValueError:
            counts["refused"] += 1
            continue
        assert same_state(Optimizer.from_json(again.to_json()).state, again.state)
        counts["accepted and the same when read again"] += 1
        if counts["accepted and the same when read again"] % 25 == 0:  # and it can be used
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                again.ask()
            counts["of these asked as well"] += 1
    tally("JSON, spoiled and signed", counts)
    assert min(counts.values()) > 5


def test_stored_texts(optimizer: Optimizer) -> None:
    """Spoiled bytes: the checksum sees them all."""
    rng, counts = np.random.default_rng(2), Counter[str]()
    whole = optimizer.to_json().encode()
    for _ in range(1500):
        spoiled = spoil_bytes(whole, rng)
        try:
            again = Optimizer.from_json(spoiled.decode(errors="surrogateescape"))
        except InvalidValueError:
            counts["refused"] += 1
            continue
        assert same_state(again.state, optimizer.state)
        counts["the same"] += 1
    tally("JSON, spoiled bytes", counts)
    assert counts["refused"] > 1000


def test_tables(tmp_path: Path) -> None:
    """Spoiled CSV: all rows or none."""
    rng, counts = np.random.default_rng(4), Counter[str]()
    source = Optimizer(SPACE, "ucb", initial=100)
    live(source)
    out = io.StringIO()
    export_csv(source.state, out)
    cells = [line.split(",") for line in out.getvalue().splitlines()]
    table, where = tmp_path / "table.csv", tmp_path / "study.db"
    study = Study.open(where, WIDER, method="ucb", initial=100)
    words = [
        "",
        "nan",
        "inf",
        "-1",
        "1e9",
        "1e400",
        "text",
        '"',
        "\x00",
        "reported",
        "[0.5]",
        "9" * 5000,
        "-inf",
        "true",
    ]
    for _ in range(400):
        spoiled = [list(row) for row in cells]
        row = spoiled[rng.integers(len(spoiled))]
        row[rng.integers(len(row))] = words[rng.integers(len(words))]
        table.write_text("\n".join(",".join(row) for row in spoiled), encoding="utf-8")
        before = len(study.state.history)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                import_file(study, table)
            except EdrboError:
                assert len(Study.open(where).state.history) == before
                counts["refused"] += 1
                continue
        counts["taken"] += 1
        if counts["taken"] % 20 == 1:
            again = Study.open(where)
            assert same_state(again.state, study.state)
            study.close()
            where.unlink()
            study = Study.open(where, WIDER, method="ucb", initial=100)
    tally("tables", counts)
    assert min(counts.values()) > 20


TOML = """
format = 1
storage = "coating.db"
direction = "maximize"
method = "ucb"
seed = 3
context_half_life = 20.0
initial = 5
[design]
speed = [1.0, 9.0]
rate = { low = 1e-4, high = 1.0, log = true }
layers = { low = 1, high = 8, integer = true }
kind = { choices = ["a", "b"] }
[context]
humidity = [0.0, 1.0]
price = {}
"""


def test_descriptions(tmp_path: Path) -> None:
    """Spoiled TOML: words of wrong types, and spoiled bytes."""
    rng, counts = np.random.default_rng(5), Counter[str]()
    path = tmp_path / "coating.toml"
    lines = TOML.strip().splitlines()
    words = [
        '"text"',
        "-1",
        "true",
        "[]",
        "{}",
        "nan",
        "inf",
        "1979-05-27",
        "[[1]]",
        '{ low = "a" }',
        "[1, 2, 3]",
        "1e400",
    ]
    for index in range(900):
        if index % 3:
            chosen = int(rng.integers(len(lines)))
            name = lines[chosen].partition("=")[0]
            text = "\n".join(
                [*lines[:chosen], f"{name} = {words[rng.integers(len(words))]}", *lines[chosen + 1 :]]
            ).encode()
        else:
            text = spoil_bytes(TOML.encode(), rng)
        path.write_bytes(text)
        try:
            found = read_toml(path)
        except StudyError:
            counts["refused"] += 1
            continue
        assert Settings.from_dict(json.loads(json.dumps(found.settings.to_dict()))) == found.settings
        counts["read"] += 1
    tally("descriptions", counts)
    assert min(counts.values()) > 50


def test_nothing_reaches_the_terminal_as_a_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names, levels, notes and paths that hold escape codes, through every command that prints them."""
    monkeypatch.chdir(tmp_path)  # where the backup stays
    space = Space(design={"\x1b[31mred": ["\x07a", "\x9bb"], "s": (0.0, 1.0)}, context={"\x1b]0;title\x07": None})
    where = tmp_path / "\x1b[2J.db"
    study = Study.open(where, space, name="\x1b[5mname", method="ucb", initial=2)
    for value in (1.0, 2.0):
        study.tell(study.ask(), [value], value, note="\x1b[31m")
    study.tell(study.ask(), failed=True, why="\x1b[31mwhy")
    run, counts = CliRunner(), Counter[str]()
    name = ["--study", str(where)]
    commands = [["ask"], ["ask", "--json"], ["show"], ["show", "--json"], ["recommend"], ["recommend", "--json"]]
    commands += [
        ["check"],
        ["backup", "\x1b[31m.db"],
        ["tell", "99", "--value", "1"],
        ["tell", "0", "--value", "\x1b[31m"],
    ]
    commands += [["tell", "--design", "\x1b[31m=1", "--value", "1"], ["import", "\x1b[31m.csv"]]
    for command in commands:
        found = run.invoke(make_app(command), [*command, *name])
        problem = "" if found.exception is None or isinstance(found.exception, SystemExit) else str(found.exception)
        shown = found.output if isinstance(found.exception, SystemExit | None) else ""
        assert all(letter.isprintable() or letter == "\n" for letter in shown), (command, shown)
        counts["error" if problem or found.exit_code else "fine"] += 1
    tally("terminal", counts)


def test_arguments() -> None:
    """Nonsense in the place of every argument: an error of ours, or taken and stored."""
    counts = Counter[str]()
    optimizer = Optimizer(SPACE, "ucb", initial=100)
    optimizer.tell(optimizer.ask(), [0.5], 1.0)
    own = {"speed": 2.0, "kind": "a"}
    outcome_model = Optimizer(SPACE, "ucb", initial=100)  # learns once, since nothing is reported below
    outcome_model.tell(outcome_model.ask(), [0.5], 1.0)
    several = Optimizer(SPACE, "erbo", initial=1000, outcomes={"gloss": Maximize(), "haze": Limit(upper=1.0)})
    calls = {
        "id": lambda word: optimizer.tell(word, [0.5], 1.0),
        "value": lambda word: optimizer.tell(optimizer.ask(), [0.5], word),
        "context": lambda word: optimizer.tell(optimizer.ask(), word, 1.0),
        "noise_variance": lambda word: optimizer.tell(own, [0.5], 1.0, noise_variance=word),
        "cost": lambda word: optimizer.tell(own, [0.5], 1.0, cost=word),
        "cost of designs": lambda word: Optimizer(SPACE, cost=word),
        "design": lambda word: optimizer.tell({"speed": word, "kind": "a"}, [0.5], 1.0),
        "level": lambda word: optimizer.tell({"speed": 2.0, "kind": word}, [0.5], 1.0),
        "weights": lambda word: optimizer.observe_context([[0.5]], weights=word),
        "samples": lambda word: optimizer.observe_context(word),
        "late": lambda word: optimizer.tell_context(word, [0.5]),
        "note": lambda word: optimizer.note(0, word),
        "why": lambda word: optimizer.drop(0, word),
        "ref": lambda word: optimizer.undo(word),
        "amend": lambda word: optimizer.amend({"seed": word}),
        "seed": lambda word: Optimizer(SPACE, seed=word),
        "context_half_life": lambda word: Optimizer(SPACE, context_half_life=word),
        "initial": lambda word: Optimizer(SPACE, initial=word),
        "method": lambda word: Optimizer(SPACE, word),
        "bounds": lambda word: Space(design={"x": word}),
        "bound": lambda word: Space(design={"x": (0, word)}),
        "count": lambda word: outcome_model.ask(word),
        "forecast": lambda word: outcome_model.ask(forecast=word),
        "radius": lambda word: outcome_model.recommend(radius=word),
        "predict": lambda word: outcome_model.predict(word),
        "outcomes": lambda word: Optimizer(SPACE, outcomes=word),
        "aim": lambda word: Optimizer(SPACE, outcomes={"gloss": Maximize(), "haze": word}),
        "limit": lambda word: Limit(upper=word),
        "weight": lambda word: Minimize(weight=word),
        "outcome": lambda word: several.tell(several.ask(), [0.5], {"gloss": word, "haze": 1.0}),
        "values": lambda word: several.tell(several.ask(), [0.5], word),
    }
    for name, call in calls.items():
        for word in (
            *HOSTILE,
            np.float64(0.5),
            np.int64(1),
            np.array([0.5]),
            np.bool_(True),
            object(),
            b"0.5",
            {1},
            1j,
        ):
            if name == "count" and isinstance(word, int) and word > 5:
                continue  # that many suggestions would really be made
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    call(word)
                except EdrboError:
                    counts["refused"] += 1
                    continue
                except Exception as problem:
                    raise AssertionError(f"{name} = {word!r}: {type(problem).__name__}") from problem
            counts["taken"] += 1
    for one in (optimizer, outcome_model, several):
        assert same_state(Optimizer.from_json(one.to_json()).state, one.state)
    tally("arguments", counts)
