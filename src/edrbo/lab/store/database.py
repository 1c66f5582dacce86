"""SQLite and PostgreSQL as two forms of one thing: statements with ``?``, transactions, and typed errors.

A transaction is exclusive to one writer of a study: SQLite lets one in at a time (``BEGIN IMMEDIATE``); in PostgreSQL
the row of the study is locked (``LOCK``). When ``transaction`` ends without an error, what was written is durable.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edrbo.errors import DamagedStudyError, MissingExtraError, StudyError, UnavailableError
from edrbo.lab.store.place import APPLICATION_ID, check_file, create_private, describe, is_url, warn_of_network

if TYPE_CHECKING:
    import psycopg2.extensions

Value = str | int | float | None
Row = tuple[Any, ...]
Statement = Callable[..., list[Row]]  # statement("… WHERE id = ?", 7)

LOCK_PATIENCE = 10  # seconds that a writer waits for another one
CRASHED = 30  # seconds after which PostgreSQL ends a transaction whose process does nothing
CREATING = 0x65647262  # PostgreSQL's number for "somebody makes tables or a study"
_INHERITED: list[object] = []  # connections of a parent process: neither used nor closed by its children


class ConnectionLostError(UnavailableError):
    """The connection broke; whether a transaction was committed has to be looked up."""


class Database(ABC):
    """Tables at ``where``. Any number of threads may use it, and a child process after a fork."""

    for_update = ""  # ends a SELECT of the row that writers of one study line up at

    def __init__(self, where: str | Path) -> None:
        self.where = where
        self._begin()

    def _begin(self) -> None:
        self._process, self._lock = os.getpid(), threading.RLock()
        self._connection: Any = None

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One thread at a time, in a process of its own."""
        if os.getpid() != self._process:
            _INHERITED.append(self._connection)
            self._begin()
        with self._lock:
            yield

    def read(self, statement: str, *values: Value) -> list[Row]:
        """The rows that a SELECT finds now."""
        with self._alone(), self._errors("read"):
            return self._read(statement, values)

    @contextmanager
    def transaction(self) -> Iterator[Statement]:
        """Within, all that is written becomes durable at the end, or on an error nothing of it."""
        with self._alone(), self._errors("write"):
            run = self._start()
            try:
                yield run
                self._finish(run)
            except BaseException:
                self._roll_back(run)
                raise

    def _finish(self, run: Statement) -> None:
        run("COMMIT")

    def _roll_back(self, run: Statement) -> None:
        with suppress(Exception):  # what counts is the error that led here; a connection that is gone rolls back
            run("ROLLBACK")

    @abstractmethod
    def make_tables(self, schema: tuple[str, ...]) -> None:
        """Carry out ``schema``, statements that make what does not exist."""

    @abstractmethod
    def exclusive(self, run: Statement) -> None:
        """Nobody else makes a study until the transaction of ``run`` ends."""

    @abstractmethod
    def faults(self) -> list[str]:
        """What the database itself finds wrong with its pages."""

    def close(self) -> None:
        """Give the connection back; the next use opens another."""
        with self._lock:
            if self._connection is not None and os.getpid() == self._process:
                self._connection.close()
            self._connection = None

    @abstractmethod
    def _read(self, statement: str, values: tuple[Value, ...]) -> list[Row]: ...
    @abstractmethod
    def _start(self) -> Statement: ...
    @abstractmethod
    def _errors(self, action: str) -> Any:
        """A context in which what the library raises becomes an error of ours, without secrets."""


def open_database(where: str | Path, *, create: bool) -> Database:
    """The database at a path or a ``postgresql://`` URL; without ``create`` a file must exist."""
    return PostgreSQL(str(where)) if is_url(where) else SQLite(Path(where), create=create)


# -------------------------------------------------------------------- SQLite


