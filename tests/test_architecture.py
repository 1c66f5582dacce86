"""The direction of imports: data flow one way, and heavy libraries stay behind the doors that use them."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "edrbo"

# A module imports only what stands above it; modules on one line do not know each other.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors", "streams", "lbfgs"),
    ("tables",),
    ("variables", "scale"),
    ("space", "data"),
    ("surrogate.kernels", "surrogate.priors", "surrogate.scaling"),
    ("surrogate.exact_gp",),
    ("surrogate.fit",),
    ("surrogate.ensemble",),
    ("surrogate.warped",),
    ("surrogate.schedule",),
    ("compression",),
    ("context",),
    ("confidence",),
    ("score",),
    ("functional",),
    ("acquisition",),
    ("maximizer",),
    ("methods",),
    ("belief",),
    ("history",),
    ("state",),
    ("evidence",),
    ("recommendation",),
    ("optimizer",),
    ("functions",),
)
CORE = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
# What stands on the core; each of these may be a module or a package, and may use the whole core.
ADAPTERS = ("diagnostics", "draw", "theory", "report", "study", "optuna_sampler", "demo", "bench", "cli")
HEAVY = {"optuna", "dask", "distributed", "pandas", "plotly", "matplotlib", "sqlalchemy"}
MAY_IMPORT_AT_TOP = {
    "optuna": ("study", "optuna_sampler", "bench.optuna"),
    "sqlalchemy": ("study",),
    "dask": ("bench.dask",),
    "distributed": ("bench.dask",),
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


def statements(tree: ast.AST, lazy: bool = False) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
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
IMPORTS = [item for path in FILES for item in imports_of(path)]


def within(module: str, names: tuple[str, ...]) -> bool:
    return any(module == name or module.startswith((f"{name}.", f"{name}_")) for name in names)


def core_name(module: str) -> str | None:
    """The entry of ``LAYERS`` a module belongs to: itself, or its package."""
    for name in (module, module.split(".")[0]):
        if name in CORE:
            return name
    return None


def internal(item: Import) -> str | None:
    """The imported module without the package's name, if it is ours."""
    return item.target.removeprefix("edrbo.") if item.target.startswith("edrbo.") else None


def test_every_module_has_its_place() -> None:
    homeless = [
        name
        for name in map(module_name, FILES)
        if name not in ("", "surrogate", "__main__") and core_name(name) is None and not within(name, ADAPTERS)
    ]
    assert homeless == []
    assert [name for name in CORE if not is_module(f"edrbo.{name}")] == []


def test_the_core_imports_only_what_stands_above() -> None:
    wrong = []
    for item in IMPORTS:
        importer, target = core_name(item.module), internal(item)
        if importer is None or target is None:
            continue
        imported = core_name(target)
        inside_one_package = imported == importer
        if not inside_one_package and (imported is None or CORE[imported] >= CORE[importer]):
            wrong.append(str(item))
    assert wrong == []


def test_surrogate_and_context_do_not_know_each_other() -> None:
    sides = {"surrogate": ("context", "compression"), "context": ("surrogate",), "compression": ("surrogate",)}
    wrong = [
        str(item)
        for item in IMPORTS
        for side, others in sides.items()
        if within(item.module, (side,)) and within(internal(item) or "", others)
    ]
    assert wrong == []


def test_the_maximizer_takes_any_callable() -> None:
    known = {internal(item) for item in IMPORTS if item.module == "maximizer"} - {None}
    assert known <= {"context", "lbfgs", "space", "errors"}


def test_only_the_command_line_imports_the_bench() -> None:
    wrong = [
        str(item)
        for item in IMPORTS
        if within(internal(item) or "", ("bench",)) and not within(item.module, ("bench", "cli", "demo"))
    ]
    assert wrong == []


@pytest.mark.parametrize("library", sorted(HEAVY))
def test_heavy_libraries_are_imported_where_they_are_used(library: str) -> None:
    allowed = MAY_IMPORT_AT_TOP.get(library, ())
    wrong = [
        str(item)
        for item in IMPORTS
        if item.target.split(".")[0] == library and not item.lazy and not within(item.module, allowed)
    ]
    assert wrong == []


def test_importing_the_package_imports_nothing_of_it() -> None:
    eager = [item for item in IMPORTS if item.module == "" and not item.lazy]
    assert [str(item) for item in eager if internal(item)] == []
    assert {item.target.split(".")[0] for item in eager} <= sys.stdlib_module_names
