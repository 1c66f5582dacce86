"""ask / tell / recommend: what a user relies on, and what happens to bad input."""

from __future__ import annotations

import math
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edrbo import Categorical, Integer, Method, Optimizer, Real, Space, Surrogate
from edrbo.acquisition.risk import Expectation
from edrbo.acquisition.scores import UCB
from edrbo.contexts.distributions import Empirical
from edrbo.errors import (
    ContextBoundsWarning,
    EdrboError,
    InvalidContextError,
    InvalidDesignError,
    InvalidValueError,
    NothingReportedError,
    NotStorableError,
    UnknownNameError,
    UnknownSuggestionError,
)

pytestmark = pytest.mark.torch_numeric

SPACE = Space(design={"x": (0, 1)}, context={"c": (0, 1)})


def bowl(x: float, c: float) -> float:
    """E over c ~ U(0, 1) is best at x = 0.5 · (1 + 0.2)."""
    return -((x - 0.4 - 0.4 * c) ** 2)


def filled(n: int = 8, seed: int = 0, begun: str | None = None) -> Optimizer:
    optimizer = Optimizer(SPACE, seed=seed) if begun is None else Optimizer.from_json(begun)
    rng = np.random.default_rng(seed)
    rng.uniform(size=len(optimizer.observations))  # the contexts that were reported
    for _ in range(n - len(optimizer.observations)):
        suggestion = optimizer.ask()
        c = float(rng.uniform())
        optimizer.tell(suggestion, {"c": c}, bowl(suggestion["x"], c))
    return optimizer


@cache
def text_of(n: int) -> str:
    return filled(n, begun=text_of(20) if n > 20 else None).to_json()


def known(n: int = 8) -> Optimizer:
    """As ``filled``, for tests that do not ask how it came to be: the asks are made once."""
    return Optimizer.from_json(text_of(n))


def test_it_finds_the_design_that_is_best_on_average() -> None:
    optimizer = known(20)
    answer = optimizer.recommend(forecast=[{"c": v} for v in np.linspace(0, 1, 33)])
    assert answer.design["x"] == pytest.approx(0.6, abs=0.03)
    exact = -np.mean([(answer.design["x"] - 0.4 - 0.4 * c) ** 2 for c in np.linspace(0, 1, 33)])
    assert answer.interval[0] <= exact <= answer.interval[1]
    assert answer.expected == pytest.approx(exact, abs=2e-3)
    assert answer.worst_case <= answer.expected
    assert answer.robust <= answer.expected
    assert answer.observations == 20
    assert 0.0 <= answer.distribution_error < 0.02


def test_recommend_for_one_context_is_contextual() -> None:
    optimizer = known(25)
    low, high = optimizer.recommend(context={"c": 0.0}), optimizer.recommend(context={"c": 1.0})
    assert low.design["x"] == pytest.approx(0.4, abs=0.06)
    assert high.design["x"] == pytest.approx(0.8, abs=0.06)
    assert low.context_effect == {"c": 0.0}


def test_context_effect_tells_which_context_matters() -> None:
    optimizer = Optimizer(Space(design={"x": (0, 1)}, context={"big": (0, 1), "none": (0, 1)}), seed=1)
    rng = np.random.default_rng(1)
    for _ in range(20):
        s = optimizer.ask()
        big, none = rng.uniform(size=2)
        optimizer.tell(s, {"big": big, "none": none}, 3 * big - (s["x"] - 0.5) ** 2)
    effect = optimizer.recommend().context_effect
    assert effect["big"] == pytest.approx(3 / math.sqrt(12), rel=0.35)
    assert effect["none"] < 0.1 * effect["big"]


def test_minimize_mirrors_maximize() -> None:
    up, down = Optimizer(SPACE, seed=3), Optimizer(SPACE, seed=3, direction="minimize")
    rng = np.random.default_rng(3)
    for _ in range(9):
        a, b = up.ask(), down.ask()
        assert a == b
        c = float(rng.uniform())
        up.tell(a, {"c": c}, bowl(a["x"], c))
        down.tell(b, {"c": c}, -bowl(b["x"], c))
    one, two = up.recommend(), down.recommend()
    assert one.design == two.design
    assert one.expected == -two.expected
    assert one.interval == (-two.interval[1], -two.interval[0])
    assert two.worst_case >= two.expected
    assert two.robust >= two.expected


