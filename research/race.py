"""A race of rules for asking, with power: paired runs, an interval that may be looked at any time, shares of 250 runs.

    nice -n 15 python research/race.py run edrbo-mean,mine --suite hard --out RACE [--plugin mine.py] [--workers 2]
    python research/race.py table RACE --suite hard             # or a kept runs.jsonl.gz

The first rule is the one that the others have to beat. Rules are methods of ``edrbo bench run``, or of a plugin of it.

    hard       six problems on which runs end in local optima, 20 fresh seeds, 100 evaluations
    hills      two of these and portfolio-normal, where the model itself knows of a second hill: a cheap pilot
    choose     the half of the bbob family on which rules are chosen: 36 problems, seven seeds
    confirm    the other half: to be run once, with the rule that was chosen
    noisy      the choosing half of the noisy family: 36 problems, seven seeds

All rules of a seed see the same first designs, contexts and noise. A unit is what counts as one draw: a seed with all
problems in ``hard``, a problem with all its seeds in the others. Its value is the mean over problems of the logarithm
of a rule's cumulative regret to that of the first rule (after the initial designs, summed over the unit's seeds); more
than fourfold counts as fourfold. After each unit a confidence sequence for the mean of these values is looked at, and
**a rule ends when it excludes being better**. The sequence is that of betting (Waudby-Smith and Ramdas, "Estimating
means of bounded random variables by betting", JRSS B 2024): it holds at all times at once, whatever the distribution,
so looking costs nothing.

RACE/runs.jsonl gets a line a run, in shares of the range of E f: ``cumulative``, the regret of the recommendation
``at`` 25, 50, 100, 200 evaluations, and the CPU seconds of the method. What is there is not run again: stop it at any
time, a run that was not finished is lost and made anew. Each worker computes with one thread.

``table`` shows for each rule the cumulative regret beside the first rule's (geometric mean over problems of ratios of
means over seeds, the interval resampling problems, and seeds within them) and the verdict of the confidence sequence;
the share of runs that end more than 1, 2, 3 and 5 % of the range below the best, with a verdict only from 250 paired
runs on (McNemar's exact test); the mean regret on the way; CPU seconds a run.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from itertools import groupby
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from goals_evidence import code
from kept_runs import ratio_of
from rich.console import Console
from rich.table import Table
from scipy.stats import binomtest

from edrbo.bench import problems
from edrbo.bench.learners.learner import Setup
from edrbo.bench.run.execute import sole_writer
from edrbo.bench.run.plugin import Plugin, make_learner
from edrbo.streams import stream

HARD = ("complicated-hartmann", "beacons", "ackley", "two-seasons", "modified-branin", "noisy-kiln")
HILLS = ("portfolio-normal", "modified-branin", "complicated-hartmann")
HARD_SEEDS, FAMILY_SEEDS, FIRST_SEED = 20, 7, 1000  # seeds from 1000 on: no rule was ever chosen on them
EVALUATIONS, INITIAL = 100, 5
LOOKS = (25, 50, 100, 200)
SHARES = (0.01, 0.02, 0.03, 0.05)  # of the range: a run that ends more than so much below the best
FEWEST_RUNS = 250  # paired, before anything is said of shares: 8.8 % and 3 % are told apart by 258
LEVEL = 0.05
LIMIT = math.log(4.0)  # of the values of units
GRID, LARGEST_BET, FIRST_VARIANCE = 1001, 0.9, 0.01  # of the confidence sequence, on [0, 1]
FLOOR = 1e-6  # of the range: cumulative regrets below it are as good as none

Run = dict[str, Any]
Key = tuple[str, str, int]  # rule, problem, seed


@dataclass(frozen=True)
class Suite:
    """Units in the order in which they are run; each is a list of problems and seeds."""

    units: tuple[tuple[tuple[str, int], ...], ...]


def suite_of(name: str, seeds: int | None = None) -> Suite:
    """By name; of several, with commas between, one after the other."""
    if "," in name:
        return Suite(tuple(unit for one in name.split(",") for unit in suite_of(one, seeds).units))
    by_seed = {"hard": HARD, "hills": HILLS}
    count = seeds or (HARD_SEEDS if name in by_seed else FAMILY_SEEDS)
    numbers = range(FIRST_SEED, FIRST_SEED + count)
    if name in by_seed:
        return Suite(tuple(tuple((problem, seed) for problem in by_seed[name]) for seed in numbers))
    if name not in SUITES:
        raise SystemExit(f"no suite is called {name!r}: one of {', '.join(SUITES)}")
    if name == "noisy":
        chosen = set(problems.bbob_names("choose"))
        family = [one for one in problems.bbob_names(noisy=True) if one.removesuffix("-noisy") in chosen]
    else:
        family = problems.bbob_names("choose" if name == "choose" else "confirm")
    order = np.random.default_rng(42).permutation(len(family))  # so that early units are of all functions and sizes
    return Suite(tuple(tuple((family[k], seed) for seed in numbers) for k in order))


SUITES = ("hard", "hills", "choose", "confirm", "noisy")

# -------------------------------------------------------------------- one run


def run(rule: str, name: str, seed: int, evaluations: int, plugin: Plugin | None) -> Run:
    """A pure function of its arguments, but for the seconds."""
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    problem = problems.get(name)
    contexts = problem.sample_contexts(evaluations, stream(seed, "contexts", name))
    setup = Setup(problem.d_x, problem.d_c, seed, INITIAL, design=problem.design, evaluations=evaluations)
    learner = make_learner(rule, setup, plugin)
    designs, regrets, seconds = [], {}, 0.0
    for step, c in enumerate(contexts):
        began = time.process_time()
        x = learner.suggest()
        seconds += time.process_time() - began
        y = float(problem.observe(x, c, stream(seed, "observation noise", name, step)))
        began = time.process_time()
        learner.observe(x, c, y)
        seconds += time.process_time() - began
        designs.append(x)
        if step + 1 in {*LOOKS, evaluations}:
            regrets[str(step + 1)] = short(float(problem.regret(learner.recommend())) / problem.value_range)
    cumulative = float(problem.regret(np.array(designs))[INITIAL:].sum()) / problem.value_range
    return {
        **{"rule": rule, "problem": name, "seed": seed, "evaluations": evaluations},
        **{"cumulative": short(cumulative), "at": regrets, "cpu": short(seconds), "code": code()},
    }


def short(number: float) -> float:
    return float(f"{number:.6g}")


# -------------------------------------------------------------------- what is kept


def read(path: Path) -> list[Run]:
    """All whole lines; a last one that was cut off when the machine stopped is no run."""
    if not path.exists():
        return []
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith(b"\n")]


def keep(path: Path, found: Run) -> None:
    """Append a run; what a cut-off line left goes first."""
    with path.open("ab+") as file:
        size = file.tell()
        file.seek(0)
        whole = file.read().rfind(b"\n") + 1
        if whole != size:
            file.truncate(whole)
        file.write(json.dumps(found).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


# -------------------------------------------------------------------- the test


def confidence_sequence(values: Sequence[float]) -> tuple[float, float]:
    """An interval for the mean of i.i.d. values in ±``LIMIT`` that holds at all numbers of them at once, with 1 −
    ``LEVEL``: the means against which no one, betting on what comes by what came before, has grown rich."""
    means = np.linspace(0.0, 1.0, GRID)
    above, below = np.zeros(GRID), np.zeros(GRID)  # logarithms of what a bet on more, and one on less, has made
    alive, seen, total, squares = np.ones(GRID, dtype=bool), 0, 0.5, FIRST_VARIANCE
    for value in values:
        x = (value + LIMIT) / (2 * LIMIT)
        variance = squares / (seen + 1)
        bet = math.sqrt(2 * math.log(2 / LEVEL) / (variance * (seen + 1) * math.log(seen + 2)))
        with np.errstate(divide="ignore"):
            above += np.log1p(np.minimum(bet, LARGEST_BET / means) * (x - means))
            below += np.log1p(-np.minimum(bet, LARGEST_BET / (1 - means)) * (x - means))
        seen, total = seen + 1, total + x
        squares += (x - total / (seen + 1)) ** 2
        alive &= np.maximum(above, below) < math.log(2 / LEVEL)
    left = np.flatnonzero(alive)
    if not len(left):  # the grid is too coarse for so narrow an interval
        left = np.array([int(np.argmin(np.maximum(above, below)))])
    low, high = (2 * LIMIT * means[left[[0, -1]]] - LIMIT).tolist()
    cell = 2 * LIMIT / (GRID - 1)
    return max(-LIMIT, low - cell), min(LIMIT, high + cell)


def unit_values(suite: Suite, runs: dict[Key, Run], rule: str, first: str) -> list[float]:
    """Of the units, in their order, that both rules have whole, up to the first that they have not."""
    values = []
    for unit in suite.units:
        if not all((one, *place) in runs for one in (rule, first) for place in unit):
            break
        logs = []
        for _, places in groupby(sorted(unit), key=lambda place: place[0]):
            pairs = [[runs[one, *place]["cumulative"] for one in (rule, first)] for place in places]
            mine, other = np.sum(pairs, axis=0) + FLOOR
            logs.append(math.log(mine / other))
        values.append(float(np.clip(np.mean(logs), -LIMIT, LIMIT)))
    return values


def verdict(values: Sequence[float]) -> str:
    low, high = confidence_sequence(values)
    if low > 0:
        return "worse"
    return "better" if high < 0 else "open"


# -------------------------------------------------------------------- the race


def still_wanted(suite: Suite, rules: Sequence[str], runs: dict[Key, Run], busy: Iterable[Key] = ()) -> Iterator[Key]:
    """Runs in their order that are neither there nor being made, of rules that may still be better than the first; of
    the first alone as long as another is in the race."""
    first, taken = rules[0], {*runs, *busy}
    racing = [rule for rule in rules[1:] if verdict(unit_values(suite, runs, rule, first)) != "worse"]
    if len(rules) > 1 and not racing:
        return
    for unit in suite.units:
        for place in unit:
            for rule in (first, *racing):
                if (rule, *place) not in taken:
                    yield (rule, *place)


def race(options: argparse.Namespace) -> None:
    suite, rules = suite_of(options.suite, options.seeds), options.rules.split(",")
    plugin = None if options.plugin is None else Plugin.read(options.plugin)
    for name in dict.fromkeys(place[0] for unit in suite.units[:2] for place in unit):
        problems.get(name)  # what is missing is found out before anything runs
    console, file = Console(), options.out / "runs.jsonl"
    with sole_writer(options.out):
        runs = by_key(read(file), options.evaluations)
        os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))
        with ProcessPoolExecutor(options.workers, get_context("spawn")) as pool:
            busy: dict[Future[Run], Key] = {}
            while True:
                for key in still_wanted(suite, rules, runs, busy.values()):
                    if len(busy) >= options.workers:
                        break
                    busy[pool.submit(run, *key, options.evaluations, plugin)] = key
                if not busy:
                    break
                for done in wait(busy, return_when=FIRST_COMPLETED).done:
                    key = busy.pop(done)
                    runs[key] = done.result()
                    keep(file, runs[key])
                    console.print(f"{' / '.join(map(str, key))}: {runs[key]['cumulative']:.3g}", highlight=False)
    show(options)


def by_key(found: Iterable[Run], evaluations: int) -> dict[Key, Run]:
    return {(one["rule"], one["problem"], one["seed"]): one for one in found if one["evaluations"] == evaluations}


# -------------------------------------------------------------------- the report


def shares_text(mine: Sequence[float], other: Sequence[float]) -> list[str]:
    """Of final regrets, paired: the share above each of ``SHARES``, and from 250 pairs on whether they differ."""
    cells = []
    for bar in SHARES:
        above, beside = np.array(mine) > bar, np.array(other) > bar
        text = f"{above.mean():.1%}"
        only_mine, only_other = int((above & ~beside).sum()), int((~above & beside).sum())
        if len(mine) >= FEWEST_RUNS and only_mine + only_other:
            p = binomtest(only_mine, only_mine + only_other).pvalue
            text += f" (p {p:.2g})" if p < LEVEL else " (same)"
        cells.append(text)
    return cells


def report(suite: Suite, runs: dict[Key, Run], rules: Sequence[str], evaluations: int) -> Table:
    first, places = rules[0], [place for unit in suite.units for place in unit]
    looks = [look for look in sorted({*LOOKS, evaluations}) if look <= evaluations]
    table = Table(title=f"{evaluations} evaluations; regrets in thousandths of the range; beside {first}")
    heads = ["rule", "runs", "problems", "cumulative regret (95 % over problems)", "units", "sequence", "verdict"]
    heads += [f"> {bar:.0%} off" for bar in SHARES] + [f"at {look}" for look in looks] + ["CPU s a run"]
    for head in heads:
        table.add_column(head, justify="left" if head in ("rule", "verdict") else "right")
    for rule in rules:
        common = [place for place in places if (rule, *place) in runs and (first, *place) in runs]
        if not common:
            continue
        names = list(dict.fromkeys(name for name, _ in common))
        cumulative = [
            np.array(
                [
                    [runs[one, *place]["cumulative"] + FLOOR for one in (rule, first)]
                    for place in common
                    if place[0] == name
                ]
            )
            for name in names
        ]
        ratio, low, high = ratio_of(cumulative)
        values = unit_values(suite, runs, rule, first)
        ends = [[runs[one, *place]["at"][str(evaluations)] for place in common] for one in (rule, first)]
        finals = [1e3 * np.mean([runs[rule, *place]["at"][str(look)] for place in common]) for look in looks]
        bounds = [math.exp(bound) for bound in confidence_sequence(values)]
        table.add_row(
            *(rule, str(len(common)), str(len(names)), f"{ratio:.2f} ({low:.2f} … {high:.2f})", str(len(values))),
            "–" if rule == first else f"{bounds[0]:.2f} … {bounds[1]:.2f}",
            "" if rule == first else verdict(values),
            *shares_text(*ends),
            *(f"{final:.1f}" for final in finals),
            f"{np.mean([runs[rule, *place]['cpu'] for place in common]):.1f}",
        )
    if len(places) < FEWEST_RUNS:
        table.caption = f"No verdict about shares from fewer than {FEWEST_RUNS} runs: more --seeds."
    return table


def show(options: argparse.Namespace) -> None:
    found = read(options.out if options.out.is_file() else options.out / "runs.jsonl")
    runs = by_key(found, options.evaluations)
    rules = options.rules.split(",") if options.rules else list(dict.fromkeys(one["rule"] for one in found))
    if not rules:
        raise SystemExit(f"{options.out} holds no runs")
    console = Console(width=220)
    console.print(report(suite_of(options.suite, options.seeds), runs, rules, options.evaluations))
    codes = sorted({one["code"] for one in runs.values()})
    if len(codes) > 1:
        console.print(f"Made by {len(codes)} states of the code: {', '.join(codes)}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    runner, shower = commands.add_parser("run"), commands.add_parser("table")
    runner.add_argument("rules", help="with commas between; the first is the one to beat")
    runner.add_argument("--out", type=Path, required=True)
    runner.add_argument("--plugin", type=Path)
    runner.add_argument("--workers", type=int, default=1, choices=(1, 2))
    shower.add_argument("out", type=Path)
    shower.add_argument("--rules", help="with commas between; by default all, the first run first")
    runner.add_argument("--suite", choices=SUITES, default="hard")
    shower.add_argument("--suite", default="hard", help="with commas between: taken together")
    for command, call in ((runner, race), (shower, show)):
        command.add_argument("--seeds", type=int, help=f"by default {HARD_SEEDS} of hard, {FAMILY_SEEDS} of a family")
        command.add_argument("--evaluations", type=int, default=EVALUATIONS)
        command.set_defaults(call=call)
    options = parser.parse_args()
    options.call(options)


if __name__ == "__main__":
    main()
