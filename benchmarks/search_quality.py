"""What the search for the next design finds under each goal, beside what another version of it finds.

    OMP_NUM_THREADS=1 PYTHONPATH=/other/src python benchmarks/search_quality.py --out other.json
    OMP_NUM_THREADS=1 python benchmarks/search_quality.py --against other.json

States of several problems and numbers of observations: half of the designs anywhere and half around the optimum, or
those of a run of the default; they are taken from the other's file. The same model is fitted to each, and each goal's
acquisition is searched. Both designs are compared by the acquisition itself, with the contexts that matter at the two
of them, as a share of its range over 256 designs: above zero means that this version's is better.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from maximizer import State, states
from states import state
from torch import Tensor

from edrbo.acquisition.acquisition import ModelGoal
from edrbo.acquisition.methods import get_method
from edrbo.acquisition.search.maximizer import maximize
from edrbo.contexts.distributions import ContextHistory, Empirical, sobol_points
from edrbo.records.goals import parse_goal
from edrbo.records.outcomes import Units
from edrbo.records.settings import DEFAULT
from edrbo.surrogate.ensemble import Surrogate

PROBLEMS = ("ackley", "modified-branin", "hartmann", "six-hump-camel", "newsvendor", "portfolio-normal")
SIZES = (30, 80, 200)
GOALS = ("expected", "cvar:0.1", "robust:0.1", "worst-case", "mean-sd:1", "reach", "hit")  # the last two: of the data
BAD = 0.02  # of the range


def all_states(seed: int) -> Iterator[tuple[str, State]]:
    """Named states, of both kinds."""
    for name in PROBLEMS:
        for n in SIZES:
            seen = state(name, n, seed=seed).observations
            parts = (torch.from_numpy(np.array(part)) for part in (seen.x, seen.c, seen.y))
            yield f"{name} {n} spread", State(name, *parts)
        for one in states(name, SIZES, seed):
            yield f"{name} {len(one.y)} run", one


def stored(one: State) -> dict[str, object]:
    return {"problem": one.problem, **{key: getattr(one, key).tolist() for key in "xcy"}}


def loaded(record: dict[str, Any]) -> State:
    return State(record["problem"], *(torch.tensor(record[key], dtype=torch.float64) for key in "xcy"))


def goal_of(text: str, y: Tensor) -> ModelGoal:
    """In units of the data: what a third of the outcomes reach, and their median."""
    if text in ("reach", "hit"):
        text = f"{text}:{float(y.quantile(0.7 if text == 'reach' else 0.5))}"
    return ModelGoal(parse_goal(text), Units())


class Search:
    """Of one state under one goal."""

    def __init__(self, one: State, text: str, method: str, model: object) -> None:
        zeros = torch.zeros(one.c.shape[1], dtype=torch.float64)
        history = ContextHistory(one.c, torch.ones(len(one.c), dtype=torch.float64), zeros, zeros + 1.0)
        goal = goal_of(text, one.y)
        points = Empirical().points(history, goal.functional(soft=True).support_size, 0)
        self.state = one
        self.acquisition = goal.acquisition(model, get_method(method).score, points)  # type: ignore[arg-type]

    def best(self, seed: int) -> Tensor:
        """The design found (d_x)."""
        acquisition = self.acquisition
        starts, kinks = self.state.starts(), acquisition.has_kinks
        return maximize(acquisition.approximations(), self.state.space, seed=seed, starts=starts, kinks=kinks).x

    def gain(self, x: Tensor, other: Tensor) -> float:
        """How much better ``x`` is than ``other``, of the range."""
        both = torch.stack([x, other])
        with torch.no_grad():
            first, second = self.acquisition.near(both)(both).tolist()
            sample = self.acquisition(sobol_points(len(x), 256, seed=1))
        spread = max(first, second, float(sample.max())) - float(sample.min())
        return (first - second) / spread if spread > 0 else 0.0


def report(gains: dict[str, float]) -> str:
    """By goal, by problem and by size; and the worst of all."""
    lines = [f"{'':<20}{'states':>7}{'mean':>10}{'worst':>9}{'best':>9}{f'< -{BAD}':>8}{f'> {BAD}':>8}"]
    keys = [*GOALS, *PROBLEMS, *(f" {n} " for n in SIZES), "spread", "run", ""]
    for key in keys:
        part = np.array([gain for name, gain in gains.items() if key in name])
        if len(part):
            worse, better = (part < -BAD).sum(), (part > BAD).sum()
            lines.append(
                f"{key or 'all':<20}{len(part):>7}{part.mean():>10.5f}{part.min():>9.4f}{part.max():>9.4f}"
                f"{worse:>8}{better:>8}"
            )
    worst = sorted(gains.items(), key=lambda item: item[1])[:10]
    return "\n".join([*lines, *(f"{name}: {gain:.4f}" for name, gain in worst if gain < -1e-3)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", default=DEFAULT)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="write the designs found there")
    parser.add_argument("--against", type=Path, help="compare with the designs in this file")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    other = json.loads(arguments.against.read_text()) if arguments.against else None
    named = all_states(arguments.seed) if other is None else ((k, loaded(v)) for k, v in other["states"].items())
    kept: dict[str, object] = {}
    found: dict[str, list[float]] = {}
    gains: dict[str, float] = {}
    for name, one in named:
        kept[name] = stored(one)
        model = Surrogate().fit(torch.cat([one.x, one.c], dim=-1), one.y)
        for text in GOALS:
            search, key = Search(one, text, arguments.method, model), f"{name} {text}"
            best = search.best(arguments.seed)
            found[key] = best.tolist()
            if other is not None:
                gains[key] = search.gain(best, best.new_tensor(other["found"][key]))
    if arguments.out:
        arguments.out.write_text(json.dumps({"states": kept, "found": found}))
    if gains:
        print(report(gains))


if __name__ == "__main__":
    main()
