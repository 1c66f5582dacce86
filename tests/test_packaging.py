"""What the package says of itself: one version, no extra that nothing uses, bounds that can be tested."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import edrbo

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
# Not imported by us, but by a library when its own user asks for what needs them.
BEHIND = {"psycopg2-binary": "SQLAlchemy's driver for PostgreSQL", "greenlet": "Optuna's GP sampler"}
IMPORTED_AS = {"coco-experiment": "cocoex", "dask": "distributed", "gest-api": "gest_api"}


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


PRIVATE = {"_trial_id": "optuna", "_study_id": "optuna", "scipy.optimize._lbfgsb": "scipy"}  # of a library, used by us
PUBLIC = {"_asdict", "_exit"}  # documented, whatever they are called


def foreign_private_names(trees: list[ast.AST]) -> set[str]:
    """Attributes and modules with a leading underscore that nothing of ours defines."""
    nodes = [node for tree in trees for node in ast.walk(tree)]
    own = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    own |= {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    own |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    used = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    modules = [*texts, *(node.module or "" for node in nodes if isinstance(node, ast.ImportFrom))]
    found = {name for name in modules if re.fullmatch(r"[a-z]\w*(\.\w+)*\._[a-z]\w*", name)}
    return found | {name for name in used - own if re.match("_[a-z]", name)}


def test_what_is_private_of_a_library_has_an_upper_bound() -> None:
    trees: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "src").rglob("*.py")]
    assert foreign_private_names(trees) - PUBLIC == set(PRIVATE)
    extras = PROJECT["project"]["optional-dependencies"].values()
    lines = [*PROJECT["project"]["dependencies"], *(line for extra in extras for line in extra)]
    bounds = {canonicalize_name(one.name): one.specifier for one in map(Requirement, lines)}
    for library in PRIVATE.values():
        assert any(bound.operator == "<" for bound in bounds[library]), library


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
    assert "Permission to use" in (package / "lab/web/static/htmx.LICENSE.txt").read_text(encoding="utf-8")


def test_the_demo_and_its_picture_need_no_extra() -> None:
    missing = "'optuna', 'sqlalchemy', 'botorch', 'gpytorch', 'pandas'"
    code = f"import sys; sys.modules.update(dict.fromkeys([{missing}])); import edrbo.plot"
    subprocess.run([sys.executable, "-c", code], check=True)


def script(name: str) -> ModuleType:
    if str(ROOT / "scripts") not in sys.path:
        sys.path.append(str(ROOT / "scripts"))  # as for a script that is run, which may import its neighbors
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
        assert [one.version for one in bound.specifier if one.operator == ">="] == [pinned.version]
        assert {one.operator for one in bound.specifier} <= {">=", "<"}
    assert set(tested) - set(bounds) == set(versions.TOOLS)
    assert all((ROOT / path).exists() for path in versions.PART)


def test_the_newest_versions_are_held_back_by_nothing_but_torch(versions: ModuleType) -> None:
    """And by the first version of the server that may change what its first promises."""
    lines = versions.wanted("newest", torch="2.13.0")
    pinned = [line for line in lines if re.search("[<=]=|<|~", line.replace(">=", ""))]
    assert sorted(pinned) == [
        *("fastapi<1,>=0.115", "mcp<3,>=2.3", "optuna<6,>=4", "scipy<2,>=1.15", "torch==2.13.0", "uvicorn<1,>=0.32"),
    ]


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
        "edrbo/lab/conftest.py",
        "edrbo/lab/test_records.py",
        "edrbo/bench/problems/prices.csv",
        "edrbo/lab/web/static/page.js.map",
        "other/__init__.py",
    ],
)
def test_tests_and_data_of_others_are_out_of_place(wheel: ModuleType, name: str) -> None:
    assert wheel.out_of_place(["edrbo/__init__.py", name, "edrbo/py.typed"]) == [name]


def test_nothing_of_the_package_is_out_of_place(wheel: ModuleType) -> None:
    files = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src" / "edrbo").rglob("*") if path.is_file()}
    assert wheel.out_of_place(name for name in files if not name.endswith(".pyc")) == []
    assert set(wheel.KNOWN) <= files


# -------------------------------------------------------------------- supply chain


def pins(name: str) -> dict[str, str]:
    """Package → version of a file of exact ones."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    found = (re.match(r"([A-Za-z0-9_.-]+)==([^\s;]+)", line) for line in lines)
    return {canonicalize_name(one[1]): one[2] for one in found if one is not None}


