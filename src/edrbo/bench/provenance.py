"""Where a result comes from: versions, the code that computed it, the machine."""

from __future__ import annotations

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

    ``code`` is a digest of edrbo's own modules: while edrbo is being worked on, its version says too little.
    """
    found = {"edrbo": edrbo.__version__, "code": _code_digest(), "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def _code_digest() -> str:
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if not name.startswith("cli"):
            digest.update(name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


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
