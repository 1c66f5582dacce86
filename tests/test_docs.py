"""Every Python block of the documentation runs as it stands there; the blocks of a page share their names, in order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from edrbo.records.goals import base

ROOT = Path(__file__).parents[1]
PAGES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if "```python" in page.read_text(encoding="utf-8")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT / "docs").as_posix())
def test_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(base, "_REGISTERED", dict(base._REGISTERED))  # a goal of the docs' own stays theirs
    text = page.read_text(encoding="utf-8")
    names: dict[str, object] = {"__name__": "__main__"}
    for block in re.finditer(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE):
        lines_before = text.count("\n", 0, block.start(1))
        code = "\n" * lines_before + block[1]  # so that an error names the line of the page
        exec(compile(code, str(page), "exec"), names)
