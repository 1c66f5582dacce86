"""An answer in sentences, the same for the terminal and the page."""

from __future__ import annotations

import math
from collections.abc import Mapping

from edrbo.optimizer.answer import TriedRun
from edrbo.optimizer.recommendation import Recommendation
from edrbo.records.settings import Settings
from edrbo.records.words import context_words, design_words, outcome_words

ROUNDING = 0.005  # of a probability shown in per cent
TOO_EARLY = "not known yet: one outcome has no scale"
SOURCES = {"model": "what is not known of f", "contexts": "few contexts", "experts": "models that differ"}


def range_words(interval: tuple[float, float], unit: str = "") -> str:
    """low and high, or that nothing is known of them."""
    low, high = interval
    return f"{low:.6g} and {high:.6g}{unit and ' ' + unit}" if math.isfinite(high - low) else TOO_EARLY


def interval_words(interval: tuple[float, float], half_widths: Mapping[str, float]) -> str:
    """What an interval is made of: of the mean, or of the goal's value."""
    if not math.isfinite(interval[1]):
        return "One outcome has no scale: nothing can be said of how far it is from the truth."
    parts = [f"± {half_widths[key]:.2g} from {source}" for key, source in SOURCES.items()]
    return f"The interval: {', '.join(parts)} (they add in squares)."


def stopping_words(found: Recommendation, unit: str) -> str:
    """What more runs would be good for; ``unit`` is that of the goal's value."""
    if not math.isfinite(found.left_to_gain):
        return "With one outcome nobody can say what is left to gain."
    unit = unit and f" {unit}"
    more = f"some {found.ten_more_runs:.1g}{unit}" if found.ten_more_runs > 0.0 else "next to nothing"
    return (
        f"With 95 % probability no design is better by more than {found.left_to_gain:.2g}{unit}; "
        f"ten more runs would bring {more}."
    )


def success_words(settings: Settings, found: Recommendation) -> str | None:
    """How probable it is that a run of the design succeeds; None as long as none has failed."""
    if found.success is None:
        return None
    short = found.success < settings.least_success - ROUNDING
    doubt = f", and no design tried reaches the {settings.least_success:.0%} asked for" if short else ""
    return f"{found.success:.0%}{doubt}"


def support_words(settings: Settings, found: Recommendation) -> str | None:
    """A warning if the design or its value is beyond everything tried; None if not."""
    what = []
    if found.untried:
        what.append("this design is far from every one tried")
    if found.unseen:
        what.append("no run has come out as good as this is expected to be on average")
    return f"Untested: {' and '.join(what)}. {nearest_words(settings, found)}" if what else None


def nearest_words(settings: Settings, found: Recommendation) -> str:
    """The runs that were most like it."""
    return f"The nearest runs: {'; '.join(_run(settings, one) for one in found.nearest)}."


def _run(settings: Settings, one: TriedRun) -> str:
    met = "" if one.context is None else f" at {context_words(settings.space, one.context)}"
    design = design_words(settings.space, one.design)
    return f"run {one.run} ({design}) gave {outcome_words(settings, one.value)}{met}"


def outcome_rows(found: Recommendation) -> dict[str, list[str]]:
    """Of each of several outcomes: its aim, its average, the interval of that, and of a limit how it holds."""
    rows = {}
    for name, one in found.outcomes.items():
        unit = one.unit and f" {one.unit}"
        holds = "" if one.holds is None else f"in {one.value:.1%} of contexts; {one.holds:.0%} sure that it is enough"
        rows[name] = [one.aim, f"{one.expected:.6g}{unit}", range_words(one.interval, one.unit), holds]
    return rows


def limits_words(found: Recommendation) -> str:
    """What is to be said of limits that may not hold."""
    unsure = [name for name, one in found.outcomes.items() if one.holds is not None]
    names = " and ".join(f"the limit on {name}" for name in unsure)
    return f"No design is known yet that keeps {names} as surely as was asked for: this one comes closest."
