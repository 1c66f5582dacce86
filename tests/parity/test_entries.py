"""The same entry is the same event at every interface, or is refused with the same code.

An entry is what somebody measured, and how they write it. Python is given the values, the others the texts.
"""

from __future__ import annotations

import csv
import io
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edrbo import Categorical, Integer, Limit, Maximize, Real, Space, Study
from edrbo.errors import EdrboError
from edrbo.lab.cli.entries import tell
from edrbo.lab.tables.csv_import import import_file
from edrbo.records.events import Event, Reported

pytest.importorskip("fastapi", reason="needs edrbo[web]")
sys.path.append(str(Path(__file__).parents[1] / "web"))

from live import Client, study_server

SPACE = Space(
    {
        "speed": Real(10, 60, unit="m/min"),
        "share": Real(0, 1),
        "layers": Integer(1, 4),
        "kind": Categorical(("plain", "Glossy", "A or B")),
    },
    {"humidity": Real(0, 100, unit="%"), "load": None, "shift": Categorical(("day", "night"))},
)
ONE: dict[str, Any] = {"outcome": "gloss", "unit": "GU"}
SEVERAL: dict[str, Any] = {"outcomes": {"gloss": Maximize(unit="GU"), "roughness": Limit(upper=2.0, unit="um")}}
UNITS = {"speed": "m/min", "humidity": "%", "gloss": "GU", "roughness": "um"}
HEADINGS = {"speed": "Speed (m/min)", "kind": "KIND", "humidity": "Humidity [%]", "gloss": "Gloss", "by": "Operator"}


@dataclass(frozen=True)
class Spelled:
    """A value, and a text for it; what is no value is given to Python as it is written."""

    value: Any
    text: Any


@dataclass(frozen=True)
class Entry:
    design: Mapping[str, Spelled]
    context: Mapping[str, Spelled]
    results: Mapping[str, Spelled]
    noise_variance: Spelled | None = None
    cost: Spelled | None = None
    note: str | None = None


# -------------------------------------------------------------------- entries


def spelled(number: float, unit: str, *, percent: bool = False) -> st.SearchStrategy[Spelled]:
    """Ways to write a number with at most three decimals."""
    plain = repr(number)
    texts = [plain, plain.replace(".", ","), f" {plain} ", plain.replace("-", "−")]
    texts += [f"{plain} {unit}", f"{plain.replace('.', ',')}{unit}", f"{plain} {unit.upper()}"] if unit else []
    texts += [f"{float(f'{100 * number:.10g}')!r} %"] if percent else []
    return st.sampled_from(texts).map(lambda text: Spelled(number, text))


def numbers(low: float, high: float, name: str) -> st.SearchStrategy[Spelled]:
    steps = st.integers(round(low * 100), round(high * 100)).map(lambda step: step / 100)
    return steps.flatmap(lambda number: spelled(number, UNITS.get(name, ""), percent=name == "share"))


def levels(variable: Any) -> st.SearchStrategy[Spelled]:
    right = st.sampled_from(variable.choices)
    return right.flatmap(
        lambda level: st.sampled_from([level, level.upper(), f" {level}"]).map(lambda text: Spelled(level, text))
    )


DESIGN = {
    "speed": numbers(10, 60, "speed"),
    "share": numbers(0, 1, "share"),
    "layers": st.integers(1, 4).flatmap(lambda n: st.sampled_from([str(n), f"{n},0", n]).map(lambda t: Spelled(n, t))),
    "kind": levels(SPACE.design["kind"]),
}
CONTEXT = {
    "humidity": numbers(0, 130, "humidity"),
    "load": numbers(-1000, 1000, "load"),
    "shift": levels(SPACE.context["shift"]),
}
AMOUNTS = st.integers(0, 400).map(lambda n: Spelled(n / 4, repr(n / 4).replace(".", ",")))
NO_NUMBERS = ["half", "1,234", "nan", "1 2", "12 kg", "0x10", "--1", "1e999", "true", "12 % %"]
MISTAKES: dict[str, list[Spelled]] = {  # besides what is no number
    "speed": [Spelled(60.5, "60,5"), Spelled(-1.0, "−1"), Spelled("12 mm/s", "12 mm/s")],
    "share": [Spelled(1.01, "101 %")],
    "layers": [Spelled(2.5, "2,5"), Spelled(5, "5")],
    "kind": [Spelled("matt", "matt"), Spelled("B", "B")],
    "shift": [Spelled("noon", "noon")],
    "gloss": [Spelled("12 %", "12 %")],
    "noise_variance": [Spelled(-0.5, "-0,5"), Spelled("1 %", "1 %")],
    "cost": [Spelled(-1.0, "-1"), Spelled("3 €", "3 €")],
}


