"""The plainest recorder: a state in memory, without an engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from edrbo.records.events import Asked, Event
from edrbo.records.recorder import Make, Recorder
from edrbo.records.settings import Settings
from edrbo.records.state import State
from edrbo.space import Space


class Notebook(Recorder):
    def __init__(self, space: Space, **choices: Any) -> None:
        self.kept = State.start(Settings(space, **choices))

    @property
    def state(self) -> State:
        return self.kept

    def _record(self, make: Make) -> Event:
        return self.take(make(self.kept))

    def record_all(self, make: Callable[[State], Sequence[Event]]) -> Sequence[Event]:
        return [self.take(event) for event in make(self.kept)]

    def take(self, event: Event) -> Event:
        event = replace(event, ref=event.ref or str(len(self.kept.history)))
        self.kept = self.kept.apply(event)
        return event

    def ask(self, **design: Any) -> int:
        key = self.kept.next_id
        self.take(Asked(id=key, x=self.space.encode_designs(design)[0], version=self.kept.version))
        return key
