"""The state is a function of the set of records."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.storages import JournalStorage
from optuna.trial import FrozenTrial, create_trial

from edrbo.records.events import Told
from edrbo.records.settings import Settings
from edrbo.records.state import State, same_state
from edrbo.space import Space
from edrbo.study import Study
from edrbo.study.journal import FileStorage
from edrbo.study.snapshot import Reader
from edrbo.study.trials import CONTEXTS, DESIGN, LATE, TOLD

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


def told_without_a_context() -> FrozenTrial:
    """Suggestion 0, as version 0.1 kept it."""
    told = {"clock": 1, "context": None, "value": 1.5, "noise": None}
    trial = create_trial(value=1.5, system_attrs={DESIGN: [0.25], f"{TOLD}a": told})
    trial.number = 0
    return trial


@given(st.lists(batches, max_size=4), st.lists(late, max_size=3), st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_any_order_of_arrival_gives_the_same_state(seen: list[dict], contexts: list[dict], random) -> None:
    records = [(f"{CONTEXTS}{i}", record) for i, record in enumerate(seen)]
    records += [(f"{LATE}{i}", record) for i, record in enumerate(contexts)]
    trials = [told_without_a_context()]
    one = Reader(Settings(LINE)).read(trials, dict(records))
    random.shuffle(records)
    reader = Reader(Settings(LINE))
    for count in range(len(records)):  # one by one, as they arrive
        reader.read(trials, dict(records[:count]))
    two = reader.read(trials, dict(records))
    assert same_state(one.state, two.state)
    assert one.overtaken == two.overtaken
    assert one.clock == two.clock == max((record["clock"] for _, record in records), default=1)
    first = min(contexts, key=lambda record: record["clock"], default=None)
    known = one.state.observations.c[0, 0]
    assert (
        np.isnan(known)
        if first is None
        else known in [r["context"][0] for r in contexts if r["clock"] == first["clock"]]
    )
    assert len(one.state.log) == sum(len(record["batch"]["rows"]) for record in seen) + (first is not None)
    assert len(one.overtaken) == max(len(contexts) - 1, 0)


def test_what_comes_in_between_costs_what_follows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two who write at once one comes late; the long past is not read again."""
    applied: list[int] = []
    apply = State.apply
    monkeypatch.setattr(State, "apply", lambda self, *events: applied.append(len(events)) or apply(self, *events))
    record = {"batch": {"rows": [[0.5]], "weights": [1.0], "count": 1, "summary": False}}
    records = {f"{CONTEXTS}{clock:03}": {**record, "clock": clock} for clock in range(1, 201)}
    reader = Reader(Settings(LINE))
    for count in range(1, 201):
        reader.read([], dict(list(records.items())[:count]))
    del applied[:]
    late = reader.read([], {**records, f"{CONTEXTS}x": {**record, "clock": 197}})
    assert sum(applied) == 4
    assert len(late.state.log) == 201


def test_the_first_of_two_late_contexts_counts(tmp_path: Path) -> None:
    study = Study.open(tmp_path / "study.db", LINE)
    study.tell({"speed": 2.0}, None, 1.0)
    for clock, value in ((5, 0.9), (3, 0.2), (4, 0.5)):
        record = {"clock": clock, "number": 0, "context": [value]}
        study.ledger.storage.set_study_system_attr(study.ledger.study_id, f"{LATE}{clock}", record)
    assert study.observations.c.tolist() == [[0.2]]
    assert len(study.context_log) == 1


def test_concurrent_tells_are_ordered_by_clock_then_number(tmp_path: Path) -> None:
    study = Study.open(tmp_path / "study.db", LINE)
    for number, clock in enumerate((3, 1, 3, 2)):
        x = LINE.encode_designs({"speed": 1.0 + number})[0]
        event = Told(id=number, x=x, context=np.array([number / 10]), value=float(number))
        study.ledger.create(event, LINE, clock)
    assert study.observations.y.tolist() == [1.0, 3.0, 0.0, 2.0]
    assert np.concatenate([batch.rows for batch in study.context_log.batches])[:, 0].tolist() == [0.1, 0.3, 0.0, 0.2]


@pytest.mark.parametrize(
    "record", [{"clock": 1}, {"clock": 1, "batch": {"rows": "no"}}, "text", {"clock": "x", "batch": None}]
)
def test_records_that_cannot_be_read_are_set_aside(record: object) -> None:
    good = {"clock": 2, "batch": {"rows": [[0.5]], "weights": [1.0], "count": 1, "summary": False}}
    snapshot = Reader(Settings(LINE)).read([], {f"{CONTEXTS}0": record, f"{CONTEXTS}1": good})
    assert len(snapshot.problems) == 1
    assert f"{CONTEXTS}0" in str(snapshot.problems[0])
    assert len(snapshot.state.log) == 1


def test_of_a_file_only_what_is_new_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Listing all trials at each read would make the steps of a long study slow."""
    study, other = Study.open(tmp_path / "study.db", LINE), Study.open(tmp_path / "study.db")
    looked_at: list[int] = []
    get_trial = JournalStorage.get_trial
    monkeypatch.setattr(JournalStorage, "get_all_trials", None)
    monkeypatch.setattr(JournalStorage, "get_trial", lambda self, key: looked_at.append(key) or get_trial(self, key))
    for k in range(30):
        other.tell({"speed": 1.0 + k / 10}, [0.5], float(k))
    waiting = other.ask()
    assert len(study) == 30
    del looked_at[:]
    other.tell(waiting, [0.25], 30.0)
    other.tell({"speed": 2.0}, [0.75], 31.0)
    del looked_at[:]
    assert study.observations.y.tolist() == [float(k) for k in range(32)]
    assert looked_at == [30, 31]


def test_a_journal_that_is_held_stands_still(tmp_path: Path) -> None:
    study, other = Study.open(tmp_path / "study.db", LINE), Study.open(tmp_path / "study.db")
    storage = study.ledger.storage
    assert isinstance(storage, FileStorage)
    with storage.journal.held():
        other.tell({"speed": 1.0}, [0.5], 1.0)
        assert len(list(storage.trials(study.ledger.study_id, [], 0))) == 0
    assert len(list(storage.trials(study.ledger.study_id, [], 0))) == 1
