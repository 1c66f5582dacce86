"""What it is worth to know the cost: regret of the recommendation at equal total cost, with and without.

    python research/cost.py --out research/results/cost.csv

Three problems of the registry that play no part in choosing how costs are followed, each with a cost that rises tenfold
with its first variable and one that falls tenfold; seeds 0–9, with the same contexts, noise and initial designs for
all of

    ignored     nobody says what runs cost
    function    Optimizer(cost="1 + 9 * x0")
    reported        tell(cost=…) after each run, from which the cost is learned

A run that would cost more than is left is not made. Rows are written as they come, and what the file holds is not run
again.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np

import edrbo
from edrbo.bench import problems

PROBLEMS = ("ripples", "noisy-kiln", "coating")
COSTS = {"rising": "1 + 9 * x0", "falling": "10 - 9 * x0"}
ARMS = ("ignored", "function", "reported")
BUDGETS = (50, 100)
SEEDS = 10
LEAST = 1e-4  # of the range of E f, added to regrets before their ratio is taken: less is as good as none
Row = dict[str, str]


def cost_of(which: str, x: float) -> float:
    return 1 + 9 * x if which == "rising" else 10 - 9 * x


def replicate(name: str, which: str, arm: str, seed: int) -> Row:
    problem = problems.get(name)
    designs, contexts = [f"x{k}" for k in range(problem.d_x)], [f"c{k}" for k in range(problem.d_c)]
    space = edrbo.Space(dict.fromkeys(designs, (0, 1)), dict.fromkeys(contexts, (0, 1)))
    optimizer = edrbo.Optimizer(space, seed=seed, cost=COSTS[which] if arm == "function" else None)
    met = problem.sample_contexts(max(BUDGETS), np.random.default_rng([seed, 1]))
    noise = np.random.default_rng([seed, 2])
    spent, regrets = 0.0, dict[int, float]()
    while len(regrets) < len(BUDGETS):
        suggestion, run = optimizer.ask(), len(optimizer)
        x = np.array([suggestion[key] for key in designs])
        cost = cost_of(which, x[0])
        for budget in BUDGETS:
            if budget not in regrets and spent + cost > budget:
                answer = optimizer.recommend().design
                regrets[budget] = float(problem.regret(np.array([answer[key] for key in designs])))
        value = float(problem.observe(x, met[run], noise))
        context = dict(zip(contexts, met[run].tolist(), strict=True))
        optimizer.tell(suggestion, context, value, cost=cost if arm == "reported" else None)
        spent += cost
    shown = {f"regret_{budget}": f"{regret / problem.value_range:.6g}" for budget, regret in regrets.items()}
    return {"problem": name, "cost": which, "arm": arm, "seed": str(seed), "runs": str(run), **shown}


def known(path: Path) -> list[Row]:
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def run(path: Path) -> list[Row]:
    rows = known(path)
    done = {(row["problem"], row["cost"], row["arm"], int(row["seed"])) for row in rows}
    wanted = [(p, c, a, s) for s in range(SEEDS) for p in PROBLEMS for c in COSTS for a in ARMS]
    for one in wanted:
        if one in done:
            continue
        row = replicate(*one)
        with path.open("a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(row), lineterminator="\n")
            if not rows:
                writer.writeheader()
            writer.writerow(row)
        rows.append(row)
    return rows


def summary(rows: list[Row]) -> str:
    """Geometric mean of regret over regret without the cost, how often it is smaller, and its standard error."""
    found = {(row["problem"], row["cost"], row["arm"], row["seed"]): row for row in rows}
    cases = [(p, c) for p in PROBLEMS for c in COSTS]
    lines = []
    for arm in ARMS[1:]:
        every: list[np.ndarray] = []
        for case in cases:
            seeds = [
                str(seed) for seed in range(SEEDS) if all((*case, a, str(seed)) in found for a in (arm, "ignored"))
            ]
            pairs = [(found[*case, arm, seed], found[*case, "ignored", seed]) for seed in seeds]
            logs = np.array([[_log_ratio(one, other, budget) for budget in BUDGETS] for one, other in pairs])
            every.append(logs)
            runs = np.array([[int(one["runs"]), int(other["runs"])] for one, other in pairs]).mean(axis=0)
            lines.append(f"{arm:9} {' '.join(case):20} {_words(logs)}   {runs[0]:.0f} runs, {runs[1]:.0f} without")
        lines.append(f"{arm:9} {'all':20} {_words(np.concatenate(every))}")
    return "\n".join(lines)


def _log_ratio(one: Row, other: Row, budget: int) -> float:
    regrets = [float(row[f"regret_{budget}"]) + LEAST for row in (one, other)]
    return float(np.log(regrets[0] / regrets[1]))


def _words(logs: np.ndarray) -> str:
    error = logs.std(axis=0, ddof=1) / np.sqrt(len(logs))
    parts = zip(BUDGETS, np.exp(logs.mean(axis=0)), (logs < 0).sum(axis=0), error, strict=True)
    count = len(logs)
    return "   ".join(f"at {b}: × {ratio:.2f} (± {se:.2f} in log), better {n}/{count}" for b, ratio, n, se in parts)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("research/results/cost.csv"))
    print(summary(run(parser.parse_args().out)))
