"""Sobol' indices against closed forms, SALib and brute force."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

import edrbo
from edrbo.contexts.distributions import sobol_points
from edrbo.errors import EdrboError, NothingReportedError, UnknownNameError
from edrbo.optimizer import sensitivity
from edrbo.optimizer.sensitivity import jansen

Function = Callable[[np.ndarray], np.ndarray]  # N × d in the unit cube → N


def ishigami(u: np.ndarray) -> np.ndarray:
    z = math.pi * (2 * u - 1)
    return np.sin(z[:, 0]) + 7 * np.sin(z[:, 1]) ** 2 + 0.1 * z[:, 2] ** 4 * np.sin(z[:, 0])


def ishigami_indices() -> tuple[list[float], list[float]]:
    v1 = 0.5 * (1 + 0.1 * math.pi**4 / 5) ** 2
    v2, v13 = 49 / 8, 0.01 * math.pi**8 * (1 / 18 - 1 / 50)
    whole = v1 + v2 + v13
    return [v1 / whole, v2 / whole, 0.0], [(v1 + v13) / whole, v2 / whole, v13 / whole]


G = np.array([0.0, 1.0, 4.5, 9.0])


def g_function(u: np.ndarray) -> np.ndarray:
    return np.prod((np.abs(4 * u - 2) + G) / (1 + G), axis=1)


def g_indices() -> tuple[list[float], list[float]]:
    own = 1 / (3 * (1 + G) ** 2)
    whole = np.prod(1 + own) - 1
    return list(own / whole), [float(v * np.prod(1 + np.delete(own, k)) / whole) for k, v in enumerate(own)]


SLOPES = np.array([3.0, 1.0, 0.0])


def additive(u: np.ndarray) -> np.ndarray:
    return u @ SLOPES[: u.shape[1]]


def additive_indices() -> tuple[list[float], list[float]]:
    shares = list(SLOPES**2 / np.sum(SLOPES**2))
    return shares, shares


CLOSED = [(ishigami, 3, ishigami_indices), (g_function, 4, g_indices), (additive, 3, additive_indices)]


@pytest.fixture
def fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows and draws, where it is not the third digit that is looked at."""
    monkeypatch.setattr(sensitivity, "BASE", 256)
    monkeypatch.setattr(sensitivity, "DRAWS", 64)


def estimated(f: Function, d: int, count: int) -> tuple[np.ndarray, np.ndarray, float]:
    unit = sobol_points(2 * d, count, 0).numpy()
    a, b = unit[:, :d], unit[:, d:]
    samples = [a, b]
    for k in range(d):
        mixed = a.copy()
        mixed[:, k] = b[:, k]
        samples.append(mixed)
    variance, first, total = jansen(torch.from_numpy(np.stack([f(sample) for sample in samples])))
    return first.numpy(), total.numpy(), float(variance)


@pytest.mark.parametrize(("f", "d", "closed"), CLOSED)
def test_the_estimators_against_closed_forms(f: Function, d: int, closed: Callable) -> None:
    first, total, _ = estimated(f, d, 2**14)
    np.testing.assert_allclose(first, closed()[0], atol=0.01)
    np.testing.assert_allclose(total, closed()[1], atol=0.01)


@pytest.mark.parametrize(("f", "d"), [(f, d) for f, d, _ in CLOSED])
def test_the_estimators_against_salib(f: Function, d: int) -> None:
    sobol_sample = pytest.importorskip("SALib.sample.sobol")
    sobol = pytest.importorskip("SALib.analyze.sobol")
    problem = {"num_vars": d, "names": [f"z{k}" for k in range(d)], "bounds": [[0.0, 1.0]] * d}
    points = sobol_sample.sample(problem, 2**12, calc_second_order=False, seed=0)
    found = sobol.analyze(problem, f(points), calc_second_order=False, seed=0)
    first, total, _ = estimated(f, d, 2**12)
    np.testing.assert_allclose(first, found["S1"], atol=0.02)
    np.testing.assert_allclose(total, found["ST"], atol=0.02)


