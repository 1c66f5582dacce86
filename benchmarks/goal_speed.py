"""CPU time of finding the next design under each goal, as a multiple of the mean's, at 200 observations.

    OMP_NUM_THREADS=1 python benchmarks/goal_speed.py [--method edrbo]

The method is the default unless another is named. Two design variables, one to three context variables, a smooth
made-up f. The mean over three seeds of the best of seven times; only the search is timed, on a model that is fitted
already but has no approximation yet, as in a run, where every search makes its own. Goals take turns, so that a busy
moment of the machine is nobody's.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np
import torch

from edrbo import Space, Surrogate
from edrbo.acquisition.acquisition import ModelGoal
from edrbo.acquisition.methods import get_method
from edrbo.acquisition.scores import Score
from edrbo.acquisition.search.maximizer import maximize
from edrbo.contexts.distributions import ContextHistory, Empirical
from edrbo.records.goals import parse_goal
from edrbo.records.outcomes import Units
from edrbo.records.settings import DEFAULT

GOALS = (
    "expected",
    "cvar:0.1",
    "quantile:0.1",
    "worst-case",
    "robust:0.1",
    "robust:0.2:total-variation",
    "robust:0.1:kl",
    "robust:0.1:chi-square",
    "robust:0.2:mmd",
    "mean-sd:1",
    "reach:0.5",
    "within:0,1",
    "hit:0.5",
)
OBSERVATIONS, SEEDS, TIMES = 200, 3, 7


class State:
    """A fitted model of 200 observations and what is known of the contexts."""

    def __init__(self, d_c: int) -> None:
        draw = torch.Generator().manual_seed(0)
        self.x = torch.rand(OBSERVATIONS, 2, generator=draw, dtype=torch.float64)
        c = (0.5 + 0.2 * torch.randn(OBSERVATIONS, d_c, generator=draw, dtype=torch.float64)).clamp(0.0, 1.0)
        tilt = (c * torch.linspace(0.5, 1.0, d_c, dtype=torch.float64)).sum(-1) * (self.x[:, 0] - 0.3)
        y = torch.sin(3 * self.x.sum(-1)) * torch.cos(4 * c[:, 0]) + tilt + 0.3 * torch.sin(6 * c.sum(-1))
        zero = torch.zeros(d_c, dtype=torch.float64)
        self.history = ContextHistory(c, torch.ones(OBSERVATIONS, dtype=torch.float64), zero, zero + 1)
        self.space = Space(
            design={"x1": (0.0, 1.0), "x2": (0.0, 1.0)}, context={f"c{k}": (0.0, 1.0) for k in range(d_c)}
        )
        self.model = Surrogate().fit(torch.cat([self.x, c], dim=-1), y)

    def seconds(self, score: Score) -> list[float]:
        """Of every goal."""
        model_goals = [ModelGoal(parse_goal(text), Units()) for text in GOALS]
        distributions = [
            Empirical().points(self.history, goal.functional(soft=True).support_size, 0) for goal in model_goals
        ]
        times = [
            [
                [self._once(score, *pair, seed) for pair in zip(model_goals, distributions, strict=True)]
                for seed in range(SEEDS)
            ]
            for _ in range(TIMES)
        ]
        return np.min(times, axis=0).mean(axis=0).tolist()

    def _once(self, score: Score, model_goal: ModelGoal, points: object, seed: int) -> float:
        model = replace(self.model)  # as after a fit: with no approximation made yet
        started = time.process_time()
        acquisition = model_goal.acquisition(model, score, points)  # type: ignore[arg-type]
        maximize(acquisition.approximations(), self.space, seed=seed, starts=self.x[-30:], kinks=acquisition.has_kinks)
        return time.process_time() - started


def show(found: np.ndarray) -> None:
    """Seconds of contexts × goals, the mean's first: in milliseconds, and the others' as multiples of it."""
    print("| goal | one context | two | three |\n|---|---:|---:|---:|")
    print(f"| `{GOALS[0]}` | " + " | ".join(f"{1e3 * one:.0f} ms" for one in found[:, 0]) + " |")
    for k, text in enumerate(GOALS[1:], start=1):
        print(f"| `{text}` | " + " | ".join(f"{one:.2f}" for one in found[:, k] / found[:, 0]) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", default=DEFAULT)
    score = get_method(parser.parse_args().method).score
    torch.set_num_threads(1)
    found = np.array([State(d_c).seconds(score) for d_c in (1, 2, 3)])
    show(found)


if __name__ == "__main__":
    main()
