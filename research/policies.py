"""Regret of the policy after 80 evaluations with known contexts: edrbo, BoTorch with fixed features, NUBO's ENVBO.

    python research/policies.py --out research/results/policies.csv    # four problems; pip install nubopy for ENVBO

All see the same contexts, the same noise and the same first designs; each context is known before the design is chosen.
The policy of each is the maximizer of its posterior mean at each context of a grid; regret is E_c max_x f(x, c) less
E_c f(x(c), c). ``during`` is the mean regret of the runs after the first designs.

edrbo-identify  edrbo with aim="identify": only the policy in the end counts
botorch    SingleTaskGP on (x, c), LogEI with the context held (``fixed_features``), as its documentation says
envbo      nubo.algorithms.envbo (Diessner, Wilson and Whalley, 2023) and its prediction model, inputs normalized
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
import torch

import edrbo

EVALUATIONS, INITIAL = 80, 8
Array = np.ndarray


@dataclass(frozen=True)
class Problem:
    """f(x, c) on the unit cube (… × d_x, … × d_c), observed with noise."""

    f: Callable[[Array, Array], Array]
    d_x: int
    d_c: int
    noise: float

    def contexts(self) -> Array:
        """A grid that stands for their uniform distribution."""
        axis = (np.arange(25 if self.d_c == 1 else 6) + 0.5) / (25 if self.d_c == 1 else 6)
        return np.stack(np.meshgrid(*[axis] * self.d_c, indexing="ij"), -1).reshape(-1, self.d_c)

    def designs(self) -> Array:
        axis = np.linspace(0, 1, 401 if self.d_x == 1 else 61)
        return np.stack(np.meshgrid(*[axis] * self.d_x, indexing="ij"), -1).reshape(-1, self.d_x)

    def best(self, c: Array) -> float:
        """max_x f(x, c) for one context (d_c)."""
        return float(self.f(self.designs(), c[None]).max())


def track(x: Array, c: Array) -> Array:
    return -((x[..., 0] - 0.2 - 0.6 * c[..., 0] ** 2) ** 2) * 8


def branin(x: Array, c: Array) -> Array:
    a, b = 15 * x[..., 0] - 5, 15 * c[..., 0]
    return -((b - 5.1 / (4 * np.pi**2) * a**2 + 5 / np.pi * a - 6) ** 2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(a)) / 50


def waves(x: Array, c: Array) -> Array:
    return np.sin(6 * x[..., 0] + 3 * c[..., 0]) * (0.5 + c[..., 1]) - (x[..., 0] - 0.5 * c[..., 1]) ** 2


A = np.array([[3.0, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]])
P = 1e-4 * np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]])


def hartmann(x: Array, c: Array) -> Array:
    """Hartmann's function of three variables, the last of which is a context."""
    z = np.concatenate([x, np.broadcast_to(c, (*x.shape[:-1], 1))], axis=-1)
    return (np.array([1.0, 1.2, 3.0, 3.2]) * np.exp(-(A * (z[..., None, :] - P) ** 2).sum(-1))).sum(-1)


PROBLEMS = {
    "track": Problem(track, 1, 1, 0.05),
    "branin": Problem(branin, 1, 1, 0.05),
    "waves": Problem(waves, 1, 2, 0.05),
    "hartmann": Problem(hartmann, 2, 1, 0.05),
}


class Learner(Protocol):
    def suggest(self, c: Array) -> Array: ...
    def observe(self, x: Array, c: Array, y: float) -> None: ...
    def policy(self, contexts: Array) -> Array: ...


