"""Constraints: what must hold between design variables, as comparisons that people write or functions of a design.

Expressions are arithmetic in the names of variables, with exact gradients. Nothing of the text is ever run.
"""

from __future__ import annotations

import ast
import re
import unicodedata
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from edrbo.errors import InvalidSpaceError, NotStorableError
from edrbo.space.point_tables import Array, close_match
from edrbo.space.variables import Variable

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


LONGEST = 500  # characters of a constraint
MANY_ARGUMENTS = 20  # of min and max
DEEPEST = 100  # operations within operations
FUNCTIONS = ("abs", "sqrt", "exp", "log", "min", "max")
OPERATORS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}
SIGNS: dict[type[ast.cmpop], str] = {ast.LtE: "<=", ast.Lt: "<", ast.GtE: ">=", ast.Gt: ">", ast.Eq: "=="}
SPELLINGS = (("≤", "<="), ("≥", ">="), ("=<", "<="), ("=>", ">="), ("−", "-"), ("·", "*"), ("×", "*"))
HINTS: dict[type[ast.expr], str] = {
    ast.BoolOp: "give each comparison as an entry of its own",
    ast.Tuple: "write decimals with a point, and one comparison at a time",
}
QUOTED = re.compile(r"`[^`]*`")


class Reader:
    """Reads texts in the names of ``variables``, each with its place.

    ``others`` are names that cannot be used here, each with the reason; ``example`` is a text that can be read.
    """

    def __init__(self, variables: Mapping[str, int], others: Mapping[str, str], example: str) -> None:
        self._example = example
        self._index = {unicodedata.normalize("NFKC", name): index for name, index in variables.items()}
        self._names = tuple(variables)
        self._others = {unicodedata.normalize("NFKC", name): reason for name, reason in others.items()}

    def comparisons(self, given: str) -> tuple[str, list[Comparison]]:
        """The text in the usual spelling, and what it says; chained comparisons come one by one."""
        text = _usual_spelling(given)
        tree, reading = self._read(text)
        if not isinstance(tree, ast.Compare):
            hint = HINTS.get(type(tree), f'write one comparison, as "{self._example}"')
            raise _error(text, "it is not a comparison", hint)
        parts = [reading.expression(node) for node in (tree.left, *tree.comparators)]
        signs = [SIGNS.get(type(sign)) for sign in tree.ops]
        found = []
        for left, sign, right in zip(parts[:-1], signs, parts[1:], strict=True):
            if sign is None:
                raise _error(text, "it compares in a way that is not known", "use <=, <, >=, > or ==")
            if not left.uses() | right.uses():
                raise _error(text, "a comparison names no design variable", "leave it out")
            found.append(Comparison(left, sign, right))
        return text, found

    def number(self, given: str) -> tuple[str, Expression]:
        """The text of a number that follows from the variables, in the usual spelling, and the number."""
        text = _usual_spelling(given)
        tree, reading = self._read(text)
        return text, reading.expression(tree)

    def _read(self, text: str) -> tuple[ast.expr, _Reading]:
        quoted: dict[str, str] = {}

        def stand_in(found: re.Match[str]) -> str:
            name = f"_{len(quoted)}".ljust(len(found[0].encode()), "_")  # as long, so that places stay
            quoted[name] = found[0][1:-1]
            return name

        return _parse(QUOTED.sub(stand_in, text), text, self._example), _Reading(text, quoted, self)

    def look_up(self, name: str) -> int | str:
        """The place of a variable, or what is wrong with the name."""
        name = unicodedata.normalize("NFKC", name)
        return self._index[name] if name in self._index else self._others.get(name, "is no design variable")

    def hint(self, name: str) -> str:
        return close_match(name, self._names, f"the variables that count here are {', '.join(self._names)}")


def _usual_spelling(given: str) -> str:
    text = " ".join(given.split())
    if len(text) > LONGEST:
        raise InvalidSpaceError(f"{text[:40]!r} … has {len(text)} characters", f"at most {LONGEST} can be read")
    for foreign, usual in SPELLINGS:
        text = text.replace(foreign, usual)
    return re.sub(r"(?<![<>=!])=(?!=)", "==", text)


def _parse(source: str, text: str, example: str) -> ast.expr:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source, mode="eval").body
    except SyntaxError as problem:
        place = f" at character {problem.offset}" if problem.offset else " to its end"
        product = re.search(r"(?<![\w.])\d+(\.\d+)?\s*[^\W\d]", source)
        hint = "write products with *, as in 2 * x" if product else f'write it as "{example}"'
        raise _error(text, f"it cannot be read{place}", hint) from None
    except (ValueError, RecursionError, MemoryError):
        raise _error(text, "it cannot be read", "write it more simply") from None


def _error(text: str, message: str, hint: str) -> InvalidSpaceError:
    return InvalidSpaceError(f"{text!r}: {message}", hint)


