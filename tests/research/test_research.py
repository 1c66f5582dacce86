"""``research/`` stands on public names, and nothing of the package stands on it."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RESEARCH = sorted((ROOT / "research").rglob("*.py"))
BY_HAND = [*RESEARCH, *sorted((ROOT / "benchmarks").glob("*.py")), *sorted((ROOT / "scripts").glob("*.py"))]


def private_names(tree: ast.AST) -> Iterator[str]:
    """Names that are somebody else's own: imported, or taken from anything but ``self`` and ``cls``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from (name.name for name in node.names if is_private(name.name))
        if isinstance(node, ast.Attribute) and is_private(node.attr) and owner(node) not in ("self", "cls"):
            yield node.attr


def owner(node: ast.Attribute) -> str:
    """``a`` of ``a.b``; of anything longer nothing."""
    return node.value.id if isinstance(node.value, ast.Name) else ""


def is_private(name: str) -> bool:
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


def patched_modules(tree: ast.AST) -> Iterator[str]:
    """Constants and functions of the package that a program gives another value."""
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {(name.asname or name.name).partition(".")[0] for name in node.names}
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("edrbo"):
            imported |= {name.asname or name.name for name in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and owner(node) in imported:
            yield f"{owner(node)}.{node.attr}"


def test_the_search_finds_what_it_looks_for() -> None:
    text = "from edrbo.optimizer import belief\nbelief._best(a)\nbelief.RATE = 2\nfrom edrbo.x import _y\nself._z"
    assert sorted(private_names(ast.parse(text))) == ["_best", "_y"]
    assert list(patched_modules(ast.parse(text))) == ["belief.RATE"]


@pytest.mark.parametrize("path", RESEARCH, ids=lambda path: path.stem)
def test_research_uses_public_names_only(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert list(private_names(tree)) == []
    assert list(patched_modules(tree)) == []


@pytest.mark.parametrize("path", BY_HAND, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_programs_import_what_there_is(path: Path) -> None:
    """Most of them are run by hand, so nothing else would say that a module has moved."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "edrbo":
            home = importlib.import_module(node.module or "")
            for name in node.names:
                if not hasattr(home, name.name):
                    importlib.import_module(f"{node.module}.{name.name}")


def test_the_package_does_not_depend_on_research() -> None:
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [name.name for name in node.names] if isinstance(node, ast.Import) else [node.module or ""]
                assert not [name for name in names if name.partition(".")[0] == "research"], path


def test_tests_refer_to_no_path_outside_the_project() -> None:
    """Files of others come by environment variables only."""
    found = [
        path.name
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if path != Path(__file__)
        for depth in [len(path.relative_to(ROOT).parents)]
        if f"parents[{depth}]" in path.read_text(encoding="utf-8")
    ]
    assert found == []
