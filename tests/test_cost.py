"""What a run costs: said by a function, reported or learned; and suggestions that weigh what they gain against it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from edrbo.acquisition.objective import Objective
from edrbo.acquisition.penalties import GainPerCost, Roots, best_per_cost
from edrbo.acquisition.search.maximizer import maximize
from edrbo.errors import InvalidSpaceError, InvalidValueError, NotStorableError
from edrbo.optimizer.optimizer import Optimizer
from edrbo.records.outcomes import Limit, Maximize, Minimize
from edrbo.records.state import spending
from edrbo.space import Integer, Real, Space
from edrbo.space.cost_function import Cost, as_cost
from edrbo.surrogate.cost_model import learn_cost

SPACE = Space({"x": (0, 1), "dose": (1, 10)})


def cost_of(text: object, space: Space = SPACE) -> Cost:
    cost = as_cost(text, space)
    assert cost is not None
    return cost


@pytest.mark.parametrize("given", ["1 + n**2 * rate + x / 2", lambda d: 1 + d["n"] ** 2 * d["rate"] + d["x"] / 2])
def test_cost_and_slope(given: object) -> None:
    """Against Python's arithmetic and differences, over variables of all kinds; as text and as a function."""
    space = Space({"k": ["u", "v"], "n": Integer(0, 4), "rate": Real(0.1, 10, log=True), "x": (2, 4)})
    cost = cost_of(given, space)
    rows = [{"k": "v", "n": 3, "rate": 0.7, "x": 2.5}, {"k": "u", "n": 0, "rate": 9.0, "x": 4}]
    coded = space.encode_designs(rows)
    np.testing.assert_allclose(cost.of(coded), [1 + 9 * 0.7 + 1.25, 3], rtol=1e-12)
    _, slope = cost.and_slope(coded)
    for column in range(2, space.d_x):
        step = np.eye(space.d_x)[column] * 1e-4
        if column == 2 and callable(given):  # of an integer a function knows whole numbers only
            continue
        expected = (cost.of(coded + step) - cost.of(coded - step)) / 2e-4
        np.testing.assert_allclose(slope[:, column], expected, rtol=1e-4, atol=1e-4)


def test_learned_costs() -> None:
    """A cost that nobody wrote down: within some percent where runs were, and its slope against differences."""
    rng = np.random.default_rng(0)
    x = rng.random((40, 2))
    truth = np.exp(2 * x[:, 0]) * (1 + x[:, 1])
    learned = learn_cost(x, truth * np.exp(0.01 * rng.standard_normal(40)))
    assert learned is not None
    there = rng.random((200, 2)) * 0.8 + 0.1
    expected = np.exp(2 * there[:, 0]) * (1 + there[:, 1])
    assert np.median(np.abs(learned.of(there) / expected - 1)) < 0.03
    cost, slope = learned.and_slope(there[:5])
    np.testing.assert_allclose(cost, learned.of(there[:5]), rtol=1e-9)
    for column in range(2):
        step = np.eye(2)[column] * 1e-5
        difference = (learned.of(there[:5] + step) - learned.of(there[:5] - step)) / 2e-5
        np.testing.assert_allclose(slope[:, column], difference, rtol=1e-4, atol=1e-5)
    everywhere = learned.of(rng.random((500, 2)))
    assert truth.min() * 0.9 < everywhere.min()  # as those that were reported
    assert everywhere.max() < truth.max() * 1.1
    assert learn_cost(x, np.full(40, 3.0)) is None
    assert learn_cost(x[:2], np.array([0.0, 2.0])) is None  # what cost nothing has no logarithm


class Hill(Objective):
    """A smooth objective of the unit square with two maxima, the higher one where the second variable is large."""

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        one = (x - torch.tensor([0.3, 0.2])).square().sum(-1)
        two = (x - torch.tensor([0.7, 0.9])).square().sum(-1)
        return (-one / 0.02).exp() + 1.3 * (-two / 0.02).exp()


def test_the_ratio_is_the_largest_of_a_fine_grid() -> None:
    cost, hill, level = cost_of("dose"), Hill(), 0.2
    line = np.linspace(0, 1, 301)
    grid = torch.from_numpy(np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2))
    ratios = (hill(grid) - level) / torch.from_numpy(cost.of(grid.numpy())).sqrt()
    found = best_per_cost([hill], cost, level, lambda approximations: maximize(approximations, SPACE, seed=0).x)
    ratio = (float(hill(found[None])) - level) / float(cost.of(found[None].numpy())[0]) ** 0.5
    assert ratio == pytest.approx(float(ratios.max()), rel=1e-3)
    assert float(found[1]) < 0.3  # the lower hill, which is cheap
    plain = best_per_cost([hill], cost, 5.0, lambda approximations: maximize(approximations, SPACE, seed=0).x)
    assert float(plain[1]) > 0.8  # nothing is to be gained, so the cost does not matter


def test_gradient_of_what_is_climbed() -> None:
    needs_context_grid = GainPerCost(Hill(), Roots(cost_of("dose**2 + x")), 0.3)
    x = torch.tensor([[0.35, 0.25], [0.6, 0.8]], dtype=torch.float64)
    value, gradient = needs_context_grid.value_and_gradient(x)
    torch.testing.assert_close(value, needs_context_grid(x))
    for column in range(2):
        step = torch.eye(2, dtype=torch.float64)[column] * 1e-6
        slope = (needs_context_grid(x + step) - needs_context_grid(x - step)) / 2e-6
        torch.testing.assert_close(gradient[:, column], slope, rtol=1e-5, atol=1e-6)


