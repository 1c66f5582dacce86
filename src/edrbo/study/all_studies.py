"""Every study of one place."""

from __future__ import annotations

from pathlib import Path

from edrbo.study.ledger import Ledger
from edrbo.study.opening import stored_settings
from edrbo.study.storage import guard, is_url, open_storage
from edrbo.study.study import Study
from edrbo.study.trials import SETTINGS


def all_studies(where: str | Path) -> list[Study]:
    """The studies that edrbo made in a file or a database, which is read once for all of them; none is made."""
    place = where if is_url(where) else Path(where).absolute()
    storage = open_storage(place, create=False)
    with guard(place, "open"):
        found = [study for study in storage.get_all_studies() if SETTINGS in study.system_attrs]
        numbers = {study.study_name: storage.get_study_id_from_name(study.study_name) for study in found}
        settings = {name: stored_settings(storage, number, None, place) for name, number in numbers.items()}
    return [Study(Ledger(storage, numbers[name], settings[name], place), settings[name], name) for name in numbers]
