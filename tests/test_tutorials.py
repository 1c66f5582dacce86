"""The tutorials run, cell by cell in one namespace, and end as near to the optimum as they say; they are notebooks."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from typing import Any

import matplotlib
import pytest
import yaml

ROOT = Path(__file__).parents[1]
SPEC = importlib.util.spec_from_file_location("tutorial_pages", ROOT / "scripts" / "tutorial_pages.py")
assert SPEC is not None
assert SPEC.loader is not None
tutorial_pages = importlib.util.module_from_spec(SPEC)
sys.modules[SPEC.name] = tutorial_pages
SPEC.loader.exec_module(tutorial_pages)


@pytest.mark.parametrize("script", tutorial_pages.SCRIPTS, ids=lambda script: script.stem)
def test_the_cells_run(script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last cell of each asserts how near it came to the best there is. `make docs` runs them in a kernel."""
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    names: dict[str, Any] = {"__name__": "__main__"}
    cells = tutorial_pages.cells_of(script.read_text(encoding="utf-8"))
    for place, (kind, text) in enumerate(cells):
        if kind == "code":
            exec(compile(text, f"{script.name}, cell {place}", "exec"), names)
    last = ast.parse(cells[-1][1])
    assert any(isinstance(node, ast.Assert) for node in last.body)
    assert list(tmp_path.iterdir()) == []


def test_nothing_of_a_script_is_lost() -> None:
    for script in tutorial_pages.SCRIPTS:
        text = script.read_text(encoding="utf-8")
        code = "\n".join(body for kind, body in tutorial_pages.cells_of(text) if kind == "code")
        assert ast.dump(ast.parse(code)) == ast.dump(ast.parse(text))


def test_a_page_shows_what_its_cells_gave() -> None:
    nbformat = pytest.importorskip("nbformat", reason="needs edrbo[docs]")
    notebook = tutorial_pages.notebook_of("# %% [markdown]\n# # Title\n#\n# Words.\n\n# %%\nprint(1)\n")
    nbformat.validate(notebook)
    image = {"output_type": "display_data", "metadata": {}, "data": {"image/png": "UE5H", "text/plain": "<Figure>"}}
    notebook.cells[1].outputs = [
        nbformat.v4.new_output("stream", name="stdout", text="1\n"),
        nbformat.from_dict(image),
    ]
    page, pictures = tutorial_pages.page_of("short", notebook)
    assert page.startswith("# Title\n\nWords.\n")
    assert "```python\nprint(1)\n```\n\n```text\n1\n```\n\n![What this cell draws](short-1.png)\n" in page
    assert pictures == {"short-1.png": b"PNG"}


def test_every_tutorial_is_in_the_menu() -> None:
    words = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for script in tutorial_pages.SCRIPTS:
        assert f"tutorials/{script.stem}.md" in words
    assert yaml.safe_load(words)["hooks"] == ["scripts/tutorial_pages.py"]
