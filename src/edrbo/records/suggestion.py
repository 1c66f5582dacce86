"""What is handed out to be evaluated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Suggestion(Mapping[str, Any]):
    """A design to evaluate, as a mapping of names to values. ``id`` names it until it is reported.

    ``outcome_forecast`` is what is believed of its outcome, if a model chose it (``records/outcome_forecast.py``);
    ``cost`` what its run will cost, as far as that is known.
    """

    id: int
    design: dict[str, Any]
    outcome_forecast: Mapping[str, Any] | None = field(default=None, compare=False)
    cost: float | None = field(default=None, compare=False)

    def __getitem__(self, name: str) -> Any:
        return self.design[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.design)

    def __len__(self) -> int:
        return len(self.design)
