"""Live progress of a sweep: done, running, failed, speed of each method, time left.

On a terminal it is a live display; elsewhere (a log file, a batch job) a plain line now and then.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from edrbo.bench.run.execute import SweepEvent
    from edrbo.bench.run.replicate import Replicate

LINE_SECONDS = 30.0
REFRESH_SECONDS = 0.5


class Progress:
    """Keeps count of events and shows it."""

    def __init__(self, todo: Sequence[Replicate], finished: int, workers: int, console: Console) -> None:
        self.finished, self.before = finished, finished
        self.total = finished + len(todo)
        self.failures: list[SweepEvent] = []
        self.running: dict[Replicate, int] = {}
        self._searches: dict[Replicate, str] = {}  # for best designs, which the speed of suggestions knows nothing of
        self._workers = workers
        self._left = Counter[str]()  # evaluations still to make, by method
        for replicate in todo:
            self._left[replicate.method] += replicate.settings.evaluations
        self._seconds: dict[str, float] = defaultdict(float)
        self._count = Counter[str]()
        self._console = console
        self._started = self._shown = time.monotonic()
        # Refreshed by events: a thread of its own would read the counts while they change.
        self._live = Live(console=console, get_renderable=self.render, auto_refresh=False, transient=True)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._live.stop()
        self._console.print(self.line(), highlight=False)

    def update(self, event: SweepEvent) -> None:
        method = event.replicate.method
        if event.kind == "searching":
            self._searches[event.replicate] = event.text
            self._show(now=True)
            return
        self._searches.pop(event.replicate, None)
        if event.kind == "started":
            self.running[event.replicate] = event.t
            self._left[method] -= event.t
        elif event.kind == "evaluated":
            self.running[event.replicate] = event.t
            self._left[method] -= 1
            self._seconds[method] += event.seconds
            self._count[method] += 1
        else:
            reached = self.running.pop(event.replicate, 0)
            if event.kind == "failed":
                self._left[method] -= event.replicate.settings.evaluations - reached
                self.failures.append(event)
            else:
                self.finished += 1
        self._show()

    def _show(self, now: bool = False) -> None:
        time_, terminal = time.monotonic(), self._console.is_terminal
        if not now and time_ - self._shown < (REFRESH_SECONDS if terminal else LINE_SECONDS):
            return
        self._shown = time_
        if terminal:
            self._live.refresh()
        else:
            self._console.print(self.line(), highlight=False)

    def speed(self, method: str) -> float | None:
        """Mean seconds per suggestion of a method; None before its first."""
        return self._seconds[method] / self._count[method] if self._count[method] else None

    def seconds_left(self) -> float | None:
        """What is left at the speed so far; methods not met yet count with the mean of the others."""
        known = sum(self._count.values())
        if not known:
            return None
        typical = sum(self._seconds.values()) / known
        work = sum(left * (typical if (own := self.speed(m)) is None else own) for m, left in self._left.items())
        return work / self._workers

    def line(self) -> str:
        left = self.seconds_left()
        parts = [f"{self.finished} of {self.total} replicates done"]
        if self.before:
            parts.append(f"{self.before} of them before")
        parts += [f"{len(self.running)} running", f"{len(self.failures)} failed"]
        parts.append(f"{_clock(time.monotonic() - self._started)} elapsed")
        if left and self.finished + len(self.failures) < self.total:
            parts.append(f"about {_clock(left)} left{' and searches' if self._searches else ''}")
        parts += list(dict.fromkeys(self._searches.values()))
        return ", ".join(parts)

    def render(self) -> Group:
        table = Table(box=None, pad_edge=False)
        table.add_column("method")
        table.add_column("s / suggestion", justify="right")
        table.add_column("evaluations left", justify="right")
        table.add_column("running")
        for method, left in self._left.items():
            speed = self.speed(method)
            now = [f"{r.problem} {r.seed} ({t})" for r, t in self.running.items() if r.method == method]
            table.add_row(method, "" if speed is None else f"{speed:.3f}", str(left), ", ".join(now))
        bar = ProgressBar(total=max(1, self.total), completed=self.finished + len(self.failures))
        return Group(table, Text(self.line()), bar)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"