class Edrbo:
    aim: Literal["operate", "identify"] = "operate"

    def __init__(self, problem: Problem, seed: int) -> None:
        self.x = [f"x{k}" for k in range(problem.d_x)]
        self.c = [f"c{k}" for k in range(problem.d_c)]
        space = edrbo.Space(dict.fromkeys(self.x, (0, 1)), dict.fromkeys(self.c, (0, 1)))
        self.optimizer = edrbo.Optimizer(space, seed=seed, initial=1, aim=self.aim, evaluations=EVALUATIONS)

    def suggest(self, c: Array) -> Array:
        suggestion = self.optimizer.ask(context=dict(zip(self.c, c.tolist(), strict=True)))
        self.optimizer.cancel(suggestion)  # what is told carries its own design
        return np.array([suggestion[name] for name in self.x])

    def observe(self, x: Array, c: Array, y: float) -> None:
        design, context = dict(zip(self.x, x.tolist(), strict=True)), dict(zip(self.c, c.tolist(), strict=True))
        self.optimizer.tell(design, context, y)

    def policy(self, contexts: Array) -> Array:
        rows = self.optimizer.policy(contexts=[dict(zip(self.c, c.tolist(), strict=True)) for c in contexts]).rows
        return np.array([[row.design[name] for name in self.x] for row in rows])


class Identify(Edrbo):
    aim = "identify"


class Told:
    """What the rivals share: the data, and the policy of the largest mean over a dense grid of designs."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem, self.seed = problem, seed
        self.rows: list[Array] = []
        self.y: list[float] = []

    def observe(self, x: Array, c: Array, y: float) -> None:
        self.rows.append(np.concatenate([x, c]))
        self.y.append(y)

    def mean(self) -> Callable[[torch.Tensor], torch.Tensor]:
        raise NotImplementedError

    def policy(self, contexts: Array) -> Array:
        designs, mean, found = self.problem.designs(), self.mean(), []
        for c in contexts:
            points = np.concatenate([designs, np.broadcast_to(c, (len(designs), len(c)))], axis=1)
            found.append(designs[int(mean(torch.from_numpy(points)).argmax())])
        return np.array(found)


class Botorch(Told):
    def suggest(self, c: Array) -> Array:
        from botorch.acquisition import LogExpectedImprovement
        from botorch.optim import optimize_acqf

        d = self.problem.d_x + self.problem.d_c
        held = {self.problem.d_x + k: float(value) for k, value in enumerate(c)}
        acquisition = LogExpectedImprovement(self.model(), best_f=max(self.y))
        bounds = torch.tensor([[0.0], [1.0]], dtype=torch.float64).expand(2, d)
        torch.manual_seed(1000 * self.seed + len(self.y))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found, _ = optimize_acqf(acquisition, bounds, q=1, num_restarts=8, raw_samples=128, fixed_features=held)
        return found[0, : self.problem.d_x].numpy()

    def model(self):
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from botorch.models.transforms.outcome import Standardize
        from gpytorch.mlls import ExactMarginalLogLikelihood

        x, y = torch.from_numpy(np.stack(self.rows)), torch.tensor(self.y, dtype=torch.float64)[:, None]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = SingleTaskGP(x, y, outcome_transform=Standardize(m=1))
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        return model.eval()

    def mean(self) -> Callable[[torch.Tensor], torch.Tensor]:
        model = self.model()
        return lambda points: model.posterior(points).mean.detach()[:, 0]


@contextmanager
def double_precision() -> Iterator[None]:
    """NUBO draws candidates in double precision and makes its model in the default one."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


