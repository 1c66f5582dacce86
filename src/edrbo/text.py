"""What is said of an answer, made once: terminal, page, report and job card show these facts, and JSON holds them.

A fact is a label, a value and what the value means. Numbers are rounded to their interval: 91, sure between 86 and 96.
Sentences about what was entered are in ``records.descriptions``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from edrbo.records.descriptions import (
    describe_context,
    describe_design,
    describe_need,
    format_outcome,
    heading,
    outcome_headings,
)
from edrbo.records.goals import parse_goal
from edrbo.records.settings import Settings
from edrbo.space.variables import number_text

ROUNDING = 0.005  # of a probability shown in per cent
TOO_EARLY = "too early to say how sure this is"
UNKNOWN = "not known yet"
VAGUE = "wider than all results lie apart, so that it says next to nothing"
NEXT_STEP = "next step"
WORTHWHILE, SMALL_GAP = 0.02, 0.1  # of how far results lie apart: what ten more runs should bring, and what may be left
MOST_FIGURES = 12  # of a number whose interval is very narrow beside it
SOURCES = {
    "model": "not known of the process",
    "contexts": "not known of the conditions",
    "experts": "not known which model is right",
}


class TriedText(Protocol):
    """A run that was tried, as it is shown."""

    @property
    def run(self) -> int: ...
    @property
    def design(self) -> Mapping[str, Any]: ...
    @property
    def context(self) -> Mapping[str, Any] | None: ...
    @property
    def value(self) -> float: ...


class OutcomeText(Protocol):
    """What is expected of one of several outcomes, as it is shown."""

    @property
    def aim(self) -> str: ...
    @property
    def expected(self) -> float: ...
    @property
    def interval(self) -> tuple[float, float]: ...
    @property
    def value(self) -> float: ...
    @property
    def unit(self) -> str: ...
    @property
    def holds(self) -> float | None: ...
    @property
    def contexts_known(self) -> float | None: ...


class LikelyText(Protocol):
    """A design that keeps the limits as far as can be expected, as it is told."""

    @property
    def design(self) -> Mapping[str, Any]: ...
    @property
    def expected(self) -> float: ...
    @property
    def interval(self) -> tuple[float, float]: ...


class ProcessChangeText(Protocol):
    """Since when the process is another, as it is told."""

    @property
    def run(self) -> int: ...
    @property
    def outcome(self) -> str: ...


class NoiseSdText(Protocol):
    """How far single results scatter, as it is told."""

    @property
    def here(self) -> float: ...
    @property
    def least(self) -> float: ...
    @property
    def most(self) -> float: ...


class RecommendationText(Protocol):
    """What a recommendation says; what it is made of stands above this module."""

    @property
    def design(self) -> Mapping[str, Any]: ...
    @property
    def goal(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def value(self) -> float: ...
    @property
    def value_interval(self) -> tuple[float, float]: ...
    @property
    def price(self) -> Mapping[str, Mapping[str, float]]: ...
    @property
    def expected(self) -> float: ...
    @property
    def interval(self) -> tuple[float, float]: ...
    @property
    def interval_parts(self) -> Mapping[str, float]: ...
    @property
    def outcome_interval(self) -> tuple[float, float]: ...
    @property
    def outcome_spread(self) -> float: ...
    @property
    def optimality_gap(self) -> float: ...
    @property
    def expected_improvement_10(self) -> float: ...
    @property
    def is_extrapolation(self) -> bool: ...
    @property
    def beats_observations(self) -> bool: ...
    @property
    def robust(self) -> float: ...
    @property
    def radius(self) -> float: ...
    @property
    def worst_case(self) -> float: ...
    @property
    def context_effect(self) -> Mapping[str, float]: ...
    @property
    def success(self) -> float | None: ...
    @property
    def earlier(self) -> Mapping[str, Mapping[str, float]]: ...
    @property
    def nearest(self) -> Sequence[TriedText]: ...
    @property
    def outcomes(self) -> Mapping[str, OutcomeText]: ...
    @property
    def limits_hold(self) -> bool | None: ...
    @property
    def approximation(self) -> Mapping[str, float] | None: ...
    @property
    def process_change(self) -> ProcessChangeText | None: ...
    @property
    def noise_sd(self) -> NoiseSdText | None: ...
    @property
    def drift_half_life(self) -> float | None: ...
    @property
    def likely(self) -> LikelyText | None: ...


class PointText(Protocol):
    """A design of a front, as it is shown."""

    @property
    def design(self) -> Mapping[str, Any]: ...
    @property
    def values(self) -> Mapping[str, float]: ...
    @property
    def intervals(self) -> Mapping[str, tuple[float, float]]: ...
    @property
    def holds(self) -> Mapping[str, float]: ...


class FrontText(Protocol):
    """A front, as it is shown."""

    @property
    def points(self) -> Sequence[PointText]: ...
    @property
    def hypervolume(self) -> float: ...
    @property
    def reference(self) -> Mapping[str, float]: ...
    @property
    def sure(self) -> bool: ...


class PolicyRowText(Protocol):
    """A context of a policy, as it is shown."""

    @property
    def context(self) -> Mapping[str, Any]: ...
    @property
    def design(self) -> Mapping[str, Any]: ...
    @property
    def expected(self) -> float: ...
    @property
    def interval(self) -> tuple[float, float]: ...


class PolicyText(Protocol):
    """A policy, as it is shown."""

    @property
    def goal(self) -> str: ...
    @property
    def known(self) -> Sequence[str]: ...
    @property
    def rows(self) -> Sequence[PolicyRowText]: ...
    @property
    def one(self) -> Mapping[str, Any]: ...
    @property
    def value(self) -> float: ...
    @property
    def value_interval(self) -> tuple[float, float]: ...
    @property
    def one_value(self) -> float: ...
    @property
    def one_interval(self) -> tuple[float, float]: ...
    @property
    def worth(self) -> float: ...
    @property
    def worth_interval(self) -> tuple[float, float]: ...


class ShareText(Protocol):
    """A share of a variance, as it is shown."""

    @property
    def value(self) -> float: ...
    @property
    def interval(self) -> tuple[float, float]: ...


class InfluenceText(Protocol):
    """What a variable does, as it is shown."""

    @property
    def role(self) -> str: ...
    @property
    def first(self) -> ShareText: ...
    @property
    def total(self) -> ShareText: ...


class SensitivityText(Protocol):
    """What matters, as it is shown."""

    @property
    def variables(self) -> Mapping[str, InfluenceText]: ...
    @property
    def shares(self) -> Mapping[str, ShareText]: ...
    @property
    def at_best(self) -> Mapping[str, ShareText]: ...


class Fact(NamedTuple):
    label: str
    value: str
    explanation: str


@dataclass(frozen=True)
class AnswerText:
    """An answer for people.

    goal        what it is best for, in words
    facts       what to expect
    sources     where the uncertainty comes from, and what moves the result
    doubts      what to check before relying on it
    price       what the goal costs and buys: a name, the answer's value, and that of the best on average
    nearest     the runs that were most like it, in a sentence
    next        what to do now, in a sentence; empty where nobody can say yet
    """

    goal: str
    facts: tuple[Fact, ...]
    sources: tuple[Fact, ...]
    doubts: tuple[str, ...]
    price: tuple[Fact, ...]
    nearest: str
    next: str

    def records(self) -> list[dict[str, str]]:
        """Facts and sources in JSON types."""
        return [fact._asdict() for fact in (*self.facts, *self.sources)]


def answer_text(found: RecommendationText, settings: Settings) -> AnswerText:
    """What is said of a recommendation."""
    return AnswerText(
        found.title,
        tuple(_facts(found, settings)),
        tuple(_sources(found, settings)),
        tuple(_doubts(found, settings)),
        tuple(_price(found, settings)),
        describe_nearest(settings, found),
        _next(found, settings),
    )


# -------------------------------------------------------------------- numbers


def rounded(value: float, ends: Sequence[float]) -> str:
    """``value`` with as many decimals as its interval is worth: 91 within ± 5, 91.3 within ± 1.5."""
    low, high = ends
    half = (high - low) / 2
    if not (math.isfinite(half) and half > 0 and math.isfinite(value)):
        return number_text(value, None) if math.isfinite(value) else UNKNOWN
    size = math.floor(math.log10(half))
    places = -size + (half < 3 * 10.0**size)  # a second figure where the first is 1 or 2
    figures = 1 + places + (math.floor(math.log10(abs(value))) if value else 0)
    if figures > MOST_FIGURES or abs(value) >= 1e15:
        return f"{value:.{MOST_FIGURES}g}"
    return f"{round(value, places) + 0.0:.{max(places, 0)}f}"


def with_unit(text: str, unit: str) -> str:
    return f"{text} {unit}" if unit else text


def percent(share: float, places: int = 0) -> str:
    return f"{100 * share:.{places}f} %"


def range_text(ends: Sequence[float], unit: str = "") -> str:
    """From one end to the other, or that nothing is known of them."""
    low, high = ends
    if not math.isfinite(high - low):
        return UNKNOWN
    return f"{rounded(low, ends)} to {with_unit(rounded(high, ends), unit)}"


def sure_text(ends: Sequence[float], unit: str = "") -> str:
    """How sure a number is."""
    return f"95 % sure: {range_text(ends, unit)}" if math.isfinite(ends[1] - ends[0]) else TOO_EARLY


def _half(width: float, unit: str) -> str:
    return with_unit(f"± {_two(width)}", unit)


def _two(number: float) -> str:
    """Two figures, for what is no more than an estimate of a size."""
    if number == 0 or not 1e-4 <= abs(number) < 1e7:
        return f"{number:.2g}"
    places = 1 - math.floor(math.log10(abs(number)))
    return f"{round(number, places) + 0.0:.{max(places, 0)}f}"


# -------------------------------------------------------------------- an answer


def _facts(found: RecommendationText, settings: Settings) -> list[Fact]:
    unit, goal_unit = settings.unit, parse_goal(found.goal).unit(settings.unit)
    facts = []
    if found.goal != "expected":
        ends = found.value_interval
        sure = sure_text(ends, goal_unit)
        vague = ends[1] - ends[0] > _spread(found, parse_goal(found.goal).kind)
        shown = with_unit(rounded(found.value, ends), goal_unit)
        facts.append(Fact(found.title, shown, f"{sure}; {VAGUE}" if vague and sure != TOO_EARLY else sure))

    def fine(value: float) -> str:
        return with_unit(rounded(value, found.interval), unit)

    facts.append(Fact("expected on average", fine(found.expected), sure_text(found.interval, unit)))
    single = "95 % of single results lie in this range"
    facts.append(Fact("the next single run", range_text(found.outcome_interval, unit), single))
    if math.isfinite(found.expected_improvement_10) and math.isfinite(found.optimality_gap):
        more = (
            f"about {with_unit(_two(found.expected_improvement_10), goal_unit)}"
            if found.expected_improvement_10 > 0
            else "next to nothing"
        )
        facts.append(Fact("ten more runs would bring", more, "how much better the answer is then expected to be"))
    if (step := _next_step(found, settings)) is not None:
        facts.append(step)
    facts.append(Fact("on the safe side", fine(found.robust), "the average, allowing for models that disagree"))
    if found.context_effect and found.radius > 0:  # otherwise it is the expected value, and no bound
        moved = f"the average if conditions move by {percent(found.radius)} of their range in the worst way; 95 % sure"
        far = abs(found.expected - found.worst_case) > _spread(found, "outcome")
        facts.append(
            Fact("if conditions turn against us", fine(found.worst_case), f"{moved}; {VAGUE}" if far else moved)
        )
    facts += [
        _outcome_fact(name, one)
        for name, one in found.outcomes.items()
        if one.holds is not None or name != settings.outcome
    ]
    if found.success is not None:
        facts.append(Fact("succeeds with", percent(found.success), "how probable it is that such a run gives a result"))
    return facts + [_earlier_fact(name, one) for name, one in found.earlier.items()]


HARDLY = 0.3  # correlation below which an earlier study says next to nothing


def _earlier_fact(name: str, one: Mapping[str, float]) -> Fact:
    """How much an earlier study counts."""
    related, runs = one["correlation"], f"its {one['runs']:.0f} runs"
    if abs(related) < HARDLY:
        words = f"{runs} are hardly like those here, and count for next to nothing"
    else:
        words = f"{runs} explain up to {percent(related**2)} of how results differ here"
    return Fact(f"like {name}", f"correlation {related:.2f}", words)


def _spread(found: RecommendationText, kind: str) -> float:
    """How far apart the results are, in the unit of a goal of this kind: a bound that is wider says nothing."""
    if kind == "probability":
        return 1.0
    return found.outcome_spread * (found.outcome_spread if kind == "squared outcome" else 1.0)  # ** would overflow


def _next_step(found: RecommendationText, settings: Settings) -> Fact | None:
    """Whether to try what is recommended, to go on, or to stop; None where nobody can say yet."""
    if found.is_extrapolation or found.beats_observations:
        return Fact(NEXT_STEP, "try these settings", "enter the result before anybody relies on them")
    if found.limits_hold is False or (found.success is not None and found.success < settings.least_success - ROUNDING):
        return Fact(NEXT_STEP, "go on", "more suggestions make this surer")
    if not (math.isfinite(found.expected_improvement_10) and math.isfinite(found.optimality_gap)):
        return None
    goal = parse_goal(found.goal)
    gap, more, spread = found.optimality_gap, found.expected_improvement_10, _spread(found, goal.kind)
    most = with_unit(_two(gap), goal.unit(settings.unit))
    if more > WORTHWHILE * spread:
        bring = with_unit(_two(more), goal.unit(settings.unit))
        return Fact(NEXT_STEP, "go on", f"ten more runs would likely bring {bring}")
    if gap > spread:
        return Fact(NEXT_STEP, "go on", "too little is known yet to say how much better other settings may be")
    if gap > SMALL_GAP * spread:
        return Fact(NEXT_STEP, "stop, or look elsewhere", f"ten more runs would bring little; at most {most} is left")
    return Fact(NEXT_STEP, "stop", f"at most {most} is left to gain, and ten more runs would bring little of it")


def _outcome_fact(name: str, one: OutcomeText) -> Fact:
    """Of one of several outcomes; of a limit also how surely it holds."""
    average = with_unit(rounded(one.expected, one.interval), one.unit)
    if one.holds is None:
        return Fact(name, average, f"{one.aim}; {sure_text(one.interval, one.unit)}")
    holds = f"holds in {percent(one.value, 1)} of conditions; {percent(one.holds)} sure that this is enough"
    return Fact(name, average, f"{one.aim}: {holds}")


def _sources(found: RecommendationText, settings: Settings) -> list[Fact]:
    unit, goal_unit = settings.unit, parse_goal(found.goal).unit(settings.unit)
    lines = []
    if math.isfinite(found.interval[1] - found.interval[0]):
        each = "its part of the 95 %; they add in squares"
        lines += [Fact(label, _half(found.interval_parts[key], unit), each) for key, label in SOURCES.items()]
    if math.isfinite(found.optimality_gap):
        most = f"at most {with_unit(_two(found.optimality_gap), goal_unit)}"
        bound = "95 % sure that no other settings are better by more"
        vague = found.optimality_gap > _spread(found, parse_goal(found.goal).kind)
        lines.append(Fact("left to gain", most, f"{bound}; {VAGUE}" if vague else bound))
    if (noise := found.noise_sd) is not None:
        among = f"standard deviation; from {_two(noise.least)} to {_two(noise.most)} among the runs: the noise varies"
        lines.append(Fact("single runs scatter", with_unit(_two(noise.here), unit), among))
    if found.drift_half_life is not None:
        half = f"after {_two(found.drift_half_life)} runs"
        lines.append(Fact("wear", half, "what was known then counts half: old runs say less about now"))
    for name, effect in found.context_effect.items():
        lines.append(Fact(f"moves with {name}", _half(effect, unit), "how much the result changes with it"))
    if found.approximation is not None:
        points, error = int(found.approximation["inducing_points"]), found.approximation["leave_out"]
        left = f"so that many runs take little time; what they leave out is {_half(error, unit)}"
        lines.append(Fact("approximated", f"{points} runs stand for all", left))
    return lines


def _doubts(found: RecommendationText, settings: Settings) -> list[str]:
    doubts = []
    if found.process_change is not None:
        doubts.append(change_text(settings, found.process_change))
    if found.is_extrapolation:
        doubts.append("Nothing like this was tried: even the nearest run is far away. Try it before relying on it.")
    if found.beats_observations:
        doubts.append("No run has come out as well as this is expected to on average. Try it before relying on it.")
    if found.limits_hold is False:
        names = " and ".join(f"the limit on {name}" for name, one in found.outcomes.items() if one.holds is not None)
        doubts.append(f"No settings are known yet that keep {names} as surely as was asked for; these come closest.")
        doubts += _needs(found, settings)
        if found.likely is not None and found.likely.design != found.design:
            doubts.append(_likely(found.likely, settings))
    if found.success is not None and found.success < settings.least_success - ROUNDING:
        asked = percent(settings.least_success)
        doubts.append(f"It may well fail: nothing that was tried succeeds with the {asked} asked for.")
    return doubts


def change_text(settings: Settings, change: ProcessChangeText) -> str:
    """That the process has changed, since when, and what can be done."""
    what = "Results come" if settings.outcomes is None else f"Results of {change.outcome} come"
    remedy = (
        "leave out the runs before it" if settings.drift is not None else "set drift, or leave out the runs before it"
    )
    return (
        f"{what} otherwise since about run {change.run}: the process seems to have changed. "
        f"If it has, {remedy}; if run {change.run} or those after it are mistyped, correct them."
    )


def _needs(found: RecommendationText, settings: Settings) -> list[str]:
    """What is missing before limits can be assured."""
    limits = {} if settings.outcomes is None else settings.outcomes.limits
    met = {name: found.outcomes[name].contexts_known for name in limits if name in found.outcomes}
    needs = [describe_need(name, limits[name], known) for name, known in met.items() if known is not None]
    return [need for need in needs if need]


def _likely(found: LikelyText, settings: Settings) -> str:
    """The alternative to an answer that gives much away to be sure."""
    value = with_unit(rounded(found.expected, found.interval), settings.unit)
    words = f"{describe_design(settings.space, found.design)}: {settings.outcome} {value} on average"
    best = "Best of what keeps the limits as far as can be expected, without being sure"
    return f"{best}: {words} ({sure_text(found.interval)})."


def _next(found: RecommendationText, settings: Settings) -> str:
    """The next step as a sentence."""
    step = _next_step(found, settings)
    return "" if step is None else f"Next: {step.value}. {step.explanation[:1].upper()}{step.explanation[1:]}."


def _price(found: RecommendationText, settings: Settings) -> list[Fact]:
    """None if the average is the goal, or nothing is met that could be robust to."""
    if found.goal == "expected" or not found.context_effect:
        return []
    here, average = found.price["recommended"], found.price["on average"]
    ends = found.interval
    return [
        Fact(
            name,
            with_unit(rounded(here[name], ends), settings.unit),
            with_unit(rounded(average[name], ends), settings.unit),
        )
        for name in here
    ]


def describe_nearest(settings: Settings, found: RecommendationText) -> str:
    """The runs that were most like it."""
    return f"The nearest runs: {'; '.join(_run(settings, one) for one in found.nearest)}."


def _run(settings: Settings, one: TriedText) -> str:
    met = "" if one.context is None else f" at {describe_context(settings.space, one.context)}"
    design = describe_design(settings.space, one.design)
    return f"run {one.run} ({design}) gave {format_outcome(settings, one.value)}{met}"


# -------------------------------------------------------------------- a front


def front_table(settings: Settings, front: FrontText) -> tuple[list[str], list[list[str]]]:
    """Headings, and the cells of each design: what to set, what to expect of each main outcome with its 95 % interval,
    and how sure each limit is."""
    design, outcomes = settings.space.design, outcome_headings(settings)
    limits = list(front.points[0].holds)
    heads = [heading(name, variable.unit) for name, variable in design.items()]
    heads += [*(outcomes[name] for name in front.reference), *(f"{name} holds" for name in limits)]
    rows = []
    for point in front.points:
        cells = [design[name].text(value) for name, value in point.design.items()]
        cells += [expected_text(point, name) for name in front.reference]
        rows.append(cells + [f"{percent(point.holds[name])} sure" for name in limits])
    return heads, rows


def expected_text(point: PointText, name: str) -> str:
    """What to expect of a main outcome of a design, with its 95 % interval."""
    value, (low, high) = point.values[name], point.intervals[name]
    return (
        f"{rounded(value, (low, high))} ({range_text((low, high))})"
        if math.isfinite(high - low)
        else number_text(value)
    )


def describe_hypervolume(front: FrontText) -> str:
    """What the designs of a front dominate together."""
    behind = ", ".join(f"{name} {value:.4g}" for name, value in front.reference.items())
    return f"They dominate a hypervolume of {front.hypervolume:.4g}, down to {behind}."


def describe_doubt(front: FrontText) -> str | None:
    """What is to be said of limits that may not hold."""
    return None if front.sure else "No settings are known yet that keep all limits as surely as was asked for."


# -------------------------------------------------------------------- a policy


def policy_table(settings: Settings, found: PolicyText) -> tuple[list[str], list[list[str]]]:
    """Headings, and the cells of each context: what is met, what to set then, and what to expect with its interval."""
    space = settings.space
    heads = [heading(name, space.context[name].unit) for name in found.known]
    heads += [heading(name, variable.unit) for name, variable in space.design.items()]
    heads += [heading(settings.outcome, settings.unit), "95 %"]
    rows = []
    for row in found.rows:
        cells = [space.context[name].text(value) for name, value in row.context.items()]
        cells += [space.design[name].text(value) for name, value in row.design.items()]
        rows.append([*cells, rounded(row.expected, row.interval), range_text(row.interval)])
    return heads, rows


def policy_text(settings: Settings, found: PolicyText) -> list[str]:
    """What it is worth to know the context before choosing, and whether that is sure."""
    unit, names = parse_goal(found.goal).unit(settings.unit), " and ".join(found.known)
    low, high = found.worth_interval
    one = f"always set to {describe_design(settings.space, found.one)}"
    if not math.isfinite(high - low):
        return [f"Knowing {names} before choosing: {TOO_EARLY}."]
    half = 0.5 * (high - low)
    worth = f"{rounded(found.worth, (low, high))} ± {with_unit(rounded(half, (low, high)), unit)}"
    values = [
        with_unit(rounded(value, ends), unit)
        for value, ends in ((found.value, found.value_interval), (found.one_value, found.one_interval))
    ]
    lines = [f"Knowing {names} before choosing is worth {worth} a run: {values[0]} against {values[1]} {one}."]
    if low <= 0.0:
        lines.append("It may as well be worth nothing: the 95 % interval begins at or below zero.")
    return lines


# -------------------------------------------------------------------- what matters

NEGLIGIBLE = 0.05  # of the variance: too little to be worth a thought
SHARES = {"designs": "settings", "contexts": "conditions", "both": "settings and conditions together", "noise": "noise"}


def share_text(share: ShareText) -> str:
    """A share of a variance with its interval: 31 % (22 to 40)."""
    low, high = share.interval
    return f"{percent(share.value)} ({100 * low:.0f} to {100 * high:.0f})"


def sensitivity_table(found: SensitivityText) -> tuple[list[str], list[list[str]]]:
    """Headings, and the cells of each variable: what it is, by itself, and with the others."""
    roles = {"design": "set", "context": "met"}
    rows = [
        [name, roles[one.role], share_text(one.first), share_text(one.total)] for name, one in found.variables.items()
    ]
    return ["variable", "is", "by itself", "with the others"], rows


def sensitivity_text(found: SensitivityText) -> list[str]:
    """Where the differences between results come from, and what follows for the conditions."""
    parts = ", ".join(f"{SHARES[name]} {share_text(share)}" for name, share in found.shares.items())
    lines = [f"Of the variance of results when settings are anywhere: {parts}."]
    if found.at_best:
        there = ", ".join(f"{SHARES[name]} {share_text(share)}" for name, share in found.at_best.items())
        lines.append(f"At the recommended settings: {there}.")
    if "both" in found.shares:
        lines.append(_advice(found.shares["contexts"], found.shares["both"]))
    return lines


def _advice(contexts: ShareText, both: ShareText) -> str:
    """Whether conditions are worth recording at all."""
    if contexts.interval[1] + both.interval[1] < NEGLIGIBLE:
        return "Conditions hardly matter: results would be as good without recording them."
    if both.interval[1] < NEGLIGIBLE:
        return "Conditions move results, but what is best hardly depends on them; recording them takes out their part."
    if both.interval[0] > NEGLIGIBLE:
        return "What is best depends on conditions: record them, and know them first if you can."
    return "Whether what is best depends on conditions is not sure yet."
