"""`edrbo serve` as a process of its own, which can be killed."""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

# A process that has imported everything, and makes one that serves of itself whenever it is given the words to serve
# with: nothing of one server is known to the next, and none costs seconds of imports.
NURSERY = """
import json, os, sys
from contextlib import suppress
import edrbo.lab.cli.serve, edrbo.lab.report.page, edrbo.lab.study, edrbo.lab.web.app, edrbo.lab.web.server
with suppress(ImportError):
    import alembic.command, psycopg2, sqlalchemy.dialects.postgresql.psycopg2, optuna.storages._rdb.models
from edrbo.lab.cli import main
for line in sys.stdin:
    child = os.fork()
    if not child:
        sys.stdin.close()
        print("child", os.getpid(), flush=True)
        sys.argv = ["edrbo", *json.loads(line)]
        main()
        os._exit(0)
    os.waitpid(child, 0)
    print("ended", flush=True)
"""


class Nursery:
    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", NURSERY],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1"},
        )
        atexit.register(self._process.communicate)

    def start(self, words: list[str]) -> tuple[int, int]:
        """Serve, and wait until it listens; gives the number of the process and its port."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()
        child = int(self._until("child").split()[1])
        address = self._until("http://")  # the socket listens before the address is printed
        return child, int(address.split(":")[2].split("/")[0])

    def ended(self) -> None:
        """Wait until the server has ended."""
        self._until("ended")

    def _until(self, word: str) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(word):
                return line
            assert not line.startswith("ended"), "the server ended by itself"
        raise AssertionError(f"no server can be started: {self._process.wait()}")


@cache
def idle() -> list[Nursery]:
    """Those without a server at present; they end with the process that made them."""
    return []


class Process:
    def __init__(self, where: str | Path, port: int = 0, *words: str) -> None:
        self._words = ["serve", str(where), *words, "--port"]
        self.port = port
        self._nursery = idle().pop() if idle() else Nursery()
        self.start()

    def start(self) -> None:
        """Again on the same port, once there is one."""
        self._number, self.port = self._nursery.start([*self._words, str(self.port)])

    def cpu(self) -> float:
        """Seconds of CPU that it used so far."""
        words = Path(f"/proc/{self._number}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def kill(self) -> None:
        os.kill(self._number, signal.SIGKILL)
        self._nursery.ended()

    def leave(self) -> None:
        """Kill it for good."""
        self.kill()
        idle().append(self._nursery)


@contextmanager
def process(where: str | Path, *words: str) -> Iterator[Process]:
    server = Process(where, 0, *words)
    try:
        yield server
    finally:
        server.leave()
