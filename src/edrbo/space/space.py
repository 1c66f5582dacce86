"""Design and context variables, and the coding between the user's names and the numbers of the model.

Designs are coded into the unit cube. Contexts are kept in the user's units and coded by a ContextScale only
when a model needs them, because the range of an unbounded context is learned from data.

A row of a context (d_c) holds one number for each context variable, in the user's units; of a categorical it is the
position of the choice. What is not known of a context is NaN.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edrbo.charts import Axis, Chart, Points, chart_image, span
from edrbo.errors import ContextBoundsWarning, InvalidContextError, InvalidDesignError, InvalidSpaceError
from edrbo.html_table import html_table
from edrbo.space.context_scale import ContextScale
from edrbo.space.expressions import Constraint, Relation, read_constraints, stored_constraints
from edrbo.space.feasible_region import Region
from edrbo.space.point_tables import AnyArray, Array, close_match, read_columns
from edrbo.space.tolerance import Tolerance
from edrbo.space.variables import (
    Categorical,
    Column,
    Integer,
    Real,
    Scalar,
    Variable,
    columns_of,
    read_variables,
    variable_from_dict,
)

__all__ = ["Categorical", "Column", "ContextScale", "Integer", "Real", "Space", "Variable"]


Contexts = Sequence[tuple[str, Variable]]
DRAWN = 150  # designs of a picture


def read_rows(variables: Contexts, given: Any, *, partial: bool = False) -> Array:
    """(n, d_c) of contexts as a user gives them.

    ``partial``: of each context something is known, but not all need be; what is None or left out is NaN, and so is an
    empty cell of a data frame.
    """
    names = tuple(name for name, _ in variables)
    columns, count = read_columns(completed(given, names) if partial else given, names, "context", InvalidContextError)
    raw = np.full((count, len(variables)), np.nan)
    for k, ((name, variable), values) in enumerate(zip(variables, columns, strict=True)):
        known = _known(values, frame=hasattr(given, "columns")) if partial else np.ones(count, dtype=np.bool_)
        if known.any() or not partial:
            raw[known, k] = variable.numbers(name, values[known])
    if partial and len(names) and np.isnan(raw).all(axis=1).any():
        raise InvalidContextError("nothing is known of a context", "leave the context out, or give some of it")
    return raw


def completed(given: Any, names: tuple[str, ...]) -> Any:
    """Dicts and data frames with all ``names``, None for what they lack."""
    if hasattr(given, "columns") and hasattr(given, "reindex"):
        return given.reindex(columns=[*given.columns, *(name for name in names if name not in given.columns)])
    if isinstance(given, Mapping):
        missing = [name for name in names if name not in given]
        columns = [part for part in given.values() if isinstance(part, list | tuple | np.ndarray)]
        rows = [len(part) for part in columns if not isinstance(part, np.ndarray) or part.ndim]
        return {**given, **dict.fromkeys(missing, [None] * rows[0] if rows else None)} if missing else given
    if isinstance(given, list | tuple) and given and all(isinstance(row, Mapping) for row in given):
        wanted = len(names)
        if all(len(row) == wanted for row in given):
            return given
        return [row if len(row) == wanted else {**dict.fromkeys(names), **row} for row in given]
    return given


def _known(values: AnyArray, *, frame: bool) -> NDArray[np.bool_]:
    """Which of ``values`` (n) say something. NaN is a mistake, but for a data frame, where it is an empty cell."""
    if values.dtype.kind == "O":
        return np.array([not _is_nothing(value, frame) for value in values], dtype=np.bool_)
    return ~np.isnan(values) if frame and values.dtype.kind == "f" else np.ones(len(values), dtype=np.bool_)


def _is_nothing(value: Any, frame: bool) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType") or (frame and value != value)


def check_levels(variables: Contexts, raw: Array) -> str | None:
    """What is wrong with rows (n, d_c) from a record: a choice that does not exist, a fraction of a whole number."""
    for k, (name, variable) in enumerate(variables):
        if flaw := variable.flaw(name, raw[~np.isnan(raw[:, k]), k]):
            return flaw
    return None


def describe_outside(variables: Contexts, raw: Array) -> list[str]:
    """Which variables leave their bounds in rows (n, d_c), one text each."""
    notes = []
    for (name, variable), values in zip(variables, raw.T, strict=True):
        lower, upper = variable.limits()
        values = values[~np.isnan(values)]
        with np.errstate(over="ignore"):  # an infinite excess is an excess
            excess = np.maximum(lower - values, values - upper)
        count = int((excess > 0).sum())
        if count:
            worst = variable.value_of(float(values[np.argmax(excess)]))
            times = "once" if count == 1 else f"{count} times"
            notes.append(f"{name!r} leaves [{lower!r}, {upper!r}] {times}, worst {worst!r}")
    return notes


def name_rows(variables: Contexts, raw: Array) -> list[dict[str, Scalar]]:
    """Rows (n, d_c) as dicts by name, in the user's values, without what is not known."""
    return [
        {
            name: variable.value_of(number)
            for (name, variable), number in zip(variables, row, strict=True)
            if not math.isnan(number)
        }
        for row in raw.tolist()
    ]


