"""What several tests of the benchmark share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from edrbo.bench.run import execute


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """``edrbo bench run`` without processes of its own, whose imports cost more than a small replicate."""

    def run(replicates: Sequence[execute.Replicate], directory: Path, workers: int) -> Iterator[execute.Event]:
        for one in replicates:
            events: list[execute.Event] = []
            execute.carry_out(one, directory, events.append)
            yield from events

    monkeypatch.setattr(execute, "run_on_processes", run)
