"""Earlier studies: what other machines, campaigns or a simulator measured, as values; related to this study, not it.

Variables, units and levels are matched by name. What is the same for certain is converted (``FACTORS``); a variable
that only this study has takes its ``default``, the value that earlier runs had; everything else is an error that says
what to do. Runs outside the ranges here, or with a condition that was not known, are left out and counted.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edrbo.errors import EdrboError, InvalidContextError, InvalidDesignError, InvalidValueError, UnknownNameError
from edrbo.space.point_tables import close_match
from edrbo.space.space import Space
from edrbo.space.variables import Categorical, Variable

Array = NDArray[np.float64]
Columns = tuple[tuple[str, tuple[Any, ...]], ...]

HOW = 'name a study, as earlier=["line1.db"], or give edrbo.EarlierStudy(name, designs, outcomes, contexts)'
MAIN = ""  # stands for the main outcome, where the outcomes were given without a name
MOST_STUDIES = 8

# What a unit is in the first of its line; a unit that is not here is only ever the same as itself.
FACTORS: tuple[dict[str, float], ...] = (
    {"m": 1.0, "km": 1e3, "dm": 0.1, "cm": 1e-2, "mm": 1e-3, "um": 1e-6, "µm": 1e-6, "μm": 1e-6, "nm": 1e-9},
    {"s": 1.0, "ms": 1e-3, "min": 60.0, "h": 3600.0, "d": 86400.0},
    {"kg": 1.0, "t": 1e3, "g": 1e-3, "mg": 1e-6},
    {"Pa": 1.0, "hPa": 1e2, "mbar": 1e2, "kPa": 1e3, "bar": 1e5, "MPa": 1e6},
    {"l": 1.0, "L": 1.0, "ml": 1e-3, "mL": 1e-3},
    {"W": 1.0, "kW": 1e3, "MW": 1e6},
    {"V": 1.0, "mV": 1e-3, "kV": 1e3},
    {"A": 1.0, "mA": 1e-3},
    {"Hz": 1.0, "kHz": 1e3, "MHz": 1e6},
)
CELSIUS, KELVIN = ("°C", "degC"), ("K",)


def conversion(given: str, wanted: str) -> tuple[float, float] | None:
    """(factor, offset) from one unit to another; None if that is not certain. No unit is the same as any."""
    if given == wanted or not given or not wanted:
        return 1.0, 0.0
    if given in CELSIUS + KELVIN and wanted in CELSIUS + KELVIN:
        cold = 273.15
        return 1.0, (cold if given in CELSIUS else 0.0) - (cold if wanted in CELSIUS else 0.0)
    sizes = _size(given), _size(wanted)
    if sizes[0] is None or sizes[1] is None or sizes[0][1] != sizes[1][1]:
        return None
    return sizes[0][0] / sizes[1][0], 0.0


def _size(unit: str) -> tuple[float, tuple[int, ...]] | None:
    """How large a unit is, and of what: "m/min" is a length by a time."""
    size, kinds = 1.0, []
    for k, part in enumerate(unit.split("/")):
        found = [(number, line[part]) for number, line in enumerate(FACTORS) if part in line]
        if not found:
            return None
        size = size * found[0][1] if k == 0 else size / found[0][1]
        kinds.append(found[0][0])
    return size, tuple(kinds)


@dataclass(frozen=True)
class EarlierStudy:
    """Runs of a source that is related to this study: another machine, another campaign, a simulator.

    Args:
        name: What it is called here.
        designs: What was set, as dicts, a dict of columns or a data frame; columns that are contexts here may be among
            them.
        outcomes: What was measured: numbers, or columns by the names of outcomes. None: this one was not measured.
        contexts: What the world set, likewise.
        noise_variances: Known variances of the noise, like ``outcomes``.
        units: Units by name, of variables and outcomes, where they are not those of this study.
        where: The study it was read from.

    >>> import edrbo
    >>> line_1 = edrbo.EarlierStudy("line 1", [{"speed": 20}, {"speed": 30}], [70.1, 82.4])
    >>> space = edrbo.Space({"speed": (10, 60)})
    >>> len(edrbo.Optimizer(space, earlier=[line_1]).settings.earlier.parts[0])
    2
    """

    name: str
    designs: Any
    outcomes: Any
    contexts: Any = ()
    noise_variances: Any = ()
    units: Any = ()
    where: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip() or not self.name.isprintable():
            raise InvalidValueError(f"an earlier study is called {self.name!r}", "give it a name on one line")
        for part in ("designs", "contexts", "outcomes", "noise_variances"):
            object.__setattr__(self, part, _columns(getattr(self, part), self.name, part))
        units = dict(self.units)
        object.__setattr__(self, "units", tuple((str(name), str(unit)) for name, unit in units.items()))
        counts = {len(column) for _, column in (*self.designs, *self.contexts, *self.outcomes, *self.noise_variances)}
        if len(counts) > 1:
            raise InvalidValueError(
                f"the columns of {self.name!r} have {min(counts)} to {max(counts)} rows", "each run is a row of all"
            )
        for name, column in (*self.outcomes, *self.noise_variances):
            _check_numbers(self.name, name, column)

    def __len__(self) -> int:
        return len(self.designs[0][1]) if self.designs else 0

    @property
    def is_read(self) -> bool:
        """Whether it is there as values, not only by where it is kept."""
        return bool(self.designs)

    @classmethod
    def at(cls, where: str) -> EarlierStudy:
        """One that is kept somewhere, not read yet: a file or a URL, with #name where there are several."""
        file, _, name = where.partition("#")
        return cls(name or _file(file).rpartition(".")[0] or file, (), (), where=where)

    @classmethod
    def of(cls, study: Any, *, name: str | None = None, where: str = "") -> EarlierStudy:
        """The reported runs of a study or an optimizer.

        Args:
            study: A ``Study`` or an ``Optimizer``.
            name: What it is called here; by default its own name.
            where: Where it is kept.
        """
        state = study.state  # of records.state, which is about settings, and so about this
        called = name or getattr(study, "name", None) or state.settings.title or "earlier"
        wanted = state.settings.outcomes
        names = [state.settings.outcome, *([] if wanted is None else wanted.others)]
        designs: list[dict[str, Any]] = []
        contexts: list[dict[str, Any]] = []
        outcomes: dict[str, list[float | None]] = {each: [] for each in names}
        variances: dict[str, list[float | None]] = {each: [] for each in names}
        units = {key: one.unit for key, one in {**state.space.design, **state.space.context}.items() if one.unit}
        for each in names:
            own = state if wanted is None else state.of_outcome(each)
            found = own.observations
            if own.settings.unit:
                units[each] = own.settings.unit
            if not len(found):
                continue
            designs += state.space.decode_designs(found.x)
            contexts += state.space.name_contexts(found.c)
            for other in names:
                here = other == each
                outcomes[other] += found.y.tolist() if here else [None] * len(found)
                noises = [None if math.isnan(v) else v for v in found.noise_variance.tolist()]
                variances[other] += noises if here else [None] * len(found)
        if not designs:
            raise EdrboError(f"{called!r} has no runs yet, so nothing can be learned from it", "leave it out")
        completed = [{key: row.get(key) for key in state.space.context_names} for row in contexts]
        return cls(called, designs, outcomes, completed if state.space.d_c else (), variances, units, where)

    def to_dict(self) -> dict[str, Any]:
        """In JSON types."""
        if not self.is_read:
            return {"where": self.where}
        parts = ("designs", "contexts", "outcomes", "noise_variances")
        columns = {part: {name: list(column) for name, column in getattr(self, part)} for part in parts}
        known = {
            part: {name: [_or_none(v) for v in column] for name, column in found.items()}
            for part, found in columns.items()
            if found
        }
        units = {"units": dict(self.units)} if self.units else {}
        return {"name": self.name, **known, **units, **({"where": self.where} if self.where else {})}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> EarlierStudy:
        """The inverse of ``to_dict``."""
        unknown = set(record) - set(cls.__dataclass_fields__)
        if unknown:
            raise InvalidValueError(f"{min(unknown)!r} is no part of an earlier study", HOW)
        if "designs" not in record and "where" in record:
            return cls.at(str(record["where"]))
        try:
            return cls(**{name: _given(name, part) for name, part in record.items()})
        except TypeError:
            raise InvalidValueError("this is no earlier study", HOW) from None