@st.composite
def entries(draw: st.DrawFn, several: bool) -> Entry:
    """What is right, or has one mistake: of two, interfaces may find either one first."""
    design = {name: draw(one) for name, one in DESIGN.items()}
    context = {name: draw(one) for name, one in CONTEXT.items() if draw(st.booleans())}
    names = ("gloss", "roughness") if several and draw(st.booleans()) else ("gloss",)
    results = {name: draw(numbers(-2000, 2000, name)) for name in names}
    noise_variance, cost = draw(st.none() | AMOUNTS), draw(st.none() | AMOUNTS)
    note = draw(st.none() | st.sampled_from(["a bubble", "a, b", 'the "new" roll', "50 % more"]))
    mistake = draw(st.sampled_from(["none", "none", "a setting is missing", "no result", "a field"]))
    if mistake == "a setting is missing":
        del design[draw(st.sampled_from(sorted(design)))]
    if mistake == "no result":
        results, noise_variance = {}, None
    if mistake == "a field":
        parts: list[tuple[dict[str, Spelled], str]] = [
            (part, name) for part in (design, context, results) for name in part
        ]
        part, name = draw(st.sampled_from([*parts, ({}, "noise_variance"), ({}, "cost")]))
        words = [] if name in ("kind", "shift") else [Spelled(text, text) for text in NO_NUMBERS]
        part[name] = draw(st.sampled_from([*words, *MISTAKES.get(name, [])]))
        noise_variance, cost = part.get("noise_variance", noise_variance), part.get("cost", cost)
    return Entry(design, context, results, noise_variance, cost, note)


# -------------------------------------------------------------------- interfaces


def in_python(study: Study, entry: Entry, several: bool) -> None:
    def values(parts: Mapping[str, Spelled]) -> dict[str, Any]:
        return {name: part.value for name, part in parts.items()}

    results, noise_variance = (
        values(entry.results),
        None if entry.noise_variance is None else entry.noise_variance.value,
    )
    study.tell(
        values(entry.design),
        values(entry.context) or None,
        (results or None) if several else results.get("gloss"),
        noise_variance={"gloss": noise_variance} if several and noise_variance is not None else noise_variance,
        cost=None if entry.cost is None else entry.cost.value,
        note=entry.note,
    )


def on_the_command_line(path: Path, entry: Entry, several: bool) -> None:
    def words(parts: Mapping[str, Spelled]) -> list[str] | None:
        return [f"{name}={part.text}" for name, part in parts.items()] or None

    noise_variance = (
        None
        if entry.noise_variance is None
        else [f"gloss={entry.noise_variance.text}" if several else str(entry.noise_variance.text)]
    )
    tell(
        study=str(path),
        design=words(entry.design),
        context=words(entry.context),
        value=words(entry.results) if several else [str(part.text) for part in entry.results.values()] or None,
        noise_variance=noise_variance,
        cost=None if entry.cost is None else entry.cost.text,
        note=entry.note,
        by="Ada",
    )


