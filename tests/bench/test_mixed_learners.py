"""Every kind of method on a problem with whole numbers and choices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from edrbo.bench import problems
from edrbo.bench.learners.adapters import ADAPTERS
from edrbo.bench.learners.learner import Learner, Setup, initial_designs
from edrbo.bench.problems.oracle.distributions import clipped_normal, iid
from edrbo.bench.problems.problem import Problem
from edrbo.bench.run.execute import all_replicates
from edrbo.bench.run.plugin import make_learner
from edrbo.bench.run.replicate import Evaluation, Replicate, ReplicateSettings, run_replicate
from edrbo.errors import InvalidDesignError, InvalidValueError
from edrbo.lab.cli.bench import app
from edrbo.space import Categorical, Integer, Real, Space

pytestmark = pytest.mark.torch_numeric

SPACE = Space(
    {
        "heat": Real(1.0, 100.0, log=True),
        "layers": Integer(1, 4),
        "kind": Categorical(("a", "b", "c")),
        "size": Categorical(("small", "medium", "large"), ordered=True),
    }
)
SETUP = Setup(SPACE.d_x, 1, 7, 5, design=SPACE)


def outcome(x: np.ndarray, c: np.ndarray) -> np.ndarray:
    return -((x[..., 0] - 0.3 * c[..., 0]) ** 2) + x[..., 1] + x[..., 3] - 0.3 * x[..., 5]


def reported(learner: Learner, evaluations: int) -> list[np.ndarray]:
    rng, designs = np.random.default_rng(0), []
    for _ in range(evaluations):
        x, c = learner.suggest(), rng.random(1)
        learner.observe(x, c, float(outcome(x, c)))
        designs.append(x)
    return designs


@pytest.mark.parametrize("method", ["edrbo", *ADAPTERS])
def test_every_method_asks_and_recommends_designs_of_the_space(method: str) -> None:
    learner = make_learner(method, SETUP)
    designs = [*reported(learner, 6), learner.recommend()]
    np.testing.assert_array_equal(SPACE.snap(np.array(designs)), designs)
    np.testing.assert_array_equal(designs[:5], initial_designs(SETUP))


def test_random_search_draws_every_level_alike() -> None:
    draws = np.array(reported(make_learner("random", SETUP), 905)[5:])
    for column in SPACE.columns[1:]:
        levels = SPACE.levels(column.name)
        counts = [(draws[:, column.start : column.stop] == level).all(1).sum() for level in levels]
        assert sum(counts) == 900
        # four standard deviations of a binomial
        assert np.abs(np.array(counts) - 900 / len(levels)).max() < 4 * np.sqrt(900 / len(levels))


def test_optuna_is_reported_its_own_distributions() -> None:
    import optuna

    from edrbo.integrations.optuna.export import distribution_of

    found = {name: distribution_of(variable) for name, variable in SPACE.design.items()}
    assert found == {
        "heat": optuna.distributions.FloatDistribution(1.0, 100.0, log=True),
        "layers": optuna.distributions.IntDistribution(1, 4),
        "kind": optuna.distributions.CategoricalDistribution(("a", "b", "c")),
        "size": optuna.distributions.CategoricalDistribution(("small", "medium", "large")),
    }


def test_a_replicate_on_a_high_problem_goes_on_bit_for_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edrbo.bench.run.replicate.robust_regrets", lambda *rest: {})  # three more searches
    replicate, rows = Replicate("paint-shop", "random", 3, ReplicateSettings(9)), list[Evaluation]()
    whole = run_replicate(replicate, [], rows.append)
    again = run_replicate(replicate, rows[:6], None)
    assert again.recommendation == whole.recommendation
    assert whole.simple_regret > 0
    problem = problems.get("paint-shop")
    assert [one.regret for one in rows] == [float(problem.regret(np.array(one.x))) for one in rows]


def test_many_designs_are_shown_in_words(tmp_path: Path) -> None:
    picture = tmp_path / "picture.png"
    shown = CliRunner().invoke(app, ["show", "paint-shop", "--out", str(picture)])
    assert shown.exit_code == 0
    assert "resin acrylic" in " ".join(shown.output.split())
    assert "no picture" in shown.output
    assert not picture.exists()


def test_a_design_between_levels_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Between(Learner):
        def suggest(self) -> np.ndarray:
            return np.full(17, 0.4)

        def observe(self, x: np.ndarray, c: np.ndarray, y: float) -> None:
            raise AssertionError

        recommend = suggest

    monkeypatch.setattr("edrbo.bench.run.replicate.make_learner", lambda *rest: Between())
    with pytest.raises(InvalidDesignError):
        run_replicate(Replicate("paint-shop", "random", 0, ReplicateSettings(6)))


def test_the_hash_knows_the_space_and_the_high_problems_are_a_group() -> None:
    from edrbo.bench.run.replicate import _problem_fingerprint

    wide = Problem("p", "", SPACE.d_x, iid(clipped_normal(0.5, 0.2)), outcome)
    other = Space({**SPACE.design, "layers": Integer(2, 5)})
    found = [
        _problem_fingerprint(Problem("p", "", SPACE.d_x, wide.context_distribution, outcome, design=design))
        for design in (None, SPACE, other)
    ]
    assert len(set(found)) == 3
    assert _problem_fingerprint(wide) == found[0]
    replicates = all_replicates("high", "random", "0", ReplicateSettings(9))
    assert [one.problem for one in replicates] == problems.high_names()
    with pytest.raises(InvalidValueError):
        all_replicates("newsvendor,high", "random", "0", ReplicateSettings(9, goal="cvar:0.1"))