def _file(where: str) -> str:
    """Its last part."""
    return where.replace("\\", "/").rpartition("/")[2]


def _or_none(value: Any) -> Any:
    return "" if value is None else value


def _given(name: str, part: Any) -> Any:
    """A column of a record: TOML has no nothing, so an empty text stands for it."""
    if not isinstance(part, Mapping) or name == "units":
        return part
    return {key: [None if value == "" else value for value in column] for key, column in part.items()}


def _columns(given: Any, study: str, part: str) -> Columns:
    if hasattr(given, "columns") and hasattr(given, "to_dict"):  # a data frame
        given = {str(name): given[name].tolist() for name in given.columns}
    if isinstance(given, Mapping):
        return tuple((str(name), tuple(_plain(value) for value in column)) for name, column in given.items())
    rows = [] if given is None else list(given)
    if not rows:
        return ()
    if all(isinstance(row, tuple) and len(row) == 2 and isinstance(row[1], tuple) for row in rows):
        return tuple(rows)  # as it is kept here
    if all(isinstance(row, Mapping) for row in rows):
        names = dict.fromkeys(str(name) for row in rows for name in row)
        return tuple((name, tuple(_plain(row.get(name)) for row in rows)) for name in names)
    if part in ("outcomes", "noise_variances"):
        return ((MAIN, tuple(_plain(value) for value in rows)),)
    raise InvalidValueError(f"the {part} of {study!r} have no names", "give dicts, a dict of columns or a data frame")


