"""The value that runs had of a variable before it came: its default, at every interface."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from edrbo import Categorical, Integer, Optimizer, Real, Space, Study
from edrbo.errors import EdrboError, InvalidSpaceError
from edrbo.lab.config import read_toml, write_toml
from edrbo.lab.entry import read_specification
from edrbo.lab.tables.csv_import import import_file

OLD = Space({"speed": (0, 1)}, {"humidity": (0, 100)})
NEW = Space(
    {
        "speed": (0, 1),
        "dose": Real(1, 9, default=1.5),
        "layers": Integer(1, 8, default=2),
        "kind": Categorical(["plain", "glossy"], default="glossy"),
    },
    {"humidity": (0, 100), "shift": Categorical(["day", "night"], default="night"), "load": Real(default=3.0)},
)
WAS = {"dose": 1.5, "layers": 2, "kind": "glossy"}


def test_runs_have_the_defaults_of_what_comes_later() -> None:
    optimizer = Optimizer(OLD)
    optimizer.tell({"speed": 0.5}, {"humidity": 40}, 1.0)
    optimizer.amend({"space": NEW.to_dict()})
    (run,) = optimizer.runs
    assert run.context is not None
    assert NEW.decode_designs(run.x) == [{"speed": 0.5, **WAS}]
    assert NEW.name_contexts(run.context[None]) == [{"humidity": 40.0, "shift": "night", "load": 3.0}]
    assert optimizer.observations.x.shape == (1, NEW.d_x)
    back = Optimizer.from_json(optimizer.to_json())
    assert back.space.design["dose"].default == 1.5


def test_what_is_said_with_the_amendment_goes_before() -> None:
    optimizer = Optimizer(OLD)
    optimizer.tell({"speed": 0.5}, {"humidity": 40}, 1.0)
    optimizer.amend({"space": NEW.to_dict()}, {"dose": 4.0, "load": 7.0})
    assert NEW.decode_designs(optimizer.runs[0].x)[0]["dose"] == 4.0
    assert optimizer.observations.c[0].tolist() == [40.0, 1.0, 7.0]


def test_without_a_default_it_must_be_said() -> None:
    optimizer = Optimizer(OLD)
    optimizer.tell({"speed": 0.5}, {"humidity": 40}, 1.0)
    more_design, more_context = {**OLD.design, "dose": (1, 9)}, {**OLD.context, "load": None}
    for more in (Space(more_design, OLD.context), Space(OLD.design, more_context)):
        with pytest.raises(EdrboError):
            optimizer.amend({"space": more.to_dict()})


@pytest.mark.parametrize(
    "make",
    [
        lambda: Real(1, 9, default=10),
        lambda: Real(1, 9, default="x"),
        lambda: Real(default=float("inf")),
        lambda: Integer(1, 8, default=2.5),
        lambda: Categorical(["a", "b"], default="c"),
    ],
)
def test_defaults_that_cannot_be(make: Any) -> None:
    with pytest.raises(InvalidSpaceError, match="default"):
        make()


def test_defaults_in_toml_tables_and_on_the_command_line(tmp_path: Path) -> None:
    study = Study.open(tmp_path / "one.db", NEW)
    write_toml(tmp_path / "one.toml", "one.db", "one", study.settings)
    space = read_toml(tmp_path / "one.toml").settings.space
    found = {name: variable.default for name, variable in {**space.design, **space.context}.items()}
    assert found == {"speed": None, **WAS, "humidity": None, "shift": "night", "load": 3.0}
    (tmp_path / "old.csv").write_text("speed,humidity,value\n0.5,40,1.5\n")
    import_file(study, tmp_path / "old.csv")
    assert NEW.decode_designs(study.runs[0].x) == [{"speed": 0.5, **WAS}]
    assert read_specification("1:9 m/min default 1,5").default == 1.5
    assert read_specification("plain,glossy default=glossy").default == "glossy"
    assert read_specification("1:8:int default 2") == Integer(1, 8)
