"""Contexts of which a part is known: what is missing is integrated over, given what is known."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from edrbo import Integer, Optimizer, Space, Study
from edrbo.contexts.partial import Completion, Donors, complete, completed, conditional, thinned
from edrbo.errors import EdrboError, InvalidContextError
from edrbo.lab.report import report_page
from edrbo.lab.tables.csv_export import export_csv, minimal_events
from edrbo.lab.tables.csv_import import import_file
from edrbo.optimizer.outcome_posterior import Extras, Spread, _with_missing
from edrbo.optimizer.training_data import TrainingData
from edrbo.records.state import State
from edrbo.surrogate.ensemble import Surrogate
from factories import same_state

SPACE = Space({"speed": (0, 1)}, {"humidity": (0, 100), "viscosity": (0, 10), "shift": ["day", "night"]})
CHOICES = Space({"x": (0, 1)}, {"shift": ["day", "night"], "crew": ["a", "b", "c"]})


# -------------------------------------------------------------------- the distribution of what is missing


def test_of_choices_it_is_the_conditional_distribution_exactly() -> None:
    rng = np.random.default_rng(0)
    seen = np.column_stack([rng.integers(2, size=40), rng.integers(3, size=40)]).astype(float)
    weights = rng.random(40) + 0.1
    scale = CHOICES.context_scale(seen)
    found = complete(np.array([1.0, np.nan]), seen, weights, scale)
    raw = scale.decode(found.contexts)
    assert (raw[:, 0] == 1.0).all()
    for crew in range(3):
        night = seen[:, 0] == 1
        share = weights[night & (seen[:, 1] == crew)].sum() / weights[night].sum()
        assert found.weights[raw[:, 1] == crew].sum() == pytest.approx(share)


def test_of_numbers_it_follows_the_conditional_mean() -> None:
    """Humidity and viscosity are normal with correlation 0.8: E(v | h) is known in closed form."""
    rng = np.random.default_rng(1)
    normal = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], size=3000)
    seen = np.column_stack([50 + 12 * normal[:, 0], 5 + normal[:, 1], np.zeros(3000)])
    scale = SPACE.context_scale(seen)
    for h in (-1.0, 0.0, 1.0):
        found = complete(np.array([50 + 12 * h, np.nan, 0.0]), seen[-1000:], np.ones(1000), scale)
        raw = scale.decode(found.contexts)
        assert raw[:, 0] == pytest.approx(50 + 12 * h)
        assert found.weights @ raw[:, 1] == pytest.approx(5 + 0.8 * h, abs=0.15)
        small = thinned(found, 16)
        assert small.weights @ scale.decode(small.contexts)[:, 1] == pytest.approx(5 + 0.8 * h, abs=0.2)


def test_conditional_weights_are_an_explicit_sum() -> None:
    seen = np.array([[40, 2, 0], [60, 4, 1], [45, np.nan, 1], [70, 6, 0.0]])
    weights = np.array([1.0, 2.0, 1.0, 3.0])
    scale = SPACE.context_scale(seen)
    donors = seen[[0, 1, 3]]
    found = conditional(np.array([50, np.nan, np.nan]), donors, weights[[0, 1, 3]], scale)
    share = np.array([1, 2, 3]) / 6
    coded = donors[:, 0] / 100
    spread = math.sqrt(share @ (coded - share @ coded) ** 2)
    width = spread * (4 / 3 * np.sum(share**2)) ** 0.2
    odds = share * np.exp(-0.5 * ((coded - 0.5) / width) ** 2)
    assert found == pytest.approx(odds / odds.sum())


@pytest.mark.parametrize("seen", [np.empty((0, 3)), np.array([[40, np.nan, 1.0], [50, np.nan, np.nan]])])
def test_where_nobody_knows_it_is_spread_over_the_range(seen: np.ndarray) -> None:
    scale = SPACE.context_scale(seen)
    found = complete(np.array([np.nan, np.nan, 0.0]), seen, np.ones(len(seen)), scale)
    raw = scale.decode(found.contexts)
    assert found.weights @ raw[:, 1] == pytest.approx(5.0, abs=0.1)
    assert raw[:, 1].min() < 1 < 9 < raw[:, 1].max()
    if len(seen):
        assert set(raw[:, 0].round(9)) <= {40.0, 50.0}


def test_partly_known_contexts_share_their_weight() -> None:
    seen = np.array([[40, 2, 0], [60, np.nan, 1], [45, 5, 1.0]])
    scale = SPACE.context_scale(seen)
    rows, weights = completed(seen, np.array([1.0, 2.0, 3.0]), scale)
    assert weights.sum() == pytest.approx(6.0)
    raw = scale.decode(rows)
    own = np.isclose(raw[:, 0], 60)
    assert weights[own].sum() == pytest.approx(2.0)
    assert raw[own, 1] == pytest.approx(5.0)  # the one that was seen at night
    whole, same = completed(seen[[0, 2]], np.ones(2), scale)
    assert np.array_equal(whole, scale.encode(seen[[0, 2]]))
    assert same.tolist() == [1.0, 1.0]
    assert thinned(Completion(whole, same / 2, Donors(2.0, 2.0)), 5).weights.tolist() == [0.5, 0.5]


# -------------------------------------------------------------------- the model


def test_an_outcome_counts_once_over_what_its_context_may_be() -> None:
    """Against Gaussian conditioning written out: y at each context it may be, with noise over its weight."""
    torch.manual_seed(0)
    joint, y = torch.rand(6, 2, dtype=torch.float64), torch.randn(6, dtype=torch.float64)
    model = Surrogate(experts=("se",)).fit(joint, y)
    contexts, weights = torch.tensor([[0.1], [0.5], [0.8]], dtype=torch.float64), torch.tensor([0.2, 0.5, 0.3]).double()
    part = Spread(torch.tensor([0.4]).double(), 1.5, 0.01, contexts, weights, np.array([False]))
    none = torch.zeros(0, 1, dtype=torch.float64)
    extras = Extras(none, none[:, 0], none[:, 0], none, None, 1.0, (part,))
    found = _with_missing(Surrogate(experts=("se",)), model, extras, None, none, none[:, 0])  # type: ignore[arg-type]
    gp, hyper = model.gp, model.gp.hyper

    def kernel(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        square = ((a[:, None] - b) / hyper.lengthscale[0]).square().sum(-1)
        return hyper.outputscale[0] * torch.exp(-0.5 * square)

    rows = torch.cat([torch.full((3, 1), 0.4).double(), contexts], dim=1)
    old = torch.linalg.solve(kernel(gp.x, gp.x) + torch.diag(gp.noise_variance[0]), gp.y - hyper.mean[0])
    mean = hyper.mean[0] + kernel(rows, gp.x) @ old
    varied = weights @ (mean - weights @ mean) ** 2
    scale = model.scaling
    noise_variance = torch.cat([gp.noise_variance[0], (0.01 / scale.scale**2 + varied) / weights])
    inputs = torch.cat([gp.x, rows])
    outcomes = torch.cat([gp.y, torch.full((3,), (1.5 - scale.shift) / scale.scale).double()])
    new = torch.linalg.solve(kernel(inputs, inputs) + torch.diag(noise_variance), outcomes - hyper.mean[0])
    query = torch.rand(5, 2, dtype=torch.float64)
    expected = scale.shift + scale.scale * (hyper.mean[0] + kernel(query, inputs) @ new)
    assert found.moments(query)[0][0].detach().numpy() == pytest.approx(expected.detach().numpy(), rel=1e-6)


def gloss(speed: float, context: dict[str, Any]) -> float:
    return -((speed - context["humidity"] / 100) ** 2) * 4 + 0.02 * context["viscosity"]


def reported(part: str) -> Optimizer:
    """Twelve complete outcomes at low humidity, and as many at high humidity of which ``part`` was said."""
    optimizer = Optimizer(SPACE)
    rng = np.random.default_rng(3)
    for k in range(24):
        low = k < 12
        context = {"humidity": float(rng.uniform(20, 40) if low else rng.uniform(60, 80)), "shift": "day"}
        context["viscosity"] = float(rng.uniform(2, 8))
        speed = float(rng.random())
        said = context if low or part == "all" else {"humidity": context["humidity"]} if part == "some" else None
        optimizer.tell({"speed": speed}, said, gloss(speed, context))
    return optimizer


def test_what_is_known_of_a_context_helps() -> None:
    errors = {}
    for part in ("all", "some", "none"):
        optimizer, off = reported(part), []
        for speed in (0.2, 0.5, 0.8):
            here = {"humidity": 70, "viscosity": 5, "shift": "day"}
            off.append(float(optimizer.predict({"speed": speed}, context=here).expected[0]) - gloss(speed, here))
        errors[part] = float(np.sqrt(np.mean(np.square(off))))
    assert errors["all"] < errors["some"] + 0.05
    assert errors["some"] < 0.5 * errors["none"]


def test_the_distribution_holds_the_known_parts() -> None:
    optimizer = reported("some")
    training_data = TrainingData(optimizer.state, True)
    history = training_data.history(training_data.scale(), None, None)
    rows = training_data.scale().decode(history.contexts.numpy())
    share = float(history.weights[torch.from_numpy(rows[:, 0] > 50)].sum() / history.weights.sum())
    assert share == pytest.approx(0.5)
    assert optimizer.context_log.effective(None) == pytest.approx(12.0)
    assert optimizer.ask() is not None
    assert math.isfinite(optimizer.recommend().expected)


def test_an_answer_for_a_part_of_the_context() -> None:
    """It is the mean over the rest, given the part: by an explicit sum over the same contexts."""
    optimizer = reported("all")
    found = optimizer.predict({"speed": 0.5}, context={"humidity": 70, "shift": "day"})
    training_data = TrainingData(optimizer.state, True)
    likely = SPACE.name_contexts(training_data.likely(np.array([70, np.nan, 0.0]))[0])
    assert [row["humidity"] for row in likely] == pytest.approx([70.0] * len(likely))
    means = {}
    for v in {row["viscosity"] for row in likely}:
        here = {"humidity": 70, "viscosity": v, "shift": "day"}
        means[v] = float(optimizer.predict({"speed": 0.5}, context=here).expected[0])
    assert found.expected[0] == pytest.approx(np.mean([means[row["viscosity"]] for row in likely]), rel=1e-6)
    assert optimizer.recommend(context={"humidity": 70}).design["speed"] > 0.5


def test_outcomes_with_partly_known_contexts_alone() -> None:
    optimizer = Optimizer(SPACE, initial=2)
    for k in range(4):
        optimizer.tell({"speed": k / 4}, {"humidity": 20 * k}, float(k))
    assert math.isfinite(optimizer.recommend().expected)
    assert 0 <= optimizer.ask()["speed"] <= 1


# -------------------------------------------------------------------- records


def test_a_context_is_completed_later() -> None:
    late, whole = Optimizer(SPACE), Optimizer(SPACE)
    context = {"humidity": 40, "viscosity": 3, "shift": "night"}
    for optimizer in (late, whole):
        optimizer.tell({"speed": 0.1}, {**context, "humidity": 50}, 1.0)
    late.tell({"speed": 0.5}, {"humidity": 40, "viscosity": None}, 2.0)
    (first, run) = late.runs
    assert run.late
    assert not first.late
    late.tell_context(1, {"shift": "night"})
    with pytest.raises(InvalidContextError):
        late.tell_context(1, {"humidity": 41, "viscosity": 3})
    late.tell_context(1, {"viscosity": 3})
    whole.tell({"speed": 0.5}, context, 2.0)
    assert same_state(late.state, whole.state)
    assert not late.runs[1].late
    late.undo()
    assert late.runs[1].late
    late.correct(1, context={"viscosity": 3, "humidity": 41})
    assert late.observations.c[1].tolist() == [41.0, 3.0, 1.0]
    late.tell({"speed": 0.5}, {"humidity": None}, 3.0)
    assert late.runs[2].context is None


def test_nan_is_a_mistake_but_for_an_empty_cell_of_a_frame() -> None:
    optimizer = Optimizer(SPACE)
    with pytest.raises(InvalidContextError):
        optimizer.tell({"speed": 0.5}, {"humidity": math.nan, "shift": "day"}, 1.0)
    optimizer.observe_context(pd.DataFrame({"humidity": [40.0, np.nan], "shift": ["day", "night"]}))
    rows, _ = optimizer.context_log.weighted(3, None)
    assert np.array_equal(rows, [[40, np.nan, 0], [np.nan, np.nan, 1]], equal_nan=True)
    with pytest.raises(InvalidContextError):
        optimizer.observe_context([{"humidity": None}])
    assert "NaN" not in optimizer.to_json()
    assert same_state(Optimizer.from_json(optimizer.to_json()).state, optimizer.state)


values = st.floats(-5, 5)
parts = st.fixed_dictionaries(
    {},
    optional={"humidity": st.floats(0, 100), "viscosity": st.floats(0, 10), "shift": st.sampled_from(["day", "night"])},
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("tell"), parts, values),
        st.tuples(st.just("series"), st.lists(parts.filter(bool), min_size=1, max_size=3), values),
        st.tuples(st.just("later"), parts.filter(bool), st.integers(0, 4)),
        st.tuples(st.just("correct"), parts.filter(bool), st.integers(0, 4)),
        st.tuples(st.just("seen"), st.lists(parts.filter(bool), min_size=1, max_size=2), values),
        st.tuples(st.just("drop"), st.none(), st.integers(0, 4)),
        st.tuples(st.just("undo"), st.none(), values),
    ),
    max_size=9,
)


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=60)
@given(steps)
def test_whatever_is_accepted_can_be_read_again(given_: list[tuple[str, Any, Any]]) -> None:
    optimizer = Optimizer(SPACE)
    for what, reported, number in given_:
        try:
            if what == "tell":
                optimizer.tell({"speed": 0.5}, reported or None, number)
            elif what == "series":
                optimizer.tell({"speed": 0.25}, contexts=reported, values=[number + k for k in range(len(reported))])
            elif what == "seen":
                optimizer.observe_context(reported)
            elif what == "undo":
                optimizer.undo()
            else:
                act = {"later": optimizer.tell_context, "drop": lambda run, _: optimizer.drop(run)}.get(what)
                act(number, reported) if act else optimizer.correct(number, context=reported)
        except EdrboError:
            continue
    state = optimizer.state
    back = Optimizer.from_json(optimizer.to_json()).state
    assert same_state(back, state)
    json.dumps([event.to_dict() for event in state.history], allow_nan=False)
    short = State.start(state.settings)
    for k, event in enumerate(minimal_events(state)):
        short = short.apply(type(event)(**{**vars(event), "ref": str(k)}))
    assert [run.value for run in short.runs.values()] == [run.value for run in state.runs.values()]
    assert np.array_equal(short.observations.c, state.observations.c, equal_nan=True)
    assert np.array_equal(short.training_order, state.training_order)
    one, two = short.log.weighted(3, 2.0), state.log.weighted(3, 2.0)
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(one, two, strict=True))


def test_every_interface_takes_some_of_a_context(tmp_path: Path) -> None:
    study = Study.open(tmp_path / "one.db", SPACE, initial=3)
    rng = np.random.default_rng(0)
    for k in range(10):
        context = {"humidity": float(rng.uniform(20, 80)), "viscosity": float(rng.uniform(2, 8)), "shift": "day"}
        if k % 3 == 0:
            del context["viscosity"]
        study.tell({"speed": float(rng.random())}, context, float(rng.random()))
    study.observe_context([{"humidity": 30}])
    page = report_page(study)
    assert "Distribution of viscosity" in page
    table = tmp_path / "runs.csv"
    with table.open("w") as file:
        export_csv(study.state, file)
    other = Study.open(tmp_path / "two.db", SPACE, initial=3)
    import_file(other, table)
    assert same_state(other.state, study.state)
    assert same_state(Study.open(tmp_path / "one.db").state, study.state)
    assert study.to_frame()["viscosity"].isna().sum() == 4


def test_whole_numbers_are_completed_by_whole_numbers() -> None:
    space = Space({"x": (0, 1)}, {"pallets": Integer(1, 8), "load": (0, 1)})
    seen = np.array([[1, 0.1], [3, 0.4], [8, 0.9]])
    scale = space.context_scale(seen)
    found = complete(np.array([np.nan, 0.5]), seen, np.ones(3), scale)
    assert set(scale.decode(found.contexts)[:, 0]) <= {1.0, 3.0, 8.0}


# -------------------------------------------------------------------- how well the rest is known

PAIR = Space(design={"x": (0, 1)}, context={"a": (-5, 5), "b": (-5, 5)})
RHO = 0.9


def _pairs_seen(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).multivariate_normal([0, 0], [[1, RHO], [RHO, 1]], count).clip(-4.9, 4.9)


@pytest.mark.parametrize("known", [-1.7, 0.0, 1.7])
def test_what_is_not_known_is_where_the_known_part_says(known: float) -> None:
    """Of a normal distribution the rest is at ρ times the known part; donors as they are stood nearer to the middle."""
    off, spread = [], []
    for seed in range(30):
        optimizer = Optimizer(PAIR)
        optimizer.observe_context(_pairs_seen(120, seed))
        likely, donors = TrainingData(optimizer.state, True).likely(np.array([known, np.nan]))
        assert likely[:, 0] == pytest.approx(known)
        assert 2 < donors.effective <= donors.number < 120
        off.append(likely[:, 1].mean() - RHO * known)
        spread.append(likely[:, 1].std())
    assert abs(np.mean(off)) < 0.05  # in standard deviations
    assert np.mean(spread) == pytest.approx(np.sqrt(1 - RHO**2), rel=0.15)


def _value_given(a: float, seed: int, count: int) -> tuple[float, float, float]:
    """The interval of the mean of y = b given a, of which f is known; and the truth."""
    optimizer = Optimizer(PAIR, "erbo")
    for b in np.linspace(-4.0, 4.0, 7):
        for c in (-4.0, 0.0, 4.0):
            optimizer.tell({"x": 0.5}, {"a": c, "b": float(b)}, float(b))
    optimizer.observe_context(_pairs_seen(count, seed), np.full(count, 50.0))
    found = optimizer.predict({"x": 0.5}, context={"a": a})
    return float(found.lower[0]), float(found.upper[0]), RHO * a


def test_the_interval_given_a_part_holds_what_is_not_known_of_the_rest() -> None:
    """It was that of a distribution known exactly: the mean over a few donors, ± nothing."""
    inside = []
    for seed in range(20):
        low, high, truth = _value_given(1.7, seed, 60)
        inside.append(low <= truth <= high)
        assert high - low < 2.0
    assert np.mean(inside) >= 0.85


def test_what_the_user_knows_of_the_distribution_is_not_in_doubt() -> None:
    """Of y = a, and the distribution of a known, no context seen makes the interval wider; of y = b it does as
    before."""
    known = Optimizer(PAIR, "erbo", context_distribution={"a": "norm(0, 1)"})
    for a in (-3.0, -1.0, 1.0, 3.0):
        for b in (-3.0, -1.0, 1.0, 3.0):
            known.tell({"x": 0.5}, {"a": a, "b": b}, a)
    by_a = known.predict({"x": 0.5})
    assert by_a.from_contexts[0] < 0.1
    free = Optimizer(PAIR, "erbo", context_distribution={"b": "norm(0, 1)"})
    for run in known.runs:
        assert run.context is not None
        free.tell({"x": 0.5}, {"a": float(run.context[0]), "b": float(run.context[1])}, float(run.value or 0.0))
    by_seen = free.predict({"x": 0.5})
    assert by_seen.from_contexts[0] > 0.5
    tail = known.predict({"x": 0.5}, goal="cvar:0.2")
    seen_tail = free.predict({"x": 0.5}, goal="cvar:0.2")
    assert tail.value_upper[0] - tail.value_lower[0] < 0.5 * (seen_tail.value_upper[0] - seen_tail.value_lower[0])
