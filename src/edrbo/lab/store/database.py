"""SQLite and PostgreSQL as two forms of one thing: statements with ``?``, transactions, and typed errors.

A transaction is exclusive to one writer of a study: SQLite lets one in at a time (``BEGIN IMMEDIATE``); in PostgreSQL
the row of the study is locked (``for_update``). When ``transaction`` ends without an error, what was written is
durable.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from edrbo.errors import DamagedStudyError, MissingExtraError, StudyError, UnavailableError, UnknownStudyError
from edrbo.lab import files
from edrbo.lab.files import describe

Value = str | int | float | None
Row = tuple[Any, ...]
Statement = Callable[..., list[Row]]  # statement("… WHERE id = ?", 7)

LOCK_PATIENCE = 10  # seconds that a writer waits for another one
CRASHED = 30  # seconds after which PostgreSQL ends a transaction whose process does nothing
FULL = ("SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_FSYNC", "SQLITE_IOERR_TRUNCATE", "SQLITE_IOERR_SHM", "53100")
DENIED = ("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "42501", "25006")
TROUBLE = (  # how codes of both begin, what is wrong, what to do
    (("SQLITE_BUSY", "SQLITE_LOCKED"), "another process has been writing to it for {} s", "is one stopped? End it"),
    (("55P03",), "another transaction has held its rows for {} s", "pg_stat_activity shows whose it is"),
    (FULL, "the disk is full", "free some space"),
    (DENIED, "Permission denied", "the file and its folder, or the tables of the database, must be writable for you"),
)
_inherited: list[object] = []  # connections of a parent process: neither used nor closed by its children


class ConnectionLostError(UnavailableError):
    """The connection broke; whether a transaction was committed has to be looked up."""


class Database(ABC):
    """Tables at ``where``, by one connection. Any number of threads may use it, and a child process after a fork."""

    library: str  # whose errors become ours
    code: str  # an attribute of these
    hint: str  # for errors that have no better one
    mark = "?"  # a value in a statement
    begin = "BEGIN"
    making = "SELECT 1"  # after it nobody else makes a study until the transaction ends
    for_update = ""  # ends a SELECT of the row that writers of one study line up at
    made = False  # whether it was made here, for a study that is to be

    def __init__(self, where: str | Path) -> None:
        self.where = where
        self._connection: Any = None
        self._process, self._lock = os.getpid(), threading.RLock()

    def read(self, statement: str, *values: Value) -> list[Row]:
        """The rows that a SELECT finds now."""
        with self._alone("read"):
            return self._read(statement, values)

    @contextmanager
    def transaction(self) -> Iterator[Statement]:
        """Within, all that is written becomes durable at the end, or on an error nothing of it."""
        with self._alone("write"):
            run = partial(self._run, self._start())
            try:
                yield run
                run("COMMIT")
                self._connected()  # a file that was replaced meanwhile does not hold what we wrote
            except BaseException:
                with suppress(Exception):  # what counts is the error that led here; a lost connection rolls back
                    run("ROLLBACK")
                raise

    def make_tables(self, schema: Sequence[str]) -> None:
        """Carry out ``schema``, statements that make what does not exist, if there are no tables."""
        if not self._has_tables():
            with self.transaction() as run:  # in one, so that a crash leaves nothing or all
                run(self.making)  # CREATE TABLE IF NOT EXISTS alone fails in PostgreSQL if two do it at once
                for statement in schema:
                    run(statement)

    def close(self) -> None:
        """Give the connection back; the next use opens another."""
        with self._alone("close"):
            if self._connection is not None:
                self._closing()
            self._connection = None

    @contextmanager
    def _alone(self, action: str) -> Iterator[None]:
        """One thread at a time, in a process of its own. What the library raises becomes an error of ours."""
        if os.getpid() != self._process:
            _inherited.append(self._connection)
            self._connection, self._process, self._lock = None, os.getpid(), threading.RLock()
        with self._lock:
            try:
                yield
            except StudyError:
                raise
            except OSError as problem:
                raise UnavailableError(
                    f"cannot {action} {describe(self.where)}: {problem.strerror}", self.hint
                ) from None
            except Exception as problem:
                if type(problem).__module__.partition(".")[0] != self.library:
                    raise
                raise self._error(action, problem) from None

    def _error(self, action: str, problem: Exception) -> StudyError:
        """By the code and the class of the driver's error only: its text may quote the connection string."""
        start, code = f"cannot {action} {describe(self.where)}", getattr(problem, self.code, None) or ""
        for codes, words, hint in TROUBLE:
            if code.startswith(codes):
                return UnavailableError(
                    f"{start}: {words.format(LOCK_PATIENCE)}", f"{hint}; nothing of this was stored"
                )
        return UnavailableError(f"{start}: {type(problem).__name__} {code}".strip(), self.hint)

    def _connected(self) -> Any:
        """The connection of this process."""
        if self._connection is None:
            self._connection = self._connect()
            self._closing = weakref.finalize(self, _close, self._connection, self._process)
        return self._connection

    def _start(self) -> Any:
        """A connection on which a transaction has begun."""
        self._read(self.begin, ())
        return self._connection

    def _read(self, statement: str, values: tuple[Value, ...]) -> list[Row]:
        return self._run(self._connected(), statement, *values)

    def _run(self, connection: Any, statement: str, *values: Value) -> list[Row]:
        with closing(connection.cursor()) as cursor:
            cursor.execute(statement.replace("?", self.mark), values)
            return [] if cursor.description is None else cursor.fetchall()

    @abstractmethod
    def _has_tables(self) -> bool: ...
    @abstractmethod
    def _connect(self) -> Any: ...