def reported(f: Function, design: int, context: int, n: int, noise: float = 0.0) -> edrbo.Optimizer:
    names = [f"z{k}" for k in range(design + context)]
    space = edrbo.Space({name: (0, 1) for name in names[:design]}, {name: (0, 1) for name in names[design:]})
    optimizer = edrbo.Optimizer(space, seed=0)
    points, draw = sobol_points(design + context, n, 7).numpy(), np.random.default_rng(1)
    for point, y in zip(points, f(points), strict=True):
        row = dict(zip(names, point.tolist(), strict=True))
        met = {name: row[name] for name in names[design:]}
        value = float(y + noise * draw.standard_normal())
        optimizer.tell({name: row[name] for name in names[:design]}, met or None, value)
    return optimizer


@pytest.mark.parametrize(
    ("f", "design", "context", "n", "closed"),
    [
        (ishigami, 2, 1, 200, ishigami_indices),
        (additive, 1, 2, 40, additive_indices),
        (additive, 3, 0, 40, additive_indices),
    ],
)
def test_what_the_posterior_says_holds_the_truth(
    f: Function, design: int, context: int, n: int, closed: Callable
) -> None:
    found = reported(f, design, context, n).sensitivity()
    assert list(found.variables) == [f"z{k}" for k in range(design + context)]
    for k, one in enumerate(found.variables.values()):
        assert one.role == ("design" if k < design else "context")
        assert one.first.value == pytest.approx(closed()[0][k], abs=0.04)
        assert one.total.value == pytest.approx(closed()[1][k], abs=0.04)
        assert one.first.interval[0] - 0.02 <= closed()[0][k] <= one.first.interval[1] + 0.02
        assert one.first.interval[0] <= one.first.value <= one.first.interval[1]
    assert sum(share.value for share in found.shares.values()) == pytest.approx(1.0, abs=0.02)


@pytest.mark.usefixtures("fewer")
def test_few_data_say_so() -> None:
    """The intervals are wide, and hold the truth."""
    few, many = (reported(additive, 2, 1, n, noise=0.3).sensitivity() for n in (8, 80))
    for name, truth in zip(("z0", "z1", "z2"), additive_indices()[1], strict=True):
        low, high = few.variables[name].total.interval
        assert low - 0.02 <= truth <= high + 0.02
    widths = [np.ptp(found.variables["z0"].first.interval) for found in (few, many)]
    assert widths[0] > 2 * widths[1]


def test_shares_of_designs_contexts_both_and_noise() -> None:
    """x + c + 4 x c about the middle, with noise: in closed form."""

    def f(u: np.ndarray) -> np.ndarray:
        x, c = u[:, 0] - 0.5, u[:, 1] - 0.5
        return 2 * x + c + 4 * x * c

    found = reported(f, 1, 1, 150, noise=0.3).sensitivity()
    parts = {"designs": 4 / 12, "contexts": 1 / 12, "both": 16 / 144, "noise": 0.09}
    whole = sum(parts.values())
    assert {name: share.value for name, share in found.shares.items()} == pytest.approx(
        {name: part / whole for name, part in parts.items()}, abs=0.04
    )
    for name, part in parts.items():
        assert found.shares[name].interval[0] - 0.005 <= part / whole <= found.shares[name].interval[1] + 0.005
    # at x = 1: c + 2 c, against the same noise
    there = 9 / 12 / (9 / 12 + 0.09)
    assert found.at_best["contexts"].value == pytest.approx(there, abs=0.05)
    assert found.at_best["contexts"].value + found.at_best["noise"].value == pytest.approx(1.0, abs=1e-9)


@pytest.mark.usefixtures("fewer")
@pytest.mark.parametrize(
    ("slopes", "words"),
    [
        ((3.0, 0.0, 0.0), "hardly matter"),
        ((1.0, 1.0, 0.0), "hardly depends on them"),
        ((1.0, 1.0, 8.0), "What is best depends on conditions"),
    ],
)
def test_do_i_need_this_at_all(slopes: tuple[float, float, float], words: str) -> None:
    def f(u: np.ndarray) -> np.ndarray:
        x, c = u[:, 0] - 0.5, u[:, 1] - 0.5
        return slopes[0] * x + slopes[1] * c + slopes[2] * x * c

    found = reported(f, 1, 1, 80, noise=0.01).sensitivity()
    assert words in str(found)
    assert words in found._repr_html_()