@dataclass(frozen=True)
class _Reading:
    """One text on its way from Python's syntax to ours."""

    text: str
    quoted: Mapping[str, str]
    reader: Reader

    def expression(self, node: ast.expr, depth: int = 0) -> Expression:
        if depth > DEEPEST:
            raise _error(self.text, "it is too deeply nested", "write it more simply")
        if isinstance(node, ast.Constant):
            return self._number(node)
        if isinstance(node, ast.Name):
            return self._name(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            inner = self.expression(node.operand, depth + 1)
            return Operation("-", (Number(0.0), inner)) if isinstance(node.op, ast.USub) else inner
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            parts = [self.expression(side, depth + 1) for side in (node.left, node.right)]
            return Operation(OPERATORS[type(node.op)], tuple(parts))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return self._call(node, node.func.id, depth)
        hint = "write ** for a power" if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitXor) else None
        raise self._wrong(node, "cannot be used", hint or f"use + - * / **, {', '.join(FUNCTIONS)}, numbers and names")

    def _number(self, node: ast.Constant) -> Number:
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            raise self._wrong(node, "is no number", "use numbers and the names of design variables")
        try:
            value = float(node.value)
        except OverflowError:
            value = np.inf
        if not np.isfinite(value):
            raise self._wrong(node, "is too large", "give a finite number")
        return Number(value)

    def _name(self, node: ast.Name) -> Name:
        name = self.quoted.get(node.id, node.id)
        found = self.reader.look_up(name)
        if isinstance(found, str):
            raise self._wrong(node, found, self.reader.hint(name))
        return Name(found)

    def _call(self, node: ast.Call, name: str, depth: int) -> Operation:
        if name not in FUNCTIONS:
            raise self._wrong(node, "cannot be used", f"the functions are {', '.join(FUNCTIONS)}")
        least, most = (2, MANY_ARGUMENTS) if name in ("min", "max") else (1, 1)
        if node.keywords or not least <= len(node.args) <= most:
            raise self._wrong(node, "has the wrong arguments", f"{name} takes {'two or more' if least > 1 else 'one'}")
        return Operation(name, tuple(self.expression(part, depth + 1) for part in node.args))

    def _wrong(self, node: ast.expr, what: str, hint: str) -> InvalidSpaceError:
        """An error that quotes a part of the text and says where it stands; Python counts in bytes."""
        data = self.text.encode()
        start = len(data[: node.col_offset].decode(errors="ignore"))
        part = data[node.col_offset : node.end_col_offset].decode(errors="ignore")
        return _error(self.text, f"{part!r} at character {start + 1} {what}", hint)


MAX_CONSTRAINTS = 50  # constraints of a space
Function = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True)
class Relation:
    """A margin that must be at most zero (below it if ``strict``), or zero if ``equal``; in the user's units."""

    margin: Expression
    equal: bool
    strict: bool
    constraint: int  # which of the constraints it is a part of

    @classmethod
    def of(cls, comparison: Comparison, constraint: int) -> Relation:
        sides = (comparison.left, comparison.right)
        if comparison.sign.startswith(">"):
            sides = sides[::-1]
        return cls(Operation("-", sides), comparison.sign == "==", comparison.sign in ("<", ">"), constraint)


@dataclass(frozen=True)
class Constraint:
    """``text`` in the usual spelling, or a ``function`` of a design's values by name.

    A function says whether a design is allowed: True or False, or a number that is zero or more where it is.
    """

    text: str
    function: Function | None = None

    def describe(self) -> str:
        return self.text


@dataclass(frozen=True)
class LevelMargin(Expression):
    """One where a variable without numbers has one level, else minus one."""

    index: int
    level: int

    def evaluate(self, point: Array) -> Dual:
        return np.where(np.round(point[:, self.index]) == self.level, 1.0, -1.0), np.zeros(point.shape)

    def affine(self, width: int) -> None:
        return None

    def uses(self) -> set[int]:
        return {self.index}


NOT_LEVEL = re.compile(r"\s*(`?)(?P<name>.+?)\1\s*(?:!=|≠)\s*(?P<level>.+?)\s*")


def _read_level(text: str, design: Mapping[str, Variable], index: int) -> tuple[Constraint, list[Relation]] | None:
    """A level that is not to be chosen, as in primer != C; None if the text says something else."""
    found = NOT_LEVEL.fullmatch(text)
    if found is None or found["name"] not in design or design[found["name"]].numeric:
        return None
    name, labels = found["name"], design[found["name"]].labels() or []
    level = found["level"].strip("\"'") if found["level"] not in labels else found["level"]
    if level not in labels:
        raise InvalidSpaceError(f"{level!r} is no level of {name}", close_match(level, labels, ", ".join(labels)))
    margin = LevelMargin(list(design).index(name), labels.index(level))
    shown = name if name.isidentifier() else f"`{name}`"
    return Constraint(f"{shown} != {level}"), [Relation(margin, False, False, index)]


