"""The state is a function of the set of records."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edrbo.errors import StudyError
from edrbo.space import Space
from edrbo.study import Study
from edrbo.study.fits import same_state
from edrbo.study.records import CONTEXTS, LATE, read

LINE = Space(design={"speed": (1.0, 9.0)}, context={"humidity": (0.0, 1.0)})

batches = st.builds(
    lambda clock, rows: {
        "clock": clock,
        "batch": {"rows": [[row] for row in rows], "weights": [1.0] * len(rows), "count": len(rows), "summary": False},
    },
    st.integers(1, 5),
    st.lists(st.floats(0, 1), min_size=1, max_size=3),
)
late = st.builds(
    lambda clock, value: {"clock": clock, "number": 0, "context": [value]}, st.integers(1, 5), st.floats(0, 1)
)


@given(st.lists(batches, max_size=4), st.lists(late, max_size=3), st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_any_order_of_arrival_gives_the_same_state(seen: list[dict], contexts: list[dict], random) -> None:
    records = [(f"{CONTEXTS}{i}", record) for i, record in enumerate(seen)]
    records += [(f"{LATE}{i}", record) for i, record in enumerate(contexts)]
    one = read(LINE, [], dict(records))
    random.shuffle(records)
    two = read(LINE, [], dict(records))
    assert same_state(one.state, two.state)
    assert one.clock == two.clock == max((record["clock"] for _, record in records), default=0)


def test_the_first_of_two_late_contexts_counts(tmp_path: Path) -> None:
    study = Study.open(tmp_path / "study.db", LINE)
    study.tell({"speed": 2.0}, None, 1.0)
    for clock, value in ((5, 0.9), (3, 0.2), (4, 0.5)):
        study.ledger.add(LATE, {"clock": clock, "number": 0, "context": [value]})
    assert study.observations.c.tolist() == [[0.2]]
    assert len(study.context_log) == 1


def test_concurrent_tells_are_ordered_by_clock_then_number(tmp_path: Path) -> None:
    study = Study.open(tmp_path / "study.db", LINE)
    for number, clock in enumerate((3, 1, 3, 2)):
        x = LINE.encode_designs({"speed": 1.0 + number})[0]
        study.ledger.create(x, {"clock": clock, "context": [number / 10], "value": float(number), "noise": None})
    assert study.observations.y.tolist() == [1.0, 3.0, 0.0, 2.0]
    assert np.concatenate([batch.rows for batch in study.context_log.batches])[:, 0].tolist() == [0.1, 0.3, 0.0, 0.2]


@pytest.mark.parametrize(
    "record", [{"clock": 1}, {"clock": 1, "batch": {"rows": "no"}}, "text", {"clock": "x", "batch": None}]
)
def test_records_that_cannot_be_read(record: object) -> None:
    with pytest.raises(StudyError, match="cannot be read"):
        read(LINE, [], {f"{CONTEXTS}0": record})