class Envbo(Told):
    def suggest(self, c: Array) -> Array:
        from nubo.algorithms import envbo

        torch.manual_seed(1000 * self.seed + len(self.y))
        np.random.seed(1000 * self.seed + len(self.y))  # noqa: NPY002 (NUBO draws from it)
        d_x, d_c = self.problem.d_x, self.problem.d_c
        with warnings.catch_warnings(), double_precision():
            warnings.simplefilter("ignore")
            bounds = torch.tensor([[0.0] * (d_x + d_c), [1.0] * (d_x + d_c)])
            x, y = torch.tensor(np.stack(self.rows)), torch.tensor(self.y)
            found = envbo(x, y, list(range(d_x, d_x + d_c)), c.tolist(), bounds, standardise_y=True, num_starts=5)
        return np.clip(found[0, :d_x].numpy().astype(float), 0, 1)

    def mean(self) -> Callable[[torch.Tensor], torch.Tensor]:
        from gpytorch.likelihoods import GaussianLikelihood
        from nubo.models import GaussianProcess, fit_gp

        with warnings.catch_warnings(), double_precision():
            warnings.simplefilter("ignore")
            x, y = torch.tensor(np.stack(self.rows)), torch.tensor(self.y)
            y = (y - y.mean()) / y.std()
            likelihood = GaussianLikelihood()
            model = GaussianProcess(x, y, likelihood)
            fit_gp(x, y, model, likelihood)
            model.eval()
        return lambda points: model(points).mean.detach()


LEARNERS: dict[str, Callable[[Problem, int], Learner]] = {
    "edrbo": Edrbo,
    "edrbo-identify": Identify,
    "botorch": Botorch,
    "envbo": Envbo,
}


def run(name: str, problem: Problem, seed: int, evaluations: int) -> dict[str, float]:
    draw = np.random.default_rng([38, 2, seed])
    contexts, noise = draw.random((evaluations, problem.d_c)), draw.standard_normal(evaluations)
    first = draw.random((INITIAL, problem.d_x))
    learner, during = LEARNERS[name](problem, seed), []
    for k, c in enumerate(contexts):
        x = first[k] if k < INITIAL else learner.suggest(c)
        value = float(problem.f(x[None], c[None])[0])
        if k >= INITIAL:
            during.append(problem.best(c) - value)
        learner.observe(x, c, value + problem.noise * noise[k])
    grid = problem.contexts()
    policy = learner.policy(grid)
    regret = [problem.best(c) - float(problem.f(x[None], c[None])[0]) for x, c in zip(policy, grid, strict=True)]
    return {"regret": float(np.mean(regret)), "during": float(np.mean(during))}


def known(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def summary(rows: list[dict[str, str]]) -> str:
    lines = ["mean regret of the policy after the last run (mean during the runs), seeds that all have run"]
    for problem in PROBLEMS:
        own = [row for row in rows if row["problem"] == problem]
        seeds = [{row["seed"] for row in own if row["learner"] == name} for name in LEARNERS]
        common = set.intersection(*[some for some in seeds if some]) if any(seeds) else set()
        parts = []
        for name in LEARNERS:
            some = [row for row in own if row["learner"] == name and row["seed"] in common]
            if some:
                ends, during = (np.array([float(row[key]) for row in some]) for key in ("regret", "during"))
                parts.append(f"{name} {ends.mean():.5f} ({during.mean():.4f})")
        lines.append(f"{problem}, {len(common)} seeds: " + ", ".join(parts))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--evaluations", type=int, default=EVALUATIONS)
    parser.add_argument("--only", nargs="*", default=list(LEARNERS))
    options = parser.parse_args()
    names = [name for name in options.only if name != "envbo" or importlib.util.find_spec("nubo")]
    rows = known(options.out)
    done = {(row["problem"], row["learner"], int(row["seed"])) for row in rows}
    for seed in range(options.seeds):
        for title, problem in PROBLEMS.items():
            for name in names:
                if (title, name, seed) in done:
                    continue
                row = {"problem": title, "learner": name, "seed": str(seed), "evaluations": str(options.evaluations)}
                found = run(name, problem, seed, options.evaluations)
                row |= {key: f"{value:.6g}" for key, value in found.items()}
                new = not options.out.exists()
                with options.out.open("a", newline="", encoding="utf-8") as file:
                    writer = csv.DictWriter(file, list(row), lineterminator="\n")
                    if new:
                        writer.writeheader()
                    writer.writerow(row)
                rows.append(row)
    print(summary(rows))


if __name__ == "__main__":
    main()
