"""Every Python block of the documentation runs as it stands there; the blocks of a page share their names, in order."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edrbo.acquisition import methods
from edrbo.records import goals
from edrbo.surrogate import kernels

ROOT = Path(__file__).parents[1]
PAGES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if "```python" in page.read_text(encoding="utf-8")]


def check_goals(names: dict[str, Any]) -> None:
    assert names["answer"].design["x"] < 0.1
    assert names["mean"].design["x"] > 0.9
    own = names["own"].settings
    assert type(own).from_dict(own.to_dict()).goal == own.goal


def check_methods(names: dict[str, Any]) -> None:
    optimizer = names["optimizer"]
    for value in (0.1, 0.4, 0.2, 0.3, 0.5):
        optimizer.tell(optimizer.ask(), {"c": value}, value)
    assert 0.0 <= optimizer.ask()["x"] <= 1.0


def check_start(names: dict[str, Any]) -> None:
    answer = names["answer"]
    found = (answer.design["speed"], answer.expected, *answer.interval, *answer.outcome_interval, answer.optimality_gap)
    assert found == pytest.approx((34.4, 89.7, 88.8, 90.6, 86.3, 91.7, 4.0), abs=0.3)


def check_coming_from(names: dict[str, Any]) -> None:
    """The best x on average is 0.2 + 0.6 times the mean of sixteen contexts, which has a standard error of 0.07."""
    assert list(names["answers"]) == ["ax", "botorch", "optuna", "xopt", "baybe"]
    assert list(names["answers"].values()) == pytest.approx([0.5] * 5, abs=3 * 0.6 * 0.07)


# What a page says about the results of its blocks.
CHECKS: dict[str, Callable[[dict[str, Any]], None]] = {
    "goals.md": check_goals,
    "guides/coming-from.md": check_coming_from,
    "methods.md": check_methods,
    "start.md": check_start,
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT / "docs").as_posix())
def test_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(goals, "_REGISTERED", dict(goals._REGISTERED))  # a goal of the docs' own stays theirs
    monkeypatch.setattr(kernels, "KERNELS", dict(kernels.KERNELS))  # and so does a kernel
    monkeypatch.setattr(methods, "PARTS", dict(methods.PARTS))  # and so do the pieces of a method
    text = page.read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in re.finditer(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE):
        lines_before = text.count("\n", 0, block.start(1))
        code = "\n" * lines_before + block[1]  # so that an error names the line of the page
        exec(compile(code, str(page), "exec"), names)
    if (name := page.relative_to(ROOT / "docs").as_posix()) in CHECKS:
        CHECKS[name](names)


def test_formulas_on_lines_of_their_own_are_paragraphs() -> None:
    """Inside a paragraph ``$$`` is read as ``$`` and a formula between signs for money."""
    for page in sorted((ROOT / "docs").rglob("*.md")):
        lines = ["", *page.read_text(encoding="utf-8").splitlines(), ""]
        for k, line in enumerate(lines):
            if "$$" in line:
                assert (line[:2], line[-2:]) == ("$$", "$$"), f"{page.name}: {line}"
                assert (lines[k - 1].strip(), lines[k + 1].strip()) == ("", ""), f"{page.name}: {line}"
