"""Draw docs/pictures/theory-bounds.png and print the table of docs/theory.md: two runs of 200 evaluations, minutes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from edrbo import Optimizer, Space
from edrbo.bench import problems
from edrbo.bench.problems.problem import Problem
from edrbo.contexts.distributions import sobol_points
from edrbo.surrogate.ensemble import ExpertEnsemble
from edrbo.theory import (
    RegretBounds,
    draw_bounds,
    information_gain,
    lipschitz_constants,
    max_information_gain,
    regret_bound,
    regret_bounds,
    rkhs_norm_lower_estimate,
    unit_kernel,
)

STEPS, SEED = 200, 100
BETA, NOISE, DELTA = 1.5, 0.01, 0.05
CANDIDATES = 2048
OUT = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "theory-bounds.png"


def run(problem: Problem) -> tuple[ExpertEnsemble, list[float]]:
    """The model after ``STEPS`` evaluations and the regret of each."""
    space = Space(
        design={f"x{j + 1}": (0, 1) for j in range(problem.d_x)},
        context={f"c{k + 1}": (0, 1) for k in range(problem.d_c)},
    )
    optimizer, rng, regret = Optimizer(space, seed=SEED), np.random.default_rng(SEED), []
    for _ in range(STEPS):
        suggestion = optimizer.ask()
        x = np.array(list(suggestion.design.values()))
        (c,) = problem.sample_contexts(1, rng)
        optimizer.tell(suggestion, c.tolist(), float(problem.observe(x, c, rng)))
        regret.append(float(problem.regret(x)))
    assert optimizer.model is not None
    return optimizer.model, regret


def describe(problem: Problem, model: ExpertEnsemble, bounds: RegretBounds) -> None:
    """The numbers of the table."""
    gp = model.gp
    names = [kernel.name for kernel in gp.kernels]
    points = sobol_points(problem.d_x + problem.d_c, CANDIDATES, SEED)
    own = list(zip(names, gp.hyper.lengthscale, gp.hyper.shape.tolist(), strict=True))
    half = [(name, torch.tensor(0.5), 1.0) for name in names]
    for label, experts in (("fitted kernels", own), ("lengthscale 0.5", half)):
        kernels = [unit_kernel(*expert) for expert in experts]
        realized = max(float(information_gain(kernel(gp.x, gp.x), NOISE)) for kernel in kernels)
        largest = [max_information_gain(kernel, points, STEPS, NOISE) for kernel in kernels]
        for name, gain in (
            ("realized", realized),
            ("greedy", max(float(found.gain[-1]) for found in largest)),
            ("upper", max(float(found.upper[-1]) for found in largest)),
        ):
            bound = regret_bound(STEPS, gain, BETA, 1.0, len(names), DELTA)
            print(f"{problem.name}, {label}: {name} gain {gain:.1f}, bound {bound:,.0f}")
    print(f"{problem.name}: L_m {lipschitz_constants(names, gp.hyper.lengthscale[:, problem.d_x :]).tolist()}")
    print(f"{problem.name}: regret {bounds.regret[-1]:.1f}, trivial {bounds.trivial[-1]:,.0f}")
    norms = [rkhs_norm_lower_estimate(unit_kernel(*expert)(gp.x, gp.x), gp.y) for expert in own]
    print(f"{problem.name}: least norms {[round(float(norm), 1) for norm in norms]} of standardized outcomes")


def main() -> None:
    torch.set_num_threads(1)
    panels = {}
    for name in ("hartmann", "ackley"):
        problem = problems.get(name)
        model, regret = run(problem)
        panels[name] = regret_bounds(model, regret, problem.value_range, beta=BETA, noise_variance=NOISE, delta=DELTA)
        describe(problem, model, panels[name])
    draw_bounds(panels).savefig(OUT)


if __name__ == "__main__":
    main()
