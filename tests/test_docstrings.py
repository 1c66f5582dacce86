"""The examples in docstrings run and print what they say."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"
WITH_EXAMPLES = [path for path in sorted(SOURCE.rglob("*.py")) if ">>>" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_examples_in_docstrings(path: Path) -> None:
    module = import_module(".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"))
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0, "what was expected and what came is printed above"


def test_there_are_examples() -> None:
    assert len(WITH_EXAMPLES) >= 4
