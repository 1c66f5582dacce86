"""EDRBOGenerator: gest-api's own tests, its written contract, and the loops of Xopt and libEnsemble around it."""

from __future__ import annotations

import copy
import importlib
import json
import math
import os
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("gest_api", reason="the extra gest is not installed")

from gest_api.vocs import (
    VOCS,
    ContinuousVariable,
    DiscreteVariable,
    ExploreObjective,
)

from edrbo import Optimizer, Space
from edrbo.errors import EdrboError, InvalidContextError, InvalidDesignError, InvalidValueError
from edrbo.integrations.gest import EDRBOGenerator
from edrbo.records.outcomes import Limit, Maximize, Minimize
from edrbo.space import Categorical, Integer, Real


def simple(**more: Any) -> VOCS:
    return VOCS(
        **{"variables": {"x": [0.0, 1.0], "c": "CONTEXTUAL"}, "objectives": {"f": "MAXIMIZE"}, **more},
    )


def seen(point: dict[str, Any], c: float) -> dict[str, Any]:
    return {**point, "c": c, "f": -((point["x"] - c) ** 2)}


def filled(generator: EDRBOGenerator, count: int) -> EDRBOGenerator:
    for i in range(count):
        generator.ingest([seen(point, (0.618 * i) % 1) for point in generator.suggest(1)])
    return generator


# -------------------------------------------------------------------- gest-api's tests and contract

OF_ANY_GENERATOR = (
    "test_gen_fails_without_variable",
    "test_gen_fails_without_objective",
    "test_gen_has_constant_alpha",
    "test_suggest_default_single_point",
)


