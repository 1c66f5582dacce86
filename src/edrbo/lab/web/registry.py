"""The registry of studies that a server shows: a TOML file, a study file, a folder of them, or a PostgreSQL database.

A request names a study by a word of a table that is made here. Nothing it says becomes a path but the letters, digits
and dashes of a new study's name.

A folder may be one that others write to. Of it only regular files are opened, and only studies that are kept in it: a
TOML file there cannot lead the server to other files, and to no database that was not named when it was started. What
cannot be served is listed with the reason, and holds up nothing else.
"""

from __future__ import annotations

import itertools
import logging
import re
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from edrbo.errors import EdrboError, ExistsAlreadyError, StudyError, UnknownStudyError
from edrbo.lab.config import Description, read_toml, write_toml
from edrbo.lab.files import LARGEST_DESCRIPTION, FileKind, file_kind, is_url, read_file
from edrbo.lab.store.event_store import EventStore
from edrbo.lab.study import Study
from edrbo.records.settings import Settings

log = logging.getLogger("edrbo.lab.web")

Opener = Callable[[], Study]
Found = list[tuple[str, Opener]]
NOBODY = ""  # who enters something says so: it is never signed with the login of the server
LONGEST = 60  # characters of a name in an address
MOST_FILES = 1000  # of a folder
MOST_SECONDS = 5.0  # for one look at a folder; what is left is looked at the next time
LARGEST_LISTED = 512 * 2**20  # bytes of a file that is opened without being asked for by name


@dataclass(frozen=True)
class _Looked:
    """What was found in a file: studies, or the reason why none of it is served; ``storage`` of a description."""

    studies: Found = field(default_factory=list)
    reason: str = ""
    storage: Path | None = None


class StudyRegistry:
    """The studies at ``where`` by the word that stands for them in addresses."""

    def __init__(self, where: str, databases: tuple[str, ...] = ()) -> None:
        """
        Args:
            where: as it was named on the command line.
            databases: URLs that TOML files of a folder may name.
        """
        self.where = where
        self._databases = databases
        self._lock = threading.Lock()
        self._found: dict[str, tuple[str, Opener]] = {}
        self._problems: dict[str, str] = {}
        self._known: dict[Path, tuple[object, _Looked]] = {}  # file → its mark, and what was found in it
        self._kind = _kind(where)
        if self._kind in ("toml", "file") and (reason := file_kind(Path(where)).reason):
            raise StudyError(f"{where} cannot be served: {reason}", "name a study's file, or a folder of them")
        self.look()

    @property
    def title(self) -> str:
        """The place for people to read: of a database its name alone."""
        if not is_url(self.where):
            return Path(self.where).absolute().name
        return urlsplit(self.where).path.strip("/") or "the database"

    def names(self) -> dict[str, str]:
        """Word → name of the study."""
        with self._lock:
            return {word: name for word, (name, _) in self._found.items()}

    def problems(self) -> dict[str, str]:
        """Name of a file → why it is not served."""
        with self._lock:
            return dict(self._problems)

    def open(self, word: str) -> Study:
        with self._lock:
            if word not in self._found:
                raise UnknownStudyError("there is no such study here", "choose one from the list")
            _, opener = self._found[word]
        return opener()

    def look(self) -> None:
        """Find what is there now."""
        if self._kind == "folder":
            found, problems = self._folders()
        else:
            found, problems = (self._files() if self._kind == "toml" else _stored(self.where)), {}
        with self._lock:
            self._problems = problems
            known = {(name, word) for word, (name, _) in self._found.items()}
            for name, opener in found:
                if not any(name == old for old, _ in known):
                    word = _free(word_of(name), self._found)
                    self._found[word] = (name, opener)

    def create(self, name: str, settings: Settings) -> str:
        """Make a study and give its word; sent twice, it is made once."""
        self.look()  # another server may have made it just now
        there = next((word for word, known in self.names().items() if known == name), None)
        if there is not None:
            state = self.open(there).state
            if not state.history and not settings.differences(state.settings):
                return there
            raise ExistsAlreadyError(f"there is a study {name!r} already", "choose another name")
        if self._kind in ("folder", "toml"):
            self._describe(name, settings)
        else:
            Study.open_with(self.where, settings, name=name, by=NOBODY)
        self.look()
        return next(word for word, known in self.names().items() if known == name)

    # ---------------------------------------------------------------- files

    def _folder(self) -> Path:
        path = Path(self.where).absolute()
        return path if self._kind == "folder" else path.parent

    def _files(self) -> Found:
        return [_described(path, read_toml(path)) for path in (Path(self.where).absolute(), *self._made)]

    def _folders(self) -> tuple[Found, dict[str, str]]:
        """What a folder holds, and what in it cannot be served."""
        folder, end = self._folder().resolve(), time.monotonic() + MOST_SECONDS
        described: set[Path] = set()
        found: Found = []
        problems: dict[str, str] = {}
        for number, path in enumerate(_candidates(folder)):
            if number >= MOST_FILES:
                problems["…"] = f"more than {MOST_FILES} files; serve those that are wanted by name"
                break
            if path in described:
                continue
            mark = _mark(path)
            known = self._known.get(path)
            if known is None or known[0] != mark:
                if time.monotonic() > end:
                    problems[path.name] = "it is looked at later"
                    continue
                known = self._known[path] = (mark, self._look_at(path, folder))
            looked = known[1]
            found += looked.studies
            if looked.reason:
                problems[path.name] = looked.reason
            if looked.storage is not None:
                described.add(looked.storage)
        return found, problems

    def _look_at(self, path: Path, folder: Path) -> _Looked:
        """The studies of one file, or why there are none to be served."""
        try:
            kind = file_kind(path)
            if kind.reason:
                return _Looked(reason=kind.reason)
            if not path.resolve().is_relative_to(folder):
                return _Looked(reason="a link that leads out of the folder")
            if path.stat().st_size > LARGEST_LISTED:
                return _Looked(reason="it is very large; serve it by its own name")
            if kind.kind == "description":
                return self._look_at_description(path)
            if kind.kind == "empty":
                return _Looked()  # somebody is making it
            studies = _stored(str(path))
            return _Looked(studies, "" if studies else "there is no study in it")
        except EdrboError as problem:
            return _Looked(reason=problem.message)
        except Exception:  # somebody else's file, whatever is in it, must not keep the others from being served
            log.exception("a file of the folder cannot be read")
            return _Looked(reason="it cannot be read")

    def _look_at_description(self, path: Path) -> _Looked:
        if b"design" not in read_file(path, LARGEST_DESCRIPTION):
            return _Looked()  # of another program
        description = read_toml(path)
        if description.storage in self._databases:
            return _Looked([_described(path, description)])
        if (elsewhere := description.elsewhere(path)) is not None:
            hint = "; name that with --database" if is_url(description.storage) else ""
            return _Looked(reason=f"its study is kept elsewhere, in {elsewhere}{hint}")
        storage = Path(description.storage)
        kind = file_kind(storage) if storage.exists() or storage.is_symlink() else FileKind("missing")
        if storage.suffix != ".db" or kind.kind not in ("missing", "study"):
            return _Looked(reason=f"its study cannot be kept in {storage.name}, which is no study file")
        return _Looked([_described(path, description)], storage=storage)

    _made: tuple[Path, ...] = ()

    def _describe(self, name: str, settings: Settings) -> None:
        tries = (word_of(name) if k == 1 else f"{word_of(name)}-{k}" for k in itertools.count(1))
        paths = (self._folder() / f"{word}.toml" for word in tries)
        path = next(path for path in paths if not path.exists() and not path.with_suffix(".db").exists())
        write_toml(path, path.with_suffix(".db").name, name, settings)
        try:
            Study.described(read_toml(path))
        except EdrboError:
            path.unlink()
            raise
        self._made = (*self._made, path)