def _plain(value: Any) -> Any:
    """As JSON has it; NaN is nothing."""
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and math.isnan(value) else value


def _check_numbers(study: str, name: str, column: Iterable[Any]) -> None:
    for value in column:
        number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if value is not None and not number:
            raise InvalidValueError(f"an outcome {name!r} of {study!r} is {value!r}", "it is a finite number, or None")


@dataclass(frozen=True, eq=False)
class EarlierRuns:
    """Those of one source that say something of one outcome: coded designs k × d_x, contexts k × d_c as they are kept,
    outcomes k, noise variances k (NaN: not known); ``outside`` others did not fit the ranges here."""

    name: str
    x: Array
    c: Array
    y: Array
    noise_variance: Array
    outside: int


@dataclass(frozen=True)
class EarlierStudies:
    """``parts`` in terms of ``space``."""

    parts: tuple[EarlierStudy, ...]
    space: Space = field(compare=False, repr=False)
    _known: dict[tuple[str, str], tuple[EarlierRuns, ...]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    @property
    def is_read(self) -> bool:
        return all(part.is_read for part in self.parts)

    @cached_property
    def digest(self) -> str:
        """A fingerprint of all that was measured."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()

    def same(self, other: EarlierStudies) -> bool:
        """Whether they are the same sources; one that was read from a file goes on as it was then, and files move."""
        if len(self.parts) != len(other.parts):
            return False
        pairs = zip(self.parts, other.parts, strict=True)
        return all(a == b or (bool(a.where) and _file(a.where) == _file(b.where)) for a, b in pairs)

    def runs(self, outcome: str, unit: str) -> tuple[EarlierRuns, ...]:
        """What each source says of an outcome, without those that say nothing."""
        if (outcome, unit) not in self._known:
            found = [_runs(part, self.space, outcome, unit) for part in self.parts]
            self._known[outcome, unit] = tuple(each for each in found if each is not None and len(each.y))
        return self._known[outcome, unit]

    def to_text(self) -> str:
        """For people: "line1 (40 runs), simulator (200 runs)"."""
        return ", ".join(f"{part.name} ({len(part)} runs)" if part.is_read else part.name for part in self.parts)

    def to_dict(self) -> list[dict[str, Any]]:
        """JSON types."""
        return [part.to_dict() for part in self.parts]


def as_earlier(given: Any, space: Space, outcomes: Sequence[str], unit: str) -> EarlierStudies | None:
    """Earlier studies in terms of ``space``, the main one of ``outcomes`` first; None for none."""
    if isinstance(given, EarlierStudies):
        if given.space == space:  # it was looked at already
            return given
        given = given.parts
    if given is None or (isinstance(given, str) and given.strip().lower() in ("", "none")):
        return None
    if isinstance(given, str):
        given = [part.strip() for part in given.split(",")]
    if not isinstance(given, list | tuple):
        given = [given]
    parts = tuple(map(_part, given))
    if not parts:
        return None
    names = [part.name for part in parts]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidValueError(f"two earlier studies are called {twice!r}", "give each a name of its own")
    if len(parts) > MOST_STUDIES:
        raise InvalidValueError(f"there are {len(parts)} earlier studies", f"give at most {MOST_STUDIES}")
    found = EarlierStudies(parts, space)
    for part in parts:
        if part.is_read:
            _check(part, space, outcomes, unit)
    return found


def _part(given: Any) -> EarlierStudy:
    if isinstance(given, EarlierStudy):
        return given
    if isinstance(given, Mapping):
        return EarlierStudy.from_dict(given)
    if hasattr(given, "state"):
        return EarlierStudy.of(given)
    if isinstance(given, str) or hasattr(given, "__fspath__"):
        return EarlierStudy.at(str(given))
    raise InvalidValueError(f"{type(given).__name__} is no earlier study", HOW)


def _check(part: EarlierStudy, space: Space, outcomes: Sequence[str], unit: str) -> None:
    """InvalidDesignError, InvalidContextError or UnknownNameError for what cannot be matched."""
    names = [name for name, _ in part.outcomes]
    if not any(name in (MAIN, *outcomes) for name in names):
        hint = close_match(outcomes[0], tuple(names), f"it has {', '.join(names)}; give it the same name in both")
        raise UnknownNameError(f"{part.name!r} has no outcome {outcomes[0]!r}", hint)
    for name, column in part.designs:
        if name in space.design or name in space.context or len(set(column)) < 2:
            continue  # what was the same in all runs is nothing that was set
        hint = close_match(name, (*space.design_names, *space.context_names), "add it here, or take those runs out")
        raise InvalidDesignError(f"{part.name!r} varied {name!r}, which is no variable here", hint)
    given = _run_columns(part)
    for name, variable in {**space.design, **space.context}.items():
        error = InvalidDesignError if name in space.design else InvalidContextError
        if name not in given and variable.default is None:
            hint = f"say what it was in those runs: give {name!r} a default"
            raise error(f"{part.name!r} has no {name!r}", hint)
        if name in given:
            _converted(part, name, variable, given[name], error)
    kept = [runs for outcome in outcomes if (runs := _runs(part, space, outcome, unit)) is not None and len(runs.y)]
    if not kept:
        hint = "ranges here must hold some of its runs, with a context that is known"
        raise InvalidValueError(f"none of the {len(part)} runs of {part.name!r} is within the ranges here", hint)


def _run_columns(part: EarlierStudy) -> dict[str, tuple[Any, ...]]:
    return {**dict(part.contexts), **dict(part.designs)}


def _converted(
    part: EarlierStudy, name: str, variable: Variable, column: tuple[Any, ...], error: type[EdrboError]
) -> list[Any]:
    """``column`` in the units here; an error for a level or a unit that is not known here."""
    if isinstance(variable, Categorical):
        unknown = [value for value in dict.fromkeys(column) if value is not None and value not in variable.choices]
        if unknown:
            hint = close_match(str(unknown[0]), tuple(map(str, variable.choices)), f"the levels are {variable.choices}")
            raise error(f"{part.name!r} has {name} = {unknown[0]!r}, which is no level here", hint)
        return list(column)
    factor, offset = _factor(part, name, variable.unit)
    if factor == 1.0 and offset == 0.0:
        return list(column)
    return [None if value is None else factor * float(value) + offset for value in column]


def _factor(part: EarlierStudy, name: str, wanted: str) -> tuple[float, float]:
    given = dict(part.units).get(name, "")
    found = conversion(given, wanted)
    if found is None:
        hint = f"only what is certain is converted; give its values in {wanted}, with units={{{name!r}: {wanted!r}}}"
        raise InvalidValueError(f"{part.name!r} has {name!r} in {given}, and here it is in {wanted}", hint)
    return found


def _runs(part: EarlierStudy, space: Space, outcome: str, unit: str) -> EarlierRuns | None:
    """None if it did not measure this outcome."""
    measured, variances = dict(part.outcomes), dict(part.noise_variances)
    key = outcome if outcome in measured else MAIN
    if key not in measured:
        return None
    factor, offset = _factor(part, outcome, unit)
    given = _run_columns(part)
    columns: dict[str, list[Any]] = {}
    for name, variable in {**space.design, **space.context}.items():
        error = InvalidDesignError if name in space.design else InvalidContextError
        known = given.get(name, (variable.default,) * len(part))
        columns[name] = _converted(part, name, variable, known, error)
    noises = variances.get(key, (None,) * len(part))
    rows: list[tuple[Array, Array, float, float]] = []
    outside = 0
    for k, value in enumerate(measured[key]):
        if value is None:
            continue
        row = {name: column[k] for name, column in columns.items()}
        place = None if any(cell is None for cell in row.values()) else _place(space, row)
        if place is None:
            outside += 1
            continue
        noise = math.nan if noises[k] is None else factor**2 * float(noises[k])
        rows.append((*place, factor * float(value) + offset, noise))
    return EarlierRuns(
        part.name,
        np.array([row[0] for row in rows]).reshape(len(rows), space.d_x),
        np.array([row[1] for row in rows]).reshape(len(rows), space.d_c),
        np.array([row[2] for row in rows], dtype=np.float64),
        np.array([row[3] for row in rows], dtype=np.float64),
        outside,
    )


def _place(space: Space, row: Mapping[str, Any]) -> tuple[Array, Array] | None:
    """The coded design and the context of a run; None if it lies outside the ranges of the designs."""
    try:
        x = space.encode_designs({name: row[name] for name in space.design_names})[0]
    except InvalidDesignError:
        return None
    if not space.d_c:
        return x, np.zeros(0)
    return x, space._read_rows({name: row[name] for name in space.context_names})[0]
