"""Where a result comes from: versions, the code that computed it, the machine."""

from __future__ import annotations

import ast
import hashlib
import os
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import edrbo

PACKAGES = ("numpy", "scipy", "torch", "gpytorch", "botorch", "optuna")


@cache
def versions() -> dict[str, str]:
    """Everything whose change may change the last bits of a result.

    ``code`` is a digest of the modules that compute a replicate: while edrbo is being worked on, its version says too
    little.
    """
    found = {"edrbo": edrbo.__version__, "code": _code_digest(), "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def _code_digest() -> str:
    digest = hashlib.sha256()
    for name, path in sorted(reachable_modules("edrbo.bench.run.replicate").items()):
        digest.update(name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def reachable_modules(start: str) -> dict[str, Path]:
    """The modules of edrbo that ``start`` imports, directly or not, at its top or inside functions, and itself."""
    root = Path(edrbo.__file__).parents[1]
    found: dict[str, Path] = {}
    waiting = [start]
    while waiting:
        name = waiting.pop()
        base = root.joinpath(*name.split("."))
        path = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
        if name in found or not path.exists():
            continue
        found[name] = path
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                waiting += [alias.name for alias in node.names if alias.name.split(".")[0] == "edrbo"]
            elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "edrbo":
                # `from package import name` may name a module of the package or a value in it.
                waiting += [str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)]
    return found


@cache
def machine() -> dict[str, Any]:
    return {
        "host": platform.node(),
        "system": platform.platform(terse=True),
        "processor": _processor(),
        "cores": os.cpu_count(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()
