"""What is reported of a run: one outcome or several by name, of one row or of several."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edrbo.errors import InvalidContextError, InvalidEventError, InvalidValueError
from edrbo.records import events as e
from edrbo.records.outcomes import Outcomes
from edrbo.records.run import ONE_BY_ONE, Run, Series, checked
from edrbo.records.settings import Settings
from edrbo.records.validation import holds_unusable, read_noise, read_value
from edrbo.space import Space

ReportedOutcomes = dict[str, Any]  # value, noise, others and others_noise, as events and runs have them
NUMBER = "it is one number; the context comes first: tell(suggestion, context, value)"
LONGEST_REASON = 200  # characters of an error that are kept with the run
Function = Callable[[dict[str, Any]], Any]


def check_function(f: Function) -> None:
    """InvalidValueError for what cannot be called with a design, before anything is asked for."""
    try:
        inspect.signature(f).bind({})
    except ValueError:
        return  # of a builtin, which says nothing of its arguments
    except TypeError as problem:
        hint = "it takes one argument, the design as a dict: def f(design): x = design['x']"
        raise InvalidValueError(f"the function cannot be called with a design: {problem}", hint) from None


def reported(settings: Settings, value: Any, noise_variance: Any, control: Any = None) -> ReportedOutcomes:
    """From what people tell: a number each, or numbers by name in a study of several outcomes. What is None was not
    measured."""
    outcomes = settings.outcomes
    if control is not None:
        return {**reported(settings, value, noise_variance), "control": _control(settings, control)}
    if outcomes is None:
        if isinstance(value, Mapping | list | tuple):
            raise InvalidValueError(f"the value is {value!r}", NUMBER)
        return {"value": value, "noise_variance": noise_variance}
    found: ReportedOutcomes = {}
    for name, other, given in (("value", "others", value), ("noise_variance", "others_noise_variance", noise_variance)):
        if given is not None and not isinstance(given, Mapping):
            hint = f'give numbers by name, as in {{"{outcomes.main}": 1.2}}; the outcomes are {list(outcomes)}'
            raise InvalidValueError(f"the {name} is {given!r}, and there are several outcomes", hint)
        known = {outcomes.known(key): part for key, part in (given or {}).items() if part is not None}
        found[name] = known.pop(outcomes.main, None)
        found[other] = known or None
    return found


def _control(settings: Settings, given: Any) -> float:
    """What a control run gave of the main outcome."""
    if isinstance(given, Mapping):
        names = [name if settings.outcomes is None else settings.outcomes.known(name) for name in given]
        stray = next((name for name in names if name != settings.outcome), None)
        if stray is not None or not names:
            hint = f"only the main outcome, {settings.outcome}, is relative to a control run; limits are absolute"
            raise InvalidValueError(f"a control of {stray!r} was reported", hint)
        (given,) = given.values()
    return read_value(given, "control")


def relative(value: Any, control: float | None) -> Any:
    """An outcome as it counts: less what the control run gave."""
    return value if value is None or control is None else read_value(value) - control


def check_control(settings: Settings, run: Run, runs: Mapping[int, Run]) -> None:
    """All outcomes are relative to a control run, or none is: what is learned of both would be of neither."""
    if run.control is not None and settings.outcome_range is not None:
        hint = "take the range of outcomes away: differences have another"
        raise InvalidValueError("an outcome relative to a control run has no known range", hint)
    for other in runs.values() if run.value is not None else ():
        if other.id == run.id or other.status != "reported" or other.dropped or other.value is None:
            continue
        if (other.control is None) != (run.control is None):
            said = "has a control run" if run.control is not None else "has no control run"
            hint = "leave the other out first, or give every outcome relative to a control run"
            raise InvalidValueError(f"run {run.id} {said}, and run {other.id} is otherwise", hint)
        return


def is_empty(parts: ReportedOutcomes) -> bool:
    """Whether nothing was measured."""
    return parts["value"] is None and not parts.get("others")


def measured(settings: Settings, event: e.Reported | e.Corrected, run: Run | None) -> ReportedOutcomes:
    """What ``event`` says, over what was known of ``run``; an error if that cannot be."""
    known = settings.outcomes
    for name in (*(event.others or ()), *(event.others_noise_variance or ())):
        if known is None:
            raise InvalidValueError(f"{name!r} was reported, and this study has one outcome", "give one number")
        if known.known(name) == known.main:
            raise InvalidEventError(f"{name!r} is the main outcome", "it is the event's value")
    value, noise_variance, control = event.value, event.noise_variance, event.control
    others, others_noise_variance = dict(event.others or {}), dict(event.others_noise_variance or {})
    if run is not None:
        known_value = run.value if run.control is None else run.measured
        value, noise_variance, control = (
            known_value if value is None else value,
            run.noise_variance if noise_variance is None else noise_variance,
            run.control if control is None else control,
        )
        others, others_noise_variance = {**run.others, **others}, {**run.others_noise_variance, **others_noise_variance}
    if value is None and not others:
        read_value(value)  # says what is wrong
    stray = [name for name in others_noise_variance if name not in others]
    if stray or (noise_variance is not None and value is None):
        name = stray[0] if stray else settings.outcome
        raise InvalidValueError(f"{name!r} has a noise and no value", "give both, or leave the noise out")
    if control is not None and value is None:
        raise InvalidValueError("there is a control run and no value", "give both, or leave the control out")
    return {
        "value": relative(value, control),
        "control": control,
        "measured": None if control is None else value,
        "noise_variance": noise_variance,
        "others": others,
        "others_noise_variance": others_noise_variance,
    }


def keep_outcomes(old: Settings, new: Settings) -> None:
    """What was reported stays reported: outcomes may come, and change what they are for, but the main one stays."""
    if new.outcomes == old.outcomes:
        return
    if new.outcome != old.outcome:
        raise InvalidEventError("the main outcome of a study cannot change", "make a new study")
    gone = [name for name in old.outcomes or () if name not in (new.outcomes or ())]
    if gone:
        raise InvalidEventError(
            f"the outcome {gone[0]!r} cannot go", "it was reported; a wide limit asks nothing of it"
        )


Array = NDArray[np.float64]

HOW = "give a list, as in tell(s, contexts=[…], values=[…])"
HOW_SEVERAL = 'give lists by name, as in values={"gloss": […], "haze": […]}, or a list of dictionaries'


def reported_series(settings: Settings, contexts: Any, values: Any, noise_variance: Any) -> dict[str, Any]:
    """The fields of an event: rows of contexts and values, and a variance for each or for all.

    Of several outcomes, values and variances are lists by name, or one dictionary a row; None: not measured.
    """
    if values is None or isinstance(values, str | bytes) or not np.iterable(values):
        raise InvalidValueError(f"the values are {values!r}", HOW)
    outcomes = settings.outcomes
    series = _one(values, noise_variance) if outcomes is None else _several(outcomes, values, noise_variance)
    return checked(_with_contexts(settings, series, contexts)).fields()


def _one(values: Any, noise_variance: Any) -> Series:
    if isinstance(values, Mapping):
        raise InvalidValueError(f"the values are {values!r}", HOW)
    numbers = np.array([read_value(value) for value in values], dtype=np.float64)
    return Series(np.empty((len(numbers), 0)), numbers, _variances(noise_variance, len(numbers)))


def _several(outcomes: Outcomes, values: Any, noise_variance: Any) -> Series:
    columns = _columns(outcomes, values, "the values")
    (count, *more) = {len(column) for column in columns.values()} or {0}
    if more:
        lengths = ", ".join(f"{len(column)} of {name}" for name, column in columns.items())
        raise InvalidValueError(
            f"the rows are {lengths}", "give one entry for each row, None where nothing was measured"
        )
    variances = {} if noise_variance is None else _noises(outcomes, noise_variance, count)
    stray = [name for name in variances if name not in columns]
    if stray:
        raise InvalidValueError(f"{stray[0]!r} has a noise and no value", "give both, or leave the noise out")
    nothing = np.full(count, np.nan)
    found = {name: (_numbers(column), variances.get(name, nothing)) for name, column in columns.items()}
    for name in found if isinstance(noise_variance, Mapping) else ():
        if not np.iterable(noise_variance.get(name)):  # one for all rows in which it was measured
            found[name] = (found[name][0], np.where(np.isnan(found[name][0]), np.nan, found[name][1]))
    values_of_main, noises_of_main = found.pop(outcomes.main, (nothing, nothing))
    return Series(np.empty((count, 0)), values_of_main, noises_of_main, found)


def _numbers(column: list[Any]) -> Array:
    return np.array([np.nan if value is None else read_value(value) for value in column], dtype=np.float64)


def _columns(outcomes: Outcomes, given: Any, what: str) -> dict[str, list[Any]]:
    """Entries by outcome, from lists by name or from a dictionary a row."""
    if isinstance(given, Mapping):
        for name, column in given.items():
            if isinstance(column, str | bytes | Mapping) or not np.iterable(column):
                raise InvalidValueError(f"{what} of {name!r} are {column!r}", HOW_SEVERAL)
        return {outcomes.known(name): list(column) for name, column in given.items()}
    rows = list(given)
    if not all(isinstance(row, Mapping) for row in rows):
        raise InvalidValueError(f"{what} are {rows[:3]!r}, and there are several outcomes", HOW_SEVERAL)
    names = dict.fromkeys(outcomes.known(name) for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _noises(outcomes: Outcomes, noise_variance: Any, count: int) -> dict[str, Array]:
    if isinstance(noise_variance, Mapping):
        return {
            outcomes.known(name): _variances(part, count) for name, part in noise_variance.items() if part is not None
        }
    if isinstance(noise_variance, str | bytes) or not isinstance(noise_variance, Iterable):
        raise InvalidValueError(f"the noise is {noise_variance!r}, and there are several outcomes", HOW_SEVERAL)
    return {
        name: _variances(column, count) for name, column in _columns(outcomes, noise_variance, "the noises").items()
    }


def _with_contexts(settings: Settings, series: Series, contexts: Any) -> Series:
    space, count = settings.space, len(series)
    if not count:
        raise InvalidValueError("there is no value", "give at least one row")
    if contexts is None and space.d_c:
        raise InvalidContextError("there are values and no contexts", ONE_BY_ONE)
    if contexts is not None and not space.d_c:
        raise InvalidContextError("this space has no context variables", "tell(s, values=[…])")
    rows = space.read_contexts(contexts, partial=True) if space.d_c else np.empty((count, 0))
    if len(rows) != count:
        raise InvalidContextError(f"{len(rows)} contexts for {count} values", ONE_BY_ONE)
    return Series(rows, series.values, series.noise_variances, series.others)


def _variances(noise_variance: Any, count: int) -> Array:
    given = (
        list(noise_variance)
        if np.iterable(noise_variance) and not isinstance(noise_variance, str | bytes)
        else [noise_variance] * count
    )
    if len(given) != count:
        raise InvalidValueError(f"{len(given)} noise variances for {count} values", "give one for each row, or one")
    return np.array([np.nan if (one := read_noise(part)) is None else one for part in given], dtype=np.float64)


# -------------------------------------------------------------------- by a function of the user's


@dataclass(frozen=True)
class FunctionResult:
    """What a function gave for a design; ``problem`` says why there is no value."""

    context: Any = None
    value: Any = None
    problem: Exception | str | None = None

    @property
    def why(self) -> str | None:
        """The problem in words, to be kept with the run."""
        words = self.problem if isinstance(self.problem, str | None) else repr(self.problem)
        return None if words is None else words[:LONGEST_REASON]


def evaluate(f: Function, design: Mapping[str, Any], space: Space) -> FunctionResult:
    """Call ``f``, which gives ``(context, value)``, or the value alone where there are no contexts.

    An exception, and a number that is NaN or infinite, are problems; another answer is an InvalidValueError.
    """
    try:
        answer = f(dict(design))
    except Exception as raised:
        return FunctionResult(problem=raised)
    context, value = _read_answer(answer, space)
    if holds_unusable(context):
        return FunctionResult(problem=f"the context is {context!r}")
    return FunctionResult(context, value, f"the value is {value!r}" if holds_unusable(value) else None)


def _read_answer(answer: Any, space: Space) -> tuple[Any, Any]:
    if not space.d_c:
        return None, answer
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise InvalidValueError(f"the function returned {answer!r}", "return the pair (context, value)")
    return answer
