"""Distributions of SciPy by their names, and their values at given probabilities within bounds of time and size. SciPy
is loaded where a distribution is first said, and where it is used.

Some distributions of SciPy have no quantiles in closed form: they are integrated and searched for, which for some
arguments takes minutes, gigabytes or for ever, inside compiled code that nothing can stop. So all but a few well-known
ones are worked out by a process of its own (this module as a program), which is ended when it takes too long.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edrbo.cancellation import checkpoint
from edrbo.errors import InvalidValueError
from edrbo.records.known_distribution import KnownDistribution, Named
from edrbo.space import Space
from edrbo.space.point_tables import close_match


def check_distribution(context_distribution: KnownDistribution | None, space: Space) -> None:
    """InvalidValueError if SciPy has no such distribution, or not with these arguments."""
    for name, part in () if context_distribution is None else context_distribution.parts:
        if isinstance(part, Named):
            if not space.context[name].numeric:
                raise InvalidValueError(
                    f"{name!r} has choices, and its distribution is {part.to_text()}", "give shares"
                )
            check_named(name, part)


def check_named(variable: str, part: Named) -> None:
    """InvalidValueError if SciPy has no such distribution, or cannot say its quantiles in bounds of time and size."""
    from scipy import stats

    known = getattr(stats, part.name, None)
    if not isinstance(known, stats.rv_continuous | stats.rv_discrete):
        names = [
            name for name in dir(stats) if isinstance(getattr(stats, name), stats.rv_continuous | stats.rv_discrete)
        ]
        hint = close_match(part.name, names, "it is one of scipy.stats, as norm, uniform, lognorm, beta or poisson")
        raise InvalidValueError(f"SciPy has no distribution {part.name!r}", hint)
    hint = f"its arguments are {known.shapes or 'none'}, then loc and scale"
    reported = f"the distribution of {variable!r}, {part.to_text()}"
    try:
        ends = quantiles(part.name, (part.arguments, part.keywords), np.array([0.001, 0.5, 0.999]))
    except InvalidValueError as problem:
        raise InvalidValueError(f"{reported}: {problem.message}", problem.hint or hint) from None
    if not np.isfinite(ends).all():
        raise InvalidValueError(f"{reported}, has no quantiles", f"{hint}; each has a range")


Array = NDArray[np.float64]

MOST_SECONDS = 10  # of CPU, for what is asked of one distribution at a time, the start of a process included
LOOK = 0.2  # seconds between two looks whether anybody waits
PATIENCE = 6  # times as long may pass on a machine that does other things
MOST_MEMORY = 2 * 2**30  # bytes
MOST_VALUES = 20_000  # of a discrete distribution, one by one
LARGEST = 2.0**52  # whole number that a float tells from its neighbors
REACH = 12.0  # standard deviations around the mean where the values of a discrete distribution lie
UNUSABLE = (TypeError, ValueError, ArithmeticError, RuntimeError, MemoryError)
PROMPT = {  # their quantiles are functions of their own, as fast for all arguments within bounds
    *("norm", "uniform", "lognorm", "beta", "gamma", "expon", "triang", "truncnorm", "t", "weibull_min", "weibull_max"),
    *("logistic", "laplace", "gumbel_r", "gumbel_l", "cauchy", "pareto", "rayleigh", "chi2", "loguniform", "halfnorm"),
    *("poisson", "binom", "bernoulli", "randint", "geom", "nbinom"),
}
LARGEST_PROMPT = 1e6  # arguments of these
TOO_LONG = "SciPy needs too long for its quantiles"
TOO_MUCH = "SciPy cannot work out its quantiles"
SAMPLES = "give samples of it"

Arguments = tuple[tuple[float, ...], tuple[tuple[str, float], ...]]


def quantiles(name: str, arguments: Arguments, levels: Array) -> Array:
    """The values (n) that a distribution reaches with probabilities ``levels`` (n).

    Raises:
        InvalidValueError: it has none, or they are out of bounds.
    """
    return np.array(_asked(name, arguments, tuple(levels.tolist()))[0])


def masses(name: str, arguments: Arguments) -> tuple[Array, Array] | None:
    """Values (n) of a discrete distribution, ascending, and their probabilities (n), which sum to one but for what lies
    beyond the last; None of a continuous one."""
    values, mass = _asked(name, arguments, None)
    return (np.array(values), np.array(mass)) if mass else None


@lru_cache(maxsize=64)
def _asked(
    name: str, arguments: Arguments, levels: tuple[float, ...] | None
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Quantiles; or with None for ``levels`` the values and probabilities of a discrete distribution."""
    positional, named = arguments
    numbers = [*positional, *(number for _, number in named)]
    if name in PROMPT and all(abs(number) <= LARGEST_PROMPT for number in numbers):
        return worked_out(name, positional, dict(named), levels)
    if not sys.executable:
        raise InvalidValueError("it can only be worked out by a process of its own", SAMPLES)
    question = json.dumps([name, positional, dict(named), levels, MOST_SECONDS, MOST_MEMORY])
    words = [sys.executable, "-m", "edrbo.records.scipy_distributions"]
    said, code = _said(words, question)
    try:
        answer = json.loads(said)
    except ValueError:  # it ran out of time or of memory
        raise InvalidValueError(TOO_LONG if code < 0 else TOO_MUCH, SAMPLES) from None
    if "error" in answer:
        raise InvalidValueError(answer["error"], answer["hint"])
    return tuple(answer["values"]), tuple(answer["mass"])


