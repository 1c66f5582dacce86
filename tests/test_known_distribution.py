"""A distribution of contexts that the user knows: the same atoms every time, nothing uncertain about it, kept by its
name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
from scipy import stats

from edrbo import Integer, Optimizer, Space, Study
from edrbo.contexts.known_distribution import known_contexts
from edrbo.errors import EdrboError, InvalidContextError, InvalidValueError, StudyError
from edrbo.integrations.optuna import EDRBOSampler
from edrbo.lab.config import read_toml, write_toml
from edrbo.records.known_distribution import KnownDistribution, as_known_distribution
from edrbo.records.scipy_distributions import check_distribution

ONE = Space({"speed": (0, 1)}, {"humidity": (0, 100)})
TWO = Space({"speed": (0, 1)}, {"humidity": (0, 100), "shift": ["day", "night"], "pallets": Integer(0, 20)})


def contexts(given: Any, space: Space, seen: Any = None) -> tuple[np.ndarray, np.ndarray]:
    context_distribution = as_known_distribution(given, space)
    assert context_distribution is not None
    check_distribution(context_distribution, space)
    rows = np.empty((0, space.d_c)) if seen is None else space.read_contexts(seen)
    return known_contexts(context_distribution, space, rows, np.ones(len(rows)))


@pytest.mark.parametrize(
    "context_distribution", [stats.norm(55, 12), stats.beta(2, 5, scale=100), stats.uniform(20, 40)]
)
def test_one_distribution_stands_at_its_quantiles(context_distribution: Any) -> None:
    rows, weights = contexts(context_distribution, ONE)
    assert weights.sum() == pytest.approx(1.0)
    for g in (lambda c: c, lambda c: np.cos(c / 20), lambda c: (c / 50) ** 2):
        assert weights @ g(rows[:, 0]) == pytest.approx(context_distribution.expect(g), rel=3e-3)
    again, _ = contexts(context_distribution, ONE)
    assert np.array_equal(rows, again)


def test_levels_have_their_exact_probabilities() -> None:
    space = Space({"speed": (0, 1)}, {"pallets": Integer(0, 20)})
    rows, weights = contexts(stats.binom(20, 0.3), space)
    assert weights == pytest.approx(stats.binom(20, 0.3).pmf(rows[:, 0]), abs=1e-9)
    rows, weights = contexts({"pallets": {3: 1, 5: 3}}, space)
    assert dict(zip(rows[:, 0], weights, strict=True)) == {3.0: 0.25, 5.0: 0.75}
    rows, _ = contexts({"pallets": stats.norm(8, 2)}, space)
    assert (rows == np.round(rows)).all()


def test_several_are_independent() -> None:
    context_distribution = {
        "humidity": stats.norm(55, 12),
        "shift": {"day": 0.7, "night": 0.3},
        "pallets": stats.poisson(4),
    }
    rows, weights = contexts(context_distribution, TWO)
    humidity, shift, pallets = rows.T
    assert weights @ humidity == pytest.approx(55, abs=0.3)
    assert weights @ shift == pytest.approx(0.3, abs=0.01)
    assert weights @ pallets == pytest.approx(4, abs=0.05)
    assert weights @ (humidity * shift) == pytest.approx(55 * 0.3, rel=0.02)
    assert weights @ (humidity * pallets) == pytest.approx(55 * 4, rel=0.02)


def test_samples_may_go_together() -> None:
    table = pd.DataFrame({"humidity": [30.0, 70.0], "shift": ["day", "night"], "pallets": [1, 9]})
    for given in (table, table.to_dict("records"), {"samples": table}, {name: list(table[name]) for name in table}):
        rows, weights = contexts(given, TWO)
        assert rows.tolist() == [[30.0, 0.0, 1.0], [70.0, 1.0, 9.0]]
        assert weights.tolist() == [0.5, 0.5]
    _, weights = contexts({"samples": table, "weights": [1, 3]}, TWO)
    assert weights.tolist() == [0.25, 0.75]


def test_what_the_distribution_does_not_say_is_seen() -> None:
    seen = [{"humidity": 10, "shift": "night", "pallets": 2}] * 3 + [{"humidity": 10, "shift": "day", "pallets": 7}]
    rows, weights = contexts({"humidity": "norm(55, 12)"}, TWO, seen)
    humidity, shift, pallets = rows.T
    assert weights @ humidity == pytest.approx(55, abs=0.2)
    assert weights @ shift == pytest.approx(0.75)
    assert weights @ pallets == pytest.approx((3 * 2 + 7) / 4)
    assert weights @ (humidity * shift) == pytest.approx(55 * 0.75, rel=1e-6)
    context_distribution = as_known_distribution({"humidity": "norm(55, 12)"}, TWO)
    assert context_distribution is not None
    assert not context_distribution.covers(TWO)
    empty, _ = contexts({"humidity": "norm(55, 12)"}, TWO)
    assert set(empty[:, 1]) == {0.0, 1.0}


# -------------------------------------------------------------------- answers


def reported(**choices: Any) -> Optimizer:
    """Outcomes at all humidities; those seen without an outcome are low."""
    optimizer, rng = Optimizer(ONE, **choices), np.random.default_rng(0)
    for _ in range(12):
        speed, humidity = float(rng.random()), float(rng.uniform(5, 95))
        optimizer.tell({"speed": speed}, {"humidity": humidity}, -((speed - humidity / 100) ** 2))
    return optimizer


def test_the_answer_is_for_the_distribution() -> None:
    low, high = (reported(context_distribution=stats.norm(mean, 5)) for mean in (25, 75))
    speeds = {"speed": np.linspace(0, 1, 41)}
    for optimizer, best in ((low, 0.25), (high, 0.75)):
        found = optimizer.predict(speeds)
        assert speeds["speed"][found.expected.argmax()] == pytest.approx(best, abs=0.12)
        assert (found.from_contexts == 0.0).all()
    assert (reported().predict(speeds).from_contexts > 0.0).all()
    forecast = high.predict({"speed": 0.5}, forecast=[[20.0], [30.0]])
    assert forecast.expected[0] == pytest.approx(low.predict({"speed": 0.5}, forecast=[[20.0], [30.0]]).expected[0])
    assert 0 <= high.ask()["speed"] <= 1


def test_the_mean_is_an_explicit_sum() -> None:
    optimizer = reported(context_distribution={"samples": [[20.0], [50.0], [80.0]], "weights": [1, 2, 1]})
    each = [optimizer.predict({"speed": 0.4}, context={"humidity": c}).expected[0] for c in (20, 50, 80)]
    assert optimizer.predict({"speed": 0.4}).expected[0] == pytest.approx(np.dot(each, [0.25, 0.5, 0.25]))


def test_outcomes_without_a_context_are_spread_over_it() -> None:
    optimizer = Optimizer(ONE, context_distribution="norm(55, 12)", initial=2)
    for k in range(3):
        optimizer.tell({"speed": k / 3}, None, float(k))
    assert np.isfinite(optimizer.recommend().expected)


# -------------------------------------------------------------------- interfaces


CONTEXT_DISTRIBUTIONS: list[tuple[Any, Space]] = [
    (stats.norm(55, 12), ONE),
    (stats.norm(loc=55, scale=12), ONE),
    ({"name": "norm", "loc": 55, "scale": 12}, ONE),
    ("norm(55, 12)", ONE),
    ("humidity = beta(2, 5, scale=100)", ONE),
    ("humidity = norm(loc=55, scale=12); shift = day: 0.7, night: 0.3; pallets = poisson(4)", TWO),
    ([[30.0], [70.0]], ONE),
    ({"humidity": np.array([30.0, 70.0, 70.0])}, ONE),
]


@pytest.mark.parametrize(("given", "space"), CONTEXT_DISTRIBUTIONS)
def test_a_distribution_is_kept_by_name(given: Any, space: Space, tmp_path: Path) -> None:
    study = Study.open(tmp_path / "one.db", space, context_distribution=given)
    context_distribution = study.settings.context_distribution
    assert isinstance(context_distribution, KnownDistribution)
    assert Study.open(tmp_path / "one.db").settings == study.settings
    optimizer = Optimizer(space, context_distribution=given)
    assert Optimizer.from_json(optimizer.to_json()).settings == optimizer.settings
    write_toml(tmp_path / "one.toml", "one.db", "one", study.settings)
    assert read_toml(tmp_path / "one.toml").settings == study.settings
    assert as_known_distribution(context_distribution.to_dict(), space) == context_distribution
    if not context_distribution.samples:
        assert as_known_distribution(context_distribution.to_text(), space) == context_distribution


def test_toml_as_one_would_write_it(tmp_path: Path) -> None:
    path = tmp_path / "press.toml"
    space = "[design]\nx = [0, 1]\n[context]\nhumidity = [0, 100]\n"
    path.write_text('context_distribution = { name = "norm", loc = 55, scale = 12 }\n' + space)
    context_distribution = read_toml(path).settings.context_distribution
    assert context_distribution is not None
    assert context_distribution.to_text() == "humidity = norm(loc=55, scale=12)"
    path.write_text('context_distribution = { name = "nrm" }\n' + space)
    with pytest.raises(InvalidValueError, match="'norm'"):
        Study.described(read_toml(path))
    assert not (tmp_path / "press.db").exists() or not Study.open(tmp_path / "press.db", ONE).runs


def test_a_distribution_may_be_amended() -> None:
    optimizer = reported()
    optimizer.amend({"context_distribution": {"humidity": {"name": "norm", "loc": 75, "scale": 5}}})
    assert optimizer.predict({"speed": [0.25, 0.75]}).expected.argmax() == 1
    with pytest.raises(InvalidValueError):
        optimizer.amend({"context_distribution": {"humidity": {"name": "Popen"}}})
    optimizer.amend({"context_distribution": None})
    assert optimizer.settings.context_distribution is None


@pytest.mark.parametrize(
    ("given", "space", "error", "words"),
    [
        ("normal(55, 12)", ONE, InvalidValueError, "no distribution"),
        ("gaussian_kde(55)", ONE, InvalidValueError, "no distribution"),
        ("__import__(1)", ONE, InvalidValueError, "distribution"),
        ("norm(55, -12)", ONE, InvalidValueError, "no quantiles"),
        ("beta(55)", ONE, InvalidValueError, "cannot be"),
        ("norm(os)", ONE, InvalidValueError, "it is a number"),
        ("norm(55", ONE, InvalidValueError, "distribution"),
        ({"humdity": "norm(1, 2)"}, ONE, InvalidContextError, "did you mean 'humidity'"),
        ("norm(55, 12)", TWO, InvalidValueError, "of which variable"),
        ({"shift": "norm(1, 2)"}, TWO, InvalidValueError, "give shares"),
        ({"shift": {"dya": 1.0}}, TWO, InvalidContextError, "did you mean 'day'"),
        ({"shift": {"day": -1.0}}, TWO, InvalidValueError, "weight"),
        ({"humidity": {"name": "norm", "loc": "x"}}, ONE, InvalidValueError, "finite numbers"),
        ([[30.0, 2.0]], ONE, InvalidContextError, "1 value"),
        ([], ONE, InvalidContextError, "0 samples"),
        ({}, ONE, InvalidValueError, "empty"),
        ("norm(1, 2)", Space({"x": (0, 1)}), InvalidContextError, "no context variable"),
    ],
)
def test_distributions_that_cannot_be(given: Any, space: Space, error: type[EdrboError], words: str) -> None:
    with pytest.raises(error, match=words):
        Optimizer(space, context_distribution=given)


def test_a_distribution_of_ones_own_is_reported_by_samples(tmp_path: Path) -> None:
    class Mine(stats.rv_continuous):
        def _pdf(self, x: Any) -> Any:
            return np.ones_like(x)

    with pytest.raises(InvalidValueError, match="samples"):
        Optimizer(ONE, context_distribution=Mine(a=0, b=1)())
    with pytest.raises((InvalidValueError, StudyError)):
        Study.open(tmp_path / "bad.db", ONE, context_distribution="normal(1, 2)")


def test_optuna_takes_a_distribution() -> None:
    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        trial.set_user_attr("context", {"humidity": 10.0 * trial.number})
        return x

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=EDRBOSampler(ONE.context, context_distribution=stats.norm(55, 12), initial=2))
    study.optimize(objective, n_trials=4)
    assert len(study.trials) == 4
