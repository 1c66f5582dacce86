"""Run replicates on worker processes, each with one thread, and tell what happens as events.

A worker journals its replicate itself. A replicate that raises is recorded with its traceback; a worker that dies costs
its replicate and is replaced. Neither stops the others. Workers are spawned, not forked: torch and fork do not mix.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Literal

from edrbo.bench.run.journal import Failure, Journal, journal_path, read_journal
from edrbo.bench.run.replicate import Evaluation, Replicate, run_replicate

Kind = Literal["started", "evaluated", "finished", "failed"]
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class SweepEvent:
    """``seconds`` of an evaluated suggestion; ``t`` evaluations are complete; ``failure`` of a failed replicate."""

    kind: Kind
    replicate: Replicate
    t: int = 0
    seconds: float = 0.0
    failure: Failure | None = None


def describe_failure(problem: BaseException) -> Failure:
    lines = traceback.format_exception(problem)
    return Failure(f"{type(problem).__name__}: {problem}", "".join(lines))


def carry_out(replicate: Replicate, directory: Path, notify: Callable[[SweepEvent], None]) -> None:
    """Run one replicate from where its journal ends, and journal it. Errors are recorded, not raised."""
    try:
        with Journal(directory, replicate) as journal:
            notify(SweepEvent("started", replicate, t=len(journal.past)))

            def record(one: Evaluation) -> None:
                journal.add(one)
                notify(SweepEvent("evaluated", replicate, one.t + 1, one.seconds))

            try:
                journal.add(run_replicate(replicate, journal.past, record))
            except Exception as problem:
                journal.add(describe_failure(problem))
                raise
    except Exception as problem:  # a full disk ends here as well: the journal may lack the row, the summary has it
        notify(SweepEvent("failed", replicate, failure=describe_failure(problem)))
    else:
        notify(SweepEvent("finished", replicate, replicate.settings.evaluations))


def record_failure(replicate: Replicate, directory: Path, failure: Failure) -> None:
    """Add the row of a replicate that could not write it itself, after what it did write, whoever computed that."""
    begun = read_journal(journal_path(directory, replicate))
    header = begun.header if begun is not None and begun.header["hash"] == replicate.settings_hash() else None
    with suppress(OSError), Journal(directory, replicate, header) as journal:
        journal.add(failure)


def run_on_processes(replicates: Sequence[Replicate], directory: Path, workers: int) -> Generator[SweepEvent]:
    """Run all of ``replicates``. Closing the iterator early ends the workers; their journals can be gone on with."""
    queue = deque(replicates)
    team = [_Worker(directory) for _ in range(min(workers, len(queue)))]
    try:
        for worker in team:
            worker.give(queue.popleft())
        while busy := [worker for worker in team if worker.replicate is not None]:
            ready = wait([worker.connection for worker in busy])
            for i, worker in enumerate(team):
                if worker.connection not in ready:
                    continue
                event = worker.receive()
                yield event
                if event.kind in ("finished", "failed"):
                    if not worker.alive and queue:
                        worker = team[i] = _Worker(directory)
                    worker.give(queue.popleft() if queue else None)
    finally:
        for worker in team:
            worker.end()


class _Worker:
    """A process that runs one replicate after the other; ``replicate`` is the one it has now."""

    def __init__(self, directory: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.replicate: Replicate | None = None
        self.alive = True
        self._directory = directory
        self._process: BaseProcess = context.Process(target=_work, args=(theirs, directory), daemon=True)
        with _one_thread_environment():
            self._process.start()
        theirs.close()

    def give(self, replicate: Replicate | None) -> None:
        self.replicate = replicate
        if replicate is not None:
            with suppress(OSError):  # a worker that died before is found out by `receive`
                self.connection.send(replicate)

    def receive(self) -> SweepEvent:
        assert self.replicate is not None
        try:
            event: SweepEvent = self.connection.recv()
            return event
        except (EOFError, OSError):
            self.alive = False
            self._process.join()
            text = f"the worker process ended with exit code {self._process.exitcode}"
            failure = Failure(text, f"{text} while it ran {self.replicate}\n")
            record_failure(self.replicate, self._directory, failure)
            return SweepEvent("failed", self.replicate, failure=failure)

    def end(self) -> None:
        self._process.terminate()
        self._process.join()
        self.connection.close()


class _one_thread_environment:
    """Numerical libraries read these variables when they are loaded, that is when a worker starts."""

    def __enter__(self) -> None:
        self._before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
        os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))

    def __exit__(self, *_: object) -> None:
        for name, value in self._before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _work(connection: Connection[SweepEvent, Replicate], directory: Path) -> None:
    """The life of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    threading.Thread(target=_die_with_parent, daemon=True).start()
    with suppress(EOFError):
        while True:
            carry_out(connection.recv(), directory, connection.send)


def _die_with_parent() -> None:
    """A parent killed with -9 cannot end its workers, and an orphan must not write into a resumed run."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
