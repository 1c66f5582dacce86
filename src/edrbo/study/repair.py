"""What is wrong with a study file, by line, and a copy of it without that.

A damaged line that began a trial cannot be left out, because Optuna numbers trials by counting them: an empty trial
takes its place. Of a line that is no JSON at all one cannot see what it did; then both readings are tried, and the one
under which the numbers in our records fit together is right.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optuna.storages import BaseStorage, JournalStorage
from optuna.storages.journal import BaseJournalBackend

from edrbo.errors import EdrboError, StudyError
from edrbo.records.checksum import is_sound
from edrbo.records.settings import Settings
from edrbo.study.journal import CREATE_TRIAL, Line, empty_trial, in_place_of, read_line, write_line
from edrbo.study.ledger import Ledger
from edrbo.study.snapshot import is_awaited
from edrbo.study.storage import check_is_file, guard, is_url, open_storage
from edrbo.study.trials import ABANDONED, DESIGN, OWNER, SETTINGS

CREATE_STUDY = 0
UNFIT = (KeyError, TypeError, ValueError, AttributeError, AssertionError)  # what Optuna says to lines it cannot apply
Numbered = Sequence[tuple[int, dict[str, Any]]]  # lines as JSON with their numbers
DIRECTIONS = {"minimize": 1, "maximize": 2}  # Optuna's numbers


@dataclass(frozen=True)
class Finding:
    """Something wrong: ``line`` of the file, if it is known, and the words for it."""

    line: int | None
    words: str

    def __str__(self) -> str:
        return self.words if self.line is None else f"line {self.line}: {self.words}"


@dataclass(frozen=True)
class Repair:
    """``lines`` of a copy that can be read, and what was ``found`` wrong; ``aside`` are lines it does without."""

    lines: tuple[bytes, ...]
    found: tuple[Finding, ...]
    aside: tuple[tuple[int, str, bytes], ...]  # number, what is wrong, the line


def problems_of(where: str) -> list[Finding]:
    """What is wrong with a study file, or with all studies of a database."""
    if not is_url(where):
        return list(examine(Path(where)).found)
    storage = open_storage(where, create=False)
    with guard(where, "read"):
        studies = storage.get_all_studies()
        return [finding for study in studies for finding in _of_study(storage, study._study_id, {})]


def examine(path: Path) -> Repair:
    """Everything that is wrong with the study file at ``path``, and a copy without it; nothing is written."""
    with guard(path, "read"):
        raw = _lines(path)
    kept: list[bytes | None] = list(raw)
    aside: list[tuple[int, str, bytes]] = []
    lines = [read_line(text, number) for number, text in enumerate(raw, start=1)]
    for line in lines:
        if line.why is not None:
            aside.append((line.number, line.why, raw[line.number - 1]))
            kept[line.number - 1] = _instead(line, kept, raw)
    if not any(line.log and line.log.get("op_code") == CREATE_STUDY for line in lines if line.why is None):
        kept[0] = _lost_study(path, lines)
    found = [Finding(number, why) for number, why, _ in aside]
    while new := [finding for finding in _unusable(kept) if finding not in found]:  # one may have hidden others
        found += new
        for finding in new:
            if finding.line is not None:
                aside.append((finding.line, finding.words, raw[finding.line - 1]))
                kept[finding.line - 1] = _without_record(kept[finding.line - 1])
    return Repair(tuple(text for text in kept if text is not None), tuple(found), tuple(aside))


def repair(path: Path) -> tuple[Repair, Path | None]:
    """Write the copy and what it does without beside the file; None if nothing is wrong."""
    repaired = examine(path)
    if not repaired.found:
        return repaired, None
    copy, damaged = path.with_suffix(f".repaired{path.suffix}"), path.with_name(f"{path.name}.damaged")
    for place in (copy, damaged):
        if place.exists():
            raise StudyError(f"{place} exists already", "move it away first")
    with guard(copy, "write"):
        _write_new(damaged, b"".join(_note(*part) for part in repaired.aside))
        _write_new(copy, b"".join(line + b"\n" for line in repaired.lines))
        _abandon_all(copy)
    return repaired, copy


def _abandon_all(copy: Path) -> None:
    """Nobody computes a design for the copy, so nobody is to wait for one."""
    storage = open_storage(copy, create=False)
    for study in storage.get_all_studies():
        for trial in storage.get_all_trials(study._study_id, deepcopy=False):
            if is_awaited(trial):
                storage.set_trial_system_attr(trial._trial_id, ABANDONED, True)


def _note(number: int, why: str, text: bytes) -> bytes:
    return json.dumps({"line": number, "why": why, "text": text.decode(errors="backslashreplace")}).encode() + b"\n"


def _write_new(path: Path, content: bytes) -> None:
    with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        file.write(content)


def _lines(path: Path) -> list[bytes]:
    """Without a torn one at the end: it was never acknowledged, and the next who writes removes it."""
    if path.exists() and path.is_file():
        text = path.read_bytes()
        if b'"op_code"' in text:  # else it is something else altogether
            return text.split(b"\n")[:-1]
    check_is_file(path)
    return []


# -------------------------------------------------------------------- what to put in place of a damaged line


def _instead(line: Line, kept: Sequence[bytes | None], raw: Sequence[bytes]) -> bytes | None:
    """An empty trial, or nothing."""
    if line.log is not None:
        other = in_place_of(line.log)
        return write_line(other) if other["op_code"] == CREATE_TRIAL else None
    text = raw[line.number - 1]
    study = re.search(rb'"study_id":(\d+)', text)
    trial = write_line(empty_trial(int(study[1]) if study else 0))
    index = line.number - 1
    without = _problems([*kept[:index], *_readable(kept[index + 1 :])])
    with_trial = _problems([*kept[:index], trial, *_readable(kept[index + 1 :])])
    looks_like_one = b'"datetime_start"' in text and b'"trial_id"' not in text
    fits = with_trial < without or (with_trial == without and looks_like_one)
    return trial if fits else None


def _readable(lines: Sequence[bytes | None]) -> Iterator[bytes]:
    return (text for text in lines if text is not None and read_line(text, 0).log is not None)


def _problems(lines: Sequence[bytes | None]) -> int:
    return len(_unusable(lines))


def _lost_study(path: Path, lines: Sequence[Line]) -> bytes | None:
    """The line that began the study, made from its settings; None if there are none."""
    for line in lines:
        attribute = (line.log or {}).get("system_attr")
        record = attribute.get(SETTINGS) if isinstance(attribute, Mapping) else None
        if isinstance(record, Mapping) and record.get("direction") in DIRECTIONS:
            directions = [DIRECTIONS[record["direction"]]]
            log = {"op_code": CREATE_STUDY, "worker_id": "", "study_name": path.stem, "directions": directions}
            return write_line(log)
    return None


# -------------------------------------------------------------------- records that cannot be used


class _Given(BaseJournalBackend):
    """A journal in memory that nobody writes."""

    def __init__(self, logs: list[dict[str, Any]]) -> None:
        self.logs = logs

    def read_logs(self, log_number_from: int) -> list[dict[str, Any]]:
        return self.logs[log_number_from:]

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        raise AssertionError("only read")


def _unusable(kept: Sequence[bytes | None]) -> list[Finding]:
    """Every line whose record cannot be used, and every suggestion that lacks its design."""
    numbered = [(number, json.loads(text)) for number, text in enumerate(kept, start=1) if text is not None]
    try:
        storage = JournalStorage(_Given([log for _, log in numbered]))
    except UNFIT:
        return list(_one_by_one(numbered))
    places = _places(numbered)
    found = list(_of_nothing(numbered))
    for study in storage.get_all_studies():
        found += _of_study(storage, study._study_id, places)
    return found


def _one_by_one(numbered: Numbered) -> Iterator[Finding]:
    """The lines Optuna cannot apply."""
    given = _Given([])
    storage = JournalStorage(given)
    for number, log in numbered:
        given.logs.append(log)
        try:
            storage.get_all_studies()
        except UNFIT:
            yield Finding(number, "it cannot be applied")


def _of_nothing(numbered: Numbered) -> Iterator[Finding]:
    """Lines about a trial before it began."""
    trials = 0
    for number, log in numbered:
        trials += log["op_code"] == CREATE_TRIAL
        if log.get("trial_id", -1) >= trials:
            yield Finding(number, f"it is about trial {log['trial_id']}, which does not exist")


def _of_study(storage: BaseStorage, study_id: int, places: Mapping[tuple[int, str], int]) -> Iterator[Finding]:
    record: Any = storage.get_study_system_attrs(study_id).get(SETTINGS)
    if record is None:
        return
    try:
        if not is_sound(record):
            raise StudyError("the settings are damaged")
        settings = Settings.from_dict(record)
    except EdrboError as problem:
        yield Finding(places.get((study_id, SETTINGS)), problem.message)
        return
    for unread in Ledger(storage, study_id, settings, "").read().problems:
        yield Finding(places.get((study_id, unread.ref)), str(unread))
    for trial in storage.get_all_trials(study_id, deepcopy=False):
        if trial.params and DESIGN not in trial.system_attrs and OWNER in trial.system_attrs:
            yield Finding(None, f"suggestion {trial.number} has lost its design")


def _places(numbered: Numbered) -> dict[tuple[int, str], int]:
    """(study, ref of a record) → number of its line."""
    found: dict[tuple[int, str], int] = {}
    trials: list[tuple[int, int]] = []  # study and number of each trial, by its id
    counts: dict[int, int] = {}
    for number, log in numbered:
        if log.get("op_code") == CREATE_TRIAL:
            study = log["study_id"]
            trials.append((study, counts.get(study, 0)))
            counts[study] = counts.get(study, 0) + 1
            for key in log.get("system_attrs", {}):
                found[study, _ref(key, trials[-1][1])] = number
        elif "system_attr" in log:
            if "trial_id" in log and log["trial_id"] >= len(trials):
                continue
            study, trial = trials[log["trial_id"]] if "trial_id" in log else (log["study_id"], 0)
            for key in log["system_attr"]:
                found[study, _ref(key, trial)] = number
    return found


def _ref(key: str, number: int) -> str:
    return f"{key}:{number}" if key == DESIGN else key


def _without_record(text: bytes | None) -> bytes | None:
    """A line whose record cannot be used: an empty trial if it began one, else nothing."""
    log = {} if text is None else json.loads(text)
    return write_line(empty_trial(log.get("study_id"))) if log.get("op_code") == CREATE_TRIAL else None
