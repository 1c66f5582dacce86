"""EDRBOSampler: Optuna's own conformance tests, and what contexts, constraints and workers mean to it."""

from __future__ import annotations

import pickle
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler

from edrbo.acquisition.methods import method_names
from edrbo.errors import EdrboError, InvalidContextError, InvalidValueError, UnknownNameError
from edrbo.integrations.optuna import EDRBOSampler
from edrbo.integrations.optuna.translation import SHARED, Translation, from_core, to_core, variable_of
from edrbo.records.settings import Settings


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    yield
    optuna.logging.set_verbosity(level)


@pytest.mark.parametrize("method", method_names())
def test_every_method_by_name(method: str) -> None:
    study = optuna.create_study(
        direction="maximize", sampler=EDRBOSampler(context={"c": (0, 1)}, method=method, seed=1, initial=3)
    )
    study.optimize(objective, n_trials=5)
    assert all(0 <= trial.params["x"] <= 1 for trial in study.trials)


def objective(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", 0, 1)
    c = (trial.number * 0.618) % 1 / 2
    trial.set_user_attr("context", {"c": c})
    return -((x - 0.4 - c) ** 2)


def test_it_finds_the_best_mean_and_recommends_it() -> None:
    sampler = EDRBOSampler(context={"c": (0, 0.5)}, method="erbo", seed=0)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(objective, n_trials=14)
    found = sampler.recommend(study)
    assert found.design["x"] == pytest.approx(0.65, abs=0.05)  # the mean context is 1/4
    assert sampler.recommend(study, context={"c": 0.0}).design["x"] == pytest.approx(0.4, abs=0.05)
    assert found.interval[0] <= found.expected <= found.interval[1]


def test_minimizing_is_maximizing_the_opposite() -> None:
    def run(direction: str, sign: float) -> list[float]:
        study = optuna.create_study(
            direction=direction, sampler=EDRBOSampler(context={"c": (0, 1)}, method="erbo", seed=3, initial=3)
        )
        study.optimize(lambda trial: sign * objective(trial), n_trials=7)
        return [trial.params["x"] for trial in study.trials]

    assert run("maximize", 1.0) == run("minimize", -1.0)


def test_contexts_known_before_and_forecasts_reach_the_ask() -> None:
    sampler = EDRBOSampler(context={"c": (0, 1)}, method="erbo", seed=0, initial=2)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for x in np.linspace(0, 1, 6):
        for c in (0.1, 0.5, 0.9):
            study.add_trial(
                optuna.create_trial(
                    params={"x": x},
                    distributions={"x": FloatDistribution(0, 1)},
                    user_attrs={"context": {"c": c}},
                    value=-((x - c) ** 2),
                )
            )
    chosen = {}
    for name, attribute in {
        "low": ("context", {"c": 0.1}),
        "high": ("context", {"c": 0.9}),
        "low forecast": ("forecast", [[0.1], [0.12]]),
        "high forecast": ("forecast", [{"c": 0.88}, {"c": 0.9}]),
    }.items():
        trial = study.ask()
        trial.set_user_attr(*attribute)
        chosen[name] = trial.suggest_float("x", 0, 1)
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
    assert chosen["low"] < 0.35 < 0.65 < chosen["high"]
    assert chosen["low forecast"] < 0.35 < 0.65 < chosen["high forecast"]


def test_contexts_without_an_outcome_count() -> None:
    def recommended(samples: Any) -> float:
        sampler = EDRBOSampler(context={"c": (0, 1)}, method="erbo", seed=0)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        study.set_user_attr("contexts", samples)
        for x in (0.0, 0.3, 0.5, 0.7, 1.0):
            for c in (0.2, 0.8):
                study.add_trial(
                    optuna.create_trial(
                        params={"x": x},
                        distributions={"x": FloatDistribution(0, 1)},
                        user_attrs={"context": {"c": c}},
                        value=-((x - c) ** 2),
                    )
                )
        return float(sampler.recommend(study).design["x"])

    assert recommended([[0.8]] * 40) > recommended([[0.5]]) + 0.1 > recommended([[0.2]] * 40) + 0.2


OPTUNA_5 = int(optuna.__version__.split(".")[0]) >= 5


def heat(value: float, own: bool) -> dict[str, Any]:
    """A constraint as Optuna 5 has it, or as a user attribute, which Optuna 4 has as well."""
    return {"constraints": {"heat": value}} if own else {"user_attrs": {"constraints": {"heat": value}}}


@pytest.mark.parametrize("own", [False, pytest.param(True, marks=pytest.mark.skipif(not OPTUNA_5, reason="Optuna 5"))])
def test_constraints_failures_and_pruning(own: bool) -> None:
    kinds = {"x": FloatDistribution(0, 1)}
    translation = Translation.of(kinds, {"c": (0, 1)})
    study = optuna.create_study()

    def add(x: float, **words: Any) -> None:
        study.add_trial(optuna.create_trial(params={"x": x}, distributions=kinds, **words))

    add(0.1, value=1.0, user_attrs={"context": {"c": 0.5}})
    add(0.2, value=2.0, **heat(0.5, own))
    add(0.25, value=2.5, **heat(float("nan"), False))  # Optuna 5 refuses it as its own
    add(0.3, value=3.0, **heat(-0.5, own))
    add(0.4, state=optuna.trial.TrialState.FAIL)
    add(0.5, value=float("inf"))
    add(0.6, state=optuna.trial.TrialState.PRUNED, intermediate_values={1: 9.0, 2: 6.0})
    add(0.7, state=optuna.trial.TrialState.PRUNED)
    add(0.8, value=8.0, user_attrs={"context": {"wrong": 1.0}})
    add(0.85, value=8.5, user_attrs={"context": {"c": float("nan")}})
    add(0.86, value=8.6, user_attrs={"context": [float("inf")]})
    study.enqueue_trial({"x": 0.9})
    state = translation.state(Settings(translation.space), study.get_trials(deepcopy=False), None, 99)
    assert state.observations.x[:, 0].tolist() == [0.1, 0.3, 0.6, 0.8]
    assert state.observations.y.tolist() == [1.0, 3.0, 6.0, 8.0]
    np.testing.assert_array_equal(state.observations.c[:, 0], [0.5, np.nan, np.nan, np.nan])
    assert sorted(x[0] for x in state.failed.values()) == [0.2, 0.25, 0.4, 0.5, 0.85, 0.86]
    assert not state.pending
    assert len(state.log) == 1


def test_running_trials_of_other_workers_are_pending(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path / 'optuna.db'}"
    sampler = EDRBOSampler(method="ucb", seed=0, initial=2)
    study = optuna.create_study(storage=storage, sampler=sampler, study_name="s", direction="maximize")
    study.optimize(lambda trial: -abs(trial.suggest_float("x", 0, 1) - 0.4), n_trials=4)
    workers = [
        optuna.load_study(study_name="s", storage=storage, sampler=EDRBOSampler(method="ucb", seed=0, initial=2))
        for _ in range(3)
    ]
    trials = [worker.ask() for worker in workers]  # all have a number, none has parameters
    chosen = np.array([trial.suggest_float("x", 0, 1) for trial in trials])
    assert np.diff(np.sort(chosen)).min() > 1e-3
    assert all(SHARED in trial.system_attrs for trial in study.get_trials()[-3:])
    study._storage.remove_session()


def test_threads_know_of_each_other() -> None:
    study = optuna.create_study(direction="maximize", sampler=EDRBOSampler(method="ucb", seed=0, initial=2))
    study.optimize(lambda trial: -abs(trial.suggest_float("x", 0, 1) - 0.4), n_trials=4)
    meeting = threading.Barrier(2)

    def together(trial: optuna.Trial) -> float:
        meeting.wait(timeout=60)  # both have a number, none has parameters
        return trial.suggest_float("x", 0, 1)

    study.optimize(together, n_trials=2, n_jobs=2)
    one, two = (trial.params["x"] for trial in study.trials[-2:])
    assert abs(one - two) > 1e-3


def test_mixed_spaces() -> None:
    def mixed(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 1e-5, 1, log=True)
        n = trial.suggest_int("n", 2, 20, step=3)
        s = trial.suggest_float("s", -1, 1, step=0.25)
        kind = trial.suggest_categorical("kind", ["a", None, 3.5, True])
        trial.set_user_attr("context", {"c": 0.5})
        return float(n + s - abs(np.log10(x) + 2) + (kind is None))

    study = optuna.create_study(direction="maximize", sampler=EDRBOSampler(context={"c": (0, 1)}, seed=2, initial=4))
    study.optimize(mixed, n_trials=8)
    assert all(trial.state == optuna.trial.TrialState.COMPLETE for trial in study.trials)
    assert {trial.params["n"] for trial in study.trials} <= {2, 5, 8, 11, 14, 17, 20}


@given(st.data())
def test_translation_there_and_back(data: st.DataObject) -> None:
    kind = data.draw(
        st.sampled_from(
            [
                FloatDistribution(-3.0, 7.5),
                FloatDistribution(1e-6, 10.0, log=True),
                FloatDistribution(-10.2, 10.2, step=0.1),
                IntDistribution(-4, 11, step=5),
                IntDistribution(1, 1000, log=True),
                CategoricalDistribution(("a", None, 1, 2.5, False)),
            ]
        )
    )
    variable = variable_of(kind)
    assert variable is not None
    coded = data.draw(st.floats(0, 1))
    row = np.full((1, variable.width), coded)
    (value,) = variable.decode(row)
    param = from_core(kind, value)
    assert kind._contains(kind.to_internal_repr(param))
    assert to_core(kind, param) == value
    assert from_core(kind, to_core(kind, param)) == param


def test_same_seed_same_trials_and_pickling() -> None:
    def run(sampler: BaseSampler) -> list[float]:
        study = optuna.create_study(direction="maximize", sampler=sampler)
        study.optimize(objective, n_trials=6)
        return [trial.params["x"] for trial in study.trials]

    fresh = EDRBOSampler(context={"c": (0, 1)}, method="erbo", seed=5, initial=3)
    copied = pickle.loads(pickle.dumps(fresh))
    assert run(fresh) == run(copied)
    other = EDRBOSampler(context={"c": (0, 1)}, method="erbo", seed=6, initial=3)
    assert run(other) != run(EDRBOSampler(context={"c": (0, 1)}, method="erbo", seed=5, initial=3))


def test_contexts_that_cannot_be_used_are_errors_where_they_are_made() -> None:
    study = optuna.create_study(sampler=EDRBOSampler(context={"humidity": (0, 1)}, seed=0))
    trial = study.ask()
    trial.suggest_float("x", 0, 1)
    trial.set_user_attr("context", {"humidty": 0.5})
    with pytest.raises(InvalidContextError, match=r"'humidty'.*'humidity'"):
        study.tell(trial, 1.0)
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)  # and the study goes on
    bare = optuna.create_study(sampler=EDRBOSampler(seed=0))
    trial = bare.ask()
    trial.set_user_attr("context", {"c": 0.5})
    with pytest.raises(InvalidContextError):
        bare.tell(trial, 1.0)


