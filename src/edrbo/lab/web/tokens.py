"""Tokens of persons and machines: who may read a server's studies, run them, or set them up.

A token is 192 random bits, shown once. Kept is its SHA-256 alone: nobody who reads the file can come in with it, and of
so many bits nothing can be guessed, so it needs no salt and no slow hash.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, get_args

from edrbo.errors import InvalidValueError, StudyError
from edrbo.lab.files import new_file, read_file

Role = Literal["read", "run", "setup"]
ROLES: tuple[Role, ...] = get_args(Role)  # each may do what those before it may
LARGEST = 2**20  # bytes of the file
START = "edrbo_"  # so that a token is recognized where it should not be


@dataclass(frozen=True)
class Person:
    """Whom a token stands for.

    Args:
        name: signs what is entered with the token.
        role: ``read`` looks on, ``run`` asks and reports too, ``setup`` also makes and changes studies.
        created: seconds since 1970.
        digest: of the token, in hexadecimal.
    """

    name: str
    role: Role
    created: float
    digest: str

    def may(self, role: Role) -> bool:
        """Whether this role or a higher one was given."""
        return ROLES.index(self.role) >= ROLES.index(role)


class Tokens:
    """The tokens in a file that its owner alone may read. One that is changed or revoked counts at once, also for a
    server that is running."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._mark: tuple[int, int, int] | None = None
        self._people: dict[str, Person] = {}

    def people(self) -> tuple[Person, ...]:
        """All of them, by name."""
        return tuple(sorted(self._read().values(), key=lambda person: person.name))

    def find(self, token: str) -> Person | None:
        """Whom ``token`` stands for, if it is one."""
        return self._read().get(_digest(token)) if token.startswith(START) else None

    def create(self, name: str, role: Role) -> str:
        """A new token, to be shown once.

        Args:
            name: who will use it.
            role: what they may do.
        """
        if not re.fullmatch(r"[^\W_][\w .@-]{0,59}", name):
            raise InvalidValueError(f"{name!r} cannot be a name", "use letters, digits, spaces and . @ - _")
        if role not in ROLES:
            raise InvalidValueError(f"there is no role {role!r}", f"choose one of {', '.join(ROLES)}")
        known = self._read()
        if any(person.name == name for person in known.values()):
            raise StudyError(f"{name} has a token already", f"revoke it first: edrbo token revoke {name!r}")
        token = START + secrets.token_urlsafe(24)
        self._write([*known.values(), Person(name, role, time.time(), _digest(token))])
        return token

    def revoke(self, name: str) -> None:
        """The token of ``name`` lets nobody in any more."""
        known = self._read()
        left = [person for person in known.values() if person.name != name]
        if len(left) == len(known):
            raise StudyError(f"{name!r} has no token", "edrbo token list says who has one")
        self._write(left)

    def _read(self) -> dict[str, Person]:
        """Digest → person, as the file has them now."""
        with self._lock:
            try:
                found = os.stat(self.path)
            except FileNotFoundError:
                self._mark, self._people = None, {}
                return {}
            mark = (found.st_ino, found.st_mtime_ns, found.st_size)
            if mark != self._mark:
                self._people = _parse(self.path)
                self._mark = mark
            return self._people

    def _write(self, people: list[Person]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        text = json.dumps({"tokens": [asdict(person) for person in people]}, indent=1)
        with new_file(self.path, force=True, mode=0o600) as file:
            file.write(text.encode())


def default_path() -> Path:
    """Where this user's tokens are, unless ``--tokens`` or ``EDRBO_TOKENS`` says otherwise."""
    folder = os.environ.get("XDG_STATE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(folder) if folder else Path.home() / ".local" / "state") / "edrbo" / "tokens.json"


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _parse(path: Path) -> dict[str, Person]:
    problem = StudyError(f"{path} cannot be read as tokens", "restore it, or remove it and make new ones")
    try:
        rows = json.loads(read_file(path, LARGEST))["tokens"]
        people = [Person(str(row["name"]), row["role"], float(row["created"]), str(row["digest"])) for row in rows]
    except (OSError, ValueError, TypeError, KeyError):
        raise problem from None
    if any(person.role not in ROLES for person in people):
        raise problem
    return {person.digest: person for person in people}
