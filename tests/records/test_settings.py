"""Settings are one value: every interface takes every choice, keeps it, and refuses nonsense in the same words."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import edrbo
from edrbo.errors import EdrboError, InvalidSpaceError, InvalidValueError
from edrbo.lab import Study
from edrbo.lab.config import read_toml, write_toml
from edrbo.optimizer.optimizer import Optimizer
from edrbo.records.recorder import Recorder
from edrbo.records.settings import Settings
from edrbo.space import Space

SPACE = Space(design={"x": (0, 1)}, context={"c": (0, 1)})
# one value of each that is not the default; a new setting must be added here, or the first test fails
OTHER: dict[str, Any] = {
    "outliers": "keep",
    "drift": 30.0,
    "noise_model": "constant",
    "method": "erbo",
    "direction": "minimize",
    "seed": 7,
    "context_half_life": 12.5,
    "initial": 3,
    "goal": edrbo.CVaR(0.2),
    "aim": "identify",
    "evaluations": 60,
    "least_success": 0.95,
    "outcome": "gloss",
    "unit": "GU",
    "title": "Coating line 3",
    "outcome_range": (0.0, None),
    "outcomes": {"gloss": edrbo.Maximize(unit="GU"), "roughness": edrbo.Limit(upper=2.0)},
    "context_distribution": "norm(0.5, 0.1)",
    "cost": "1 + 9 * x",
    "earlier": [edrbo.EarlierStudy("line 1", [{"x": 0.2}, {"x": 0.7}], [1.0, None], [{"c": 0.1}, {"c": 0.4}])],
}


def test_every_choice_has_another_value_here() -> None:
    names = {choice.name for choice in Settings.choices()}
    assert names == set(OTHER)
    for choice in Settings.choices():
        assert OTHER[choice.name] != choice.default
        assert choice.metadata["about"]


@pytest.mark.parametrize(
    ("interface", "own"),
    [
        (Optimizer, set()),
        (Study.open, set()),
        (edrbo.maximize, {"direction"}),  # said by the name, and evaluations come first
        (edrbo.minimize, {"direction"}),
        (edrbo.EDRBOSampler, {"direction"}),  # said by the Optuna study
    ],
)
def test_every_interface_shows_all_settings_with_their_defaults(interface: Callable[..., Any], own: set[str]) -> None:
    shown = inspect.signature(interface).parameters
    assert own.isdisjoint(shown)
    for choice in Settings.choices():
        if choice.name in own:
            continue
        default = choice.default.to_text() if choice.name == "goal" else choice.default
        if choice.name == "seed" and interface is edrbo.EDRBOSampler:
            default = None  # another one every time, as of other samplers
        if choice.name == "evaluations" and interface in (edrbo.maximize, edrbo.minimize):
            default = inspect.Parameter.empty  # the loop must know
        assert shown[choice.name].default == default, choice.name


def public_callables() -> list[Any]:
    methods = [
        getattr(owner, name)
        for owner in (Recorder, Optimizer, Study, edrbo.EDRBOSampler)
        for name, thing in vars(owner).items()
        if not name.startswith("_") and inspect.isfunction(thing)
    ]
    from_optuna = {"reseed_rng", "infer_relative_search_space", "sample_relative", "sample_independent"}
    from_optuna |= {"before_trial", "after_trial"}
    own = [method for method in methods if method.__name__ not in from_optuna]
    return [*own, Study.open, Study.open_with, Optimizer, edrbo.EDRBOSampler, edrbo.maximize, edrbo.minimize]


@pytest.mark.parametrize("called", public_callables(), ids=lambda called: called.__qualname__)
def test_every_argument_is_named_and_described(called: Any) -> None:
    parameters = [part for name, part in inspect.signature(called).parameters.items() if name != "self"]
    assert not [part for part in parameters if part.kind is inspect.Parameter.VAR_KEYWORD]
    if not parameters:
        return
    text = inspect.getdoc(called) or ""
    described = re.findall(r"^    (\w+): \S", text.partition("Args:\n")[2], re.MULTILINE)
    assert described == [part.name for part in parameters]


@pytest.mark.parametrize("name", ["ask", "recommend", "front", "predict", "policy", "sensitivity", "tradeoff"])
def test_a_study_asks_as_an_optimizer_does(name: str) -> None:
    assert inspect.signature(getattr(Study, name)) == inspect.signature(getattr(Optimizer, name))


@pytest.mark.parametrize("name", OTHER)
def test_every_interface_takes_and_keeps_it(name: str, tmp_path: Path) -> None:
    given = {name: OTHER[name]}
    expected = Settings(SPACE, **given)
    assert Settings.from_dict(expected.to_dict()) == expected
    assert Optimizer(SPACE, **given).settings == expected
    assert Optimizer.from_json(Optimizer(SPACE, **given).to_json()).settings == expected
    Study.open(tmp_path / "study.db", SPACE, **given)
    assert Study.open(tmp_path / "study.db").settings == expected
    write_toml(tmp_path / "study.toml", "other.db", "study", expected)
    assert read_toml(tmp_path / "study.toml").settings == expected
    if name not in ("direction", "cost", "earlier"):  # the study's own, or about its parameters
        assert getattr(edrbo.EDRBOSampler(SPACE.context, **given)._settings, name) == getattr(expected, name)


def test_plain_types_are_made_of_numpy_ones() -> None:
    settings = Settings(SPACE, seed=np.int64(3), context_half_life=np.float32(2.0), initial=np.int32(4))  # type: ignore[arg-type]
    assert [type(part) for part in (settings.seed, settings.context_half_life, settings.initial)] == [int, float, int]


@pytest.mark.parametrize(
    "wrong",
    [
        {"method": "edrob"},
        {"method": 3},
        {"direction": "up"},
        {"direction": None},
        {"seed": None},
        {"seed": 1.5},
        {"seed": True},
        {"context_half_life": 0},
        {"context_half_life": float("nan")},
        {"context_half_life": "3"},
        {"context_half_life": 10**400},
        {"drift": 0},
        {"drift": -3.0},
        {"drift": "learn"},
        {"drift": float("inf")},
        {"drift": True},
        {"noise_model": "varying"},
        {"noise_model": None},
        {"initial": 0},
        {"initial": "five"},
        {"goal": "cvar:2"},
        {"least_success": 80},
        {"least_success": -0.1},
        {"least_success": float("nan")},
        {"least_success": "0.8"},
        {"least_success": None},
        {"goal": 3},
    ],
)
def test_nonsense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(EdrboError):
        Optimizer(SPACE, **wrong)


def test_a_misspelled_method_is_recognized() -> None:
    with pytest.raises(EdrboError, match="'edrbo'"):
        Optimizer(SPACE, "edrob")


def test_a_space_is_asked_for() -> None:
    with pytest.raises(InvalidSpaceError):
        Optimizer({"x": (0, 1)})  # type: ignore[arg-type]


def test_changes_by_name() -> None:
    settings = Settings(SPACE)
    assert settings.changed({"seed": 4}).seed == 4
    with pytest.raises(InvalidValueError):
        settings.changed({"sead": 4})


def test_every_setting_is_a_flag_and_a_key_of_the_file() -> None:
    from typer.main import get_command

    from edrbo.lab.cli import make_app
    from edrbo.lab.config import KEYS

    new = get_command(make_app(["new"])).commands["new"]  # type: ignore[attr-defined]
    flags = {flag for option in new.params for flag in option.opts}
    for choice in Settings.choices():
        assert choice.name in KEYS
        if choice.name != "outcomes":  # said by --outcome
            assert f"--{choice.name.replace('_', '-')}" in flags
