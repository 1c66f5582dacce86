"""Do fits find the better mode? Fits of a run, as the schedule makes them, against the best of many starts.

    OMP_NUM_THREADS=1 python research/fits.py OUT.jsonl [--problems ackley,hartmann] [--sizes 40,100,200]

Designs are those of the runs kept in ``research/results/calibration-runs.npz``. OUT.jsonl gets a line for each state;
what is there is not computed again. Counted are fits with an expert whose log posterior is more than 0.1 or 1 nat below
the best that is found from its own end, the priors' modes, the other experts' ends and random starts.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from edrbo.bench import problems
from edrbo.bench.problems.oracle.shift import with_noise
from edrbo.streams import stream
from edrbo.surrogate.ensemble import FittedModel, Surrogate, advance, fit_sizes
from edrbo.surrogate.fit import Likelihood, default_theta, fit, pack
from edrbo.surrogate.kernels import get_kernel
from edrbo.surrogate.scaling import Scaling

RUNS = Path(__file__).parent / "results" / "calibration-runs.npz"
PROBLEMS = "ackley,modified-branin,hartmann,six-hump-camel,newsvendor,complicated-hartmann,wing,ripples"
RANDOM = 6  # random starts of every expert


def data(name: str, share: str) -> tuple[Tensor, Tensor]:
    """Inputs (200 × d) and outcomes (200) of a kept run."""
    base = problems.get(name)
    problem = with_noise(base, float(share) * base.value_range)
    x = np.load(RUNS)[f"{name}-{share}-0"].astype(np.float64)
    c = problem.sample_contexts(len(x), stream(0, "contexts", name))
    noise = [stream(0, "observation noise", name, t) for t in range(len(x))]
    y = [float(problem.observe(x[t], c[t], noise[t])) for t in range(len(x))]
    return torch.from_numpy(np.concatenate([x, c], axis=1)), torch.tensor(y, dtype=torch.float64)


def below_the_best(surrogate: Surrogate, model: FittedModel, X: Tensor, Y: Tensor) -> list[float]:
    """How many nats each expert's log posterior is below the best found."""
    kernels, priors = tuple(get_kernel(name) for name in surrogate.experts), surrogate.priors(X.shape[1])
    likelihood = Likelihood(X, Scaling.of(Y).standardize(Y), None, priors)
    theta = pack(model.hyper)
    generator = torch.Generator().manual_seed(len(Y))
    spread = torch.randn(RANDOM, *theta.shape, generator=generator, dtype=torch.float64)
    cold = default_theta(kernels, X.shape[1], priors)
    starts = [theta, cold, *(theta.roll(k, 0) for k in range(1, len(kernels))), *(cold + 1.0 * spread)]
    best = fit(kernels, likelihood, torch.cat(starts), max_iterations=200, nats=1e-5)
    found, reached = (likelihood.value_and_gradient(each, kernels)[0] for each in (pack(best), theta))
    gaps: list[float] = (found - reached).tolist()
    return gaps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--problems", default=PROBLEMS)
    parser.add_argument("--sizes", default="40,100,200")
    options = parser.parse_args()
    torch.set_num_threads(1)
    lines = options.out.read_text().splitlines() if options.out.exists() else []
    kept = {tuple(row["state"]): row["below"] for row in map(json.loads, lines)}
    for name in options.problems.split(","):
        for share in ("0", "0.05"):
            model, (X, Y) = None, data(name, share)
            for n in (fit_sizes(int(size))[-1] for size in options.sizes.split(",")):
                if (name, share, n) in kept:
                    continue
                model = advance(Surrogate(), model, n, lambda _, n=n, X=X: X[:n], Y[:n], lambda _: None)
                below = below_the_best(Surrogate(), model, X[:n], Y[:n])
                kept[(name, share, n)] = below
                with options.out.open("a") as file:
                    file.write(json.dumps({"state": [name, share, n], "below": below}) + "\n")
                print(name, share, n, " ".join(f"{gap:.3f}" for gap in below), flush=True)
    gaps = np.array(list(kept.values()))
    for bar in (0.1, 1.0):
        print(f"{len(gaps)} fits: {(gaps.max(1) > bar).sum()} with an expert more than {bar:g} nats below the best")


if __name__ == "__main__":
    main()