def in_the_form(client: Client, name: str, entry: Entry, several: bool) -> str | None:
    """The code of an error."""

    def texts(parts: Mapping[str, Spelled]) -> dict[str, Any]:
        return {name: part.text for name, part in parts.items()}

    results = texts(entry.results)
    body: dict[str, Any] = {"design": texts(entry.design), "context": texts(entry.context), "by": "Ada"}
    body |= {"outcomes": results} if several else {"value": results.get("gloss")}
    body |= (
        {}
        if entry.noise_variance is None
        else {"noise_variance": {"gloss": entry.noise_variance.text} if several else entry.noise_variance.text}
    )
    body |= {} if entry.cost is None else {"cost": entry.cost.text}
    answer = client.write("tell", name, **body, note=entry.note)
    return None if answer.status == 200 else str(answer.json["code"] or answer.json)


def as_a_table(entry: Entry, several: bool) -> str:
    cells = {name: part.text for parts in (entry.design, entry.context, entry.results) for name, part in parts.items()}
    cells |= {} if entry.noise_variance is None else {"noise_variance": entry.noise_variance.text}
    cells |= {} if entry.cost is None else {"run_cost": entry.cost.text}
    cells |= {"by": "Ada", "status": "reported"} | ({} if entry.note is None else {"note": entry.note})
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow([HEADINGS.get(name, name) for name in cells])
    writer.writerow(list(cells.values()))
    return file.getvalue()


def on_the_import_page(client: Client, name: str, table: str) -> str | None:
    answer = client.write("import", name, text=table, confirm=True)
    return None if answer.status == 200 else str(answer.json["code"] or answer.json)


# -------------------------------------------------------------------- the same


@dataclass
class Laboratory:
    """A study for each interface, all with the same runs."""

    folder: Path
    client: Client
    several: bool
    studies: dict[str, Study] = field(default_factory=dict)

    def enter(self, entry: Entry) -> dict[str, Any]:
        """What came of an entry at each interface: the event in plain values, or the code of an error."""
        table, found = as_a_table(entry, self.several), {}
        path = self.folder / "table.csv"
        path.write_text(table, encoding="utf-8", newline="")
        ways: dict[str, Callable[[], str | None]] = {
            "python": lambda: in_python(self.studies["python"], entry, self.several),
            "cli": lambda: on_the_command_line(self.folder / "cli.db", entry, self.several),
            "form": lambda: in_the_form(self.client, "form", entry, self.several),
            "page": lambda: on_the_import_page(self.client, "page", table),
            "file": lambda: import_file(self.studies["file"], path) and None,
        }
        for name, way in ways.items():
            study = self.studies[name]
            before = len(study.state.history)
            try:
                with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                    code = way()
            except EdrboError as problem:
                code = problem.code
            after = study.state
            found[name] = code if code is not None else plain(after.history[-1])
            assert (len(after.history) > before) == (code is None), name
            if code is None:
                study.undo()
        return found


NAMES = ("id", "ref", "key", "at")


def plain(event: Event) -> dict[str, Any]:
    """What an event says, without when it was said and by which name it is called."""
    assert isinstance(event, Reported)
    parts = {part.name: getattr(event, part.name) for part in fields(event) if part.name not in NAMES}
    return {name: part.tolist() if isinstance(part, np.ndarray) else part for name, part in parts.items()}


@pytest.fixture(scope="module", params=[False, True], ids=["one outcome", "several outcomes"])
def laboratory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laboratory]:
    folder, several = tmp_path_factory.mktemp("parity"), bool(request.param)
    with ExitStack() as stack, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        studies = {
            name: Study.open(folder / f"{name}.db", SPACE, name=name, by="Ada", **(SEVERAL if several else ONE))
            for name in ("python", "cli", "form", "page", "file")
        }
        yield Laboratory(folder, stack.enter_context(study_server(folder)), several, studies)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
@pytest.mark.filterwarnings("ignore")
def test_the_same_entry_is_the_same_event(laboratory: Laboratory, data: st.DataObject) -> None:
    entry = data.draw(entries(laboratory.several))
    found = laboratory.enter(entry)
    expected = repr(found["python"])  # NaN is NaN
    assert {name: repr(one) for name, one in found.items()} == dict.fromkeys(found, expected), entry
