"""What docs/contributing.md says of extension points is true: the files exist, and one of each comes from outside."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from edrbo import Optimizer, Space, register
from edrbo.lab.web.setup import goal_choices
from edrbo.records import goals
from edrbo.records.goals import Goal, parse_goal
from edrbo.records.settings import Settings

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


@pytest.mark.parametrize("goal", ["MeanSd", "TargetLoss"])
def test_a_built_in_goal_is_three_files_at_most(goal: str) -> None:
    """Those without a functional of their own; what else is to be known of one stands in its class."""

    def names(path: Path) -> set[str]:
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        return {node.id for node in nodes if isinstance(node, ast.Name)} | {
            node.name for node in nodes if isinstance(node, ast.alias | ast.ClassDef)
        }

    touched = [path.name for path in (ROOT / "src").rglob("*.py") if goal in names(path)]
    assert len(touched) <= 3, touched
    assert "goals.py" in touched


def test_a_goal_from_outside_is_on_forms_in_texts_and_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(goals, "_REGISTERED", dict(goals._REGISTERED))  # it goes with this test

    @register
    @dataclass(frozen=True)
    class Midrange(Goal):
        """Half way between the worst and the best outcome, moved by ``offset``."""

        offset: float
        name: ClassVar[str] = "midrange"
        sentence: ClassVar[str] = "the middle of the results, moved by {}"
        usual: ClassVar[tuple[float, ...]] = (2.0,)

        def value(self, outcomes: Any, weights: Any, direction: Any) -> Any:
            return 0.5 * (outcomes.max(-1) + outcomes.min(-1)) + self.offset

    settings = Settings(Space(design={"x": (0, 1)}, context={"c": (0, 1)}), goal="midrange:2")
    assert settings.goal == parse_goal("midrange:2") == Midrange(2.0)
    assert Settings.from_dict(settings.to_dict()) == settings
    (chosen,) = [choice for choice in goal_choices(settings) if choice["chosen"]]
    assert (chosen["pieces"], chosen["numbers"]) == (["the middle of the results, moved by ", ""], ["2"])
    assert Optimizer(settings.space, goal="midrange:2").settings.goal == Midrange(2.0)