def test_the_lock_is_the_tested_set_with_hashes() -> None:
    locked, tested = pins("requirements.lock"), pins("constraints.txt")
    assert set(tested) - set(locked) == {"torch"}  # which build is right hangs on the machine
    assert {name: version for name, version in locked.items() if tested.get(name, version) != version} == {}
    blocks = re.split(r"\n(?=[A-Za-z0-9])", (ROOT / "requirements.lock").read_text(encoding="utf-8"))
    assert all("--hash=sha256:" in block for block in blocks if "==" in block.splitlines()[0])


def test_what_others_wrote_is_listed_with_its_license() -> None:
    bill = script("bill_of_materials")
    listed = (ROOT / "THIRD-PARTY.md").read_text(encoding="utf-8")
    assert "THIRD-PARTY.md" in PROJECT["project"]["license-files"]
    vendored = [path for path in (ROOT / "src").rglob("*.min.*")]
    assert {path for path, *_ in bill.VENDORED} == {str(path.relative_to(ROOT / "src")) for path in vendored}
    for path, _, license_id, _, pattern in bill.VENDORED:
        version = pattern.search((ROOT / "src" / path).read_text(encoding="utf-8"))
        assert version is not None
        (row,) = [line for line in listed.splitlines() if f"`{path}`" in line]
        assert version[1] in row
        assert license_id in row


def test_the_bill_of_materials(tmp_path: Path) -> None:
    """Of a wheel that holds as much as it needs."""
    bill = script("bill_of_materials")
    extras = PROJECT["project"]["optional-dependencies"]
    needs = [f"Requires-Dist: {line}" for line in PROJECT["project"]["dependencies"]]
    needs += [f'Requires-Dist: {line}; extra == "{extra}"' for extra, lines in extras.items() for line in lines]
    wheel = tmp_path / "edrbo-9.9-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("edrbo-9.9.dist-info/METADATA", "\n".join(["Name: edrbo", *needs, "", "words"]))
        archive.write(ROOT / "src/edrbo/lab/web/static/htmx.min.js", "edrbo/lab/web/static/htmx.min.js")
    written = bill.write(wheel)
    found = json.loads(written.read_text(encoding="utf-8"))
    assert (written.name, found["bomFormat"], found["specVersion"]) == ("edrbo-9.9.cdx.json", "CycloneDX", "1.6")
    assert found == json.loads(bill.write(wheel).read_text(encoding="utf-8"))
    parts = {one["bom-ref"]: one for one in found["components"]}
    names = {one["name"].lower() for one in found["components"]}
    assert {"htmx.org", "torch", "numpy", "scipy", "fastapi", "starlette", "h11", "optuna", "openpyxl"} <= names
    assert not {"pytest", "mypy", "mkdocs"} & names
    assert all(set(one["dependsOn"]) <= set(parts) for one in found["dependencies"])
    assert [one["name"] for one in parts.values() if "licenses" not in one] == []
    assert [one["name"] for one in parts.values() if "hashes" not in one] == ["torch"]


def test_security_says_how_to_report_and_what_is_promised() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert all(f"## {head}" in text for head in ("How to report", "What is promised", "What is not promised"))
    for place in re.findall(r"`(tests/[a-z_/]+|[A-Za-z.-]+\.(?:md|lock|txt))`", text):
        assert (ROOT / place).exists(), place