@pytest.mark.parametrize("name", OF_ANY_GENERATOR)
def test_those_of_gest_api_that_are_of_any_generator(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are about the random numbers and the bookkeeping of its own example."""
    theirs = importlib.import_module("gest_api.tests.test_generator")
    monkeypatch.setattr(theirs, "RandomGenerator", EDRBOGenerator)
    getattr(theirs, name)()


EVERYTHING = {
    "variables": {
        "x": [0.0, 10.0],
        "n": {"type": "ContinuousVariable", "domain": [1, 5], "dtype": int},
        "level": {1, 2, 3},
        "power": {1, 10, 100},
        "part": {"b", "a"},
        "fixed": {7},
        "c": "CONTEXTUAL",
        "d": {"type": "ContextualVariable", "domain": [0.0, 1.0]},
    },
    "objectives": {"f": "MINIMIZE"},
    "constraints": {"low": ["GREATER_THAN", 5.5], "mid": ["BOUNDS", -5.0, 5.0], "high": ["LESS_THAN", -4.0]},
    "constants": {"alpha": 1.0, "name": "run"},
    "observables": ["temp"],
}


def test_every_kind_of_field() -> None:
    generator = EDRBOGenerator(VOCS(**copy.deepcopy(EVERYTHING)), probability=0.8, confidence=0.7)
    space = generator.optimizer.space
    assert dict(space.design) == {
        "x": Real(0.0, 10.0),
        "n": Integer(1, 5),
        "level": Integer(1, 3),
        "power": Categorical((1, 10, 100), ordered=True),
        "part": Categorical(("a", "b")),
    }
    assert dict(space.context) == {"c": Real(None, None), "d": Real(0.0, 1.0)}
    assert dict(generator.optimizer.settings.outcomes or {}) == {
        "f": Minimize(),
        "low": Limit(lower=5.5, probability=0.8, confidence=0.7),
        "mid": Limit(lower=-5.0, upper=5.0, probability=0.8, confidence=0.7),
        "high": Limit(upper=-4.0, probability=0.8, confidence=0.7),
    }
    assert generator.optimizer.direction == "minimize"


def test_points_have_what_is_set_and_the_constants() -> None:
    generator = EDRBOGenerator(VOCS(**copy.deepcopy(EVERYTHING)))
    points = generator.suggest(3)
    assert len({point["_id"] for point in points}) == 3
    for point in points:
        assert list(point) == ["x", "n", "level", "power", "part", "fixed", "alpha", "name", "_id"]
        assert point["level"] in {1, 2, 3}
        assert point["power"] in {1, 10, 100}
        assert (point["fixed"], point["alpha"], point["name"]) == (7, 1.0, "run")
    assert generator.returns_id


def test_as_many_points_as_are_wanted() -> None:
    generator = EDRBOGenerator(simple(), batch_size=3)
    assert [len(generator.suggest(count)) for count in (None, 0, 2)] == [3, 0, 2]
    for nonsense in (-1, 1.5, True):
        with pytest.raises(ValueError, match="points"):
            generator.suggest(nonsense)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"variables": {"c": "CONTEXTUAL"}}, "nothing to choose"),
        ({"variables": {"x": {3}}}, "nothing to choose"),
        ({"variables": {"x": [0.0, math.inf]}}, "'x': the bound inf"),
        ({"variables": {"x": ContinuousVariable(domain=[0, 1], dtype=(float, (2,)))}}, "array"),
        ({"variables": {"x": DiscreteVariable(values={(1, 2), (3, 4)})}}, "choice"),
        ({"variables": {"_id": [0, 1]}}, "names two things"),
        ({"constants": {"x": 1.0}}, "names two things"),
        ({"constraints": {"f": ["LESS_THAN", 1.0]}}, "names two things"),
        ({"observables": ["x"]}, "names two things"),
        ({"objectives": {"f": ExploreObjective()}}, "ExploreObjective"),
        ({"objectives": dict.fromkeys("fghi", "MINIMIZE")}, "4 objectives"),
    ],
)
def test_what_cannot_be_is_a_value_error(parts: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        EDRBOGenerator(simple(**parts))
    assert isinstance(caught.value, EdrboError)


def test_a_contextual_variable_may_be_an_observable_too_as_in_the_examples_of_xopt() -> None:
    assert EDRBOGenerator(simple(observables=["c"])).optimizer.space.context_names == ("c",)


# -------------------------------------------------------------------- suggest and ingest


def test_it_is_the_optimizer_under_another_name() -> None:
    """Point by point the same numbers as ask and tell give."""
    generator = filled(EDRBOGenerator(simple(), seed=5, initial=3), 7)
    optimizer = Optimizer(Space({"x": (0.0, 1.0)}, {"c": None}), seed=5, initial=3, outcome="f")
    for i in range(7):
        suggestion = optimizer.ask()
        c = (0.618 * i) % 1
        optimizer.tell(suggestion, {"c": c}, -((suggestion["x"] - c) ** 2))
    assert [result["x"] for result in generator.results] == [run.x[0] for run in optimizer.runs]
    assert generator.optimizer.state.settings == optimizer.state.settings
    assert generator.suggest(2)[1]["x"] == optimizer.ask(2)[1]["x"]


def test_minimizing_is_maximizing_the_opposite() -> None:
    vocs = simple(objectives={"f": "MINIMIZE"})
    up, down = EDRBOGenerator(simple(), initial=2), EDRBOGenerator(vocs, initial=2)
    for i in range(5):
        (one,), (other,) = up.suggest(1), down.suggest(1)
        assert one == other
        result = seen(one, i / 5)
        up.ingest([result])
        down.ingest([{**result, "f": -result["f"]}])


def test_what_is_known_of_the_next_context() -> None:
    generator = filled(EDRBOGenerator(simple(), initial=3, seed=1), 9)
    at_any, last = generator.optimizer, generator.results[-1]["c"]
    wanted = {
        "any": copy.deepcopy(at_any).ask()["x"],
        "last": copy.deepcopy(at_any).ask(context={"c": last})["x"],
        "named": copy.deepcopy(at_any).ask(context={"c": 0.9})["x"],
    }
    assert len(set(wanted.values())) == 3
    for word, given_context in (("any", "any"), ("last", "last"), ("named", {"c": 0.9})):
        again = copy.deepcopy(generator)
        again.next_context = given_context  # type: ignore[assignment]
        assert again.suggest(1)[0]["x"] == wanted[word]
    generator.next_context = "tomorrow"  # type: ignore[assignment]
    with pytest.raises(InvalidContextError, match="tomorrow"):
        generator.suggest(1)


def test_the_last_context_is_the_last_that_was_seen() -> None:
    generator = EDRBOGenerator(simple(), next_context="last", initial=1)
    (first,) = generator.suggest(1)  # nothing was seen yet
    generator.ingest([seen(first, 0.25), {"x": 0.5, "c": math.nan, "f": 0.0}])
    expected = copy.deepcopy(generator.optimizer).ask(context={"c": 0.25})["x"]
    assert generator.suggest(1)[0]["x"] == expected


def test_results_from_elsewhere_need_no_id() -> None:
    generator = EDRBOGenerator(simple())
    generator.ingest([{"x": 0.5, "c": 1.0, "f": 2.0}, {"x": 0.25, "c": 3.0, "f": 4.0, "_id": math.nan}])
    assert generator.optimizer.observations.y.tolist() == [2.0, 4.0]
    assert generator.optimizer.observations.c.ravel().tolist() == [1.0, 3.0]


@pytest.mark.parametrize("strange", [17, "one", 0.5, -3])
def test_an_unknown_id_is_a_value_error(strange: Any) -> None:
    generator = EDRBOGenerator(simple())
    (point,) = generator.suggest(1)
    with pytest.raises(ValueError, match="_id"):
        generator.ingest([{**seen(point, 0.5), "_id": strange}])
    assert len(generator.optimizer) == 0


def test_a_result_counts_once() -> None:
    generator = filled(EDRBOGenerator(simple()), 1)
    with pytest.raises(ValueError, match="waits for its result"):
        generator.ingest(generator.results)
    assert len(generator.results) == 1


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"x": 1.5}, InvalidDesignError),
        ({"x": math.nan}, InvalidDesignError),
        ({"f": "high"}, InvalidValueError),
        ({"c": "cold"}, InvalidValueError),
        ({"alpha": 2.0}, InvalidValueError),
        ({"m": 4}, InvalidDesignError),
    ],
)
def test_all_results_or_none(wrong: dict[str, Any], error: type[EdrboError]) -> None:
    vocs = simple(variables={"x": [0, 1], "m": {3}, "c": "CONTEXTUAL"}, constants={"alpha": 1.0})
    generator = EDRBOGenerator(vocs)
    first, second = generator.suggest(2)
    before = generator.optimizer.state
    with pytest.raises(error):
        generator.ingest([seen(first, 0.5), {**seen(second, 0.5), **wrong}])
    assert generator.optimizer.state is before
    assert generator.results == []
    with pytest.raises(InvalidDesignError, match="'x'"):
        generator.ingest([{"c": 0.5, "f": 1.0}])


def test_what_was_really_set_counts() -> None:
    generator = EDRBOGenerator(simple())
    (point,) = generator.suggest(1)
    generator.ingest([{**seen(point, 0.5), "x": 0.125}])
    (run,) = generator.optimizer.runs
    assert (run.id, run.x.tolist()) == (point["_id"], [0.125])


def test_what_was_not_measured() -> None:
    vocs = simple(constraints={"g": ["LESS_THAN", 1.0]})
    generator = EDRBOGenerator(vocs)
    points = generator.suggest(4)
    generator.ingest(
        [
            {**points[0], "c": 0.5, "f": 1.0, "g": math.nan},
            {**points[1], "c": 0.5, "f": math.nan, "g": 2.0},
            {**points[2], "c": 0.5, "f": math.inf, "xopt_error": True, "xopt_error_str": "the magnet tripped"},
            {**points[3], "f": 1.0, "g": 1.0},
        ]
    )
    runs = generator.optimizer.runs
    assert [run.status for run in runs] == ["reported", "reported", "failed", "reported"]
    assert [(run.value, dict(run.others)) for run in runs[:2]] == [(1.0, {}), (None, {"g": 2.0})]
    assert runs[2].why == "the magnet tripped"
    assert not runs[3].known


def test_several_objectives_have_a_front() -> None:
    vocs = simple(objectives={"f": "MAXIMIZE", "g": "MINIMIZE"})
    generator = EDRBOGenerator(vocs, initial=3)
    for i in range(5):
        generator.ingest([{**seen(point, i / 5), "g": point["x"]} for point in generator.suggest(1)])
    assert dict(generator.optimizer.settings.outcomes or {}) == {"f": Maximize(), "g": Minimize()}
    assert generator.optimizer.front().points


def test_observables_and_all_else_are_kept() -> None:
    generator = EDRBOGenerator(simple(observables=["temp"]))
    (point,) = generator.suggest(1)
    result = {**seen(point, 0.5), "temp": 300.0, "runtime": 1.5}
    generator.ingest([result])
    assert generator.results == [result]
    generator.finalize()
    assert generator.results == [result]


@pytest.mark.parametrize("through", [copy.deepcopy, lambda given: pickle.loads(pickle.dumps(given))])
def test_a_copy_goes_on_by_itself(through: Any) -> None:
    """Xopt copies the generator that it is given."""
    generator = filled(EDRBOGenerator(simple(), initial=2), 4)
    again = through(generator)
    assert again.suggest(2) == generator.suggest(2)
    again.ingest([{"x": 0.5, "c": 0.5, "f": 0.5}])
    assert (len(again.results), len(generator.results)) == (5, 4)
    assert (len(again.optimizer), len(generator.optimizer)) == (5, 4)


def test_settings_reach_the_optimizer() -> None:
    generator = EDRBOGenerator(simple(), "erbo", goal="cvar:0.2", aim="identify", evaluations=9, cost="1 + x")
    found = generator.optimizer.settings
    assert (found.goal.to_text(), found.aim, found.evaluations) == ("cvar:0.2", "identify", 9)
    assert generator.optimizer.ask().cost is not None
    with pytest.raises(TypeError, match="next_context"):
        EDRBOGenerator(simple(), next_contxt="any")  # type: ignore[call-arg]


names = st.sampled_from(["u", "v", "w"])
numbers = st.floats(-1e6, 1e6, allow_nan=False).map(lambda number: round(number, 6))
spans = st.tuples(numbers, st.floats(1e-3, 1e6)).map(lambda ends: [ends[0], ends[0] + ends[1]])
values = st.one_of(
    st.sets(st.integers(-1000, 1000), min_size=1, max_size=6),
    st.sets(numbers, min_size=1, max_size=6),
    st.sets(st.text("abcdef", min_size=1, max_size=4), min_size=1, max_size=6),
)


@given(st.dictionaries(names, st.one_of(spans, values), min_size=1), st.integers(1, 4), st.booleans())
@settings(max_examples=40)
def test_points_come_back_as_they_went_through_any_table(
    variables: dict[str, Any], count: int, as_numbers: bool
) -> None:
    """Every value is one of its variable's, and a table of NumPy's numbers loses nothing."""
    vocs = VOCS(variables={"always": [0.0, 1.0], **variables}, objectives={"f": "MINIMIZE"})
    generator = EDRBOGenerator(vocs)
    points = generator.suggest(count)
    asked = {run.id: run.x.tolist() for run in generator.optimizer.runs}
    for point in points:
        for name, variable in vocs.variables.items():
            if isinstance(variable, DiscreteVariable):
                assert point[name] in variable.values
            else:
                assert variable.domain[0] <= point[name] <= variable.domain[1]
    kinds = [(name, np.array([point[name] for point in points]).dtype) for name in points[0]]
    if as_numbers:
        kinds = [(name, np.dtype(float) if kind.kind == "i" and name != "_id" else kind) for name, kind in kinds]
    table = np.array([tuple(point.values()) for point in points], dtype=kinds)
    generator.ingest([{name: row[name] for name in table.dtype.names} | {"f": np.float64(1.0)} for row in table])
    assert {run.id: run.x.tolist() for run in generator.optimizer.runs} == asked
    assert [run.status for run in generator.optimizer.runs] == ["reported"] * count


# -------------------------------------------------------------------- the loops of others


class Magnet:
    """An evaluation for any of them; the context comes with the result."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, inputs: dict[str, Any]) -> dict[str, Any]:
        self.calls += 1
        c = (0.618 * self.calls) % 1
        return {"c": c, "f": -((inputs["x"] - c) ** 2) * inputs["k"], "g": inputs["x"] + c, "temp": inputs["alpha"]}


def magnet_vocs(**more: Any) -> VOCS:
    return VOCS(
        **{
            "variables": {"x": [0.0, 1.0], "k": {1, 2, 4}, "c": "CONTEXTUAL"},
            "objectives": {"f": "MAXIMIZE"},
            "constraints": {"g": ["LESS_THAN", 3.0]},
            "constants": {"alpha": 2.0},
            "observables": ["temp"],
            **more,
        }
    )


def by_hand(count: int) -> EDRBOGenerator:
    """``count`` results one at a time, without any loop of others."""
    generator, magnet = EDRBOGenerator(magnet_vocs(), initial=3), Magnet()
    for _ in range(count):
        generator.ingest([{**point, **magnet(point)} for point in generator.suggest(1)])
    return generator


def test_in_xopt() -> None:
    """Its loop gives the points that asking by hand gives, after the same random ones at the beginning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own imports
        xopt = pytest.importorskip("xopt", reason="Xopt is not installed")
        stopping = importlib.import_module("xopt.stopping_conditions")
    loop = xopt.Xopt(
        generator=EDRBOGenerator(magnet_vocs(), initial=3),
        evaluator=xopt.Evaluator(function=Magnet().__call__),
        stopping_condition=stopping.MaxEvaluationsCondition(max_evaluations=8),
    )
    loop.run()
    generator = loop.generator
    assert isinstance(generator, EDRBOGenerator)
    assert loop.data["x"].tolist() == [result["x"] for result in by_hand(8).results]
    assert loop.data["temp"].tolist() == [2.0] * 8 == [result["temp"] for result in generator.results]
    assert generator.optimizer.observations.c.ravel().tolist() == loop.data["c"].tolist()
    assert not generator.optimizer.pending
    before = len(generator.optimizer)
    loop.random_evaluate(2, seed=1)  # points of Xopt's own have no _id
    assert len(generator.optimizer) == before + 2
    assert generator.optimizer.recommend().design["k"] in {1, 2, 4}
    assert len(json.loads(loop.json())["data"]["x"]) == 10  # what Xopt stores of a run is whole


def test_a_failed_evaluation_in_xopt() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        xopt = pytest.importorskip("xopt", reason="Xopt is not installed")

    def trip(inputs: dict[str, Any]) -> dict[str, Any]:
        if inputs["x"] > 0.5:
            raise RuntimeError("the magnet tripped")
        return {"c": 0.5, "f": inputs["x"]}

    loop = xopt.Xopt(generator=EDRBOGenerator(simple()), evaluator=xopt.Evaluator(function=trip), strict=False)
    for _ in range(6):
        loop.step()
    runs = loop.generator.optimizer.runs
    assert {run.status for run in runs} == {"reported", "failed"}
    assert all((run.status == "failed") == (run.x[0] > 0.5) for run in runs)
    assert all("the magnet tripped" in (run.why or "") for run in runs if run.status == "failed")


IN_LIBENSEMBLE = """
import json
from test_gest import Magnet, magnet_vocs
from libensemble import Ensemble
from libensemble.alloc_funcs.start_only_persistent import only_persistent_gens
from libensemble.specs import AllocSpecs, ExitCriteria, GenSpecs, LibeSpecs, SimSpecs
from edrbo.integrations.gest import EDRBOGenerator

vocs = magnet_vocs()
observed = magnet_vocs(variables={"x": [0.0, 1.0], "k": {1, 2, 4}}, observables=["temp", "c"])
generator = EDRBOGenerator(vocs, initial=3)
ensemble = Ensemble(
    libE_specs=LibeSpecs(gen_on_manager=True, nworkers=2, comms="threads", disable_log_files=True, final_gen_send=True),
    gen_specs=GenSpecs(generator=generator, batch_size=2, vocs=vocs),
    sim_specs=SimSpecs(simulator=Magnet(), vocs=observed),
    alloc_specs=AllocSpecs(alloc_f=only_persistent_gens),
    exit_criteria=ExitCriteria(sim_max=8),
)
history, _, flag = ensemble.run()
assert flag == 0, flag
history = history[history["sim_ended"]]
theirs = [[int(row["_id"]), row["x"], row["k"], row["c"], row["f"]] for row in history]
runs = [run for run in generator.optimizer.runs if run.status == "reported"]
decoded = generator.optimizer.space.decode_designs
ours = [[run.id, *decoded(run.x)[0].values(), run.context[0], run.value] for run in runs]
print(json.dumps({"theirs": theirs, "ours": ours, "answer": generator.optimizer.recommend().design}, default=float))
"""


def test_in_libensemble(tmp_path: Path) -> None:
    """Two workers; to the simulator the context is something that it observes. In a process of its own: what goes
    wrong in its threads would hold up all tests."""
    pytest.importorskip("libensemble", reason="libEnsemble is not installed")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run(
        [sys.executable, "-c", IN_LIBENSEMBLE],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found["theirs"]) == 8
    assert sorted(found["ours"]) == sorted(found["theirs"])
    assert found["answer"]["k"] in {1, 2, 4}
