"""Run replicates on worker processes, each with one thread, and tell what happens as events.

A worker journals its replicate itself. A replicate that raises is recorded with its traceback; a worker that dies costs
its replicate and is replaced. Neither stops the others. Workers are spawned, not forked: torch and fork do not mix.

A sweep knows which replicates are wanted and which of them are done; one lock keeps two sweeps apart.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Literal

from edrbo.bench import problems as registry
from edrbo.bench.problems.oracle.goals import need_goal
from edrbo.bench.problems.oracle.search import remembering
from edrbo.bench.run.journal import Failure, Journal, is_finished, journal_path, journal_paths, read_journal
from edrbo.bench.run.plugin import PAPER_METHODS, Plugin, get_problem, method_names, problem_names
from edrbo.bench.run.replicate import Evaluation, Replicate, ReplicateSettings, run_replicate
from edrbo.errors import EdrboError, InvalidValueError, UnknownNameError
from edrbo.records.goals import parse_goal


@dataclass(frozen=True)
class Plan:
    """The replicates still to run, in order, and how many were finished before."""

    todo: tuple[Replicate, ...]
    finished: int


def all_replicates(
    problems: str, methods: str, seeds: str, settings: ReplicateSettings, plugin: Plugin | None = None
) -> list[Replicate]:
    """Every combination, seed by seed, so that a sweep stopped early is a smaller sweep and not half a table.

    ``all`` means the nine problems and the nine methods of the paper, and what a plugin adds; ``further`` the problems
    that are not the paper's, ``high`` those of many designs, ``classic`` those of the literature of robust design,
    ``bbob`` the family, of which ``bbob-choose`` and ``bbob-confirm`` are the halves, and ``bbob-noisy`` its noisy one.
    """
    own = {kind: list(plugin.table(kind)) if plugin else [] for kind in ("METHODS", "PROBLEMS")}
    chosen = _choose("method", methods, method_names(plugin), {"all": [*PAPER_METHODS, *own["METHODS"]]})
    groups = {
        "all": [*registry.names(), *own["PROBLEMS"]],
        "further": registry.further_names(),
        "high": registry.high_names(),
        "classic": registry.classic_names(),
        "bbob": registry.bbob_names(),
        "bbob-choose": registry.bbob_names("choose"),
        "bbob-confirm": registry.bbob_names("confirm"),
        "bbob-noisy": registry.bbob_names(noisy=True),
    }
    found = _choose("problem", problems, problem_names(plugin), groups)
    for name in found:
        for goal in settings.goals:  # missing data and oracles are found out before anything runs
            need_goal(get_problem(name, plugin), parse_goal(goal))
    return [
        Replicate(problem, method, seed, settings, plugin)
        for seed in read_seeds(seeds)
        for problem in found
        for method in chosen
    ]


def _choose(kind: str, text: str, known: Sequence[str], groups: Mapping[str, Sequence[str]]) -> list[str]:
    """The names in ``text``, each once; a name of a group stands for all its members."""
    names: list[str] = []
    family = [name for name in known if name.startswith("bbob-")]
    choice = ", ".join([*groups, *(name for name in known if name not in family), *family[:1]])
    for name in filter(None, (part.strip() for part in text.split(","))):
        if name not in groups and name not in known:
            raise UnknownNameError(f"no {kind} is called {name!r}", f"one of {choice}")
        names += groups.get(name, [name])
    if not names:
        raise InvalidValueError(f"no {kind} is named", f"one of {choice}")
    return list(dict.fromkeys(names))


def read_seeds(text: str) -> list[int]:
    """``100:110`` (the end excluded), ``7``, or several of these with commas between."""
    seeds: list[int] = []
    try:
        for part in text.split(","):
            first, colon, last = part.partition(":")
            seeds += range(int(first), int(last)) if colon else [int(first)]
    except ValueError:
        raise InvalidValueError(f"seeds are {text!r}", "write 100:110, or 1,2,3") from None
    if not seeds or min(seeds) < 0:
        raise InvalidValueError(f"{text!r} holds no seed, or a negative one", "write 100:110, or 1,2,3")
    return list(dict.fromkeys(seeds))


def read_looks(text: str) -> tuple[int, ...]:
    """``50,100``; nothing is no look."""
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise InvalidValueError(f"looks are {text!r}", "write numbers of evaluations: 50,100") from None


def read_noise(text: str) -> tuple[float, float]:
    """A standard deviation, ``0.3``, and one as a share of the range, ``5%``: one of them is zero."""
    number, percent, rest = text.strip().partition("%")
    try:
        if rest:
            raise ValueError
        return (0.0, float(number) / 100.0) if percent else (float(number), 0.0)
    except ValueError:
        raise InvalidValueError(f"noise is {text!r}", "write a standard deviation, 0.3, or 5%") from None


def make_plan(replicates: Sequence[Replicate], directory: Path, resume: bool) -> Plan:
    """What is left to do in ``directory``, which holds journals already only if ``resume`` allows it."""
    if not resume and journal_paths(directory):
        raise EdrboError(f"{directory} holds results already", "go on with --resume, or give another --out")
    todo = tuple(replicate for replicate in replicates if not is_finished(replicate, directory))
    return Plan(todo, len(replicates) - len(todo))


@contextmanager
def sole_writer(directory: Path) -> Iterator[None]:
    """Hold the lock of a directory. It goes away with the process, however that ends."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w") as lock:
        if sys.platform != "win32":
            import fcntl

            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise EdrboError(f"another run is writing to {directory}", "wait for it, or stop it") from None
        yield


Kind = Literal["started", "searching", "evaluated", "finished", "failed"]
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class SweepEvent:
    """``seconds`` of an evaluated suggestion; ``t`` evaluations are complete; ``failure`` of a failed replicate."""

    kind: Kind
    replicate: Replicate
    t: int = 0
    seconds: float = 0.0
    failure: Failure | None = None
    text: str = ""  # what is looked for


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

            def search(text: str) -> None:
                notify(SweepEvent("searching", replicate, len(journal.past), text=text))

            try:
                with remembering(search):
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
