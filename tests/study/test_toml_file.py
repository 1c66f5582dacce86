"""Descriptions of studies: written and read back, whatever the names."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edrbo.records.settings import Settings
from edrbo.space import Integer, Real, Space
from edrbo.study.toml_file import read_toml, write_toml

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


def there_and_back(path: Path, settings: Settings, name: str = "name") -> Settings:
    path.unlink(missing_ok=True)
    write_toml(path, "postgresql://me@host/lab", name, settings)
    found = read_toml(path)
    assert (found.name, found.storage) == (name, "postgresql://me@host/lab")
    return found.settings


def test_everything(tmp_path: Path, everything: Space, space: Space) -> None:
    for one in (everything, space):
        settings = Settings(one, "drbo-kde", "minimize", 17, 2.5, 9)
        assert there_and_back(tmp_path / "study.toml", settings) == settings


@given(design=names, context=names, choices=st.lists(names, min_size=2, max_size=4, unique=True), study=names)
def test_any_names(
    tmp_path_factory: pytest.TempPathFactory, design: str, context: str, choices: list[str], study: str
) -> None:
    if design == context:
        context += "'"
    settings = Settings(Space({design: choices}, {context: None}))
    path = tmp_path_factory.getbasetemp() / "any.toml"
    assert there_and_back(path, settings, study) == settings


@given(st.floats(-1e300, 1e300), st.floats(1e-3, 1e300), st.booleans())
def test_any_bounds(tmp_path_factory: pytest.TempPathFactory, low: float, width: float, seeded: bool) -> None:
    if not low < low + width < float("inf"):
        return
    settings = Settings(Space({"x": (low, low + width)}, {"c": (low, None)}), seed=5 if seeded else 0)
    path = tmp_path_factory.getbasetemp() / "bounds.toml"
    assert there_and_back(path, settings) == settings


def test_units_steps_and_digits(tmp_path: Path) -> None:
    space = Space(
        {"speed": Real(10, 60, unit="m/min", step=0.5, digits=1), "n": Integer(1, 8, unit="layers")},
        {"humidity": Real(0, 100, unit="%"), "price": Real(unit="€")},
    )
    settings = Settings(space, outcome="gloss", unit="GU", title="Coating, line 2")
    assert there_and_back(tmp_path / "study.toml", settings) == settings
    path = tmp_path / "hand.toml"
    path.write_text('[design]\nspeed = { low = 10, high = 60, unit = "m/min", step = 0.5 }\n')
    assert read_toml(path).settings.space == Space({"speed": Real(10, 60, unit="m/min", step=0.5)})
