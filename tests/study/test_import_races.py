"""A table is stored for the study as it is at that moment, whatever others did since it was read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from edrbo.errors import EdrboError
from edrbo.lab import Study
from edrbo.lab.tables.csv_import import Import, import_file, plan_table, store_plan
from edrbo.lab.tables.sheet import read_sheet
from edrbo.records.state import State
from edrbo.space import Space


@pytest.fixture(params=["file", "PostgreSQL"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(request.getfixturevalue("postgresql") if request.param == "PostgreSQL" else tmp_path / "study.db")


def overtaken(study: Study, table: Path, act: Callable[[], object], times: int) -> Import:
    """Import ``table``; after each of the first ``times`` readings somebody else does something."""
    left = [act] * times
    sheet = read_sheet(table)

    def read(state: State) -> Import:
        plan = plan_table(state, sheet)
        if left:
            left.pop()()
        return plan

    return store_plan(study, read(study.state), read)


@pytest.mark.parametrize("times", [1, 2])
def test_somebody_asks_meanwhile(where: str, tmp_path: Path, line: Space, times: int) -> None:
    """The suggestion keeps its number, and can be reported; the rows get others."""
    name = f"asks {times}"
    one, two = Study.open(where, line, name=name, initial=50), Study.open(where, name=name)
    table = tmp_path / "table.csv"
    table.write_text("speed,humidity,value\n2,0.25,1\n3,0.5,2\n")
    handed_out = []
    overtaken(one, table, lambda: handed_out.append(two.ask()), times)
    assert len(one) == 2
    assert [suggestion.id for suggestion in one.pending] == list(range(times))
    for suggestion in handed_out:
        two.tell(suggestion, [0.75], 3.0)
    assert sorted(one.observations.y.tolist()) == [1.0, 2.0, *[3.0] * times]


def test_somebody_tells_a_row_of_it_meanwhile(where: str, tmp_path: Path, line: Space) -> None:
    """A row of a pending suggestion that is reported meanwhile is known then, and everything is there once."""
    one, two = Study.open(where, line, name="tells", initial=50), Study.open(where, name="tells")
    suggestion = one.ask()
    table = tmp_path / "table.csv"
    table.write_text(f"id,speed,humidity,value\n{suggestion.id},{suggestion['speed']!r},0.25,1.5\n7,3,0.5,2\n")
    plan = overtaken(one, table, lambda: two.tell(suggestion, [0.25], 1.5), 1)
    assert plan.known == 1
    assert sorted(one.observations.y.tolist()) == [1.5, 2.0]
    assert not one.pending
    assert import_file(two, table).known == 2


def test_of_a_table_that_cannot_be_nothing_is_stored(where: str, tmp_path: Path, line: Space) -> None:
    study = Study.open(where, line, name="nothing")
    table = tmp_path / "table.csv"
    table.write_text("speed,humidity,value\n2,0.25,1\n3,0.5,2\n99,0.5,2\n")
    with pytest.raises(EdrboError):
        import_file(study, table)
    assert len(study.state.history) == 0
