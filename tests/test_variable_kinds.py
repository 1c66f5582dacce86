"""A kind of variable is one class: one of our own is searched, constrained and stored like those of the package."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from edrbo import Categorical, Optimizer, Space
from edrbo.errors import InvalidContextError, InvalidDesignError
from edrbo.space.point_tables import AnyArray, Array, read_numbers
from edrbo.space.variables import Scalar, Variable


@dataclass(frozen=True)
class Sizes(Variable):
    """Numbers of a list, as sieves or drills come in; equal shares of [0, 1], in order."""

    values: tuple[float, ...]
    unit: str = ""
    default: float | None = None
    kind: ClassVar[str] = "sizes"

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(self.values))

    def describe(self) -> str:
        return ", ".join(map(self.text, self.values))

    def text(self, value: Any) -> str:
        return f"{value:g}"

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "values": list(self.values), "unit": self.unit, "default": self.default}

    @property
    def size(self) -> int:
        return len(self.values)

    def limits(self) -> tuple[float, float]:
        return self.values[0], self.values[-1]

    def grid(self, count: int) -> list[Any]:
        return list(self.values)

    def levels(self) -> Array:
        return (np.arange(self.size)[:, None] + 0.5) / self.size

    def encode(self, name: str, values: AnyArray) -> Array:
        numbers = read_numbers(name, values, "design", InvalidDesignError)
        if not np.isin(numbers, self.values).all():
            raise InvalidDesignError(f"{name!r} has no such size", f"they are {self.describe()}")
        coded: Array = self.levels()[np.searchsorted(self.values, numbers)]
        return coded

    def _places(self, coded: Array) -> np.ndarray:
        return np.clip(np.floor(np.asarray(coded) * self.size), 0, self.size - 1).astype(int)

    def decode(self, coded: Array) -> list[Scalar]:
        return [self.values[place] for place in self._places(coded[:, 0])]

    def snap(self, coded: Array) -> Array:
        return (self._places(coded) + 0.5) / self.size

    def moves(self, coded: Array) -> list[Array]:
        return [np.clip(coded + way / self.size, 0.0, 1.0) for way in (1.0, -1.0)]

    def natural(self, coded: Array) -> tuple[Array, Array]:
        centers, code = self.levels()[:, 0], coded[:, 0]
        step = 1e-7
        value = np.interp(code, centers, self.values)
        return value, (np.interp(code + step, centers, self.values) - value) / step

    def nearest(self, number: float) -> Array:
        code: Array = self.levels()[int(np.abs(np.array(self.values) - number).argmin())]
        return code

    def numbers(self, name: str, values: AnyArray) -> Array:
        return read_numbers(name, values, "context", InvalidContextError)

    def coded_range(self, numbers: Array) -> tuple[float, float]:
        return self.limits()


SIEVES = Sizes((0.1, 0.2, 0.5, 1.0, 2.0, 5.0), unit="mm")


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    Variable.kinds["sizes"] = Sizes
    yield
    del Variable.kinds["sizes"]


def test_it_is_registered_by_its_name() -> None:
    space = Space({"sieve": SIEVES, "x": (0, 1)}, {"grain": Sizes((1.0, 2.0, 4.0))}, ["sieve + x <= 2.5"])
    again = Space.from_dict(space.to_dict())
    assert again == space
    assert again.design["sieve"].unit == "mm"


def test_it_is_searched_and_answers_for_it_are_among_its_values() -> None:
    optimizer = Optimizer(Space({"sieve": SIEVES, "x": (0, 1)}, {"c": (0, 1)}), seed=2)
    random = np.random.default_rng(0)
    for _ in range(14):
        suggestion = optimizer.ask()
        assert suggestion["sieve"] in SIEVES.values
        optimizer.tell(
            suggestion, {"c": random.random()}, -((np.log(suggestion["sieve"]) - np.log(0.5)) ** 2) - suggestion["x"]
        )
    best = optimizer.recommend().design
    assert best["sieve"] == 0.5
    assert best["x"] < 0.1
    again = Optimizer.from_json(optimizer.to_json())
    assert dict(again.ask()) == dict(optimizer.ask())


def test_constraints_speak_of_its_numbers() -> None:
    space = Space({"sieve": SIEVES, "x": (0, 1)}, constraints=["sieve + x <= 1.2", "sieve >= 0.4"])
    optimizer = Optimizer(space, seed=0, initial=8)
    for suggestion in optimizer.ask(8):
        assert suggestion["sieve"] in (0.5, 1.0)
        assert suggestion["sieve"] + suggestion["x"] <= 1.2 + 1e-9


def test_all_of_many_choices_are_exchanged() -> None:
    many = Categorical(tuple(f"recipe {i}" for i in range(40)))
    here = many.encode("recipe", np.array(["recipe 3"], dtype=object))[0]
    assert np.array_equal(many.neighbors(here, 32), np.eye(40))
