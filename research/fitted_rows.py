"""What it costs in predictive accuracy that hyper-parameters of many observations are fitted to 500 of them:
research/speed.md.

    OMP_NUM_THREADS=1 python research/fitted_rows.py

1,000 observations, half anywhere and half around the optimum; the mean log density of 500 new outcomes, each expert.
"""

from __future__ import annotations

import time

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from edrbo.bench import problems
from edrbo.streams import stream
from edrbo.surrogate.ensemble import ExpertEnsemble, Surrogate
from edrbo.surrogate.fit import Likelihood, default_theta, fit
from edrbo.surrogate.kernels import get_kernel
from edrbo.surrogate.scaling import Scaling

PROBLEMS, NOISES, OBSERVATIONS, NEW = ("ackley", "modified-branin", "hartmann", "coating"), (0.0, 0.05), 1000, 500


def data(name: str, noise: float, n: int, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    problem = problems.get(name)
    near = np.clip(problem.x_star + 0.1 * rng.standard_normal((n - n // 2, problem.d_x)), 0.0, 1.0)
    x, c = np.vstack([rng.random((n // 2, problem.d_x)), near]), problem.sample_contexts(n, rng)
    y = problem.evaluate(x, c) + noise * problem.value_range * rng.standard_normal(n)
    order = rng.permutation(n)
    return torch.from_numpy(np.hstack([x, c])[order]), torch.from_numpy(y[order])


def fitted_to_all(X: Tensor, Y: Tensor) -> ExpertEnsemble:
    surrogate, scaling = Surrogate(), Scaling.of(Y)
    kernels, priors = tuple(get_kernel(name) for name in surrogate.experts), surrogate.priors(X.shape[1])
    likelihood = Likelihood(X, scaling.standardize(Y), None, priors)
    return surrogate.at(X, Y, None, fit(kernels, likelihood, default_theta(kernels, X.shape[1], priors)))


def density(model: ExpertEnsemble, X: Tensor, Y: Tensor) -> Tensor:
    mean, sd = model.expert_moments(X)
    spread = (sd.square() + model.gp.hyper.noise_variance[:, None] * model.scaling.scale**2).sqrt()
    return (-0.5 * ((Y - mean) / spread).square() - spread.log()).mean(-1)


def main() -> None:
    torch.set_num_threads(1)
    table = Table(title="mean log density of new outcomes: fitted to 500 of 1,000 less fitted to all")
    for heading in ("problem", "noise", "lost by the four experts, nats", "CPU seconds of both fits"):
        table.add_column(heading)
    for name in PROBLEMS:
        for noise in NOISES:
            rng = stream(1, "fitted rows", name)
            (X, Y), new = data(name, noise, OBSERVATIONS, rng), data(name, noise, NEW, rng)
            began = time.process_time()
            some = Surrogate().fit(X, Y)
            between = time.process_time()
            every = fitted_to_all(X, Y)
            took = f"{between - began:.1f}, {time.process_time() - between:.1f}"
            lost = density(every, *new) - density(some, *new)
            table.add_row(name, f"{noise:.0%}", "  ".join(f"{value:.2f}" for value in lost.tolist()), took)
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
