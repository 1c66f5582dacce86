"""For those who have a function: run the whole loop, with a bar in a terminal or a notebook for those who watch."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from edrbo.acquisition.methods import Method
from edrbo.errors import EdrboError, EdrboWarning, ImplausibleWarning, InvalidValueError
from edrbo.optimizer.constrained import need_one_main
from edrbo.optimizer.optimizer import Optimizer
from edrbo.optimizer.recommendation import Recommendation
from edrbo.records.goals import Goal
from edrbo.records.input_reading import spell_checked
from edrbo.records.outcomes import Limit, Maximize, Minimize, OutcomeRange
from edrbo.records.reported import Function, check_function, evaluate
from edrbo.records.sanity import not_typed
from edrbo.records.settings import (
    DEFAULT,
    INITIAL,
    LEAST_SUCCESS,
    Drift,
    NoiseModel,
    Outliers,
    Purpose,
    Settings,
)
from edrbo.records.state import State
from edrbo.space import Space
from edrbo.space.variables import number_text

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


MOST_NAMED = 5  # runs that a summary names


@dataclass(frozen=True)
class Result:
    """``recommendation`` is the answer; ``optimizer`` holds all data and can go on.

    Args:
        recommendation: The answer.
        optimizer: The optimizer with all data.
    """

    recommendation: Recommendation
    optimizer: Optimizer

    def __str__(self) -> str:
        return f"{self.recommendation}\n{self.optimizer!r}"

    def _repr_html_(self) -> str:
        """The recommendation, and the results on the way to it, for notebooks."""
        return self.recommendation._repr_html_() + self.optimizer._repr_html_()


@spell_checked
def maximize(
    f: Function,
    space: Space,
    evaluations: int,
    *,
    method: str | Method = DEFAULT,
    seed: int = 0,
    progress: Progress | bool | None = None,
    most_errors: int | None = 3,
    context_half_life: float | None = None,
    initial: int = INITIAL,
    goal: Goal | str = "expected",
    aim: Purpose = "operate",
    least_success: float = LEAST_SUCCESS,
    outliers: Outliers = "robust",
    drift: Drift = None,
    noise_model: NoiseModel = "auto",
    outcome: str = "value",
    unit: str = "",
    title: str = "",
    outcome_range: OutcomeRange | str | tuple[float | None, float | None] | None = None,
    outcomes: Mapping[str, Maximize | Minimize | Limit] | None = None,
    context_distribution: Any = None,
    cost: str | Callable[[dict[str, Any]], float] | None = None,
    earlier: Any = None,
) -> Result:
    """Evaluate ``f`` ``evaluations`` times and recommend the design that is best on average over contexts.

    Ctrl-C stops early; what was evaluated is kept and used. Whatever else ends the loop carries the optimizer and its
    data on the exception: ``problem.optimizer``.

    >>> import edrbo, random
    >>> def sales(design):
    ...     demand = random.random()
    ...     return {"demand": demand}, 9 * min(design["order"], demand) - 5 * design["order"]
    >>> space = edrbo.Space(design={"order": (0, 1)}, context={"demand": (0, 1)})
    >>> result = edrbo.maximize(sales, space, evaluations=8)

    Args:
        f: Takes a design and returns ``(context, value)``, both as the world gave them; for a space without contexts,
            the value alone. An exception, and a number that is NaN or infinite, count as a failed evaluation and are
            passed on as a warning.
        space: What is set and what the world sets.
        evaluations: How many evaluations are made.
        method: How designs are chosen: a name of ``edrbo.method_names()``, or a ``Method``.
        seed: Seed of everything random: the same seed and data give the same suggestions.
        progress: Called after every evaluation. None: a bar is shown in a terminal or a notebook; True: always, False:
            never.
        most_errors: So many failures in a row end the loop; None: never.
        context_half_life: A context's weight halves with every so many later ones; None: all count alike.
        initial: Quasi-random designs before the model takes over.
        goal: What best means: a text such as "cvar:0.1", or a ``Goal``.
        aim: "operate" if every run counts, "identify" if only the design in the end does.
        least_success: Designs that succeed with less probability are not recommended.
        outliers: "robust": single outcomes absurdly far from all others are not learned from; "keep": they are.
        drift: f itself changes: after so many runs what it was counts half; "learned": the data say how fast.
        noise_model: "auto": noise varies over designs and contexts if the data say so; "constant": it does not.
        outcome: What is measured, as "gloss".
        unit: The unit of what is measured.
        title: A name for people.
        outcome_range: What the outcome can be at all, as (0, 100) or (0, None): answers are held to it.
        outcomes: What each of several outcomes is for: ``Maximize``, ``Minimize`` or ``Limit`` by name.
        context_distribution: The distribution of contexts, if you know it: a text such as "humidity = norm(55, 12)",
            distributions by name, or samples.
        cost: What a run costs, in what you set: a text such as "1 + 9 * x", or a function of a design.
        earlier: Studies of related machines, campaigns or a simulator to learn from: files, studies or
            ``EarlierStudy``; each counts as much as it is like this one.
    """
    return _run(
        f, evaluations, progress, most_errors, Settings.of_call(locals(), evaluations=_planned(evaluations, aim))
    )


@spell_checked
def minimize(
    f: Function,
    space: Space,
    evaluations: int,
    *,
    method: str | Method = DEFAULT,
    seed: int = 0,
    progress: Progress | bool | None = None,
    most_errors: int | None = 3,
    context_half_life: float | None = None,
    initial: int = INITIAL,
    goal: Goal | str = "expected",
    aim: Purpose = "operate",
    least_success: float = LEAST_SUCCESS,
    outliers: Outliers = "robust",
    drift: Drift = None,
    noise_model: NoiseModel = "auto",
    outcome: str = "value",
    unit: str = "",
    title: str = "",
    outcome_range: OutcomeRange | str | tuple[float | None, float | None] | None = None,
    outcomes: Mapping[str, Maximize | Minimize | Limit] | None = None,
    context_distribution: Any = None,
    cost: str | Callable[[dict[str, Any]], float] | None = None,
    earlier: Any = None,
) -> Result:
    """The same for a cost: the design with the least expected value.

    Args:
        f: Takes a design and returns ``(context, value)``, both as the world gave them; for a space without contexts,
            the value alone. An exception, and a number that is NaN or infinite, count as a failed evaluation and are
            passed on as a warning.
        space: What is set and what the world sets.
        evaluations: How many evaluations are made.
        method: How designs are chosen: a name of ``edrbo.method_names()``, or a ``Method``.
        seed: Seed of everything random: the same seed and data give the same suggestions.
        progress: Called after every evaluation. None: a bar is shown in a terminal or a notebook; True: always, False:
            never.
        most_errors: So many failures in a row end the loop; None: never.
        context_half_life: A context's weight halves with every so many later ones; None: all count alike.
        initial: Quasi-random designs before the model takes over.
        goal: What best means: a text such as "cvar:0.1", or a ``Goal``.
        aim: "operate" if every run counts, "identify" if only the design in the end does.
        least_success: Designs that succeed with less probability are not recommended.
        outliers: "robust": single outcomes absurdly far from all others are not learned from; "keep": they are.
        drift: f itself changes: after so many runs what it was counts half; "learned": the data say how fast.
        noise_model: "auto": noise varies over designs and contexts if the data say so; "constant": it does not.
        outcome: What is measured, as "gloss".
        unit: The unit of what is measured.
        title: A name for people.
        outcome_range: What the outcome can be at all, as (0, 100) or (0, None): answers are held to it.
        outcomes: What each of several outcomes is for: ``Maximize``, ``Minimize`` or ``Limit`` by name.
        context_distribution: The distribution of contexts, if you know it: a text such as "humidity = norm(55, 12)",
            distributions by name, or samples.
        cost: What a run costs, in what you set: a text such as "1 + 9 * x", or a function of a design.
        earlier: Studies of related machines, campaigns or a simulator to learn from: files, studies or
            ``EarlierStudy``; each counts as much as it is like this one.
    """
    return _run(
        f,
        evaluations,
        progress,
        most_errors,
        Settings.of_call(locals(), direction="minimize", evaluations=_planned(evaluations, aim)),
    )


def _planned(evaluations: int, aim: Purpose) -> int | None:
    """How many evaluations there will be, where the setting is to judge that."""
    return evaluations if aim == "identify" else None


def _run(
    f: Function,
    evaluations: int,
    progress: Progress | bool | None,
    most_errors: int | None,
    settings: Settings,
) -> Result:
    if isinstance(evaluations, bool) or not isinstance(evaluations, int) or evaluations < 1:
        raise InvalidValueError(f"evaluations is {evaluations!r}", "at least one evaluation is needed")
    if most_errors is not None and (not isinstance(most_errors, int) or most_errors < 1):
        raise InvalidValueError(f"most_errors is {most_errors!r}", "it is a whole number from 1, or None")
    check_function(f)
    if settings.outcomes is not None:
        need_one_main(settings.outcomes)  # before the budget is spent
    optimizer = Optimizer.of(State.start(settings))
    try:
        _evaluate(f, evaluations, progress, most_errors, optimizer)
        _warn_of_implausible(optimizer)
        return Result(_recommended(optimizer), optimizer)
    except BaseException as problem:
        vars(problem)["optimizer"] = optimizer
        problem.add_note(f"What was evaluated ({len(optimizer)} outcomes) is in the `optimizer` of this exception.")
        raise


def _evaluate(
    f: Function, evaluations: int, progress: Progress | bool | None, most_errors: int | None, optimizer: Optimizer
) -> None:
    errors = 0  # in a row
    try:
        with watched(progress, evaluations) as advance:
            for _ in range(evaluations):
                suggestion = optimizer.ask()
                found = evaluate(f, suggestion.design, optimizer.space)
                if found.problem is None:
                    errors = 0
                    with not_typed():  # one summary in the end
                        optimizer.tell(suggestion, found.context, found.value)
                else:
                    errors += 1
                    warnings.warn(f"evaluation {suggestion.id} failed: {found.why}", EdrboWarning, stacklevel=5)
                    optimizer.tell(suggestion, found.context, failed=True, why=found.why)
                    if errors == most_errors:
                        _give_up(optimizer, errors, found.problem)
                        break
                advance(optimizer)
    except KeyboardInterrupt:
        if len(optimizer) == 0:
            raise


def _recommended(optimizer: Optimizer) -> Recommendation:
    """The answer; what it warns of points at whoever called the loop."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        found = optimizer.recommend()
    for one in heard:
        warnings.warn(one.message, stacklevel=5)
    return found


def _warn_of_implausible(optimizer: Optimizer) -> None:
    found = [str(one.run) for one in optimizer.implausible()]
    if found:
        shown = ", ".join([*found[:MOST_NAMED], *["…"] * (len(found) > MOST_NAMED)])
        words = f"{len(found)} of {len(optimizer)} evaluations look odd beside the others: {shown}"
        warnings.warn(f"{words}; `optimizer.implausible()` says why", ImplausibleWarning, stacklevel=5)


def _give_up(optimizer: Optimizer, errors: int, problem: Exception | str) -> None:
    """The function is broken: an error, unless there are outcomes, which are worth an answer."""
    last = problem if isinstance(problem, str) else repr(problem)
    words = f"the function failed {errors} times in a row, last with {last}"
    if len(optimizer) == 0:
        raise EdrboError(words, "mend it, or say most_errors=None if most designs may fail") from (
            problem if isinstance(problem, Exception) else None
        )
    warnings.warn(f"{words}; stopped after {len(optimizer)} outcomes", EdrboWarning, stacklevel=6)
