"""Draw docs/pictures/how-*.png, the pictures of docs/how.md, from one run on the problem two-seasons; half a minute.

They are transparent, with gray words, so that they can be read on light and on dark pages.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from picture_style import take_style

from edrbo import CVaR, Expected, Goal, Method, Optimizer, Space, Surrogate, WorstCase
from edrbo.acquisition.acquisition import FAIR_ATOMS, ROUGH_ATOMS, RobustAcquisition
from edrbo.acquisition.risk import CVaRFunctional, Expectation, Functional, Wasserstein
from edrbo.acquisition.scores import BarycenterUCB
from edrbo.bench import problems
from edrbo.bench.problems.oracle.goals import goal_optimum, goal_value
from edrbo.bench.problems.problem import Problem
from edrbo.contexts import ContextHistory, ContextPoints, Empirical
from edrbo.palette import BLUE, COLOR_MAP, EITHER, GREEN, ORANGE, PURPLE, SKY, VERMILION
from edrbo.surrogate.ensemble import ExpertEnsemble, barycenter, radius

OUT = Path(__file__).resolve().parents[1] / "docs" / "pictures"
FEW, MANY = 14, 40  # runs: for what is believed, and for answers
SEED = 2
MORE_CONTEXTS = 60  # seen without an outcome
SLICE = 0.25  # the context at which experts are shown
NEAR = 0.12  # runs whose context is so near are shown beside them
X = torch.linspace(0.0, 1.0, 201, dtype=torch.float64)
METHOD = Method(Surrogate(), BarycenterUCB(), Empirical(), Expectation())
EXPERTS = {"squared exponential": VERMILION, "rational quadratic": BLUE, "Matérn-3/2": GREEN, "Matérn-5/2": PURPLE}


def run(problem: Problem, runs: int, goal: Goal | None = None) -> Optimizer:
    """The optimizer after ``runs`` evaluations, and further contexts that nobody evaluated anything in."""
    optimizer = Optimizer(
        Space(design={"x": (0, 1)}, context={"c": (0, 1)}), METHOD, seed=SEED, goal=goal or Expected()
    )
    rng = np.random.default_rng(SEED)
    optimizer.observe_context(problem.sample_contexts(MORE_CONTEXTS, rng))
    for _ in range(runs):
        suggestion = optimizer.ask()
        (c,) = problem.sample_contexts(1, rng)
        optimizer.tell(suggestion, c.tolist(), float(problem.observe(np.array([suggestion["x"]]), c, rng)))
    return optimizer


def at_slice(model: ExpertEnsemble) -> tuple[torch.Tensor, torch.Tensor]:
    """Each expert's mean and standard deviation (M × N) along x in the context of the slice, in units of y."""
    return model.moments(torch.stack([X, torch.full_like(X, SLICE)], -1))


def band(axes: Axes, mean: torch.Tensor, sd: torch.Tensor, color: str, label: str) -> None:
    axes.fill_between(X, mean - 2 * sd, mean + 2 * sd, color=color, alpha=0.25, lw=0)
    axes.plot(X, mean, color=color, label=label)


def truth(axes: Axes, problem: Problem, optimizer: Optimizer) -> None:
    c = np.full((len(X), 1), SLICE)
    axes.plot(X, problem.evaluate(X.numpy()[:, None], c), color=EITHER, ls="--", lw=1, label="f itself")
    seen = optimizer.observations
    near = np.abs(seen.c[:, 0] - SLICE) < NEAR
    axes.plot(seen.x[near, 0], seen.y[near], "o", color=EITHER, ms=5, label="runs in contexts near by")


def draw_experts(problem: Problem, optimizer: Optimizer, model: ExpertEnsemble) -> Figure:
    mean, sd = at_slice(model)
    figure = Figure(figsize=(5.0, 5.0), layout="constrained")
    many = figure.subplots(2, 2, sharex=True, sharey=True)
    for axes, (name, color), mu, sigma in zip(many.flat, EXPERTS.items(), mean, sd, strict=True):
        truth(axes, problem, optimizer)
        band(axes, mu, sigma, color, name)
        axes.set_title(name, color=color)
    for axes in many[:, 0]:
        axes.set_ylabel(f"y at c = {SLICE}")
    for axes in many[1]:
        axes.set_xlabel("design x")
    return figure


