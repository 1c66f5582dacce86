"""Processes that use one study at once, or die while they do. Run as a script, so that it can fork before any thread.

workers.py many WHERE PROCESSES EVALUATIONS     each process asks and tells; prints what each was handed
workers.py kill WHERE TIMES SEED ACKNOWLEDGED   kill -9 an asking and telling process at random moments
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from edrbo.space import Space
from edrbo.study import Study


def evaluate(study: Study, count: int, say) -> None:
    """Ask and tell; ``say`` is told after each call has returned."""
    for _ in range(count):
        suggestion = study.ask()
        say(["asked", suggestion.id, suggestion.design])
        context, value = suggestion.id / 1000, float(suggestion.id)
        study.tell(suggestion, [context], value)
        say(["told", suggestion.id, context, value])


LINE = Space(design={"speed": (1.0, 9.0)}, context={"humidity": (0.0, 1.0)})


def child(where: str, count: int, descriptor: int, space: Space | None = None) -> int:
    """Fork a process that evaluates and writes what it has done to ``descriptor``."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        study = Study.open(where) if space is None else Study.open(where, space, method="ucb", initial=1000)
        evaluate(study, count, lambda words: os.write(descriptor, (json.dumps(words) + "\n").encode()))
        code = 0
    finally:
        os._exit(code)


def many(where: str, processes: int, evaluations: int, path: str, space: Space | None = None) -> None:
    descriptor = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    pids = [child(where, evaluations, descriptor, space) for _ in range(processes)]
    codes = [os.waitpid(pid, 0)[1] for pid in pids]
    assert codes == [0] * processes, codes


def make(where: str, processes: int, evaluations: int, path: str) -> None:
    many(where, processes, evaluations, path, LINE)


def kill(where: str, times: int, seed: int, path: str) -> None:
    """Each process dies a random moment after a random number of calls, whatever the speed of the machine."""
    rng = np.random.default_rng(seed)
    with open(path, "w") as said:
        for _ in range(times):
            reading, writing = os.pipe()
            pid = child(where, 10**6, writing)
            os.close(writing)
            with open(reading) as lines:
                for _ in range(rng.integers(0, 4)):
                    said.write(lines.readline())
                time.sleep(rng.uniform(0.0, 0.03))  # the moment of death, not a wait for something to happen
                os.kill(pid, signal.SIGKILL)
                said.write(lines.read())
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


def warm_up() -> None:
    """Import everything once, so that the children spend their time on the study."""
    with tempfile.TemporaryDirectory() as folder:
        study = Study.open(Path(folder) / "study.db", Space(design={"x": (0, 1)}, context={"c": (0, 1)}))
        evaluate(study, 1, lambda words: None)


if __name__ == "__main__":
    warm_up()
    command, where, first, second, path = sys.argv[1:]
    {"many": many, "make": make, "kill": kill}[command](where, int(first), int(second), path)
