"""What a study asks a database, and that it never misses what others have written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from edrbo.records.state import same_state
from edrbo.space import Space
from edrbo.study import Study
from edrbo.study.storage import next_written


@pytest.fixture
def asked() -> Iterator[list[str]]:
    """The statements of this process."""
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    found: list[str] = []

    def listen(*details: Any) -> None:
        found.append(details[2])

    event.listen(Engine, "before_cursor_execute", listen)
    yield found
    event.remove(Engine, "before_cursor_execute", listen)


def test_it_is_read_only_when_somebody_else_has_written(line: Space, postgresql: str, asked: list[str]) -> None:
    study, other = Study.open(postgresql, line, name="looked at"), Study.open(postgresql, name="looked at")

    def questions(told: int) -> int:
        asked.clear()
        assert len(study) == told
        return len(asked)

    def reads() -> int:
        """How often trials are read while one is told."""
        asked.clear()
        study.tell({"speed": 3.0}, [0.1 * (len(study) % 9)], 2.0)
        return sum("FROM trial_system_attributes" in words for words in asked)

    for k in range(3):
        other.tell({"speed": 2.0 + k}, [0.5], 1.0)
        assert questions(k + 1) > 1
    # the server's own housekeeping counts as writing, so not every time
    assert min(questions(3) for _ in range(5)) == 1
    assert min(reads() for _ in range(5)) == 0
    other.tell({"speed": 4.0}, [0.5], 1.0)
    assert reads() > 0
    assert len(study) == len(other) == 10


def test_two_that_write_in_turn_read_the_same_as_a_third(line: Space, postgresql: str) -> None:
    one, two = Study.open(postgresql, line, name="in turn", initial=20), Study.open(postgresql, name="in turn")
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
    assert same_state(one.state, Study.open(postgresql, name="in turn").state)


@pytest.mark.parametrize(
    ("before", "after", "one"),
    [
        ("7:7:", "8:8:", True),
        ("7:7:", "7:7:", False),
        ("7:7:", "9:9:", False),
        ("7:7:", "8:9:8", False),
        ("6:7:6", "8:8:", False),
        (None, "8:8:", False),
        (7, 8, False),
    ],
)
def test_one_transaction_and_no_other(before: object, after: object, one: bool) -> None:
    assert next_written(before, after) is one
