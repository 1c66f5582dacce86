"""What a study is about: everything that was decided when it was made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from edrbo.acquisition.methods import DEFAULT
from edrbo.errors import EdrboError, StudyError
from edrbo.optimizer.optimizer import INITIAL, Direction, Optimizer
from edrbo.space import Space

FORMAT = 1  # of all records of a study; a newer one is refused, an older one is read


@dataclass(frozen=True)
class Settings:
    """The arguments of ``Optimizer``, in a form that can be stored."""

    space: Space
    method: str = DEFAULT
    direction: Direction = "maximize"
    seed: int = 0
    forgetting: float | None = None
    initial: int = INITIAL

    def optimizer(self) -> Optimizer:
        """A new optimizer; this also checks every setting."""
        return Optimizer(
            self.space,
            self.method,
            direction=self.direction,
            seed=self.seed,
            forgetting=self.forgetting,
            initial=self.initial,
        )

    def to_dict(self) -> dict[str, Any]:
        names = ("method", "direction", "seed", "forgetting", "initial")
        return {"format": FORMAT, "space": self.space.to_dict(), **{name: getattr(self, name) for name in names}}

    @classmethod
    def from_dict(cls, record: Any) -> Settings:
        """The inverse of ``to_dict``. Settings a record lacks have their defaults: it is from an older version."""
        try:
            version = int(record["format"])
            given = {name: record[name] for name in cls.__dataclass_fields__ if name in record and name != "space"}
            if version > FORMAT:
                raise StudyError(f"this study was written in format {version}", "upgrade edrbo to open it")
            return cls(Space.from_dict(record["space"]), **given)
        except (KeyError, TypeError, ValueError) as problem:
            if isinstance(problem, EdrboError):
                raise
            raise StudyError("the study's settings cannot be read", "was it written by edrbo?") from None

    def differences(self, other: Settings) -> list[str]:
        """What differs from ``other``, one line each, for people to read."""
        mine, theirs = self.to_dict(), other.to_dict()
        lines = [
            f"{name}: {mine[name]!r} is not {theirs[name]!r}"
            for name in ("method", "direction", "seed", "forgetting", "initial")
            if mine[name] != theirs[name]
        ]
        for role in ("design", "context"):
            lines += _variable_differences(role, mine["space"][role], theirs["space"][role])
        return lines


def _variable_differences(role: str, mine: list[Mapping[str, Any]], theirs: list[Mapping[str, Any]]) -> list[str]:
    old = {entry["name"]: entry for entry in theirs}
    new = {entry["name"]: entry for entry in mine}
    lines = [f"{role} variable {name!r} is new" for name in new if name not in old]
    lines += [f"{role} variable {name!r} is gone" for name in old if name not in new]
    lines += [f"{role} variable {name!r} has changed" for name in new if name in old and new[name] != old[name]]
    if not lines and list(new) != list(old):
        lines.append(f"the {role} variables are in another order")
    return lines