def draw_barycenter(problem: Problem, optimizer: Optimizer, model: ExpertEnsemble) -> Figure:
    mean, sd = at_slice(model)
    center, spread = barycenter(mean, sd)
    figure = Figure(figsize=(5.0, 5.6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    truth(above, problem, optimizer)
    for color, mu in zip(EXPERTS.values(), mean, strict=True):
        above.plot(X, mu, color=color, lw=0.8)
    band(above, center, spread, SKY, "barycenter, ± 2 σ̄")
    above.plot(X, center + 1.5 * spread, color=ORANGE, ls=":", label="optimism: μ̄ + 1.5 σ̄")
    above.plot(X, METHOD.score(mean, sd), color=ORANGE, label="score: optimism − √2 ε̂")
    above.set_ylabel(f"y at c = {SLICE}")
    above.set_ylim(bottom=float((center - 2 * spread).min()) - 0.7)
    above.legend(ncols=2, loc="lower center", columnspacing=1)
    below.fill_between(X, 0.0, radius(mean, sd), color=VERMILION, alpha=0.35, lw=0)
    below.plot(X, radius(mean, sd), color=VERMILION, label="radius ε̂: how far the farthest expert is")
    below.plot(X, spread, color=SKY, label="σ̄: how unsure they are on average")
    below.set(xlabel="design x", ylabel="in units of y")
    below.set_ylim(0.0, 1.6 * float(spread.max()))
    below.legend(loc="upper left")
    return figure


def draw_distribution(problem: Problem, history: ContextHistory) -> Figure:
    contexts = history.contexts[:, 0]
    figure = Figure(figsize=(5.0, 5.0), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    grid = np.linspace(0.0, 1.0, 400)
    (marginal,) = problem.context_distribution.components
    above.hist(contexts, bins=25, range=(0, 1), density=True, color=GREEN, alpha=0.45, label="contexts seen")
    above.plot(grid, marginal.density(grid), color=EITHER, ls="--", label="their true distribution")
    above.plot(contexts, np.full(len(contexts), -0.08), "|", color=GREEN, ms=7)
    above.set_ylabel("density")
    above.legend()
    for place, size in enumerate((32, FAIR_ATOMS, ROUGH_ATOMS)):
        points = Empirical(max_atoms=size).points(history, 0, SEED)
        below.scatter(points.atoms[:, 0], torch.full((size,), -place), s=1000 * points.weights, color=BLUE, alpha=0.7)
    below.set(xlabel="context c", xlim=(0, 1), ylim=(-2.6, 0.6))
    below.set_yticks([0, -1, -2], ["to end with", "to climb with", "to look\naround with"])
    below.set_title("atoms that stand for them, as large as their weight", color=BLUE)
    return figure


def rows(model: ExpertEnsemble, points: ContextPoints, functional: Functional) -> RobustAcquisition:
    return RobustAcquisition(model, METHOD.score, points, functional)


def draw_functional(model: ExpertEnsemble, history: ContextHistory) -> Figure:
    figure = Figure(figsize=(5.0, 6.4), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    c = torch.linspace(0.0, 1.0, 101, dtype=torch.float64)
    joint = torch.stack(torch.meshgrid(X, c, indexing="ij"), -1).reshape(-1, 2)
    score = METHOD.score(*model.moments(joint)).reshape(len(X), len(c))
    mesh = above.pcolormesh(X, c, score.T, cmap=COLOR_MAP, shading="gouraud", rasterized=True)
    figure.colorbar(mesh, ax=above, label="score s(x, c)")
    points = Empirical().points(history, 64, SEED)
    above.plot(
        np.zeros(len(points.atoms)) + 0.01,
        points.atoms[:, 0],
        ">",
        color=GREEN,
        ms=4,
        label="atoms of the distribution",
    )
    above.set_ylabel("context c")
    above.legend(loc="upper right", labelcolor="black")
    for label, functional, color in (
        ("mean over the distribution", Expectation(), ORANGE),
        ("mean of the worst fifth", CVaRFunctional(0.2), BLUE),
        ("worst mean of a distribution near by", Wasserstein(0.1, order=1), PURPLE),
    ):
        with torch.no_grad():
            alpha = rows(model, points, functional).evaluate(X[:, None])
        best = int(alpha.argmax())
        below.plot(X, alpha, color=color, label=label)
        below.plot(X[best], alpha[best], "*", color=color, ms=13)
    below.set(xlabel="design x", ylabel="α(x)")
    below.set_ylim(bottom=0.0)
    below.legend(loc="lower left")
    return figure


def draw_goals(problem: Problem) -> Figure:
    figure = Figure(figsize=(5.0, 6.4), layout="constrained")
    many = figure.subplots(3, 1, sharex=True)
    goals: tuple[tuple[Goal, str], ...] = ((Expected(), ORANGE), (CVaR(0.1), BLUE), (WorstCase(), PURPLE))
    designs = np.linspace(0.0, 1.0, 61)
    for axes, (goal, color) in zip(many, goals, strict=True):
        optimizer = run(problem, MANY, goal)
        posterior, answer = optimizer.predict(designs[:, None]), optimizer.recommend()
        exact = [float(goal_value(problem, goal, np.array([x]))) for x in designs]
        axes.fill_between(designs, posterior.value_lower, posterior.value_upper, color=color, alpha=0.25, lw=0)
        axes.plot(designs, posterior.value, color=color, label="believed, with its 95 % interval")
        axes.plot(designs, exact, color=EITHER, ls="--", lw=1, label="true")
        x = float(answer.design["x"])
        axes.axvline(x, color=color, ls=":", lw=1)
        axes.set_title(f"{goal.title()}: x = {x:.2f}", color=color)
        there = float(goal_value(problem, goal, np.array([x])))
        print(f"{goal.to_text()}: recommended {x:.3f}, worth {there:.3f}; best {goal_optimum(problem, goal)}")
    many[0].legend(loc="lower left")
    figure.supylabel("value of a design")
    many[-1].set_xlabel("design x")
    return figure


def main() -> None:
    torch.set_num_threads(1)
    take_style()
    problem = problems.get("two-seasons")
    optimizer = run(problem, FEW)
    model = optimizer.model
    assert model is not None
    reported = torch.tensor(optimizer.observations.c)
    more = problem.sample_contexts(MORE_CONTEXTS, np.random.default_rng(SEED))
    contexts = torch.cat([torch.from_numpy(more), reported])
    zero, one = torch.zeros(1, dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    history = ContextHistory(contexts, torch.ones(len(contexts), dtype=torch.float64), zero, one)
    for name, figure in {
        "experts": draw_experts(problem, optimizer, model),
        "barycenter": draw_barycenter(problem, optimizer, model),
        "distribution": draw_distribution(problem, history),
        "functional": draw_functional(model, history),
        "goal": draw_goals(problem),
    }.items():
        figure.savefig(OUT / f"how-{name}.png")
    print(f"best on average: x = {float(problem.x_star[0]):.3f}, {problem.optimum:.3f}")


if __name__ == "__main__":
    main()