@dataclass(frozen=True, eq=False)
class FunctionMargin(Expression):
    """Minus what a function of the user's says; slopes by differences, none of True and False."""

    function: Function
    text: str  # what it is, for people
    variables: Mapping[str, Variable]  # all k of them

    def evaluate(self, point: Array) -> Dual:
        value, gradient = np.empty(len(point)), np.zeros(point.shape)
        for row, place in enumerate(point):
            value[row], flag = self._ask(place)
            for k, variable in enumerate(() if flag else self.variables.values()):
                if not variable.numeric:
                    continue
                step = variable.difference()
                there = self._aside(place, k, step)
                if not np.isfinite(there):
                    step = -step
                    there = self._aside(place, k, step)
                gradient[row, k] = (there - value[row]) / step
        return value, gradient

    def _aside(self, place: Array, k: int, step: float) -> float:
        moved = place.copy()
        moved[k] += step
        return self._ask(moved)[0]

    def _ask(self, place: Array) -> tuple[float, bool]:
        """Minus the answer, and whether it was True or False."""
        design = {
            name: variable.value_of(number)
            for (name, variable), number in zip(self.variables.items(), place.tolist(), strict=True)
        }
        try:
            answer = self.function(design)
        except ArithmeticError:  # not defined there, as a division by zero
            return np.nan, False
        except Exception as problem:
            raise InvalidSpaceError(f"{self.text} failed: {problem!r}", f"at {design}") from problem
        if isinstance(answer, bool | np.bool_):
            return (-1.0 if answer else 1.0), True
        try:
            return -float(answer), False
        except (TypeError, ValueError):
            hint = "return True or False, or a number that is zero or more where the design is allowed"
            raise InvalidSpaceError(f"{self.text} returned {answer!r}", hint) from None

    def affine(self, width: int) -> None:
        return None

    def uses(self) -> set[int]:
        return set(range(len(self.variables)))


def variable_reader(design: Mapping[str, Variable], context: Iterable[str], example: str = "x1 + x2 <= 1") -> Reader:
    """Reads arithmetic in the design variables, by their places."""
    places = {name: k for k, name in enumerate(design) if design[name].numeric}
    reasons = {
        name: "is categorical: name != LEVEL is all that can be said of it" for name in design if name not in places
    }
    reasons |= {name: "is a context, which nobody can choose" for name in context}
    return Reader(places, reasons, example)


def read_constraints(
    given: Any, design: Mapping[str, Variable], context: Iterable[str]
) -> tuple[tuple[Constraint, ...], tuple[Relation, ...]]:
    """Constraints as people give them, and the relations they come to, in all design variables in their order."""
    if given is None:
        return (), ()
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):  # sets have no order that stays
        raise InvalidSpaceError(f"constraints is {given!r}", 'give a list, as in constraints=["x1 + x2 <= 1"]')
    items = list(given)
    if len(items) > MAX_CONSTRAINTS:
        raise InvalidSpaceError(f"there are {len(items)} constraints", f"at most {MAX_CONSTRAINTS} can be kept")
    reader = variable_reader(design, context)
    constraints: list[Constraint] = []
    relations: list[Relation] = []
    for item in items:
        constraint, found = _read(item, reader, design, len(constraints))
        if constraint in constraints:
            raise InvalidSpaceError(f"the constraint {constraint.describe()!r} is given twice", "give it once")
        constraints.append(constraint)
        relations += found
    return tuple(constraints), tuple(relations)


def _read(
    item: Any, reader: Reader, design: Mapping[str, Variable], index: int
) -> tuple[Constraint, Sequence[Relation]]:
    if isinstance(item, Constraint):
        item = item.text if item.function is None else item.function
    if isinstance(item, str):
        if (level := _read_level(item, design, index)) is not None:
            return level
        try:
            text, comparisons = reader.comparisons(item)
        except InvalidSpaceError as problem:
            raise InvalidSpaceError(f"the constraint {problem.message}", problem.hint) from None
        return Constraint(text), [Relation.of(comparison, index) for comparison in comparisons]
    if not callable(item):
        raise InvalidSpaceError(f"a constraint is {item!r}", 'write it as text, "x1 + x2 <= 1", or give a function')
    text = f"function {getattr(item, '__name__', type(item).__name__)}"
    margin = FunctionMargin(item, f"the constraint {text}", dict(design))
    return Constraint(text, item), [Relation(margin, False, False, index)]


def stored_constraints(constraints: Sequence[Constraint]) -> list[str]:
    """As text; a function has none."""
    for constraint in constraints:
        if constraint.function is not None:
            raise NotStorableError(
                f"the constraint {constraint.describe()} is Python code and cannot be stored",
                'write it as text, as in "x1 + x2 <= 1", to keep it in a study or in JSON',
            )
    return [constraint.text for constraint in constraints]
