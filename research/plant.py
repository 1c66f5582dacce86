"""What a plant asks next, measured: tolerances, policies, noise that varies, earlier studies.

    nice -n 15 python research/plant.py tolerance --out RUNS [--seeds 10]
    nice -n 15 python research/plant.py policy --out RUNS [--seeds 5]
    python research/plant.py table RUNS                  # or research/results/plant.jsonl

Every run is a line of RUNS; what is there is not run again.

tolerance   three problems with a narrow, high peak and a broad, lower one: the share of runs that recommend the broad
            one, and the regret under the tolerance beside that of an optimizer that knows of none (the same seeds)
policy      four problems whose context is known before each choice: the regret of the policy, E_c of the best f(x, c)
            less f at the policy's design, after 80 evaluations, beside a BoTorch GP that holds the context as a fixed
            feature, with the upper confidence bound of NUBO's ENVBO (Diessner, Wilson and Whalley 2024) or log noisy
            expected improvement; the same contexts and first designs
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import edrbo
from edrbo.bench import problems
from edrbo.streams import stream

Array = NDArray[np.float64]
Record = dict[str, Any]

# ---------------------------------------------------------------- tolerance

NORMAL = np.random.default_rng(7).standard_normal((20_000, 2))  # of what comes out, for the truth


def line(z: Array, c: Array) -> Array:
    """A broad hill at 0.2 and a narrow one at 0.76."""
    x = z[..., 0]
    return np.exp(-(((x - 0.2) / 0.2) ** 2)) + 1.5 * np.exp(-(((x - 0.76) / 0.06) ** 2))


def plane(z: Array, c: Array) -> Array:
    """The same in two settings, both with tolerances."""
    broad = np.exp(-(((z - [0.3, 0.65]) / 0.3) ** 2).sum(-1))
    return broad + 1.5 * np.exp(-(((z - [0.75, 0.3]) / 0.13) ** 2).sum(-1))


def day(z: Array, c: Array) -> Array:
    """Both hills move with the context; the narrow one is a ridge in the second setting."""
    x, w = z[..., 0], z[..., 1]
    broad = np.exp(-(((x - 0.3) / 0.25) ** 2) - ((w - 0.4 - 0.3 * c[..., 0]) / 0.4) ** 2)
    return broad + 1.4 * np.exp(-(((x - 0.8) / 0.06) ** 2) - ((w - 0.6 - 0.2 * c[..., 0]) / 0.5) ** 2)


Tolerant = tuple[Callable[[Array, Array], Array], tuple[float, ...], int, int]
TOLERANT: dict[str, Tolerant] = {  # f, the standard deviation of each setting, contexts, evaluations
    "line": (line, (0.08,), 0, 25),
    "plane": (plane, (0.1, 0.1), 0, 40),
    "day": (day, (0.08, 0.0), 1, 50),
}


def comes_out(z: Array, sd: Array, noise: Array) -> Array:
    return np.clip(z + sd * noise, 0.0, 1.0)


def under_tolerance(name: str) -> Callable[[Array], Array]:
    """The mean of f over what comes out and over contexts, of designs (N × d)."""
    f, sd, contexts, _ = TOLERANT[name]
    noise = NORMAL[:4000, : len(sd)]
    c = (np.arange(len(noise)) + 0.5)[:, None] / len(noise) if contexts else np.zeros((len(noise), 1))
    c = np.random.default_rng(1).permutation(c)
    return lambda z: np.array([f(comes_out(one, np.array(sd), noise), c).mean() for one in np.atleast_2d(z)])


def tolerance(name: str, seed: int, rule: str) -> Record:
    f, sd, contexts, evaluations = TOLERANT[name]
    draw = stream(seed, f"tolerance {name}")
    names = ["x", "w"][: len(sd)]
    known = {
        n: edrbo.Real(0, 1, tolerance=s) if s and rule == "told" else (0, 1) for n, s in zip(names, sd, strict=True)
    }
    optimizer = edrbo.Optimizer(
        edrbo.Space(known, {"c": (0, 1)} if contexts else {}), seed=seed, aim="identify", evaluations=evaluations
    )
    for _ in range(evaluations):
        suggestion = optimizer.ask()
        z = comes_out(np.array([suggestion[n] for n in names]), np.array(sd), draw.standard_normal(len(sd)))
        c = draw.random(1)
        value = float(f(z, c)) + 0.02 * draw.standard_normal()
        out = dict(zip(names, z.tolist(), strict=True))
        optimizer.tell(suggestion, {"c": float(c[0])} if contexts else None, value, design=out)
    answer = np.array([optimizer.recommend().design[n] for n in names])
    truth = under_tolerance(name)
    grid = np.random.default_rng(0).random((3000, len(sd)))
    values = truth(grid)
    best = grid[values.argmax()]
    near = np.clip(best + 0.02 * np.random.default_rng(1).standard_normal((200, len(sd))), 0, 1)
    top = max(float(values.max()), float(truth(near).max()))
    value = float(truth(answer)[0])
    return {"regret": max(0.0, top - value), "broad": bool(answer[0] < 0.55), "design": answer.tolist()}


# ---------------------------------------------------------------- policy

POLICIES = ("six-hump-camel", "modified-branin", "hartmann", "complicated-hartmann")
EVALUATIONS, INITIAL, TESTED = 80, 5, 32


class Own:
    def __init__(self, d_x: int, d_c: int, seed: int) -> None:
        self.names = [f"x{k}" for k in range(d_x)], [f"c{k}" for k in range(d_c)]
        space = edrbo.Space({n: (0, 1) for n in self.names[0]}, {n: (0, 1) for n in self.names[1]})
        self.optimizer = edrbo.Optimizer(space, seed=seed, initial=INITIAL)

    def _context(self, c: Array) -> dict[str, float]:
        return dict(zip(self.names[1], c.tolist(), strict=True))

    def ask(self, c: Array) -> Array:
        self.asked = self.optimizer.ask(context=self._context(c))
        return np.array([self.asked[n] for n in self.names[0]])

    def tell(self, x: Array, c: Array, y: float) -> None:
        self.optimizer.tell(self.asked, self._context(c), y)

    def policy(self, c: Array) -> Array:
        found = self.optimizer.policy(contexts=[self._context(row) for row in c])
        return np.array([[row.design[n] for n in self.names[0]] for row in found.rows])


class FixedFeatures:
    """BoTorch's parts as its users put them together: a ``SingleTaskGP`` on (x, c), the context a fixed feature."""

    def __init__(self, d_x: int, d_c: int, seed: int, rule: str) -> None:
        import torch

        torch.manual_seed(seed)
        self.torch, self.rule, self.d_x, self.d_c = torch, rule, d_x, d_c
        # the same first designs as edrbo's, which do not hang on anything that was told
        first = Own(d_x, 0, seed).optimizer.ask(INITIAL)
        self.first = [np.array([s[f"x{k}"] for k in range(d_x)]) for s in first]
        self.rows: list[Array] = []
        self.values: list[float] = []

    def model(self) -> Any:
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from gpytorch.mlls import ExactMarginalLogLikelihood

        x = self.torch.tensor(np.array(self.rows))
        model = SingleTaskGP(x, self.torch.tensor(self.values).double()[:, None])
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        return model

    def best(self, function: Any, c: Array) -> Array:
        from botorch.optim import optimize_acqf

        d = self.d_x + self.d_c
        ends = self.torch.stack([self.torch.zeros(d), self.torch.ones(d)]).double()
        fixed = {self.d_x + k: float(part) for k, part in enumerate(c)}
        found, _ = optimize_acqf(function, ends, q=1, num_restarts=8, raw_samples=256, fixed_features=fixed)
        return np.asarray(found[0, : self.d_x].numpy())

    def ask(self, c: Array) -> Array:
        from botorch.acquisition import UpperConfidenceBound
        from botorch.acquisition.logei import qLogNoisyExpectedImprovement

        if len(self.rows) < INITIAL:
            return self.first[len(self.rows)]
        model = self.model()
        if self.rule == "envbo":
            return self.best(UpperConfidenceBound(model, beta=1.96**2), c)
        x = self.torch.tensor(np.array(self.rows))
        return self.best(qLogNoisyExpectedImprovement(model, x, prune_baseline=True), c)

    def tell(self, x: Array, c: Array, y: float) -> None:
        self.rows.append(np.concatenate([x, c]))
        self.values.append(y)

    def policy(self, c: Array) -> Array:
        from botorch.acquisition import PosteriorMean

        model = self.model()
        return np.array([self.best(PosteriorMean(model), row) for row in c])


