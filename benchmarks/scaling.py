"""Seconds of a suggestion against the number of runs: ours, BoTorch's exact GP and SVGP, and Optuna's GP sampler.

scaling.py run       in benchmarks/results/scaling.csv; what is there is not run again
scaling.py table     the rows of docs/speed.md
scaling.py picture   docs/pictures/scaling.png
scaling.py smaller   many variables, and eight suggestions at once

One thread, CPU seconds, on one problem (two design variables, one context), from the same data. Ours is a step of a run
that goes on: the mean of a step with a refit and of those without, as often as each comes (``step``), and the step with
the refit alone (``refit``). ``cold`` is a first suggestion after all runs were read from a table, ``answer`` everything
that ``recommend`` can say, ``memory`` the peak of the process in MB, ``tell`` in milliseconds. The others fit and
search with their own defaults, which take contexts for design variables; they are stopped where one suggestion would
take minutes.
"""

from __future__ import annotations

import argparse
import csv
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent))
import growth

from edrbo import Optimizer
from edrbo.charts import Axis, Chart, Line
from edrbo.charts.description import Color
from edrbo.charts.figure import draw_all
from edrbo.optimizer.outcome_model import StoredFit
from edrbo.surrogate.ensemble import fit_sizes

RESULTS = Path(__file__).parent / "results" / "scaling.csv"
PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "scaling.png"
SIZES = (200, 1000, 2000, 5000, 10_000)
NOISE = 0.02
STEPS, TELLS = 3, 50


