"""edrbo.maximize and minimize for those who have a function."""

from __future__ import annotations

import random

import pytest

import edrbo
from edrbo.errors import InvalidValueError

pytestmark = pytest.mark.torch_numeric

SPACE = edrbo.Space(design={"x": (0, 1)}, context={"c": (0, 1)})


def test_maximize_and_minimize_agree() -> None:
    def function(sign: float, seed: int) -> object:
        world = random.Random(seed)

        def f(design: dict[str, float]) -> tuple[dict[str, float], float]:
            c = world.random()
            return {"c": c}, -sign * (design["x"] - 0.3 - 0.2 * c) ** 2

        return f

    up = edrbo.maximize(function(1.0, 1), SPACE, evaluations=8, method="erbo", seed=1)  # type: ignore[arg-type]
    down = edrbo.minimize(function(-1.0, 1), SPACE, evaluations=8, method="erbo", seed=1)  # type: ignore[arg-type]
    assert up.recommendation.design == down.recommendation.design
    assert up.recommendation.expected == -down.recommendation.expected
    assert up.recommendation.design["x"] == pytest.approx(0.4, abs=0.06)
    assert len(up.optimizer) == 8


def test_an_exception_is_a_failed_evaluation_and_progress_is_called() -> None:
    calls: list[int] = []

    def f(design: dict[str, float]) -> tuple[dict[str, float], float]:
        if len(calls) == 2:
            raise RuntimeError("the furnace went out")
        return {"c": 0.5}, design["x"]

    with pytest.warns(UserWarning, match="furnace"):
        result = edrbo.maximize(f, SPACE, evaluations=7, progress=lambda optimizer: calls.append(len(optimizer)))
    assert calls == [1, 2, 2, 3, 4, 5, 6]
    assert len(result.optimizer) == 6


def test_ctrl_c_keeps_what_was_evaluated() -> None:
    count = iter(range(100))

    def f(design: dict[str, float]) -> tuple[dict[str, float], float]:
        if next(count) == 6:
            raise KeyboardInterrupt
        return {"c": 0.5}, design["x"]

    assert len(edrbo.maximize(f, SPACE, evaluations=50).optimizer) == 6


def test_no_contexts_and_bad_answers() -> None:
    plain = edrbo.Space(design={"x": (0, 1)})
    assert edrbo.maximize(lambda d: -((d["x"] - 0.2) ** 2), plain, evaluations=9).recommendation.design[
        "x"
    ] == pytest.approx(0.2, abs=0.05)
    with pytest.raises(InvalidValueError, match="pair"):
        edrbo.maximize(lambda d: 3.0, SPACE, evaluations=3)
    with pytest.raises(InvalidValueError):
        edrbo.maximize(lambda d: 3.0, plain, evaluations=0)
