"""What many processes on one study cost: CPU seconds, memory, time per step. Figures are in docs/reliability.md.

load.py many --processes 8 --evaluations 25     everyone asks and tells; the model is fitted all along
load.py soak --processes 4 --evaluations 500    a long life: CPU of a step and memory, as it goes on

CPU seconds are those of the worker processes, so that other programs on the machine do not count. With --model the soak
fits the model as well; without it all designs are quasi-random, and what remains is the keeping of records.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import multiprocessing
import os
import pstats
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from edrbo.lab import Study
from edrbo.space import Space

SPACE = Space(design={"speed": (1.0, 9.0), "dose": (0.0, 1.0)}, context={"humidity": (0.0, 1.0)})
BLOCK = 200


def cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def megabytes() -> float:
    """Resident memory now, not at its highest."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def work(where: str, seed: int, evaluations: int, profile: str | None, out: multiprocessing.SimpleQueue) -> None:
    """One process: ask, evaluate a quadratic, tell."""
    rng = np.random.default_rng(seed)
    study = Study.open(where)
    profiler = cProfile.Profile(time.process_time)
    if profile:
        profiler.enable()
    begun, last, rows = cpu(), cpu(), []
    for step in range(1, evaluations + 1):
        suggestion, humidity = study.ask(), float(rng.uniform())
        study.tell(suggestion, [humidity], -((suggestion["speed"] - 4.0 - humidity) ** 2) - suggestion["dose"])
        if step % (BLOCK // 4) == 0:
            rows.append([len(study), (cpu() - last) / (BLOCK // 4), megabytes()])
            last = cpu()
    if profile:
        profiler.disable()
        profiler.dump_stats(f"{profile}.{seed}")
    out.put({"cpu": cpu() - begun, "rows": rows})


def load(where: str, processes: int, evaluations: int, profile: str | None) -> dict:
    context = multiprocessing.get_context("fork")
    out = context.SimpleQueue()
    begun = time.monotonic()
    workers = [context.Process(target=work, args=(where, seed, evaluations, profile, out)) for seed in range(processes)]
    for worker in workers:
        worker.start()
    found = [out.get() for _ in workers]
    for worker in workers:
        worker.join()
    wall = time.monotonic() - begun
    return {
        "processes": processes,
        "evaluations": processes * evaluations,
        "cpu": sum(one["cpu"] for one in found),
        "wall": round(wall, 1),
        "stored": len(Study.open(where)),
        "rows": found[0]["rows"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["many", "soak"])
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--evaluations", type=int, default=25, help="of each process")
    parser.add_argument("--model", action="store_true", help="in a soak: fit the model")
    parser.add_argument("--profile", help="write profiles beside this name")
    arguments = parser.parse_args()
    fitted = arguments.what == "many" or arguments.model
    with tempfile.TemporaryDirectory() as folder:
        where = str(Path(folder) / "study.db")
        Study.open(where, SPACE, **({} if fitted else {"initial": 1_000_000}))
        import edrbo.optimizer.optimizer  # noqa: F401  (the workers inherit it: importing is not what is measured)

        found = load(where, arguments.processes, arguments.evaluations, arguments.profile)
        found["file_kb"] = round(Path(where).stat().st_size / 1e3)
    rows = found.pop("rows")
    print(json.dumps({**found, "cpu": round(found["cpu"], 1)}))
    if arguments.what == "soak":
        for reported, seconds, memory in rows:
            print(f"{reported:6d} observations  {1e3 * seconds:8.1f} ms of CPU per step  {memory:7.1f} MB")
    if arguments.profile:
        stats = pstats.Stats(*[f"{arguments.profile}.{seed}" for seed in range(arguments.processes)], stream=sys.stdout)
        stats.sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main()