def best_values(problem: Any, c: Array) -> Array:
    """max_x f(x, c) of each context (n × d_c)."""
    from scipy.optimize import minimize

    x = problem.quasi_random(12)
    found = []
    for row in c:
        values = problem.evaluate(x, np.broadcast_to(row, (len(x), len(row))))
        starts = x[np.argsort(-values)[:12]]
        ends = [
            minimize(lambda z, r=row: -float(problem.evaluate(z, r)), s, bounds=[(0, 1)] * problem.d_x) for s in starts
        ]
        found.append(max(-end.fun for end in ends))
    return np.array(found)


def policy(name: str, seed: int, rule: str) -> Record:
    problem = problems.get(name)
    learner: Any = (
        Own(problem.d_x, problem.d_c, seed) if rule == "edrbo" else FixedFeatures(problem.d_x, problem.d_c, seed, rule)
    )
    contexts = problem.sample_contexts(EVALUATIONS, stream(seed, f"policy {name}"))
    for c in contexts:
        x = learner.ask(c)
        learner.tell(x, c, float(problem.evaluate(x, c)))
    tested = problem.sample_contexts(TESTED, stream(10_000, f"policy {name}"))
    gap = best_values(problem, tested) - problem.evaluate(learner.policy(tested), tested)
    return {"regret": float(gap.mean()) / problem.value_range}


