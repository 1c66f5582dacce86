"""A benchmark on a scheduler and a worker that were started as the hint of its error says."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

from common import run

DASK = Path(sys.executable).with_name("dask")


def found(file: Path) -> str:
    """The address in ``file``, once the scheduler has written it."""
    pause = threading.Event()
    while True:
        if scheduler.poll() is not None:
            raise SystemExit(f"dask scheduler ended with {scheduler.returncode}")
        try:
            return str(json.loads(file.read_text(encoding="utf-8"))["address"])
        except (FileNotFoundError, json.JSONDecodeError):
            pause.wait(0.1)


quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
file = Path("scheduler.json")
scheduler = subprocess.Popen(
    [DASK, "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)], **quiet
)
try:
    address = found(file)
    worker = subprocess.Popen([DASK, "worker", address, "--nthreads", "1", "--no-dashboard"], **quiet)
    try:
        words = ["--problems", "newsvendor", "--methods", "edrbo,random", "--seeds", "100", "--evaluations", "7"]
        run("bench", "run", *words, "--dask", address, "--out", "out")
    finally:
        worker.terminate()
        worker.wait()
finally:
    scheduler.terminate()
    scheduler.wait()
table = run("bench", "table", "out")
assert "edrbo" in table, table
assert "random" in table, table