def run(cost: object, reported: bool = False) -> Optimizer:
    optimizer = Optimizer(SPACE, initial=4, seed=0, cost=cost)  # type: ignore[arg-type]
    for _ in range(8):
        suggestion = optimizer.ask()
        value = -((suggestion["x"] - 0.3) ** 2) - 0.02 * (suggestion["dose"] - 3) ** 2
        optimizer.tell(suggestion, value=value, cost=suggestion["dose"] if reported else None)
    return optimizer


def doses(optimizer: Optimizer) -> list[float]:
    return [design["dose"] for design in SPACE.decode_designs(optimizer.observations.x)]  # type: ignore[misc]


def test_suggestions_follow_the_cost() -> None:
    plain, constant, expensive, reported = run(None), run("7"), run("dose"), run(None, reported=True)
    np.testing.assert_array_equal(constant.observations.x, plain.observations.x)  # all cost the same
    assert spending(plain.state) is None
    totals = [found.total for found in map(spending, (one.state for one in (constant, expensive, reported))) if found]
    assert totals == pytest.approx([56.0, sum(doses(expensive)), sum(doses(reported))])
    # before a peak is found, what is hoped for is looked for where it is cheap
    assert np.mean(doses(expensive)[4:]) < np.mean(doses(plain)[4:])
    assert np.mean(doses(reported)[4:]) < np.mean(doses(plain)[4:])
    for one in (expensive, reported):
        again, suggestion = Optimizer.from_json(one.to_json()), one.ask()
        assert suggestion.cost == pytest.approx(suggestion["dose"], rel=0.3)
        assert again.ask().design == suggestion.design
    assert plain.ask().cost is None


@pytest.mark.parametrize("outcomes", [{"a": Maximize(), "b": Limit(upper=9.0)}, {"a": Maximize(), "b": Minimize()}])
def test_several_outcomes_per_cost(outcomes: dict[str, Maximize | Minimize | Limit]) -> None:
    """Under a limit, and where there is a front, with failures besides."""
    optimizer = Optimizer(SPACE, initial=3, outcomes=outcomes, cost="dose")
    for k in range(5):
        suggestion = optimizer.ask()
        if k == 1:
            optimizer.tell(suggestion, failed=True, cost=0.5)
            continue
        x, dose = suggestion["x"], suggestion["dose"]
        optimizer.tell(suggestion, value={"a": -((x - 0.3) ** 2), "b": 0.1 * dose + x})
    found = spending(optimizer.state)
    assert found is not None
    assert (found.costs[1], found.unknown) == (0.5, 0)
    assert optimizer.ask().cost is not None


def test_costs_under_constraints_and_of_lists() -> None:
    space = Space({"x": (0, 1), "dose": (1, 10)}, constraints=["x + dose / 10 <= 1"])
    optimizer = Optimizer(space, initial=3, cost="dose")
    for k in range(4):
        optimizer.tell({"x": 0.15 * k, "dose": 2 + k}, value=-((0.15 * k - 0.3) ** 2))
    asked = optimizer.ask()
    assert asked["x"] + asked["dose"] / 10 <= 1
    assert optimizer.ask(fixed={"dose": 9.0}).cost == pytest.approx(9)
    shelf = [{"x": 0.31, "dose": 2}, {"x": 0.3, "dose": 6.9}]  # as good as each other
    assert optimizer.ask(candidates=shelf)["dose"] == 2


def test_what_is_known_of_costs() -> None:
    """Reported costs go before the function's, failed and dropped runs are paid for, others are counted."""
    optimizer = Optimizer(SPACE, initial=9)
    optimizer.tell({"x": 0.1, "dose": 2}, value=1.0, cost=3)
    optimizer.tell({"x": 0.2, "dose": 4}, failed=True, cost=2.5)
    optimizer.tell({"x": 0.3, "dose": 5}, value=2.0)
    optimizer.drop(0)
    optimizer.ask()
    found = spending(optimizer.state)
    assert found is not None
    assert (found.costs, found.total, found.unknown) == ({0: 3.0, 1: 2.5}, 5.5, 1)
    optimizer.amend({"cost": "10 * dose"})
    optimizer.correct(1, cost=0)
    found = spending(optimizer.state)
    assert found is not None
    assert found.costs == pytest.approx({0: 3.0, 1: 0.0, 2: 50.0})
    frame = optimizer.to_frame()
    assert frame["run_cost"].tolist()[:3] == pytest.approx([3.0, 0.0, 50.0])


@pytest.mark.parametrize(
    ("cost", "error", "words"),
    [
        ("dose - 5", InvalidSpaceError, "is -.* at .*more than nothing"),
        ("1 / (dose - 1)", InvalidSpaceError, "more than nothing"),
        (
            "doze",
            InvalidSpaceError,
            "the cost 'doze': 'doze' at character 1 is no design.*did you mean 'dose'",
        ),
        ("x <= 1", InvalidSpaceError, "cannot be used"),
        ("2dose", InvalidSpaceError, "products with"),
        ("dose +", InvalidSpaceError, r"10 \+ 2 \* dose"),
        (3, InvalidValueError, "cost is 3"),
        (lambda design: design["doze"], InvalidSpaceError, "function <lambda> failed: KeyError"),
        (lambda design: True, InvalidSpaceError, "returned True, and a cost is a number"),
        (lambda design: -1, InvalidSpaceError, "more than nothing"),
    ],
)
def test_costs_that_cannot_be(cost: object, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        Optimizer(SPACE, cost=cost)  # type: ignore[arg-type]


def test_a_function_cannot_be_stored() -> None:
    optimizer = Optimizer(SPACE, cost=lambda design: design["dose"])
    assert optimizer.ask().cost is not None
    with pytest.raises(NotStorableError):
        optimizer.to_json()
