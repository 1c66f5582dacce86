"""Studies described in a TOML file, for people who do not write Python.

format = 1
storage = "coating.db"        # beside this file, or postgresql://user@host/database
direction = "maximize"
method = "edrbo"
constraints = ["speed * dose <= 300"]

[design]
speed = { low = 10, high = 60, unit = "m/min", step = 0.5 }
dose = [1.0, 9.0]
rate = { low = 1e-4, high = 1.0, log = true }
layers = { low = 1, high = 8, integer = true }
kind = { choices = ["a", "b"] }
size = { choices = ["small", "medium", "large"], ordered = true }

[context]
humidity = [0.0, 1.0]
price = {}                    # bounds not known

[outcomes]                    # of a study of several
gloss = "maximize"
roughness = { aim = "limit", upper = 2.0, probability = 0.95 }
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edrbo.errors import EdrboError, InvalidSpaceError, StudyError
from edrbo.records.settings import Settings
from edrbo.space import Categorical, Integer, Real, Space, Variable
from edrbo.study.file_kind import LARGEST_DESCRIPTION, read_file
from edrbo.study.store.place import describe, is_url
from edrbo.study.study import Creation, Study

FORMAT = 1
VARIABLE_KEYS = ("low", "high", "log", "integer", "choices", "ordered", "unit", "step", "digits", "default")
HOW = "write [low, high], or {choices = [...]}"
ALWAYS = ("direction", "method", "seed")  # written also when they are the defaults
PLAIN = tuple(choice.name for choice in Settings.choices())
KEYS = ("format", "name", "storage", *PLAIN, "constraints", "design", "context")


@dataclass(frozen=True)
class Description:
    """What a TOML file says: where the study is kept, its name there, and its settings."""

    storage: str
    name: str
    settings: Settings

    def open(self, create: Creation = "first", *, by: str | None = None) -> Study:
        """The study; a file that was changed since it was made is an error that says what changed.

        By default it is made if its storage is new. ``"always"`` also makes it beside others: not by default, since a
        name that was changed in the file would begin an empty study in silence.
        """
        return Study.open_with(self.storage, self.settings, name=self.name, by=by, create=create)

    def elsewhere(self, path: Path) -> str | None:
        """For people, where the study of the file at ``path`` is kept, if it is not in that folder."""
        if is_url(self.storage):
            return describe(self.storage)
        place = Path(self.storage).resolve()
        return None if place.is_relative_to(path.absolute().parent.resolve()) else str(place)


def read_toml(path: Path) -> Description:
    """The description in ``path``; a relative storage lies beside it."""
    try:
        record = tomllib.loads(read_file(path, LARGEST_DESCRIPTION).decode())
    except OSError as problem:
        raise StudyError(f"cannot read {path}: {problem.strerror}", "make it with `edrbo new`") from None
    except RecursionError:
        raise StudyError(f"{path} is not a description of a study: too much lies inside each other") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise StudyError(f"{path} is not TOML: {problem}") from None
    try:
        return _description(record, path)
    except EdrboError as problem:
        raise StudyError(f"{path}: {problem.message}", problem.hint) from None


def _description(record: Mapping[str, Any], path: Path) -> Description:
    version = record.get("format", FORMAT)
    if not isinstance(version, int) or version > FORMAT:
        raise StudyError(f"the file has format {version!r}", "upgrade edrbo to read it")
    unknown = [key for key in record if key not in KEYS]
    if unknown:
        raise StudyError(f"{unknown[0]!r} is not known here", f"the keys are {', '.join(KEYS)}")
    design, context = record.get("design", {}), record.get("context", {})
    if not isinstance(design, dict) or not isinstance(context, dict):
        raise StudyError("design and context must be tables", "write [design] and below it speed = [1, 9]")
    space = Space(
        {name: read_variable(name, given) for name, given in design.items()},
        {name: read_variable(name, given) for name, given in context.items()},
        record.get("constraints", ()),
    )
    settings = Settings(space, **{name: record[name] for name in PLAIN if name in record})
    storage = str(record.get("storage", path.with_suffix(".db").name))
    place = storage if is_url(storage) else str(path.parent / storage)
    return Description(place, str(record.get("name", path.stem)), settings)


def read_variable(name: str, given: Any) -> Variable:
    """A variable as TOML has it: [low, high], a list of choices, or a table."""
    if isinstance(given, list):
        numbers = len(given) == 2 and all(isinstance(part, int | float) and part is not True for part in given)
        return Real(*given) if numbers else Categorical(tuple(given))
    if not isinstance(given, dict) or set(given) - set(VARIABLE_KEYS):
        raise InvalidSpaceError(f"{name!r} cannot be {given!r}", f"{HOW}; the keys are {', '.join(VARIABLE_KEYS)}")
    names = {"low": "lower", "high": "upper"}
    parts: dict[str, Any] = {names.get(str(key), str(key)): part for key, part in given.items() if key != "integer"}
    try:
        if "choices" in parts:
            return Categorical(**parts)
        return Integer(**parts) if given.get("integer") else Real(**parts)
    except TypeError:
        raise InvalidSpaceError(f"{name!r} cannot be {given!r}", HOW) from None


# -------------------------------------------------------------------- writing


def write_toml(path: Path, storage: str, name: str, settings: Settings, mode: int = 0o600) -> None:
    """Describe a study in a new file, private unless ``mode`` says otherwise."""
    s = settings
    lines = [
        "# A study of edrbo. Once it has begun, `edrbo amend` makes changes of this file official.",
        f"format = {FORMAT}",
        f"name = {_text(name)}",
        f"storage = {_text(storage)}",
    ]
    stored = s.to_dict()
    elsewhere = ("outcomes",) if s.outcomes is None else ("outcomes", "outcome", "direction")  # a table of its own
    for choice in s.choices():
        if choice.name in elsewhere:
            continue
        if choice.name in ALWAYS or getattr(s, choice.name) != choice.default:
            lines.append(f"{choice.name} = {_value(stored[choice.name])}")
    if s.space.constraints:
        lines.append(f"constraints = {_value(stored['space']['constraints'])}")
    for title, variables in (("design", s.space.design), ("context", s.space.context)):
        lines += ["", f"[{title}]", *(f"{_key(key)} = {_variable(variable)}" for key, variable in variables.items())]
    if s.outcomes is not None:
        lines += ["", "[outcomes]", *(f"{_key(key)} = {_value(part)}" for key, part in stored["outcomes"].items())]
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
    except FileExistsError:
        raise StudyError(f"{path} exists already", "choose another name, or delete it") from None
    except OSError as problem:
        raise StudyError(f"cannot write {path}: {problem.strerror}") from None
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.chmod(path, mode)  # whatever the umask
        file.write("\n".join(lines) + "\n")


def _variable(variable: Variable) -> str:
    plain = isinstance(variable, Real) and variable == Real(*variable.ends) and variable.default is None
    if isinstance(variable, Real) and plain and variable.bounded:
        return f"[{variable.lower!r}, {variable.upper!r}]"
    names = {"lower": "low", "upper": "high"}
    given = {key: part for key, part in variable.to_dict().items() if part is not None and part is not False}
    record = {names.get(key, key): part for key, part in given.items()}
    kind = record.pop("kind")
    record |= {"integer": True} if kind == "integer" else {}
    return _value(record) if record else "{}"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


def _value(value: Any) -> str:
    """A TOML value: a table on one line, a list, or a scalar."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_key(name)} = {_value(part)}' for name, part in value.items())} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return _text(value)


def _text(value: Any) -> str:
    """A TOML value; strings with every character that could end or disguise them escaped."""
    if not isinstance(value, str):
        return repr(value).lower() if isinstance(value, bool) else repr(value)
    safe = (c if c.isprintable() and c not in '"\\' else f"\\U{ord(c):08x}" for c in value)
    return f'"{"".join(safe)}"'


def rewrite_toml(path: Path, described: Description, settings: Settings) -> None:
    """The same description with other settings, in place of the old one at once."""
    record = tomllib.loads(path.read_text(encoding="utf-8"))
    beside = path.with_name(f".{path.name}.new")
    mode = path.stat().st_mode & 0o777
    beside.unlink(missing_ok=True)
    write_toml(beside, str(record.get("storage", described.storage)), described.name, settings, mode)
    beside.replace(path)