# ---------------------------------------------------------------- runs and tables

Trial = Callable[[str, int, str], Record]
TRIALS: dict[str, tuple[Trial, tuple[str, ...], tuple[str, ...], int]] = {
    "tolerance": (tolerance, tuple(TOLERANT), ("told", "untold"), 10),
    "policy": (policy, POLICIES, ("edrbo", "envbo"), 4),
}


def records(path: Path) -> Iterator[Record]:
    if path.exists():
        yield from map(json.loads, path.read_text().splitlines())


def run(kind: str, path: Path, seeds: int | None) -> None:
    trial, names, rules, usual = TRIALS[kind]
    done = {(r["kind"], r["problem"], r["seed"], r["rule"]) for r in records(path)}
    for seed in range(usual if seeds is None else seeds):
        for name in names:
            for rule in rules:
                if (kind, name, seed, rule) in done:
                    continue
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = trial(name, seed, rule)
                record = {"kind": kind, "problem": name, "seed": seed, "rule": rule, **found}
                with path.open("a") as file:
                    file.write(json.dumps(record) + "\n")
                print(record, flush=True)


def table(path: Path) -> None:
    groups: dict[tuple[str, str, str], list[Record]] = defaultdict(list)
    for record in records(path):
        groups[record["kind"], record["problem"], record["rule"]].append(record)
    for (kind, problem, rule), some in sorted(groups.items()):
        keys = [key for key in some[0] if isinstance(some[0][key], float | bool) and key != "seed"]
        cells = []
        for key in keys:
            values = np.array([r[key] for r in some], dtype=float)
            error = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
            cells.append(f"{key} {values.mean():.4f} ± {error:.4f}")
        print(f"{kind:10} {problem:22} {rule:10} {len(some):3} runs  " + "  ".join(cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for kind in TRIALS:
        one = commands.add_parser(kind)
        one.add_argument("--out", type=Path, required=True)
        one.add_argument("--seeds", type=int)
    commands.add_parser("table").add_argument("runs", type=Path)
    given = parser.parse_args()
    act = (
        partial(table, given.runs) if given.command == "table" else partial(run, given.command, given.out, given.seeds)
    )
    act()


if __name__ == "__main__":
    main()
