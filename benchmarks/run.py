"""``make bench``: how fast a suggestion is, beside a plain BoTorch program timed in the same run.

One thread, float64, CPU seconds. A suggestion of ours is timed at its dearest, with a refit of all hyper-parameters,
which a run does only when its data have grown by 5 %, and without one. Before that: what the default number of threads
costs, in processes of their own with nothing set and with OMP_NUM_THREADS=1, by turns, as the machine is and beside two
busy processes.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent))
import peer
from states import state, tell_all

import edrbo
from edrbo import Optimizer
from edrbo.acquisition.methods import METHODS
from edrbo.bench import problems
from edrbo.streams import stream
from edrbo.surrogate.ensemble import fit_sizes

BAR = 1.3  # of the CPU of one thread, what the default may need beside busy processes (issue 31)
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "EDRBO_THREADS")
ANSWERS = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
from states import state
state("ackley", 20).ask()  # everything is loaded
optimizer = state("ackley", int(sys.argv[2]), seed=1)
before = time.perf_counter(), time.process_time()
optimizer.ask()
optimizer.recommend()
print(json.dumps([time.perf_counter() - before[0], time.process_time() - before[1]]))
"""


def answers_cost(n: int, **setting: str) -> tuple[float, float]:
    """Wall and CPU seconds of a suggestion and an answer at ``n`` observations, in an environment of their own."""
    environment = {name: value for name, value in os.environ.items() if name not in ONE_THREAD}
    words = [sys.executable, "-c", ANSWERS, str(Path(__file__).parent), str(n)]
    found = subprocess.run(words, env={**environment, **setting}, capture_output=True, check=True, text=True)
    wall, cpu = json.loads(found.stdout)
    return wall, cpu


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Beside so many processes that never rest."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def default_threads(sizes: list[int], repeats: int) -> Table:
    """The default against one thread for all, by turns."""
    table = Table(title="a suggestion with its fit and an answer on ackley, seconds: median (min … max)")
    headings = ("observations", "default, CPU", "one thread, CPU", "default, wall", "one thread, wall", "CPU ratio")
    for heading in ("beside", *headings):
        table.add_column(heading, justify="right")
    for count in (0, 2):
        for n in sizes:
            with busy(count):
                pairs = [(answers_cost(n), answers_cost(n, OMP_NUM_THREADS="1")) for _ in range(repeats)]
            (wall, cpu), (wall_of_one, cpu_of_one) = (
                list(zip(*part, strict=True)) for part in zip(*pairs, strict=True)
            )
            ratio = statistics.median(cpu) / statistics.median(cpu_of_one)
            cells = [spread(list(part)) for part in (cpu, cpu_of_one, wall, wall_of_one)]
            late = f"{ratio:.2f}{f' above {BAR}' if ratio > BAR else ''}"
            table.add_row(f"{count} busy" if count else "the machine as it is", str(n), *cells, late)
    return table


def seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def spread(times: list[float]) -> str:
    return f"{statistics.median(times):.3g} ({min(times):.3g} … {max(times):.3g})"


def fresh_suggestion(optimizer: Optimizer) -> float:
    """One ask with a refit: the model at hand is that of the last scheduled fit before the present size."""
    before = fit_sizes(len(optimizer))[-2]
    shorter = Optimizer(optimizer.space, optimizer.settings.method, seed=optimizer.settings.seed)
    tell_all(shorter, optimizer.observations.x[:before], optimizer.observations.c[:before], optimizer.observations.y)
    assert shorter.model is not None
    return seconds(Optimizer.of(optimizer.state, shorter.fit).ask)


