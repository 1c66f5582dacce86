"""The nine methods: settings as in the paper, any combination, and one budget for all."""

from __future__ import annotations

import inspect
import math
import re
from pathlib import Path

import numpy as np
import pytest

from edrbo import Method, Optimizer, Space, Surrogate, maximize, method_names, minimize
from edrbo.acquisition.methods import METHODS, get_method
from edrbo.acquisition.risk import MMD, CVaRFunctional, Expectation, Minimum, TotalVariation, Wasserstein
from edrbo.acquisition.scores import UCB, BarycenterUCB, DesignUCB
from edrbo.contexts.distributions import KDE, Box, Empirical, Grid
from edrbo.errors import InvalidValueError, UnknownNameError
from edrbo.integrations.optuna import EDRBOSampler
from edrbo.lab import Study
from edrbo.records.settings import DEFAULT, METHOD_NAMES, Settings
from edrbo.surrogate.ensemble import single_gp

pytestmark = pytest.mark.torch_numeric

NINE = ["edrbo", "erbo", "wdrbo", "sbo-kde", "drbo-kde", "stableopt", "drbo-mmd", "drbo-mmd-minmax", "ucb"]


def run(method: str | Method, n: int = 8, d_c: int = 1, seed: int = 0) -> Optimizer:
    space = Space(design={"x": (0, 1), "z": (0, 1)}, context={f"c{i}": (0, 1) for i in range(d_c)})
    optimizer = Optimizer(space, method, seed=seed)
    rng = np.random.default_rng(seed)
    for _ in range(n):
        s = optimizer.ask()
        c = rng.uniform(size=d_c)
        optimizer.tell(s, dict(zip(space.context_names, c, strict=True)), -((s["x"] - c[0]) ** 2) - (s["z"] - 0.3) ** 2)
    return optimizer


def test_names() -> None:
    assert set(NINE) < set(method_names())
    with pytest.raises(UnknownNameError, match="drbo-kde"):
        get_method("drbo-kd")
    with pytest.raises(InvalidValueError):
        get_method(3)  # type: ignore[arg-type]


def test_settings_are_those_of_the_paper() -> None:
    n, d_c = 25, 2
    at = {name: METHODS[name].functional_at(n, d_c) for name in NINE}
    assert at["wdrbo"].radius == pytest.approx(0.3 / 5)  # type: ignore[attr-defined]
    assert at["drbo-kde"].radius == pytest.approx(25 ** (-1 / 3))  # type: ignore[attr-defined]
    for name in ("drbo-mmd", "drbo-mmd-minmax"):
        assert at[name].radius == pytest.approx((2 + math.sqrt(2 * math.log(10))) / 5)  # type: ignore[attr-defined]
    assert METHODS["drbo-kde"].context_distribution == KDE(samples=1024)
    assert METHODS["sbo-kde"].context_distribution == KDE(samples=512)
    assert METHODS["stableopt"].context_distribution == Box(width=1.0)
    assert METHODS["drbo-mmd"].context_distribution == Grid(size=100)
    assert at["drbo-mmd-minmax"].grid_points == 1024  # type: ignore[attr-defined]
    for name in NINE:
        assert METHODS[name].score.beta == 1.5  # type: ignore[attr-defined]
        assert len(METHODS[name].surrogate.experts) == (4 if name == "edrbo" else 1)
    assert METHODS["edrbo"].score == BarycenterUCB(1.5, math.sqrt(2))


@pytest.mark.parametrize("name", [*NINE, "edrbo-published", "edrbo-integrated", "edrbo-warped"])
@pytest.mark.parametrize("d_c", [1, 2])
def test_every_method_runs_and_repeats_itself(name: str, d_c: int) -> None:
    one = run(name, 6, d_c)  # the sixth and the one below are asked of a model
    a = one.ask()
    assert all(0.0 <= v <= 1.0 for v in a.design.values())
    found = one.recommend()
    assert math.isfinite(found.expected)
    if d_c == 1:
        two = run(name, 6, d_c)
        assert two.ask() == a
        assert two.recommend() == found


@pytest.mark.parametrize(
    "method",
    [
        Method(Surrogate(), UCB(), KDE(samples=128), TotalVariation(0.3)),
        Method(Surrogate(), BarycenterUCB(), Grid(16), MMD(0.2)),
        Method(single_gp(), UCB(), Empirical(), Wasserstein(0.1, order=2)),
        Method(Surrogate(("matern52", "rq")), BarycenterUCB(), Box(), Minimum()),
        Method(Surrogate(), DesignUCB(), Empirical(), Expectation()),
        Method(single_gp(), UCB(0.5), Empirical(half_life=5.0), CVaRFunctional(0.3)),
    ],
    ids=lambda m: f"{type(m.context_distribution).__name__}-{type(m.functional).__name__}",
)
def test_any_combination_is_a_method(method: Method) -> None:
    optimizer = run(method, 6)
    assert all(0.0 <= v <= 1.0 for v in optimizer.ask().design.values())
    assert math.isfinite(optimizer.recommend().expected)


def test_ucb_means_beta_times_sigma_for_every_method() -> None:
    """The published ucb used √β; here s = μ + β σ for all."""
    import torch

    mean, sd = torch.tensor([[0.5]]), torch.tensor([[2.0]])
    for score in (UCB(1.5), DesignUCB(1.5), BarycenterUCB(1.5)):
        assert float(score(mean, sd)) == 3.5


def test_methods_share_initial_designs_and_nothing_random_leaks_between_them() -> None:
    """The published programs drew everything from one stream, so no two methods saw the same start."""
    starts = {name: [s.design for s in Optimizer(run(name, 0).space, name, seed=4).ask(5)] for name in NINE}
    assert all(start == starts["edrbo"] for start in starts.values())


def test_the_page_says_of_each_method_what_it_maximizes_and_when_to_use_it() -> None:
    text = (Path(__file__).parents[1] / "docs" / "methods.md").read_text()
    for name in method_names():
        assert re.search(
            rf"^\| `{name}` \| [^|]+ \| [^|]+ \|$", text.replace(r"\lvert", "").replace(r"\lVert", ""), re.MULTILINE
        ), name
    (code,) = (block for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL) if "Optimizer(" in block)
    assert len(code.strip().splitlines()) <= 24


@pytest.mark.parametrize("name", METHOD_NAMES)
def test_every_method_can_be_stored_as_its_parts(name: str) -> None:
    import json

    method = METHODS[name]
    assert get_method(json.loads(json.dumps(method.to_dict()))) == method


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"surrogate": 1},
        {**METHODS["edrbo"].to_dict(), "score": {"part": "os.system"}},
        {**METHODS["edrbo"].to_dict(), "score": METHODS["edrbo"].to_dict()["context_distribution"]},
        {**METHODS["edrbo"].to_dict(), "functional": 3},
        {**METHODS["edrbo"].to_dict(), "context_distribution": {"part": "Empirical", "nonsense": 1}},
    ],
)
def test_what_is_no_stored_method(record: dict) -> None:
    with pytest.raises(InvalidValueError):
        get_method(record)


def test_names_are_known_without_loading_the_engine() -> None:
    assert tuple(METHODS) == METHOD_NAMES


def test_every_interface_has_the_same_default() -> None:
    """The command line has it from ``Settings``."""
    interfaces = (Optimizer, maximize, minimize, Study.open, EDRBOSampler, Settings)
    assert {inspect.signature(one).parameters["method"].default for one in interfaces} == {DEFAULT}
    assert DEFAULT in METHODS
