"""Descriptions of studies: written and read back, whatever the names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from edrbo.errors import StudyError
from edrbo.lab.config import read_toml, rewrite_toml, write_toml
from edrbo.records.outcomes import Limit, Maximize
from edrbo.records.settings import Settings
from edrbo.space import Integer, Real, Space

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


def there_and_back(path: Path, settings: Settings, name: str = "name") -> Settings:
    path.unlink(missing_ok=True)
    write_toml(path, "postgresql://me@host/lab", name, settings)
    found = read_toml(path)
    assert (found.name, found.storage) == (name, "postgresql://me@host/lab")
    return found.settings


def test_a_storage_that_no_file_can_be(tmp_path: Path, line: Space) -> None:
    write_toml(tmp_path / "study.toml", "x.db", "x", Settings(line))
    text = (tmp_path / "study.toml").read_text()
    (tmp_path / "study.toml").write_text(text.replace('"x.db"', '"x\\u0000.db"'))
    with pytest.raises(StudyError, match="cannot be the name of a file"):
        read_toml(tmp_path / "study.toml")


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


WRITTEN = """\
# Line 2, ordered by Ada
format = 1
storage = "line.db"   # beside this file
seed = 0x10
direction = "maximize"

# what the operator turns
[design]
speed = { low = 10, high = 6e1, unit = "m/min" }  # the belt
dose = [1.0, 9.00]    # grams
kind = ["a", 'b']

[context]
humidity = [0, 100]   # in the hall
"""


def test_what_does_not_change_stays_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "line.toml"
    path.write_text(WRITTEN)
    path.chmod(0o640)
    described = read_toml(path)
    old = described.settings
    space = Space({**old.space.design, "dose": (1, 12), "layers": Integer(1, 4)}, old.space.context, ["dose <= 11"])
    new = replace(old, space=space, title="Line 2", seed=17)
    rewrite_toml(path, described, new)
    text = path.read_text()
    assert read_toml(path).settings == new
    changed = {"seed = 0x10", "dose = [1.0, 9.00]    # grams"}
    assert [line for line in WRITTEN.splitlines() if line not in text.splitlines()] == [
        line for line in WRITTEN.splitlines() if line in changed
    ]
    assert "# grams" in text
    assert path.stat().st_mode & 0o777 == 0o640
    rewrite_toml(path, read_toml(path), old)
    assert read_toml(path).settings == old
    assert "title" not in path.read_text()


def test_one_outcome_becomes_several(tmp_path: Path) -> None:
    path = tmp_path / "line.toml"
    path.write_text(WRITTEN.replace("seed", 'outcome = "gloss"\nunit = "GU"\nseed'))
    described = read_toml(path)
    aims = {"gloss": Maximize(unit="GU"), "rough": Limit(upper=2.0)}
    rewrite_toml(path, described, replace(described.settings, outcomes=aims))
    assert list(read_toml(path).settings.outcomes) == ["gloss", "rough"]
    assert "# the belt" in path.read_text()


@limits(max_examples=40, deadline=None)
@given(first=names, second=names, title=st.text(st.characters(exclude_categories=["Cs"]), max_size=9))
def test_any_names_are_rewritten(tmp_path_factory: pytest.TempPathFactory, first: str, second: str, title: str) -> None:
    if first == second or not title.isprintable():
        return
    path = tmp_path_factory.getbasetemp() / "again.toml"
    old = Settings(Space({first: (0, 1)}))
    there_and_back(path, old)
    new = Settings(Space({first: (0, 2), second: ["a", "b"]}), title=title)
    rewrite_toml(path, read_toml(path), new)
    assert read_toml(path).settings == new
