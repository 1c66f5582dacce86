"""Trials of rules for asking, beside the method of the paper on the same seeds and contexts: journal.md.

    OMP_NUM_THREADS=1 python research/trials.py run base,mean-1.5 --seeds 0:5 [--problems all] [--noise 0.05]
        [--goal robust:0.1] [--evaluations 100] [--out RUNS]
    python research/trials.py table [RUNS] [--noise 0.05] [--goal robust:0.1] [--evaluations 100] [--beside base]

Rules are methods made of public parts; the tables also hold runs of rules that reached into the optimizer, which commit
42d7819 has. RUNS is research/results/trials.csv unless reported otherwise; a row is a run, and what is there is not run
again. Regrets are shares of the range of the problem's expected values: ``cumulative`` after the five initial designs
under the mean, ``at 50`` and so on of the recommendation under the goal. Rules are chosen on seeds below 100; seeds 100
to 109 are for confirming.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from arguments import problem_names, seed_range
from kept_runs import add, ratio_of, rows
from rich.console import Console
from rich.progress import track
from rich.table import Table
from trial_models import CONTEXT_DISTRIBUTIONS, SURROGATES

from edrbo import Optimizer
from edrbo.acquisition.methods import Method
from edrbo.acquisition.risk import Expectation
from edrbo.acquisition.scores import UCB, BarycenterUCB
from edrbo.bench import problems
from edrbo.bench.learners.learner import Setup
from edrbo.bench.problems.oracle.goals import goal_regret
from edrbo.bench.problems.oracle.shift import with_noise
from edrbo.contexts.distributions import Empirical
from edrbo.records.goals import parse_goal
from edrbo.streams import stream
from edrbo.surrogate.ensemble import Surrogate
from edrbo.surrogate.warping import WarpedSurrogate

RESULTS = Path(__file__).parent / "results" / "trials.csv"
LOOKS = 50, 100, 200
KEYS = ("rule", "problem", "noise", "goal", "seed", "evaluations")
COLUMNS = (*KEYS, "cumulative", *(f"at {n}" for n in LOOKS), "seconds")
INITIAL = 5
STUCK = 0.05  # of the range below the optimum


@dataclass(frozen=True)
class Boldest(UCB):
    """max over the experts of μ_m + β σ_m."""

    def __call__(self, mean, sd, weights=None):  # type: ignore[no-untyped-def]
        return (mean + self.beta * sd).amax(-2)

    def value_and_slopes(self, mean, sd, weights=None):  # type: ignore[no-untyped-def]
        value, at = (mean + self.beta * sd).max(0, keepdim=True)
        share = torch.zeros_like(mean).scatter_(0, at, 1.0)
        return value[0], share, self.beta * share


def mean(beta: float, radius_weight: float = 0.0) -> BarycenterUCB:
    """Optimism about the expectation itself."""
    return BarycenterUCB(beta, radius_weight=radius_weight, integrated=True)


SCORES: dict[str, UCB] = {
    "base": BarycenterUCB(),
    "radius-1": BarycenterUCB(1.0),
    "half-radius-1": BarycenterUCB(1.0, radius_weight=0.5),
    **{f"plain-{beta:g}": BarycenterUCB(beta, radius_weight=0.0) for beta in (1.0, 1.5)},
    **{f"mean-{beta:g}": mean(beta) for beta in (1.0, 1.25, 1.5, 2.0, 2.5, 3.0)},
    "mean-1.5-half-radius": mean(1.5, 0.7),
    **{f"mean-{beta:g} + radius added": mean(beta, -0.7) for beta in (1.0, 1.5)},
    **{f"boldest-{beta:g}": Boldest(beta, integrated=True) for beta in (1.0, 1.5)},
    "identify": mean(1.5),
    "identify reported": mean(1.5),
}
MODELS = ("warped-", *(f"{name}:" for name in (*SURROGATES, *CONTEXT_DISTRIBUTIONS)))
RULES = f"one of {', '.join(SCORES)}, before which one of {', '.join(MODELS)} may stand"


def method_of(rule: str) -> Method:
    """A score of ``SCORES``; before it may stand one of ``MODELS``, a model or a distribution in place of ours."""
    model = next((name for name in MODELS if rule.startswith(name)), "")
    score = SCORES.get(rule.removeprefix(model))
    if score is None:
        raise SystemExit(
            f"no rule is called {rule!r}: one of {', '.join(SCORES)}, or one of {', '.join(MODELS)} before it"
        )
    surrogate = WarpedSurrogate() if model == "warped-" else SURROGATES.get(model[:-1], Surrogate())
    return Method(surrogate, score, CONTEXT_DISTRIBUTIONS.get(model[:-1], Empirical()), Expectation())


def run(rule: str, name: str, noise: float, goal: str, seed: int, evaluations: int) -> dict[str, object]:
    base = problems.get(name)
    problem = with_noise(base, noise * base.value_range) if noise else base
    contexts = problem.sample_contexts(max(evaluations, 200), stream(seed, "contexts", name))
    space = Setup(problem.d_x, problem.d_c, seed, INITIAL).space
    optimizer = Optimizer(
        space,
        method_of(rule),
        seed=seed,
        initial=INITIAL,
        goal=goal,
        aim="identify" if rule.startswith("identify") else "operate",
        evaluations=evaluations if rule == "identify reported" else None,
    )
    designs, looks, began = [], {}, time.process_time()
    for t in range(evaluations):
        suggestion = optimizer.ask()
        designs.append(np.array(list(suggestion.design.values())))
        y = problem.observe(designs[-1], contexts[t], stream(seed, "observation noise", name, t))
        optimizer.tell(suggestion, contexts[t].tolist(), float(y))
        if t + 1 in LOOKS:
            x = np.array(list(optimizer.recommend().design.values()))
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
    done = {tuple(row[key] for key in KEYS) for row in rows(options.out)}
    wanted = [(r, p, s) for s in options.seeds for p in options.problems for r in options.rules.split(",")]
    left = [
        (rule, name, options.noise, options.goal, seed, options.evaluations)
        for rule, name, seed in wanted
        if (rule, name, str(options.noise), options.goal, str(seed), str(options.evaluations)) not in done
    ]
    for one in track(left, f"{len(left)} runs"):
        add(options.out, COLUMNS, run(*one))


def table(options: argparse.Namespace) -> None:
    """Every rule beside another, by default the method of the paper, on the runs that both have. Ratios are geometric
    means over problems of ratios of means over seeds, intervals of them resample problems, and seeds within them."""
    beside = options.beside
    keys = {"noise": str(options.noise), "goal": options.goal, "evaluations": str(options.evaluations)}
    found = [row for row in rows(options.out) if all(row[key] == value for key, value in keys.items())]
    names = dict.fromkeys([*SCORES, *(row["rule"] for row in found)])
    by_rule = {rule: {(r["problem"], r["seed"]): r for r in found if r["rule"] == rule} for rule in names}
    shown = Table(title=f"noise {options.noise}, goal {options.goal}, {options.evaluations} evaluations")
    heads = ("rule", "runs", "problems", f"cumulative regret to {beside}'s", "95 %", "simple regret, thousandths")
    for heading in (*heads, f"{beside}'s", f"more than {STUCK:.0%} below", f"{beside}'s"):
        shown.add_column(heading, justify="left" if heading == "rule" else "right")
    look = f"at {options.evaluations}"
    for rule, runs in by_rule.items():
        common = sorted(runs.keys() & by_rule[beside].keys())
        if not common:
            continue
        pairs = {
            name: np.array(
                [
                    [float(of[key][column]) for of in (runs, by_rule[beside]) for column in ("cumulative", look)]
                    for key in common
                    if key[0] == name
                ]
            )
            for name in sorted({key[0] for key in common})
        }
        ratio, low, high = ratio_of([values[:, [0, 2]] for values in pairs.values()])
        simple = np.array([values.mean(0)[[1, 3]] for values in pairs.values()]).mean(0)
        stuck = sum((values[:, [1, 3]] > STUCK).sum(0) for values in pairs.values())
        shown.add_row(
            *(rule, str(len(common)), str(len(pairs)), f"{ratio:.2f}", f"{low:.2f} … {high:.2f}"),
            *(f"{1e3 * simple[0]:.1f}", f"{1e3 * simple[1]:.1f}", str(stuck[0]), str(stuck[1])),
        )
    Console(width=160).print(shown)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(required=True)
    runner, shower = actions.add_parser("run"), actions.add_parser("table")
    runner.add_argument(
        "rules", help=f"with commas between: {', '.join(SCORES)}; a model, of {', '.join(MODELS)}, may stand before"
    )
    runner.add_argument("--seeds", type=seed_range, default="0:5")
    runner.add_argument("--problems", type=problem_names, default="all")
    runner.add_argument("--out", type=Path, default=RESULTS)
    shower.add_argument("out", type=Path, nargs="?", default=RESULTS)
    shower.add_argument("--beside", default="base", help="the rule that the others are compared with")
    for action, call in ((runner, run_all), (shower, table)):
        action.add_argument("--noise", type=float, default=0.0, help="of the outcomes, as a share of the range")
        action.add_argument("--goal", default="expected")
        action.add_argument("--evaluations", type=int, default=100)
        action.set_defaults(call=call)
    options = parser.parse_args()
    options.call(options)


if __name__ == "__main__":
    main()
