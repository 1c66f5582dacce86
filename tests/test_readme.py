"""The README's example runs as it stands there and prints what is said, and its links lead somewhere."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "README.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    names: dict[str, object] = {}
    random.seed(0)  # of the weather in the example
    exec(compile(code, "README.md", "exec"), names)
    told = re.findall(r"^    (.*)$", page[page.index("prints, for") :], flags=re.MULTILINE)[:4]
    printed = capsys.readouterr().out.splitlines()[:4]
    for said, line in zip(told, printed, strict=True):
        assert re.sub(r"[\d.]+", "#", said) == re.sub(r"[\d.]+", "#", line)
        numbers = [[float(number) for number in re.findall(r"\d+(?:\.\d+)?", text)] for text in (said, line)]
        assert numbers[0] == pytest.approx(numbers[1], abs=0.5)
    answer = names["answer"]
    assert 20 < answer.design["speed"] < 50  # type: ignore[attr-defined]
    assert answer.interval[0] < answer.expected < answer.interval[1]  # type: ignore[attr-defined]


def test_links_lead_somewhere() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    for page in pages:
        # neither code nor formulas hold links
        prose = re.sub(r"```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$\n]*\$", "", page.read_text(), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", prose):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"