def _candidates(folder: Path) -> Iterator[Path]:
    """Those that may hold a study, by name; descriptions first."""
    for ending in ("*.toml", "*.db"):
        yield from sorted(folder.glob(ending))


def _mark(path: Path) -> object:
    """Another one whenever a file has changed, or the log beside it in which SQLite keeps what is new."""
    marks: list[tuple[int, ...] | None] = []
    for one in (path, path.with_name(f"{path.name}-wal")):
        try:
            found = one.stat()
        except OSError:
            marks.append(None)
        else:
            marks.append((found.st_mode, found.st_ino, found.st_size, found.st_mtime_ns))
    return marks


def _stored(where: str) -> Found:
    """Every study of a storage that edrbo made."""
    return [(name, _opener(where, name)) for name in EventStore(where).names()]


def _kind(where: str) -> str:
    if is_url(where):
        return "database"
    path = Path(where)
    if path.is_dir():
        return "folder"
    return "toml" if path.suffix == ".toml" else "file"


def _described(path: Path, description: Description) -> tuple[str, Opener]:
    """The study of a TOML file: made if it does not exist, else as it is now, amendments included."""

    def opener() -> Study:
        if not is_url(description.storage) and not Path(description.storage).exists():
            return Study.described(description, by=NOBODY)
        try:
            return Study.open_with(description.storage, None, name=description.name, by=NOBODY)
        except StudyError:
            return Study.described(description, by=NOBODY)

    return description.name, opener


def _opener(where: str, name: str) -> Opener:
    return lambda: Study.open_with(where, None, name=name, by=NOBODY)


def word_of(name: str) -> str:
    """A study's name as a word of an address or of a file: letters, digits and dashes alone."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9]+", "-", plain)[:LONGEST].strip("-").lower() or "study"


def _free(word: str, taken: dict[str, tuple[str, Opener]]) -> str:
    tries = (word if k == 1 else f"{word}-{k}" for k in range(1, len(taken) + 2))
    return next(found for found in tries if found not in taken)
