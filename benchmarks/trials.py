"""Trials of rules for asking, beside the method of the paper on the same seeds and contexts: docs/why.md, "Journal".

    OMP_NUM_THREADS=1 python benchmarks/trials.py run base,mean-1.5 --seeds 0:5 [--problems all] [--noise 0.05]
        [--goal robust:0.1] [--evaluations 100] [--out RUNS]
    python benchmarks/trials.py table [RUNS] [--noise 0.05] [--goal robust:0.1] [--evaluations 100]

RUNS is benchmarks/results/trials.csv unless told otherwise; a row is a run, and what is there is not run again. Regrets
are shares of the range of the problem's expected values: ``cumulative`` after the five initial designs under the mean,
``at 50`` and so on of the recommendation under the goal. Rules are chosen on seeds below 100; seeds 100 to 109 are for
confirming.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from kept_runs import add, rows
from rich.console import Console
from rich.progress import track
from rich.table import Table

from edrbo import Optimizer, Space
from edrbo.acquisition.score import UCB, BarycenterUCB
from edrbo.bench import problems
from edrbo.bench.problems.oracle.goals import goal_regret
from edrbo.bench.problems.oracle.shift import with_noise
from edrbo.context.laws import sobol_points
from edrbo.optimizer import exploring
from edrbo.optimizer.belief import Belief
from edrbo.optimizer.choice import read_choice
from edrbo.records.goals import parse_goal
from edrbo.streams import stream, stream_seed
from edrbo.surrogate.exact_gp import ExactGP

RATE = exploring.RATE
RESULTS = Path(__file__).parent / "results" / "trials.csv"
INITIAL, LOOKS = 5, (50, 100, 200)
KEYS = ("rule", "problem", "noise", "goal", "seed", "evaluations")
COLUMNS = (*KEYS, "cumulative", *(f"at {n}" for n in LOOKS), "seconds")
STUCK = 0.05  # of the range below the optimum

Rule = Callable[[Optimizer, Belief], Belief | np.ndarray]


def by(score: BarycenterUCB) -> Rule:
    return lambda optimizer, belief: replace(belief, score=score)


def plain(beta: float) -> Rule:
    """Without the radius."""
    return by(BarycenterUCB(beta, radius_weight=0.0))


def mean(beta: float, radius_weight: float = 0.0) -> Rule:
    """Optimism about the expectation itself."""
    return by(BarycenterUCB(beta, radius_weight=radius_weight, integrated=True))


def farthest(optimizer: Optimizer, belief: Belief) -> np.ndarray:
    """The design of 2,048 farthest from all tried ones, whatever the model says."""
    tried = optimizer.observations.x
    points = sobol_points(tried.shape[1], 2048, stream_seed(optimizer.settings.seed, "far", len(tried))).numpy()
    return points[np.square(points[:, None] - tried).sum(-1).min(1).argmax()]


def sometimes(explore: Rule, otherwise: Rule, growth: float) -> Rule:
    """``explore`` at 8 evaluations, and each time they have grown by ``growth``."""
    steps = {int(8 * growth**k) for k in range(20)}
    return lambda optimizer, belief: (explore if len(optimizer) in steps else otherwise)(optimizer, belief)


def hole(optimizer: Optimizer, belief: Belief) -> np.ndarray:
    """The design of 2,048 with most room around it, walls included: a wall counts as tried at half its distance."""
    tried = optimizer.observations.x
    points = sobol_points(tried.shape[1], 2048, stream_seed(optimizer.settings.seed, "far", len(tried))).numpy()
    room = np.sqrt(np.square(points[:, None] - tried).sum(-1).min(1))
    wall = 2.0 * np.minimum(points, 1.0 - points).min(1)
    return points[np.minimum(room, wall).argmax()]


def rough(beta: float, factor: float) -> Rule:
    """Optimism about the mean of a model whose lengthscales are ``factor`` times as long."""

    def rule(optimizer: Optimizer, belief: Belief) -> Belief:
        gp = belief.model.gp
        hyper = replace(gp.hyper, lengthscale=factor * gp.hyper.lengthscale)
        rougher = ExactGP.condition(gp.kernels, hyper, gp.x, gp.y, gp.noise.mean(0))
        score = BarycenterUCB(beta, radius_weight=0.0, integrated=True)
        return replace(belief, model=replace(belief.model, gp=rougher), score=score)

    return rule


def every(explore: Rule, otherwise: Rule, period: int) -> Rule:
    """``explore`` in every so manieth step."""
    return lambda optimizer, belief: (otherwise if len(optimizer) % period else explore)(optimizer, belief)


def falling(first: float, last: float, over: float) -> Rule:
    """Optimism about the mean that falls from ``first`` to ``last`` as evaluations grow."""

    def rule(optimizer: Optimizer, belief: Belief) -> Belief:
        beta = last + (first - last) * math.exp(-(len(optimizer) - INITIAL) / over)
        return mean(beta)(optimizer, belief)  # type: ignore[return-value]

    return rule


def thrifty(explore: Rule, otherwise: Rule, share: float, first: int = 0) -> Rule:
    """``explore`` whenever all such steps together have cost less than ``share`` of the regret so far, as the model
    reckons it today; without that of the ``first`` designs."""

    def rule(optimizer: Optimizer, belief: Belief) -> Belief | np.ndarray:
        explored = optimizer.__dict__.setdefault("explored", set())
        x = torch.from_numpy(optimizer.observations.x)
        with torch.no_grad():
            worth = mean(0.0)(optimizer, belief).acquisition()(x)  # type: ignore[union-attr]
        regret = (worth.max() - worth).numpy()
        chosen = np.isin(np.arange(len(x)), list(explored))
        spent, paid = regret[chosen].sum(), regret[first:].sum()
        if spent + regret[:INITIAL].mean() > share * paid:
            return otherwise(optimizer, belief)
        explored.add(len(optimizer))
        return explore(optimizer, belief)

    return rule


@dataclass(frozen=True)
class Boldest(UCB):
    """max over the experts of μ_m + β σ_m."""

    def __call__(self, mean, sd, weights=None):  # type: ignore[no-untyped-def]
        return (mean + self.beta * sd).amax(-2)

    def value_and_slopes(self, mean, sd, weights=None):  # type: ignore[no-untyped-def]
        value, at = (mean + self.beta * sd).max(0, keepdim=True)
        share = torch.zeros_like(mean).scatter_(0, at, 1.0)
        return value[0], share, self.beta * share


RULES: dict[str, Rule] = {
    "base": by(BarycenterUCB()),
    "radius-1": by(BarycenterUCB(1.0)),
    "half-radius-1": by(BarycenterUCB(1.0, radius_weight=0.5)),
    "plain-1": plain(1.0),
    "plain-1.5": plain(1.5),
    "mean-1": mean(1.0),
    "mean-1.25": mean(1.25),
    "mean-1.5": mean(1.5),
    "mean-2": mean(2.0),
    "mean-1.5-half-radius": mean(1.5, 0.7),
    "radius-1, wide at doublings": sometimes(plain(3.0), by(BarycenterUCB(1.0)), 2.0),
    "radius-1, wide at half doublings": sometimes(plain(3.0), by(BarycenterUCB(1.0)), math.sqrt(2.0)),
    "radius-1, wider at half doublings": sometimes(plain(4.0), by(BarycenterUCB(1.0)), math.sqrt(2.0)),
    "radius-1, farthest at half doublings": sometimes(farthest, by(BarycenterUCB(1.0)), math.sqrt(2.0)),
    "plain-1, wide at doublings": sometimes(plain(2.0), plain(1.0), 2.0),
    "mean-1 + radius added": mean(1.0, -0.7),
    "mean-1.5 + radius added": mean(1.5, -0.7),
    "boldest-1": by(Boldest(1.0, integrated=True)),
    "boldest-1.5": by(Boldest(1.5, integrated=True)),
    "mean-2.5 to 1": falling(2.5, 1.0, 25.0),
    "mean-3 to 1.25": falling(3.0, 1.25, 15.0),
    "mean-1.5 + hole at doublings": sometimes(hole, mean(1.5), 2.0),
    "mean-1.5 + rough at doublings": sometimes(rough(2.0, 0.4), mean(1.5), 2.0),
    "mean-1.5 + hole within a fifth": thrifty(hole, mean(1.5), 0.2),
    "mean-1.5 + rough within a fifth": thrifty(rough(2.0, 0.4), mean(1.5), 0.2),
    "mean-1.5 + hole within a quarter after": thrifty(hole, mean(1.5), 0.25, INITIAL),
    "mean-1.5 + hole within a half after": thrifty(hole, mean(1.5), 0.5, INITIAL),
    "mean-1.5 + hole within a third": thrifty(hole, mean(1.5), 0.333),
    "mean-2 + hole within a fifth": thrifty(hole, mean(2.0), 0.2),
    "mean-1.5 + rough within a half after": thrifty(rough(2.0, 0.4), mean(1.5), 0.5, INITIAL),
    "rough half mean-1": rough(1.0, 0.5),
    "mean-1.5 + hole every fourth": every(hole, mean(1.5), 4),
    "mean-1.5 + rough every fourth": every(rough(2.0, 0.4), mean(1.5), 4),
    "identify": mean(1.5),
    "identify-2": mean(1.5),
    "identify-4": mean(1.5),
    "warped-mean-1": mean(1.0),
    "warped-mean-1.25": mean(1.25),
    "warped-mean-1.5": mean(1.5),
    "warped-plain-1": plain(1.0),
    "mean-2.5": mean(2.5),
    "mean-3": mean(3.0),
}


class Trial(Optimizer):
    rule: Rule

    def _best(self, belief, *rest):  # type: ignore[no-untyped-def]
        found = type(self).rule(self, belief)
        return found if isinstance(found, np.ndarray) else super()._best(found, *rest)

    def recommended(self) -> np.ndarray:
        evidence = self._evidence()
        belief = self._belief(evidence, (None, None), [], self._aim(evidence), asking=False)
        seed = stream_seed(self.settings.seed, "recommend", len(self))
        return self._best_answer(belief, evidence, read_choice(self.space), seed).numpy()


def run(rule: str, name: str, noise: float, goal: str, seed: int, evaluations: int) -> dict[str, object]:
    base = problems.get(name)
    problem = with_noise(base, noise * base.value_range) if noise else base
    contexts = problem.sample_contexts(max(evaluations, 200), stream(seed, "contexts", name))
    space = Space(
        design={f"x{j + 1}": (0.0, 1.0) for j in range(problem.d_x)},
        context={f"c{k + 1}": (0.0, 1.0) for k in range(problem.d_c)},
    )
    choices = {"aim": "identify"} if rule.startswith("identify") else {}
    exploring.RATE = float(rule[-1]) if rule[-2] == "-" and choices else RATE
    optimizer = type("Trial", (Trial,), {"rule": staticmethod(RULES[rule])})(
        space,
        "edrbo-warped" if rule.startswith("warped") else "edrbo",
        seed=seed,
        initial=INITIAL,
        goal=goal,
        **choices,
    )
    designs, looks, began = [], {}, time.process_time()
    for t in range(evaluations):
        suggestion = optimizer.ask()
        designs.append(np.array(list(suggestion.design.values())))
        y = problem.observe(designs[-1], contexts[t], stream(seed, "observation noise", name, t))
        optimizer.tell(suggestion, contexts[t].tolist(), float(y))
        if t + 1 in LOOKS:
            x = optimizer.recommended()
            regret = base.regret(x) if goal == "expected" else goal_regret(base, parse_goal(goal), x)
            looks[f"at {t + 1}"] = f"{float(regret) / base.value_range:.6g}"
    cumulative = float(base.regret(np.array(designs))[INITIAL:].sum()) / base.value_range
    return {
        **{"rule": rule, "problem": name, "noise": noise, "goal": goal, "seed": seed, "evaluations": evaluations},
        **{"cumulative": f"{cumulative:.6g}", **looks, "seconds": f"{time.process_time() - began:.1f}"},
    }


def run_all(options: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    first, last = map(int, options.seeds.split(":"))
    everything = [*problems.names(), *problems.further_names()]
    names = everything if options.problems == "all" else options.problems.split(",")
    done = {tuple(row[key] for key in KEYS) for row in rows(options.out)}
    wanted = [(r, p, s) for s in range(first, last) for p in names for r in options.rules.split(",")]
    left = [
        (rule, name, options.noise, options.goal, seed, options.evaluations)
        for rule, name, seed in wanted
        if (rule, name, str(options.noise), options.goal, str(seed), str(options.evaluations)) not in done
    ]
    for one in track(left, f"{len(left)} runs"):
        add(options.out, COLUMNS, run(*one))


def table(options: argparse.Namespace) -> None:
    """Every rule beside ``base``, the method of the paper, on the runs that both have. Ratios are geometric means over
    problems of ratios of means over seeds, intervals of them resample problems, and seeds within them."""
    keys = {"noise": str(options.noise), "goal": options.goal, "evaluations": str(options.evaluations)}
    found = [row for row in rows(options.out) if all(row[key] == value for key, value in keys.items())]
    by_rule = {rule: {(r["problem"], r["seed"]): r for r in found if r["rule"] == rule} for rule in RULES}
    shown = Table(title=f"noise {options.noise}, goal {options.goal}, {options.evaluations} evaluations")
    heads = ("rule", "runs", "problems", "cumulative regret to edrbo's", "95 %", "simple regret, thousandths")
    for heading in (*heads, "edrbo's", f"more than {STUCK:.0%} below", "edrbo's"):
        shown.add_column(heading, justify="left" if heading == "rule" else "right")
    look = f"at {options.evaluations}"
    for rule, runs in by_rule.items():
        common = sorted(runs.keys() & by_rule["base"].keys())
        if not common:
            continue
        pairs = {
            name: np.array(
                [
                    [float(of[key][column]) for of in (runs, by_rule["base"]) for column in ("cumulative", look)]
                    for key in common
                    if key[0] == name
                ]
            )
            for name in sorted({key[0] for key in common})
        }
        ratio, low, high = ratio_of(list(pairs.values()))
        simple = np.array([values.mean(0)[[1, 3]] for values in pairs.values()]).mean(0)
        stuck = sum((values[:, [1, 3]] > STUCK).sum(0) for values in pairs.values())
        shown.add_row(
            *(rule, str(len(common)), str(len(pairs)), f"{ratio:.2f}", f"{low:.2f} … {high:.2f}"),
            *(f"{1e3 * simple[0]:.1f}", f"{1e3 * simple[1]:.1f}", str(stuck[0]), str(stuck[1])),
        )
    Console(width=160).print(shown)


def ratio_of(pairs: list[np.ndarray], draws: int = 2000) -> tuple[float, float, float]:
    """Geometric mean over problems of the ratio of mean cumulative regrets, and its 95 % interval."""
    rng = np.random.default_rng(0)

    def once(groups: list[np.ndarray]) -> float:
        return float(np.exp(np.mean([np.log(g[:, 0].mean() / g[:, 2].mean()) for g in groups])))

    drawn = []
    for _ in range(draws):
        groups = [pairs[i] for i in rng.integers(len(pairs), size=len(pairs))]
        drawn.append(once([g[rng.integers(len(g), size=len(g))] for g in groups]))
    return once(pairs), *np.quantile(drawn, [0.025, 0.975])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(required=True)
    runner, shower = actions.add_parser("run"), actions.add_parser("table")
    runner.add_argument("rules", help=f"of {', '.join(RULES)}")
    runner.add_argument("--seeds", default="0:5")
    runner.add_argument("--problems", default="all")
    runner.add_argument("--out", type=Path, default=RESULTS)
    shower.add_argument("out", type=Path, nargs="?", default=RESULTS)
    for action, call in ((runner, run_all), (shower, table)):
        action.add_argument("--noise", type=float, default=0.0, help="of the outcomes, as a share of the range")
        action.add_argument("--goal", default="expected")
        action.add_argument("--evaluations", type=int, default=100)
        action.set_defaults(call=call)
    options = parser.parse_args()
    options.call(options)


if __name__ == "__main__":
    main()