class SQLite(Database):
    """A file, in WAL mode with full synchronous: readers never wait, and a commit is on the disk."""

    def __init__(self, path: Path, *, create: bool) -> None:
        found = check_file(path)
        if not found and not create:
            raise StudyError(f"there is no study at {path}", "make one with a space, or with `edrbo new`")
        self._path = path
        self.made = not found and create_private(path)
        warn_of_network(path)
        super().__init__(path)

    def _begin(self) -> None:
        super()._begin()
        self._file: tuple[int, int] | None = None

    def make_tables(self, schema: tuple[str, ...]) -> None:
        try:
            if not check_file(self._path):  # in one transaction, so that a crash leaves an empty file or a whole one
                with self.transaction() as run:
                    for statement in (f"PRAGMA application_id = {APPLICATION_ID}", *schema):
                        run(statement)
            if self._may_write():
                with suppress(UnavailableError):  # on a full disk one can still read
                    self._write_ahead()
        except StudyError:
            if self.made:
                self.remove()
            raise

    def _write_ahead(self) -> None:
        """Change to WAL, unless that was done; this needs the file for a moment alone, so others may have to end."""
        with self._alone(), self._errors("open"):
            connection, until = self._connected(), time.monotonic() + LOCK_PATIENCE
            while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                try:
                    connection.execute("PRAGMA journal_mode = WAL")
                except sqlite3.OperationalError:
                    if time.monotonic() > until:
                        raise
                    time.sleep(0.01)

    def remove(self) -> None:
        """Nothing is left of a file that we made and that could not become a study, say on a full disk."""
        self.close()
        for ending in ("", "-wal", "-shm", "-journal"):
            Path(f"{self._path}{ending}").unlink(missing_ok=True)

    def exclusive(self, run: Statement) -> None:
        """Every transaction is."""

    def faults(self) -> list[str]:
        return [str(words) for (words,) in self.read("PRAGMA integrity_check") if words != "ok"]

    def copy_to(self, path: Path) -> None:
        """The file as it is now, in one that is not there yet, while others go on using it."""
        with self._alone(), self._errors("read"):
            self._read("VACUUM INTO ?", (str(path),))

    def _may_write(self) -> bool:
        effective = os.access in os.supports_effective_ids
        return all(os.access(path, os.W_OK, effective_ids=effective) for path in (self._path, self._path.parent))

    def _connected(self) -> sqlite3.Connection:
        """The connection of this process."""
        if self._connection is None:
            connection, self._file = self._connect("mode=rw"), self._identity()
            try:
                connection.execute("PRAGMA synchronous = FULL")  # every connection must have it
            except sqlite3.Error:
                connection.close()
                raise
            self._connection = connection
            weakref.finalize(self, _close, self._connection, os.getpid())
        elif self._identity() != self._file:
            raise UnavailableError(
                f"{self._path} was removed or replaced while it was open", "open it again to go on with what is there"
            )
        found: sqlite3.Connection = self._connection
        return found

    def _connect(self, options: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{self._path.absolute().as_uri()}?{options}",
            uri=True,
            timeout=LOCK_PATIENCE,
            isolation_level=None,
            check_same_thread=False,  # ``_alone`` lets one thread in at a time
        )
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
        return connection

    def _identity(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _read(self, statement: str, values: tuple[Value, ...]) -> list[Row]:
        if self._connection is None and not self._may_write():
            return self._read_only(statement, values)
        try:
            return self._connected().execute(statement, values).fetchall()
        except sqlite3.OperationalError as problem:
            code = getattr(problem, "sqlite_errorcode", 0) & 0xFF  # text that is none has no code
            if code not in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR) or self._has_log():
                raise
        self.close()
        return self._read_only(statement, values)  # the disk is too full for the files that a writer needs

    def _read_only(self, statement: str, values: tuple[Value, ...]) -> list[Row]:
        """Without a log to be read nobody is writing; SQLite could not make one here, and says so unless reported."""
        immutable = "" if self._has_log() else "&immutable=1"
        with closing(self._connect(f"mode=ro{immutable}")) as connection:
            return connection.execute(statement, values).fetchall()

    def _has_log(self) -> bool:
        log = Path(f"{self._path}-wal")
        return log.exists() and log.stat().st_size > 0

    def _start(self) -> Statement:
        if self._connection is None and not self._may_write():
            raise UnavailableError(
                f"cannot write {self._path}: Permission denied", "the file and its folder must be writable for you"
            )
        connection = self._connected()

        def run(statement: str, *values: Value) -> list[Row]:
            return connection.execute(statement, values).fetchall()

        run("BEGIN IMMEDIATE")
        return run

    def _finish(self, run: Statement) -> None:
        super()._finish(run)
        self._connected()  # a file that was replaced meanwhile does not hold what we wrote

    @contextmanager
    def _errors(self, action: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as problem:
            raise self._error(action, problem) from None
        except OSError as problem:
            raise UnavailableError(f"cannot {action} {self._path}: {problem.strerror}", "check the file") from None

    def _error(self, action: str, problem: sqlite3.Error) -> StudyError:
        code = getattr(problem, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)  # text that is none has no code
        kind = code & 0xFF
        start = f"cannot {action} {self._path}"
        if kind in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return UnavailableError(
                f"{start}: another process has been writing to it for {LOCK_PATIENCE} s",
                "is one stopped in the middle? End it, and try again; nothing of this was stored",
            )
        if kind == sqlite3.SQLITE_FULL or (kind == sqlite3.SQLITE_IOERR and code in _WRITE_FAILED):
            return UnavailableError(f"{start}: the disk is full", "free some space; nothing of this was stored")
        if kind in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            return DamagedStudyError(f"{self._path} is damaged", RECOVER.format(path=self._path))
        if kind in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
            return UnavailableError(f"{start}: Permission denied", "the file and its folder must be writable for you")
        reason = getattr(problem, "sqlite_errorname", type(problem).__name__)
        return UnavailableError(f"{start}: {reason}", "check the disk and the permissions of the file and its folder")


_WRITE_FAILED = (
    sqlite3.SQLITE_IOERR_WRITE,
    sqlite3.SQLITE_IOERR_FSYNC,
    sqlite3.SQLITE_IOERR_TRUNCATE,
    sqlite3.SQLITE_IOERR_SHMSIZE,
    sqlite3.SQLITE_IOERR_SHMMAP,
)
RECOVER = (
    "restore a backup; without one, `edrbo copy --salvage {path} NEW.db` saves what can be read and says what cannot; "
    "if that fails too, what sqlite3's own .recover makes of it"
)


def _close(connection: sqlite3.Connection, process: int) -> None:
    """When nobody holds the database any more; a child process leaves its parent's connection alone."""
    if os.getpid() == process:
        connection.close()
    else:
        _INHERITED.append(connection)


# -------------------------------------------------------------------- PostgreSQL


class PostgreSQL(Database):
    """A database by URL; one connection, made again when the server was restarted."""

    for_update = " FOR UPDATE"

    def __init__(self, url: str) -> None:
        if url.partition("://")[0] not in ("postgresql", "postgres"):
            raise StudyError(
                f"{describe(url)} is not a PostgreSQL URL", "give a file, or postgresql://user@host/database"
            )
        super().__init__(url)

    def make_tables(self, schema: tuple[str, ...]) -> None:
        if self.read("SELECT to_regclass('edrbo_studies')") != [(None,)]:
            return
        with self.transaction() as run:
            self.exclusive(run)  # CREATE TABLE IF NOT EXISTS alone fails if two do it at once
            for statement in schema:
                run(statement)

    def exclusive(self, run: Statement) -> None:
        run("SELECT pg_advisory_xact_lock(?)", CREATING)

    def faults(self) -> list[str]:
        """Its page checksums and ``amcheck`` are the administrator's."""
        return []

    def _connected(self) -> psycopg2.extensions.connection:
        if self._connection is None or self._connection.closed:
            try:
                import psycopg2
                from psycopg2.extensions import parse_dsn
            except ModuleNotFoundError:
                raise MissingExtraError("PostgreSQL needs a driver", "pip install 'edrbo[postgresql]'") from None
            given = parse_dsn(str(self.where))
            connection = psycopg2.connect(**{"connect_timeout": "10", "application_name": "edrbo", **given})
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute(f"SET lock_timeout = '{LOCK_PATIENCE}s'")
                cursor.execute(f"SET idle_in_transaction_session_timeout = '{CRASHED}s'")
            self._connection = connection
        found: psycopg2.extensions.connection = self._connection
        return found

    def _execute(self, statement: str, values: tuple[Value, ...]) -> list[Row]:
        with self._connected().cursor() as cursor:
            cursor.execute(statement.replace("?", "%s"), values)
            return [] if cursor.description is None else cursor.fetchall()

    def _read(self, statement: str, values: tuple[Value, ...]) -> list[Row]:
        return self._again(lambda: self._execute(statement, values))

    def _start(self) -> Statement:
        self._again(lambda: self._execute("BEGIN", ()))
        connection = self._connection

        def run(statement: str, *values: Value) -> list[Row]:
            if self._connection is not connection or connection.closed:
                raise ConnectionLostError(f"the connection to {describe(self.where)} was lost", "try again")
            return self._execute(statement, values)

        return run

    def _again(self, do: Callable[[], list[Row]]) -> list[Row]:
        """What ``do`` gives; once more by a new connection if the old one turns out to be dead."""
        try:
            return do()
        except Exception:
            if self._connection is None or not self._connection.closed:
                raise
        return do()

    @contextmanager
    def _errors(self, action: str) -> Iterator[None]:
        try:
            yield
        except StudyError:
            raise
        except Exception as problem:
            if not type(problem).__module__.startswith("psycopg2"):
                raise
            raise self._error(action, problem) from None

    def _error(self, action: str, problem: Exception) -> StudyError:
        """The class of the driver's error only: its text may quote the connection string."""
        start, code = f"cannot {action} {describe(self.where)}", getattr(problem, "pgcode", None)
        if code == "55P03":
            return UnavailableError(
                f"{start}: another transaction has held its rows for {LOCK_PATIENCE} s",
                "pg_stat_activity shows whose it is; nothing of this was stored",
            )
        if code == "53100":
            return UnavailableError(f"{start}: the disk is full", "free some space; nothing of this was stored")
        if code in ("42501", "25006"):
            return UnavailableError(f"{start}: Permission denied", "this user may not write there")
        if self._connection is not None and self._connection.closed:
            return ConnectionLostError(f"{start}: the connection was lost", _hint(str(self.where)))
        return UnavailableError(f"{start}: {type(problem).__name__}", _hint(str(self.where)))


def _hint(url: str) -> str:
    hint = "is the database up and reachable?"
    if ":" in url.partition("://")[2].rpartition("@")[0]:
        hint += " A password is safer in ~/.pgpass: other users can see a URL in the list of processes"
    return hint
