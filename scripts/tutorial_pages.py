"""MkDocs hook: the scripts of examples/tutorials as executed notebooks, and as pages of the site; MathJax beside them.

A script is in percent format: ``# %% [markdown]`` begins a cell of text, ``# %%`` one of code. `make docs` runs each in
a kernel of its own; a cell that fails fails the build. Nothing that is made here is kept in git.
"""

from __future__ import annotations

import base64
import os
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from nbformat import NotebookNode

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted((ROOT / "examples" / "tutorials").glob("*.py"))


def cells_of(script: str) -> list[tuple[str, str]]:
    """(kind, text) of each cell, in order; kind is ``markdown`` or ``code``."""
    found: list[tuple[str, str]] = []
    for part in ("\n" + script).split("\n# %%")[1:]:
        head, _, body = part.partition("\n")
        if head.strip() == "[markdown]":
            lines = [line.removeprefix("#").removeprefix(" ") for line in body.strip().splitlines()]
            found.append(("markdown", "\n".join(lines)))
        else:
            found.append(("code", body.strip("\n")))
    return found


def notebook_of(script: str) -> NotebookNode:
    from nbformat import v4

    make = {"markdown": v4.new_markdown_cell, "code": v4.new_code_cell}
    cells = [make[kind](text, id=f"cell-{place}") for place, (kind, text) in enumerate(cells_of(script))]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})


def output_of(output: Any, picture: str) -> tuple[str, bytes | None]:
    """One output of a cell as Markdown, and the PNG to be kept under the name ``picture``."""
    if output["output_type"] == "stream":
        return "```text\n" + output["text"].rstrip() + "\n```", None
    data = output["data"]
    if "image/png" in data:
        return f"![What this cell draws]({picture})", base64.b64decode(data["image/png"])
    return "```text\n" + data["text/plain"] + "\n```", None


def page_of(name: str, notebook: NotebookNode) -> tuple[str, dict[str, bytes]]:
    """The page of an executed notebook, and its pictures by file name."""
    parts, pictures = [], {}
    for cell in notebook.cells:
        parts.append(cell.source if cell.cell_type == "markdown" else f"```python\n{cell.source}\n```")
        for output in cell.get("outputs", []):
            picture = f"{name}-{len(pictures) + 1}.png"
            text, png = output_of(output, picture)
            parts.append(text)
            if png is not None:
                pictures[picture] = png
    parts.insert(1, f"*[This page as a notebook]({name}.ipynb), run when the site was built.*")
    return "\n\n".join(parts) + "\n", pictures


def mathjax() -> bytes:
    """MathJax in one file, fonts included, of the package that brings it."""
    (script,) = (file for file in metadata.files("sphinx-mathjax-offline") or () if file.name == "tex-svg.js")
    return script.read_binary()


def on_files(files: Files, config: MkDocsConfig) -> Files:
    import nbformat
    from mkdocs.structure.files import File
    from nbclient import NotebookClient
    from traitlets.config import Config

    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("PYTHONWARNINGS", "ignore:IProgress not found")  # a bar of tqdm, which no tutorial shows
    private = Config({"KernelManager": {"transport": "ipc"}})  # no port that others on this machine could listen to
    for script in SCRIPTS:
        notebook = notebook_of(script.read_text(encoding="utf-8"))
        NotebookClient(notebook, config=private, timeout=600).execute()
        page, pictures = page_of(script.stem, notebook)
        made: dict[str, str | bytes] = {f"{script.stem}.md": page, f"{script.stem}.ipynb": nbformat.writes(notebook)}
        for name, content in {**made, **pictures}.items():
            files.append(File.generated(config, f"tutorials/{name}", content=content))
    files.append(File.generated(config, "javascripts/mathjax.js", content=mathjax()))
    return files