def against_peer(sizes: list[int], repeats: int) -> tuple[Table, list[dict[str, object]]]:
    """Ours with a refit, without, and the mean over a run's steps there (one in so many refits)."""
    table = Table(title="one EDRBO suggestion on ackley, CPU seconds: median (min … max)")
    headings = (
        "observations",
        "plain BoTorch",
        "edrbo, refit",
        "no refit",
        "mean of steps",
        "ratio, refit",
        "ratio, mean",
    )
    for heading in headings:
        table.add_column(heading, justify="right")
    rows: list[dict[str, object]] = []
    for n in sizes:
        times: dict[str, list[float]] = {"peer": [], "refit": [], "light": [], "mean": []}
        size = fit_sizes(n)[-1]
        every = fit_sizes(2 * n)[len(fit_sizes(n))] - size  # steps from this fit to the next
        for repeat in range(repeats):
            optimizer = state("ackley", size, seed=repeat)
            inputs = optimizer._main.data().inputs(size)
            outcomes = torch.from_numpy(optimizer.observations.y.copy())[:, None]
            torch.manual_seed(repeat)
            times["peer"].append(seconds(lambda i=inputs, o=outcomes: peer.suggest(i, o, 2)))
            times["refit"].append(fresh_suggestion(optimizer))
            assert optimizer.model is not None
            times["light"].append(seconds(Optimizer.of(optimizer.state, optimizer.fit).ask))
            times["mean"].append((times["refit"][-1] + (every - 1) * times["light"][-1]) / every)
        cells = [spread(times[key]) for key in ("peer", "refit", "light", "mean")]
        for key in ("refit", "mean"):
            ratios = [a / b for a, b in zip(times["peer"], times[key], strict=True)]
            cells.append(f"{statistics.median(ratios):.0f} ({min(ratios):.0f} … {max(ratios):.0f})")
        table.add_row(str(n), *cells)
        rows.append({"n": n, "steps between fits": every, **times})
    return table, rows


def every_method(repeats: int) -> Table:
    table = Table(title="one suggestion at 200 observations, with refit, CPU seconds: median (min … max)")
    for heading in ("method", "ackley (2 + 1)", "modified-branin (2 + 2)"):
        table.add_column(heading, justify="right")
    for name in METHODS:
        cells = []
        for problem in ("ackley", "modified-branin"):
            n = fit_sizes(200)[-1]
            cells.append(spread([fresh_suggestion(state(problem, n, name, seed)) for seed in range(repeats)]))
        table.add_row(name, *cells)
    return table


def large(sizes: list[int]) -> Table:
    table = Table(title="large data, ackley, CPU seconds of one suggestion with refit; peak memory of the process")
    for heading in ("observations", "seconds", "memory, MB"):
        table.add_column(heading, justify="right")
    for n in sizes:
        took = fresh_suggestion(state("ackley", fit_sizes(n)[-1]))
        table.add_row(str(n), f"{took:.3g}", f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}")
    return table


def whole_run() -> float:
    problem = problems.get("ackley")
    optimizer = state("ackley", 0)
    world = stream(0, "contexts")

    def run() -> None:
        for _ in range(200):
            suggestion = optimizer.ask()
            context = problem.sample_contexts(1, world)
            x = np.array([list(suggestion.design.values())])
            optimizer.tell(suggestion, {"c1": float(context[0, 0])}, float(problem.evaluate(x, context)[0]))

    return seconds(run)


def million_contexts() -> list[float]:
    rng = stream(0, "history")
    times = []
    for name, d_c in (("ackley", 1), ("modified-branin", 2)):
        optimizer = state(name, 50)
        optimizer.ask()
        samples = rng.random((1_000_000, d_c))
        times.append(seconds(lambda o=optimizer, s=samples: o.observe_context(s)))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repeats and sizes")
    parser.add_argument("--out", type=Path, help="also write the numbers as JSON")
    options = parser.parse_args()
    torch.set_num_threads(1)
    console = Console(width=120)
    versions = f"edrbo {edrbo.__version__}, torch {torch.__version__}, Python {platform.python_version()}"
    console.print(f"{versions}, {processor()}, one thread")
    repeats = 2 if options.quick else 5
    console.print(default_threads([40] if options.quick else [40, 1000], 2 if options.quick else 5))
    console.print(large([1000] if options.quick else [1000, 2000]))
    console.print(every_method(repeats))
    console.print(f"a whole run of 200 evaluations on ackley: {whole_run():.3g} s")
    one, two = million_contexts()
    console.print(f"a million-row context history: {one:.2f} s once (one context variable), {two:.2f} s (two)")
    table, rows = against_peer([20, 100] if options.quick else [20, 100, 200], 2 if options.quick else 3)
    console.print(table)
    if options.out:
        options.out.write_text(json.dumps(rows))


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


if __name__ == "__main__":
    main()
