"""Where studies are kept: Optuna's journal in a private file, or PostgreSQL by URL."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from optuna.exceptions import StorageInternalError
from optuna.storages import BaseStorage, JournalStorage, RDBStorage, get_storage
from optuna.storages.journal import JournalFileBackend

from edrbo.errors import MissingExtraError, StudyError

SQLITE = b"SQLite format 3\x00"
SECRETS = ("password", "passfile", "sslpassword", "sslkey")  # of a PostgreSQL URL's query


def is_url(where: str | Path) -> bool:
    return "://" in str(where)


def describe(where: str | Path) -> str:
    """``where`` for people to read: a path, or a URL without its password."""
    if not is_url(where):
        return str(where)
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        url = make_url(str(where))
    except (ArgumentError, ValueError):
        return f"{str(where).split('://')[0]}://…"
    hidden = {key: "***" for key in url.query if key.lower() in SECRETS}
    return url.update_query_dict(hidden).render_as_string(hide_password=True)


def open_storage(where: str | Path, *, create: bool) -> BaseStorage:
    """The storage at a path or a ``postgresql://`` URL; without ``create`` a file must exist."""
    return _open_url(str(where)) if is_url(where) else _open_file(Path(where), create)


def _open_file(path: Path, create: bool) -> BaseStorage:
    from edrbo.study.lock import study_file_lock

    with guard(path, "open"):
        if create:
            create_private(path)
        if not path.exists():
            raise StudyError(f"there is no study at {path}", "create one with a space, or with `edrbo new`")
        if path.is_dir():
            raise StudyError(f"{path} is a folder", "name the study's file")
        with path.open("rb") as file:
            if file.read(len(SQLITE)) == SQLITE:
                raise StudyError(f"{path} is an SQLite database, not a study file", "SQLite cannot serve many writers")
        try:
            return JournalStorage(JournalFileBackend(str(path), study_file_lock(str(path))))
        except (ValueError, KeyError, TypeError, AssertionError, AttributeError):
            raise StudyError(f"{path} is not a study file, or it is damaged", "choose another file name") from None


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
                return get_storage(RDBStorage(with_driver, engine_kwargs={"pool_pre_ping": True}))
            except (IntegrityError, ProgrammingError):  # another process is creating the tables just now
                continue
        return get_storage(RDBStorage(with_driver, engine_kwargs={"pool_pre_ping": True}))


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
    except OSError as problem:
        reason = problem.strerror or type(problem).__name__
        hint = "free some space" if "space" in reason or "large" in reason else "check the file and its permissions"
        raise StudyError(f"cannot {action} {describe(where)}: {reason}", hint) from None
    except kinds as problem:
        kind = _root_cause(problem)
        raise StudyError(f"cannot {action} {describe(where)}: {kind}", "is the database up and reachable?") from None


def _root_cause(problem: BaseException) -> str:
    """The class of the driver's error only: its text may quote the connection string."""
    cause: Any = problem
    while getattr(cause, "orig", None) is not None or cause.__cause__ is not None:
        cause = getattr(cause, "orig", None) or cause.__cause__
    return type(cause).__name__
