"""The README's example runs as it stands there, and its links lead somewhere."""

from __future__ import annotations

import random
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_example_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    names: dict[str, object] = {}
    random.seed(0)  # of the weather in the example
    exec(compile(code, "README.md", "exec"), names)
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