def scale_of(variables: Contexts, raw: Array) -> ContextScale:
    """The coding of each variable: its bounds, or a range learned from what is known of it in rows ``raw`` (n, d_c)."""
    ranges = [variable.coded_range(raw[~np.isnan(raw[:, k]), k]) for k, (_, variable) in enumerate(variables)]
    lower, upper = np.array(ranges, dtype=np.float64).reshape(-1, 2).T
    return ContextScale(
        lower,
        upper,
        tuple(variable.log for _, variable in variables),
        tuple(variable.size > 0 for _, variable in variables),
        tuple(variable.width if variable.width > 1 else 0 for _, variable in variables),
    )


def numbers_of(variables: Contexts, context: Mapping[str, Any]) -> dict[str, float]:
    """Some of a context by name, in the user's values, as the numbers of a row."""
    known = dict(variables)
    return {name: float(known[name].numbers(name, _one(value))[0]) for name, value in context.items()}


def _one(value: Any) -> AnyArray:
    array = np.empty(1, dtype=object)
    array[0] = value
    return array


@dataclass(frozen=True, init=False, repr=False)
class Space:
    """The design variables we choose and the context variables the world chooses.

    For instance ``Space(design={"x": (0, 1), "rate": Real(1e-4, 1, log=True), "layers": Integer(1, 8),
    "kind": ["a", "b"]}, context={"load": (0, 100), "price": None, "shift": ["day", "night"]})``. A pair of numbers is a
    Real, also when both are ints; an Integer must be asked for. A list is a Categorical. Design variables need both
    bounds; those of contexts may be absent. Without context variables this is plain Bayesian
    optimization. The order of naming is the order everywhere. ``constraints`` are what every suggestion must satisfy,
    in the user's units: ``["x1 + x2 <= 1", "0.2 <= a * b <= 80", "a + b + c == 1"]``, or functions of a design.

    Args:
        design: What you set: names to variables, pairs of numbers or lists of choices.
        context: What the world sets, likewise; None in a pair is an absent bound.
        constraints: What every suggestion satisfies: comparisons as text, or functions of a design.
    """

    _design: tuple[tuple[str, Variable], ...]
    _context: tuple[tuple[str, Variable], ...]
    _constraints: tuple[Constraint, ...]
    _relations: tuple[Relation, ...] = field(compare=False)

    def __init__(
        self, design: Mapping[str, Any], context: Mapping[str, Any] | None = None, constraints: Any = ()
    ) -> None:
        designs = read_variables(design, "design")
        contexts = read_variables({} if context is None else context, "context")
        if not designs:
            raise InvalidSpaceError("there is no design variable", 'give one, as in {"x": (0, 1)}')
        for name, variable in designs.items():
            if not variable.bounded:
                raise InvalidSpaceError(f"design variable {name!r} lacks a bound", "write (lower, upper)")
        for name, variable in contexts.items():
            if name in designs:
                raise InvalidSpaceError(f"{name!r} is both a design and a context variable", "rename one")
            if getattr(variable, "tolerance", None) is not None:
                hint = "a tolerance is of what you set; what varies by itself is the context's distribution"
                raise InvalidSpaceError(f"context variable {name!r} has a tolerance", hint)
        object.__setattr__(self, "_design", tuple(designs.items()))
        object.__setattr__(self, "_context", tuple(contexts.items()))
        constraints, relations = read_constraints(constraints, designs, contexts)
        object.__setattr__(self, "_constraints", constraints)
        object.__setattr__(self, "_relations", relations)
        _ = self.region  # a space without any design is found now

    def __repr__(self) -> str:
        constraints = (
            f", constraints={[c.function or c.text for c in self._constraints]!r}" if self._constraints else ""
        )
        return f"Space(design={self.design!r}, context={self.context!r}{constraints})"

    def __str__(self) -> str:
        """A line for each variable and each constraint."""
        lines = [f"{name} ({role}): {text}" for name, role, text in self._facts]
        return "\n".join([*lines, *(c.describe() for c in self._constraints)])

    def _repr_html_(self) -> str:
        """A table of its variables, with designs of two of them, for notebooks."""
        below = [c.describe() for c in self._constraints]
        return html_table("Space", ("variable", "is", "values"), self._facts, below, chart_image(self._chart()))

    @property
    def _facts(self) -> list[tuple[str, str, str]]:
        return [
            (name, role, variable.describe())
            for role, variables in (("set", self._design), ("met", self._context))
            for name, variable in variables
        ]

    def _chart(self) -> Chart:
        """Designs that may be suggested, by the first two variables that a constraint names, or the first two."""
        cloud = np.random.default_rng(0).random((DRAWN, self.d_x))
        coded = self.snap(cloud) if self.region is None else self.region.points(cloud, DRAWN, 0)
        designs = self.decode_designs(coded)
        bound = [name for name in self.design_names if any(name in c.describe() for c in self._constraints)]
        names = [*dict.fromkeys((*bound, *self.design_names))][:2]
        across, x = self._axis(names[0], [design[names[0]] for design in designs])
        upward, y = Axis.of("", (-1.0, 1.0), ("",)), [0.0] * len(designs)
        if len(names) > 1:
            upward, y = self._axis(names[1], [design[names[1]] for design in designs])
        return Chart("Designs", across, upward, (Points(x, y, label="designs that may be suggested", faint=True),))

    def _axis(self, name: str, values: list[Any]) -> tuple[Axis, list[float]]:
        variable = self.design[name]
        title = f"{name} [{variable.unit}]" if variable.unit else name
        places = [float(place) for place in variable.numbers(name, np.array(values, dtype=object))]
        if not variable.numeric:
            return Axis.of(title, (0.0, 1.0), [variable.text(value) for value in variable.grid(0)]), places
        low, high = variable.limits()
        return Axis.of(title, (low, high) if variable.log else span([low, high]), log=variable.log), places

    @property
    def design(self) -> dict[str, Variable]:
        """The design variables by name (a copy)."""
        return dict(self._design)

    @property
    def context(self) -> dict[str, Variable]:
        """The context variables by name (a copy)."""
        return dict(self._context)

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """What every suggestion must satisfy."""
        return self._constraints

    @cached_property
    def region(self) -> Region | None:
        """The designs that may be suggested; None if there are no constraints."""
        return Region(self._design, self._constraints, self._relations) if self._constraints else None

    @cached_property
    def design_names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self._design)

    @cached_property
    def context_names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self._context)

    @cached_property
    def d_x(self) -> int:
        """The width of a coded design; a categorical takes one column per choice."""
        return sum(variable.width for _, variable in self._design)

    @property
    def d_c(self) -> int:
        """The number of context variables."""
        return len(self._context)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The place of each design variable in a coded design, in order."""
        return columns_of(self._design)

    @cached_property
    def tolerances(self) -> dict[str, Tolerance]:
        """Of the design variables that have one."""
        given = {name: getattr(variable, "tolerance", None) for name, variable in self._design}
        return {name: Tolerance.read(one) for name, one in given.items() if one is not None}

    @property
    def continuous(self) -> bool:
        """Whether every design variable is real."""
        return all(column.kind == "real" for column in self.columns)

    def levels(self, name: str) -> Array:
        """Every coded value of an integer or categorical design variable, (size, width).

        ``Column.size`` tells beforehand how many there are.
        """
        variable = self.design.get(name)
        if variable is None:
            hint = close_match(name, self.design_names, f"the design variables are {list(self.design_names)}")
            raise InvalidDesignError(f"{name!r} is not a design variable", hint)
        if not variable.size:
            raise InvalidDesignError(f"{name!r} is real and has no levels", "only integers and categoricals do")
        return variable.levels()

    def encode_designs(self, designs: Any) -> Array:
        """Designs (a dict, dicts, rows in the order of naming, or a DataFrame) → (n, d_x) in the unit cube.

        A design that is not a point of the space is an InvalidDesignError.
        """
        columns, _ = read_columns(designs, self.design_names, "design", InvalidDesignError)
        blocks = [variable.encode(name, values) for (name, variable), values in zip(self._design, columns, strict=True)]
        return np.concatenate(blocks, axis=1)

    def decode_designs(self, coded: Any) -> list[dict[str, Scalar]]:
        """Coded designs (n, d_x), or one (d_x,) → the nearest points of the space, by name."""
        rows = np.atleast_2d(self._coded_designs(coded))
        if rows.ndim != 2:
            raise InvalidDesignError(f"coded designs have shape {rows.shape}", "give (n, d_x)")
        values = [
            variable.decode(rows[:, column.start : column.stop])
            for (_, variable), column in zip(self._design, self.columns, strict=True)
        ]
        return [dict(zip(self.design_names, row, strict=True)) for row in zip(*values, strict=True)]

    def snap(self, coded: Any) -> Array:
        """Coded points (..., d_x) → the nearest coded designs to suggest, same shape; idempotent."""
        rows = self._coded_designs(coded)
        snapped = [
            variable.snap(rows[..., column.start : column.stop])
            for (_, variable), column in zip(self._design, self.columns, strict=True)
        ]
        return np.concatenate(snapped, axis=-1)

    def admit(self, coded: Any) -> Array:
        """Coded points (n, d_x) → designs to suggest near them; under constraints without those that have none near."""
        return self.snap(coded) if self.region is None else self.region.admit(self._coded_designs(coded))

    def settle(self, coded: Any) -> Array:
        """Coded points (..., d_x) → the nearest that can have been set: as ``snap``, but also between steps."""
        rows = self._coded_designs(coded)
        settled = [
            variable.settle(rows[..., column.start : column.stop])
            for (_, variable), column in zip(self._design, self.columns, strict=True)
        ]
        return np.concatenate(settled, axis=-1)

    def _coded_designs(self, coded: Any) -> Array:
        rows = np.asarray(coded, dtype=np.float64)
        if rows.ndim == 0 or rows.shape[-1] != self.d_x:
            raise InvalidDesignError(f"coded designs have shape {rows.shape}", f"a row has {self.d_x} columns")
        if not np.isfinite(rows).all():
            raise InvalidDesignError("a coded design is not finite", "give numbers in [0, 1]")
        return rows

    def read_contexts(self, contexts: Any, *, partial: bool = False) -> Array:
        """Contexts as a user gives them → (n, d_c) in the user's units; of a choice, its position.

        A dict, a dict of arrays, dicts, rows, a DataFrame, or a flat sequence when there is one context
        variable. A value outside its bounds is kept, and one ContextBoundsWarning per call says so.
        With ``partial`` some of a context may be None or left out, and is NaN then.
        """
        raw = read_rows(self._context, contexts, partial=partial)
        self.warn_outside(raw, stacklevel=3)
        return raw

    def _read_rows(self, contexts: Any) -> Array:
        """As ``read_contexts``, without a word about bounds."""
        return read_rows(self._context, contexts)

    def warn_outside(self, raw: Array, stacklevel: int = 2) -> None:
        """Say which contexts (n, d_c) leave their bounds, if any does."""
        if notes := describe_outside(self._context, raw):
            message = f"contexts outside their bounds are kept as they are: {'; '.join(notes)}"
            warnings.warn(message, ContextBoundsWarning, stacklevel=stacklevel)

    def name_contexts(self, raw: Array) -> list[dict[str, Scalar]]:
        """Contexts (n, d_c) → dicts by name, in the user's values, without what is not known."""
        return name_rows(self._context, raw)

    def context_numbers(self, context: Mapping[str, Any]) -> dict[str, float]:
        """Some of a context by name → the numbers by which it is held: of a choice, its position."""
        return numbers_of(self._context, context)

    def known_numbers(self, row: Array) -> dict[str, float]:
        """The same of a context (d_c), without what is not known."""
        return {name: number for name, number in zip(self.context_names, row.tolist(), strict=True) if number == number}

    def context_scale(self, raw: Array) -> ContextScale:
        """The range that codes to [0, 1], per context variable: its bounds, or learned from ``raw`` (n, d_c).

        ``scale.robust_range`` says how an absent bound is replaced. NaN (what is not known) is passed over.
        """
        return scale_of(self._context, raw)

    @cached_property
    def context_width(self) -> int:
        """The width of a coded context; a categorical takes one column per choice."""
        return sum(variable.width for _, variable in self._context)

    def encode_contexts(self, contexts: Any, scale: ContextScale | None = None) -> Array:
        """Contexts → (n, context_width), [0, 1] on the range of the scale and beyond it outside.

        Without a scale the bounds are used; then every context variable must have them.
        """
        raw = read_rows(self._context, contexts)
        return self._scale_or_bounds(scale).encode(raw)

    def decode_contexts(self, coded: Any, scale: ContextScale | None = None) -> list[dict[str, Scalar]]:
        """The inverse of ``encode_contexts``: coded contexts (n, context_width), or one of them → dicts by name."""
        rows = np.atleast_2d(np.asarray(coded, dtype=np.float64))
        if rows.ndim != 2 or rows.shape[1] != self.context_width or not np.isfinite(rows).all():
            raise InvalidContextError(f"coded contexts of shape {rows.shape}", f"give finite (n, {self.context_width})")
        return self.name_contexts(self._scale_or_bounds(scale).decode(rows))

    def _scale_or_bounds(self, scale: ContextScale | None) -> ContextScale:
        if scale is not None:
            return scale
        for name, variable in self._context:
            if not variable.bounded:
                raise InvalidContextError(f"context variable {name!r} has no bounds", "pass scale=context_scale(data)")
        return self.context_scale(np.empty((0, self.d_c)))

    def to_dict(self) -> dict[str, Any]:
        """The space in JSON types; ``from_dict`` gives it back exactly."""
        record: dict[str, Any] = {
            role: [{"name": name, **variable.to_dict()} for name, variable in variables]
            for role, variables in (("design", self._design), ("context", self._context))
        }
        return {**record, "constraints": stored_constraints(self._constraints)} if self._constraints else record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Space:
        """The inverse of ``to_dict``."""
        roles: dict[str, dict[str, Variable]] = {}
        for role in ("design", "context"):
            try:
                entries = [dict(entry) for entry in record[role]]
                names = [entry.pop("name") for entry in entries]
            except (KeyError, TypeError, ValueError):
                raise InvalidSpaceError(f"the record has no usable {role!r}", "it was not written by to_dict") from None
            if not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
                raise InvalidSpaceError(f"a {role} variable has no name of its own", "it was not written by to_dict")
            roles[role] = dict(zip(names, map(variable_from_dict, entries), strict=True))
        return cls(**roles, constraints=record.get("constraints", ()))
