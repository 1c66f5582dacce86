"""Every kind of event in words: a kind that nobody described would be an error on a page."""

from __future__ import annotations

import numpy as np

from edrbo.records import events as e
from edrbo.records.descriptions import VERBS, entry_words
from edrbo.records.settings import Settings
from edrbo.records.state import State
from edrbo.space import Real, Space

SPACE = Space({"speed": Real(10, 60, unit="m/min")}, {"humidity": Real(0, 100, unit="%")})


def history() -> State:
    x, context = np.array([0.5]), np.array([55.0])
    happened = [
        e.Asked(id=0, x=x),
        e.Reported(id=0, value=71.0),
        e.ContextReported(id=0, context=context),
        e.Failed(id=1, x=x, why="tore"),
        e.Seen(rows=context[None], weights=np.ones(1), count=1),
        e.Asked(id=2, x=x),
        e.Cancelled(id=2, why="no time"),
        e.Corrected(id=0, value=72.0, cost=3.0),
        e.Dropped(id=0, why="smeared"),
        e.Restored(id=0),
        e.Noted(id=0, note="washed"),
        e.Amended(settings={"title": "Line 2"}),
        e.Undone(of="1"),
    ]
    state = State.start(Settings(SPACE, outcome="gloss", unit="GU"))
    for k, event in enumerate(happened[:-1]):
        state = state.apply(type(event)(**{**vars(event), "ref": str(k)}))
    return state.apply(e.Undone(of="11", ref="12"))


def test_every_kind_has_words() -> None:
    state = history()
    assert {event.kind for event in state.history} == set(e.KINDS) == set(VERBS)
    assert [entry_words(state, event) for event in state.history] == [
        "run 0, suggested: speed 35 m/min",
        "run 0, result: gloss 71 GU",
        "run 0, conditions reported later: humidity 55 %",
        "run 1, failed, no result: speed 35 m/min (tore)",
        "conditions seen: 1 time",
        "run 2, suggested: speed 35 m/min",
        "run 2, not tried (no time)",
        "run 0, corrected: gloss 72 GU, cost 3",
        "run 0, left out (smeared)",
        "run 0, taken in again",
        "run 0, noted",
        "settings changed: title",
        "taken back: settings changed: title",
    ]
