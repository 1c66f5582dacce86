"""Statistics against numbers worked out by hand and against scipy."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import METHODS, PROBLEMS, made_up
from scipy import stats as scipy_stats

from edrbo.bench.analysis.results import ReplicateRun, Results, export, load_published, load_results, only_problems
from edrbo.bench.analysis.stats import (
    STATISTICS,
    Cell,
    Ranks,
    cliques,
    compare,
    critical_difference,
    holm,
    rank,
    significance,
    statistic,
    summarize,
)
from edrbo.bench.analysis.tables import relative, relative_table
from edrbo.bench.run.execute import carry_out
from edrbo.bench.run.journal import Failure, Journal
from edrbo.bench.run.replicate import ROBUST_REGRETS, Replicate, ReplicateSettings
from edrbo.errors import EdrboError, InvalidValueError, UnknownNameError

pytestmark = pytest.mark.numpy_numeric


def run(method: str, regret: list[float], problem: str = "p", seed: int = 0, initial: int = 2) -> ReplicateRun:
    return ReplicateRun(problem, method, seed, np.array(regret), np.ones(len(regret)), {"simple": regret[-1]}, initial)


def test_both_readings_of_cumulative_regret_by_hand() -> None:
    one = run("a", [4.0, 3.0, 2.0, 1.0])  # cumulative: 4, 7, 9, 10; after two initial designs: 9, 10
    assert statistic(one, "final") == 10.0
    assert statistic(one, "mean") == 9.5
    assert statistic(one, "simple") == 1.0
    assert np.isnan(statistic(one, "worst-case"))
    assert statistic(replace(one, initial=4), "mean") == 7.5  # nothing but initial designs
    with pytest.raises(UnknownNameError, match="median"):
        statistic(one, "median")
    assert set(ROBUST_REGRETS) < set(STATISTICS)


def test_summary_is_mean_and_sample_deviation_over_seeds() -> None:
    runs = (run("a", [1.0, 1.0], seed=0), run("a", [2.0, 4.0], seed=1), run("b", [5.0, 0.0], seed=0))
    cells = summarize(Results(runs), "final")
    assert cells == {("p", "a"): Cell(4.0, pytest.approx(np.sqrt(8.0)), 2), ("p", "b"): Cell(5.0, 0.0, 1)}
    assert summarize(Results(runs), "spread") == {}


def test_ranks_by_hand_with_a_tie_and_a_gap() -> None:
    cells = {
        **{("p", m): Cell(v, 0.0, 1) for m, v in {"a": 1.0, "b": 2.0, "c": 2.0}.items()},
        **{("q", m): Cell(v, 0.0, 1) for m, v in {"a": 3.0, "b": 1.0, "c": 2.0}.items()},
        ("r", "a"): Cell(1.0, 0.0, 1),  # the others did not run on r: it cannot be ranked
    }
    ranks = rank(cells, ["p", "q", "r"], ["a", "b", "c", "d"])
    assert (ranks.methods, ranks.problems) == (["a", "b", "c"], ["p", "q"])
    np.testing.assert_allclose(ranks.table, [[1.0, 2.5, 2.5], [3.0, 1.0, 2.0]])
    np.testing.assert_allclose(ranks.mean, [2.0, 1.75, 2.25])
    np.testing.assert_allclose(ranks.std, [np.sqrt(2.0), np.sqrt(1.125), np.sqrt(0.125)])


def test_holm_by_hand() -> None:
    # Sorted: .01·4, .02·3, .03·2, .04·1 → .04, .06, .06 (not below the one before), .06.
    np.testing.assert_allclose(holm(np.array([0.03, 0.01, 0.04, 0.02])), [0.06, 0.04, 0.06, 0.06])
    np.testing.assert_allclose(holm(np.array([0.9, 0.8])), [1.0, 1.0])
    assert len(holm(np.array([]))) == 0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_lies_between_the_raw_and_the_bonferroni_values(values: list[float]) -> None:
    p = np.array(values)
    corrected = holm(p)
    assert (corrected >= p - 1e-15).all()
    assert (corrected <= np.minimum(1.0, len(p) * p) + 1e-15).all()
    assert (np.diff(corrected[np.argsort(p, kind="stable")]) >= 0).all()


def test_comparison_pairs_common_seeds_and_agrees_with_scipy() -> None:
    rng = np.random.default_rng(1)
    a, b, c = rng.uniform(1, 2, 12), rng.uniform(1.2, 2.5, 12), rng.uniform(0.5, 3, 12)
    runs = [run("a", [x], seed=i) for i, x in enumerate(a)]
    runs += [run("b", [x], seed=i) for i, x in enumerate(b)]
    runs += [run("c", [x], seed=i + 3) for i, x in enumerate(c)]  # nine seeds in common with a
    found = {one.other: one for one in compare(Results(tuple(runs)), "final", "a")}
    p_b = scipy_stats.wilcoxon(np.log(b / a)).pvalue
    p_c = scipy_stats.wilcoxon(np.log(c[:9] / a[3:])).pvalue
    assert (found["b"].pairs, found["c"].pairs) == (12, 9)
    assert (found["b"].p, found["c"].p) == (pytest.approx(p_b), pytest.approx(p_c))
    assert found["b"].ratio == pytest.approx(np.exp(np.median(np.log(b / a))))
    low, high = sorted([found["b"], found["c"]], key=lambda one: one.p)
    assert low.holm == pytest.approx(min(1.0, 2 * low.p))
    assert high.holm == pytest.approx(max(2 * low.p, high.p))


def test_pooled_and_over_problems() -> None:
    """Pairs of all problems together, and one number a problem: the second knows how few problems there are."""
    rng = np.random.default_rng(2)
    ratios = {name: rng.normal(center, 0.1, 8) for name, center in (("p", 1.0), ("q", 2.0), ("r", -0.2), ("s", 0.5))}
    runs = [run("a", [1.0], seed=i, problem=name) for name in ratios for i in range(8)]
    runs += [run("b", [np.exp(x)], seed=i, problem=name) for name, xs in ratios.items() for i, x in enumerate(xs)]
    (found,) = compare(Results(tuple(runs)), "final", "a")
    assert found.pairs == 32
    assert found.p == pytest.approx(scipy_stats.wilcoxon(np.concatenate(list(ratios.values()))).pvalue)
    medians = [np.median(xs) for xs in ratios.values()]
    assert found.p_of_problems == pytest.approx(scipy_stats.wilcoxon(medians).pvalue)
    (alone,) = compare(Results(tuple(runs)), "final", "a", "p")
    assert np.isnan(alone.p_of_problems)


def test_relative_by_hand() -> None:
    """Two problems with ratios 2 and 1/2 of the means; one seed that only one method has."""
    runs = [run("a", [9.0, 9.0, v], problem=p, seed=i) for p in "pq" for i, v in enumerate((1.0, 3.0))]
    runs += [run("b", [9.0, 9.0, v], problem="p", seed=i) for i, v in enumerate((2.0, 6.0, 70.0))]
    runs += [run("b", [9.0, 9.0, v], problem="q", seed=i) for i, v in enumerate((0.5, 1.5))]
    found = relative(Results(tuple(runs)), "after", "b", "a")
    assert found.ratios == pytest.approx({"p": 2.0, "q": 0.5})
    assert found.mean == pytest.approx(1.0)
    assert found.seeds == (2, 2)
    # Each seed has the same ratio, so only the choice of problems moves the mean: between 1/2 and 2.
    assert found.interval == pytest.approx((0.5, 2.0))
    with pytest.raises(UnknownNameError):
        relative_table(Results(tuple(runs)), "after", "c")


def test_the_interval_counts_problems_and_seeds() -> None:
    """With many problems and seeds it is that of a mean of log ratios; with few seeds it is wider than their spread."""
    rng = np.random.default_rng(3)
    logs = rng.normal(0.3, 0.5, 40)
    runs = [run("a", [0, 0, 1.0], problem=f"p{k}", seed=i) for k in range(40) for i in range(3)]
    runs += [run("b", [0, 0, np.exp(x)], problem=f"p{k}", seed=i) for k, x in enumerate(logs) for i in range(3)]
    low, high = np.log(relative(Results(tuple(runs)), "after", "b", "a").interval)
    error = logs.std() / np.sqrt(40)
    assert low == pytest.approx(logs.mean() - 1.96 * error, abs=0.15 * error)
    assert high == pytest.approx(logs.mean() + 1.96 * error, abs=0.15 * error)


def test_equal_runs_are_no_difference_and_zero_regret_no_error() -> None:
    runs = [run(m, [0.0, v], seed=s) for m, v in (("a", 0.0), ("b", 0.0), ("c", 1.0)) for s in range(6)]
    same, worse = compare(Results(tuple(runs)), "final", "a")
    assert (same.p, same.ratio) == (1.0, 1.0)
    assert worse.p == pytest.approx(2 / 2**6)
    with pytest.raises(UnknownNameError):
        compare(Results(tuple(runs)), "final", "d")


def test_significance_counts_problems() -> None:
    found = significance(made_up(seeds=10), "final", "edrbo")
    assert found is not None
    assert found.counts("stableopt") == (3, 0, 0)
    assert sum(found.counts("erbo")) == 3
    against = significance(made_up(seeds=10), "final", "stableopt")
    assert against is not None
    assert against.counts("edrbo") == (0, 0, 3)
    assert significance(only_problems(made_up(methods={"edrbo": 1.0}), PROBLEMS), "final", "edrbo") is None


def test_critical_difference_by_hand() -> None:
    # Demšar (2006), table 5: q = 2.343 for three methods, 3.102 for nine, at 0.05.
    table = np.array([[1.0, 2.0, 3.0]] * 6)
    three = critical_difference(Ranks(["a", "b", "c"], list("pqrstu"), table))
    assert three.difference == pytest.approx(2.343 * np.sqrt(3 * 4 / (6 * 6)), abs=1e-3)
    assert three.friedman_p == pytest.approx(scipy_stats.chi2.sf(12.0, 2))
    nine = critical_difference(Ranks(list("abcdefghi"), list("pq"), np.tile(np.arange(1.0, 10.0), (2, 1))))
    assert nine.difference == pytest.approx(3.102 * np.sqrt(9 * 10 / (6 * 2)), abs=1e-2)
    tied = critical_difference(Ranks(["a", "b", "c"], list("pq"), np.full((2, 3), 2.0)))
    assert tied.friedman_p == 1.0
    with pytest.raises(InvalidValueError):
        critical_difference(Ranks(["a", "b"], ["p"], np.array([[1.0, 2.0]])))


def test_cliques_are_maximal_groups_within_the_difference() -> None:
    ranks = Ranks(["d", "a", "b", "c"], ["p"], np.array([[4.0, 1.0, 1.5, 2.4]]))
    assert cliques(ranks, 1.0) == [["a", "b"], ["b", "c"]]
    assert cliques(ranks, 1.4) == [["a", "b", "c"]]
    assert cliques(ranks, 0.1) == []
    assert cliques(ranks, 3.0) == [["a", "b", "c", "d"]]


def test_results_are_read_from_journals(tmp_path: Path) -> None:
    done, broken, half = (Replicate("newsvendor", m, 1, ReplicateSettings(6)) for m in ("random", "tpe", "ucb"))
    carry_out(done, tmp_path, lambda event: None)
    with Journal(tmp_path, broken) as journal:
        journal.add(Failure("Error: no", "Traceback"))
    with Journal(tmp_path, half):
        pass
    results = load_results(tmp_path)
    (one,) = results.runs
    assert (one.problem, one.method, one.seed, len(one.regret), len(one.seconds)) == ("newsvendor", "random", 1, 6, 6)
    assert tuple(one.recommended) == ("simple", *ROBUST_REGRETS)
    assert [failed.method for failed in results.failures] == ["tpe"]
    assert results.unfinished == 1
    assert results.distinct("settings") == [{"evaluations": 6, "initial": 5, "noise": 0.0}]


@pytest.mark.parametrize("name", ["runs.csv", "runs.csv.gz"])
def test_compact_tables_are_read_back(tmp_path: Path, name: str) -> None:
    results = made_up()
    export(results, tmp_path / name)
    again = load_results(tmp_path / name)
    assert set(again.methods) == set(METHODS)
    for one in results.runs:
        same = again.of(one.problem, one.method)[one.seed]
        np.testing.assert_allclose(same.regret, one.regret, rtol=1e-6)
        assert same.recommended == pytest.approx(one.recommended, rel=1e-6)
        assert same.seconds.sum() == pytest.approx(one.seconds.sum(), rel=1e-6)
    published = load_published(tmp_path / name)
    assert "edrbo (published)" in published.methods
    assert only_problems(published, ["ackley"]).problems == ["ackley"]


def test_runs_of_different_lengths_are_not_exported(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="lengths"):
        export(Results((run("a", [1.0]), run("a", [1.0, 2.0], seed=1))), tmp_path / "x.csv")


def test_what_holds_no_results_is_named(tmp_path: Path) -> None:
    with pytest.raises(EdrboError):
        load_results(tmp_path)
    (tmp_path / "x.csv").write_text("problem,method\na,b\n")
    (tmp_path / "y.csv.gz").write_bytes(gzip.compress(b"problem")[:10])
    for name in ("x.csv", "y.csv.gz"):
        with pytest.raises(InvalidValueError):
            load_results(tmp_path / name)
