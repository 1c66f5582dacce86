"""Contexts with levels, choices and whole numbers: coding, distributions, worst cases, and every interface."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import edrbo
from edrbo import Categorical, Integer, Optimizer, Real, Space, Study
from edrbo.acquisition.risk.base import Field, Minimum
from edrbo.acquisition.risk.wasserstein import Wasserstein
from edrbo.contexts.distributions import (
    KDE,
    Box,
    ContextDistribution,
    ContextHistory,
    ContextPoints,
    Empirical,
    Given,
    Grid,
    Levels,
    box_points,
)
from edrbo.contexts.uncertainty import distribution_uncertainty
from edrbo.errors import ContextBoundsWarning, InvalidContextError, InvalidSpaceError
from edrbo.integrations.optuna import EDRBOSampler
from edrbo.lab.report import report_page
from edrbo.lab.tables.csv_export import export_csv
from edrbo.lab.tables.csv_import import import_file
from edrbo.records.context_log import compress
from edrbo.records.events import Reported
from factories import same_state

SHIFTS = ["day", "night", "late"]
SPACE = Space(
    {"speed": (0, 1)},
    {
        "shift": SHIFTS,
        "pallets": Integer(1, 8),
        "humidity": (0, 100),
        "size": Categorical(["small", "medium", "large"], ordered=True),
    },
)
FINE = {"shift": "day", "pallets": 3, "humidity": 50, "size": "small"}
SCALE = SPACE.context_scale(np.empty((0, 4)))


def draw(rng: np.random.Generator, count: int) -> list[dict[str, Any]]:
    return [
        {
            "shift": SHIFTS[rng.integers(3)],
            "pallets": int(rng.integers(1, 9)),
            "humidity": float(rng.uniform(0, 100)),
            "size": ["small", "medium", "large"][rng.integers(3)],
        }
        for _ in range(count)
    ]


def gloss(design: Any, context: dict[str, Any]) -> float:
    best = {"day": 0.2, "night": 0.8, "late": 0.5}[context["shift"]]
    return -((design["speed"] - best) ** 2) - 0.01 * context["pallets"] * design["speed"] + 0.001 * context["humidity"]


# -------------------------------------------------------------------- coding

contexts = st.fixed_dictionaries(
    {
        "shift": st.sampled_from(SHIFTS),
        "pallets": st.integers(1, 8),
        "humidity": st.floats(0, 100),
        "size": st.sampled_from(["small", "medium", "large"]),
    }
)


@given(st.lists(contexts, min_size=1, max_size=5))
def test_contexts_come_back_as_they_were(given_: list[dict[str, Any]]) -> None:
    raw = SPACE.read_contexts(given_)
    assert SPACE.name_contexts(raw) == given_
    coded = SPACE.encode_contexts(given_)
    assert coded.shape == (len(given_), SPACE.context_width) == (len(given_), 6)
    back = SPACE.decode_contexts(coded)
    assert [{**b, "humidity": 0} for b in back] == [{**g, "humidity": 0} for g in given_]
    assert np.array_equal(SCALE.snap(coded), coded)


def test_levels_are_coded_as_those_of_designs() -> None:
    twin = Space(SPACE.context)  # the same variables as designs
    rows = draw(np.random.default_rng(0), 20)
    assert SPACE.encode_contexts(rows) == pytest.approx(twin.encode_designs(rows))
    log = Space({"x": (0, 1)}, {"n": Integer(1, 100, log=True)})
    assert log.encode_contexts({"n": [1, 10, 100]}) == pytest.approx(
        Space({"n": Integer(1, 100, log=True)}).encode_designs({"n": [1, 10, 100]})
    )


def test_what_is_no_level_is_refused() -> None:
    for wrong, words in (({"shift": "dya"}, "did you mean 'day'"), ({"pallets": 2.5}, "not an integer")):
        with pytest.raises(InvalidContextError, match=words):
            SPACE.read_contexts({**FINE, **wrong})
    with pytest.warns(ContextBoundsWarning, match="pallets"):
        raw = SPACE.read_contexts({**FINE, "pallets": 9})
    assert SPACE.name_contexts(raw)[0]["pallets"] == 9
    assert SCALE.decode(SCALE.encode(raw))[0, 1] == 9
    optimizer = Optimizer(SPACE)
    optimizer.tell({"speed": 0.5}, FINE, 1.0)
    for context in ([3.0, 1, 50, 0], [0.5, 1, 50, 0], [0, 1.5, 50, 0]):
        with pytest.raises(InvalidContextError):
            optimizer.apply(Reported(id=7, x=[0.5], context=context, value=1.0))  # type: ignore[arg-type]


def test_whole_numbers_that_fill_a_sliver_keep_their_levels() -> None:
    space = Space({"x": (0, 1)}, {"count": Integer(0, 10_000)})
    raw = np.random.default_rng(0).integers(40, 60, (30, 1)).astype(float)
    scale = space.context_scale(raw)
    assert scale.upper[0] - scale.lower[0] < 100
    assert np.array_equal(scale.decode(scale.encode(raw)), raw)
    assert np.array_equal(scale.snap(scale.encode(raw) + 0.001), scale.encode(raw))


# -------------------------------------------------------------------- distributions


def history(count: int, seed: int = 0) -> ContextHistory:
    rows = SCALE.encode(SPACE.read_contexts(draw(np.random.default_rng(seed), count))) if count else np.empty((0, 6))
    ends = torch.zeros(6, dtype=torch.float64), torch.ones(6, dtype=torch.float64)
    return ContextHistory(torch.from_numpy(rows), torch.ones(count, dtype=torch.float64), *ends, Levels.of(SCALE))


def assert_real(coded: torch.Tensor) -> None:
    assert np.array_equal(SCALE.snap(coded.numpy()), coded.numpy())


CONTEXT_DISTRIBUTIONS: tuple[ContextDistribution, ...] = (
    Empirical(),
    Empirical(max_atoms=5),
    KDE(samples=64),
    Box(size=40),
    Grid(size=200),
)


@pytest.mark.parametrize("context_distribution", CONTEXT_DISTRIBUTIONS, ids=repr)
@pytest.mark.parametrize("count", [0, 1, 200])
def test_atoms_and_support_have_real_levels(context_distribution: ContextDistribution, count: int) -> None:
    points = context_distribution.points(history(count), 32, 0)
    assert_real(points.all)
    assert len(points.support) <= 32
    assert float(points.weights.sum()) == pytest.approx(1.0)
    if count == 200 and not isinstance(context_distribution, Box):
        shares = points.weights @ points.atoms[:, :3]
        truth = history(200).contexts[:, :3].mean(0)
        assert float((shares - truth).abs().max()) < (
            0.25 if context_distribution == CONTEXT_DISTRIBUTIONS[1] else 0.05
        )


def test_a_box_holds_the_choices_that_were_met() -> None:
    seen = history(50)
    only = seen.contexts[seen.contexts[:, 1] == 0.0]
    met = ContextHistory(only, torch.ones(len(only), dtype=torch.float64), seen.lower, seen.upper, seen.levels)
    atoms = Box(size=40).points(met, 0, 0).atoms
    assert_real(atoms)
    assert atoms[:, 0].any()
    assert atoms[:, 2].any()
    assert not atoms[:, 1].any()


@given(st.integers(1, 40), st.integers(1, 60), st.integers(0, 5))
def test_compression_keeps_levels_and_what_they_weigh(size: int, count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = np.column_stack([np.eye(3)[rng.integers(3, size=count)], rng.random(count)])
    weights = rng.random(count) + 0.1
    discrete = np.array([True, True, True, False])
    small = compress(rows, weights, size, discrete=discrete)
    assert len(small.weights) <= size
    assert small.weights.sum() == pytest.approx(1.0)
    assert {tuple(row) for row in small.atoms[:, :3]} <= {tuple(row) for row in rows[:, :3]}
    groups = np.unique(rows[:, :3], axis=0)
    if len(groups) <= size:  # then every combination keeps its mass and its mean
        for group in groups:
            mine, theirs = (rows[:, :3] == group).all(1), (small.atoms[:, :3] == group).all(1)
            share = weights[mine].sum() / weights.sum()
            assert small.weights[theirs].sum() == pytest.approx(share)
            mean = np.average(rows[mine, 3], weights=weights[mine])
            assert np.average(small.atoms[theirs, 3], weights=small.weights[theirs]) == pytest.approx(mean)
    assert small.error >= small.w1 - 1e-12


def test_the_error_of_a_compression_bounds_the_distance() -> None:
    """An independent linear program gives the Wasserstein-1 distance, which ``w1`` must not be below."""
    rng = np.random.default_rng(3)
    rows = np.column_stack([np.eye(3)[rng.integers(3, size=25)], rng.random(25), rng.integers(4, size=25) / 4])
    discrete = np.array([True, True, True, False, True])
    for size in (2, 6, 14):
        small = compress(rows, np.ones(25), size, discrete=discrete)
        cost = np.linalg.norm(rows[:, None] - small.atoms, axis=-1)
        n, m = cost.shape
        equal = np.concatenate([np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))])
        found = linprog(cost.ravel(), A_eq=equal, b_eq=np.concatenate([np.full(n, 1 / n), small.weights]))
        assert found.fun <= small.w1 + 1e-9
        assert small.w1 <= small.error + 1e-9


def test_a_distribution_of_choices_alone_is_exact_and_known_as_well_as_its_count() -> None:
    space = Space({"x": (0, 1)}, {"shift": SHIFTS})
    scale = space.context_scale(np.empty((0, 1)))
    raw = np.array([0, 0, 1, 0, 2, 0, 1, 0.0])[:, None]
    ends = torch.zeros(3, dtype=torch.float64), torch.ones(3, dtype=torch.float64)
    seen = ContextHistory(
        torch.from_numpy(scale.encode(raw)), torch.ones(8, dtype=torch.float64), *ends, Levels.of(scale)
    )
    points = Empirical().points(seen, 16, 0)
    assert points.compression_error == 0.0
    assert dict(zip(scale.decode(points.atoms.numpy())[:, 0].tolist(), points.weights.tolist(), strict=True)) == (
        pytest.approx({0.0: 5 / 8, 1.0: 2 / 8, 2.0: 1 / 8})
    )
    assert len(points.support) == 3
    posterior = distribution_uncertainty(Empirical(), seen, 8.0)
    assert posterior.effective == 8.0
    assert posterior.levels is not None
    assert isinstance(Given(seen.contexts), ContextDistribution)


# -------------------------------------------------------------------- worst cases


def a_field(score: Callable[[torch.Tensor], torch.Tensor]) -> Field:
    def values_and_slopes(designs: torch.Tensor, at: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        free = at.clone().requires_grad_(True)
        values = score(free)
        (slopes,) = torch.autograd.grad(values.sum(), free)
        return values.detach(), slopes

    return Field(1, lambda designs, at: score(at).detach(), values_and_slopes)


def score(c: torch.Tensor) -> torch.Tensor:
    """Of columns shift (3), pallets, humidity, size: late is bad, and so are many pallets when it is humid."""
    late, pallets, humidity, size = c[:, 2], c[:, 3], c[:, 4], c[:, 5]
    return 0.3 * size - 0.7 * late - pallets * humidity - 0.2 * torch.sin(6 * humidity)


def every_context(steps: int) -> torch.Tensor:
    grid = np.meshgrid(range(3), range(1, 9), np.linspace(0, 100, steps), range(3), indexing="ij")
    return torch.from_numpy(SCALE.encode(np.stack([part.ravel() for part in grid], axis=1).astype(float)))


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("radius", [0.05, 0.2])
def test_worst_cases_of_balls_move_mass_between_real_levels_only(order: Any, radius: float) -> None:
    """Against a linear program over all levels and a fine grid of the one real variable."""
    seen = history(12, 5)
    points = Empirical().points(seen, 64, 0)
    functional = Wasserstein(radius, order)
    targets = functional.refine(a_field(score), points)
    assert_real(targets)
    refined = ContextPoints(points.atoms, points.weights, targets, levels=points.levels)
    found = float(functional(score(refined.all)[None], refined))
    fine = torch.cat([points.atoms, every_context(21), targets])
    cost = (points.atoms[:, None] - fine).square().sum(-1).numpy() ** (order / 2)
    m, n = cost.shape
    values = score(fine).numpy()
    exact = linprog(
        np.tile(values, m),
        A_ub=cost.reshape(1, -1),
        b_ub=[radius**order],
        A_eq=np.kron(np.eye(m), np.ones(n)),
        b_eq=points.weights.numpy(),
    )
    mean = float(points.weights @ score(points.atoms))
    assert exact.fun - 1e-9 <= found <= mean
    assert mean - found >= 0.95 * (mean - exact.fun)


def test_the_worst_context_of_all_has_real_levels() -> None:
    points = Empirical().points(history(12, 5), 64, 0)
    found = Minimum().refine(a_field(score), points)
    assert_real(found)
    assert float(score(torch.cat([points.all, found])).min()) == pytest.approx(
        float(score(every_context(401)).min()), abs=1e-4
    )


def test_points_of_a_box_cover_all_choices() -> None:
    seen = history(0)
    for size in (8, 16, 64):
        points = box_points(seen.lower, seen.upper, size, seen.levels)
        assert_real(points)
        assert len(points) <= size
        assert points[:, :3].sum(0).min() >= 1


# -------------------------------------------------------------------- answers


@pytest.fixture(scope="module")
def optimizer() -> Optimizer:
    rng = np.random.default_rng(1)
    found = Optimizer(SPACE, initial=6)
    for context in draw(rng, 12):
        suggestion = found.ask()
        found.tell(suggestion, context, gloss(suggestion, context))
    return found


def test_choices_are_learned(optimizer: Optimizer) -> None:
    best = {shift: optimizer.recommend(context={**FINE, "shift": shift}).design["speed"] for shift in ("day", "night")}
    assert best["day"] < 0.45 < 0.55 < best["night"]
    answer = optimizer.recommend()
    assert set(answer.context_effect) == set(SPACE.context)
    assert answer.context_effect["shift"] == max(answer.context_effect.values())
    assert answer.worst_case < answer.expected
    assert answer.nearest[0].context is not None
    assert answer.nearest[0].context["shift"] in SHIFTS


def test_expectations_are_sums_over_the_levels(optimizer: Optimizer) -> None:
    """The mean over a forecast is the mean of the means in each of its contexts."""
    forecast = draw(np.random.default_rng(8), 4)
    both = optimizer.predict({"speed": 0.4}, forecast=forecast)
    each = [optimizer.predict({"speed": 0.4}, context=context).expected[0] for context in forecast]
    assert both.expected[0] == pytest.approx(np.mean(each))


def test_json_holds_levels(optimizer: Optimizer) -> None:
    back = Optimizer.from_json(optimizer.to_json())
    assert same_state(back.state, optimizer.state)
    assert back.ask(fixed={"speed": 0.25}) == optimizer.ask(fixed={"speed": 0.25})


def test_a_frame_has_the_names_of_levels(optimizer: Optimizer) -> None:
    frame = optimizer.to_frame()
    assert set(frame["shift"].dropna()) <= set(SHIFTS)
    assert edrbo.plot.contexts(optimizer).axes[0].get_yticklabels()[0].get_text() == "day"


def test_choices_of_a_context_may_change() -> None:
    space = Space({"x": (0, 1)}, {"shift": ["day", "night"]})
    optimizer = Optimizer(space)
    optimizer.tell({"x": 0.5}, {"shift": "night"}, 1.0)
    optimizer.observe_context(["day", "night"])
    more = Space({"x": (0, 1)}, {"shift": ["late", "day", "night"], "pallets": Integer(1, 8)})
    optimizer.amend({"space": more.to_dict()}, {"pallets": 2})
    (run,) = optimizer.runs
    assert run.context is not None
    assert more.name_contexts(run.context[None]) == [{"shift": "night", "pallets": 2}]
    rows, _ = optimizer.context_log.weighted(2, None)
    assert [row["shift"] for row in more.name_contexts(rows)] == ["night", "day", "night"]
    with pytest.raises(InvalidSpaceError):
        optimizer.amend({"space": Space({"x": (0, 1)}, {"shift": ["late", "day"], "pallets": (1, 8)}).to_dict()})


# -------------------------------------------------------------------- interfaces


def test_tables_hold_levels(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    study = Study.open(tmp_path / "one.db", SPACE)
    for context in draw(rng, 6):
        study.tell({"speed": float(rng.random())}, context, float(rng.random()))
    study.observe_context(draw(rng, 3))
    table = tmp_path / "runs.csv"
    with table.open("w") as file:
        export_csv(study.state, file)
    assert "night" in table.read_text()
    again = Study.open(tmp_path / "again.db", SPACE)
    import_file(again, table)
    assert same_state(again.state, study.state)
    assert import_file(again, table).events == ()


def test_the_report_names_levels(tmp_path: Path) -> None:
    study = Study.open(tmp_path / "press.db", SPACE, initial=3)
    rng = np.random.default_rng(4)
    for context in draw(rng, 12):
        design = {"speed": float(rng.random())}
        study.tell(design, context, gloss(design, context))
    page = report_page(study, FINE)
    assert "Distribution of shift" in page
    assert ">night<" in page
    assert "When shift day, pallets 3" in page
    assert "conditions against the" in page


def test_optuna_trials_meet_levels() -> None:
    def objective(trial: optuna.Trial) -> float:
        context = draw(np.random.default_rng(trial.number), 1)[0]
        trial.set_user_attr("context", context)
        return gloss({"speed": trial.suggest_float("speed", 0, 1)}, context)

    sampler = EDRBOSampler(context=SPACE.context, initial=3)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=sampler, direction="maximize")
    study.optimize(objective, n_trials=5)
    assert all(trial.state == optuna.trial.TrialState.COMPLETE for trial in study.trials)


def test_a_real_context_is_coded_as_before() -> None:
    space = Space({"x": (0, 1)}, {"load": Real(1, 100, log=True), "price": None})
    scale = space.context_scale(np.array([[2.0, 3.0], [50.0, 9.0]]))
    assert Levels.of(scale) is None
    assert not scale.discrete.any()
    assert scale.width == 2
