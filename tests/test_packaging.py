"""What the package says of itself: one version, and no extra that nothing uses."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml

import edrbo

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
# Not imported by us, but by a library when its own user asks for what needs them.
BEHIND = {"psycopg2-binary": "SQLAlchemy's driver for PostgreSQL", "greenlet": "Optuna's GP sampler"}
IMPORTED_AS = {"dask": "distributed"}


def test_the_version_is_written_down_once() -> None:
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "edrbo.__version__"}
    # A plain literal, which setuptools reads without importing the package.
    assert f'\n__version__ = "{edrbo.__version__}"\n' in (ROOT / "src/edrbo/__init__.py").read_text(encoding="utf-8")


def test_files_for_people_follow_the_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == edrbo.__version__
    newest = re.search(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest is not None
    assert newest[1] == edrbo.__version__


def test_files_for_github_are_yaml() -> None:
    files = [*(ROOT / ".github").rglob("*.yml"), ROOT / ".pre-commit-config.yaml"]
    assert len(files) >= 4
    for file in files:
        assert isinstance(yaml.safe_load(file.read_text(encoding="utf-8")), dict), file.name


def test_every_optional_package_is_used() -> None:
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "examples" / "cases").glob("*.py")]
    source = "\n".join(path.read_text(encoding="utf-8") for path in files)
    for extra, lines in PROJECT["project"]["optional-dependencies"].items():
        names = [re.split(r"[\[<>=]", line)[0] for line in lines if not line.startswith("edrbo[")]
        for name in names if extra not in ("dev", "docs") else []:
            module = IMPORTED_AS.get(name, name)
            used = re.search(rf"^\s*(?:import|from) {module}\b|import_module\(\"{module}\"\)", source, re.MULTILINE)
            assert used or name in BEHIND, f"nothing imports {name} of the extra {extra}"


def test_every_file_of_the_package_is_in_the_wheel() -> None:
    """What is no Python must be named; of what others wrote, the licence too."""
    package = ROOT / "src" / "edrbo"
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["edrbo"]
    named = {path for pattern in patterns for path in package.glob(pattern)}
    others = {path for path in package.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")}
    assert others - named == set()
    assert "Permission to use" in (package / "web/static/htmx.LICENSE.txt").read_text(encoding="utf-8")
