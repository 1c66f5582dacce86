"""The best designs of the bbob problems, by a long search: src/edrbo/bench/problems/bbob/reference.csv.

    OMP_NUM_THREADS=1 nice -n 15 python research/bbob_reference.py run FOUND.csv [--part 0/1]
    python research/bbob_reference.py join FOUND.csv ...      writes reference.csv

A row is a problem; what FOUND.csv holds is not searched again, so a search that was stopped goes on. E f is looked at
in 4,096 quasi-random designs (65,536 where it is a sum of few terms) and by differential evolution, under a coarse
rule; from the best of them, and from the designs of the best input of f, one climbs by gradients where there are any
and by the simplex, then from the best of these under the rule that counts, and from the best of all twice anew; where E
f has steps or fine waves, by steps of all sizes. ``accuracy`` is the largest difference of E f from that of a rule
eight times as fine, over x* and seven random designs, as a share of the range.
"""

from __future__ import annotations

import argparse
import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
from kept_runs import add, rows

from edrbo.bench.problems import bbob
from edrbo.bench.problems.bbob import FINE, ROUGH, Function, Member, members, problem_of
from edrbo.bench.problems.oracle.distributions import Product
from edrbo.bench.problems.oracle.maximum import evolve, polish, quasi_random_designs
from edrbo.bench.problems.problem import Problem, in_chunks

REFERENCE = Path(bbob.__file__).with_name("reference.csv")
COLUMNS = ("problem", "x_star", "optimum", "lowest", "median", "accuracy")
SCATTERED, ROUNDS, STEPS = 6, 120, 256
COARSE = 16, 8  # panels and nodes a panel
ENDS, POPULATIONS, AMONG = 4, (80, 160), 10
EFFORTS = {False: (12, 12), True: (16, 96)}  # quasi-random designs as a power of two, starts; where E f is a short sum


def average(function: Function, context_distribution: Product, x: np.ndarray, rule: tuple[int, int]) -> np.ndarray:
    """E f (n,) by a rule of so many panels and nodes a panel."""
    nodes, weights = context_distribution.quadrature((), *rule)
    return in_chunks(lambda part: function(part[:, None, :], nodes) @ weights, x, len(weights))


def search(member: Member) -> dict[str, object]:
    problem = problem_of(member)
    searched = coarse(problem, member)
    known = member.function.best_input()[: member.d_x]
    size, starts = EFFORTS[member.number in ROUGH]
    designs = quasi_random_designs(member.d_x, size)
    best = designs[np.argsort(-searched.expected(designs), kind="stable")[:starts]]
    evolved = [evolve(searched.expected, member.d_x, population) for population in POPULATIONS]
    found = []
    for start in (known, *evolved, *best):
        found.append(polish(searched.expected, climb(searched, member, start), 60 * member.d_x, size=0.02))
    found.sort(key=lambda one: -one[1])
    ends = [polish(problem.expected, x, 60 * member.d_x, size=0.01) for x, _ in found[:ENDS]]
    x, _ = max(ends, key=lambda one: one[1])
    for size in (0.02, 1e-3):
        x, _ = polish(problem.expected, climb(problem, member, x), 100 * member.d_x, size=size)
    if member.number in ROUGH:
        x = max(
            (scatter(problem, start) for start in (x, *(end for end, _ in found[:SCATTERED]))), key=problem.expected
        )
    x, among = np.array([float(f"{part:.10g}") for part in x]), problem.expected(problem.quasi_random(AMONG))
    optimum = float(problem.expected(x))
    numbers = (optimum, among.min(), np.median(among), accuracy(problem, member, x, optimum - among.min()))
    texts = [f"{number:.12g}" for number in numbers[:3]] + [f"{numbers[3]:.1e}"]
    return dict(zip(COLUMNS, (member.name, " ".join(map(str, x)), *texts), strict=True))


def scatter(problem: Problem, start: np.ndarray) -> np.ndarray:
    """The best found by steps of all sizes from the best so far: a simplex stands still on a step of f."""
    best, value = start, float(problem.expected(start))
    rng = np.random.default_rng(1)
    for _ in range(ROUNDS):
        sizes = 10 ** rng.uniform(-4, -0.5, (STEPS, 1))
        moved = rng.random((STEPS, len(start))) < 0.7
        designs = np.clip(best + sizes * moved * rng.standard_normal((STEPS, len(start))), 0, 1)
        values = problem.expected(designs)
        if values.max() > value:
            best, value = designs[values.argmax()], float(values.max())
    return best


def coarse(problem: Problem, member: Member) -> Problem:
    return replace(
        problem, expectation=lambda x, context_distribution: average(member.function, context_distribution, x, COARSE)
    )


def climb(problem: Problem, member: Member, start: np.ndarray) -> np.ndarray:
    """Up the gradient by L-BFGS-B, where f has one."""
    from scipy.optimize import minimize

    if member.number in ROUGH:
        return start

    def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = problem.expected_and_gradient(x)
        return -float(value), -gradient

    end = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(0.0, 1.0)] * member.d_x, options={"maxiter": 40})
    return np.asarray(end.x if -end.fun > float(problem.expected(start)) else start)


def accuracy(problem: Problem, member: Member, x: np.ndarray, unit: float) -> float:
    designs = np.vstack([x, np.random.default_rng(7).random((7, member.d_x))])
    errors = problem.expected(designs) - average(
        member.function, member.context_distribution, designs, (8 * FINE[0], FINE[1])
    )
    return float(np.abs(errors).max() / unit)


def run(file: Path, part: str) -> None:
    index, count = map(int, part.split("/"))
    done = {row["problem"] for row in rows(file)}
    for member in members()[index::count]:
        if member.name not in done:
            add(file, COLUMNS, search(member))
            print(member.name, flush=True)


def join(files: list[Path]) -> None:
    found = {row["problem"]: row for file in files for row in rows(file)}
    with REFERENCE.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(found[member.name] for member in members())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    running.add_argument("found", type=Path)
    running.add_argument("--part", default="0/1", help="i/n: every n-th problem, beginning with the i-th")
    commands.add_parser("join").add_argument("found", type=Path, nargs="+")
    options = parser.parse_args()
    if options.command == "run":
        run(options.found, options.part)
    else:
        join(options.found)


if __name__ == "__main__":
    main()
