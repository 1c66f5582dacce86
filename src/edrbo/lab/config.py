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
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edrbo.errors import EdrboError, InvalidSpaceError, StudyError
from edrbo.lab.files import LARGEST_DESCRIPTION, describe, is_url, new_file, read_file
from edrbo.records.settings import Settings
from edrbo.space import Categorical, Integer, Real, Space, Variable

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

FORMAT = 1
ABOUT = "A study of edrbo. Once it has begun, `edrbo amend` makes changes of this file official."
VARIABLE_KEYS = (
    "low",
    "high",
    "log",
    "integer",
    "choices",
    "ordered",
    "unit",
    "step",
    "digits",
    "tolerance",
    "default",
)
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
    given = {name: record[name] for name in PLAIN if name in record}
    if "earlier" in given:
        given["earlier"] = _beside(given["earlier"], path.parent)
    settings = Settings(space, **given)
    storage = str(record.get("storage", path.with_suffix(".db").name))
    place = storage if is_url(storage) else str(path.parent / storage)
    try:
        nameable = b"\x00" not in os.fsencode(place)
    except UnicodeEncodeError:  # this machine's names are of other letters
        nameable = False
    if not nameable:
        raise StudyError(
            f"storage is {storage!r}, which cannot be the name of a file", "change it, or set LC_ALL=C.UTF-8"
        )
    return Description(place, str(record.get("name", path.stem)), settings)


def _beside(earlier: Any, folder: Path) -> Any:
    """Earlier studies as a file in ``folder`` names them; tables hold the values themselves."""
    parts = earlier.split(",") if isinstance(earlier, str) else earlier
    if not isinstance(parts, list):
        raise StudyError("earlier must be a list", 'write earlier = ["line1.db"]')
    return [str(folder / part.strip()) if isinstance(part, str) and not is_url(part) else part for part in parts]


def _relative(earlier: list[dict[str, Any]], folder: Path) -> list[Any]:
    """The inverse: where each is kept, as seen from ``folder``, or its values."""
    wheres = [str(part.get("where", "")) for part in earlier]
    return [
        part if not where else where if is_url(where) else os.path.relpath(Path(where).absolute(), folder.absolute())
        for part, where in zip(earlier, wheres, strict=True)
    ]


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
    import tomlkit

    document = tomlkit.document()
    document.add(
        tomlkit.comment("A study of edrbo. Once it has begun, `edrbo amend` makes changes of this file official.")
    )
    for key, value in {"format": FORMAT, "name": name, "storage": storage}.items():
        document.add(_key(key), _item(value))
    _describe(document, document, settings, folder=path.parent)
    with new_file(path, mode=mode) as file:
        file.write(tomlkit.dumps(document).encode())


def rewrite_toml(path: Path, described: Description, settings: Settings) -> None:
    """The same description with other ``settings``, in place of the old one at once. What did not change stays as it
    was written, comments and the form of numbers included."""
    import tomlkit

    with path.open(encoding="utf-8", newline="") as file:
        document, new = tomlkit.parse(file.read()), tomlkit.document()
    _describe(document, new, settings, described.settings, folder=path.parent)
    with new_file(path, force=True) as file:
        file.write(_below_comments(tomlkit.dumps(document), tomlkit.dumps(new)).encode())


def _below_comments(text: str, more: str) -> str:
    """``text`` with ``more`` behind the comments it begins with: the first place where no table has begun."""
    lines = text.splitlines(keepends=True)
    first = next((k for k, line in enumerate(lines) if not line.startswith("#")), len(lines))
    return "".join((*lines[:first], more, *lines[first:]))


