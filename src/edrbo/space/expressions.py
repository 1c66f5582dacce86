"""Arithmetic of variables, with exact gradients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from edrbo.space.point_tables import Array

Dual = tuple[Array, Array]  # values (n) and gradients (n × k)
Rule = Callable[..., tuple[Array, Sequence[Array]]]  # arguments (n each) to the value and its slope by each of them


def _largest(*parts: Array) -> tuple[Array, Sequence[Array]]:
    table = np.stack(parts)
    winner = table.argmax(axis=0)
    return table.max(axis=0), [(winner == i).astype(np.float64) for i in range(len(parts))]


def _smallest(*parts: Array) -> tuple[Array, Sequence[Array]]:
    value, slopes = _largest(*(-part for part in parts))
    return -value, slopes


def _power(base: Array, exponent: Array) -> tuple[Array, Sequence[Array]]:
    value = base**exponent
    return value, (exponent * base ** (exponent - 1.0), value * np.log(base))


RULES: dict[str, Rule] = {
    "+": lambda a, b: (a + b, (np.ones_like(a), np.ones_like(b))),
    "-": lambda a, b: (a - b, (np.ones_like(a), -np.ones_like(b))),
    "*": lambda a, b: (a * b, (b, a)),
    "/": lambda a, b: (a / b, (1.0 / b, -a / b**2)),
    "**": _power,
    "abs": lambda a: (np.abs(a), (np.sign(a),)),
    "sqrt": lambda a: (np.sqrt(a), (0.5 / np.sqrt(a),)),
    "exp": lambda a: (np.exp(a), (np.exp(a),)),
    "log": lambda a: (np.log(a), (1.0 / a,)),
    "min": _smallest,
    "max": _largest,
}


class Expression(ABC):
    """A number that follows from k variables."""

    @abstractmethod
    def evaluate(self, point: Array) -> Dual:
        """Values (n) and gradients (n × k) at points (n × k); not finite where it is not defined."""

    @abstractmethod
    def affine(self, width: int) -> Array | None:
        """``width`` slopes and the value at zero if it is linear, else None."""

    @abstractmethod
    def uses(self) -> set[int]:
        """Which variables occur."""


@dataclass(frozen=True)
class Number(Expression):
    value: float

    def evaluate(self, point: Array) -> Dual:
        return np.full(len(point), self.value), np.zeros(point.shape)

    def affine(self, width: int) -> Array:
        return np.append(np.zeros(width), self.value)

    def uses(self) -> set[int]:
        return set()


@dataclass(frozen=True)
class Name(Expression):
    index: int

    def evaluate(self, point: Array) -> Dual:
        gradient = np.zeros(point.shape)
        gradient[:, self.index] = 1.0
        return point[:, self.index].copy(), gradient

    def affine(self, width: int) -> Array:
        row: Array = np.eye(width + 1)[self.index]
        return row

    def uses(self) -> set[int]:
        return {self.index}


@dataclass(frozen=True)
class Operation(Expression):
    """An entry of ``RULES`` with its arguments."""

    rule: str
    parts: tuple[Expression, ...]

    def evaluate(self, point: Array) -> Dual:
        values, gradients = zip(*(part.evaluate(point) for part in self.parts), strict=True)
        with np.errstate(all="ignore"):
            value, slopes = RULES[self.rule](*values)
            gradient = np.zeros(point.shape)
            for slope, inner in zip(slopes, gradients, strict=True):
                # what does not move does not matter, also where the slope is infinite
                gradient += np.where(inner == 0.0, 0.0, slope[:, None] * inner)
        return value, gradient

    def affine(self, width: int) -> Array | None:
        parts = [part.affine(width) for part in self.parts]
        if any(part is None for part in parts):
            return None
        known = [part for part in parts if part is not None]
        constant = [not part[:-1].any() for part in known]
        with np.errstate(all="ignore"):
            if all(constant):
                value, _ = RULES[self.rule](*(part[-1:] for part in known))
                found = np.append(np.zeros(width), value)
            elif self.rule in ("+", "-"):
                found = known[0] + known[1] if self.rule == "+" else known[0] - known[1]
            elif self.rule == "*" and any(constant):
                found = known[0][-1] * known[1] if constant[0] else known[1][-1] * known[0]
            elif self.rule == "/" and constant[1]:
                found = known[0] / known[1][-1]
            else:
                return None
        return found if np.isfinite(found).all() else None

    def uses(self) -> set[int]:
        return set().union(*(part.uses() for part in self.parts))


@dataclass(frozen=True)
class Comparison:
    """left, a sign out of <=, <, >=, >, == and right."""

    left: Expression
    sign: str
    right: Expression
