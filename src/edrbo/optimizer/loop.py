"""For those who have a function: run the whole loop."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from edrbo.acquisition.methods import Method
from edrbo.errors import InvalidValueError
from edrbo.optimizer.optimizer import Optimizer
from edrbo.optimizer.recommendation import Recommendation
from edrbo.records.settings import DEFAULT
from edrbo.records.units import Direction
from edrbo.space import Space

Function = Callable[[dict[str, Any]], Any]
Progress = Callable[[Optimizer], None]


@dataclass(frozen=True)
class Result:
    """``recommendation`` is the answer; ``optimizer`` holds all data and can go on."""

    recommendation: Recommendation
    optimizer: Optimizer


def maximize(
    f: Function,
    space: Space,
    evaluations: int,
    *,
    method: str | Method = DEFAULT,
    seed: int = 0,
    progress: Progress | None = None,
    **settings: Any,
) -> Result:
    """Evaluate ``f`` ``evaluations`` times and recommend the design that is best on average over contexts.

    ``f(design)`` returns ``(context, value)``, both as the world gave them; for a space without contexts, the value
    alone. An exception from ``f`` counts as a failed evaluation and is passed on as a warning. ``progress`` is called
    after every evaluation. Ctrl-C stops early; what was evaluated is kept and used.

    >>> import edrbo, random
    >>> def sales(design):
    ...     demand = random.random()
    ...     return {"demand": demand}, 9 * min(design["order"], demand) - 5 * design["order"]
    >>> space = edrbo.Space(design={"order": (0, 1)}, context={"demand": (0, 1)})
    >>> result = edrbo.maximize(sales, space, evaluations=8)
    """
    return _run("maximize", f, space, evaluations, method, seed, progress, settings)


def minimize(
    f: Function,
    space: Space,
    evaluations: int,
    *,
    method: str | Method = DEFAULT,
    seed: int = 0,
    progress: Progress | None = None,
    **settings: Any,
) -> Result:
    """The same for a cost: the design with the least expected value."""
    return _run("minimize", f, space, evaluations, method, seed, progress, settings)


def _run(
    direction: Direction,
    f: Function,
    space: Space,
    evaluations: int,
    method: str | Method,
    seed: int,
    progress: Progress | None,
    settings: Mapping[str, Any],
) -> Result:
    if evaluations < 1:
        raise InvalidValueError(f"evaluations is {evaluations!r}", "at least one evaluation is needed")
    optimizer = Optimizer(space, method, direction=direction, seed=seed, **settings)
    try:
        for _ in range(evaluations):
            suggestion = optimizer.ask()
            try:
                answer = f(dict(suggestion.design))
            except Exception as problem:
                warnings.warn(f"evaluation {suggestion.id} failed: {problem!r}", stacklevel=3)
                optimizer.tell(suggestion, failed=True)
            else:
                context, value = _read_answer(answer, space)
                optimizer.tell(suggestion, context, value)
            if progress is not None:
                progress(optimizer)
    except KeyboardInterrupt:
        if len(optimizer) == 0:
            raise
    return Result(optimizer.recommend(), optimizer)


def _read_answer(answer: Any, space: Space) -> tuple[Any, Any]:
    if not space.d_c:
        return None, answer
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise InvalidValueError(f"the function returned {answer!r}", "return the pair (context, value)")
    return answer
