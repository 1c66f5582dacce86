"""Several outcomes thought about: margins, chance constraints, what is asked for and what is recommended."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import beta, binom

import edrbo
from edrbo.acquisition.acquisition import GoalAcquisition
from edrbo.acquisition.penalties import LimitPenalty, Margin, margin
from edrbo.acquisition.scores import UCB
from edrbo.contexts.distributions import ContextPoints
from edrbo.contexts.uncertainty import DistributionUncertainty
from edrbo.errors import EdrboError, InvalidValueError, SeveralOutcomesError, UnknownNameError
from edrbo.optimizer.joint_posterior import Chance, allowed_share, probability_of
from edrbo.optimizer.optimizer import Optimizer
from edrbo.records.outcomes import Units

SPACE = edrbo.Space(design={"x": (0.0, 1.0)}, context={"c": (0.0, 1.0)})
LIMIT = edrbo.Limit(upper=0.5, probability=0.9)
OUTCOMES = {"y": edrbo.Maximize(), "g": LIMIT}
# y rises with x; g = x + (c − ½)/2 is at most ½ in 90 % of uniform contexts as long as x ≤ 0.3
EDGE = 0.3


def tell_rows(one: Any, n: int, seed: int = 0, *, missing: bool = False) -> None:
    rng = np.random.default_rng(seed)
    for k, (x, c) in enumerate(rng.random((n, 2))):
        reported = {"y": x * (1.2 - 0.4 * c), "g": x + 0.5 * (c - 0.5)}
        if missing and k % 3 == 1:
            del reported["g" if k % 2 else "y"]
        one.tell({"x": x}, {"c": c}, reported)


@pytest.fixture(scope="module")
def reported() -> Optimizer:
    optimizer = Optimizer(SPACE, "erbo", outcomes=OUTCOMES, seed=1)  # one expert: sooner fitted
    tell_rows(optimizer, 34)
    return optimizer


@pytest.fixture(scope="module")
def found(reported: Optimizer) -> edrbo.Recommendation:
    return reported.recommend()


# -------------------------------------------------------------------- limits as something to search under


@pytest.mark.parametrize(("lower", "upper"), [(None, 0.5), (-0.2, None), (-0.2, 0.5)])
def test_a_margin_is_the_quantile_that_decides(lower: float | None, upper: float | None) -> None:
    rng = np.random.default_rng(0)
    outcomes, weights = rng.normal(size=(200, 15)), rng.dirichlet(np.ones(15))
    inside = (outcomes >= (-np.inf if lower is None else lower)) & (outcomes <= (np.inf if upper is None else upper))
    for share in (0.05, 0.3, 0.6):
        holds = (~inside * weights).sum(1) <= share
        found = Margin(lower, upper, share + 1e-9).value(outcomes, weights, "maximize")
        assert ((found >= 0) == holds).all()
        gain = rng.random(outcomes.shape)
        optimistic_value = Margin(lower, upper, share).optimistic(outcomes, gain, gain, weights, "maximize")
        moved = [Margin(lower, upper, share).value(outcomes + t * gain, weights, "maximize") for t in (-1.0, 0.0, 1.0)]
        assert (optimistic_value >= np.max(moved, axis=0) - 1e-12).all()


def test_the_gradient_under_limits(reported: Optimizer) -> None:
    main, other = (reported._model_of(name) for name in ("y", "g"))
    posterior = other.posterior(other.data(), (None, None), pending=[], asking=True)
    points = ContextPoints(posterior.points.atoms, posterior.points.weights, posterior.points.support[:0])
    narrow = margin(posterior.model, UCB(beta=-1.0), points, Margin(None, 0.5, 0.1), posterior.model_goal.units)
    assert isinstance(narrow, GoalAcquisition)
    training_data = main.data()
    wanted = main.posterior(training_data, (None, None), pending=[], asking=True).acquisition()
    limited = LimitPenalty(((2.0, wanted),), ((3.0, narrow),))
    x = torch.linspace(0.03, 0.97, 9, dtype=torch.float64)[:, None]
    value, gradient = limited.value_and_gradient(x)
    assert value.numpy() == pytest.approx(limited(x).numpy())
    assert value.numpy() == pytest.approx((2 * wanted(x) - 3 * (-narrow(x)).clamp_min(0)).numpy())
    step = 1e-6
    numeric = (limited(x + step) - limited(x - step)) / (2 * step)
    assert gradient[:, 0].numpy() == pytest.approx(numeric.numpy(), abs=1e-4)
    assert (narrow(x) < 0).any()
    assert (narrow(x) > 0).any()


# -------------------------------------------------------------------- chance constraints


def distribution_of(n: int) -> DistributionUncertainty:
    return DistributionUncertainty(
        torch.rand(n, 1, dtype=torch.float64), torch.full((n,), 1.0 / n, dtype=torch.float64), float(n)
    )


def test_few_contexts_tell_little() -> None:
    """Clopper and Pearson: with k of n contexts beyond, P(Binomial(n, 1 − p) > k)."""
    for n, p in ((20, 0.9), (60, 0.9), (60, 0.95), (58, 0.95), (59, 0.95)):
        broken = np.arange(0, n // 4) / n
        exact = binom.sf(np.arange(0, n // 4), n, 1.0 - p)
        assert probability_of(broken, p, distribution_of(n)) == pytest.approx(exact, abs=1e-9)
        allowed = allowed_share(edrbo.Limit(upper=1, probability=p, confidence=0.95), distribution_of(n))
        most = max((k for k in range(n // 4) if binom.sf(k, n, 1.0 - p) >= 0.95), default=0)
        assert math.floor(allowed * n + 1e-6) == most
    assert (
        probability_of(np.array(0.0), 0.95, distribution_of(58))
        < 0.95
        < probability_of(np.array(0.0), 0.95, distribution_of(59))
    )


def test_a_distribution_that_is_known_needs_no_caution() -> None:
    exact = DistributionUncertainty(
        torch.rand(10, 1, dtype=torch.float64), torch.full((10,), 0.1, dtype=torch.float64), math.inf
    )
    assert probability_of(np.array([0.0, 0.1, 0.2]), 0.9, exact).tolist() == [1.0, 1.0, 0.0]
    assert allowed_share(LIMIT, exact) == pytest.approx(0.1)


def test_the_probability_that_a_limit_holds_is_that_of_draws(reported: Optimizer) -> None:
    """f drawn from the joint posterior of each expert, distributions from a bootstrap with one context that breaks the
    limit."""
    known = reported._known_outcomes(None, (None, None), 3)["g"]
    chance, model = Chance.of(LIMIT, known), known.worlds
    rng = np.random.default_rng(0)
    for place in (0.2, 0.26, 0.32):
        x = torch.tensor([[place]], dtype=torch.float64)
        joint = torch.cat(
            [x.expand(len(chance.context_distribution.contexts), 1), chance.context_distribution.contexts], dim=-1
        )
        mean, covariance = (part.numpy() for part in model.gp.posterior(joint))
        found = []
        for m, k in zip(mean, covariance, strict=True):
            freedom, count = known.trust.freedom, 2000
            noise_variance = rng.multivariate_normal(np.zeros(len(m)), k, size=count, method="svd")
            scale = known.trust.stretch * np.sqrt(freedom / rng.chisquare(freedom, (count, 1)))
            drawn = model.scaling.value(torch.from_numpy(m + scale * noise_variance)).numpy()
            broken = (-drawn > LIMIT.upper).sum(1)  # the model maximizes
            shares = beta.rvs(broken + 1, np.maximum(len(m) - broken, 1e-9), random_state=rng)
            found.append(np.mean(shares <= 1.0 - LIMIT.probability))
        assert float(chance.holds(x)[0]) == pytest.approx(np.mean(found), abs=0.04)


# -------------------------------------------------------------------- asking and recommending


def test_the_recommendation_keeps_its_limit(found: edrbo.Recommendation) -> None:
    answer = found.outcomes["g"]
    assert answer.holds is not None
    assert found.limits_hold
    assert answer.holds >= LIMIT.confidence
    assert EDGE - 0.1 < found.design["x"] <= EDGE
    assert answer.aim == "g ≤ 0.5 in 90 % of conditions"
    assert answer.value_interval[0] < answer.value < answer.value_interval[1] <= 1.0
    assert answer.expected == pytest.approx(found.design["x"], abs=0.05)
    assert found.outcomes["y"].expected == found.expected
    assert found.outcomes["y"].holds is None
    assert 0 <= found.optimality_gap < 0.3  # without the limit twice as much could be had


def test_less_confidence_is_bolder(reported: Optimizer, found: edrbo.Recommendation) -> None:
    bold = Optimizer.of(reported.state)
    bold.amend(
        {
            "outcomes": {
                "y": {"aim": "maximize"},
                "g": {"aim": "limit", "upper": 0.5, "probability": 0.9, "confidence": 0.3},
            }
        }
    )
    assert bold.recommend().design["x"] > found.design["x"] + 0.01


def test_what_is_known_of_the_distribution_is_used(reported: Optimizer, found: edrbo.Recommendation) -> None:
    """Ten thousand contexts of a forecast are the distribution itself."""
    sure = reported.recommend(forecast={"c": np.linspace(0.0, 1.0, 101)})
    assert found.design["x"] < sure.design["x"] <= EDGE + 0.01
    calm = reported.recommend(context={"c": 0.0})  # then g = x − 0.25
    assert calm.design["x"] == pytest.approx(0.75, abs=0.05)


def test_asking_is_optimistic_about_limits_and_not_more(reported: Optimizer) -> None:
    before = reported.state
    three = reported.ask(3)
    reported.go_on(before)
    assert EDGE - 0.03 < three[0]["x"] < EDGE + 0.08
    assert len({one["x"] for one in three}) == 3
    early = Optimizer(SPACE, "erbo", outcomes=OUTCOMES, seed=1, initial=3)
    tell_rows(early, 3)
    assert early.ask()["x"] > EDGE  # nobody knows yet that it breaks


def test_the_ensemble_under_limits_and_its_stored_text() -> None:
    optimizer = Optimizer(SPACE, outcomes=OUTCOMES, seed=1)
    tell_rows(optimizer, 8)
    asked = optimizer.ask()
    assert asked.outcome_forecast is not None
    assert optimizer.fit is not None
    assert optimizer.fit.others["g"].rows == 8
    again = Optimizer.from_json(optimizer.to_json())
    assert again.fit is not None
    assert again.fit.others["g"].digest == optimizer.fit.others["g"].digest  # a new process need not fit again
    assert again.ask().design == optimizer.ask().design
    assert again._models["g"].stored is not None
    assert optimizer.recommend().limits_hold is False  # eight contexts tell little


def test_outcomes_may_be_missing() -> None:
    optimizer = Optimizer(SPACE, "erbo", outcomes=OUTCOMES, seed=1)
    tell_rows(optimizer, 36, missing=True)
    assert len(optimizer.state.of_outcome("g").reported) < 36
    assert EDGE - 0.12 < optimizer.recommend().design["x"] <= EDGE


def test_weights_are_exchange_rates() -> None:
    """−(x − 0.2)² + ½ · (−(x − 0.8)²) is best at 0.4; with the second one minimized in other units the same."""
    for units in (1.0, 1000.0):
        outcomes = {"a": edrbo.Maximize(), "b": edrbo.Minimize(weight=0.5 / units)}
        optimizer = Optimizer(SPACE, "erbo", outcomes=outcomes, seed=2)
        for x, c in np.random.default_rng(3).random((10, 2)):
            optimizer.tell({"x": x}, {"c": c}, {"a": -((x - 0.2) ** 2), "b": units * ((x - 0.8) ** 2 + 0.1 * c)})
        found = optimizer.recommend()
        assert found.design["x"] == pytest.approx(0.4, abs=0.03)
        assert found.limits_hold is None
        assert optimizer.ask()["x"] == pytest.approx(0.4, abs=0.2)


def test_predictions_of_each(reported: Optimizer) -> None:
    designs = [{"x": 0.1}, {"x": 0.9}]
    assert reported.predict(designs, outcome="g").expected == pytest.approx([0.1, 0.9], abs=0.05)
    assert reported.predict(designs, outcome="g").value == pytest.approx([1.0, 0.0], abs=0.1)
    assert reported.predict(designs).expected == pytest.approx([0.1, 0.9], abs=0.05)
    with pytest.raises(UnknownNameError, match="'h'"):
        reported.predict(designs, outcome="h")


def test_what_cannot_be_answered(reported: Optimizer) -> None:
    with pytest.raises(InvalidValueError):
        Optimizer(SPACE, "ucb", outcomes=OUTCOMES)
    untold = Optimizer(SPACE, outcomes=OUTCOMES)
    untold.tell({"x": 0.5}, [0.5], {"y": 1.0})
    with pytest.raises(EdrboError, match="'g'"):
        untold.recommend()
    untold.tell({"x": 0.6}, [0.6], {"g": 1.0})
    for _ in range(6):
        untold.ask()  # a limit of which nothing is known does not limit
    front = Optimizer(SPACE, outcomes={"y": edrbo.Maximize(), "g": edrbo.Minimize()})
    tell_rows(front, 6)
    with pytest.raises(SeveralOutcomesError):
        front.recommend()
    with pytest.raises(EdrboError, match="trade-off"):
        reported.tradeoff()


def test_the_loop_takes_several_outcomes() -> None:
    def f(design: dict[str, float]) -> tuple[list[float], dict[str, float]]:
        return [0.5], {"y": design["x"], "g": design["x"]}

    found = edrbo.maximize(f, SPACE, 4, method="erbo", outcomes=OUTCOMES)
    assert set(found.recommendation.outcomes) == {"y", "g"}
    with pytest.raises(SeveralOutcomesError):  # before anything is run
        edrbo.maximize(f, SPACE, 4, outcomes={"y": edrbo.Maximize(), "g": edrbo.Minimize()})


def test_units_of_any_size() -> None:
    """Both outcomes in units of 1e120: nothing overflows, and the design is the same."""
    assert Units.of("maximize", np.array([1e120])).scale > 1
    outcomes = {"y": edrbo.Maximize(), "g": edrbo.Limit(upper=0.5e120, probability=0.9, confidence=0.3)}
    huge = Optimizer(SPACE, "erbo", outcomes=outcomes, seed=1)
    for x, c in np.random.default_rng(0).random((10, 2)):
        huge.tell({"x": x}, {"c": c}, {"y": 1e120 * x * (1.2 - 0.4 * c), "g": 1e120 * (x + 0.5 * (c - 0.5))})
    assert 0.0 < huge.recommend().design["x"] <= EDGE + 0.1
    assert np.isfinite(huge.ask()["x"])


@pytest.mark.parametrize("confidence", [0.6, 0.8, 0.9, 0.95])
def test_whether_limits_hold_is_said_once(confidence: float) -> None:
    """``holds`` of the answer and ``limits_hold`` were of different draws where no design was sure."""
    limit = edrbo.Limit(upper=0.5, probability=0.9, confidence=confidence)
    optimizer = Optimizer(SPACE, "erbo", outcomes={"y": edrbo.Maximize(), "g": limit}, seed=1)
    tell_rows(optimizer, 14)
    answer = optimizer.recommend(radius=0.0)
    holds = answer.outcomes["g"].holds
    assert holds is not None
    assert answer.limits_hold == (holds >= confidence)


def test_the_share_of_contexts_that_keep_a_limit_may_be_all_of_them() -> None:
    """Clopper and Pearson's interval where f is known: its upper end is 1 if every context seen keeps the limit."""
    optimizer = Optimizer(SPACE, "erbo", outcomes={"y": edrbo.Maximize(), "g": edrbo.Limit(upper=0.9)}, seed=1)
    for k in range(24):
        x, c = (k % 6) / 5, (k // 6 + 0.5) / 4
        optimizer.tell({"x": x}, {"c": c}, {"y": x, "g": 0.5 * x + 0.2 * c})
    found = optimizer.predict({"x": 0.4}, outcome="g")
    assert found.value[0] == pytest.approx(1.0, abs=1e-6)
    chance = Chance.of(edrbo.Limit(upper=0.9), optimizer._known_outcomes(None, (None, None), 3)["g"])
    share, (low, high) = chance.share(torch.tensor([0.4], dtype=torch.float64))
    assert share == pytest.approx(1.0, abs=1e-6)
    assert high == 1.0
    assert low == pytest.approx(beta.ppf(0.025, 24, 1), abs=0.02)
