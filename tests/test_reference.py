"""The reference holds every public name, and an example that runs for each name of the package itself."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

import edrbo

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs" / "reference").glob("*.md"))
PACKAGES = (
    "edrbo",
    "edrbo.acquisition.risk",
    "edrbo.integrations.botorch",
    "edrbo.contexts",
    "edrbo.errors",
    "edrbo.integrations.gest",
    "edrbo.integrations.optuna",
    "edrbo.plot",
    "edrbo.records.goals",
    "edrbo.lab.report",
    "edrbo.space",
    "edrbo.lab",
    "edrbo.theory",
)


def public_names(module: Any) -> list[str]:
    """Those it names itself, or everything that was made in it."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    own = [name for name, thing in vars(module).items() if getattr(thing, "__module__", "") == module.__name__]
    return [name for name in own if not name.startswith("_")]


def found(path: str) -> Any:
    """The module, or the thing in a module, that a dotted path names."""
    try:
        return import_module(path)
    except ModuleNotFoundError:
        home, _, name = path.rpartition(".")
        return getattr(import_module(home), name)


def documented(page: Path) -> list[tuple[str, Any]]:
    """Name and thing of every directive of a page, and of the members that a module's directive lists."""
    things = []
    for path, indented in re.findall(r"^::: (\S+)\n((?:    .*\n)*)", page.read_text(encoding="utf-8"), re.MULTILINE):
        options = (yaml.safe_load(indented) or {}).get("options", {})
        thing = found(path)
        things.append((path.rpartition(".")[2], thing))
        if hasattr(thing, "__path__") or hasattr(thing, "__file__"):
            members = options.get("members", public_names(thing))
            things += [(name, getattr(thing, name)) for name in members]
    return things


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_in_the_reference(package: str) -> None:
    module = import_module(package)
    shown = [pair for page in PAGES for pair in documented(page)]
    missing = [
        name
        for name in public_names(module)
        if not any(name == title and getattr(module, name) is thing for title, thing in shown)
    ]
    assert missing == []


def test_every_package_that_names_its_public_names_is_looked_at() -> None:
    inits = (ROOT / "src" / "edrbo").rglob("__init__.py")
    naming = [path.parent.relative_to(ROOT / "src") for path in inits if "\n__all__ = [" in path.read_text()]
    own = {"edrbo.charts"}  # what our notebook, report and page are drawn with
    assert {".".join(path.parts) for path in naming} <= {*PACKAGES, *own}


def test_every_name_of_the_package_has_an_example() -> None:
    """In its docstring (`tests/test_docstrings.py` runs these) or on its page (`tests/test_docs.py`)."""
    blocks = [re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE) for page in PAGES]
    used = set(re.findall(r"\w+", "\n".join(block for page in blocks for block in page)))
    without = [name for name in edrbo.__all__ if ">>>" not in (getattr(edrbo, name).__doc__ or "") and name not in used]
    assert without == []


def test_every_page_is_in_the_menu_and_the_list() -> None:
    menu, listed = (ROOT / "mkdocs.yml").read_text(), (ROOT / "docs" / "reference" / "index.md").read_text()
    for page in PAGES:
        assert f"reference/{page.name}" in menu
        assert page.name == "index.md" or f"({page.name})" in listed


def test_no_public_signature_hides_its_arguments() -> None:
    """``**choices: Any`` shows nothing in ``help()``. What other libraries call has their signature."""
    theirs = {"condition_on_observations", "savefig", "redirect_request"}
    found = []
    for path in sorted((ROOT / "src" / "edrbo").rglob("*.py")):
        if "web" in path.parts:  # templates take what a page names
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        outer = [node for part in tree.body for node in ([part] if not isinstance(part, ast.ClassDef) else part.body)]
        for node in outer:
            if isinstance(node, ast.FunctionDef) and node.args.kwarg and not node.name.startswith("_"):
                annotation = node.args.kwarg.annotation
                if annotation is not None and ast.unparse(annotation) == "Any" and node.name not in theirs:
                    found.append(f"{path.name}: {node.name}")
    assert found == ["settings.py: of_call"]  # the arguments of the others, under their names
