"""Trials of rules for asking, beside the method of the paper on the same seeds and contexts: docs/why.md, "Journal".

    OMP_NUM_THREADS=1 python benchmarks/trials.py run base,mean-1.5 --seeds 0:5 [--problems all] [--noise 0.05]
        [--goal robust:0.1] [--evaluations 100] [--out RUNS]
    python benchmarks/trials.py table [RUNS] [--noise 0.05] [--goal robust:0.1] [--evaluations 100] [--beside base]

RUNS is benchmarks/results/trials.csv unless told otherwise; a row is a run, and what is there is not run again. Regrets
are shares of the range of the problem's expected values: ``cumulative`` after the five initial designs under the mean,
``at 50`` and so on of the recommendation under the goal. Rules are chosen on seeds below 100; seeds 100 to 109 are for
confirming.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from arguments import problem_names, seed_range
from kept_runs import add, ratio_of, rows
from rich.console import Console
from rich.progress import track
from rich.table import Table
from trial_identify import in_words, is_told, overrides, rule_of, set_looks
from trial_models import LAWS, SURROGATES
from trial_rules import INITIAL, RULES, Rule

from edrbo import Optimizer, Space
from edrbo.acquisition.functional import Expectation
from edrbo.acquisition.methods import Method, get_method
from edrbo.acquisition.score import BarycenterUCB
from edrbo.bench import problems
from edrbo.bench.problems.oracle.goals import goal_regret
from edrbo.bench.problems.oracle.shift import with_noise
from edrbo.context.laws import Empirical
from edrbo.optimizer import exploring
from edrbo.records.goals import parse_goal
from edrbo.streams import stream
from edrbo.surrogate.ensemble import Surrogate

RESULTS = Path(__file__).parent / "results" / "trials.csv"
LOOKS = 50, 100, 200
KEYS = ("rule", "problem", "noise", "goal", "seed", "evaluations")
COLUMNS = (*KEYS, "cumulative", *(f"at {n}" for n in LOOKS), "seconds")
STUCK = 0.05  # of the range below the optimum


class Trial(Optimizer):
    rule: Rule

    def _best(self, belief, *rest):  # type: ignore[no-untyped-def]
        found = type(self).rule(self, belief)
        return found if isinstance(found, np.ndarray) else super()._best(found, *rest)


def method_of(rule: str) -> Method:
    model, colon, _ = rule.partition(":")
    if colon:
        surrogate, law = SURROGATES.get(model, Surrogate()), LAWS.get(model, Empirical())
        return Method(surrogate, BarycenterUCB(), law, Expectation())
    if in_words(rule):
        return get_method("edrbo-mean")
    return get_method("edrbo-warped" if rule.startswith("warped") else "edrbo")


def run(rule: str, name: str, noise: float, goal: str, seed: int, evaluations: int) -> dict[str, object]:
    base = problems.get(name)
    problem = with_noise(base, noise * base.value_range) if noise else base
    contexts = problem.sample_contexts(max(evaluations, 200), stream(seed, "contexts", name))
    space = Space(
        design={f"x{j + 1}": (0.0, 1.0) for j in range(problem.d_x)},
        context={f"c{k + 1}": (0.0, 1.0) for k in range(problem.d_c)},
    )
    choices = {"aim": "identify"} if rule.startswith("identify") else {}
    set_looks(rule)
    if rule in ("identify-2", "identify-4"):
        exploring.RATE = float(rule[-1])
    if is_told(rule):
        choices["evaluations"] = evaluations  # type: ignore[assignment]
    chosen = rule_of(rule, evaluations) if in_words(rule) else RULES[rule]
    optimizer = type("Trial", (Trial,), {"rule": staticmethod(chosen), **overrides(rule)})(
        space,
        method_of(rule),
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
    names = [*RULES, *dict.fromkeys(row["rule"] for row in found if in_words(row["rule"]))]
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
    runner.add_argument("rules", help=f"of {', '.join(RULES)}; or in words, as trial_identify.py says")
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
