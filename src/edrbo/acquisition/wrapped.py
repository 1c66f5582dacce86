"""An objective around another one: what the three that take something off a value have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from torch import Tensor

from edrbo.acquisition.maximizer import Objective


@dataclass(frozen=True, eq=False)
class Wrapped:
    """``objective`` with a ``value_and_gradient`` of its own."""

    objective: Any

    @property
    def costly(self) -> bool:
        """Whether the objective takes long."""
        return bool(getattr(self.objective, "costly", False))

    @property
    def dear(self) -> bool:
        """Whether it costs much more than a stand-in."""
        return bool(getattr(self.objective, "dear", False))

    def near(self, x: Tensor) -> Self:
        """With the contexts that matter at designs ``x`` (k × d_x)."""
        near = self.objective.near(x) if hasattr(self.objective, "near") else self.objective
        return self if near is self.objective else replace(self, objective=near)


def wrap(ladder: Sequence[Objective], make: Callable[[Objective], Objective]) -> list[Objective]:
    """Every rung of a ladder wrapped; rungs that are one and the same stay so."""
    made = {id(rung): make(rung) for rung in ladder}
    return [made[id(rung)] for rung in ladder]