def test_same_seed_same_suggestions_and_other_seed_others() -> None:
    assert [s.design for s in filled(7, seed=5).ask(2)] == [s.design for s in filled(7, seed=5).ask(2)]
    assert filled(7, seed=5).ask().design != filled(7, seed=6).ask().design


def test_json_round_trip_continues_bit_for_bit() -> None:
    straight = filled(6, seed=2)
    straight.observe_context([0.2, 0.9], weights=[1.0, 3.0])
    pending = straight.ask()
    straight.tell({"x": 0.25}, None, -0.1)
    straight.tell({"x": 0.75}, {"c": 0.5}, failed=True)
    text = straight.to_json()
    resumed = Optimizer.from_json(text)
    assert resumed.to_json() == text
    for optimizer in (straight, resumed):
        optimizer.tell(pending.id, {"c": 0.3}, -0.2)
    for _ in range(6):
        a, b = straight.ask(), resumed.ask()
        assert a == b
        for optimizer, s in ((straight, a), (resumed, b)):
            optimizer.tell(s, {"c": 0.4}, bowl(s["x"], 0.4))
        resumed = Optimizer.from_json(resumed.to_json())
    assert straight.recommend() == resumed.recommend()


def test_a_batch_is_aware_of_itself_and_of_what_is_pending() -> None:
    optimizer = known(10)
    alone = [known(10).ask()["x"]]
    batch = [s["x"] for s in optimizer.ask(4)]
    assert batch[0] == alone[0]
    assert len({round(x, 3) for x in batch}) == 4
    assert len(optimizer.pending) == 4
    after = optimizer.ask()["x"]
    assert min(abs(after - x) for x in batch) > 1e-4


def test_asking_ahead_before_any_outcome_stays_quasi_random() -> None:
    optimizer = Optimizer(SPACE, seed=0, initial=2)
    xs = sorted(s["x"] for s in optimizer.ask(16))
    gaps = np.diff([0.0, *xs, 1.0])
    assert gaps.max() < 0.2


def test_initial_designs_do_not_depend_on_the_method() -> None:
    assert Optimizer(SPACE, "ucb", seed=9).ask(5) == Optimizer(SPACE, "edrbo", seed=9).ask(5)


def test_a_forecast_moves_the_suggestion() -> None:
    optimizer = known(20)
    low = optimizer.recommend(forecast=[0.0, 0.05]).design["x"]
    high = optimizer.recommend(forecast=[0.95, 1.0]).design["x"]
    assert low < 0.5 < 0.7 < high
    assert optimizer.ask(forecast=[0.0, 0.05])["x"] < 0.6


@pytest.mark.filterwarnings("ignore::edrbo.errors.ImplausibleWarning")
def test_values_without_context_are_used_not_dropped() -> None:
    optimizer = Optimizer(SPACE, seed=0)
    for x in (0.1, 0.35, 0.6, 0.85):
        optimizer.tell({"x": x}, None, -((x - 0.6) ** 2))
    only = optimizer.recommend()
    assert only.design["x"] == pytest.approx(0.6, abs=0.15)
    with_contexts = known(6)
    before = with_contexts.predict({"x": 0.1}).expected[0]
    with_contexts.tell({"x": 0.1}, None, 0.5)
    assert with_contexts.predict({"x": 0.1}).expected[0] > before + 0.01


def test_a_late_context_equals_one_reported_at_once() -> None:
    late, prompt = known(6), known(6)
    a, b = late.ask(), prompt.ask()
    late.tell(a, None, -0.3)
    late.tell_context(a, {"c": 0.7})
    prompt.tell(b, {"c": 0.7}, -0.3)
    assert late.ask() == prompt.ask()
    with pytest.raises(InvalidContextError):
        late.tell_context(a, {"c": 0.7})


def test_a_failed_evaluation_has_no_value() -> None:
    optimizer = known(3)
    with pytest.raises(InvalidValueError):
        optimizer.tell(optimizer.ask(), {"c": 0.5}, 1.0, failed=True)


