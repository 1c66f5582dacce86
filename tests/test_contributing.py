"""What docs/contributing.md says of extension points is true: the files exist, and one of each comes from outside."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
ROWS = [row.split("|")[1:-1] for row in re.findall(r"^\| .* \|$", PAGE, flags=re.MULTILINE) if "`src/" in row]
# Where one of each comes from outside and is run by the tests.
FROM_OUTSIDE = {
    "surrogate": "docs/extend/surrogate.py",
    "context distribution": "docs/extend/context_distribution.py",
    "goal": "docs/extend/goal.py",
    "acquisition function": "docs/extend/acquisition.py",
    "method": "docs/extend/method.py",
    "score": "docs/extend/method.py",
    "problem": "docs/extend/problem.py",
    "kernel": "### A kernel",
    "functional": "### A functional",
    "command": "### A command",
    "kind of variable": "tests/test_variable_kinds.py",
    "setting": "src/edrbo/records/settings.py",  # not from outside: the interfaces loop over its fields
}


def test_the_table_has_every_extension_point() -> None:
    assert {row[0].strip() for row in ROWS} == set(FROM_OUTSIDE)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].strip())
def test_the_files_one_touches_exist_and_one_is_added_from_outside(row: list[str]) -> None:
    for path in re.findall(r"`((?:src|tests)/[^`]+)`", "|".join(row)):
        assert (ROOT / path).exists(), path
    place = FROM_OUTSIDE[row[0].strip()]
    assert place in PAGE if place.startswith("###") else (ROOT / place).exists()


def test_paths_of_the_page_exist() -> None:
    for path in re.findall(r"`((?:src|tests|scripts|benchmarks|research)/[^`* ]+)`", PAGE):
        assert (ROOT / path).exists(), path