def cpu(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def history(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs (n × 3) and noisy outcomes (n); half of the designs near the best."""
    size = replace(growth.USUAL, n=n)
    found = list(growth.evaluations(size, n, np.random.default_rng([0, n])))
    x = np.array([[*design.values(), *context] for design, context, _ in found])
    return x, np.array([y for _, _, y in found]) + NOISE * np.random.default_rng(1).standard_normal(n)


def reported(n: int) -> tuple[Optimizer, float]:
    """An optimizer that was told all, and the CPU seconds of that."""
    optimizer, (inputs, y) = Optimizer(growth.space_of(growth.USUAL)), history(n)

    def tell() -> None:
        for row, value in zip(inputs.tolist(), y.tolist(), strict=True):
            optimizer.tell({"x1": row[0], "x2": row[1]}, row[2:], value)

    return optimizer, cpu(tell)


def ours(n: int) -> dict[str, float]:
    optimizer, _ = reported(n)
    cold = cpu(Optimizer.of(optimizer.state).ask)
    data, (before, last) = optimizer._main.data(), fit_sizes(n)[-2:]
    outcomes = torch.from_numpy(data.outcomes[data.training])
    hyper = optimizer.method.surrogate.fit_hyperparameters(
        data.inputs(before)[:before], outcomes[:before], None, start=None, cold=True
    )
    hyper = replace(hyper, mean=torch.zeros_like(hyper.noise_variance))
    ready = Optimizer.of(optimizer.state, StoredFit(before, hyper, before, data.digest(before)))
    refit = cpu(ready.ask)
    step = []
    for k in range(STEPS):
        suggestion = ready.ask()
        ready.tell(suggestion, [0.5], 0.01 * k)
        step.append(cpu(ready.ask))
    every = max(fit_sizes(2 * n)[len(fit_sizes(n))] - last, 1)  # steps from this fit to the next
    mean = (refit + (every - 1) * float(np.median(step))) / every
    answer = cpu(lambda: ready.recommend().to_dict())
    more = list(growth.evaluations(growth.USUAL, TELLS, np.random.default_rng(3)))
    tell = cpu(lambda: [ready.tell(design, context, value) for design, context, value in more]) / TELLS
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"step": mean, "refit": refit, "cold": cold, "answer": answer, "tell": 1e3 * tell, "memory": memory}


def botorch_exact(n: int) -> dict[str, float]:
    from botorch.acquisition import UpperConfidenceBound
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.optim import optimize_acqf
    from gpytorch.mlls import ExactMarginalLogLikelihood

    x, y = (torch.from_numpy(part) for part in history(n))

    def suggest() -> None:
        model = SingleTaskGP(x, y[:, None])
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        bounds = torch.tensor([[0.0] * 3, [1.0] * 3], dtype=torch.float64)
        optimize_acqf(UpperConfidenceBound(model, 2.0), bounds, q=1, num_restarts=10, raw_samples=512)

    return {"step": cpu(suggest)}


def botorch_svgp(n: int) -> dict[str, float]:
    """512 inducing points, 20 passes of Adam over the data in batches of 512."""
    from botorch.acquisition import UpperConfidenceBound
    from botorch.models import SingleTaskVariationalGP
    from botorch.optim import optimize_acqf
    from gpytorch.mlls import VariationalELBO

    x, y = (torch.from_numpy(part) for part in history(n))
    y = (y - y.mean()) / y.std()

    def suggest() -> None:
        torch.manual_seed(0)
        model = SingleTaskVariationalGP(x, y[:, None], inducing_points=min(512, n))
        loss = VariationalELBO(model.likelihood, model.model, num_data=n)
        optimizer = torch.optim.Adam([*model.parameters()], lr=0.01)
        model.train()
        for _ in range(20):
            for batch in torch.randperm(n).split(512):
                optimizer.zero_grad()
                (-loss(model(x[batch]), y[batch])).backward()
                optimizer.step()
        bounds = torch.tensor([[0.0] * 3, [1.0] * 3], dtype=torch.float64)
        optimize_acqf(UpperConfidenceBound(model.eval(), 2.0), bounds, q=1, num_restarts=10, raw_samples=512)

    return {"step": cpu(suggest)}


def optuna_gp(n: int) -> dict[str, float]:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.GPSampler(seed=0))
    inputs, y = history(n)
    space = {f"x{k}": optuna.distributions.FloatDistribution(0.0, 1.0) for k in range(3)}
    study.add_trials(
        [
            optuna.trial.create_trial(
                params={f"x{k}": float(v) for k, v in enumerate(row)}, distributions=space, value=float(value)
            )
            for row, value in zip(inputs, y, strict=True)
        ]
    )
    return {"step": cpu(lambda: study.ask(space))}


# with the largest size that is tried
PROGRAMS: dict[str, tuple[Callable[[int], dict[str, float]], int]] = {
    "edrbo": (ours, 10_000),
    "BoTorch exact": (botorch_exact, 2000),
    "BoTorch SVGP": (botorch_svgp, 10_000),
    "Optuna GP": (optuna_gp, 1000),
}


def smaller() -> None:
    """Seventeen design and five context variables with 300 runs, and the usual ones with 200."""
    for size in (replace(growth.USUAL, n=300, d=17, d_c=5), growth.USUAL):
        optimizer = growth.reported(size, size.n, 0)
        data, before = optimizer._main.data(), fit_sizes(size.n)[-2]
        hyper = optimizer.method.surrogate.fit(
            data.inputs(before)[:before], torch.tensor(data.outcomes[:before])
        ).gp.hyper
        ready = Optimizer.of(optimizer.state, StoredFit(before, hyper, before, data.digest(before)))
        found = cpu(ready.ask), cpu(ready.ask), cpu(lambda one=ready: one.ask(8))
        print(
            f"{size.d} + {size.d_c}, {size.n} runs: {found[0]:.3f} with a refit, {found[1]:.3f}, eight {found[2]:.3f}"
        )


def rows() -> list[dict[str, str]]:
    if not RESULTS.exists():
        return []
    with RESULTS.open(newline="") as file:
        return list(csv.DictReader(file))


def run() -> None:
    """Each in a process of its own, so that the peak of its memory is its own."""
    for n in SIZES:
        for name, (_, most) in PROGRAMS.items():
            if n > most or any(row["program"] == name and row["n"] == str(n) for row in rows()):
                continue
            found = subprocess.run([sys.executable, __file__, "one", name, str(n)], capture_output=True, text=True)
            print(found.stdout or f"{name} {n}: {found.stderr.strip().splitlines()[-1:]}", flush=True)


def one(name: str, n: int) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    found, new = PROGRAMS[name][0](n), not RESULTS.exists()
    with RESULTS.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(("program", "n", "measure", "value"))
        writer.writerows([(name, n, measure, f"{value:.3g}") for measure, value in found.items()])
    print(name, n, found)


def measured(name: str, measure: str) -> dict[int, float]:
    kept = [row for row in rows() if (row["program"], row["measure"]) == (name, measure)]
    return {n: value for n, value in sorted((int(row["n"]), float(row["value"])) for row in kept)}


def table() -> list[str]:
    lines = ["| program | " + " | ".join(f"{n:,}" for n in SIZES) + " |", "|---|" + "---:|" * len(SIZES)]
    kinds = [(name, "step", name) for name in PROGRAMS]
    kinds[1:1] = [
        ("edrbo", "refit", "edrbo, a step with a refit"),
        ("edrbo", "cold", "edrbo, the first step after reading all"),
        ("edrbo", "answer", "edrbo, all of an answer"),
        ("edrbo", "tell", "edrbo, a tell (ms)"),
        ("edrbo", "memory", "edrbo, peak memory (MB)"),
    ]
    for name, measure, title in kinds:
        found = measured(name, measure)
        cells = [f"{found[n]:,.0f}" if measure == "memory" and n in found else f"{found.get(n, '–')}" for n in SIZES]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return lines


def picture() -> None:
    colors: tuple[Color, ...] = ("green", "blue", "orange", "grey")
    found = {name: measured(name, "step") for name in PROGRAMS}
    marks = [
        Line(list(found[name]), list(found[name].values()), color, name)
        for color, name in zip(colors, PROGRAMS, strict=True)
    ]
    seconds = [value for values in found.values() for value in values.values()]
    across = Axis.of("runs", (SIZES[0] / 1.2, SIZES[-1] * 1.2), log=True)
    up = Axis.of("CPU seconds of a suggestion", (min(seconds) / 2.0, max(seconds) * 2.0), log=True)
    draw_all([Chart("One suggestion, one thread", across, up, tuple(marks))]).savefig(PICTURE, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "one", "smaller", "table", "picture"])
    parser.add_argument("program", nargs="?", choices=[*PROGRAMS])
    parser.add_argument("n", nargs="?", type=int)
    arguments = parser.parse_args()
    if arguments.what == "one":
        one(arguments.program, arguments.n)
        return
    if arguments.what == "smaller":
        smaller()
        return
    if arguments.what == "run":
        run()
    if arguments.what == "picture":
        picture()
    print("\n".join(table()))


if __name__ == "__main__":
    main()
