"""The way from face to face that finds the MMD worst case: it ends at the optimum, wherever it starts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edrbo.acquisition.risk import mmd
from edrbo.acquisition.risk.mmd import Array, MMDBall, Solver, descend

pytestmark = [pytest.mark.numpy_numeric]


def ball_on(points: Array, center: Array) -> MMDBall:
    square = ((points[:, None] - points[None]) ** 2).sum(-1)
    return MMDBall.around(center, np.exp(-0.5 * square / 0.2**2) + 1e-8 * np.eye(len(points)))


def random_ball(rng: np.random.Generator, n: int) -> MMDBall:
    center = rng.dirichlet(np.full(n, 0.5)) * (rng.random(n) < 0.7) + 1e-3 * np.eye(n)[0]
    return ball_on(rng.random((n, int(rng.integers(1, 4)))), center / center.sum())


def random_scores(rng: np.random.Generator, b: int, n: int) -> Array:
    scores = rng.random((b, n)) + np.sin(9.0 * rng.random((b, 1)) + np.arange(n) / 5.0)
    return np.round(scores, 1) if rng.random() < 0.3 else scores  # ties


def loss_at_most(s: Array, p: Array, ball: MMDBall, radius: float) -> float:
    """How far above the minimum the expectation of scores ``s`` (n) under ``p`` (n) is at most, by weak duality.

    For every multiplier θ and q in the ball θ sᵀ(q − p) ≥ min g − gᵀp + (p − w)ᵀM(p − w) − radius², where g is
    M(p − w) + θ s. The θ taken here makes g as equal as it gets where p has mass.
    """
    some = p > 1e-9
    if np.ptp(s[some]) < 1e-9:  # on points that share the minimum
        return float(s @ p - s.min())
    pull = ball.kernel @ (p - ball.center)
    theta = -float(np.cov(s[some], pull[some])[0, 1] / np.var(s[some], ddof=1))
    g = pull + theta * s
    return float(g @ p - g.min() + radius**2 - (p - ball.center) @ pull) / theta


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), radius=st.sampled_from([0.03, 0.1, 0.3, 0.7]))
def test_no_distribution_in_the_ball_is_better(seed: int, radius: float) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 100))
    ball, scores = random_ball(rng, n), random_scores(rng, 8, n)
    outside = ball.squared_distances[scores.argmin(1)] > radius**2
    worst = Solver(ball).minimize(scores, radius)
    for s, p in zip(scores[outside], worst[outside], strict=True):
        assert loss_at_most(s, p, ball, radius) <= 1e-9


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_start_does_not_matter(seed: int) -> None:
    """Far ones, near ones, and those of a larger ball, which lie outside this one."""
    rng = np.random.default_rng(seed)
    n, radius = int(rng.integers(10, 60)), 0.2
    ball, scores = random_ball(rng, n), rng.random((6, n))
    scores = scores[ball.squared_distances[scores.argmin(1)] > 1.5 * radius**2]
    on_minimum = np.eye(n)[scores.argmin(1)]
    expected = descend(scores, on_minimum, ball, radius)
    other = descend(scores[::-1] + 0.01 * rng.random(scores.shape), on_minimum[::-1], ball, radius)
    wider, center = descend(scores, on_minimum, ball, 1.2 * radius), np.tile(ball.center, (len(scores), 1))
    for start in (expected, other, wider, center):
        np.testing.assert_allclose(descend(scores, start, ball, radius), expected, rtol=0, atol=1e-9)


def test_a_row_that_is_its_own_start_takes_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    ball, scores = random_ball(rng, 40), random_scores(rng, 3, 40)
    solver, taken = Solver(ball), list[int]()
    once = solver.minimize(scores, 0.2)
    monkeypatch.setattr(mmd, "_target", _counting(mmd._target, taken))
    again = solver.minimize(scores, 0.2)
    assert len(taken) == 1
    np.testing.assert_array_equal(again, once)


def test_a_row_that_does_not_arrive_is_a_distribution_in_the_ball(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    ball, scores = random_ball(rng, 30), random_scores(rng, 20, 30)
    monkeypatch.setattr(mmd, "range", lambda _: [0, 1], raising=False)  # two steps
    p = Solver(ball).minimize(scores, 0.2)
    assert bool((p >= 0).all())
    np.testing.assert_allclose(p.sum(1), 1.0, rtol=0, atol=1e-12)
    away = p - ball.center
    assert float(((away @ ball.kernel) * away).sum(1).max()) <= 0.2**2 + 1e-12


def _counting(function, taken: list[int]):  # type: ignore[no-untyped-def]
    def counted(*arguments):  # type: ignore[no-untyped-def]
        taken.append(1)
        return function(*arguments)

    return counted
