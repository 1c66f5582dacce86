"""The attack by distributions: whatever SciPy needs for them, an answer or an error of ours comes in bounded time."""

from __future__ import annotations

import os
import signal
import subprocess
from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy import stats
from test_fuzz import tally

from edrbo.cancellation import cancellable
from edrbo.contexts.known_distribution import known_contexts
from edrbo.errors import EdrboError, StoppedError
from edrbo.records import scipy_distributions as q
from edrbo.records.known_distribution import as_known_distribution
from edrbo.records.scipy_distributions import check_distribution
from edrbo.space import Space

SPACE = Space({"x": (0.0, 1.0)}, {"c": None})
LIMIT = 3  # seconds of CPU, for the test

HANGS = ("zipf(1.05)", "irwinhall(10000000)", "ksone(1000000)", "studentized_range(3, 7)")
REFUSED = {"zipf(1.05)": "beyond", "ksone(1000000)": "", "binom(5, 7)": ""}
FINE = ("zipf(3.5)", "poisson(1000000000)", "nbinom(0.001, 0.000001)", "randint(0, 1000000000000)")


def contexts(text: str) -> tuple[np.ndarray, np.ndarray]:
    context_distribution = as_known_distribution({"c": text}, SPACE)
    assert context_distribution is not None
    check_distribution(context_distribution, SPACE)
    return known_contexts(context_distribution, SPACE, np.empty((0, 1)), np.empty(0))


def spent() -> float:
    """Seconds of CPU of this process and of those that it has started."""
    found = os.times()
    return found.user + found.system + found.children_user + found.children_system


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    q._asked.cache_clear()
    monkeypatch.setattr(q, "MOST_SECONDS", LIMIT)
    monkeypatch.setattr(q, "PATIENCE", 60)  # only its own time counts, however busy the machine is


def test_what_nobody_waits_for_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[subprocess.Popen[str]] = []

    class Kept(subprocess.Popen[str]):
        def __init__(self, *words: Any, **more: Any) -> None:
            super().__init__(*words, **more)
            begun.append(self)

    monkeypatch.setattr(q, "MOST_SECONDS", 3600)
    monkeypatch.setattr(subprocess, "Popen", Kept)
    looks = iter([None, None])
    with pytest.raises(StoppedError), cancellable(lambda: next(looks, StoppedError("nobody waits"))):
        contexts("irwinhall(10000000)")
    assert [one.returncode for one in begun] == [-signal.SIGKILL]


def test_nothing_hangs_and_nothing_crashes() -> None:
    counts, longest = Counter[str](), 0.0
    for text in dict.fromkeys((*HANGS, *REFUSED, *FINE)):
        begun = spent()
        try:
            rows, weights = contexts(text)
        except EdrboError as problem:
            expected = text not in FINE and REFUSED.get(text, "") in str(problem)
            counts["refused" if expected else f"REFUSED: {problem}"] += 1
        else:
            counts["drawn"] += 1
            assert np.isfinite(rows).all()
            assert weights.sum() == pytest.approx(1.0)
            assert text not in REFUSED
        longest = max(longest, spent() - begun)
    assert set(counts) == {"refused", "drawn"}
    tally(f"distributions, at most {longest:.1f} s", counts)
    assert longest < 4 * LIMIT  # what is asked of one: its ends, its masses, its quantiles


@pytest.mark.parametrize(
    "text",
    ["zipf(3.5)", "poisson(4)", "poisson(1000000000)", "skellam(15, 8)", "nbinom(3, 0.1)", "hypergeom(100, 20, 30)"],
)
def test_discrete_ones_have_the_quantiles_of_scipy(text: str) -> None:
    name, _, rest = text.partition("(")
    arguments = tuple(float(part) for part in rest.rstrip(")").split(","))
    levels = np.array([0.0015, 0.1, 0.5, 0.9, 0.999])  # none of them the probability of a whole number itself
    scale = getattr(stats, name)(*arguments)
    found, known = q.quantiles(name, (arguments, ()), levels), scale.ppf(levels)
    assert found == pytest.approx(known, abs=0.02 * scale.std() if scale.std() > 1000 else 0.0)


def test_a_heavy_tail_is_cut_where_it_no_longer_counts() -> None:
    values, mass = q.masses("zipf", ((2.5,), ())) or (np.empty(0), np.empty(0))
    assert mass.sum() == pytest.approx(1.0, abs=1e-3)
    assert mass[:3] == pytest.approx(stats.zipf(2.5).pmf([1, 2, 3]), rel=1e-3)
    assert values[-1] > 1e12
