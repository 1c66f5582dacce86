"""Studies and their events, in order. What is acknowledged counts, whatever else happens at the same time.

The order of events is ``seq``; "what is new" is ``seq >= ?``. A writer decides within the transaction that stores,
from all that came before: nobody can come in between. ``kind``, ``who`` and ``at`` repeat the body for those who look
with SQL. The number of events and their checksums are compared with what is read: a row that is missing or changed is
an error.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edrbo.errors import DamagedStudyError, StudyError
from edrbo.lab.files import describe, is_url, recovery, remove_study
from edrbo.lab.store.database import ConnectionLostError, Database, PostgreSQL, Row, SQLite, Statement
from edrbo.records.events import Event, from_dict
from edrbo.records.settings import Settings

FORMAT = 1
SCHEMA = (
    """CREATE TABLE IF NOT EXISTS edrbo_studies (  -- settings as it was made with, and how many events it has
    id BIGINT PRIMARY KEY, name TEXT NOT NULL UNIQUE, format INTEGER NOT NULL, created DOUBLE PRECISION NOT NULL,
    settings TEXT NOT NULL, checksum TEXT NOT NULL, events BIGINT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS edrbo_events (  -- seq from 0; the writer's own key, if any; body as JSON
    study_id BIGINT NOT NULL REFERENCES edrbo_studies (id), seq BIGINT NOT NULL, key TEXT, kind TEXT NOT NULL,
    who TEXT, at DOUBLE PRECISION, body TEXT NOT NULL, checksum TEXT NOT NULL,
    PRIMARY KEY (study_id, seq), UNIQUE (study_id, key))""",
    """CREATE TABLE IF NOT EXISTS edrbo_fits (  -- of the surrogate: a cache, which may be dropped at any time
    study_id BIGINT PRIMARY KEY REFERENCES edrbo_studies (id), body TEXT NOT NULL, checksum TEXT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS edrbo_claims (  -- who evaluates a run at the moment, and the last sign of life
    study_id BIGINT NOT NULL REFERENCES edrbo_studies (id), run_id BIGINT NOT NULL, holder TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL, PRIMARY KEY (study_id, run_id))""",
)
COUNT = "SELECT events FROM edrbo_studies WHERE id = ?"
EVENT = "SELECT seq, body, checksum FROM edrbo_events WHERE study_id = ?"
EVENTS = f"{EVENT} AND seq >= ? ORDER BY seq"
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
        # A change of folder later must not matter.
        self.database: Database = PostgreSQL(where) if is_url(where) else SQLite(Path(where).absolute(), create=create)
        self.where = self.database.where
        self.database.make_tables(SCHEMA)

    # ---------------------------------------------------------------- studies

    def names(self) -> list[str]:
        """Of all studies, in the order in which they were made."""
        return [name for (name,) in self.database.read("SELECT name FROM edrbo_studies ORDER BY id")]

    def find(self, name: str) -> StoredStudy | None:
        rows = self.database.read(
            "SELECT id, created, settings, checksum, format FROM edrbo_studies WHERE name = ?", name
        )
        for key, created, settings, checksum, version in rows:
            if isinstance(version, int) and version > FORMAT:
                raise StudyError(f"{name!r} in {describe(self.where)} has format {version}", "upgrade edrbo to open it")
            if checksum != checksum_of(name, settings):
                raise self.damaged(f"the settings of {name!r} are not those that were written")
            return StoredStudy(key, name, created, Settings.from_dict(json.loads(settings)))
        return None

    def adopt(self, study: StoredStudy, events: Sequence[Event]) -> bool:
        """Store a whole study, a new one or of another place, if there is none of its name; whether it was."""
        text = json.dumps(study.settings.to_dict())
        with self.database.transaction() as run:
            run(self.database.making)
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
        if self.database.made and not self.names():
            self.database.close()
            remove_study(Path(self.where))

    def damaged(self, what: str) -> DamagedStudyError:
        return DamagedStudyError(f"{describe(self.where)} is damaged: {what}", recovery(self.where))

    # ---------------------------------------------------------------- events

    def read(self, study: int, start: int) -> list[Event]:
        """The events from ``start`` on. If there are none, that takes one look at one row."""
        return self._after(self.database.read, study, start, self.database.read(COUNT, study))

    def append(self, study: int, start: int, decide: Decide, also: Also = lambda run: None) -> None:
        """Store the events that ``decide`` gives for those from ``start`` on, all of them or none.

        ``decide`` runs within the transaction: what it sees is all there is until its events are stored. ``also``
        writes what belongs to them.
        """
        for last in (False, True):
            stored = list[Row]()
            try:
                with self.database.transaction() as run:
                    new = self._after(run, study, start, run(COUNT + self.database.for_update, study))
                    for event in decide(new):
                        stored.append(self._insert(run, study, start + len(new) + len(stored), event))
                    run("UPDATE edrbo_studies SET events = events + ? WHERE id = ?", len(stored), study)
                    also(run)
                return
            except ConnectionLostError:  # if while the commit was acknowledged, all are stored
                if stored and self.database.read(f"{EVENTS} LIMIT 1", study, stored[0][0]) == stored[:1]:
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
        events = []
        for seq, (number, body, checksum) in enumerate(run(EVENTS, study, start), start):
            if number != seq:
                raise self.damaged(f"event {seq} is missing")
            if checksum != checksum_of(str(seq), body):
                raise self.damaged(f"event {seq} is not what was written")
            events.append(event_of(seq, body))
        if start + len(events) < count:
            raise self.damaged(f"{count} events were written, and {start + len(events)} can be read")
        return events

    @staticmethod
    def _insert(run: Statement, study: int, seq: int, event: Event) -> Row:
        body = json.dumps({key: value for key, value in event.to_dict().items() if key != "ref"}, separators=(",", ":"))
        checksum = checksum_of(str(seq), body)
        run(INSERT, study, seq, _plain(event.key), event.kind, _plain(event.by), event.at, body, checksum)
        return seq, body, checksum

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


def _plain(text: str | None) -> str | None:
    """As a column can hold it; the body has it exactly."""
    return None if text is None else text.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode()
