"""`edrbo serve` as a process of its own, which can be killed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

START = "from edrbo.cli import main; main()"


class Process:
    def __init__(self, where: str | Path, port: int = 0, *words: str) -> None:
        self._words = [sys.executable, "-c", START, "serve", str(where), *words, "--port"]
        self.port = port
        self.start()

    def start(self) -> None:
        """Start, and wait until it listens; again on the same port."""
        self._process = subprocess.Popen(
            [*self._words, str(self.port)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1"},
        )
        assert self._process.stdout is not None
        for line in self._process.stdout:  # the socket listens before the address is printed
            if line.startswith("http://"):
                self.port = int(line.split(":")[2].split("/")[0])
                return
        raise AssertionError(f"the server ended with {self._process.wait()}")

    def cpu(self) -> float:
        """Seconds of CPU that it used so far."""
        words = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


@contextmanager
def process(where: str | Path, *words: str) -> Iterator[Process]:
    server = Process(where, 0, *words)
    try:
        yield server
    finally:
        server.kill()
