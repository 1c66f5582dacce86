"""Leave-one-out against refitting without each outcome; the shift test against distributions that are and are not the
same."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import norm, wasserstein_distance_nd

from edrbo.errors import InvalidContextError
from edrbo.lab.report.diagnostics import _transport, context_shift, describe_calibration, new_places
from edrbo.optimizer.calibration import HeldOutPredictions, leave_one_out, one_step_ahead, predicted_when_suggested
from edrbo.records import events as e
from edrbo.records.outcomes import Units
from edrbo.records.settings import Settings
from edrbo.records.state import State
from edrbo.space import Space
from edrbo.surrogate.ensemble import ExpertEnsemble, Surrogate
from edrbo.surrogate.exact_gp import ExactGP

pytestmark = pytest.mark.numpy_numeric


@pytest.fixture
def model() -> ExpertEnsemble:
    rng = np.random.default_rng(0)
    X = torch.from_numpy(rng.random((14, 2)))
    Y = 10.0 + 3.0 * torch.sin(5.0 * X[:, 0]) + X[:, 1] + 0.1 * torch.from_numpy(rng.standard_normal(14))
    return Surrogate().fit(X, Y)


def test_leave_one_out_is_what_leaving_one_out_gives(model: ExpertEnsemble) -> None:
    found = leave_one_out(model)
    gp = model.gp
    for i in range(len(found.y)):
        rest = [j for j in range(len(found.y)) if j != i]
        without = ExactGP.condition(gp.kernels, gp.hyper, gp.x[rest], gp.y[rest])
        mean, sd = without.moments(gp.x[i : i + 1])
        predictive = (sd.square() + gp.hyper.noise_variance[:, None]).sqrt()
        shift, scale = model.scaling.shift, model.scaling.scale
        np.testing.assert_allclose(found.expert_mean[:, i], shift + scale * mean[:, 0], rtol=1e-7)
        np.testing.assert_allclose(found.expert_sd[:, i], scale * predictive[:, 0], rtol=1e-6)
    np.testing.assert_allclose(found.mean, found.expert_mean.mean(0))
    np.testing.assert_allclose(found.sd, found.expert_sd.mean(0))
    assert found.expert_rmse.shape == (4,)
    assert 0.5 < found.skill <= 1.0


def test_one_step_ahead_is_what_the_earlier_outcomes_predict(model: ExpertEnsemble) -> None:
    found = one_step_ahead(model)
    gp = model.gp
    assert len(found.y) == 13
    for i in (1, 5, 13):
        before = ExactGP.condition(gp.kernels, gp.hyper, gp.x[:i], gp.y[:i])
        mean, sd = before.moments(gp.x[i : i + 1])
        predictive = (sd.square() + gp.hyper.noise_variance[:, None]).sqrt()
        shift, scale = model.scaling.shift, model.scaling.scale
        assert found.mean[i - 1] == pytest.approx(shift + scale * float(mean.mean()), rel=1e-7)
        assert found.sd[i - 1] == pytest.approx(scale * float(predictive.mean()), rel=1e-6)


def predicted(n: int, error: float, sd: float = 1.0) -> HeldOutPredictions:
    """Outcomes of spread ten whose forecasts are off by ``error`` standard deviations, up and down."""
    y = 10.0 * np.sin(np.arange(n))
    return HeldOutPredictions(y, y + error * sd * (-1.0) ** np.arange(n), np.full(n, sd))


def test_words_of_calibration() -> None:
    good, bad = predicted(40, 0.5), predicted(40, 5.0)
    assert "can be trusted" in describe_calibration(good, good)
    assert "surer of itself" in describe_calibration(bad, good)
    assert "elsewhere expect surprises" in describe_calibration(good, bad)
    assert "can be trusted" not in describe_calibration(good, bad)
    wide = HeldOutPredictions(good.y, np.full(40, good.y.mean()), np.full(40, 100.0))
    assert "honest but wide" in describe_calibration(wide, wide)
    assert describe_calibration(predicted(3, 0.5), good) == "With 3 results it is too early to judge the model."
    nothing = HeldOutPredictions(good.y[:0], good.mean[:0], good.sd[:0])
    assert "too few runs in new places" in describe_calibration(good, nothing)


def test_good_forecasts_beside_known_ones_do_not_hide_bad_ones_of_new_places() -> None:
    """Thirty easy outcomes, predicted to a hundredth, and eight hard ones that came out otherwise."""
    easy, hard = predicted(30, 0.1, sd=0.01), predicted(8, 4.0)
    both = HeldOutPredictions(*(np.concatenate(pair) for pair in zip(_parts(easy), _parts(hard), strict=True)))
    assert not (both.coverage < 0.7)
    assert new_places(both).coverage == 0.0
    assert "elsewhere expect surprises" in describe_calibration(easy, both)


def _parts(found: HeldOutPredictions) -> tuple[np.ndarray, ...]:
    return found.y, found.mean, found.sd


@pytest.mark.parametrize("dimension", [1, 2])
def test_no_shift_is_rarely_called_one(dimension: int) -> None:
    values = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        scale = np.full(dimension, 4.0)
        one, two = rng.normal(size=(60, dimension)), rng.normal(size=(30, dimension))
        values.append(context_shift(one, two, scale, ("a", "b")[:dimension]).p_value)
    assert np.mean(np.array(values) < 0.05) <= 0.15  # 5 % of 40 is 2; 6 or more happen once in 70
    assert np.mean(values) == pytest.approx(0.5, abs=0.15)


@pytest.mark.parametrize("dimension", [1, 2])
def test_a_shift_is_seen_and_named(dimension: int) -> None:
    rng = np.random.default_rng(0)
    names = ("humidity", "price")[:dimension]
    one, two = rng.normal(size=(100, dimension)), rng.normal(size=(50, dimension))
    two[:, 0] -= 2.0
    two[:, 1:] -= 5.0  # on a scale of hundreds: less of a change than the two of humidity on a scale of five
    found = context_shift(one, two, np.array([5.0, 500.0])[:dimension], names)
    assert found.p_value < 0.01
    assert found.distance == pytest.approx(0.4, abs=0.1)
    assert found.distance > 2 * found.usual
    assert "shifted" in found.describe()
    assert "humidity went down by" in found.describe()


def test_a_change_of_spread_alone_is_seen_in_two_dimensions() -> None:
    rng = np.random.default_rng(1)
    found = context_shift(rng.normal(size=(200, 2)), 2.5 * rng.normal(size=(200, 2)), np.ones(2), ("a", "b"))
    assert found.p_value < 0.01


def test_the_distance_is_the_transport_distance() -> None:
    rng = np.random.default_rng(2)
    one, two = rng.random((12, 2)), rng.random((12, 2)) + 0.3
    pooled = np.concatenate([one, two])
    apart = np.sqrt(((pooled[:, None] - pooled[None]) ** 2).sum(-1))
    assert _transport(apart, np.arange(12), np.arange(12, 24)) == pytest.approx(wasserstein_distance_nd(one, two))


def test_the_line_has_the_known_distance() -> None:
    points = norm.ppf((np.arange(400) + 0.5) / 400)[:, None]
    found = context_shift(points, points + 1.5, np.array([3.0]), ("a",))
    assert found.distance == pytest.approx(0.5)
    assert found.moved == pytest.approx(1.5)
    same = context_shift(points, points, np.array([3.0]), ("a",))
    assert same.p_value == pytest.approx(1.0)
    assert "no sign of a shift" in same.describe()


def test_the_same_seed_gives_the_same_numbers_and_many_points_are_thinned() -> None:
    rng = np.random.default_rng(3)
    one, two = rng.random((900, 3)), rng.random((500, 3))
    assert context_shift(one, two, np.ones(3), ("a", "b", "c")) == context_shift(one, two, np.ones(3), ("a", "b", "c"))


def test_too_few_contexts() -> None:
    with pytest.raises(InvalidContextError):
        context_shift(np.ones((1, 1)), np.ones((5, 1)), np.ones(1), ("a",))


def test_forecasts_that_were_made_are_judged_as_they_were_stored() -> None:
    settings = Settings(Space({"x": (0, 1)}, {"c": (0, 1)}), direction="minimize")
    table = [[1.0, 0.0, 2.0], [5.0, 4.0, 7.0]]
    outcome_forecast = {"value": 3.0, "low": 0.0, "high": 6.0, "axes": [["c", [0.0, 1.0]]], "table": table}
    half = np.array([0.5])
    state = State.start(settings).apply(
        e.Reported(id=0, ref="own", x=half, context=half, value=9.0),
        e.Asked(id=1, ref="a", x=half, outcome_forecast=outcome_forecast),
        e.Asked(id=2, ref="b", x=half, outcome_forecast=outcome_forecast),
        e.Asked(id=3, ref="c", x=half, outcome_forecast=outcome_forecast),
        e.Reported(id=1, ref="d", context=half, value=3.5),
        e.Reported(id=2, ref="e", value=6.5),
        e.Reported(id=3, ref="f", x=np.array([0.7]), context=half, value=3.5),  # something else was set
    )
    found = predicted_when_suggested(state, Units(-1.0, 2.0))
    np.testing.assert_allclose(found.y, [-1.75, -3.25])
    np.testing.assert_allclose(found.mean, [-1.5, -1.5])
    np.testing.assert_allclose(found.sd, [0.5 * 2.5 / 1.959964 / 2, 0.5 * 6.0 / 1.959964 / 2], rtol=1e-6)
    assert found.inside.tolist() == [True, False]
