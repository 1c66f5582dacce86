"""A replicate is a pure function, its streams are shared by all methods, and it goes on bit for bit."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from edrbo import Optimizer, Space
from edrbo.bench import problems
from edrbo.bench.analysis.results import export, load_results
from edrbo.bench.analysis.stats import statistic
from edrbo.bench.analysis.tables import render
from edrbo.bench.learners.adapters import ADAPTERS
from edrbo.bench.learners.learner import Learner, Setup, initial_designs
from edrbo.bench.problems.oracle.shift import shifted
from edrbo.bench.run.execute import read_noise
from edrbo.bench.run.journal import Journal
from edrbo.bench.run.plugin import PAPER_METHODS, Plugin, make_learner, method_names
from edrbo.bench.run.replicate import (
    ROBUST_REGRETS,
    Evaluation,
    Replicate,
    ReplicateResult,
    ReplicateSettings,
    robust_regrets,
    run_replicate,
)
from edrbo.errors import InvalidDesignError, InvalidValueError, UnknownNameError

pytestmark = pytest.mark.torch_numeric

SETTINGS = ReplicateSettings(evaluations=9)
RESUMED = ["edrbo", "ucb", "sbo-kde", *ADAPTERS]


class Killed(Exception):
    pass


def run(replicate: Replicate, past: list[Evaluation] | None = None) -> tuple[list[Evaluation], ReplicateResult]:
    """All evaluations, those of ``past`` included, and the result, without the seconds."""
    new: list[Evaluation] = []
    result = run_replicate(replicate, past or [], new.append)
    return [replace(one, seconds=0.0) for one in [*(past or []), *new]], replace(result, seconds=0.0)


@pytest.mark.parametrize("method", RESUMED)
def test_killed_at_any_step_goes_on_bit_for_bit(method: str) -> None:
    replicate = Replicate("newsvendor", method, 3, SETTINGS)
    whole, result = run(replicate)
    stop = 1 + hash_of(method) % (SETTINGS.evaluations - 1)
    kept: list[Evaluation] = []

    def record(one: Evaluation) -> None:
        kept.append(one)
        if len(kept) == stop:
            raise Killed

    with pytest.raises(Killed):
        run_replicate(replicate, [], record)
    assert len(kept) == stop
    assert run(replicate, kept) == (whole, result)


def hash_of(text: str) -> int:
    return sum(text.encode())


def test_all_methods_see_the_same_initial_designs_and_contexts() -> None:
    runs = {m: run(Replicate("newsvendor", m, 100, ReplicateSettings(6)))[0] for m in ("edrbo", "ucb", *ADAPTERS)}
    first = runs.pop("edrbo")
    for evaluations in runs.values():
        assert [one.c for one in evaluations] == [one.c for one in first]
        assert [one.x for one in evaluations[:5]] == [one.x for one in first[:5]]
        assert [one.y for one in evaluations[:5]] == [one.y for one in first[:5]]
    assert len({evaluations[5].x for evaluations in [first, *runs.values()]}) > 1


def test_initial_designs_are_those_of_the_optimizer() -> None:
    optimizer = Optimizer(Space(design={"a": (0, 1), "b": (0, 1)}), seed=42)
    asked = np.array([list(optimizer.ask().design.values()) for _ in range(5)])
    np.testing.assert_array_equal(initial_designs(Setup(2, 0, 42, 5)), asked)


def test_recorded_regrets_are_those_of_the_oracle_and_outcomes_those_of_f() -> None:
    replicate = Replicate("six-hump-camel", "random", 1, SETTINGS)
    evaluations, result = run(replicate)
    problem = problems.get("six-hump-camel")
    for one in evaluations:
        assert one.y == float(problem.evaluate(np.array(one.x), np.array(one.c)))
        assert one.regret == float(problem.optimum - problem.expected(np.array(one.x)))
    best = max(evaluations, key=lambda one: one.y)
    assert result.recommendation == best.x
    assert result.simple_regret == best.regret
    assert tuple(result.robust_regret) == ROBUST_REGRETS


def test_noise_changes_outcomes_only_and_is_the_same_for_all_methods() -> None:
    quiet, _ = run(Replicate("newsvendor", "random", 1, SETTINGS))
    noisy, _ = run(Replicate("newsvendor", "random", 1, replace(SETTINGS, noise=0.1)))
    other, _ = run(Replicate("newsvendor", "tpe", 1, replace(SETTINGS, noise=0.1)))
    assert [one.c for one in quiet] == [one.c for one in noisy]
    assert [one.regret for one in quiet] == [one.regret for one in noisy]
    added = np.array([one.y for one in noisy]) - [one.y for one in quiet]
    assert 0.01 < added.std() < 0.3
    assert [one.y for one in noisy[:5]] == [one.y for one in other[:5]]


@pytest.mark.parametrize("name", ["newsvendor", "six-hump-camel"])
def test_robust_regrets_vanish_at_the_best_design_of_the_changed_world(name: str) -> None:
    problem = problems.get(name)
    best = {
        "shift-down": shifted(problem, mean_shift=-0.1).x_star,
        "shift-up": shifted(problem, mean_shift=0.1).x_star,
        "spread": shifted(problem, spread=1.5).x_star,
        "worst-case": problem.robust_optimum(0.1)[0],
    }
    for kind, x in best.items():
        assert robust_regrets(problem, x)[kind] == pytest.approx(0.0, abs=1e-9)
    worst = robust_regrets(problem, np.ones(problem.d_x))
    assert min(worst.values()) > 0.01


def test_settings_hash_changes_with_everything_that_changes_results(tmp_path: Path) -> None:
    base = Replicate("newsvendor", "edrbo", 0)
    others = [
        replace(base, problem="ackley"),
        replace(base, method="edrbo-published"),
        replace(base, seed=1),
        replace(base, settings=ReplicateSettings(201)),
        replace(base, settings=ReplicateSettings(initial=6)),
        replace(base, settings=ReplicateSettings(noise=0.1)),
    ]
    hashes = {one.settings_hash() for one in [base, *others]}
    assert len(hashes) == len(others) + 1
    assert base.settings_hash() == Replicate("newsvendor", "edrbo", 0).settings_hash()


def test_the_number_of_threads_is_put_back() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        run_replicate(Replicate("newsvendor", "random", 0, ReplicateSettings(5)))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_noise_may_be_a_share_of_the_range() -> None:
    wide = problems.get("newsvendor").value_range
    one, other = ReplicateSettings(6, noise=0.05 * wide), ReplicateSettings(6, noise_share=0.05)
    found = [[e.y for e in run(Replicate("newsvendor", "random", 1, settings))[0]] for settings in (one, other)]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)
    assert (
        Replicate("newsvendor", "random", 1, one).settings_hash()
        != Replicate("newsvendor", "random", 1, other).settings_hash()
    )
    assert read_noise(" 5% ") == (0.0, 0.05)
    assert read_noise("0.3") == (0.3, 0.0)
    for wrong in ("loud", "5%%", "%", "5% of it"):
        with pytest.raises(InvalidValueError, match="noise"):
            read_noise(wrong)
    with pytest.raises(InvalidValueError, match="noise"):
        ReplicateSettings(6, noise_share=-0.1)


@pytest.mark.parametrize("settings", [(0, 1), (5, 0), (4, 5)])
def test_impossible_settings_are_refused(settings: tuple[int, int]) -> None:
    with pytest.raises(InvalidValueError):
        ReplicateSettings(*settings)


PLUGIN = """
import numpy as np
from edrbo.bench.problems.oracle.distributions import clipped_normal, iid
from edrbo.bench.learners.learner import Learner
from edrbo.bench.problems.problem import Problem
from edrbo.acquisition.methods import METHODS as KNOWN

