"""One replicate: a pure function of problem, method, seed and settings.

Contexts, observation noise, initial designs and the method draw from streams of their own, children of the one seed:
for a seed, all methods see the same first designs and the same contexts, and measuring never changes a run. The oracle
(regrets) is asked only after the learner has been reported all it will ever see of an evaluation.

Robust regrets say what a recommended design is worth when the world is not as it was. Each is the loss against the best
design *for that changed world*, so that zero can be reached:

    shift-down, shift-up   every context moved by ∓0.1 before clipping
    spread                 contexts 1.5 times as far from their median
    worst-case             the worst distribution within Wasserstein-1 distance 0.1 of P, where the best design for it
                           is known
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

import edrbo
from edrbo.bench.learners.learner import Array, Learner, Setup
from edrbo.bench.problems.oracle.goals import goal_regret
from edrbo.bench.problems.oracle.shift import shifted
from edrbo.bench.problems.problem import Problem
from edrbo.bench.run.plugin import Plugin, describe_method, get_problem, make_learner
from edrbo.errors import InvalidDesignError, InvalidValueError
from edrbo.records.goals import Expected, Goal, parse_goal
from edrbo.streams import stream
from edrbo.threads import engine_threads

SAME_DESIGN = 1e-9  # how close the codes of one design are
FORMAT = 1  # of what a replicate computes; a change makes old results unreadable as finished ones


@dataclass(frozen=True)
class ReplicateSettings:
    """``initial`` quasi-random designs are part of the ``evaluations``; ``noise`` is a standard deviation, and
    ``noise_share`` one as a share of the problem's range of expected values.

    ``goal`` is what the methods are reported to reach and the regrets are measured under, as text. ``looks`` are
    numbers of evaluations after which the recommendation is judged too, besides the last; ``also`` are further goals
    under which all of them are asked for a recommendation from the same evaluations. Without ``changes`` the
    recommendation is not judged in changed worlds, each of which takes a search for its best design.
    """

    evaluations: int = 200
    initial: int = 5
    noise: float = 0.0
    goal: str = "expected"
    looks: tuple[int, ...] = ()
    also: tuple[str, ...] = ()
    noise_share: float = 0.0
    changes: bool = True

    def __post_init__(self) -> None:
        if not 1 <= self.initial <= self.evaluations:
            raise InvalidValueError(
                f"{self.evaluations} evaluations with {self.initial} initial ones",
                "at least one initial design, and no more of them than evaluations",
            )
        if not (self.noise >= 0 and self.noise_share >= 0 and math.isfinite(self.noise + self.noise_share)):
            raise InvalidValueError(
                f"noise of {self.noise:g} and {self.noise_share:.0%} of the range",
                "a standard deviation is not negative",
            )
        if not all(1 <= look < self.evaluations for look in self.looks):
            raise InvalidValueError(
                f"looks after {', '.join(map(str, self.looks))} of {self.evaluations} evaluations",
                "a look comes after one evaluation or more and before the last, which is judged anyway",
            )
        object.__setattr__(self, "goal", parse_goal(self.goal).to_text())
        object.__setattr__(self, "looks", tuple(sorted(set(self.looks))))
        object.__setattr__(self, "also", tuple(dict.fromkeys(parse_goal(goal).to_text() for goal in self.also)))

    def record(self) -> dict[str, Any]:
        """JSON types; without what is as it was when there was nothing else, as journals had it then."""
        record = asdict(self)
        for name in ("goal", "looks", "also", "noise_share", "changes"):
            if record[name] == getattr(ReplicateSettings, name):
                del record[name]
        return json.loads(json.dumps(record))  # type: ignore[no-any-return]

    @property
    def goals(self) -> tuple[str, ...]:
        """All goals that recommendations are asked for under, its own first."""
        return tuple(dict.fromkeys([self.goal, *self.also]))


@dataclass(frozen=True)
class Replicate:
    problem: str
    method: str
    seed: int
    settings: ReplicateSettings = ReplicateSettings()
    plugin: Plugin | None = None

    def __str__(self) -> str:
        return f"{self.problem} / {self.method} / {self.seed}"

    def record(self) -> dict[str, Any]:
        """Names and settings, for people and for tables."""
        return {
            "problem": self.problem,
            "method": self.method,
            "seed": self.seed,
            "settings": self.settings.record(),
        }

    def data(self) -> str | None:
        """Which data the problem stands on, when it is not a formula, or how exact its expectations are."""
        problem = _problem(self)
        if problem.context_distribution.exact:
            return problem.data
        error = float(problem.standard_error(np.full(problem.d_x, 0.5)))
        oracle = f"{problem.name}: expectations are means over draws, standard error {error:.2g} in the middle"
        return oracle if problem.data is None else f"{problem.data}; {oracle}"

    def settings_hash(self) -> str:
        """Changes with anything that is meant to change results: never with the machine or the libraries."""
        problem = _problem(self)
        record = {
            **self.record(),
            "format": FORMAT,
            "edrbo": edrbo.__version__,
            "problem definition": _problem_fingerprint(problem),
            "method definition": describe_method(self.method, problem.d_c, self.plugin),
        }
        return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Evaluation:
    """Step ``t`` (from 0): design, context and outcome as the learner saw them, then what only the oracle knows.

    ``seconds`` is the time the suggestion took.
    """

    t: int
    x: tuple[float, ...]
    c: tuple[float, ...]
    y: float
    regret: float
    seconds: float


@dataclass(frozen=True)
class Look:
    """The recommendation under ``goal`` after so many ``evaluations``, and its regret under it."""

    evaluations: int
    goal: str
    recommendation: tuple[float, ...]
    regret: float


@dataclass(frozen=True)
class ReplicateResult:
    """The recommendation after the last evaluation and its regrets; ``seconds`` of all suggestions and of this one.

    ``looks`` are those that were asked for besides this one.
    """

    recommendation: tuple[float, ...]
    simple_regret: float
    robust_regret: dict[str, float]
    seconds: float
    looks: tuple[Look, ...] = ()


def run_replicate(
    replicate: Replicate, past: Sequence[Evaluation] = (), record: Callable[[Evaluation], None] | None = None
) -> ReplicateResult:
    """Go on from ``past`` to the end; ``record`` is given each new evaluation as soon as it is complete."""
    problem, settings, seed = _problem(replicate), replicate.settings, replicate.seed
    goal = parse_goal(settings.goal)
    contexts = problem.sample_contexts(settings.evaluations, stream(seed, "contexts", replicate.problem))
    with engine_threads(1):  # sums over several round differently; results must not depend on the number of cores
        setup = Setup(problem.d_x, problem.d_c, seed, settings.initial, goal, problem.design, settings.evaluations)
        learner = make_learner(replicate.method, setup, replicate.plugin)
        seconds, looks = 0.0, list[Look]()
        for t in range(settings.evaluations):
            if t < len(past):
                one = past[t]
            else:
                started = time.perf_counter()
                x = _checked(learner.suggest(), problem)
                spent = time.perf_counter() - started
                y = float(problem.observe(x, contexts[t], stream(seed, "observation noise", replicate.problem, t)))
                one = Evaluation(t, tuple(x.tolist()), tuple(contexts[t].tolist()), y, math.nan, spent)
            learner.observe(np.array(one.x), np.array(one.c), one.y)
            seconds += one.seconds
            if t >= len(past) and record is not None:
                record(replace(one, regret=_regret(problem, goal, np.array(one.x))))
            if t + 1 in settings.looks:
                looks += _looks(learner, problem, t + 1, settings.goals)
        started = time.perf_counter()
        x = _checked(learner.recommend(), problem)
        seconds += time.perf_counter() - started
        looks += _looks(learner, problem, settings.evaluations, settings.also)
    regrets = _regret(problem, goal, x), robust_regrets(problem, x) if settings.changes else {}
    return ReplicateResult(tuple(x.tolist()), *regrets, seconds, tuple(looks))


def _looks(learner: Learner, problem: Problem, evaluations: int, goals: Sequence[str]) -> Iterator[Look]:
    for text in goals:
        goal = parse_goal(text)
        x = _checked(learner.recommend_under(goal), problem)
        yield Look(evaluations, text, tuple(x.tolist()), _regret(problem, goal, x))


def _regret(problem: Problem, goal: Goal, x: Array) -> float:
    return float(problem.regret(x) if goal == Expected() else goal_regret(problem, goal, x))


def _problem(replicate: Replicate) -> Problem:
    settings = replicate.settings
    return _observed_with(get_problem(replicate.problem, replicate.plugin), settings.noise, settings.noise_share)


@lru_cache(maxsize=64)
def _observed_with(problem: Problem, noise: float, share: float) -> Problem:
    if share:
        noise = math.hypot(noise, share * problem.value_range)
    return replace(problem, noise_sd=noise) if noise else problem


def _checked(x: Array, problem: Problem) -> Array:
    x = np.asarray(x, dtype=np.float64)
    if x.shape != (problem.d_x,) or not ((x >= 0) & (x <= 1)).all():
        raise InvalidDesignError(f"the method suggested {x!r}", f"a point of [0, 1]^{problem.d_x} is needed")
    design = problem.snap(x)
    if np.abs(design - x).max() > SAME_DESIGN:
        raise InvalidDesignError(f"the method suggested {x!r}, which is between levels", "setup.snap(x) is a design")
    return design


_problem_fingerprint = lru_cache(maxsize=64)(Problem.fingerprint)


MEAN_SHIFT = 0.1
SPREAD = 1.5
RADIUS = 0.1
ROBUST_REGRETS = ("shift-down", "shift-up", "spread", "worst-case")


@lru_cache(maxsize=64)
def changed_worlds(problem: Problem) -> dict[str, Problem]:
    """The problem under each changed distribution; kept, because each looks for its own optimum once."""
    return {
        "shift-down": shifted(problem, mean_shift=-MEAN_SHIFT),
        "shift-up": shifted(problem, mean_shift=MEAN_SHIFT),
        "spread": shifted(problem, spread=SPREAD),
    }


def robust_regrets(problem: Problem, x: Array) -> dict[str, float]:
    """The regrets of one design (d_x,) by the names of ``ROBUST_REGRETS``, as far as they are known: none where the
    best design was found by a search beforehand, which every changed world would need as well."""
    if problem.reference is not None:
        return {}
    regrets = {name: float(changed.regret(x)) for name, changed in changed_worlds(problem).items()}
    if not (problem.knows_goals and problem.independent):
        return regrets
    _, best = problem.robust_optimum(RADIUS)
    # The reference is found by a search, so a design may beat it by a hair: that is a regret of zero.
    regrets["worst-case"] = max(0.0, best - float(problem.worst_case(x, RADIUS)))
    return regrets
