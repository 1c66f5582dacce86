"""What the package says of itself: one version, no extra that nothing uses, bounds that can be tested."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

import edrbo

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
# Not imported by us, but by a library when its own user asks for what needs them.
BEHIND = {"psycopg2-binary": "SQLAlchemy's driver for PostgreSQL", "greenlet": "Optuna's GP sampler"}
IMPORTED_AS = {"coco-experiment": "cocoex", "dask": "distributed"}


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


def test_the_demo_and_its_picture_need_no_extra() -> None:
    missing = "'optuna', 'sqlalchemy', 'botorch', 'gpytorch', 'pandas'"
    code = f"import sys; sys.modules.update(dict.fromkeys([{missing}])); import edrbo.report.belief_picture, edrbo.plot"
    subprocess.run([sys.executable, "-c", code], check=True)


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def wheel() -> ModuleType:
    return script("check_wheel")


@pytest.fixture(scope="module")
def versions() -> ModuleType:
    return script("test_versions")


MADE_UP: dict[str, Any] = {
    "name": "Made_up",
    "dependencies": ["alpha>=1.5"],
    "optional-dependencies": {
        "small": ["beta[fast,big]>=2,<4"],
        "large": ["made-up[small]", "gamma>=0.30"],
        "all": ["made-up[small,large]"],
        "other": ["delta>=7"],
    },
}


def test_the_oldest_versions_are_the_lower_bounds(versions: ModuleType) -> None:
    needed = list(versions.requirements(MADE_UP, ("all",)))
    assert sorted(map(versions.oldest, needed)) == ["alpha==1.5", "beta[big,fast]==2", "gamma==0.30"]
    assert [one.name for one in versions.requirements(MADE_UP, ())] == ["alpha"]
    for vague in ("alpha", "alpha<2", "alpha>=1,>=2"):
        with pytest.raises(ValueError, match="no single lower bound"):
            versions.oldest(Requirement(vague))


def test_every_dependency_of_users_is_tested_at_its_lower_bound(versions: ModuleType) -> None:
    lines = [*PROJECT["project"]["dependencies"]]
    for extra, more in PROJECT["project"]["optional-dependencies"].items():
        lines += more if extra not in ("dev", "docs") else []
    bounds = {Requirement(line).name: Requirement(line) for line in lines if not line.startswith("edrbo[")}
    tested = {Requirement(line).name: Requirement(line) for line in versions.wanted("oldest")}
    for name, bound in bounds.items():
        (pinned,) = tested[name].specifier
        assert pinned.operator == "=="
        assert str(bound.specifier) == f">={pinned.version}"
    assert set(tested) - set(bounds) == set(versions.TOOLS)
    assert all((ROOT / path).exists() for path in versions.PART)


def test_the_newest_versions_are_held_back_by_nothing_but_torch(versions: ModuleType) -> None:
    lines = versions.wanted("newest", torch="2.13.0")
    pinned = [line for line in lines if re.search("[<=]=|<|~", line.replace(">=", ""))]
    assert pinned == ["torch==2.13.0"]


def test_every_extra_has_a_smoke_test(wheel: ModuleType) -> None:
    assert wheel.checked_extras()[0] == "none"
    left_out = set(PROJECT["project"]["optional-dependencies"]) - set(wheel.checked_extras())
    assert left_out == {"dev", "docs"}
    for extra in wheel.checked_extras():
        assert all(file.exists() for file in wheel.smoke_files(extra)), extra
    of_all = {file.stem for file in wheel.smoke_files("all")}
    assert of_all == {f"use_{name}" for name in wheel.checked_extras()} - {
        "use_none",
        "use_cases",
        "use_all",
        "use_types",
    }


@pytest.mark.parametrize(
    "name",
    [
        "tests/test_packaging.py",
        "edrbo/tests/helper.py",
        "edrbo/study/conftest.py",
        "edrbo/study/test_records.py",
        "edrbo/bench/problems/prices.csv",
        "edrbo/web/static/page.js.map",
        "other/__init__.py",
    ],
)
def test_tests_and_data_of_others_are_out_of_place(wheel: ModuleType, name: str) -> None:
    assert wheel.out_of_place(["edrbo/__init__.py", name, "edrbo/py.typed"]) == [name]


def test_nothing_of_the_package_is_out_of_place(wheel: ModuleType) -> None:
    files = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src" / "edrbo").rglob("*") if path.is_file()}
    assert wheel.out_of_place(name for name in files if not name.endswith(".pyc")) == []
    assert set(wheel.KNOWN) <= files