class Middle(Learner):
    def __init__(self, setup):
        self.setup = setup
    def suggest(self):
        return np.full(self.setup.d_x, 0.5)
    def observe(self, x, c, y):
        pass
    def recommend(self):
        return self.suggest()

class Outside(Middle):
    def suggest(self):
        return np.full(self.setup.d_x, 1.5)

METHODS = {"middle": Middle, "outside": Outside, "my-ucb": KNOWN["ucb"], "nothing": lambda setup: None}

def valley():
    return Problem(
        name="valley", description="", d_x=2, context_distribution=iid(clipped_normal(0.5, 0.2)),
        objective=lambda x, c: -((x - 0.25) ** 2).sum(-1) * (1 + c[..., 0]),
    )

PROBLEMS = {"valley": valley}
"""


def write_plugin(path: Path, change: Callable[[str], str] = lambda text: text) -> Plugin:
    file = path / "mine.py"
    file.write_text(change(PLUGIN), encoding="utf-8")
    return Plugin.read(file)


def test_methods_and_problems_of_a_plugin_run_with_the_rest(tmp_path: Path) -> None:
    plugin = write_plugin(tmp_path)
    evaluations, result = run(Replicate("valley", "middle", 0, ReplicateSettings(6), plugin))
    # E f(x) = −‖x − ¼‖² · 1.5, since the context is 0.5 on average.
    assert [one.regret for one in evaluations] == pytest.approx([0.125 * 1.5] * 6)
    assert result.simple_regret == pytest.approx(0.125 * 1.5)
    ours, _ = run(Replicate("valley", "my-ucb", 0, ReplicateSettings(6), plugin))
    assert ours == run(Replicate("valley", "ucb", 0, ReplicateSettings(6), plugin))[0]
    changed = write_plugin(tmp_path, lambda text: text.replace("0.5)", "0.4)"))
    before, after = (
        Replicate("valley", "middle", 0, SETTINGS, plugin),
        Replicate("valley", "middle", 0, SETTINGS, changed),
    )
    assert before.settings_hash() != after.settings_hash()


DATACLASS_PLUGIN = """
from __future__ import annotations
from dataclasses import dataclass
from typing import ClassVar
from edrbo.contexts.distributions import Empirical
from edrbo.acquisition.risk import Expectation
from edrbo.acquisition.methods import Method
from edrbo.acquisition.scores import UCB
from edrbo.surrogate.ensemble import single_gp

