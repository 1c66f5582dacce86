"""A line that says what is going on, for whoever waits at a terminal.

It stands on standard error, begins after a second and is gone at the end. Scripts see nothing of it.
"""

from __future__ import annotations

import json
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from edrbo.lab.cli.output import printable, say, wants_json

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

DELAY = 1.0  # seconds until something is shown: what is shorter needs no words
LONGEST = 1e6  # seconds that are believed of an earlier time

Advance = Callable[[int, int], None]  # how many steps are done, of how many


@contextmanager
def progress(what: str, command: str) -> Iterator[Advance]:
    """Say what is being done as long as it lasts, with the seconds so far and how long it took last time.

    Where steps can be counted, call what this gives with how many are done and how many there are: then a bar shows
    them and the time that is left. Nothing may be printed on standard output meanwhile. Ctrl-C ends the command.

    Args:
        what: In a few words, as in "working out the answer".
        command: Under this name the time it took is remembered for the next time.
    """
    if wants_json() or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    line, started = _Line(what, usual_seconds(command)), time.monotonic()
    timer = threading.Timer(DELAY, line.show)
    timer.name, timer.daemon = "edrbo progress", True
    timer.start()
    try:
        yield line.advance
    except KeyboardInterrupt:
        line.hide()
        say("stopped", err=True)
        raise typer.Exit(130) from None
    finally:
        timer.cancel()
        line.hide()
    remember_seconds(command, time.monotonic() - started)


class _Line:
    """What is shown once ``show`` was called, from a thread of its own, and until ``hide``."""

    def __init__(self, what: str, usual: float | None) -> None:
        self._describe, self._usual, self._started = printable(what), usual, time.monotonic()
        self._lock, self._over = threading.Lock(), False
        self._steps: tuple[int, int] | None = None
        self._bars: Progress | None = None
        self._task: TaskID

    def show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Task as Shown
        from rich.text import Text

        line = self

        class Seconds(ProgressColumn):
            def render(self, task: Shown) -> Text:
                return Text(line.time_words())

        parts: list[ProgressColumn] = [SpinnerColumn("line"), TextColumn("{task.description}", markup=False), Seconds()]
        with self._lock:
            if self._over:
                return
            if self._steps is not None:
                parts += [BarColumn(), TimeRemainingColumn()]
            # standard output may be a file, and is not to be led to the terminal
            console = Console(stderr=True)
            self._bars = Progress(*parts, console=console, transient=True, redirect_stdout=False)
            done, total = self._steps or (0, None)
            self._task = self._bars.add_task(self._describe, completed=done, total=total)
            self._bars.start()

    def advance(self, done: int, total: int) -> None:
        with self._lock:
            self._steps = done, total
            if self._bars is not None:
                self._bars.update(self._task, completed=done, total=total)

    def hide(self) -> None:
        with self._lock:
            self._over = True
            if self._bars is not None:
                self._bars.stop()
                self._bars = None

    def time_words(self) -> str:
        steps, seconds = self._steps, time.monotonic() - self._started
        counted = "" if steps is None else f"{steps[0]} of {steps[1]}, "
        usual = "" if self._usual is None or steps is not None else f", last time {self._usual:.0f} s"
        return f"… {counted}{seconds:.0f} s{usual}"


def usual_seconds(command: str) -> float | None:
    """How long the command took last time; None if that was less than a second or is not known."""
    seconds = _remembered().get(command)
    return seconds if seconds is not None and seconds >= DELAY else None


def remember_seconds(command: str, seconds: float) -> None:
    """For the next time. Nothing is lost if it cannot be kept."""
    if (path := _memory()) is None:
        return
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f"{path.name}.{os.getpid()}")
        beside.write_text(json.dumps({**_remembered(), command: round(seconds, 1)}))
        beside.replace(path)


def _remembered() -> dict[str, float]:
    path = _memory()
    found: object = {}
    with suppress(OSError, ValueError):
        found = {} if path is None else json.loads(path.read_text())
    pairs = found.items() if isinstance(found, dict) else ()
    return {
        str(name): float(seconds)
        for name, seconds in pairs
        if isinstance(seconds, int | float) and math.isfinite(seconds) and 0 <= seconds < LONGEST
    }


def _memory() -> Path | None:
    """A small file of names of commands and seconds, where programs keep what they can do without; None without a
    home."""
    place = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    with suppress(RuntimeError):
        return (Path(place) if place else Path.home() / ".cache") / "edrbo" / "seconds.json"
    return None
