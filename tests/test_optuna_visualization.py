"""Contexts in Optuna's own pictures and importances."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib
import numpy as np
import optuna
import pytest

from edrbo import EDRBOSampler
from edrbo.errors import EdrboError

pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    matplotlib.use("agg")
    yield
    optuna.logging.set_verbosity(level)


@pytest.fixture
def sampler() -> EDRBOSampler:
    return EDRBOSampler(context={"c": None, "kind": ["wet", "dry"], "x": (0, 1)}, seed=0, initial=1000)


@pytest.fixture
def study(sampler: EDRBOSampler) -> optuna.Study:
    """y hangs on the context c above all, on the parameter x a little, and on nothing else."""
    rng = np.random.default_rng(0)

    def objective(trial: optuna.Trial) -> float:
        x, c = trial.suggest_float("x", 0, 1), float(rng.normal(5, 2))
        trial.suggest_int("idle", 1, 9)
        context = {"c": c, "kind": ("wet", "dry")[trial.number % 2], "x": trial.number / 40}
        if trial.number == 3:
            context["c"] = None  # type: ignore[assignment]
        if trial.number != 4:
            trial.set_user_attr("context", context)
        if trial.number == 5:
            raise RuntimeError("blocked")
        return 10 * c + x

    found = optuna.create_study(direction="maximize", sampler=sampler)
    found.optimize(objective, n_trials=40, catch=RuntimeError)
    return found


def test_contexts_are_parameters_of_the_copy(sampler: EDRBOSampler, study: optuna.Study) -> None:
    copy = sampler.with_contexts(study)
    known = [trial for trial in study.trials if trial.number not in (3, 4, 5)]
    assert len(copy.trials) == len(known) == 37
    for own, theirs in zip(copy.trials, known, strict=True):
        context = theirs.user_attrs["context"]
        assert own.value == theirs.value
        assert own.params == {**theirs.params, "c": context["c"], "kind": context["kind"], "context x": context["x"]}
    assert copy.direction == study.direction
    assert len(study.trials) == 40
    assert "c" not in study.trials[0].params


def test_importances_see_what_the_world_does(sampler: EDRBOSampler, study: optuna.Study) -> None:
    found = optuna.importance.get_param_importances(
        sampler.with_contexts(study), evaluator=optuna.importance.FanovaImportanceEvaluator(seed=0)
    )
    assert next(iter(found)) == "c"
    assert found["c"] > 0.9


def test_pictures_are_drawn(sampler: EDRBOSampler, study: optuna.Study) -> None:
    copy = sampler.with_contexts(study)
    contour = optuna.visualization.matplotlib.plot_contour(copy, params=["x", "c"])
    assert {contour.get_xlabel(), contour.get_ylabel()} == {"x", "c"}
    slices = optuna.visualization.matplotlib.plot_slice(copy, params=["c", "kind", "context x"])
    assert sorted(axis.get_xlabel() for axis in slices) == ["c", "context x", "kind"]


def test_without_a_context_there_is_nothing_to_draw(sampler: EDRBOSampler) -> None:
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
    with pytest.raises(EdrboError):
        sampler.with_contexts(study)
