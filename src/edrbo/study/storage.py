"""Where studies are kept: Optuna's journal in a private file, or PostgreSQL by URL."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from optuna.exceptions import StorageInternalError
from optuna.storages import BaseStorage, RDBStorage, get_storage

from edrbo.errors import EdrboError, MissingExtraError, StudyError, UnavailableError

SQLITE = b"SQLite format 3\x00"
SECRETS = ("password", "passfile", "sslpassword", "sslkey")  # of a PostgreSQL URL's query


def is_url(where: str | Path) -> bool:
    return "://" in str(where)


def describe(where: str | Path) -> str:
    """``where`` for people to read: a path, or a URL without its password, which may itself hold an @ or a /."""
    if not is_url(where):
        return str(where)
    kind, rest = str(where).split("://", 1)
    login, at, place = rest.rpartition("@")
    user = login.partition(":")[0] if at else ""
    if any(sign in user for sign in "/?"):  # not a name: whatever this is, it may be secret
        return f"{kind}://…"
    place, mark, query = place.partition("?")
    words = [
        word if word.partition("=")[0].lower() not in SECRETS else f"{word.partition('=')[0]}=***"
        for word in query.split("&")
    ]
    hidden = ":***" if ":" in login else ""
    return f"{kind}://{user}{hidden}{at}{place}{mark}{'&'.join(words)}"


def open_storage(where: str | Path, *, create: bool) -> BaseStorage:
    """The storage at a path or a ``postgresql://`` URL; without ``create`` a file must exist."""
    return _open_url(str(where)) if is_url(where) else _open_file(Path(where), create)


def _open_file(path: Path, create: bool) -> BaseStorage:
    from edrbo.study.journal import FileStorage, JournalFile
    from edrbo.study.lock import study_file_lock

    with guard(path, "open"):
        if create:
            create_private(path)
        check_is_file(path)
        return FileStorage(JournalFile(str(path), study_file_lock(str(path))))


def check_is_file(path: Path) -> None:
    """Refuse what cannot be a study file."""
    if not path.exists():
        raise StudyError(f"there is no study at {path}", "create one with a space, or with `edrbo new`")
    if path.is_dir():
        raise StudyError(f"{path} is a folder", "name the study's file")
    with path.open("rb") as file:
        start = file.read(len(SQLITE))
    if start == SQLITE:
        raise StudyError(f"{path} is an SQLite database, not a study file", "SQLite cannot serve many writers")
    if start and not start.startswith(b"{"):
        raise StudyError(
            f"{path} is not a study file, or its first line is damaged",
            "choose another file name, or `edrbo repair` it",
        )


def create_private(path: Path) -> None:
    """Make an empty file that only its owner may read, unless it exists."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return


def _open_url(url: str) -> BaseStorage:
    from sqlalchemy.exc import IntegrityError, ProgrammingError

    with_driver = _with_driver(url)
    with guard(url, "open"):
        for _ in range(4):
            try:
                return _database(with_driver)
            except (IntegrityError, ProgrammingError):  # another process is creating the tables just now
                continue
        return _database(with_driver)


_DATABASES: WeakKeyDictionary[BaseStorage, RDBStorage] = WeakKeyDictionary()  # Optuna's cache → what is behind it


def _database(url: str) -> BaseStorage:
    behind = RDBStorage(url, engine_kwargs={"pool_pre_ping": True})
    storage = get_storage(behind)
    _DATABASES[storage] = behind
    return storage


def written(storage: BaseStorage) -> str | None:
    """A text that changes whenever anybody has written to a database, in one short question to it; None of others.

    It lists the transactions that PostgreSQL regards as done; each that writes has a number of its own.
    """
    if storage not in _DATABASES:
        return None
    from sqlalchemy import text

    engine = _DATABASES[storage].engine.execution_options(isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        return str(connection.execute(text("SELECT CAST(txid_current_snapshot() AS text)")).scalar_one())


def next_written(before: object, after: object) -> bool:
    """Whether exactly one transaction wrote between two texts of ``written``: nobody was at it before or after, and
    the next number is one more."""
    quiet = [re.fullmatch(r"(\d+):\1:", text) for text in (before, after) if isinstance(text, str)]
    if len(quiet) < 2 or quiet[0] is None or quiet[1] is None:
        return False
    return int(quiet[1][1]) == int(quiet[0][1]) + 1


def _with_driver(url: str) -> str:
    """``url`` with the name of a driver that is installed; which one SQLAlchemy assumes depends on its version."""
    kind, rest = url.split("://", 1)
    if kind.startswith("postgresql+"):
        return url
    if kind != "postgresql":
        raise StudyError(f"{describe(url)} is not a PostgreSQL URL", "give a file, or postgresql://user@host/database")
    for driver in ("psycopg2", "psycopg"):
        if find_spec(driver) is not None:
            return f"postgresql+{driver}://{rest}"
    raise MissingExtraError("PostgreSQL needs a driver", "pip install 'edrbo[postgresql]'")


@contextmanager
def guard(where: str | Path, action: str) -> Iterator[None]:
    """Turn failures of disk, network and database into a StudyError that names no password."""
    kinds: tuple[type[Exception], ...] = (StorageInternalError,)
    if is_url(where):  # a file needs no database's library
        from sqlalchemy.exc import SQLAlchemyError

        kinds += (SQLAlchemyError,)
    try:
        yield
    except EdrboError:
        raise
    except OSError as problem:
        reason = problem.strerror or type(problem).__name__
        hint = "free some space" if "space" in reason or "large" in reason else "check the file and its permissions"
        raise UnavailableError(f"cannot {action} {describe(where)}: {reason}", hint) from None
    except kinds as problem:
        kind = _root_cause(problem)
        raise UnavailableError(f"cannot {action} {describe(where)}: {kind}", _database_hint(where)) from None
    except (KeyError, TypeError, ValueError, AttributeError, AssertionError) as problem:
        if action == "write":  # not the fault of what is stored
            raise
        raise StudyError(f"the records in {describe(where)} are damaged", "see `edrbo check`") from problem


def _database_hint(where: str | Path) -> str:
    hint = "is the database up and reachable?"
    if _has_password(str(where)):
        hint += " A password is safer in ~/.pgpass: other users can see a URL in the list of processes"
    return hint


def _has_password(url: str) -> bool:
    return ":" in url.partition("://")[2].rpartition("@")[0]


def _root_cause(problem: BaseException) -> str:
    """The class of the driver's error only: its text may quote the connection string."""
    cause: Any = problem
    while getattr(cause, "orig", None) is not None or cause.__cause__ is not None:
        cause = getattr(cause, "orig", None) or cause.__cause__
    return type(cause).__name__