def _said(words: list[str], question: str) -> tuple[str, int]:
    """What a process of its own says to ``question``, and how it ended; it is ended when nobody waits for it."""
    end, quiet = time.monotonic() + PATIENCE * MOST_SECONDS, subprocess.DEVNULL
    given: str | None = question
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=quiet, text=True) as asked:
        try:
            while time.monotonic() < end:
                checkpoint()
                with suppress(subprocess.TimeoutExpired):
                    return asked.communicate(given, timeout=LOOK)[0], asked.returncode
                given = None  # it has begun to be sent
        finally:
            asked.kill()
    raise InvalidValueError(TOO_LONG, SAMPLES)


def worked_out(
    name: str, positional: tuple[float, ...], named: Mapping[str, float], levels: tuple[float, ...] | None
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The same, here and now."""
    from scipy import stats

    try:
        context_distribution = getattr(stats, name)(*positional, **named)
        if levels is None and not hasattr(context_distribution, "pmf"):
            return (), ()
        found = (
            _masses(context_distribution)
            if levels is None
            else (_quantiles(context_distribution, np.array(levels)), np.empty(0))
        )
    except UNUSABLE as problem:
        if isinstance(problem, InvalidValueError):
            raise
        raise InvalidValueError(f"it cannot be: {problem}") from None
    return tuple(found[0].tolist()), tuple(found[1].tolist())


def _quantiles(context_distribution: Any, levels: Array) -> Array:
    """Of continuous distributions as SciPy has them; of discrete ones, which it searches for step by step and may never
    find, from the probabilities of their values."""
    if hasattr(context_distribution, "pmf"):
        values, mass = _masses(context_distribution)
        reached = np.cumsum(mass)
        if levels.max(initial=0.0) > reached[-1]:
            raise InvalidValueError(f"{1.0 - reached[-1]:.2g} of it lies beyond {values[-1]:.3g}", SAMPLES)
        found: Array = values[np.searchsorted(reached, levels)]
        return found
    with np.errstate(all="ignore"):
        return np.asarray(context_distribution.ppf(levels), dtype=np.float64)


def _masses(context_distribution: Any) -> tuple[Array, Array]:
    """All values where they are few. Else every value stands for its neighbors: evenly where mean and spread say where
    to look, and at growing distances where a tail is too heavy to have them."""
    values, gaps = _grid(context_distribution)
    with np.errstate(all="ignore"):
        mass = np.nan_to_num(np.asarray(context_distribution.pmf(values), dtype=np.float64), nan=0.0, posinf=0.0) * gaps
    total = float(mass.sum())
    if not 0.0 < total < np.inf:
        raise InvalidValueError("it has no probabilities", SAMPLES)
    return values[mass > 0], mass[mass > 0] / max(1.0, total)


def _grid(context_distribution: Any) -> tuple[Array, Array]:
    """Whole numbers that stand for those of the distribution, and for how many each."""
    low, high = (float(end) for end in context_distribution.support())
    if high - low >= MOST_VALUES:
        with np.errstate(all="ignore"):
            center, spread = float(context_distribution.mean()), float(context_distribution.std())
        if np.isfinite([center, spread]).all():
            low, high = max(low, np.floor(center - REACH * spread)), min(high, np.ceil(center + REACH * spread))
    if np.isnan([low, high]).any():
        raise InvalidValueError("it has no values", "each argument has a range")
    if not abs(low) <= LARGEST:
        raise InvalidValueError("its values are too large to be counted", SAMPLES)
    if high - low < MOST_VALUES:
        values = np.arange(low, high + 1.0)
        return values, np.ones(len(values))
    if high <= LARGEST:
        step = np.ceil((high - low) / MOST_VALUES)
        values = np.arange(low, high + 1.0, step)
        return values, np.full(len(values), step)
    near = np.arange(low, low + MOST_VALUES)
    far = np.unique(np.floor(np.geomspace(near[-1] - low + 1.0, LARGEST, MOST_VALUES))) + low
    edges = np.concatenate([far, [LARGEST + low]])
    return np.concatenate([near, np.floor(np.sqrt(edges[:-1] * edges[1:]))]), np.concatenate(
        [np.ones(len(near)), np.diff(edges)]
    )


def main() -> None:
    """Answer one question on standard input."""
    name, positional, named, levels, seconds, memory = json.load(sys.stdin)
    try:
        import resource
    except ModuleNotFoundError:  # not on Windows
        pass
    else:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answer: dict[str, Any]
    try:
        values, mass = worked_out(name, tuple(positional), named, None if levels is None else tuple(levels))
        answer = {"values": values, "mass": mass}
    except InvalidValueError as problem:
        answer = {"error": problem.message, "hint": problem.hint}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
