"""The sampler as OptunaHub takes it: its layout, its front matter, its example, and Optuna's own tests of samplers."""

from __future__ import annotations

import importlib.metadata
import re
import runpy
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import optuna
import pytest
import yaml
from optuna.samplers import BaseSampler
from optuna.testing.pytest_samplers import BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase
from packaging.requirements import Requirement

import edrbo

ROOT = Path(__file__).parents[1]
REGISTRY = ROOT / "contrib" / "optunahub" / "package"
PACKAGE = REGISTRY / "samplers" / "edrbo"
README = (PACKAGE / "README.md").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    yield
    optuna.logging.set_verbosity(level)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Any:
    """OptunaHub, whose registry is the folder here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own imports
        optunahub = pytest.importorskip("optunahub", reason="optunahub is not installed")

    def load(package: str, **ignored: Any) -> ModuleType:
        loaded: ModuleType = optunahub.load_local_module(package, registry_root=str(REGISTRY))
        return loaded

    monkeypatch.setattr(optunahub, "load_module", load)
    return optunahub


class TestConformance(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self, hub: Any) -> Callable[[], BaseSampler]:
        module = hub.load_module("samplers/edrbo")
        return lambda: module.EDRBOSampler(method="erbo", seed=0, initial=2)


def test_it_is_the_sampler_of_the_package(hub: Any) -> None:
    module = hub.load_module("samplers/edrbo")
    assert module.__name__ == "optunahub_registry.package.samplers.edrbo"
    assert module.__all__ == ["EDRBOSampler"]
    assert module.EDRBOSampler is edrbo.EDRBOSampler


def test_the_files_that_the_registry_wants() -> None:
    assert {path.name for path in PACKAGE.iterdir() if path.is_file()} == {
        *("LICENSE", "README.md", "__init__.py", "example.py", "requirements.txt"),
    }
    assert (PACKAGE / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    (needed,) = map(Requirement, (PACKAGE / "requirements.txt").read_text().splitlines())
    assert (needed.name, needed.extras) == ("edrbo", {"optuna"})


def test_the_front_matter() -> None:
    """All fields of the registry's template, all of them text, and the tag of the category."""
    _, head, body = README.split("---\n", 2)
    found = yaml.load(head, yaml.BaseLoader)
    assert set(found) == {"author", "title", "description", "tags", "optuna_versions", "license"}
    assert "sampler" in found["tags"]
    assert found["license"] == "MIT License"
    assert importlib.metadata.version("optuna") in found["optuna_versions"]
    heads = re.findall(r"^## (.+)$", body, re.MULTILINE)
    assert heads == ["Abstract", "APIs", "Installation", "Example", "Others"]
    for name in re.findall(r"`sampler\.(\w+)\(", body):
        assert hasattr(edrbo.EDRBOSampler, name)


def test_the_code_of_its_readme_runs(hub: Any) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(code, str(PACKAGE / "README.md"), "exec"), names)
    assert isinstance(names["sampler"], edrbo.EDRBOSampler)
    assert len(names["study"].trials) == 15


def test_its_example_finds_the_best_setting(hub: Any) -> None:
    names = runpy.run_path(str(PACKAGE / "example.py"), run_name="__main__")
    assert names["sampler"].recommend(names["study"]).design["speed"] == pytest.approx(0.4, abs=0.1)