def test_bad_settings() -> None:
    with pytest.raises(UnknownNameError):
        EDRBOSampler(method="nonsense")
    with pytest.raises(InvalidValueError):
        EDRBOSampler(initial=0)
    study = optuna.create_study(sampler=EDRBOSampler())
    with pytest.raises(EdrboError):
        EDRBOSampler().recommend(study)


def test_a_huge_integer_is_left_to_chance() -> None:
    study = optuna.create_study(sampler=EDRBOSampler(seed=0, initial=1))

    def huge(trial: optuna.Trial) -> float:
        return trial.suggest_float("x", 0, 1) + trial.suggest_int("n", 0, 2**60) % 2

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        study.optimize(huge, n_trials=3)
    assert set(study.trials[-1].system_attrs[SHARED]) == {"x"}


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), None])
def test_a_study_goes_on_past_contexts_that_are_no_numbers(bad: float | None) -> None:
    sampler = EDRBOSampler(context={"c": (0, 1)}, method="erbo", seed=0, initial=2)
    study = optuna.create_study(direction="maximize", sampler=sampler)

    def simulated(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        trial.set_user_attr("context", {"c": bad if trial.number == 2 else 0.4})
        return x

    if bad is None:  # not known is no failure, but then the context is left out
        with pytest.raises(InvalidContextError):
            study.optimize(simulated, n_trials=4)
        return
    study.optimize(simulated, n_trials=5)
    sampler.recommend(study)
    (optimizer,) = sampler._optimizers.values()
    assert list(optimizer.state.failed) == [2]


def test_answers_speak_of_the_users_parameters() -> None:
    sampler = EDRBOSampler(context={"c": (0, 1)}, method="erbo", seed=0, initial=3)
    study = optuna.create_study(direction="maximize", sampler=sampler)

    def conditional(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        kind = trial.suggest_categorical("kind", ["svm", "tree"])
        trial.suggest_int("seed", 7, 7)
        trial.suggest_int("huge", 0, 2**60)
        if kind == "svm":
            trial.suggest_float("C", 0, 1)
        trial.set_user_attr("context", {"c": (trial.number * 0.618) % 1})
        return x

    study.optimize(conditional, n_trials=7)
    found = sampler.recommend(study)
    assert set(found.design) == {"x", "kind", "seed"}
    assert found.design["kind"] in ("svm", "tree")
    assert found.design["seed"] == 7
    for run in found.nearest:
        trial = study.trials[run.run]
        assert run.design == {name: trial.params[name] for name in ("x", "kind", "seed")}
    assert [words.split()[0] for words in found.left_open] == ["huge", "C"]
    assert "! Left open: C is not in every trial" in str(found)
    assert "design:" not in str(found) + repr(found) + found._repr_html_() + str(found.to_dict())


def test_recommend_takes_a_goal() -> None:
    sampler = EDRBOSampler(context={"c": (0, 0.5)}, method="erbo", seed=0, initial=3)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(objective, n_trials=8)
    assert sampler.recommend(study).goal == "expected"
    assert sampler.recommend(study, goal="cvar:0.2").goal == "cvar:0.2"