def _describe(
    document: TOMLDocument, new: TOMLDocument, settings: Settings, old: Settings | None = None, *, folder: Path
) -> None:
    """Write ``settings`` into ``document``: all, or those that are not as the ``old`` ones. Keys that it does not have
    yet go to ``new``, tables aside."""
    stored, was = settings.to_dict(), None if old is None else old.to_dict()
    for record in (stored, was or {}):
        if record.get("earlier"):
            record["earlier"] = _relative(record["earlier"], folder)
    elsewhere = () if settings.outcomes is None else ("outcome", "direction", "unit", "goal")  # a table says them
    for name in elsewhere:
        document.pop(name, None)
    for choice in settings.choices():
        if choice.name not in (*elsewhere, "outcomes") and (was is None or was[choice.name] != stored[choice.name]):
            needed = choice.name in ALWAYS or getattr(settings, choice.name) != choice.default
            _put(document, new, choice.name, stored[choice.name] if needed else None)
    constraints = [record.get("space", {}).get("constraints") for record in (stored, was or {})]
    if constraints[0] != constraints[1]:
        _put(document, new, "constraints", constraints[0] or None)
    space = settings.space
    _put_table(document, "design", space.design, None if old is None else old.space.design, _variable)
    _put_table(document, "context", space.context, None if old is None else old.space.context, _variable)
    if settings.outcomes is not None:
        before = None if was is None else was["outcomes"]
        _put_table(document, "outcomes", stored["outcomes"], before, lambda part: part)


def _put(document: TOMLDocument, new: TOMLDocument, key: str, value: Any) -> None:
    """None takes the key away."""
    if value is None:
        document.pop(key, None)
    elif key in document:
        document[key] = _item(value)  # what stands behind it on its line stays
    else:
        new.add(_key(key), _item(value))


def _put_table(
    document: TOMLDocument,
    title: str,
    parts: Mapping[str, Any],
    old: Mapping[str, Any] | None,
    form: Callable[[Any], Any],
) -> None:
    """Each of ``parts`` that is not as it was under its name in the table ``title``."""
    import tomlkit

    if title not in document:
        if not parts and old is not None:
            return
        if not document.as_string().endswith("\n\n"):
            document.add(tomlkit.nl())
        document.add(title, tomlkit.table())
    table: Any = document[title]
    for name in [name for name in table if name not in parts]:
        del table[name]
    for name, part in parts.items():
        if old is None or name not in old or name not in table or old[name] != part:
            if name in table:
                table[name] = _item(form(part))
            else:
                table.append(_key(name), _item(form(part)))


def _variable(variable: Variable) -> Any:
    plain = isinstance(variable, Real) and variable == Real(*variable.ends) and variable.default is None
    if isinstance(variable, Real) and plain and variable.bounded:
        return [variable.lower, variable.upper]
    names = {"lower": "low", "upper": "high"}
    given = {key: part for key, part in variable.to_dict().items() if part is not None and part is not False}
    record = {names.get(key, key): part for key, part in given.items()}
    kind = record.pop("kind")
    return record | ({"integer": True} if kind == "integer" else {})


def _key(name: str) -> Any:
    """A key, with letters that could end or disguise it escaped."""
    import tomlkit

    if name.isprintable():
        return tomlkit.key(name)
    from tomlkit.items import KeyType, SingleKey

    return SingleKey(name, t=KeyType.Basic, original=f'"{_escaped(name)}"')


def _escaped(text: str) -> str:
    return "".join(c if c.isprintable() and c not in '"\\' else f"\\U{ord(c):08x}" for c in text)


def _item(value: Any) -> Any:
    """A TOML value: a table on one line, a list, or a scalar; letters that could disguise a text are escaped."""
    import tomlkit

    if isinstance(value, Mapping):
        table = tomlkit.inline_table()
        for name, part in value.items():
            table.append(_key(name), _item(part))
        return table
    if isinstance(value, list | tuple):
        array = tomlkit.array()
        for part in value:
            array.append(_item(part))
        return array
    if isinstance(value, str) and not value.isprintable():
        return tomlkit.value(f'"{_escaped(value)}"')
    return tomlkit.item(value)
