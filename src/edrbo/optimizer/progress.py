"""How far a loop is, for those who watch: a bar in a terminal or a notebook, nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from edrbo.errors import InvalidValueError
from edrbo.optimizer.optimizer import Optimizer
from edrbo.space.steps import number_text

Progress = Callable[[Optimizer], None]


@contextmanager
def watched(progress: Progress | bool | None, evaluations: int) -> Iterator[Progress]:
    """What to call after every evaluation: a function of the user's, or a bar.

    None shows a bar if somebody can see it, True in any case, False never.
    """
    if callable(progress):
        yield progress
        return
    if not isinstance(progress, bool | None):
        raise InvalidValueError(f"progress is {progress!r}", "it is a function of the optimizer, True, False or None")
    if progress is None and in_notebook():
        make: Any = _notebook_bar
    else:
        make = _terminal_bar if progress or (progress is None and sys.stderr.isatty()) else _no_bar
    with make(evaluations) as advance:
        yield advance


def in_notebook() -> bool:
    """Whether this runs in a kernel of Jupyter."""
    return "ipykernel" in sys.modules


@contextmanager
def _no_bar(evaluations: int) -> Iterator[Progress]:
    yield lambda optimizer: None


@contextmanager
def _terminal_bar(evaluations: int) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    parts = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bars(*parts, console=Console(stderr=True)) as bars:
        task = bars.add_task("evaluating", total=evaluations)
        yield lambda optimizer: bars.update(task, advance=1, description=describe_best(optimizer))


@contextmanager
def _notebook_bar(evaluations: int) -> Iterator[Progress]:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        with _no_bar(evaluations) as nothing:
            yield nothing
        return
    with tqdm(total=evaluations) as bar:

        def advance(optimizer: Optimizer) -> None:
            bar.set_description(describe_best(optimizer), refresh=False)
            bar.update(1)

        yield advance


def describe_best(optimizer: Optimizer) -> str:
    """The best outcome so far, in words."""
    y = optimizer.observations.y
    if not len(y):
        return "no outcome yet"
    best = y.max() if optimizer.direction == "maximize" else y.min()
    return f"best {number_text(float(best))}"
