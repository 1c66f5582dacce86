"""The direction of imports: data flow one way, and heavy libraries stay behind the interfaces that use them."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "edrbo"

# A package imports only what stands above it; packages on one line do not know each other.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors", "html_table", "palette", "streams"),
    ("client",),
    ("cancellation", "charts", "threads"),
    ("space",),
    ("records",),
    ("lab.entry",),
    ("surrogate",),
    ("contexts",),
    ("acquisition",),
    ("text",),
    ("optimizer",),
    ("theory", "lab", "integrations", "integrations.botorch", "plot"),
    ("integrations.optuna", "lab.report"),
    ("bench.problems",),
    ("bench.learners",),
    ("bench.run",),
    ("bench.analysis",),
    ("bench",),
    ("lab.web",),
    ("integrations.mcp",),
    ("lab.cli",),
)
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
HEAVY = {
    *("botorch", "gpytorch", "linear_operator", "scipy"),
    *("optuna", "dask", "distributed", "pandas", "plotly", "matplotlib", "sqlalchemy", "gest_api", "mcp"),
}
# the last for its box decomposition, and only when called
OPTIONAL = ("integrations.botorch", "bench.learners", "acquisition.hypervolume")
MAY_IMPORT_AT_TOP = {
    "botorch": ("integrations.botorch", "bench.learners.botorch_learners"),
    "gpytorch": ("integrations.botorch", "bench.learners.botorch_learners"),
    "scipy": ("bench",),
    "optuna": ("integrations.optuna", "bench.learners.optuna_samplers"),
    "gest_api": ("integrations.gest",),
    "mcp": ("integrations.mcp",),
    "dask": ("bench.run.dask_cluster",),
    "distributed": ("bench.run.dask_cluster",),
}


@dataclass(frozen=True)
class Import:
    module: str  # who imports, without the package's name
    target: str  # absolute name of what is imported
    lazy: bool  # inside a function, or for the type checker only

    def __str__(self) -> str:
        return f"{self.module} imports {self.target}"


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


Statement = ast.Import | ast.ImportFrom


def statements(tree: ast.AST, lazy: bool = False) -> Iterator[tuple[Statement, bool]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Statement):
            yield node, lazy
        else:
            deferred = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            typing_only = isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
            yield from statements(node, lazy or deferred or typing_only)


def imports_of(path: Path) -> Iterator[Import]:
    module = module_name(path)
    for node, lazy in statements(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(module, alias.name, lazy)
        else:
            assert node.level == 0, f"{module} has a relative import; write the full name"
            assert node.module is not None
            # `from package import module` names a module too
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            found = [name for name in inner if is_module(name)]
            for name in found or [node.module]:
                yield Import(module, name, lazy)


def is_module(name: str) -> bool:
    path = PACKAGE.parent.joinpath(*name.split("."))
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


FILES = sorted(PACKAGE.rglob("*.py"))


@cache
def all_imports() -> list[Import]:
    """Not read while tests are collected, which every worker does."""
    return [item for path in FILES for item in imports_of(path)]


def within(module: str, names: tuple[str, ...]) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in names)


def home_of(module: str) -> str | None:
    """The entry of ``LAYERS`` a module belongs to: the longest that names it or a package around it."""
    found = [name for name in RANK if within(module, (name,))]
    return max(found, key=len, default=None)


def internal(item: Import) -> str | None:
    """The imported module without the package's name, if it is ours."""
    return item.target.removeprefix("edrbo.") if item.target.startswith("edrbo.") else None


def test_every_module_has_its_place() -> None:
    homeless = [name for name in map(module_name, FILES) if name not in ("", "__main__") and home_of(name) is None]
    assert homeless == []
    assert [name for name in RANK if not is_module(f"edrbo.{name}")] == []


def test_a_package_imports_only_what_stands_above() -> None:
    wrong = []
    for item in all_imports():
        target = internal(item)
        importer, imported = home_of(item.module), home_of(target or "")
        if importer is None or target is None or imported == importer:
            continue
        if imported is None or RANK[imported] >= RANK[importer]:
            wrong.append(str(item))
    assert wrong == []


def test_no_module_imports_itself_in_a_circle() -> None:
    """Also not by way of functions, nor for the type checker alone."""
    edges: dict[str, set[str]] = {}
    for item in all_imports():
        target = internal(item)
        if target is not None:
            edges.setdefault(item.module, set()).add(target)
    done: set[str] = set()

    def walk(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " → ".join([*path, module])
        if module in done:
            return
        for target in sorted(edges.get(module, ())):
            walk(target, (*path, module))
        done.add(module)

    for module in sorted(edges):
        walk(module, ())


def test_surrogate_and_context_do_not_know_each_other() -> None:
    sides = {"surrogate": ("context",), "context": ("surrogate",)}
    wrong = [
        str(item)
        for item in all_imports()
        for side, others in sides.items()
        if within(item.module, (side,)) and within(internal(item) or "", others)
    ]
    assert wrong == []


def test_the_maximizer_takes_any_callable() -> None:
    own = {f"acquisition.{part}" for part in ("maximizer", "area", "constrained", "guided", "objective")}
    known = {internal(item) for item in all_imports() if item.module in own} - {None}
    assert known - own <= {"contexts.distributions", "surrogate.lbfgs", "space", "errors", "cancellation"}


@pytest.mark.parametrize("library", sorted(HEAVY))
def test_heavy_libraries_are_imported_where_they_are_used(library: str) -> None:
    allowed = MAY_IMPORT_AT_TOP.get(library, ())
    wrong = [
        str(item)
        for item in all_imports()
        if item.target.split(".")[0] == library and not item.lazy and not within(item.module, allowed)
    ]
    assert wrong == []


@pytest.mark.parametrize("library", ["botorch", "gpytorch", "linear_operator"])
def test_botorch_is_behind_its_interface(library: str) -> None:
    """Also not inside functions: the engine is torch."""
    wrong = [
        str(item)
        for item in all_imports()
        if item.target.split(".")[0] == library and not within(item.module, OPTIONAL)
    ]
    assert wrong == []


def test_importing_the_engine_loads_torch_and_numpy_alone() -> None:
    engine = ("surrogate", "context", "acquisition", "optimizer")
    modules = [f"edrbo.{name}" for name in map(module_name, FILES) if within(name, engine)]
    code = f"""
import importlib, sys
for name in {modules!r}:
    importlib.import_module(name)
print(*sorted({{name.split(".")[0] for name in sys.modules}}))
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=120)
    loaded = set(done.stdout.split())
    assert {"edrbo", "torch", "numpy"} <= loaded
    assert not loaded & HEAVY


def test_importing_the_package_imports_nothing_of_it() -> None:
    eager = [item for item in all_imports() if item.module == "" and not item.lazy]
    assert [str(item) for item in eager if internal(item)] == []
    assert {item.target.split(".")[0] for item in eager} <= sys.stdlib_module_names