@pytest.mark.filterwarnings("ignore::edrbo.errors.ImplausibleWarning", "ignore::edrbo.errors.NarrowContextsWarning")
def test_forgetting_follows_a_drift() -> None:
    def drifted(context_half_life: float | None) -> float:
        optimizer = Optimizer(SPACE, seed=0, context_half_life=context_half_life)
        rng = np.random.default_rng(0)
        for t, x in enumerate(rng.uniform(size=24)):
            c = float(rng.uniform(0.0, 0.1) if t < 14 else rng.uniform(0.9, 1.0))
            optimizer.tell({"x": x}, {"c": c}, bowl(x, c))
        return float(optimizer.recommend().design["x"])

    assert drifted(2.0) > drifted(None) + 0.05


def test_context_history_of_a_million_rows_is_summarized() -> None:
    optimizer = known(20)
    samples = np.random.default_rng(0).beta(8, 2, size=1_000_000)
    optimizer.observe_context(samples)
    assert len(optimizer.context_log) == 1_000_020
    assert len(optimizer.to_json()) < 200_000
    summarized, forecast = optimizer.recommend(), optimizer.recommend(forecast=samples[::100])
    assert summarized.design["x"] == pytest.approx(forecast.design["x"], abs=5e-3)
    assert summarized.expected == pytest.approx(forecast.expected, rel=0.02)


@pytest.mark.filterwarnings("ignore::edrbo.errors.ImplausibleWarning")
def test_known_noise_is_respected() -> None:
    def spike(noise_variance: float) -> float:
        optimizer = known(8)
        optimizer.tell({"x": 0.1}, {"c": 0.5}, 2.0, noise_variance=noise_variance)
        return float(optimizer.predict({"x": 0.1}, context={"c": 0.5}).expected[0])

    assert spike(1e-8) > 1.5
    assert spike(100.0) < 0.5


def test_unbounded_and_out_of_bounds_contexts() -> None:
    optimizer = Optimizer(Space(design={"x": (0, 1)}, context={"c": None}), seed=0)
    rng = np.random.default_rng(0)
    for _ in range(10):
        s = optimizer.ask()
        c = float(rng.normal(1000.0, 50.0))
        optimizer.tell(s, {"c": c}, bowl(s["x"], (c - 900) / 200))
    assert 0.4 < optimizer.recommend().design["x"] < 0.8
    bounded = known(6)
    with pytest.warns(ContextBoundsWarning):
        bounded.tell(bounded.ask(), {"c": 1.5}, -1.0)
    assert bounded.observations.c[-1, 0] == 1.5
    assert 0.0 <= bounded.ask()["x"] <= 1.0


def test_mixed_design_spaces() -> None:
    space = Space(
        design={"n": Integer(1, 9), "kind": Categorical(("a", "b", "c")), "r": Real(1e-3, 1.0, log=True)},
        context={"c": (0, 1)},
    )
    optimizer = Optimizer(space, seed=0)
    rng = np.random.default_rng(0)
    for _ in range(30):
        s = optimizer.ask()
        assert isinstance(s["n"], int)
        assert s["kind"] in ("a", "b", "c")
        c = float(rng.uniform())
        value = -(((s["n"] - 6) / 8) ** 2) - (0.0 if s["kind"] == "b" else 0.4) - (math.log10(s["r"]) + 1.5) ** 2 / 9
        optimizer.tell(s, {"c": c}, value + 0.1 * c)
    best = optimizer.recommend().design
    assert best["kind"] == "b"
    assert abs(best["n"] - 6) <= 1
    assert math.log10(best["r"]) == pytest.approx(-1.5, abs=0.4)


def test_plain_optimization_without_contexts() -> None:
    optimizer = Optimizer(Space(design={"x": (-1, 3)}), seed=0)
    for _ in range(12):
        s = optimizer.ask()
        optimizer.tell(s, value=-((s["x"] - 1.2) ** 2))
    answer = optimizer.recommend()
    assert answer.design["x"] == pytest.approx(1.2, abs=0.05)
    assert answer.worst_case == pytest.approx(answer.expected)
    with pytest.raises(InvalidContextError):
        optimizer.observe_context([1.0])


