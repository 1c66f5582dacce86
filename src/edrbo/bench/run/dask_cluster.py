"""The same replicates on a Dask cluster: workers compute, the client alone writes the journals.

A worker sends back its whole replicate when it is done, so that workers need no shared disk. When a worker dies, Dask
runs its replicates again elsewhere, to the same numbers, since a replicate is a pure function.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from edrbo.bench.problems.oracle.search import remembering
from edrbo.bench.run.execute import SweepEvent, describe_failure, record_failure
from edrbo.bench.run.journal import Failure, Journal, Record, continues, journal_path, make_header, read_journal
from edrbo.bench.run.replicate import Evaluation, Replicate, ReplicateResult, run_replicate
from edrbo.errors import EdrboError, MissingExtraError

CONNECT_SECONDS = 15


def _import_distributed() -> Any:
    """Dask's scheduler package, which has no usable types."""
    return import_module("distributed")


@contextmanager
def connect(address: str) -> Iterator[Any]:
    """A client of the scheduler at ``address``, whose workers have one thread each."""
    try:
        distributed = _import_distributed()
    except ModuleNotFoundError:
        raise MissingExtraError("Dask is not installed", "pip install 'edrbo[dask]'") from None
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as problem:
        hint = "start one with `dask scheduler`, its workers with `dask worker ADDRESS --nthreads 1`"
        raise EdrboError(f"no Dask scheduler answers at {address}: {problem}", hint) from None
    with client:
        if any(threads != 1 for threads in client.nthreads().values()):
            hint = "start workers with --nthreads 1 and, for several on a machine, --nworkers"
            raise EdrboError("a Dask worker has several threads, which would share a random generator", hint)
        yield client


@dataclass(frozen=True)
class WorkerResult:
    """What a worker sends back: its own header, the new evaluations, and how the replicate ended."""

    header: dict[str, Any]
    evaluations: tuple[Evaluation, ...]
    end: ReplicateResult | Failure


def compute(replicate: Replicate, begun: Record | None) -> WorkerResult:
    """Run on a worker. An error of the replicate is an answer; only a dying worker is Dask's to deal with."""
    header, new = make_header(replicate), list[Evaluation]()
    past = begun.evaluations if begun is not None and continues(begun.header, header) else []
    end: ReplicateResult | Failure
    try:
        with remembering(lambda text: None):
            end = run_replicate(replicate, past, new.append)
    except Exception as problem:
        end = describe_failure(problem)
    return WorkerResult(header, tuple(new), end)


def run_on_dask(replicates: Sequence[Replicate], directory: Path, client: Any) -> Generator[SweepEvent]:
    """Run all of ``replicates``. Closing the iterator early cancels what is not done."""
    tasks = {
        client.submit(compute, one, read_journal(journal_path(directory, one)), pure=False): one for one in replicates
    }
    try:
        for task in _import_distributed().as_completed(list(tasks)):
            replicate = tasks.pop(task)
            problem = task.exception()
            if problem is not None:  # its workers died time and again
                failure = describe_failure(problem)
                record_failure(replicate, directory, failure)
                yield SweepEvent("failed", replicate, failure=failure)
            else:
                yield from _write(task.result(), replicate, directory)
    finally:
        client.cancel(list(tasks))


def _write(answer: WorkerResult, replicate: Replicate, directory: Path) -> Iterator[SweepEvent]:
    """Journal an answer, and tell of it what is reported of a replicate at home."""
    try:
        if answer.header["hash"] != replicate.settings_hash():
            raise EdrboError(
                f"the worker {answer.header['machine']['host']} has another version of edrbo or other portfolio data",
                "install the same on every machine",
            )
        with Journal(directory, replicate, answer.header) as journal:
            yield SweepEvent("started", replicate, len(journal.past))
            for one in answer.evaluations:
                journal.add(one)
                yield SweepEvent("evaluated", replicate, one.t + 1, one.seconds)
            journal.add(answer.end)
    except (EdrboError, OSError) as problem:
        yield SweepEvent("failed", replicate, failure=describe_failure(problem))
        return
    if isinstance(answer.end, Failure):
        yield SweepEvent("failed", replicate, failure=answer.end)
    else:
        yield SweepEvent("finished", replicate, replicate.settings.evaluations)
