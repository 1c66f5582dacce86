"""aim="identify": suggestions that look where nobody has looked, and how often."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import edrbo
from edrbo import Optimizer, Space
from edrbo.acquisition.search.maximizer import WALL, MaximinDistance
from edrbo.errors import InvalidValueError
from edrbo.optimizer.candidates import MAX_SHARE, REGRET_RATE, exploration_share, is_exploring, looked_at
from edrbo.streams import in_turn

REALS = torch.ones(2, dtype=torch.bool)
PLANE = Space(design={"x": (0, 1), "y": (0, 1)}, context={"c": (0, 1)})


def hill(x: float, y: float, c: float) -> float:
    return -((x - 0.2) ** 2) - (y - 0.3 - 0.2 * c) ** 2


def run(optimizer: Optimizer, steps: int, batch: int = 1) -> list[np.ndarray]:
    """Designs as asked for; the context of a run hangs on its number alone."""
    designs = []
    while len(designs) < steps:
        for suggestion in optimizer.ask(batch):
            c = float(np.random.default_rng(suggestion.id).random())
            optimizer.tell(suggestion, {"c": c}, hill(suggestion["x"], suggestion["y"], c))
            designs.append(np.array(list(suggestion.design.values())))
    return designs


@given(st.integers(1, 8), st.integers(0, 30))
def test_room_is_the_least_distance_from_anything(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    tried, x = rng.random((n, 2)), rng.random((5, 2))
    found = MaximinDistance(torch.from_numpy(tried), REALS)(torch.from_numpy(x))
    for i, point in enumerate(x):
        nearest = min(np.linalg.norm(point - other) for other in tried)
        wall = min(min(part, 1 - part) for part in point)
        assert float(found[i]) == pytest.approx(min(nearest, WALL * wall), rel=1e-12)


def test_choices_have_no_walls() -> None:
    room = MaximinDistance(torch.tensor([[1.0, 0.0]], dtype=torch.float64), ~REALS)
    assert float(room(torch.tensor([[0.0, 1.0]], dtype=torch.float64))) == pytest.approx(np.sqrt(2))


def looks(worth: np.ndarray, initial: int) -> list[int]:
    """The suggestions, by number, that look around when they are asked for one by one."""
    return [n for n in range(initial, len(worth) + 1) if is_exploring(worth[:n], initial, 0, None)]


@given(st.integers(1, 6), st.floats(0.0, 0.4))
def test_as_large_a_share_looks_around_as_regret_is_paid(initial: int, paid: float) -> None:
    """A hundred designs that cost the same regret each; the initial ones cost one each."""
    worth = np.concatenate([np.full(initial, -1.0), np.full(100, -paid), [0.0]])
    share = min(MAX_SHARE, REGRET_RATE * paid * 100 / initial / 102)
    assert exploration_share(worth, initial) == pytest.approx(share)
    chosen = [n for n in range(1, 101) if in_turn(n) < share]
    assert len(chosen) == pytest.approx(100 * share, abs=3)  # the multiples are spread evenly


@given(st.integers(1, 6), st.integers(0, 40), st.integers(0, 100))
def test_the_first_look_comes_after_the_initial_designs(initial: int, more: int, seed: int) -> None:
    worth = np.random.default_rng(seed).random(initial + more)
    assert looks(worth, initial)[0] == initial
    assert not is_exploring(worth[: initial - 1], initial, 0, None)


@given(st.integers(2, 6), st.integers(0, 100))
def test_what_is_learnt_at_once_is_not_looked_around_for(initial: int, seed: int) -> None:
    worth = np.random.default_rng(seed).random(initial)
    after = np.full(60, worth.max() + 0.1)
    assert looks(np.concatenate([worth, after]), initial) == [initial]


def test_the_number_of_a_suggestion_decides_also_while_others_are_pending() -> None:
    worth = -np.abs(np.sin(np.arange(60.0)))
    found = {(n, p): is_exploring(worth[:n], 4, p, None) for n in (20, 40) for p in range(8)}
    assert found == {(n, p): in_turn(n + p - 4) < exploration_share(worth[:n], 4) for n, p in found}
    assert len(set(found.values())) == 2


def test_nothing_is_looked_for_too_late() -> None:
    worth = np.array([1.0, 0.0, 0.5, 0.2, 0.0, 0.0])
    assert is_exploring(worth[:2], 2, 0, 10)
    assert not is_exploring(worth[:2], 2, 0, 2)
    wild = np.tile([0.0, -1.0], 20)
    late = [n for n in looks(wild, 2) if n >= 32]
    assert late
    assert not any(is_exploring(wild[:n], 2, 0, 40) for n in late)


def test_designs_that_are_all_the_same_cost_no_regret() -> None:
    assert exploration_share(np.zeros(9), 4) == 0.0


def test_operating_asks_as_without_an_aim() -> None:
    one, other = (run(Optimizer(PLANE, seed=2, initial=3, **more), 7) for more in ({}, {"aim": "operate"}))
    assert np.array_equal(one, other)


def test_identifying_looks_where_there_is_most_room() -> None:
    optimizer = Optimizer(PLANE, seed=2, initial=4, aim="identify")
    designs = run(optimizer, 5)
    room = MaximinDistance(torch.from_numpy(np.stack(designs[:4])), REALS)
    grid = torch.from_numpy(np.stack(np.meshgrid(*[np.linspace(0, 1, 60)] * 2), axis=-1).reshape(-1, 2))
    assert float(room(torch.from_numpy(designs[4][None]))) >= float(room(grid).max()) - 1e-6
    operating = run(Optimizer(PLANE, seed=2, initial=4), 5)
    assert np.array_equal(operating[:4], designs[:4])
    assert not np.allclose(operating[4], designs[4])


def test_an_interrupted_run_looks_around_at_the_same_steps() -> None:
    whole, first = (Optimizer(PLANE, seed=5, initial=3, aim="identify") for _ in range(2))
    designs = run(whole, 9)
    begun = run(first, 4)
    again = Optimizer.from_json(first.to_json())
    assert again.settings.aim == "identify"
    assert np.array_equal(np.stack(begun + run(again, 5)), np.stack(designs))


def test_looks_stay_within_what_can_be_chosen() -> None:
    space = Space(
        design={"x": (0, 1), "n": edrbo.Integer(1, 4), "kind": ["a", "b"]},
        context={"c": (0, 1)},
        constraints=["x <= 0.5"],
    )
    optimizer = Optimizer(space, seed=1, initial=2, aim="identify")
    for _ in range(2):
        suggestion = optimizer.ask()
        optimizer.tell(suggestion, {"c": 0.5}, suggestion["x"])
    assert optimizer.ask(fixed={"kind": "b"})["kind"] == "b"
    assert optimizer.ask()["x"] <= 0.5
    listed = [{"x": 0.1, "n": 2, "kind": "a"}, {"x": 0.4, "n": 3, "kind": "b"}]
    assert dict(optimizer.ask(candidates=listed)) in listed


@pytest.mark.parametrize(
    ("choices", "words"),
    [({"aim": "win"}, "aim is 'win'"), ({"evaluations": 0}, "evaluations is 0"), ({"evaluations": 2.5}, "evaluations")],
)
def test_what_is_no_aim_is_refused(choices: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidValueError, match=words):
        Optimizer(PLANE, **choices)  # type: ignore[arg-type]


def test_maximize_says_how_many_there_will_be() -> None:
    found = edrbo.maximize(lambda design: ({"c": 0.5}, hill(*design.values(), 0.5)), PLANE, 6, aim="identify")
    assert found.optimizer.settings.evaluations == 6


def test_of_very_many_designs_some_stand_for_all() -> None:
    rows, places = looked_at(900, 5)
    assert rows.tolist() == places.tolist() == list(range(900))
    rows, places = looked_at(10_000, 5)
    assert len(rows) <= 1024 + 5
    assert rows[:5].tolist() == [0, 1, 2, 3, 4]
    stands = rows[places]
    assert len(stands) == 10_000
    assert (stands <= np.arange(10_000)).all()
    assert (np.arange(10_000) - stands).max() < 11
    regret = np.random.default_rng(0).random(10_000)
    regret[:5] = 1.0
    assert exploration_share(-regret[rows][places], 5) == pytest.approx(exploration_share(-regret, 5), rel=0.1)
