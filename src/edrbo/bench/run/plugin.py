"""Methods and problems by name: edrbo's own, the adapters, and those of a file of the user's.

A plugin file defines one or more of

    METHODS = {"my-method": Method(...) or a function Setup → Learner}
    PROBLEMS = {"my-problem": a function () → Problem}
    a goal, made known with edrbo.register

Its text, not its path, travels with a replicate: workers on other machines need no copy of the file.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

from edrbo.acquisition.methods import METHODS, Method
from edrbo.bench import problems
from edrbo.bench.learners.adapters import ADAPTER_PACKAGES, ADAPTERS
from edrbo.bench.learners.learner import Learner, OptimizerLearner, Setup
from edrbo.bench.problems.problem import Problem
from edrbo.errors import InvalidValueError, UnknownNameError
from edrbo.records.goals import goal_class, goal_names
from edrbo.records.settings import DEFAULT, Purpose

# The comparison of the paper, in its order.
PAPER_METHODS = (
    "edrbo",
    "erbo",
    "wdrbo",
    "sbo-kde",
    "drbo-kde",
    "stableopt",
    "drbo-mmd",
    "drbo-mmd-minmax",
    "ucb",
)
# The default with another aim than to operate.
AIMS: dict[str, Purpose] = {"edrbo-identify": "identify"}
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9+=._-]*")


@dataclass(frozen=True)
class Plugin:
    """A file of the user's, as text."""

    path: str
    source: str

    @classmethod
    def read(cls, path: Path) -> Plugin:
        try:
            source = path.read_text(encoding="utf-8")
        except OSError as problem:
            raise InvalidValueError(f"the plugin {path} cannot be read: {problem.strerror}") from None
        plugin = cls(str(path), source)
        for kind in ("METHODS", "PROBLEMS"):
            for name in plugin.table(kind):
                _check_name(name, kind, path)
        if not (plugin.table("METHODS") or plugin.table("PROBLEMS") or plugin.goals):
            raise InvalidValueError(
                f"{path} defines neither METHODS nor PROBLEMS and registers no goal", "see docs/extend.md"
            )
        return plugin

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.source.encode()).hexdigest()

    @property
    def module(self) -> str:
        """The name that the file has as a module."""
        return f"edrbo_plugin_{self.digest[:8]}"

    @property
    def goals(self) -> list[str]:
        """The names of the goals it registers."""
        _namespace(self)
        return [name for name in goal_names() if goal_class(name).__module__ == self.module]

    def table(self, kind: str) -> Mapping[str, Any]:
        found = _namespace(self).get(kind, {})
        if not isinstance(found, Mapping):
            raise InvalidValueError(f"{kind} of {self.path} is not a dictionary", "map names to values")
        return found


@lru_cache(maxsize=8)
def _namespace(plugin: Plugin) -> dict[str, Any]:
    """What the file defines. It is run once per process."""
    module = ModuleType(plugin.module)
    module.__file__ = plugin.path
    sys.modules[module.__name__] = module  # where dataclasses look up the types of their fields
    exec(compile(plugin.source, plugin.path, "exec", dont_inherit=True), module.__dict__)
    return module.__dict__


def _check_name(name: Any, kind: str, path: Path) -> None:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InvalidValueError(f"{name!r} in {kind} of {path} is no name", "letters, digits and -_.+= only")
    if name in (method_names() if kind == "METHODS" else problem_names()):
        raise InvalidValueError(f"{name!r} in {kind} of {path} is taken by edrbo", "choose another name")


def method_names(plugin: Plugin | None = None) -> list[str]:
    own = list(plugin.table("METHODS")) if plugin else []
    others = [name for name in METHODS if name not in PAPER_METHODS]
    return [*PAPER_METHODS, *others, *AIMS, *ADAPTERS, *own]


def problem_names(plugin: Plugin | None = None) -> list[str]:
    ours = [*problems.names(), *problems.further_names(), *problems.high_names(), *problems.classic_names()]
    family = [*problems.bbob_names(), *problems.bbob_names(noisy=True)]
    return [*ours, *family, *(plugin.table("PROBLEMS") if plugin else ())]


def make_learner(name: str, setup: Setup, plugin: Plugin | None = None) -> Learner:
    """A fresh learner of the method called ``name``."""
    if name in METHODS:
        return OptimizerLearner(setup, name)
    if name in AIMS:
        return OptimizerLearner(setup, DEFAULT, AIMS[name])
    if name in ADAPTERS:
        return ADAPTERS[name](setup)
    own = plugin.table("METHODS") if plugin else {}
    if name not in own:
        raise UnknownNameError(f"no method is called {name!r}", f"one of {', '.join(method_names(plugin))}")
    if isinstance(own[name], Method):
        return OptimizerLearner(setup, own[name])
    learner = own[name](setup)
    if not isinstance(learner, Learner):
        raise InvalidValueError(f"the method {name!r} made a {type(learner).__name__}", "return a Learner")
    return learner


def get_problem(name: str, plugin: Plugin | None = None) -> Problem:
    own = plugin.table("PROBLEMS") if plugin else {}
    if name in own:
        assert plugin is not None
        return _own_problem(plugin, name)
    if name not in problem_names():
        raise UnknownNameError(f"no problem is called {name!r}", f"one of {', '.join(problem_names(plugin))}")
    return problems.get(name)


@lru_cache(maxsize=64)
def _own_problem(plugin: Plugin, name: str) -> Problem:
    make: Callable[[], Any] = plugin.table("PROBLEMS")[name]
    problem = make()
    if not isinstance(problem, Problem):
        raise InvalidValueError(f"the problem {name!r} is a {type(problem).__name__}", "return a Problem")
    return problem


def describe_method(name: str, d_c: int, plugin: Plugin | None = None) -> str:
    """Text that changes when the method does; part of what makes results of a replicate comparable."""
    if name in AIMS:
        return f"{describe_method(DEFAULT, d_c)} to {AIMS[name]}"
    if name in METHODS:
        method = METHODS[name]
        radii = [repr(method.functional_at(n, d_c)) for n in (5, 50, 500)]
        text = " ".join([repr(method.surrogate), repr(method.score), repr(method.context_distribution), *radii])
        return re.sub(r" at 0x[0-9a-f]+", "", text)  # functions are known by their names
    if name in ADAPTERS:
        package = ADAPTER_PACKAGES[name]
        return f"{name} of {package} {version(package)}"
    return f"{name} of plugin {plugin.digest if plugin else None}"
