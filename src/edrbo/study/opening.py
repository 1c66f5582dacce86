"""Finding a study in its place, or making it."""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from optuna.exceptions import DuplicatedStudyError
from optuna.storages import BaseStorage
from optuna.study import StudyDirection

from edrbo.errors import EdrboError, StudyError
from edrbo.records.checksum import is_sound, signed
from edrbo.records.named_law import check_law
from edrbo.records.settings import Settings
from edrbo.study.journal import FileStorage
from edrbo.study.storage import describe, guard, is_url, open_storage
from edrbo.study.trials import SETTINGS

Creation = Literal["never", "first", "always"]  # make a study that is missing: only in a new storage, or anywhere
LONGEST_NAME = 512  # what Optuna's database columns hold


def open_study(
    where: str | Path, name: str | None, settings: Settings | None, create: Creation = "always"
) -> tuple[BaseStorage, int, Settings]:
    """The storage, the study's number in it, and the settings it was made with.

    With ``settings`` a missing study is made, if ``create`` allows it.
    """
    if settings is not None:
        settings.to_dict()  # refuses what cannot be stored before anything is written
    if name is not None and not 0 < len(name) <= LONGEST_NAME:
        raise StudyError("this cannot name a study", f"use 1 to {LONGEST_NAME} characters")
    if "\x00" in (name or "") or any("\ud800" <= letter <= "\udfff" for letter in name or ""):
        raise StudyError("this cannot name a study", "leave out NUL and half characters")
    made = settings is not None and not is_url(where) and not Path(where).exists()
    try:
        return _open(where, name, settings, create)
    except EdrboError:
        if made:
            _remove_unfinished(Path(where))
        raise


def _open(
    where: str | Path, name: str | None, settings: Settings | None, create: Creation
) -> tuple[BaseStorage, int, Settings]:
    storage = open_storage(where, create=settings is not None and create != "never")
    with guard(where, "open"):
        names = _names(storage)
        if name is None:
            name = _only_name(where, names)
        if name not in names:
            found = ", ".join(map(repr, names)) or "none"
            if settings is None or create == "never" or (create == "first" and names):
                hint = f"studies there: {found}"
                hint += "; a new one beside them is made by `edrbo new`" if settings is not None and names else ""
                raise StudyError(f"there is no study {name!r} in {describe(where)}", hint)
            _create(storage, name, settings)
        study_id = storage.get_study_id_from_name(name)
        return storage, study_id, stored_settings(storage, study_id, settings, where)


def _remove_unfinished(path: Path) -> None:
    """Nothing is left of a study that could not be made, say on a full disk."""
    with suppress(OSError):
        if SETTINGS.encode() not in path.read_bytes():
            path.unlink()


def _names(storage: BaseStorage) -> list[str]:
    return [study.study_name for study in storage.get_all_studies()]


def _only_name(where: str | Path, names: list[str]) -> str:
    if len(names) == 1:
        return names[0]
    if names:
        raise StudyError(
            f"there are {len(names)} studies in {describe(where)}", f"name one: {', '.join(map(repr, names))}"
        )
    return "edrbo" if is_url(where) else Path(where).stem or "edrbo"


def _create(storage: BaseStorage, name: str, settings: Settings) -> None:
    check_law(settings.law, settings.space)
    direction = StudyDirection.MAXIMIZE if settings.direction == "maximize" else StudyDirection.MINIMIZE
    logger = logging.getLogger("optuna.storages")  # would announce the study on standard error
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        storage.create_new_study([direction], name)
    except DuplicatedStudyError:  # another process was quicker
        return
    finally:
        logger.setLevel(level)


def stored_settings(storage: BaseStorage, study_id: int, given: Settings | None, where: str | Path) -> Settings:
    """The settings that a study was made with; those that are ``given`` are stored if it has none."""
    record: Any = storage.get_study_system_attrs(study_id).get(SETTINGS)
    if record is None:
        if given is None:
            raise _no_settings(storage, where)
        storage.set_study_system_attr(study_id, SETTINGS, signed(given.to_dict()))
        record = storage.get_study_system_attrs(study_id)[SETTINGS]
    if isinstance(record, dict) and not is_sound(record):
        raise StudyError(f"the settings of the study in {describe(where)} are damaged", "see `edrbo check`")
    return Settings.from_dict(record)


def study_names(where: str | Path) -> list[str]:
    """The names of the studies in a file or a database; a file is not made."""
    storage = open_storage(where, create=False)
    with guard(where, "open"):
        return [study.study_name for study in storage.get_all_studies() if SETTINGS in study.system_attrs]


def _no_settings(storage: BaseStorage, where: str | Path) -> StudyError:
    damaged = storage.journal.damaged if isinstance(storage, FileStorage) else {}
    if damaged:
        lines = ", ".join(map(str, damaged))
        return StudyError(
            f"the settings of the study in {describe(where)} are damaged (line {lines})",
            "open it with its space, or its TOML file, to write them again",
        )
    return StudyError(f"the study in {describe(where)} was not made by edrbo", "give a space to make it one")
