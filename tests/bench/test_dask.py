"""A real cluster with a worker process, which is killed half-way and replaced."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import distributed
import pytest

from edrbo.bench.run import dask_cluster
from edrbo.bench.run.dask_cluster import WorkerResult, compute, connect, run_on_dask
from edrbo.bench.run.execute import SweepEvent
from edrbo.bench.run.journal import Failure, Journal, journal_path, read_journal
from edrbo.bench.run.replicate import Evaluation, Replicate, ReplicateSettings, run_replicate
from edrbo.errors import EdrboError

SETTINGS = ReplicateSettings(evaluations=6)
REPLICATES = [Replicate("newsvendor", method, seed, SETTINGS) for seed in range(2) for method in ("random", "ucb")]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[distributed.LocalCluster]:
    with distributed.LocalCluster(
        n_workers=1,  # what it held and what it did not are both lost; each costs the imports of torch and Dask
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",  # None is port 8787, which another run of the tests may have
        local_directory=str(tmp_path),
        silence_logs=50,
    ) as started:
        yield started


def assert_uninterrupted(directory: Path, replicate: Replicate) -> None:
    record = read_journal(journal_path(directory, replicate))
    whole: list[Evaluation] = []
    result = run_replicate(replicate, [], whole.append)
    assert record is not None
    assert [replace(one, seconds=0.0) for one in record.evaluations] == [replace(one, seconds=0.0) for one in whole]
    assert record.result is not None
    assert replace(record.result, seconds=0.0) == replace(result, seconds=0.0)


def test_a_killed_worker_costs_nothing(cluster: distributed.LocalCluster, tmp_path: Path) -> None:
    out = tmp_path / "out"
    begun: list[Evaluation] = []
    run_replicate(REPLICATES[1], [], begun.append)
    with Journal(out, REPLICATES[1]) as journal:
        for one in begun[:3]:  # half of this replicate was done before, by processes of this machine
            journal.add(one)
    events: list[SweepEvent] = []
    with connect(cluster.scheduler_address) as client:
        victim = next(iter(client.run(os.getpid).values()))
        for event in run_on_dask(REPLICATES, out, client):
            if not events:
                os.kill(victim, signal.SIGKILL)
            events.append(event)
        assert victim not in client.run(os.getpid).values()
    ends = [event for event in events if event.kind in ("finished", "failed")]
    assert [event.kind for event in ends] == ["finished"] * len(REPLICATES)
    for one in REPLICATES:
        assert_uninterrupted(out, one)
    record = read_journal(journal_path(out, REPLICATES[1]))
    assert record is not None
    assert record.evaluations[:3] == begun[:3]


def test_an_error_is_an_answer_and_a_recorded_row(tmp_path: Path) -> None:
    broken = Replicate("newsvendor", "unknown", 0, SETTINGS)
    header = {"hash": broken.settings_hash(), "versions": {}, "machine": {"host": "there"}}
    answer = WorkerResult(header, (), Failure("Error: no", "Traceback"))
    events = list(dask_cluster._write(answer, broken, tmp_path))
    assert [event.kind for event in events] == ["started", "failed"]
    record = read_journal(journal_path(tmp_path, broken))
    assert record is not None
    assert record.failure == answer.end
    assert record.header["machine"] == {"host": "there"}


def test_a_worker_with_other_code_is_refused(tmp_path: Path) -> None:
    answer = compute(REPLICATES[0], None)
    other = replace(answer, header={**answer.header, "hash": "another"})
    (event,) = dask_cluster._write(other, REPLICATES[0], tmp_path)
    assert event.failure is not None
    assert "another version" in event.failure.error
    assert read_journal(journal_path(tmp_path, REPLICATES[0])) is None


def test_a_missing_scheduler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_cluster, "CONNECT_SECONDS", 0.2)
    with pytest.raises(EdrboError, match="Dask"), connect("tcp://127.0.0.1:9"):
        pass
