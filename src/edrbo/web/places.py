"""Where the studies are that a server shows: a TOML file, a study file, a folder of them, or a PostgreSQL database.

A request names a study by a word of a table that is made here. Nothing it says becomes a path but the letters, digits
and dashes of a new study's name.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from edrbo.errors import EdrboError, StudyError
from edrbo.records.settings import Settings
from edrbo.study.store.event_store import EventStore
from edrbo.study.store.place import is_url
from edrbo.study.study import Study
from edrbo.study.toml_file import read_toml, write_toml

Opener = Callable[[], Study]
LONGEST = 60  # characters of a name in an address


class Places:
    """The studies at ``where`` by the word that stands for them in addresses."""

    def __init__(self, where: str) -> None:
        self.where = where
        self._lock = threading.Lock()
        self._found: dict[str, tuple[str, Opener]] = {}
        self._kind = _kind(where)
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

    def open(self, word: str) -> Study:
        with self._lock:
            if word not in self._found:
                raise StudyError("there is no such study here", "choose one from the list")
            _, opener = self._found[word]
        return opener()

    def look(self) -> None:
        """Find what is there now."""
        found = self._files() if self._kind in ("folder", "toml") else self._stored(self.where)
        with self._lock:
            known = {(name, word) for word, (name, _) in self._found.items()}
            for name, opener in found:
                if not any(name == old for old, _ in known):
                    word = _free(word_of(name), self._found)
                    self._found[word] = (name, opener)

    def create(self, name: str, settings: Settings) -> str:
        """Make a study and give its word."""
        if name in self.names().values():
            raise StudyError(f"there is a study {name!r} already", "choose another name")
        if self._kind in ("folder", "toml"):
            self._describe(name, settings)
        else:
            Study.open_with(self.where, settings, name=name)
        self.look()
        return next(word for word, known in self.names().items() if known == name)

    # ---------------------------------------------------------------- files

    def _folder(self) -> Path:
        path = Path(self.where).absolute()
        return path if self._kind == "folder" else path.parent

    def _files(self) -> list[tuple[str, Opener]]:
        if self._kind == "toml":
            first = [_described(Path(self.where).absolute())]
            return first + [_described(path) for path in self._made]
        found: list[tuple[str, Opener]] = []
        described: set[str] = set()
        for path in sorted(self._folder().glob("*.toml")):
            try:
                description = read_toml(path)
            except EdrboError:
                continue  # some other TOML file
            described.add(str(Path(description.storage)))
            found.append(_described(path))
        for path in sorted(self._folder().glob("*.db")):
            if str(path) not in described:
                found += self._stored(str(path))
        return found

    _made: tuple[Path, ...] = ()

    def _describe(self, name: str, settings: Settings) -> None:
        path = self._folder() / f"{word_of(name)}.toml"
        write_toml(path, path.with_suffix(".db").name, name, settings)
        try:
            read_toml(path).open()
        except EdrboError:
            path.unlink()
            raise
        self._made = (*self._made, path)

    @staticmethod
    def _stored(where: str) -> list[tuple[str, Opener]]:
        """Every study of a storage that edrbo made."""
        return [(name, _opener(where, name)) for name in EventStore(where).names()]


def _kind(where: str) -> str:
    if is_url(where):
        return "database"
    path = Path(where)
    if path.is_dir():
        return "folder"
    return "toml" if path.suffix == ".toml" else "file"


def _described(path: Path) -> tuple[str, Opener]:
    """The study of a TOML file: made if it does not exist, else as it is now, amendments included."""
    description = read_toml(path)

    def opener() -> Study:
        if not is_url(description.storage) and not Path(description.storage).exists():
            return description.open()
        try:
            return Study.open_with(description.storage, None, name=description.name)
        except StudyError:
            return description.open()

    return description.name, opener


def _opener(where: str, name: str) -> Opener:
    return lambda: Study.open_with(where, None, name=name)


def word_of(name: str) -> str:
    """A study's name as a word of an address or of a file: letters, digits and dashes alone."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9]+", "-", plain)[:LONGEST].strip("-").lower() or "study"


def _free(word: str, taken: dict[str, tuple[str, Opener]]) -> str:
    tries = (word if k == 1 else f"{word}-{k}" for k in range(1, len(taken) + 2))
    return next(found for found in tries if found not in taken)