def _close(connection: Any, process: int) -> None:
    """When nobody holds the database any more; a child process leaves its parent's connection alone."""
    if os.getpid() == process:
        connection.close()
    else:
        _inherited.append(connection)


class SQLite(Database):
    """A file, in WAL mode with full synchronous: readers never wait, and a commit is on the disk."""

    library, code, begin = "sqlite3", "sqlite_errorname", "BEGIN IMMEDIATE"
    hint = "check the disk, and the permissions of the file and its folder"

    def __init__(self, path: Path, *, create: bool) -> None:
        super().__init__(path)
        self._path = path
        if not files.check_file(path):
            if not create:
                raise UnknownStudyError(f"there is no study at {path}", "make one with a space, or with `edrbo new`")
            with self._alone("write"), suppress(FileExistsError):
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))  # only its owner may read it
                self.made = True
        files.warn_of_network(path)

    def make_tables(self, schema: Sequence[str]) -> None:
        try:
            super().make_tables([f"PRAGMA application_id = {files.APPLICATION_ID}", *schema])
            with suppress(UnavailableError):  # on a full disk, or while another process changes it, one can go on
                self.read("PRAGMA journal_mode = WAL")
        except StudyError:
            self.close()
            if self.made:
                files.remove_study(self._path)
            raise

    def _has_tables(self) -> bool:
        return files.check_file(self._path)

    def _connected(self) -> Any:
        """One that can write; SQLite would open a file read-only, and leave its own files beside it."""
        if self._connection is None and not files.may_write(self._path):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if self._connection is not None and self._connection.identity != files.identity_of(self._path):
            raise UnavailableError(
                f"{self._path} was removed or replaced while it was open", "open it again to go on with what is there"
            )
        return super()._connected()

    def _connect(self, options: str = "mode=rw") -> _Connection:
        connection = sqlite3.connect(
            f"{self._path.absolute().as_uri()}?{options}",
            uri=True,
            timeout=LOCK_PATIENCE,
            isolation_level=None,
            check_same_thread=False,  # ``_alone`` lets one thread in at a time
            factory=_Connection,
        )
        try:
            connection.identity = files.hold(self._path)
            for setting in ("trusted_schema = OFF", "cell_size_check = ON", "synchronous = FULL"):
                connection.execute(f"PRAGMA {setting}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _start(self) -> Any:
        self._run(self._connected(), self.begin)  # never by one that only reads
        return self._connection

    def _read(self, statement: str, values: tuple[Value, ...]) -> list[Row]:
        if self._connection is not None or files.may_write(self._path):
            try:
                return super()._read(statement, values)
            except sqlite3.OperationalError as problem:
                code = getattr(problem, self.code, "")
                if self._has_log() or not code.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
                    raise
            self.close()  # the disk is too full for the files that a writer needs
        # Without a log to be read nobody is writing; SQLite could not make one here, and says so unless reported.
        with closing(self._connect("mode=ro" if self._has_log() else "mode=ro&immutable=1")) as connection:
            return self._run(connection, statement, *values)

    def _has_log(self) -> bool:
        log = Path(f"{self._path}-wal")
        return log.exists() and log.stat().st_size > 0

    def _error(self, action: str, problem: Exception) -> StudyError:
        code = getattr(problem, self.code, "SQLITE_CORRUPT")  # text that is none has no code
        if code.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
            return DamagedStudyError(f"{self._path} is damaged", files.recovery(self._path))
        return super()._error(action, problem)


class _Connection(sqlite3.Connection):
    """Whose file is not to be opened in any other way while it is open (``lab.files``)."""

    identity: files.Identity | None = None

    def close(self) -> None:
        super().close()
        files.release(self.identity)
        self.identity = None


class PostgreSQL(Database):
    """A database by URL; one connection, made again when the server was restarted."""

    library, code, mark, for_update = "psycopg2", "pgcode", "%s", " FOR UPDATE"
    making = "SELECT pg_advisory_xact_lock(0x65647262)"  # any number, the same for all; SQLite's writers are alone
    hint = "is the database up and reachable?"

    def _has_tables(self) -> bool:
        return self.read("SELECT to_regclass('edrbo_studies')") != [(None,)]

    def _connect(self) -> Any:
        try:
            import psycopg2
            from psycopg2.extensions import parse_dsn
        except ModuleNotFoundError:
            raise MissingExtraError("PostgreSQL needs a driver", "pip install 'edrbo[postgresql]'") from None
        url = str(self.where)
        if not url.startswith(("postgresql://", "postgres://")):
            raise StudyError(
                f"{describe(url)} is not a PostgreSQL URL", "give a file, or postgresql://user@host/database"
            )
        given = {"connect_timeout": "10", "application_name": "edrbo", **parse_dsn(url)}
        if "password" in given:
            self.hint = f"{PostgreSQL.hint} A password is safer in ~/.pgpass: other users can see a URL among processes"
        connection = psycopg2.connect(**given)
        connection.autocommit = True
        self._run(connection, f"SET lock_timeout = '{LOCK_PATIENCE}s'")
        self._run(connection, f"SET idle_in_transaction_session_timeout = '{CRASHED}s'")
        return connection

    def _read(self, statement: str, values: tuple[Value, ...]) -> list[Row]:
        """Once more by a new connection, if the old one turns out to be dead."""
        try:
            return super()._read(statement, values)
        except Exception:
            if self._connection is None or not self._connection.closed:
                raise
        self.close()
        return super()._read(statement, values)

    def _error(self, action: str, problem: Exception) -> StudyError:
        if self._connection is not None and self._connection.closed:
            return ConnectionLostError(f"cannot {action} {describe(self.where)}: the connection was lost", self.hint)
        return super()._error(action, problem)
