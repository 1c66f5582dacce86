"""Optuna's journal in a file, read and written with a checksum per line.

A line that we write ends with a checksum of its own bytes, under a key that Optuna does not look at; lines of other
programs have none and are believed. What is read is one of three:

    sound          as it is
    changed        it is JSON, but not what was written: set aside, and the rest goes on
    unreadable     in the middle of the file, and no JSON at all: an error that names the line and `edrbo repair`

A line that is set aside is replaced by one that does nothing, or, if it began a trial, by an empty trial, because
Optuna numbers trials by counting them.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import threading
from array import array
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from optuna.storages import JournalStorage
from optuna.storages.journal import BaseJournalBackend, JournalFileOpenLock, JournalFileSymlinkLock
from optuna.trial import FrozenTrial, TrialState

from edrbo.errors import StudyError
from edrbo.study.trials import ABANDONED, OWNER

CREATE_TRIAL, SET_STUDY_USER_ATTR = 4, 2  # Optuna's numbers of what a line does
NOTHING = {"op_code": SET_STUDY_USER_ATTR, "worker_id": "", "study_id": -1, "user_attr": {"": None}}
BEFORE, AFTER = b',"sum":"', b'"}'
DIGEST = 8  # bytes


@dataclass(frozen=True)
class Line:
    """A line of the journal: ``log`` is what Optuna reads, None if it is no JSON; ``why`` says what is wrong."""

    number: int  # from 1
    log: dict[str, Any] | None
    why: str | None = None


class JournalFile(BaseJournalBackend):
    """The journal at ``path``, written under ``lock``."""

    def __init__(self, path: str, lock: JournalFileOpenLock | JournalFileSymlinkLock) -> None:
        self._path, self._lock = path, lock
        self._ends = array("q", [0])  # where each line read so far begins, and the end of the last
        self.damaged: dict[int, str] = {}  # number of a line that was set aside → what is wrong with it
        self._held: set[int] = set()  # threads for which nothing new is read

    @property
    def position(self) -> int:
        """How many lines were read so far."""
        return len(self._ends) - 1

    @contextmanager
    def held(self) -> Iterator[None]:
        """Within, this thread sees the file as it is now: what others append is read afterwards."""
        self._held.add(thread := threading.get_ident())
        try:
            yield
        finally:
            self._held.discard(thread)

    def read_logs(self, log_number_from: int) -> Iterator[dict[str, Any]]:
        if threading.get_ident() in self._held:
            return
        start = self._ends[log_number_from]
        if (size := os.stat(self._path).st_size) == start:
            return
        if size < start:
            raise StudyError(f"{self._path} has become shorter", "was it truncated or replaced? Open it again")
        with open(self._path, "rb") as file:
            file.seek(start)
            # What others append while we read is left for the next time.
            lines = file.read(size - start).split(b"\n")
        for index, raw in enumerate(lines[:-1]):  # after the last newline there is a torn line, or nothing
            number = log_number_from + index
            line = read_line(raw, number + 1)
            if line.log is None:
                raise StudyError(
                    f"line {line.number} of {self._path} cannot be read: {line.why}",
                    "`edrbo repair` writes a copy without it",
                )
            if len(self._ends) == number + 1:
                self._ends.append(self._ends[number] + len(raw) + 1)
            if line.why is not None:
                self.damaged[line.number] = line.why
            yield line.log if line.why is None else in_place_of(line.log)

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        text = b"".join(write_line(log) + b"\n" for log in logs)
        self._lock.acquire()
        try:
            with open(self._path, "ab") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
        finally:
            self._lock.release()


class FileStorage(JournalStorage):
    """Optuna's storage on a journal whose damage can be asked for."""

    def __init__(self, journal: JournalFile) -> None:
        self.journal = journal
        super().__init__(journal)

    def trials(self, study_id: int, numbers: Iterable[int], count: int) -> Iterator[FrozenTrial]:
        """The trials ``numbers``, and all from number ``count`` on. Optuna's own way would list all there are."""
        for number in itertools.chain(numbers, itertools.count(count)):
            try:
                yield self.get_trial(self.get_trial_id_from_study_id_trial_number(study_id, number))
            except KeyError:
                return


def write_line(log: dict[str, Any]) -> bytes:
    """A log as a line without its newline."""
    text = json.dumps(log, separators=(",", ":")).encode()
    return text[:-1] + BEFORE + _digest(text[:-1]) + AFTER


def read_line(raw: bytes, number: int) -> Line:
    """A line, without its newline, of the given ``number``."""
    try:
        log = json.loads(raw)
    except (ValueError, RecursionError):
        return Line(number, None, "it is not JSON")
    if not isinstance(log, dict):
        return Line(number, None, "it is not a JSON object")
    body, sign, end = raw.rpartition(BEFORE)
    if sign and end != _digest(body) + AFTER:
        return Line(number, log, "its checksum is wrong: it was damaged")
    return Line(number, log)


def _digest(text: bytes) -> bytes:
    return hashlib.blake2b(text, digest_size=DIGEST).hexdigest().encode()


def in_place_of(log: dict[str, Any]) -> dict[str, Any]:
    """What to apply instead of a damaged line: nothing, or an empty trial to keep the count."""
    if "datetime_start" not in log or "trial_id" in log:
        return NOTHING
    return empty_trial(log.get("study_id"))


def empty_trial(study_id: Any) -> dict[str, Any]:
    """Begins a trial whose own line is lost: what later lines say of it counts, and nobody waits for it."""
    study = study_id if isinstance(study_id, int) and not isinstance(study_id, bool) else 0
    begun: dict[str, Any] = {"state": int(TrialState.RUNNING), "value": None, "values": None, "datetime_start": None}
    parts: dict[str, Any] = {"distributions": {}, "params": {}, "user_attrs": {}, "intermediate_values": {}}
    owner = {OWNER: {"host": "", "pid": 0}, ABANDONED: True}
    return {"op_code": CREATE_TRIAL, "worker_id": "", "study_id": study, **begun, **parts, "system_attrs": owner}