@pytest.mark.usefixtures("fewer")
def test_levels_steps_choices_and_constraints() -> None:
    space = edrbo.Space(
        {"x": edrbo.Real(1e-3, 1.0, log=True), "layers": edrbo.Integer(1, 3), "kind": ["a", "b", "c"]},
        {"shift": ["day", "night"], "load": (0, 10)},
        constraints=["layers * x <= 2.9"],
    )
    optimizer, draw = edrbo.Optimizer(space, seed=0), np.random.default_rng(0)
    effect = {"a": 0.0, "b": 1.0, "c": 2.0}
    for _ in range(70):
        design = {
            "x": float(10 ** draw.uniform(-3, -0.1)),
            "layers": int(draw.integers(1, 4)),
            "kind": str(draw.choice(["a", "b", "c"])),
        }
        met = {"shift": str(draw.choice(["day", "night"])), "load": float(draw.uniform(0, 10))}
        optimizer.tell(design, met, effect[design["kind"]] + (met["shift"] == "day"))
    found = optimizer.sensitivity()
    share = float((optimizer.observations.c[:, 0] == 0).mean())
    parts = {"kind": 2 / 3, "shift": share * (1 - share)}
    whole = sum(parts.values())
    for name, one in found.variables.items():
        assert one.first.value == pytest.approx(parts.get(name, 0.0) / whole, abs=0.06), name


@pytest.mark.usefixtures("fewer")
def test_a_forecast_and_one_of_several_outcomes() -> None:
    outcomes = {"gain": edrbo.Maximize(), "heat": edrbo.Limit(upper=1.5)}
    space = edrbo.Space({"x": (0, 1)}, {"c": (0, 1)})
    optimizer, draw = edrbo.Optimizer(space, seed=0, outcomes=outcomes), np.random.default_rng(0)
    for _ in range(30):
        x, c = draw.random(2).tolist()
        optimizer.tell({"x": x}, {"c": c}, {"gain": x, "heat": c})
    gain, heat = optimizer.sensitivity(), optimizer.sensitivity(outcome="heat")
    assert gain.variables["x"].first.value > 0.95
    assert heat.variables["c"].first.value > 0.95
    assert heat.outcome == "heat"
    there = optimizer.sensitivity(forecast=[{"c": 0.5}, {"c": 0.5}])
    assert there.shares["contexts"].value < 1e-6
    assert there.variables["c"].total.value < 1e-6
    with pytest.raises(UnknownNameError, match="'weight'"):
        optimizer.sensitivity(outcome="weight")


def test_what_cannot_be_is_said() -> None:
    optimizer = edrbo.Optimizer(edrbo.Space({"x": (0, 1)}, {"c": (0, 1)}))
    with pytest.raises(NothingReportedError):
        optimizer.sensitivity()
    optimizer.tell({"x": 0.5}, {"c": 0.5}, 1.0)
    with pytest.raises(EdrboError):
        optimizer.sensitivity()


def test_a_method_that_takes_contexts_for_noise_has_designs_alone() -> None:
    optimizer, draw = edrbo.Optimizer(edrbo.Space({"x": (0, 1)}, {"c": (0, 1)}), "ucb"), np.random.default_rng(0)
    for _ in range(20):
        x, c = draw.random(2).tolist()
        optimizer.tell({"x": x}, {"c": c}, 3 * x + c)
    found = optimizer.sensitivity()
    assert list(found.variables) == ["x"]
    assert list(found.shares) == ["designs", "noise"]
    assert found.at_best == {}


@pytest.mark.usefixtures("fewer")
def test_the_same_data_say_the_same() -> None:
    first, second = (reported(additive, 1, 1, 12).sensitivity().to_dict() for _ in range(2))
    assert first == second
