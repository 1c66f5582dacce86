"""Studies and their events, in order. What is acknowledged counts, whatever else happens at the same time.

    edrbo_studies   id, name, format, created, settings (as the study was made), how many events it has
    edrbo_events    study_id, seq from 0, key (the writer's own, if any), kind, who, at, body as JSON, checksum
    edrbo_fits      study_id, the last fit of the surrogate: a cache, which may be dropped at any time
    edrbo_turns     study_id, who computes a suggestion at the moment (turns.py)
    edrbo_claims    study_id, run_id, who evaluates it at the moment, and the last sign of life

The order of events is ``seq``; "what is new" is ``seq >= ?``. A writer decides within the transaction that stores,
from all that came before: nobody can come in between. ``kind``, ``who`` and ``at`` repeat the body for those who look
with SQL. The number of events and their checksums are compared with what is read: a row that is missing or changed is
an error.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edrbo.errors import DamagedStudyError, EdrboError, StudyError
from edrbo.lab.store.database import RECOVER, ConnectionLostError, Row, SQLite, Statement, open_database
from edrbo.lab.store.place import describe, is_url
from edrbo.records.events import Event, from_dict
from edrbo.records.settings import Settings

FORMAT = 1
LONGEST_NAME = 512  # characters that PostgreSQL can index
SCHEMA = (
    """CREATE TABLE IF NOT EXISTS edrbo_studies (
    id BIGINT PRIMARY KEY, name TEXT NOT NULL UNIQUE, format INTEGER NOT NULL, created DOUBLE PRECISION NOT NULL,
    settings TEXT NOT NULL, checksum TEXT NOT NULL, events BIGINT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS edrbo_events (
    study_id BIGINT NOT NULL REFERENCES edrbo_studies (id), seq BIGINT NOT NULL, key TEXT, kind TEXT NOT NULL,
    who TEXT, at DOUBLE PRECISION, body TEXT NOT NULL, checksum TEXT NOT NULL,
    PRIMARY KEY (study_id, seq), UNIQUE (study_id, key))""",
    """CREATE TABLE IF NOT EXISTS edrbo_fits (
    study_id BIGINT PRIMARY KEY REFERENCES edrbo_studies (id), body TEXT NOT NULL, checksum TEXT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS edrbo_turns (
    study_id BIGINT PRIMARY KEY REFERENCES edrbo_studies (id), holder TEXT NOT NULL, beat BIGINT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS edrbo_claims (
    study_id BIGINT NOT NULL REFERENCES edrbo_studies (id), run_id BIGINT NOT NULL, holder TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL, PRIMARY KEY (study_id, run_id))""",
)
EVENTS = "SELECT seq, body, checksum FROM edrbo_events WHERE study_id = ? AND seq >= ? ORDER BY seq"
INSERT = "INSERT INTO edrbo_events (study_id, seq, key, kind, who, at, body, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
Decide = Callable[[list[Event]], Sequence[Event]]
Also = Callable[[Statement], None]


@dataclass(frozen=True)
class StoredStudy:
    """A study of a store; ``settings`` are those it was made with."""

    id: int
    name: str
    created: float
    settings: Settings


class EventStore:
    """The studies at a path or a ``postgresql://`` URL."""

    def __init__(self, where: str | Path, *, create: bool = False) -> None:
        self.where = where if is_url(where) else Path(where).absolute()  # a change of folder later must not matter
        self.database = open_database(self.where, create=create)
        self.database.make_tables(SCHEMA)

    # ---------------------------------------------------------------- studies

    def names(self) -> list[str]:
        """Of all studies, in the order in which they were made."""
        return [name for (name,) in self.database.read("SELECT name FROM edrbo_studies ORDER BY id")]

    def find(self, name: str) -> StoredStudy | None:
        rows = self.database.read(
            "SELECT id, name, created, settings, checksum, format FROM edrbo_studies WHERE name = ?", name
        )
        return self._stored(rows[0]) if rows else None

    def _stored(self, row: Row) -> StoredStudy:
        key, name, created, settings, checksum, version = row
        if isinstance(version, int) and version > FORMAT:
            raise StudyError(f"{name!r} in {describe(self.where)} has format {version}", "upgrade edrbo to open it")
        if checksum != checksum_of(name, settings):
            raise self.damaged(f"the settings of {name!r} are not those that were written")
        return StoredStudy(key, name, created, Settings.from_dict(json.loads(settings)))

    def make(self, name: str, settings: Settings) -> StoredStudy:
        """A new study; if another process was quicker, its study."""
        checked_name(name)
        self.adopt(StoredStudy(0, name, time.time(), settings), ())
        found = self.find(name)
        assert found is not None
        return found

    def adopt(self, study: StoredStudy, events: Sequence[Event]) -> bool:
        """Store a whole study of another place, if there is none of its name; whether it was."""
        text = json.dumps(study.settings.to_dict())
        with self.database.transaction() as run:
            self.database.exclusive(run)
            if run("SELECT id FROM edrbo_studies WHERE name = ?", study.name):
                return False
            ((key,),) = run("SELECT COALESCE(MAX(id), 0) + 1 FROM edrbo_studies")
            values = (key, study.name, FORMAT, study.created, text, checksum_of(study.name, text), len(events))
            run("INSERT INTO edrbo_studies VALUES (?, ?, ?, ?, ?, ?, ?)", *values)
            for seq, event in enumerate(events):
                self._insert(run, key, seq, event)
        return True

    def discard(self) -> None:
        """Take back a file that was made here for a study which could not be; one that holds anything stays."""
        if isinstance(self.database, SQLite) and self.database.made and not self.names():
            self.database.remove()

    def damaged(self, what: str) -> DamagedStudyError:
        hint = "restore a backup of the database" if is_url(self.where) else RECOVER.format(path=self.where)
        return DamagedStudyError(f"{describe(self.where)} is damaged: {what}", hint)

    # ---------------------------------------------------------------- events

    def read(self, study: int, start: int) -> list[Event]:
        """The events from ``start`` on. If there are none, that takes one look at one row."""
        rows = self.database.read("SELECT events FROM edrbo_studies WHERE id = ?", study)
        return self._after(self.database.read, study, start, rows)

    def append(self, study: int, start: int, decide: Decide, also: Also = lambda run: None) -> None:
        """Store the events that ``decide`` gives for those from ``start`` on, all of them or none.

        ``decide`` runs within the transaction: what it sees is all there is until its events are stored. ``also``
        writes what belongs to them.
        """
        for last in (False, True):
            wanted: list[tuple[int, str]] = []
            try:
                with self.database.transaction() as run:
                    rows = run(f"SELECT events FROM edrbo_studies WHERE id = ?{self.database.for_update}", study)
                    new = self._after(run, study, start, rows)
                    events = decide(new)
                    wanted = [self._insert(run, study, start + len(new) + k, event) for k, event in enumerate(events)]
                    run("UPDATE edrbo_studies SET events = events + ? WHERE id = ?", len(events), study)
                    also(run)
                return
            except ConnectionLostError:
                if self._are_stored(study, wanted):  # it broke while the commit was acknowledged
                    return
                if last:
                    raise

    def _after(self, run: Statement, study: int, start: int, counted: list[Row]) -> list[Event]:
        """Events from ``start`` on; at least as many as were ``counted`` before."""
        if not counted:
            raise StudyError(f"the study is no longer in {describe(self.where)}", "was it removed?")
        count = counted[0][0]
        if count == start:
            return []
        if count < start:
            raise StudyError(
                f"the study in {describe(self.where)} has become shorter: {count} events, and {start} were read",
                "was a backup put in its place? Open it again",
            )
        events = [self._event(start + k, row) for k, row in enumerate(run(EVENTS, study, start))]
        if start + len(events) < count:
            raise self.damaged(f"{count} events were written, and {start + len(events)} can be read")
        return events

    def _event(self, seq: int, row: Row) -> Event:
        number, body, checksum = row
        if number != seq:
            raise self.damaged(f"event {seq} is missing")
        if checksum != checksum_of(str(seq), body):
            raise self.damaged(f"event {seq} is not what was written")
        return event_of(seq, body)

    @staticmethod
    def _insert(run: Statement, study: int, seq: int, event: Event) -> tuple[int, str]:
        record = event.to_dict()
        record.pop("ref", None)
        body = json.dumps(record, separators=(",", ":"))
        checksum = checksum_of(str(seq), body)
        run(INSERT, study, seq, _plain(event.key), event.kind, _plain(event.by), event.at, body, checksum)
        return seq, checksum

    def _are_stored(self, study: int, wanted: list[tuple[int, str]]) -> bool:
        found = "SELECT checksum FROM edrbo_events WHERE study_id = ? AND seq = ?"
        return bool(wanted) and all(
            self.database.read(found, study, seq) == [(checksum,)] for seq, checksum in wanted[:1]
        )

    def salvage(self, study: int) -> tuple[int, dict[int, Event]]:
        """How many events there were, and those that are what was written, by their places.

        Of a damaged file each row is looked for by itself, through the index and in the table: where one page cannot be
        read the other way may lead around it.
        """
        ((count, total),) = self.database.read(
            "SELECT events, (SELECT SUM(events) FROM edrbo_studies) FROM edrbo_studies WHERE id = ?", study
        )
        one = "SELECT seq, body, checksum FROM edrbo_events WHERE study_id = ? AND"
        ways = [(f"{one} seq = ?", seq) for seq in range(count)]
        if isinstance(self.database, SQLite):  # rows are never removed, so their own numbers run from 1
            ways += [(f"{one} rowid = ?", k) for k in range(1, int(total) + 1)]
        events = {}
        for statement, place in ways:
            with suppress(EdrboError, ValueError, TypeError):
                for seq, body, checksum in self.database.read(statement, study, place):
                    if checksum == checksum_of(str(seq), body):
                        events[int(seq)] = event_of(seq, body)
        return count, events

    # ---------------------------------------------------------------- the cache of fits

    def load_fit(self, study: int) -> Any:
        """The fit stored last as ``save_fit`` was given it; None if there is none that can be used."""
        rows = self.database.read("SELECT body, checksum FROM edrbo_fits WHERE study_id = ?", study)
        if not rows or rows[0][1] != checksum_of("fit", rows[0][0]):
            return None
        return json.loads(rows[0][0])

    def save_fit(self, study: int, record: Any) -> None:
        body = json.dumps(record)
        with self.database.transaction() as run:
            run("DELETE FROM edrbo_fits WHERE study_id = ?", study)
            run("INSERT INTO edrbo_fits VALUES (?, ?, ?)", study, body, checksum_of("fit", body))


def checksum_of(*parts: object) -> str:
    """Of texts that belong together; of what is no text, one that fits nothing."""
    return hashlib.blake2b("\n".join(map(str, parts)).encode("utf-8", "backslashreplace"), digest_size=8).hexdigest()


def event_of(seq: int, body: str) -> Event:
    """An event as it was stored; its ref is its place."""
    return from_dict({**json.loads(body), "ref": str(seq)})


def checked_name(name: str) -> str:
    if not 0 < len(name) <= LONGEST_NAME:
        raise StudyError("this cannot name a study", f"use 1 to {LONGEST_NAME} characters")
    if "\x00" in name or any("\ud800" <= letter <= "\udfff" for letter in name):
        raise StudyError("this cannot name a study", "leave out NUL and half characters")
    return name


def _plain(text: str | None) -> str | None:
    """As a column can hold it; the body has it exactly."""
    return None if text is None else text.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode()
