"""The reducer: what each event does, what is refused, and that nothing accepted can fail to be read again."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from notebook import Notebook

from edrbo import Space
from edrbo.errors import EdrboError, InvalidContextError, InvalidEventError, InvalidValueError, UnknownSuggestionError
from edrbo.lab.tables.csv_export import minimal_events
from edrbo.records import events as e
from edrbo.records.reducer import undone
from edrbo.records.settings import Settings
from edrbo.records.state import DerivedTables, State
from edrbo.space import Integer
from factories import same_state

SPACE = Space(design={"x": (0.0, 10.0), "k": ["a", "b"]}, context={"c": (0.0, 1.0)})
ALONE = Space(design={"x": (0.0, 10.0)})
FREE = Space(design={"x": (0.0, 10.0), "k": ["a", "b"]}, context={"c": None})


def stored(state: State) -> State:
    """The state again from its history, through JSON."""
    first = state.amendments[0].before if state.amendments else state.settings
    texts = [json.dumps(event.to_dict(), allow_nan=False) for event in state.history]
    again = State.start(Settings.from_dict(json.loads(json.dumps(first.to_dict()))))
    return again.apply(*(e.from_dict(json.loads(text)) for text in texts))


@pytest.fixture
def notebook() -> Notebook:
    return Notebook(SPACE)


# -------------------------------------------------------------------- each kind of event


def test_asked_reported_and_late_context(notebook: Notebook) -> None:
    one, two = notebook.ask(x=1, k="a"), notebook.ask(x=2, k="b")
    assert list(notebook.state.pending) == [one, two]
    notebook.tell(two, None, 5.0, noise_variance=0.25)
    notebook.tell(one, [0.5], 4.0)
    assert notebook.observations.y.tolist() == [5.0, 4.0]
    assert notebook.state.training_order.tolist() == [1]
    notebook.tell_context(two, [0.75])
    assert notebook.state.training_order.tolist() == [1, 0]
    assert notebook.context_log.weighted(1, None)[0].tolist() == [[0.5], [0.75]]
    with pytest.raises(InvalidContextError):
        notebook.tell_context(two, [0.1])
    with pytest.raises(UnknownSuggestionError):
        notebook.tell(one, [0.5], 4.0)


def test_failed_cancelled_dropped_restored_noted(notebook: Notebook) -> None:
    for _ in range(3):
        notebook.ask(x=1, k="a")
    notebook.tell(0, [0.5], failed=True, why="it broke")
    notebook.cancel(1, "no time")
    notebook.tell(2, [0.25], 7.0)
    assert (list(notebook.state.failed), list(notebook.state.pending)) == ([0], [])
    assert len(notebook.context_log) == 2
    notebook.drop(2, "a wrong bottle")
    assert len(notebook.observations) == 0
    assert len(notebook.context_log) == 1
    with pytest.raises(InvalidEventError, match="already"):
        notebook.drop(2)
    notebook.restore(2)
    assert notebook.observations.y.tolist() == [7.0]
    notebook.note(2, "checked twice")
    with pytest.raises(InvalidEventError, match="empty"):
        notebook.note(2, "")
    with pytest.raises(InvalidEventError):
        notebook.drop(1)


def test_corrections(notebook: Notebook) -> None:
    notebook.tell({"x": 1, "k": "a"}, None, 3.0)
    notebook.correct(0, value=4.0, noise_variance=0.5, design={"x": 2})
    run = notebook.state.runs[0]
    assert (run.value, run.noise_variance) == (4.0, 0.5)
    assert notebook.space.decode_designs(run.x)[0] == {"x": 2.0, "k": "a"}
    assert not notebook.observations.complete.any()
    notebook.correct(0, context=[0.5])
    notebook.correct(0, context=[0.75])
    assert notebook.context_log.weighted(1, None)[0].tolist() == [[0.75]]
    assert notebook.state.training_order.tolist() == [0]
    with pytest.raises(InvalidEventError):
        notebook.correct(0)
    key = notebook.ask(x=1, k="b")
    with pytest.raises(InvalidValueError):
        notebook.correct(key, value=1.0)


def test_undo_and_redo(notebook: Notebook) -> None:
    notebook.tell({"x": 1, "k": "a"}, [0.5], 3.0)
    before = notebook.state
    notebook.tell({"x": 2, "k": "a"}, [0.25], 4.0)
    after = notebook.state
    taken_back = notebook.undo()
    assert isinstance(taken_back, e.Reported)
    assert notebook.observations.y.tolist() == [3.0]
    assert notebook.state.next_id == 2  # a number is never given out twice
    assert len(notebook.context_log) == 1
    notebook.undo(notebook.state.history[-1].ref)  # undo the undoing
    assert same_state(notebook.state, after)
    notebook.undo(notebook.state.history[0].ref)
    assert notebook.observations.y.tolist() == [4.0]
    with pytest.raises(InvalidEventError):
        notebook.undo(notebook.state.history[0].ref)
    assert before.observations.y.tolist() == [3.0]  # states are values


def test_what_others_hang_on_cannot_be_undone(notebook: Notebook) -> None:
    notebook.ask(x=1, k="a")
    notebook.tell(0, [0.5], 3.0)
    with pytest.raises(InvalidEventError):
        notebook.undo(notebook.state.history[0].ref)


def test_amendments_widen_bounds_and_bring_levels_and_variables(notebook: Notebook) -> None:
    notebook.tell({"x": 5, "k": "b"}, [0.5], 3.0)
    notebook.observe_context([[0.25]])
    wider = Space(
        design={"x": (0.0, 20.0), "k": ["a", "b", "c"], "n": Integer(1, 9)}, context={"c": (0.0, 1.0), "d": (0.0, 5.0)}
    )
    notebook.amend({"space": wider.to_dict()}, {"n": 3, "d": 2.0})
    assert notebook.space == wider
    assert wider.decode_designs(notebook.observations.x)[0] == {"x": 5.0, "k": "b", "n": 3}
    assert notebook.observations.c.tolist() == [[0.5, 2.0]]
    assert notebook.context_log.weighted(2, None)[0].tolist() == [[0.5, 2.0], [0.25, 2.0]]
    notebook.tell({"x": 15, "k": "c", "n": 9}, [0.1, 4.0], 5.0)
    assert same_state(stored(notebook.state), notebook.state)
    with pytest.raises(EdrboError, match="gone"):
        notebook.amend({"space": SPACE.to_dict()})
    with pytest.raises(EdrboError):
        notebook.amend(
            {
                "space": {
                    **wider.to_dict(),
                    "design": [{**wider.to_dict()["design"][0], "upper": 10.0}, *wider.to_dict()["design"][1:]],
                }
            }
        )
    notebook.undo()
    notebook.undo()
    assert notebook.space == SPACE
    assert notebook.observations.c.tolist() == [[0.5]]


def test_an_event_that_knew_an_older_space_is_recoded(notebook: Notebook) -> None:
    """Another process asked before it had read the amendment."""
    x = SPACE.encode_designs({"x": 5, "k": "a"})[0]
    wider = Space(design={"x": (0.0, 20.0), "k": ["a", "b"]}, context={"c": (0.0, 1.0)})
    notebook.amend({"space": wider.to_dict()})
    notebook.take(e.Asked(id=0, x=x, version=0))
    assert wider.decode_designs(notebook.state.runs[0].x)[0] == {"x": 5.0, "k": "a"}
    with pytest.raises(InvalidEventError):
        notebook.take(e.Asked(id=1, x=x, version=2))


# -------------------------------------------------------------------- what is refused

X = SPACE.encode_designs({"x": 1, "k": "a"})[0]
REFUSED: dict[str, e.Event] = {
    "no design": e.Asked(id=9, x=None),  # type: ignore[arg-type]
    "design outside": e.Asked(id=9, x=np.array([1.5, 1.0, 0.0])),
    "between two levels": e.Asked(id=9, x=np.array([0.5, 0.5, 0.5])),
    "number taken": e.Asked(id=0, x=X),
    "negative number": e.Asked(id=-1, x=X),
    "no number": e.Asked(id=True, x=X),
    "number that leaves none": e.Asked(id=2**53, x=X),
    "text as value": e.Reported(id=0, value="0.5"),  # type: ignore[arg-type]
    "a truth": e.Reported(id=0, value=True),
    "too large for float64": e.Reported(id=0, value=10**400),
    "NaN": e.Reported(id=0, value=math.nan),
    "no value": e.Reported(id=0, value=None),  # type: ignore[arg-type]
    "ragged value": e.Reported(id=0, value=[[1], [2, 3]]),  # type: ignore[arg-type]
    "negative noise": e.Reported(id=0, value=1.0, noise_variance=-1.0),
    "infinite noise": e.Reported(id=0, value=1.0, noise_variance=math.inf),
    "noise in a list": e.Reported(id=0, value=1.0, noise_variance=[0.5]),  # type: ignore[arg-type]
    "negative cost": e.Reported(id=0, value=1.0, cost=-1.0),
    "cost of text": e.Failed(id=0, cost="3"),  # type: ignore[arg-type]
    "cost beyond sums": e.Corrected(id=1, cost=1e101),
    "cost before the end": e.Corrected(id=0, cost=1.0),
    "infinite context": e.Reported(id=0, value=1.0, context=np.array([math.inf])),
    "two contexts": e.Reported(id=0, value=1.0, context=np.array([0.5, 0.5])),
    "context of text": e.Reported(id=0, value=1.0, context=np.array(["0.5"])),  # type: ignore[arg-type]
    "unknown run": e.Reported(id=5, value=1.0),
    "no context": e.ContextReported(id=1, context=None),  # type: ignore[arg-type]
    "weights overflow": e.Seen(rows=np.ones((2, 1)), weights=np.array([1e308, 1e308]), count=2),
    "weights underflow": e.Seen(rows=np.ones((1, 1)), weights=np.array([1e-310]), count=1),
    "weights negative": e.Seen(rows=np.ones((2, 1)), weights=np.array([1.0, -2.0]), count=2),
    "weights NaN": e.Seen(rows=np.ones((1, 1)), weights=np.array([math.nan]), count=1),
    "count": e.Seen(rows=np.ones((2, 1)), weights=np.ones(2), count=1),
    "rows of nothing": e.Seen(rows=np.ones((0, 1)), weights=np.ones(0), count=0),
    "summary of text": e.Seen(rows=np.ones((1, 1)), weights=np.ones(1), count=1, summary="no"),  # type: ignore[arg-type]
    "NUL in words": e.Noted(id=0, note="a\x00b"),
    "half a character": e.Noted(id=0, note="a\ud800b"),
    "words too long": e.Noted(id=0, note="a" * 10_001),
    "time before 1970": e.Noted(id=0, note="a", at=-1.0),
    "name taken": e.Noted(id=0, note="a", ref="0"),
    "nothing to undo": e.Undone(of="nonsense"),
    "amendment of nothing": e.Amended(settings={}),
    "unknown setting": e.Amended(settings={"nonsense": 1}),
    "another direction": e.Amended(settings={"direction": "minimize"}),
    "settings of text": e.Amended(settings="text"),  # type: ignore[arg-type]
    "defaults of text": e.Amended(settings={"seed": 1}, defaults=[1]),  # type: ignore[arg-type]
    "expectation of NaN": e.Asked(id=9, x=X, outcome_forecast={"mean": math.nan}),
    "expectation of a set": e.Asked(id=9, x=X, outcome_forecast={"mean": {1, 2}}),
    "no event": "text",  # type: ignore[dict-item]
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused_and_leaves_nothing_behind(name: str) -> None:
    notebook = Notebook(SPACE)
    notebook.ask(x=1, k="a")
    notebook.tell({"x": 2, "k": "b"}, None, 1.0)
    state = notebook.state
    with pytest.raises(EdrboError):
        state.apply(e.Noted(id=0, note="fine"), REFUSED[name])
    assert notebook.state is state
    assert len(state.history) == 2
    assert same_state(stored(state), state)


def test_plain_types_are_kept_of_what_numpy_gives() -> None:
    notebook = Notebook(SPACE)
    x, context = X.copy(), np.array([0.5], dtype=np.float32)
    notebook.take(e.Asked(id=np.int64(0), x=x, outcome_forecast={"mean": np.float32(0.5), "n": np.int8(3)}))  # type: ignore[arg-type]
    notebook.take(
        e.Reported(
            id=np.uint8(0), value=np.float32(2.5), noise_variance=Decimal("0.25"), context=context, at=np.float64(5.0)
        )  # type: ignore[arg-type]
    )
    x[:], context[:] = 0.0, 9.0  # what was reported does not change with the caller's arrays
    assert [type(event.id) for event in notebook.state.history] == [int, int]  # type: ignore[attr-defined]
    run = notebook.state.runs[0]
    assert (type(run.value), run.value, type(run.noise_variance), run.noise_variance) == (float, 2.5, float, 0.25)
    assert run.outcome_forecast == {"mean": 0.5, "n": 3}
    assert np.array_equal(run.x, X)
    assert same_state(stored(notebook.state), notebook.state)


def test_forgetting_leaves_some_weight_whatever_the_ages() -> None:
    notebook = Notebook(SPACE, context_half_life=1e-310)
    notebook.observe_context([[0.1], [0.2], [0.3]], weights=[1.0, 2.0, 0.0])
    rows, weights = notebook.context_log.weighted(1, 1e-310)
    assert weights.tolist() == [0.0, 2.0, 0.0]
    assert rows.shape == (3, 1)


@pytest.mark.parametrize(
    "record",
    [
        *([], 3, None, {}, {"kind": 3}, {"kind": "nonsense"}, {"kind": "reported"}, {"kind": "reported", "id": 0}),
        *({"kind": "reported", "id": 0, "value": 1, "wind": 3}, {"kind": "asked", "id": 0, "x": "0.5"}),
        *({"kind": "asked", "id": 0, "x": [[1]]}, {"kind": "asked", "id": 0, "x": [True]}),
        *({"kind": "asked", "id": 0, "x": [[1], [2, 3]]}, {"kind": "asked", "id": 0, "x": [10**400]}),
    ],
)
def test_what_is_no_event(record: Any) -> None:
    with pytest.raises(InvalidEventError):
        e.from_dict(record)


# -------------------------------------------------------------------- any life

numbers = st.floats(-1e6, 1e6)


class Life:
    """Random valid events; those that cannot be are passed over."""

    def __init__(self, space: Space, draw: st.DrawFn) -> None:
        self.notebook, self._draw = Notebook(space, context_half_life=5.0), draw
        self._wider = 0

    def step(self) -> None:
        before = self.notebook.state
        kind = self._draw(st.sampled_from(sorted(name for name in dir(self) if name.startswith("do_"))))
        try:
            getattr(self, kind)(self._draw(st.integers(0, max(0, before.next_id - 1))))
        except EdrboError:
            assert self.notebook.state is before

    def _context(self) -> list[float] | None:
        known = self.notebook.space.d_c and self._draw(st.booleans())
        return [self._draw(st.floats(-2, 3))] if known else None

    def _design(self) -> dict[str, Any]:
        design = {"x": self._draw(st.floats(0, 10)), "k": self._draw(st.sampled_from("ab"))}
        return {name: design[name] for name in self.notebook.space.design_names}

    def do_ask(self, key: int) -> None:
        self.notebook.ask(**self._design())

    def do_tell(self, key: int) -> None:
        noise_variance = self._draw(st.none() | st.floats(0, 1e3))
        cost = self._draw(st.none() | st.floats(0, 1e3))
        self.notebook.tell(key, self._context(), self._draw(numbers), noise_variance=noise_variance, cost=cost)

    def do_tell_own(self, key: int) -> None:
        self.notebook.tell(self._design(), self._context(), self._draw(numbers))

    def do_fail(self, key: int) -> None:
        self.notebook.tell(self._draw(st.sampled_from([key, self._design()])), self._context(), failed=True, why="x")

    def do_context(self, key: int) -> None:
        self.notebook.tell_context(key, [self._draw(st.floats(0, 1))])

    def do_see(self, key: int) -> None:
        rows = self._draw(st.lists(st.floats(-5, 5), min_size=1, max_size=3))
        self.notebook.observe_context([[row] for row in rows])

    def do_correct(self, key: int) -> None:
        cost = self._draw(st.none() | st.floats(0, 9))
        self.notebook.correct(key, value=self._draw(st.none() | numbers), context=self._context(), cost=cost)

    def do_drop(self, key: int) -> None:
        self.notebook.drop(key, self._draw(st.none() | st.text("ab", max_size=3)))

    def do_restore(self, key: int) -> None:
        self.notebook.restore(key)

    def do_cancel(self, key: int) -> None:
        self.notebook.cancel(key)

    def do_note(self, key: int) -> None:
        self.notebook.note(key, "seen")

    def do_undo(self, key: int) -> None:
        history = self.notebook.state.history
        self.notebook.undo(self._draw(st.none() | st.sampled_from([event.ref for event in history] or [""])))

    def do_amend(self, key: int) -> None:
        self._wider += 1
        record = self.notebook.space.to_dict()
        record["design"][0]["upper"] += 1.0
        self.notebook.amend({"space": record, "seed": self._wider})


@st.composite
def lives(draw: st.DrawFn) -> Notebook:
    life = Life(draw(st.sampled_from([FREE, ALONE])), draw)
    for _ in range(draw(st.integers(0, 25))):
        life.step()
    return life.notebook


@pytest.mark.filterwarnings("ignore::edrbo.errors.ImplausibleWarning", "ignore::edrbo.errors.NarrowContextsWarning")
@given(lives())
@settings(max_examples=60, deadline=None)
def test_any_life_is_the_same_when_it_is_read_again(notebook: Notebook) -> None:
    state = notebook.state
    again = stored(state)
    assert same_state(again, state)
    assert len(again.history) == len(state.history)
    assert again.training_order.tolist() == state.training_order.tolist()


@pytest.mark.filterwarnings("ignore::edrbo.errors.ImplausibleWarning", "ignore::edrbo.errors.NarrowContextsWarning")
@given(st.data(), st.sampled_from([(8, 4, 2), (5, 1), (4096, 512, 64)]))
@settings(max_examples=80, deadline=None)
def test_what_is_taken_back_leaves_nothing_whatever_the_checkpoints(data: st.DataObject, ages: tuple[int, ...]) -> None:
    """The same as if it had never been, also when a long history is read at once; but for the numbers given out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("edrbo.records.state.AGES", ages)
        state = data.draw(lives()).state
        start = State.start(state.amendments[0].before if state.amendments else state.settings)
        gone = undone(state.history)
        kept = [event for event in state.history if event.ref not in gone and not isinstance(event, e.Undone)]
        plain = start.apply(*kept)
        for found in (state, start.replay(state.history)):
            assert same_state(replace(found, suggested=plain.suggested, next_id=plain.next_id), plain)
            assert found.next_id >= plain.next_id
            assert [event.ref for event in found.history] == [event.ref for event in state.history]
            assert found.next_id == state.next_id
            again = found.apply(*(replace(event, ref=f"{event.ref} again") for event in kept if event.kind == "noted"))
            last = again.last
            if last is not None:
                try:
                    back = again.apply(e.Undone(of=last.ref, ref="back"))
                except EdrboError:
                    continue
                rest = [event for event in kept if event.ref != last.ref]
                expected = start.apply(*rest)
                assert same_state(replace(back, suggested=expected.suggested, next_id=expected.next_id), expected)


