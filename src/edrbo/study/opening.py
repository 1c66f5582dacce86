"""Finding a study in its place, or making it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, Literal

from optuna.exceptions import DuplicatedStudyError
from optuna.storages import BaseStorage
from optuna.study import StudyDirection

from edrbo.errors import StudyError
from edrbo.records.settings import Settings
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
    return Settings.from_dict(record)


def study_names(where: str | Path) -> list[str]:
    """The names of the studies in a file or a database; a file is not made."""
    storage = open_storage(where, create=False)
    with guard(where, "open"):
        return [study.study_name for study in storage.get_all_studies() if SETTINGS in study.system_attrs]
