"""Finding a study in its place, or making it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from optuna.exceptions import DuplicatedStudyError
from optuna.storages import BaseStorage
from optuna.study import StudyDirection

from edrbo.errors import StudyError
from edrbo.records.settings import Settings
from edrbo.study.storage import describe, guard, is_url, open_storage
from edrbo.study.trials import SETTINGS

LONGEST_NAME = 512  # what Optuna's database columns hold


def open_study(where: str | Path, name: str | None, settings: Settings | None) -> tuple[BaseStorage, int, Settings]:
    """The storage, the study's number in it, and its settings; with ``settings`` a missing study is made."""
    if settings is not None:
        settings.to_dict()  # refuses what cannot be stored before anything is written
    if name is not None and not 0 < len(name) <= LONGEST_NAME:
        raise StudyError("this cannot name a study", f"use 1 to {LONGEST_NAME} characters")
    storage = open_storage(where, create=settings is not None)
    with guard(where, "open"):
        names = _names(storage)
        if name is None:
            name = _only_name(where, names)
        if name not in names:
            if settings is None:
                found = ", ".join(map(repr, names)) or "none"
                raise StudyError(f"there is no study {name!r} in {describe(where)}", f"studies there: {found}")
            _create(storage, name, settings)
        study_id = storage.get_study_id_from_name(name)
        return storage, study_id, _settings(storage, study_id, settings, where)


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


def _settings(storage: BaseStorage, study_id: int, given: Settings | None, where: str | Path) -> Settings:
    record: Any = storage.get_study_system_attrs(study_id).get(SETTINGS)
    if record is None:
        if given is None:
            raise StudyError(f"the study in {describe(where)} was not made by edrbo", "give a space to make it one")
        storage.set_study_system_attr(study_id, SETTINGS, given.to_dict())
        record = storage.get_study_system_attrs(study_id)[SETTINGS]
    stored = Settings.from_dict(record)
    differences = [] if given is None else given.differences(stored)
    if differences:
        raise StudyError(
            f"the study in {describe(where)} has other settings: {'; '.join(differences)}",
            "open it without a space to go on with its own, or make a new study",
        )
    return stored