def test_a_method_of_ones_own() -> None:
    method = Method(Surrogate(experts=("matern52",)), UCB(2.0), Empirical(max_atoms=5), Expectation())
    optimizer = Optimizer(SPACE, method, seed=0)
    for _ in range(7):
        s = optimizer.ask()
        optimizer.tell(s, {"c": 0.5}, bowl(s["x"], 0.5))
    assert 0.0 <= optimizer.ask()["x"] <= 1.0
    again = Optimizer.from_json(optimizer.to_json())
    assert again.method == method
    assert again.ask() == optimizer.ask()


def test_a_method_with_parts_of_ones_own_cannot_be_stored() -> None:
    method = Method(Surrogate(experts=("matern52",)), UCB(2.0), Empirical(), lambda n, d_c: Expectation())
    with pytest.raises(NotStorableError):
        Optimizer(SPACE, method).to_json()


BAD_TELLS = [
    (dict(value=math.nan, context={"c": 0.5}), InvalidValueError),
    (dict(value=math.inf, context={"c": 0.5}), InvalidValueError),
    (dict(value=None, context={"c": 0.5}), InvalidValueError),
    (dict(value="many", context={"c": 0.5}), InvalidValueError),
    (dict(value=1.0, context={"d": 0.5}), InvalidContextError),
    (dict(value=1.0, context={"c": math.nan}), InvalidContextError),
    (dict(value=1.0, context=[0.1, 0.2]), InvalidContextError),
    (dict(value=1.0, context={"c": 0.5}, noise_variance=-1.0), InvalidValueError),
]


@pytest.mark.parametrize(("reported", "error"), BAD_TELLS)
def test_a_bad_tell_is_a_typed_error_and_changes_nothing(reported: dict[str, object], error: type[EdrboError]) -> None:
    optimizer = known(6)
    suggestion = optimizer.ask()
    before = optimizer.to_json()
    with pytest.raises(error) as caught:
        optimizer.tell(suggestion, **reported)  # type: ignore[arg-type]
    assert caught.value.message
    assert optimizer.to_json() == before


def test_other_bad_input_changes_nothing() -> None:
    optimizer = known(6)
    before = optimizer.to_json()
    stranger = Optimizer(SPACE).ask(40)[-1]
    cases = [
        (lambda: optimizer.tell(stranger, {"c": 0.5}, 1.0), UnknownSuggestionError),
        (lambda: optimizer.tell(0, {"c": 0.5}, 1.0), UnknownSuggestionError),
        (lambda: optimizer.tell({"x": 2.0}, {"c": 0.5}, 1.0), InvalidDesignError),
        (lambda: optimizer.tell({"y": 0.5}, {"c": 0.5}, 1.0), InvalidDesignError),
        (lambda: optimizer.tell_context(99, {"c": 0.5}), UnknownSuggestionError),
        (lambda: optimizer.observe_context([0.1, 0.2], weights=[1.0, -1.0]), InvalidValueError),
        (lambda: optimizer.observe_context([0.1, 0.2], weights=[1.0]), InvalidValueError),
        (lambda: optimizer.observe_context([0.1, math.nan]), InvalidContextError),
        (lambda: optimizer.ask(0), InvalidValueError),
        (lambda: optimizer.ask(forecast=[]), InvalidContextError),
        (lambda: optimizer.ask(forecast=[0.1], context={"c": 0.1}), InvalidContextError),
        (lambda: optimizer.recommend(radius=-1.0), InvalidValueError),
        (lambda: optimizer.predict({"x": 7.0}), InvalidDesignError),
    ]
    for call, error in cases:
        with pytest.raises(error):
            call()
        assert optimizer.to_json() == before


