"""Draw docs/pictures/theory-bounds.png and print the table of docs/theory.md: two runs of 200 evaluations, minutes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from edrbo import Optimizer, Space
from edrbo.bench import problems
from edrbo.bench.problems.problem import Problem
from edrbo.contexts.distributions import sobol_points
from edrbo.palette import BLUE, GRAY, GRID, VERMILION
from edrbo.surrogate.ensemble import ExpertEnsemble
from edrbo.theory import (
    RegretBounds,
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


IMPOSSIBLE = "no run can get here"


def draw_bounds(panels: Mapping[str, RegretBounds]) -> Figure:
    """A panel for each title: the three curves on a log axis, with their last values written at the end."""
    figure = Figure(figsize=(5.4 * len(panels), 4.2), layout="constrained", dpi=130)
    for axes, (title, bounds) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True):
        _draw_panel(axes, bounds)
        axes.set_title(title, fontsize=11)
    figure.supylabel("cumulative regret", fontsize=10)
    return figure


def _draw_panel(axes: Axes, bounds: RegretBounds) -> None:
    steps = np.arange(1, len(bounds.regret) + 1)
    curves = (
        (bounds.theorem, VERMILION, "--", "theorem"),
        (bounds.trivial, GRAY, "-.", "trivial: T · range"),
        (bounds.regret, BLUE, "-", "realized"),
    )
    for values, color, dashes, label in curves:
        axes.plot(steps, values, color=color, linestyle=dashes, linewidth=1.8)
        end = (float(steps[-1]), float(values[-1]))
        axes.annotate(
            f"{label}\n{end[1]:,.0f}",
            end,
            (6, 0),
            textcoords="offset points",
            color=color,
            va="center",
            fontsize=9,
            backgroundcolor="white",
        )
    axes.fill_between(steps, bounds.trivial, bounds.theorem.max() * 3, color=GRAY, alpha=0.1, linewidth=0)
    axes.text(0.04, 0.955, IMPOSSIBLE, transform=axes.transAxes, color=GRAY, fontsize=9, va="top", style="italic")
    axes.set_yscale("log")
    axes.set_ylim(top=bounds.theorem.max() * 3)
    axes.set_xlim(0, len(steps) * 1.3)
    axes.set_xticks([tick for tick in axes.get_xticks() if tick <= len(steps)])
    axes.set_xlabel("evaluations T")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, which="major", color=GRID, linewidth=0.6)


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
