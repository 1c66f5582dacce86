"""The outcomes reported of a run: one value, or some of several by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edrbo.errors import InvalidEventError, InvalidValueError
from edrbo.records import events as e
from edrbo.records.run import Run
from edrbo.records.settings import Settings
from edrbo.records.validation import read_value

ReportedOutcomes = dict[str, Any]  # value, noise, others and others_noise, as events and runs have them
NUMBER = "it is one number; the context comes first: tell(suggestion, context, value)"


def reported(settings: Settings, value: Any, noise_variance: Any) -> ReportedOutcomes:
    """From what people tell: a number each, or numbers by name in a study of several outcomes. What is None was not
    measured."""
    outcomes = settings.outcomes
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
    value, noise_variance = event.value, event.noise_variance
    others, others_noise_variance = dict(event.others or {}), dict(event.others_noise_variance or {})
    if run is not None:
        value, noise_variance = (
            run.value if value is None else value,
            run.noise_variance if noise_variance is None else noise_variance,
        )
        others, others_noise_variance = {**run.others, **others}, {**run.others_noise_variance, **others_noise_variance}
    if value is None and not others:
        read_value(value)  # says what is wrong
    stray = [name for name in others_noise_variance if name not in others]
    if stray or (noise_variance is not None and value is None):
        name = stray[0] if stray else settings.outcome
        raise InvalidValueError(f"{name!r} has a noise and no value", "give both, or leave the noise out")
    return {
        "value": value,
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