def test_bad_construction() -> None:
    with pytest.raises(UnknownNameError, match="edrbo"):
        Optimizer(SPACE, "gradient-descent")
    with pytest.raises(InvalidValueError):
        Optimizer(SPACE, direction="up")  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError):
        Optimizer(SPACE, context_half_life=0.0)
    with pytest.raises(InvalidValueError):
        Optimizer(SPACE, initial=0)
    with pytest.raises(NothingReportedError):
        Optimizer(SPACE).recommend()
    with pytest.raises(NothingReportedError):
        Optimizer(SPACE).predict({"x": 0.5})
    for text in ("", "[]", '{"format": 99}', "{}"):
        with pytest.raises(InvalidValueError):
            Optimizer.from_json(text)


STRANGE = {
    "all y equal": lambda x, c, i: 1.0,
    "y of 1e300": lambda x, c, i: 1e300 * bowl(x, c),
    "y of 1e-300": lambda x, c, i: 1e-300 * bowl(x, c),
    "alternating giants": lambda x, c, i: (-1.0) ** i * 1.7e308,
    "one outlier": lambda x, c, i: -1e12 if i == 3 else bowl(x, c),
    "all zero": lambda x, c, i: 0.0,
}


@pytest.mark.filterwarnings("ignore::edrbo.errors.ImplausibleWarning")
@pytest.mark.parametrize("name", STRANGE)
def test_strange_outcomes_still_give_sensible_suggestions(name: str) -> None:
    optimizer = Optimizer(SPACE, seed=0)
    rng = np.random.default_rng(0)
    for i in range(12):
        s = optimizer.ask()
        assert 0.0 <= s["x"] <= 1.0
        c = float(rng.uniform())
        optimizer.tell(s, {"c": c}, STRANGE[name](s["x"], c, i))
    answer = optimizer.recommend()
    assert math.isfinite(answer.expected)
    assert answer.interval[0] <= answer.expected <= answer.interval[1]
    if name.startswith("y of"):
        assert answer.design["x"] == pytest.approx(known(12).recommend().design["x"], abs=1e-3)


def test_duplicates_constant_contexts_and_one_observation() -> None:
    optimizer = Optimizer(SPACE, seed=0)
    optimizer.tell({"x": 0.5}, {"c": 0.5}, 1.0)
    assert len({s["x"] for s in optimizer.ask(6)}) == 6
    for _ in range(500):
        optimizer.tell({"x": 0.5}, {"c": 0.5}, 1.0)
    assert abs(optimizer.ask()["x"] - 0.5) > 0.05  # nothing to learn where everything is known
    answer = optimizer.recommend()
    assert answer.design["x"] == pytest.approx(0.5, abs=0.02)  # of equal means, the one that is known
    assert answer.expected == pytest.approx(1.0)


finite = st.floats(-1e6, 1e6, allow_nan=False).map(lambda v: round(v, 6))


@pytest.mark.filterwarnings("ignore::edrbo.errors.ImplausibleWarning")
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(-0.5, 1.5), finite), min_size=1, max_size=9), st.integers(0, 9))
def test_any_finite_data_give_a_feasible_suggestion(rows: list[tuple[float, float, float]], seed: int) -> None:
    optimizer = Optimizer(SPACE, seed=seed, initial=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ContextBoundsWarning)
        for x, c, y in rows:
            optimizer.tell({"x": x}, {"c": c}, y)
    assert all(0.0 <= s["x"] <= 1.0 for s in optimizer.ask(2))
    low, high = optimizer.recommend().interval
    assert low <= high


def test_six_threads_share_one_optimizer() -> None:
    """No number is handed out twice, and no tell is lost."""
    optimizer = Optimizer(Space({"x": (0, 1)}, {"c": (0, 1)}), "ucb", seed=0, initial=1000)
    together = threading.Barrier(6)

    def work() -> list[int]:
        together.wait()
        ids = []
        for _ in range(20):
            suggestion = optimizer.ask()
            optimizer.tell(suggestion, {"c": 0.5}, float(suggestion.id))
            ids.append(suggestion.id)
        return ids

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # threads change places all the time
    try:
        with ThreadPoolExecutor(6) as pool:
            ids = [number for future in [pool.submit(work) for _ in range(6)] for number in future.result()]
    finally:
        sys.setswitchinterval(before)
    assert sorted(ids) == list(range(120))
    assert sorted(optimizer.observations.y.tolist()) == list(range(120))
