"""The maximizer against BoTorch's ``optimize_acqf`` with 1,024 raw samples and 10 restarts.

States come from real runs: EDRBO optimizes each problem, and at chosen numbers of observations the acquisition of the
next step is maximized by both. A state is won when our value is within 1e-3 of the acquisition's range of BoTorch's,
or better. Run on one thread:

    OMP_NUM_THREADS=1 python benchmarks/maximizer.py
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from botorch.optim import optimize_acqf
from botorch.utils.sampling import draw_sobol_samples, manual_seed
from torch import Tensor

from edrbo.acquisition.acquisition import RobustAcquisition
from edrbo.acquisition.risk import Expectation
from edrbo.acquisition.scores import BarycenterUCB
from edrbo.acquisition.search.maximizer import maximize
from edrbo.bench.problems import get
from edrbo.contexts.distributions import ContextHistory, Empirical
from edrbo.integrations.botorch import RobustAcquisition as BoTorchAcquisition
from edrbo.optimizer.optimizer import Optimizer
from edrbo.space import Space
from edrbo.surrogate.ensemble import Surrogate

PROBLEMS = ("ackley", "modified-branin", "hartmann", "six-hump-camel", "newsvendor")
SIZES = (5, 6, 8, 10, 12, 15, 18, 22, 27, 33, 40, 48, 57, 68, 80, 95, 115, 140, 170, 200)
TOLERANCE = 1e-3  # of the acquisition's range


@dataclass(frozen=True, eq=False)
class State:
    """What is known after n evaluations of a problem, unit-coded."""

    problem: str
    x: Tensor  # n × d_x
    c: Tensor  # n × d_c
    y: Tensor  # n

    @property
    def space(self) -> Space:
        """The unit cubes the problem lives in."""
        return unit_space(self.x.shape[1], self.c.shape[1])

    def acquisition(self) -> RobustAcquisition:
        """EDRBO's, over the observed contexts."""
        zeros = torch.zeros(self.c.shape[1], dtype=torch.float64)
        history = ContextHistory(self.c, torch.ones(len(self.c), dtype=torch.float64), zeros, zeros + 1.0)
        points = Empirical().points(history, 0, seed=0)
        model = Surrogate().fit(torch.cat([self.x, self.c], dim=-1), self.y)
        return RobustAcquisition(model, BarycenterUCB(), points, Expectation())

    def starts(self) -> Tensor:
        """The designs the optimizer would hand to the maximizer: the best and the most recent."""
        best = self.y.argsort(descending=True, stable=True)[:16]
        recent = torch.arange(max(0, len(self.y) - 32), len(self.y))
        return self.x[torch.cat([best, recent]).unique()]


@dataclass(frozen=True)
class Comparison:
    """Values of both maximizers, the acquisition's range, and seconds."""

    problem: str
    n: int
    ours: float
    botorch: float
    value_range: float
    our_seconds: float
    botorch_seconds: float

    @property
    def gap(self) -> float:
        """How much BoTorch is ahead, as a part of the range; negative when we are."""
        return (self.botorch - self.ours) / self.value_range


def unit_space(d_x: int, d_c: int) -> Space:
    return Space(design={f"x{i}": (0.0, 1.0) for i in range(d_x)}, context={f"c{i}": (0.0, 1.0) for i in range(d_c)})


def states(name: str, sizes: Sequence[int], seed: int) -> Iterator[State]:
    """States at ``sizes`` observations of one EDRBO run on a problem."""
    problem = get(name)
    rng = np.random.default_rng(seed)
    optimizer = Optimizer(unit_space(problem.d_x, problem.d_c), seed=seed)
    while len(optimizer) < max(sizes):
        suggestion = optimizer.ask()
        x, c = np.array(list(suggestion.design.values())), problem.sample_contexts(1, rng)[0]
        optimizer.tell(suggestion, c, float(problem.observe(x, c, rng)))
        if len(optimizer) in sizes:
            seen = optimizer.observations
            yield State(name, *(torch.from_numpy(np.array(part)) for part in (seen.x, seen.c, seen.y)))


def compare(state: State, seed: int) -> Comparison:
    """Maximize the state's acquisition by both."""
    acquisition, d_x = state.acquisition(), state.x.shape[1]
    at_the_door = BoTorchAcquisition(acquisition.model, acquisition.score, acquisition.points, acquisition.functional)
    bounds = torch.stack([torch.zeros(d_x, dtype=torch.float64), torch.ones(d_x, dtype=torch.float64)])
    begin = time.perf_counter()
    ours = maximize(acquisition.approximations(), state.space, seed=seed, starts=state.starts())
    middle = time.perf_counter()
    with manual_seed(seed), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # BoTorch tells when it starts again after a failed search
        _, theirs = optimize_acqf(at_the_door, bounds, q=1, num_restarts=10, raw_samples=1024, options={"seed": seed})
    end = time.perf_counter()
    with torch.no_grad():
        sample = at_the_door(draw_sobol_samples(bounds, 512, 1, seed=seed + 1))
    top = max(ours.value, float(theirs), float(sample.max()))
    return Comparison(
        problem=state.problem,
        n=len(state.y),
        ours=ours.value,
        botorch=float(theirs),
        value_range=top - float(sample.min()),
        our_seconds=middle - begin,
        botorch_seconds=end - middle,
    )


def report(rows: Sequence[Comparison]) -> str:
    """A table by problem, and the states that were lost."""
    lines = [f"{'problem':<18}{'states':>7}{'held':>6}{'ahead':>7}{'worst gap':>11}{'ours, s':>9}{'BoTorch, s':>12}"]
    for name in [*dict.fromkeys(row.problem for row in rows), "all"]:
        part = [row for row in rows if name in (row.problem, "all")]
        held = sum(row.gap <= TOLERANCE for row in part)
        ahead = sum(row.gap < -TOLERANCE for row in part)
        times = [float(np.median([getattr(row, key) for row in part])) for key in ("our_seconds", "botorch_seconds")]
        worst = max(row.gap for row in part)
        lines.append(f"{name:<18}{len(part):>7}{held:>6}{ahead:>7}{worst:>11.1e}{times[0]:>9.3f}{times[1]:>12.3f}")
    lines += [f"lost: {row.problem} at n = {row.n}, gap {row.gap:.1e}" for row in rows if row.gap > TOLERANCE]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="two small states of each problem")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for name in PROBLEMS:
        for state in states(name, SIZES[:4:3] if arguments.smoke else SIZES, arguments.seed):
            rows.append(compare(state, arguments.seed + len(rows)))
            last = rows[-1]
            print(f"{last.problem:<18} n = {last.n:>3}   gap {last.gap:>9.1e}", flush=True)
    print(report(rows))


if __name__ == "__main__":
    main()
