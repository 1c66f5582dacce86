"""The same replicates on a Dask cluster: workers compute, the client alone writes the journals.

A worker returns the lines of its replicate when it is done, so that workers need no shared disk. When a worker dies,
Dask runs its replicates again elsewhere, to the same numbers, since a replicate is a pure function.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from edrbo.bench.execute import Event, describe_failure
from edrbo.bench.journal import Failure, Journal
from edrbo.bench.replicate import Evaluation, Replicate, Result, run_replicate
from edrbo.errors import EdrboError, MissingExtraError

if TYPE_CHECKING:
    from distributed import Client

CONNECT_SECONDS = 10


@dataclass(frozen=True)
class Answer:
    """What a worker sends back: the new evaluations, and how the replicate ended."""

    evaluations: tuple[Evaluation, ...]
    end: Result | Failure


def compute(replicate: Replicate, past: Sequence[Evaluation]) -> Answer:
    """Run on a worker. An error of the replicate is an answer; only a dying worker is Dask's to deal with."""
    new: list[Evaluation] = []
    try:
        return Answer(tuple(new), run_replicate(replicate, past, new.append))
    except Exception as problem:
        return Answer(tuple(new), describe_failure(problem))
