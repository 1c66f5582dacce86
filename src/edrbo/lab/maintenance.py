"""Check, back up, copy and salvage studies."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from edrbo.errors import DamagedStudyError, EdrboError, ExistsAlreadyError, StudyError, UnknownStudyError
from edrbo.lab.files import describe, identity_of, is_url, new_file
from edrbo.lab.store.event_store import EVENT, EventStore, StoredStudy, checksum_of, event_of
from edrbo.lab.study import Study
from edrbo.records.events import Event, Undone
from edrbo.records.state import State


def problems_of(where: str | Path) -> list[str]:
    """What is wrong with a study file or a database: its pages, the records, and every event by the reducer.

    The pages of PostgreSQL are its administrator's: page checksums, and ``amcheck``.
    """
    try:
        store = EventStore(where)
        said = [] if is_url(where) else store.database.read("PRAGMA integrity_check")
        found = [str(words) for (words,) in said if words != "ok"]
        for name in store.names():
            try:
                stored = store.find(name)
                if stored is not None:
                    Study(store, stored)
            except DamagedStudyError as problem:
                found.append(f"{name}: {problem.message}")
    except DamagedStudyError as problem:
        return [problem.message]
    return found


def back_up(where: str | Path, target: Path, *, force: bool = False) -> int:
    """Copy a study file as it is at one moment, while others go on using it; gives the bytes.

    Args:
        where: The study file.
        target: The file to write; it is there in whole or not at all.
        force: Replace a file that is there already.
    """
    if is_url(where):
        raise StudyError(
            "only files are backed up so", "for PostgreSQL use pg_dump, or `edrbo copy URL FILE` for the studies alone"
        )
    if Path(f"{target}-wal").exists() or (target.exists() and identity_of(target) == identity_of(Path(where))):
        raise ExistsAlreadyError(f"{target} is a study in use", "choose another name: replacing it would damage it")
    with new_file(target, force=force, mode=0o600) as file:
        EventStore(where).database.read(
            "VACUUM INTO ?", Path(file.name).absolute().as_uri()
        )  # so that any name will do
    return target.stat().st_size


@dataclass(frozen=True)
class Copied:
    """A study that was copied: how many events, and in words those that could not be."""

    name: str
    events: int
    lost: tuple[str, ...] = ()


def copy(source: str | Path, target: str | Path, *, name: str | None = None, salvage: bool = False) -> list[Copied]:
    """Copy studies between any two places, each with its whole history, in one transaction.

    Args:
        source: A study file or a PostgreSQL URL.
        target: Another; a file is made if it is missing.
        name: The study to copy; all by default.
        salvage: Leave out events that cannot be read or applied, instead of refusing the study.

    Returns:
        What was copied, study by study.
    """
    old = EventStore(source)
    names = old.names() if name is None else [name]
    if not names:
        raise UnknownStudyError(f"there is no study in {describe(old.where)}", "name a file or a database with studies")
    parts = [_whole(old, one, salvage) for one in names]
    new = EventStore(target, create=True)
    try:
        there = set(new.names()) & set(names)
        if there:
            hint = "copy to another place, or name the studies to copy"
            raise ExistsAlreadyError(f"there is a study {min(there)!r} in {describe(new.where)} already", hint)
        for stored, events, _ in parts:
            if not new.adopt(stored, events):
                raise ExistsAlreadyError(f"there is a study {stored.name!r} already", "somebody made it just now")
    except EdrboError:
        new.discard()
        raise
    return [Copied(stored.name, len(events), lost) for stored, events, lost in parts]


def _whole(store: EventStore, name: str, salvage: bool) -> tuple[StoredStudy, Sequence[Event], tuple[str, ...]]:
    """A study with its events, each accepted by the reducer, and what was left out."""
    stored = store.find(name)
    if stored is None:
        hint = f"studies there: {', '.join(map(repr, store.names())) or 'none'}"
        raise UnknownStudyError(f"there is no study {name!r} in {describe(store.where)}", hint)
    if not salvage:
        return stored, Study(store, stored).state_now.history, ()
    state, lost, places = State.start(stored.settings), list[str](), dict[str, str]()
    count, readable = _salvaged(store, stored.id)
    for seq in range(count):
        event = readable.get(seq)
        if event is None:
            lost.append(f"event {seq}: it is missing or damaged")
            continue
        if isinstance(event, Undone):  # events are named by their places, which may be others now
            event = replace(event, of=places.get(event.of, "lost"))
        try:
            state = state.apply(replace(event, ref=str(len(state.history))))
        except EdrboError as problem:
            lost.append(f"event {seq} ({event.kind}): {problem.message}")
        else:
            places[str(seq)] = state.history[-1].ref
    return stored, state.history, tuple(lost)


def _salvaged(store: EventStore, study: int) -> tuple[int, dict[int, Event]]:
    """How many events there were, and those that are what was written, by their places.

    Of a damaged file each row is looked for by itself, through the index and in the table: where one page cannot be
    read the other way may lead around it.
    """
    ((count, total),) = store.database.read(
        "SELECT events, (SELECT SUM(events) FROM edrbo_studies) FROM edrbo_studies WHERE id = ?", study
    )
    ways = [(f"{EVENT} AND seq = ?", seq) for seq in range(count)]
    if not is_url(store.where):  # rows are never removed, so their own numbers run from 1
        ways += [(f"{EVENT} AND rowid = ?", k) for k in range(1, int(total) + 1)]
    events = {}
    for statement, place in ways:
        with suppress(EdrboError, ValueError, TypeError):
            for seq, body, checksum in store.database.read(statement, study, place):
                if checksum == checksum_of(str(seq), body):
                    events[int(seq)] = event_of(seq, body)
    return count, events