@pytest.mark.filterwarnings("ignore::edrbo.errors.ImplausibleWarning", "ignore::edrbo.errors.NarrowContextsWarning")
@given(lives())
@settings(max_examples=60, deadline=None)
def test_the_fewest_events_lead_to_the_same_knowledge(notebook: Notebook) -> None:
    """All that a model sees and all that is said of a run; only who suggested a design is not reported again."""
    state = notebook.state
    events = [e.from_dict(json.loads(json.dumps(event.to_dict()))) for event in minimal_events(state)]
    again = State.start(state.settings).apply(*events)
    for name in ("x", "c", "y", "noise_variance"):
        assert np.array_equal(getattr(again.observations, name), getattr(state.observations, name), equal_nan=True)
    assert again.training_order.tolist() == state.training_order.tolist()
    assert again.runs.keys() == state.runs.keys()
    for key, run in state.runs.items():
        other = again.runs[key]
        assert (run.status, run.value, run.noise_variance, run.dropped) == (
            other.status,
            other.value,
            other.noise_variance,
            other.dropped,
        )
        assert np.array_equal(run.x, other.x)
    one, two = state.log.weighted(state.space.d_c, 5.0), again.log.weighted(state.space.d_c, 5.0)
    assert np.array_equal(one[0], two[0])
    assert np.array_equal(one[1], two[1])


@pytest.mark.filterwarnings("ignore::edrbo.errors.ImplausibleWarning", "ignore::edrbo.errors.NarrowContextsWarning")
@given(lives())
@settings(max_examples=60, deadline=None)
def test_what_was_worked_out_before_an_event_is_gone_on_from_rightly(notebook: Notebook) -> None:
    state = State.start(notebook.state.amendments[0].before if notebook.state.amendments else notebook.state.settings)
    for event in notebook.state.history:
        state = state.apply(event)
        afresh = DerivedTables(state)
        assert list(state.reported.items()) == list(afresh.reported.items())
        for name in ("x", "c", "y", "noise_variance"):
            here, there = getattr(state.observations, name), getattr(afresh.observations, name)
            assert np.array_equal(here, there, equal_nan=True)
        for here, there in ((state.pending, afresh.pending), (state.failed, afresh.failed)):
            assert list(here) == list(there)
            assert all(np.array_equal(here[key], there[key]) for key in here)
        assert len(state.log) == len(afresh.log)
        logs = (log.weighted(state.space.d_c, 5.0) for log in (state.log, afresh.log))
        for here, there in zip(*logs, strict=True):
            assert np.array_equal(here, there, equal_nan=True)
