"""What a study asks its store, and that it never misses what others have written."""

from __future__ import annotations

from pathlib import Path

import pytest

from edrbo.errors import StudyError, UnavailableError
from edrbo.lab import Study
from edrbo.lab.store import database
from edrbo.lab.store.database import Database
from edrbo.space import Space
from factories import same_state


@pytest.fixture(params=["file", "PostgreSQL"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(request.getfixturevalue("postgresql") if request.param == "PostgreSQL" else tmp_path / "study.db")


def test_only_what_is_new_is_read(where: str, line: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "only what is new"
    study, other = Study.open(where, line, name=name), Study.open(where, name=name)
    rows: list[int] = []
    kind = type(study._store.database)
    read = kind._read

    def counted(self: Database, statement: str, values: tuple[object, ...]) -> list[tuple[object, ...]]:
        found = read(self, statement, values)
        rows.append(len(found))
        return found

    monkeypatch.setattr(kind, "_read", counted)
    for k in range(30):
        other.tell({"speed": 1.0 + k / 10}, [0.5], float(k))
    assert len(study) == 30
    rows.clear()
    assert len(study) == 30
    assert rows == [1]  # how many events there are
    other.tell({"speed": 2.0}, [0.75], 31.0)
    other.tell({"speed": 2.0}, [0.75], 32.0)
    rows.clear()
    assert len(study) == 32
    assert rows == [1, 2]


def test_two_that_write_in_turn_read_the_same_as_a_third(where: str, line: Space) -> None:
    one, two = Study.open(where, line, name="in turn", initial=20), Study.open(where, name="in turn")
    for k, (first, second) in enumerate([(one, two), (two, one), (one, one), (two, two), (one, two)]):
        suggestion = first.ask()
        second.tell({"speed": 2.0 + k}, [0.1 * k], float(k))
        first.tell({"speed": 3.0 + k}, None, 0.5 * k)
        second.tell(suggestion, [0.3], 7.0 + k)
        first.tell_context(5 * k + 2, [0.9])
        second.tell({"speed": 5.0}, [0.2], failed=True)
        second.undo()
        first.tell({"speed": 5.0}, [0.2], 1.0)
        first.drop(5 * k + 1)
        assert same_state(one.state, two.state)
    assert same_state(one.state, Study.open(where, name="in turn").state)


def test_a_foreign_transaction_that_holds_rows_is_named(
    line: Space, postgresql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg2

    monkeypatch.setattr(database, "LOCK_PATIENCE", 1)
    study = Study.open(postgresql, line, name="held")
    foreign = psycopg2.connect(postgresql)
    try:
        with foreign.cursor() as cursor:
            cursor.execute("SELECT * FROM edrbo_studies WHERE name = 'held' FOR UPDATE")
        for call in (study.ask, lambda: study.tell({"speed": 2.0}, [0.5], 1.0)):
            with pytest.raises(UnavailableError):
                call()
        assert len(study) == 0
    finally:
        foreign.close()
    study.tell({"speed": 2.0}, [0.5], 1.0)


def test_a_user_who_may_only_read(line: Space, postgresql: str) -> None:
    import psycopg2

    Study.open(postgresql, line, name="read only").tell({"speed": 2.0}, [0.5], 1.0)
    connection = psycopg2.connect(postgresql)
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute("DROP ROLE IF EXISTS guest")
        cursor.execute("CREATE ROLE guest LOGIN")
        cursor.execute("GRANT SELECT ON edrbo_studies, edrbo_events, edrbo_fits, edrbo_claims TO guest")
    connection.close()
    reader = Study.open(postgresql.replace("postgres:@", "guest:@"), name="read only")
    assert len(reader) == 1
    with pytest.raises(UnavailableError):
        reader.tell({"speed": 2.0}, [0.5], 1.0)


def test_a_newer_format_is_refused(where: str, line: Space) -> None:
    study = Study.open(where, line, name="newer")
    with study._store.database.transaction() as run:
        run("UPDATE edrbo_studies SET format = 2 WHERE name = 'newer'")
    with pytest.raises(StudyError, match="2") as caught:
        Study.open(where, name="newer")
    assert caught.value.hint == "upgrade edrbo to open it"
