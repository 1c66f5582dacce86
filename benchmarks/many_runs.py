"""Whether a sparse model is as good as the exact one, and whether regret goes on falling at ten thousand runs.

many_runs.py run     in benchmarks/results/many-runs.csv; what is there is not run again
many_runs.py table   the rows of docs/speed.md

Five problems with noise of 5 % of the range of outcomes. A history stands for a year of production: a third of the
designs anywhere, the others around a good one, nearer and nearer. On one history of 1,500 runs the exact model and the
sparse one recommend a design, predict 64 designs with intervals of their means, and make the next suggestions, each
of which is evaluated and told. Then the sparse one does so with 1,000 and 10,000 runs.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

import edrbo
from edrbo.acquisition.methods import Method, get_method
from edrbo.bench import problems
from edrbo.bench.problems.problem import Problem
from edrbo.optimizer.outcome_model import StoredFit
from edrbo.surrogate.ensemble import fit_sizes

Array = NDArray[np.float64]

RESULTS = Path(__file__).parent / "results" / "many-runs.csv"
PROBLEMS = ("hartmann", "six-hump-camel", "modified-branin", "ackley", "wing")
NOISE = 0.05  # of the range of outcomes
PREDICTED = 64  # designs
NEVER = 10**9
COLUMNS = (
    "problem",
    "model",
    "n",
    "seed",
    "asks",
    "range",
    "recommended",
    "inside",
    "regret",
    "ask",
    "left_out",
    "points",
)


@dataclass(frozen=True)
class Case:
    problem: str
    model: str  # "exact" or "sparse"
    n: int
    seed: int
    asks: int


def cases(seeds: int, asks: int) -> list[Case]:
    found = []
    for seed in range(seeds):
        for name in PROBLEMS:
            found += [Case(name, model, 1500, seed, asks) for model in ("sparse", "exact")]
    return found + [Case(name, "sparse", n, 0, asks) for name in PROBLEMS for n in (1000, 10_000)]


def noisy(name: str) -> tuple[Problem, float]:
    """The problem with noise, and the range of its means."""
    problem, random = problems.get(name), np.random.default_rng(0)
    designs = problem.quasi_random(8)
    y = problem.evaluate(designs, problem.sample_contexts(len(designs), random))
    width = problem.optimum - float(problem.expected(designs).min())
    return replace(problem, noise_sd=NOISE * float(np.ptp(y))), width


def history(problem: Problem, n: int, seed: int) -> tuple[Array, Array, Array]:
    random = np.random.default_rng([seed, 7])
    x = random.random((n, problem.d_x))
    near = random.random(n) < 2.0 / 3.0
    reach = 0.3 * 10.0 ** (-1.5 * np.arange(n) / n)
    around = problem.x_star + 0.1 * random.standard_normal(problem.d_x)  # good, and not the best
    x[near] = np.clip(around + reach[near, None] * random.standard_normal((int(near.sum()), problem.d_x)), 0.0, 1.0)
    c = problem.sample_contexts(n, random)
    return x, c, problem.observe(x, c, random)


def method_of(model: str) -> Method:
    method = get_method("edrbo")
    return replace(method, surrogate=replace(method.surrogate, sparse_from=NEVER)) if model == "exact" else method


def optimizer_of(problem: Problem, case: Case) -> edrbo.Optimizer:
    space = edrbo.Space(
        {f"x{i}": (0.0, 1.0) for i in range(problem.d_x)}, {f"c{k}": (0.0, 1.0) for k in range(problem.d_c)}
    )
    optimizer = edrbo.Optimizer(space, method_of(case.model), seed=case.seed)
    for x, c, y in zip(*history(problem, case.n, case.seed), strict=True):
        optimizer.tell({f"x{i}": float(v) for i, v in enumerate(x)}, c.tolist(), float(y))
    # as a run that went on would: from a fit, not from all fits since the first
    data, rows = optimizer._main.data(), fit_sizes(case.n)[-1]
    outcomes = torch.from_numpy(data.outcomes[data.training])
    hyper = get_method("edrbo").surrogate.fit_hyperparameters(
        data.inputs(rows)[:rows], outcomes[:rows], None, start=None, cold=True
    )
    zeros = torch.zeros_like(hyper.noise_variance)
    return edrbo.Optimizer.of(optimizer.state, StoredFit(rows, replace(hyper, mean=zeros), rows, data.digest(rows)))


def run_case(case: Case) -> dict[str, object]:
    problem, width = noisy(case.problem)
    optimizer, random = optimizer_of(problem, case), np.random.default_rng([case.seed, case.n, 11])
    found = optimizer.recommend()
    best = np.array(list(found.design.values()))
    some = np.random.default_rng(3)
    spread = np.clip(best + 0.2 * some.standard_normal((PREDICTED // 2, problem.d_x)), 0.0, 1.0)
    designs = np.concatenate([spread, problem.quasi_random(5)])
    predicted = optimizer.predict([{f"x{i}": float(v) for i, v in enumerate(x)} for x in designs])
    truth = problem.expected(designs)
    inside = float(np.mean((predicted.lower <= truth) & (truth <= predicted.upper)))
    regret, seconds = [], []
    for _ in range(case.asks):
        start = time.process_time()
        suggestion = optimizer.ask()
        seconds.append(time.process_time() - start)
        x = np.array(list(suggestion.design.values()))
        c = problem.sample_contexts(1, random)
        optimizer.tell(suggestion, c[0].tolist(), float(problem.observe(x[None], c, random)[0]))
        regret.append(float(problem.optimum - problem.expected(x)))
    found_by = optimizer.model.approximation if optimizer.model is not None else None
    return {
        "problem": case.problem,
        "model": case.model,
        "n": case.n,
        "seed": case.seed,
        "asks": case.asks,
        "range": f"{width:.6g}",
        "recommended": f"{float(problem.optimum - problem.expected(best)) / width:.6g}",
        "inside": f"{inside:.4g}",
        "regret": f"{np.mean(regret) / width:.6g}",
        "ask": f"{np.mean(seconds):.4g}",
        "left_out": "" if found_by is None else f"{found_by.left_out:.3g}",
        "points": "" if found_by is None else found_by.points,
    }


def rows() -> list[dict[str, str]]:
    if not RESULTS.exists():
        return []
    with RESULTS.open(newline="") as file:
        return list(csv.DictReader(file))


def run(seeds: int, asks: int) -> None:
    warnings.simplefilter("ignore", edrbo.errors.ImplausibleWarning)
    torch.set_num_threads(1)
    done = {(row["problem"], row["model"], row["n"], row["seed"]) for row in rows()}
    for case in cases(seeds, asks):
        if (case.problem, case.model, str(case.n), str(case.seed)) in done:
            continue
        row, new = run_case(case), not RESULTS.exists()
        with RESULTS.open("a", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            if new:
                writer.writeheader()
            writer.writerow(row)
        print(row, flush=True)


def table() -> list[str]:
    lines = [f"| {' | '.join(COLUMNS)} |", "|" + " --- |" * len(COLUMNS)]
    return lines + [f"| {' | '.join(row[name] for name in COLUMNS)} |" for row in rows()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--asks", type=int, default=100, help="suggestions after the recommendation")
    arguments = parser.parse_args()
    if arguments.what == "run":
        run(arguments.seeds, arguments.asks)
    print("\n".join(table()))


if __name__ == "__main__":
    main()