@dataclass(frozen=True)
class Eager(UCB):
    name: ClassVar[str] = "eager"
    beta: float = 0.5

METHODS = {"eager": Method(single_gp(), Eager(), Empirical(), Expectation())}
"""


def test_a_plugin_may_define_dataclasses(tmp_path: Path) -> None:
    plugin = write_plugin(tmp_path, lambda text: DATACLASS_PLUGIN)
    evaluations, _ = run(Replicate("newsvendor", "eager", 0, ReplicateSettings(7), plugin))
    assert len(evaluations) == 7


def test_the_ablation_is_a_plugin_that_works() -> None:
    plugin = Plugin.read(Path(__file__).parents[2] / "research" / "ablation.py")
    assert len(plugin.table("METHODS")) >= 16
    for method in ("prior=published", "experts=evidence", "integrated+beta=3"):
        evaluations, _ = run(Replicate("newsvendor", method, 0, ReplicateSettings(7), plugin))
        assert len(evaluations) == 7


def test_the_plugin_of_the_documentation_works(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "benchmark.md").read_text(encoding="utf-8")
    (source,) = re.findall(r"```python\n(# my_method.py\n.*?)```", page, flags=re.S)
    plugin = write_plugin(tmp_path, lambda text: source)
    for method in plugin.table("METHODS"):
        evaluations, _ = run(Replicate("valley", method, 0, ReplicateSettings(6), plugin))
        assert len(evaluations) == 6


def test_mistakes_in_a_plugin_are_named(tmp_path: Path) -> None:
    plugin = write_plugin(tmp_path)
    with pytest.raises(InvalidDesignError, match="suggested"):
        run_replicate(Replicate("valley", "outside", 0, ReplicateSettings(5), plugin))
    with pytest.raises(InvalidValueError, match="NoneType"):
        make_learner("nothing", Setup(1, 1, 0, 5), plugin)
    with pytest.raises(InvalidValueError, match="taken"):
        write_plugin(tmp_path, lambda text: text.replace('"middle"', '"edrbo"'))
    with pytest.raises(InvalidValueError, match="name"):
        write_plugin(tmp_path, lambda text: text.replace('"middle"', '"a/b"'))
    with pytest.raises(InvalidValueError, match="neither"):
        write_plugin(tmp_path, lambda text: "x = 1")
    with pytest.raises(InvalidValueError):
        Plugin.read(tmp_path / "missing.py")
    with pytest.raises(UnknownNameError):
        make_learner("unknown", Setup(1, 1, 0, 5), plugin)


def test_every_name_makes_a_learner_that_begins_in_the_cube() -> None:
    assert set(PAPER_METHODS) < set(method_names())
    for name in method_names():
        learner = make_learner(name, Setup(2, 1, 7, 5))
        assert isinstance(learner, Learner)
        np.testing.assert_array_equal(learner.suggest(), initial_designs(Setup(2, 1, 7, 5))[0])


def test_looks_on_the_way_are_what_shorter_runs_recommend() -> None:
    """A look changes nothing of the run, is the same after an interruption, and counts the goals besides its own."""
    settings = ReplicateSettings(9, looks=(7,), also=("cvar:0.2",))
    for method in ("edrbo-mean", "random"):
        replicate = Replicate("newsvendor", method, 3, settings)
        evaluations, result = run(replicate)
        plain, _ = run(replace(replicate, settings=ReplicateSettings(9)))
        assert [one.x for one in evaluations] == [one.x for one in plain]
        assert [(look.evaluations, look.goal) for look in result.looks] == [
            (7, "expected"),
            (7, "cvar:0.2"),
            (9, "cvar:0.2"),
        ]
        shorter, under = (run(replace(replicate, settings=ReplicateSettings(n, also=("cvar:0.2",))))[1] for n in (7, 9))
        assert result.looks[0].recommendation == shorter.recommendation
        assert result.looks[0].regret == shorter.simple_regret
        assert result.looks[1:] == (*shorter.looks, *under.looks)
        assert run_replicate(replicate, evaluations[:8]).looks == result.looks


def test_looks_are_kept_in_journals_and_tables(tmp_path: Path) -> None:
    replicate = Replicate("newsvendor", "random", 3, ReplicateSettings(9, looks=(7, 6, 7), also=("cvar:0.2",)))
    evaluations, result = run(replicate)
    with Journal(tmp_path, replicate) as journal:
        for entry in (*evaluations, result):
            journal.add(entry)
    results = load_results(tmp_path)
    assert results.looks == ["expected@6", "cvar:0.2@6", "expected@7", "cvar:0.2@7", "cvar:0.2@9"]
    export(results, tmp_path / "runs.csv")
    again = load_results(tmp_path / "runs.csv")
    assert again.looks == results.looks
    assert statistic(again.runs[0], "cvar:0.2@7") == pytest.approx(result.looks[3].regret, rel=1e-6)
    assert "after 7 evaluations, under cvar:0.2" in render(again, statistic="cvar:0.2@7", style="markdown")
    with pytest.raises(UnknownNameError, match=re.escape("cvar:0.2@7")):
        render(again, statistic="cvar:0.2@8")


@pytest.mark.parametrize("looks", [(0,), (9,), (3, 12)])
def test_looks_outside_the_run_are_refused(looks: tuple[int, ...]) -> None:
    with pytest.raises(InvalidValueError, match="look"):
        ReplicateSettings(9, looks=looks)


def test_identifying_knows_how_many_evaluations_there_will_be() -> None:
    learners = {
        name: make_learner(name, Setup(1, 1, 7, 5, evaluations=40)) for name in ("edrbo-identify", "edrbo-mean")
    }
    planned = {name: learner._optimizer.settings.evaluations for name, learner in learners.items()}  # type: ignore[attr-defined]
    assert planned == {"edrbo-identify": 40, "edrbo-mean": None}
    evaluations, _ = run(Replicate("newsvendor", "edrbo-identify", 3, SETTINGS))
    assert len(evaluations) == SETTINGS.evaluations
