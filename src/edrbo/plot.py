"""Every picture of a study: what it shows is described once, for notebooks, the report and the lab page.

``Pictures`` makes the descriptions (``edrbo.charts``). The functions draw them with matplotlib: each takes an
``Optimizer``, a ``Study`` or the ``Result`` of a loop, and gives a ``Figure``, of its own or that of ``ax``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from edrbo.acquisition.scores import SQRT2
from edrbo.charts import Axis, Band, Bars, Chart, Heat, Line, Mark, Points, Rule, Spans, number, span
from edrbo.errors import EdrboError, InvalidSpaceError, NothingReportedError
from edrbo.optimizer.answers import Prediction
from edrbo.optimizer.calibration import Z95, LeaveOneOut, leave_one_out
from edrbo.optimizer.optimizer import Optimizer
from edrbo.optimizer.pareto import ParetoFront
from edrbo.optimizer.recommendation import Recommendation
from edrbo.optimizer.sensitivity import Sensitivity, Share
from edrbo.optimizer.tradeoff import Tradeoff
from edrbo.optimizer.training_data import TrainingData
from edrbo.palette import notebook_figure
from edrbo.records import events as e
from edrbo.records.context_log import ContextLog
from edrbo.records.descriptions import (
    STATUSES,
    broken_limits,
    describe_context,
    describe_design,
    describe_outcomes,
    heading,
    measured,
    outcome_headings,
    outcome_of,
)
from edrbo.records.goals import Expected, Goal
from edrbo.records.outcomes import Limit, Units
from edrbo.records.reducer import undone
from edrbo.records.run import Run
from edrbo.records.settings import Settings
from edrbo.records.state import State, spending
from edrbo.space import Space, Variable
from edrbo.space.point_tables import close_match
from edrbo.space.variables import format_value
from edrbo.streams import stream
from edrbo.text import SHARES, range_text, rounded, share_text, with_unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "answers",
    "belief",
    "calibration",
    "contexts",
    "progress",
    "results",
    "sensitivity",
    "slices",
    "surface",
    "timeline",
    "tradeoff",
]

Array = NDArray[np.float64]


class HasOptimizer(Protocol):
    """A ``Study``, or the ``Result`` of a loop."""

    @property
    def optimizer(self) -> Optimizer: ...


Drawable = Optimizer | HasOptimizer

POINTS = 49  # of a curve along a real variable
LEVELS = 40  # values of an integer that are shown
GRID_POINTS = 25  # of each side of a heat map
CONTEXT_POINTS = 17  # of the side of a condition
MOST_DOTS = 1_500  # in one chart
MOST_BARS = 80  # runs of a timeline
MOST_ANSWERS = 12  # earlier answers that are worked out again
DRAWN = 2_000  # contexts that stand for a long history
FEWEST_CONTEXTS = 10  # contexts of which a distribution is nothing but noise
BEYOND = 0.35  # of the range of what was measured: how far the interval of an answer widens an axis


# -------------------------------------------------------------------- what is drawn


@dataclass(frozen=True, eq=False)
class Slice:
    """The expected value along one design variable, the others as recommended; ``observed`` (n) are reported values."""

    name: str
    variable: Variable
    values: list[Any]
    posterior: Prediction
    recommended: Any
    observed: list[Any]


class Pictures:
    """The charts of one state of an optimizer; whatever several of them need is computed once, when first wanted."""

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        self.state: State = optimizer.state

    # ---------------------------------------------------------------- what is known

    @property
    def settings(self) -> Settings:
        return self.state.settings

    @property
    def space(self) -> Space:
        return self.state.space

    @property
    def goal(self) -> str | None:
        """The goal in words; None for the mean, which is shown in any case."""
        return None if self.settings.goal == Expected() else self.recommendation.title

    @cached_property
    def recommendation(self) -> Recommendation:
        """Not of a study of several main outcomes."""
        return self.optimizer.recommend()

    @cached_property
    def slices(self) -> list[Slice]:
        return [self.slice(name) for name in self.space.design_names]

    def slice(self, name: str) -> Slice:
        """Along the design variable ``name``."""
        variable = self.space.design[name]
        values = variable.grid(POINTS if not variable.size else LEVELS)
        posterior = self.optimizer.predict(self._along(name, values))
        observed = [self._design(run)[name] for run in self.reported]
        return Slice(name, variable, values, posterior, self.recommendation.design[name], observed)

    def _along(self, name: str, values: Iterable[Any]) -> list[dict[str, Any]]:
        return [{**self.recommendation.design, name: value} for value in values]

    @cached_property
    def contexts(self) -> Array:
        """N × d_c in the order of arrival; summaries are drawn from."""
        return drawn_contexts(self.state.log, self.space.d_c)

    @property
    def recent(self) -> int:
        """How many of the contexts are recent."""
        return min(max(len(self.contexts) // 4, 4), 200)

    @cached_property
    def calibration(self) -> LeaveOneOut | None:
        model = self.optimizer.model
        return None if model is None or len(self.optimizer) < 2 else leave_one_out(model)

    @cached_property
    def units(self) -> Units:
        """Those of the model."""
        return TrainingData(self.state, True).units

    @cached_property
    def outcomes(self) -> dict[str, str]:
        """Headings of what is measured, the main outcome first."""
        return outcome_headings(self.settings)

    @cached_property
    def limits(self) -> Mapping[str, Limit]:
        return {} if self.settings.outcomes is None else self.settings.outcomes.limits

    @cached_property
    def ended(self) -> list[Run]:
        """Runs that gave a result or failed, in that order, also those left out."""
        gone, order = undone(self.state.history), dict[int, None]()
        for event in self.state.history:
            if isinstance(event, e.Reported | e.Failed) and event.ref not in gone:
                order.setdefault(event.id)
        known = self.state.runs
        order |= dict.fromkeys(known)  # whatever history does not tell
        return [known[key] for key in order if key in known and known[key].status in ("reported", "failed")]

    @cached_property
    def reported(self) -> list[Run]:
        """Runs that are learned from."""
        return [run for run in self.ended if run.status == "reported" and not run.dropped]

    def breaks(self, run: Run) -> list[str]:
        """The limits that a run's results break, by outcome."""
        return broken_limits(run, self.settings)

    def _design(self, run: Run) -> dict[str, Any]:
        return self.space.decode_designs(run.x)[0]

    # ---------------------------------------------------------------- in words

    @cached_property
    def _stamps(self) -> dict[int, str]:
        """Who measured each run, and when."""
        return {
            key: ", ".join(filter(None, ["" if event.at is None else _clock(event.at), event.by or ""]))
            for key, event in measured(self.state).items()
        }

    def tip(self, run: Run) -> str:
        """What a dot stands for: a run, its results, what was set, what it met, when and by whom."""
        words = describe_outcomes(self.settings, run.value, run.others) or STATUSES[run.status]
        words = f"run {run.id}: {words}; {describe_design(self.space, self._design(run))}"
        if run.context is not None and self.space.d_c:
            known = self.space.name_contexts(run.context[None])[0]
            words += f"; at {describe_context(self.space, known)}" if known else ""
        words += "; left out" * run.dropped
        if broken := self.breaks(run):
            words += f"; breaks the limit on {' and '.join(broken)}"
        return f"{words}; {self._stamps[run.id]}" if self._stamps.get(run.id) else words

    def _said(self, value: float, ends: Sequence[float], unit: str) -> str:
        """A value within its interval: 88 GU (84 to 92)."""
        low, high = map(float, ends)
        return f"{with_unit(rounded(float(value), (low, high)), unit)} ({range_text((low, high))})"

    def variable_axis(self, name: str) -> str:
        variable = self.space.design.get(name) or self.space.context[name]
        return heading(name, variable.unit)

    def unit_of(self, outcome: str) -> str:
        outcomes = self.settings.outcomes
        if outcome == self.settings.outcome or outcomes is None:
            return self.settings.unit
        return outcomes[outcome].unit

    def _sign(self, outcome: str) -> float:
        outcomes = self.settings.outcomes
        direction = self.settings.direction if outcomes is None else outcomes[outcome].direction
        return 1.0 if direction == "maximize" else -1.0

    def _main(self, outcome: str | None) -> str:
        return self.settings.outcome if outcome is None else outcome

    def _has_answer(self) -> bool:
        return not self.settings.has_front and len(self.optimizer) > 0

    def _expected(self, outcome: str) -> tuple[float, tuple[float, float]]:
        """Of the answer, with its interval."""
        found = self.recommendation
        if outcome == self.settings.outcome:
            return found.expected, found.interval
        one = found.outcomes[outcome]
        return one.expected, one.interval

    # ---------------------------------------------------------------- axes

    def outcome_span(self, outcome: str | None = None) -> tuple[float, float]:
        """One axis for all charts of an outcome: a flat line is seen to be flat, and a dot is where it was. Wide bands
        leave it, rather than that they press what was measured into a corner."""
        name = self._main(outcome)
        values = [y for run in self.ended if (y := outcome_of(run, name, self.settings)) is not None]
        low, high = span(values)
        if self._has_answer():
            expected, ends = self._expected(name)
            reach = BEYOND * high - BEYOND * low
            most = [max(ends[0], low - reach), min(ends[1], high + reach), expected]
            if name == self.settings.outcome:
                most += [end for part in self.slices for end in _range(part.posterior.expected)]
            low, high = span([*values, *most])
        for limit in (self.limits[name],) if name in self.limits else ():
            edge = [end for end in limit.ends if math.isfinite(end)]
            low, high = min(low, *edge), max(high, *edge)
            low, high = span([low, high]) if low in edge or high in edge else (low, high)
        return low, high

    def outcome_axis(self, outcome: str | None = None) -> Axis:
        name = self._main(outcome)
        return Axis.of(self.outcomes[name], self.outcome_span(name))

    def _limit_lines(self, outcome: str) -> list[Mark]:
        limit = self.limits.get(outcome)
        if limit is None:
            return []
        unit = self.unit_of(outcome)
        ends = [(limit.lower, "at least"), (limit.upper, "at most")]
        return [
            Rule("y", end, "orange", f"limit: {words} {with_unit(number(end), unit)}", dashed=False)
            for end, words in ends
            if end is not None
        ]

    def _run_points(
        self, runs: Sequence[Run], x: Sequence[float], outcome: str, label: str = "result", *, faint: bool = False
    ) -> list[Mark]:
        """Dots of runs at ``x``: those that break a limit and those left out look different."""
        rows = [
            (run, at, y)
            for run, at in zip(runs, x, strict=True)
            if (y := outcome_of(run, outcome, self.settings)) is not None and math.isfinite(at)
        ]
        kept = [row for row in rows if not row[0].dropped and not self.breaks(row[0])]
        broken = [row for row in rows if not row[0].dropped and self.breaks(row[0])]
        left_out = [row for row in rows if row[0].dropped]
        found: list[Mark] = []
        for some, color, words, shape in (
            (kept, "blue", label, "dot"),
            (broken, "orange", "breaks a limit", "dot"),
            (left_out, "grey", "left out", "ring"),
        ):
            if some:
                some = [some[k] for k in thinned([row[1] for row in some], [row[2] for row in some])]
                places, values = [row[1] for row in some], [row[2] for row in some]
                tips, ids = [self.tip(row[0]) for row in some], [row[0].id for row in some]
                more: dict[str, Any] = {"color": color, "shape": shape, "faint": faint and shape == "dot"}
                found.append(Points(places, values, label=words, tips=tips, runs=ids, **more))
        return found

    # ---------------------------------------------------------------- progress

    def progress(self, outcome: str | None = None) -> Chart:
        """Results in their order, the best so far, and what is expected of the answer."""
        name, runs = self._main(outcome), self.ended
        axis = self.outcome_axis(name)
        marks, ends = list[Mark](), (0.4, len(runs) + 0.6)
        if self._has_answer():
            expected, (low, high) = self._expected(name)
            marks.append(Band(ends, [low] * 2, [high] * 2, "green", "average to expect of the answer, 95 % sure"))
            words = self._said(expected, (low, high), self.unit_of(name))
            marks.append(Line(ends, [expected] * 2, "green", dashed=True, tips=[f"the answer: {words}"] * 2))
        marks += self._limit_lines(name)
        order = np.arange(1.0, len(runs) + 1)
        marks += self._best_so_far(name, runs, order.tolist())
        marks += self._run_points(runs, order.tolist(), name)
        marks += self._failures(order.tolist(), axis)
        title = "Progress" if len(self.outcomes) == 1 else f"Progress: {name}"
        return Chart(title, Axis.of("runs, in their order", ends, whole=True), axis, tuple(marks), wide=True)

    def _best_so_far(self, outcome: str, runs: Sequence[Run], at: Sequence[float]) -> list[Mark]:
        """A step at each run that was the best until then and kept every limit."""
        if outcome in self.limits:
            return []
        sign, best, steps = self._sign(outcome), -math.inf, list[tuple[float, float]]()
        for run, place in zip(runs, at, strict=True):
            value = outcome_of(run, outcome, self.settings)
            if value is not None and not run.dropped and not self.breaks(run) and sign * value > best:
                steps += [(place, sign * best)] * bool(steps) + [(place, value)]
                best = sign * value
        if not steps:
            return []
        steps.append((max(at), sign * best))
        words = "best so far" + " within the limits" * bool(self.limits)
        return [Line([x for x, _ in steps], [y for _, y in steps], "grey", words)]

    def _failures(self, at: Sequence[float], axis: Axis) -> list[Mark]:
        """Runs without a result, along the lower edge."""
        rows = [(run, x) for run, x in zip(self.ended, at, strict=True) if run.status == "failed"]
        floor = 0.975 * axis.low + 0.025 * axis.high
        tips, ids = [self.tip(run) for run, _ in rows], [run.id for run, _ in rows]
        cross = Points(
            [x for _, x in rows], [floor] * len(rows), "orange", "failed, no result", tips, ids, "cross", size=4.0
        )
        return [cross] if rows else []

    def progress_by_cost(self) -> Chart | None:
        """Results against what all runs had cost by then; None where nothing is known of costs."""
        spent = spending(self.state)
        if spent is None:
            return None
        total, places = 0.0, dict[int, float]()
        for key, cost in spent.costs.items():
            total += cost
            places[key] = total
        at = [places.get(run.id, math.nan) for run in self.ended]
        known = [run for run in self.ended if run.id in places]
        name, axis = self.settings.outcome, self.outcome_axis()
        marks = self._best_so_far(name, known, [places[run.id] for run in known])
        marks += self._limit_lines(name) + self._run_points(self.ended, at, name)
        return Chart("Progress by cost", Axis.of("cost so far", (0.0, 1.05 * total or 1.0)), axis, tuple(marks))

    def ranked(self, outcome: str | None = None) -> Chart:
        """Results from the best down."""
        name = self._main(outcome)
        runs = [run for run in self.ended if outcome_of(run, name, self.settings) is not None]
        sign = self._sign(name)
        runs.sort(key=lambda run: -sign * (outcome_of(run, name, self.settings) or 0.0))
        places = [float(k + 1) for k in range(len(runs))]
        marks = [*self._limit_lines(name), *self._run_points(runs, places, name)]
        axis = Axis.of("rank, the best first", (0.4, len(runs) + 0.6), whole=True)
        return Chart(f"Results from the best down: {name}", axis, self.outcome_axis(name), tuple(marks))

    def distribution_of_results(self, outcome: str | None = None) -> Chart:
        """How often which result came."""
        name = self._main(outcome)
        values = np.array([y for r in self.reported if (y := outcome_of(r, name, self.settings)) is not None])
        low, high = self.outcome_span(name)
        shares = np.linspace(0.0, 1.0, 1 + _bins(len(values)))
        edges = (1.0 - shares) * low + shares * high  # the ends may be as large as numbers can be
        counts = np.histogram(values, edges)[0]
        marks: list[Mark] = [Bars(edges.tolist(), counts.tolist(), "blue", "results", _counted(edges, counts, "run"))]
        if self._has_answer():
            expected = self._expected(name)[0]
            marks.append(Rule("x", expected, "green", "average to expect of the answer"))
        limit = self.limits.get(name)
        for end in () if limit is None else (limit.lower, limit.upper):
            if end is not None:
                marks.append(Rule("x", end, "orange", "limit", dashed=False))
        top = 1.12 * max(1, int(counts.max(initial=0)))
        axis = Axis.of(self.outcomes[name], (low, high))
        return Chart(f"Distribution of results: {name}", axis, Axis.of("runs", (0.0, top), whole=True), tuple(marks))

    def timeline(self) -> Chart | None:
        """When each run was asked for and ended; None where no times are known."""
        gone, begun, ended = undone(self.state.history), dict[int, float](), dict[int, float]()
        for event in self.state.history:
            if event.ref in gone or event.at is None:
                continue
            if isinstance(event, e.Asked):
                begun[event.id] = event.at
            elif isinstance(event, e.Reported | e.Failed | e.Cancelled):
                ended[event.id] = event.at
        last = max([*begun.values(), *ended.values()], default=math.nan)
        known = [run for key, run in self.state.runs.items() if key in begun or key in ended][-MOST_BARS:]
        if not known:
            return None
        kinds: dict[str, tuple[Any, list[Run]]] = {
            "result": ("blue", []),
            "failed, no result": ("orange", []),
            "being tried": ("green", []),
            "not tried": ("purple", []),
            "left out": ("grey", []),
        }
        for run in known:
            kinds["left out" if run.dropped else STATUSES[run.status] or "result"][1].append(run)

        def ends(run: Run) -> tuple[float, float]:
            end = ended.get(run.id, last)
            return min(begun.get(run.id, end), end), end

        marks: list[Mark] = []
        for label, (color, runs) in kinds.items():
            if runs:
                start, end = zip(*map(ends, runs), strict=True)
                tips, ids = [self.tip(run) for run in runs], [run.id for run in runs]
                marks.append(Spans([float(key) for key in ids], start, end, color, label, tips, ids))
        low, high = min(ends(run)[0] for run in known), last
        margin = 0.02 * (high - low) or 1800.0
        numbers = [run.id for run in known]
        note = f"The last {MOST_BARS} of {len(self.state.runs)} runs." if len(known) == MOST_BARS else ""
        axis = Axis("from when it was suggested to when it ended", low - margin, high + margin, dates=True)
        runs_axis = Axis.of("run", (min(numbers) - 0.8, max(numbers) + 0.8), whole=True)
        return Chart("Timeline", axis, runs_axis, tuple(marks), note, wide=True)

    # ---------------------------------------------------------------- along the settings

    def along(self, part: Slice, outcome: str | None = None) -> Chart:
        """What is expected along one setting, the others as in the answer, and what was measured."""
        name = self._main(outcome)
        own = name == self.settings.outcome
        posterior = part.posterior if own else self.optimizer.predict(self._along(part.name, part.values), outcome=name)
        axis, unit = self.outcome_axis(name), self.unit_of(name)
        title = f"{name} along {part.name}"
        said = [
            f"{part.name} {format_value(part.variable, value)}: {self._said(mean, (low, high), unit)}"
            for value, mean, low, high in zip(
                part.values, posterior.expected, posterior.lower, posterior.upper, strict=True
            )
        ]
        runs = self.reported
        seen = self._places(part.variable, [self._design(run)[part.name] for run in runs])
        answer = Rule("x", self._places(part.variable, [part.recommended])[0], "green", "the answer")
        band = "expected on average, 95 % sure"
        if (labels := part.variable.labels()) is not None:
            places = [float(k) for k in range(len(labels))]
            marks = [
                *self._limit_lines(name),
                answer,
                *self._run_points(runs, [place + 0.18 for place in seen], name, faint=True),
                _whiskers(places, posterior.expected, posterior.lower, posterior.upper, band, said),
            ]
            return Chart(title, Axis.of(self.variable_axis(part.name), (0, 0), labels), axis, tuple(marks))
        values = [float(value) for value in part.values]
        marks = [Band(values, posterior.lower.tolist(), posterior.upper.tolist(), "blue", band)]
        if own and len(self.optimizer.method.surrogate.experts) > 1:
            robust = posterior.expected - self._sign(name) * SQRT2 * posterior.disagreement
            marks.append(Line(values, robust.tolist(), "purple", "on the safe side", dashed=True, thin=True))
        marks += [
            Line(values, posterior.expected.tolist(), "blue", tips=said),
            *self._limit_lines(name),
            answer,
            *self._run_points(runs, seen, name, faint=True),
        ]
        return Chart(title, self._setting_axis(part.name), axis, tuple(marks))

    def goal_along(self, part: Slice) -> Chart:
        """The goal's value along one setting with its 95 % band."""
        posterior, settings = part.posterior, self.settings
        name = settings.goal.axis(settings.direction, settings.outcome, settings.unit)
        ends = span(np.concatenate([posterior.value_lower, posterior.value_upper]).tolist())
        title, unit = f"{self.goal} along {part.name}", settings.goal.unit(settings.unit)
        said = [
            f"{part.name} {format_value(part.variable, value)}: {self._said(mean, (low, high), unit)}"
            for value, mean, low, high in zip(
                part.values, posterior.value, posterior.value_lower, posterior.value_upper, strict=True
            )
        ]
        axis = Axis.of(name, ends)
        answer = Rule("x", self._places(part.variable, [part.recommended])[0], "green", "the answer")
        band = "expected, 95 % sure"
        if (labels := part.variable.labels()) is not None:
            places = [float(k) for k in range(len(labels))]
            points = _whiskers(places, posterior.value, posterior.value_lower, posterior.value_upper, band, said)
            return Chart(title, Axis.of(self.variable_axis(part.name), (0, 0), labels), axis, (answer, points))
        values = [float(value) for value in part.values]
        marks = (
            Band(values, posterior.value_lower.tolist(), posterior.value_upper.tolist(), "blue", band),
            Line(values, posterior.value.tolist(), "blue", tips=said),
            answer,
        )
        return Chart(title, self._setting_axis(part.name), axis, marks)

    def surface(self, x: str, y: str) -> Chart:
        """The main outcome over any two variables, the other settings as in the answer and the other conditions as they
        come. Designs that break a constraint stay blank."""
        names, unit = (x, y), self.settings.unit
        grids = [self._grid(name) for name in names]
        means, lowers, uppers = self._over(x, y, *grids)
        said = [
            [
                f"{self._named(x, a)}, {self._named(y, b)}: "
                f"{self._said(means[j, i], (lowers[j, i], uppers[j, i]), unit) if np.isfinite(means[j, i]) else ''}"
                for i, a in enumerate(grids[0])
            ]
            for j, b in enumerate(grids[1])
        ]
        edges = [self._edges(name, grid) for name, grid in zip(names, grids, strict=True)]
        heat = Heat(edges[0], edges[1], means.tolist(), f"expected {self.outcomes[self.settings.outcome]}", said)
        axes = [self._edge_axis(name, ends) for name, ends in zip(names, edges, strict=True)]
        title = f"{self.settings.outcome} over {x} and {y}"
        return Chart(title, axes[0], axes[1], (heat, *self._on_surface(x, y)))

    def _over(self, x: str, y: str, across: list[Any], upward: list[Any]) -> Array:
        """Expected value, lower and upper end of it (3 × upward × across); NaN where a constraint is broken."""
        answer = self.recommendation.design
        found = np.full((3, len(upward), len(across)), np.nan)
        cells: dict[tuple[Any, ...], list[tuple[int, int]]] = {}  # by what is met
        designs: dict[tuple[int, int], dict[str, Any]] = {}
        for j, b in enumerate(upward):
            for i, a in enumerate(across):
                given = {x: a, y: b}
                designs[j, i] = {name: given.get(name, value) for name, value in answer.items()}
                met = tuple((name, value) for name, value in given.items() if name not in answer)
                cells.setdefault(met, []).append((j, i))
        for met, places in cells.items():
            posterior = self.optimizer.predict([designs[place] for place in places], context=dict(met) or None)
            rows, columns = zip(*places, strict=True)
            found[:, rows, columns] = posterior.expected, posterior.lower, posterior.upper
        if self.space.region is not None:
            inside = self.space.region.inside(self.space.encode_designs(list(designs.values())))
            found[:, ~inside.reshape(len(upward), len(across))] = np.nan
        return found

    def _on_surface(self, x: str, y: str) -> list[Mark]:
        """Where runs were, and the answer."""
        rows = [(run, self._value(run, x), self._value(run, y)) for run in self.reported]
        rows = [row for row in rows if math.isfinite(row[1]) and math.isfinite(row[2])]
        rows = [rows[k] for k in thinned([row[1] for row in rows], [row[2] for row in rows])]
        tips, ids = [self.tip(run) for run, _, _ in rows], [run.id for run, _, _ in rows]
        marks: list[Mark] = []
        if rows:
            places = [a for _, a, _ in rows], [b for _, _, b in rows]
            marks.append(Points(*places, "white", "run", tips, ids, "ring", size=4.0))
        design = self.recommendation.design
        at = [self._places(self.space.design[n], [design[n]])[0] if n in design else None for n in (x, y)]
        if at[0] is not None and at[1] is not None:
            said = f"the answer: {describe_design(self.space, design)}"
            marks.append(Points([at[0]], [at[1]], "orange", "the answer", [said], shape="star", size=5.0))
        for role, place in zip(("x", "y"), at, strict=True):
            if place is not None and None in at:
                marks.append(Rule(role, place, "orange", "the answer"))  # type: ignore[arg-type]
        return marks

    def _value(self, run: Run, name: str) -> float:
        """Where a run stands along a setting or a condition; NaN if that is not known."""
        if name in self.space.design:
            return self._places(self.space.design[name], [self._design(run)[name]])[0]
        if run.context is None:
            return math.nan
        return float(run.context[self.space.context_names.index(name)])

    def _named(self, name: str, value: Any) -> str:
        variable = self.space.design.get(name) or self.space.context[name]
        return f"{name} {format_value(variable, value)}"

    def _grid(self, name: str) -> list[Any]:
        """Values along a setting, or along a condition as far as it was met."""
        if name in self.space.design:
            return list(self.space.design[name].grid(GRID_POINTS))
        variable = self.space.context[name]
        if (labels := variable.labels()) is not None:
            return list(labels)
        low, high = self._met(name)
        values = np.linspace(low, high, CONTEXT_POINTS)
        return sorted(set(values.round().tolist())) if variable.size else values.tolist()

    def _met(self, name: str) -> tuple[float, float]:
        """The ends of a condition that is a number: its bounds, or what was seen."""
        scale = self.space.context_scale(self.contexts)
        k = self.space.context_names.index(name)
        low, high = float(scale.lower[k]), float(scale.upper[k])
        if scale.whole[k]:  # levels stand half a unit inside the ends
            low, high = math.ceil(low), math.floor(high)
        return (low, high) if high > low else (low, low + 1.0)

    def _edges(self, name: str, grid: list[Any]) -> list[float]:
        """Of the cells around the values of ``grid``."""
        variable = self.space.design.get(name) or self.space.context[name]
        if variable.labels() is not None:
            return [k - 0.5 for k in range(len(grid) + 1)]
        values = np.log(grid) if variable.log else np.array(grid, dtype=np.float64)
        middle = (values[:-1] + values[1:]) / 2
        half = (values[1] - values[0]) / 2 if len(values) > 1 else 0.5
        edges = np.concatenate([[values[0] - half], middle, [values[-1] + half]])
        return [float(edge) for edge in (np.exp(edges) if variable.log else edges)]

    def _edge_axis(self, name: str, edges: list[float]) -> Axis:
        variable = self.space.design.get(name) or self.space.context[name]
        if (labels := variable.labels()) is not None:
            return Axis(self.variable_axis(name), edges[0], edges[-1], tuple(labels))
        return Axis.of(self.variable_axis(name), (edges[0], edges[-1]), log=variable.log)

    def _setting_axis(self, name: str) -> Axis:
        variable = self.space.design[name]
        low, high = variable.limits()
        if variable.size and not variable.log:
            low, high = low - 0.5, high + 0.5
        whole = bool(variable.size) and not variable.log
        return Axis.of(self.variable_axis(name), (low, high), log=variable.log, whole=whole)

    def _places(self, variable: Variable, values: list[Any]) -> list[float]:
        """Where values stand on an axis: a choice at its number."""
        if not values:
            return []
        return [float(place) for place in variable.numbers("", np.array(values, dtype=object))]

    def tradeoff(self, found: Tradeoff) -> Chart:
        """The frontier between the mean and a goal, a dot a design."""
        return found.chart([describe_design(self.space, design) for design in found.designs])

    def front(self, found: ParetoFront, one: str, other: str) -> Chart:
        """Two main outcomes of the designs of a front, with what runs gave."""
        runs = [run for run in self.reported if outcome_of(run, one, self.settings) is not None]
        across = [outcome_of(run, one, self.settings) or 0.0 for run in runs]
        marks = self._run_points(runs, across, other, "result of a run", faint=True)
        places = sorted((point.values[one], point.values[other], k) for k, point in enumerate(found.points))
        x, y = [place[0] for place in places], [place[1] for place in places]
        said = [describe_design(self.space, found.points[k].design) for _, _, k in places]
        marks += [Line(x, y, "green"), Points(x, y, "green", "expected on average", said, size=5.0)]
        seen = [outcome_of(run, other, self.settings) for run in runs]
        ends = span([*x, *across]), span([*y, *(value for value in seen if value is not None)])
        axes = [Axis.of(self.outcomes[name], end) for name, end in zip((one, other), ends, strict=True)]
        return Chart(f"{other} against {one}", axes[0], axes[1], tuple(marks))

    # ---------------------------------------------------------------- what matters

    @cached_property
    def sensitivities(self) -> dict[str, Sensitivity]:
        """What matters, of each outcome of which at least two values are known."""
        measured = {
            name: sum(outcome_of(run, name, self.settings) is not None for run in self.reported)
            for name in self.outcomes
        }
        several = self.settings.outcomes is not None
        found: dict[str, Sensitivity] = {}
        for name in (name for name, count in measured.items() if count > 1):
            found[name] = self.optimizer.sensitivity(outcome=name if several else None)
        return found

    def influences(self, found: Sensitivity) -> Chart:
        """How much of the differences between results each variable makes, the strongest on top."""
        variables = sorted(found.variables.items(), key=lambda pair: pair[1].total.value)
        marks, places = list[Mark](), [float(k) for k in range(len(variables))]
        alone = [min(one.first.value, one.total.value) for _, one in variables]
        whole = [one.total.value for _, one in variables]
        said = [
            f"{name}: {share_text(one.first)} by itself, {share_text(one.total)} with the others"
            for name, one in variables
        ]
        marks.append(Spans(places, [0.0] * len(places), _hundreds(alone), "blue", "by itself", said))
        marks.append(Spans(places, _hundreds(alone), _hundreds(whole), "grey", "only together with others", said))
        marks.append(_level_whiskers([one.total for _, one in variables], places, said))
        upward = Axis.of("", (0.0, 1.0), [name for name, _ in variables])
        title = f"What moves {found.outcome}" if found.outcome != "value" else "What moves the result"
        return Chart(title, Axis.of("share of all differences [%]", (0.0, 104.0)), upward, tuple(marks))

    def shares(self, found: Sensitivity) -> Chart:
        """Where the differences between results come from, noise among them."""
        parts = sorted(found.shares.items(), key=lambda pair: pair[1].value)
        said = [f"{SHARES[name]}: {share_text(one)}" for name, one in parts]
        places = [float(k) for k in range(len(parts))]
        values = _hundreds([one.value for _, one in parts])
        marks: tuple[Mark, ...] = (
            Spans(places, [0.0] * len(places), values, "blue", "of all differences", said),
            _level_whiskers([one for _, one in parts], places, said),
        )
        upward = Axis.of("", (0.0, 1.0), [SHORT_SHARES.get(name, name) for name, _ in parts])
        title = "Where the differences come from" + f": {found.outcome}" * (len(self.outcomes) > 1)
        return Chart(title, Axis.of("share of all differences [%]", (0.0, 104.0)), upward, marks)

    # ---------------------------------------------------------------- how the answer moved

    @cached_property
    def _earlier(self) -> list[tuple[int, Recommendation]]:
        """Answers as they were after so many results; the last is the present one."""
        history, settings = self.state.history, self.settings
        first = self.state.amendments[0].before if self.state.amendments else settings
        ends = [k + 1 for k, event in enumerate(history) if isinstance(event, e.Reported)]
        found: list[tuple[int, Recommendation]] = []
        for k in [ends[i] for i in evenly(len(ends) - 1, MOST_ANSWERS - 1)] if len(ends) > 1 else ():
            state = State.start(first).replay(history[:k])
            try:
                before = Optimizer.of(state)
                known = len(before.state.reported)
                if known and (not found or known > found[-1][0]):
                    found.append((known, before.recommend()))
            except EdrboError:  # what it needs was not known then, as an outcome that has a limit
                continue
        now = len(self.state.reported)
        return [*(one for one in found if one[0] < now), (now, self.recommendation)]

    def answers(self) -> list[Chart]:
        """How the answer moved from run to run: what was expected of it, and each setting."""
        counts = [float(count) for count, _ in self._earlier]
        found = [answer for _, answer in self._earlier]
        across = Axis.of("results that were known", (min(counts) - 0.6, max(counts) + 0.6), whole=True)
        name, unit = self.settings.outcome, self.settings.unit
        means, ends = [one.expected for one in found], [one.interval for one in found]
        said = [
            f"after {count:.0f} results: {describe_design(self.space, one.design)}; "
            f"{self._said(one.expected, one.interval, unit)}"
            for count, one in zip(counts, found, strict=True)
        ]
        band = Band(counts, [low for low, _ in ends], [high for _, high in ends], "green", "95 % sure")
        line, dots = Line(counts, means, "green"), Points(counts, means, "green", "expected on average", said)
        charts = [Chart(f"What was expected of the answer: {name}", across, self.outcome_axis(), (band, line, dots))]
        for key, variable in self.space.design.items():
            places = self._places(variable, [one.design[key] for one in found])
            marks = (Line(counts, places, "grey"), Points(counts, places, "blue", "in the answer of then", said))
            labels = variable.labels()
            axis = self._setting_axis(key) if labels is None else Axis.of(self.variable_axis(key), (0, 0), labels)
            charts.append(Chart(f"{key} in the answer", across, axis, marks))
        return charts

    # ---------------------------------------------------------------- conditions

    def outcome_by_context(self, k: int, outcome: str | None = None) -> Chart:
        """What was measured against one condition."""
        name, context = self._main(outcome), self.space.context_names[k]
        runs = [run for run in self.ended if run.status == "reported"]
        data = self.optimizer.observations
        reach, labels = self._context_axis(k, data.c[np.isfinite(data.c[:, k]), k])
        marks = [*self._limit_lines(name), *self._run_points(runs, [self._value(run, context) for run in runs], name)]
        if any(run.series is not None for run in runs) and name == self.settings.outcome:
            marks += self._rows_by_context(k)
        axis = Axis.of(self.variable_axis(context), reach, labels)
        return Chart(f"{name} against {context}", axis, self.outcome_axis(name), tuple(marks))

    def _rows_by_context(self, k: int) -> list[Mark]:
        """The rows of runs that have several."""
        data, owners = self.optimizer.observations, self.state.owners.tolist()
        rows = [
            i
            for i in range(len(data.y))
            if self.state.runs[owners[i]].series is not None and math.isfinite(data.c[i, k])
        ]
        rows = [rows[i] for i in thinned(data.c[rows, k], data.y[rows])]
        tips = [f"run {owners[i]}: {number(float(data.y[i]))}" for i in rows]
        x, y = data.c[rows, k].tolist(), data.y[rows].tolist()
        return [Points(x, y, "blue", "row of a run", tips, [owners[i] for i in rows], size=2.2)] if rows else []

    def context_over_time(self, k: int) -> Chart:
        """One condition in the order of arrival; the recent ones stand out."""
        name, values = self.space.context_names[k], self.contexts[:, k]
        reach, labels = self._context_axis(k, values)
        cut = len(values) - self.recent
        known = np.flatnonzero(np.isfinite(values))
        keep = known[thinned(known.astype(np.float64), values[known])]
        marks: list[Mark] = []
        for chosen, color, words in (
            (keep[keep < cut], "blue", "earlier"),
            (keep[keep >= cut], "orange", f"the last {self.recent}"),
        ):
            tips = [f"no. {i + 1}: {self._met_text(k, values[i])}" for i in chosen]
            if len(chosen):
                at, y = (chosen + 1.0).tolist(), values[chosen].tolist()
                marks.append(Points(at, y, color, words, tips, size=2.8))  # type: ignore[arg-type]
        ends = Axis.of("in the order in which it was met", (0.0, len(values) + 1.0), whole=True)
        return Chart(f"{name} over time", ends, Axis.of(self.variable_axis(name), reach, labels), tuple(marks))

    def context_distribution(self, k: int) -> Chart:
        """The distribution of one condition, all of it and, where there are enough, the recent ones."""
        name, values = self.space.context_names[k], self.contexts[:, k]
        values = values[np.isfinite(values)]
        (low, high), labels = self._context_axis(k, values)
        edges = np.linspace(low, high, 1 + _bins(len(values))) if labels is None else np.arange(len(labels) + 1) - 0.5
        cut = len(values) - self.recent
        in_two = min(cut, self.recent) >= FEWEST_CONTEXTS
        groups = [values[:cut], values[cut:]] if in_two else [values]
        heights = [np.histogram(some, edges)[0] / max(len(some), 1) for some in groups]
        said = [
            f"{self._met_text(k, a)} to {self._met_text(k, b)}: {100 * part:.0f} %"
            if labels is None
            else f"{labels[i]}: {100 * part:.0f} %"
            for i, (a, b, part) in enumerate(zip(edges[:-1], edges[1:], heights[0], strict=True))
        ]
        bars = Bars(edges.tolist(), (100 * heights[0]).tolist(), "blue", "earlier" if in_two else "all", said)
        marks: list[Mark] = [bars]
        if in_two:
            outline = (100 * heights[1]).tolist()
            marks.append(Bars(edges.tolist(), outline, "orange", f"the last {self.recent}", filled=False))
        top = 112 * float(max(part.max(initial=0.01) for part in heights))
        axis = Axis.of(self.variable_axis(name), (low, high), labels)
        return Chart(f"Distribution of {name}", axis, Axis.of("share [%]", (0.0, top)), tuple(marks))

    def _context_axis(self, k: int, values: Array) -> tuple[tuple[float, float], Sequence[str] | None]:
        """The range of condition ``k`` on an axis and, of choices, their names."""
        labels = self.space.context[self.space.context_names[k]].labels()
        return (span(values.tolist()), None) if labels is None else ((-0.6, len(labels) - 0.4), labels)

    def _met_text(self, k: int, value: float) -> str:
        variable = self.space.context[self.space.context_names[k]]
        labels = variable.labels()
        return with_unit(number(value), variable.unit) if labels is None else labels[int(value)]

    # ---------------------------------------------------------------- can the model be trusted?

    def calibration_chart(self) -> Chart:
        """Results against what was predicted of them from the others."""
        found = self.calibration
        assert found is not None
        actual, predicted = self.units.to_user(found.y), self.units.to_user(found.mean)
        reach = self.units.spread_to_user(Z95 * found.sd)
        low, high = span([*actual.tolist(), *predicted.tolist()])
        keep = thinned(predicted, actual, most=300)
        inside = np.abs(actual - predicted) <= reach
        owners = self.state.owners[self.state.training_order].tolist()
        marks: list[Mark] = [Line([low, high], [low, high], "grey", "as predicted", dashed=True)]
        for chosen, color, words in (
            (keep[inside[keep]], "blue", "within its 95 %"),
            (keep[~inside[keep]], "orange", "outside"),
        ):
            tips = [
                f"run {owners[i]}: {number(actual[i])}, predicted {number(predicted[i])} ± {number(reach[i])}"
                for i in chosen
            ]
            if len(chosen):
                ends = (predicted[chosen] - reach[chosen]).tolist(), (predicted[chosen] + reach[chosen]).tolist()
                at = predicted[chosen].tolist(), actual[chosen].tolist()
                ids = [owners[i] for i in chosen]
                marks.append(Points(*at, color, words, tips, ids, left=ends[0], right=ends[1]))  # type: ignore[arg-type]
        name = self.outcomes[self.settings.outcome]
        axes = Axis.of("predicted from the other runs", (low, high)), Axis.of(f"measured {name}", (low, high))
        title = f"{int(inside.sum())} of {len(inside)} results as predicted from the others"
        return Chart(title, *axes, tuple(marks))


# -------------------------------------------------------------------- parts


def drawn_contexts(log: ContextLog, d_c: int) -> Array:
    """The contexts in the order of arrival; a batch with weights gives a sample of its distribution."""
    parts = [np.empty((0, d_c))]
    for k, batch in enumerate(log.batches):
        count = min(batch.count, DRAWN)
        if batch.summary or not np.all(batch.weights == batch.weights[0]) or count < len(batch.rows):
            chosen = stream(0, "report contexts", k).choice(
                len(batch.rows), size=count, p=batch.weights / batch.weights.sum()
            )
            parts.append(batch.rows[chosen])
        else:
            parts.append(batch.rows)
    return np.concatenate(parts)


def thinned(x: Sequence[float] | Array, y: Sequence[float] | Array, *, most: int = MOST_DOTS) -> NDArray[np.intp]:
    """Which of many points are drawn, in their order: at most ``most``. All that lie alone are among them, and of each
    crowd the latest; the others are chosen evenly, so that one sees where there are many.
    """
    at = np.array([x, y], dtype=np.float64)  # 2 × n
    count = at.shape[1]
    if count <= most:
        return np.arange(count)
    at /= np.maximum(np.abs(at).max(axis=1, keepdims=True), np.finfo(float).tiny)  # so that nothing overflows
    low, wide = at.min(axis=1, keepdims=True), np.ptp(at, axis=1, keepdims=True)
    share, cells = (at - low) / np.where(wide > 0, wide, 1.0), most
    while True:  # of a grid that has at most so many cells with something in them as are half of all points
        across, upward = np.minimum(share * cells, cells - 1).astype(np.intp)
        last = count - 1 - np.unique((across * cells + upward)[::-1], return_index=True)[1]
        if len(last) <= most // 2 or cells == 1:
            break
        cells = max(cells * 3 // 4, 1)
    rest = np.setdiff1d(np.arange(count), last)
    return np.sort(np.concatenate([last, rest[evenly(len(rest), most - len(last))]]))


def evenly(count: int, most: int) -> NDArray[np.intp]:
    """Positions of at most ``most`` of ``count`` things."""
    return np.unique(np.linspace(0, count - 1, max(min(count, most), 0)).round().astype(np.intp))


def _whiskers(places: list[float], mean: Array, lower: Array, upper: Array, label: str, tips: Sequence[str]) -> Points:
    ends = lower.tolist(), upper.tolist()
    return Points(places, mean.tolist(), "blue", label, tips, size=5.0, lower=ends[0], upper=ends[1])


SHORT_SHARES = {"designs": "settings", "contexts": "conditions", "both": "together"}


def _hundreds(shares: Sequence[float]) -> list[float]:
    return [100.0 * share for share in shares]


def _level_whiskers(shares: Sequence[Share], places: Sequence[float], tips: Sequence[str]) -> Points:
    """How sure shares of a variance are."""
    low, high = _hundreds([one.interval[0] for one in shares]), _hundreds([one.interval[1] for one in shares])
    values = _hundreds([one.value for one in shares])
    return Points(values, places, "grey", "95 % sure", tips, size=2.6, left=low, right=high)


def _range(values: Array) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def _bins(count: int) -> int:
    """How many bars tell something of so many values."""
    return int(min(max(math.ceil(math.sqrt(count)) + 1, 4), 18))


def _counted(edges: Array, counts: NDArray[np.intp], word: str) -> list[str]:
    return [
        f"{number(a)} to {number(b)}: {count} {word}{'s' * (count != 1)}"
        for a, b, count in zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True)
    ]


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at).strftime("%d %b %H:%M").lstrip("0")


# -------------------------------------------------------------------- with matplotlib


def progress(of: Drawable, ax: Axes | Sequence[Axes] | None = None) -> Figure:
    """Results in their order, the best so far, and what is expected of the answer; one picture for each outcome.

    Args:
        of: An ``Optimizer``, a ``Study`` or a ``Result``.
        ax: Axes to draw on, as many as there are pictures.
    """
    pictures = _reported(of)
    return _figure([pictures.progress(name) for name in pictures.outcomes], ax)


def results(of: Drawable, ax: Sequence[Axes] | None = None) -> Figure:
    """The results of the main outcome from the best down, and their distribution.

    Args:
        of: An ``Optimizer``, a ``Study`` or a ``Result``.
        ax: Two axes to draw on.
    """
    pictures = _reported(of)
    return _figure([pictures.ranked(), pictures.distribution_of_results()], ax)


def sensitivity(of: Drawable, outcome: str | None = None, ax: Sequence[Axes] | None = None) -> Figure:
    """What matters: how much of the differences between results each variable makes, and what they come from.

    Args:
        of: an ``Optimizer``, a ``Study`` or the ``Result`` of a loop.
        outcome: one of several, the main one by default.
        ax: where to draw; two of them.
    """
    pictures = _reported(of)
    found = pictures.optimizer.sensitivity(outcome=outcome)
    return _figure([pictures.influences(found), pictures.shares(found)], ax)


def timeline(of: Drawable, ax: Axes | None = None) -> Figure:
    """When each run was suggested and when it ended. Only a ``Study`` keeps times.

    Args:
        of: A ``Study``.
        ax: Axes to draw on.
    """
    found = _reported(of).timeline()
    if found is None:
        raise EdrboError("no times are known of these runs", "a Study keeps them")
    return _figure([found], ax)


def slices(of: Drawable, names: list[str] | None = None, ax: Axes | Sequence[Axes] | None = None) -> Figure:
    """The expected value along each design variable, the others as recommended.

    Args:
        of: An ``Optimizer``, a ``Study`` or a ``Result``.
        names: Design variables; all of them by default.
        ax: Axes to draw on, as many as there are variables.
    """
    pictures = _reported(of)
    chosen = list(pictures.space.design_names) if names is None else [_design_name(pictures, name) for name in names]
    return _figure([pictures.along(pictures.slice(name)) for name in chosen], ax)


def contexts(of: Drawable, ax: Sequence[Axes] | None = None) -> Figure:
    """Each context variable in the order of arrival, and its distribution.

    Args:
        of: An ``Optimizer``, a ``Study`` or a ``Result``.
        ax: Axes to draw on, two for each context variable.
    """
    pictures = Pictures(_optimizer(of))
    if not pictures.space.d_c:
        raise InvalidSpaceError("there are no context variables to show", "name them in Space(context=...)")
    if not len(pictures.contexts):
        raise EdrboError("no context was seen yet", "tell one")
    charts = []
    for k in range(pictures.space.d_c):
        charts += [pictures.context_over_time(k), pictures.context_distribution(k)]
    return _figure(charts, ax)


def calibration(of: Drawable, ax: Axes | None = None) -> Figure:
    """Outcomes against what is predicted of each from the others, with 95 % intervals.

    Args:
        of: An ``Optimizer``, a ``Study`` or a ``Result``.
        ax: Axes to draw on.
    """
    pictures = _reported(of)
    if pictures.calibration is None:
        raise EdrboError("two outcomes with their contexts are needed to judge the model", "tell more")
    return _figure([pictures.calibration_chart()], ax)


def tradeoff(of: Drawable, goal: Goal | str | None = None, ax: Axes | None = None) -> Figure:
    """What robustness costs: designs from the best on average to the best under a goal.

    Args:
        of: An ``Optimizer``, a ``Study`` or a ``Result``.
        goal: The goal, by default the optimizer's own, or the mean of the worst 10 % of contexts.
        ax: Axes to draw on.
    """
    pictures = _reported(of)
    return _figure([pictures.tradeoff(pictures.optimizer.tradeoff(goal))], ax)


def answers(of: Drawable, ax: Sequence[Axes] | None = None) -> Figure:
    """How the recommendation moved from run to run: what was expected of it, and each design variable.

    Args:
        of: An ``Optimizer``, a ``Study`` or a ``Result``.
        ax: Axes to draw on, one for the outcome and one for each design variable.
    """
    return _figure(_reported(of).answers(), ax)


def surface(of: Drawable, x: str | None = None, y: str | None = None, ax: Axes | None = None) -> Figure:
    """The expected value over any two variables, designs or contexts; the other designs are as recommended.

    Designs that break a constraint stay blank.

    Args:
        of: An ``Optimizer``, a ``Study`` or a ``Result``.
        x: What is to the right, by default the first design variable that is a number.
        y: What is upward, by default the next such design variable, or the first context variable.
        ax: Axes to draw on.
    """
    pictures = _reported(of)
    space = pictures.space
    names = (*space.design_names, *space.context_names)
    for name in (x, y):
        if name is not None and name not in names:
            hint = close_match(name, names, f"the variables are {list(names)}")
            raise InvalidSpaceError(f"{name!r} is not a variable", hint)
    given = [name for name in (x, y) if name is not None]
    usual = [name for name, variable in space.design.items() if variable.numeric] + list(space.context_names)
    chosen = list(dict.fromkeys([*given, *(name for name in (*usual, *names) if name not in given)]))[:2]
    if len(chosen) < 2 or (x is not None and x == y):
        raise InvalidSpaceError("a surface needs two variables", "see edrbo.plot.slices")
    return _figure([pictures.surface(*chosen)], ax)


def belief(of: Drawable, truth: Callable[[Array], Array] | None = None, ax: Sequence[Axes] | None = None) -> Figure:
    """All that is believed where there is one design and one context variable: over both, on average, and the contexts.

    Args:
        of: An ``Optimizer``, a ``Study`` or a ``Result``.
        truth: The true expected value at an array of designs, where it is known.
        ax: Three axes to draw on.
    """
    pictures = Pictures(_optimizer(of))
    space = pictures.space
    if (space.d_x, space.d_c) != (1, 1) or not all(
        v.numeric for v in (*space.design.values(), *space.context.values())
    ):
        raise InvalidSpaceError("this picture needs one design and one context variable", "see `edrbo report`")
    (design,), (context,) = space.design_names, space.context_names
    part = _reported(of).slice(design)
    average = pictures.along(part)
    if truth is not None:
        values = np.array(part.values, dtype=np.float64)
        true = Line(values.tolist(), truth(values).tolist(), "grey", "true", dashed=True)
        average = replace(average, marks=(*average.marks, true))
    if ax is None:  # the map beside the two others, so that all can be read at the width of a page
        figure = notebook_figure()(figsize=(11, 5.2), layout="constrained", dpi=110)
        places = figure.subplot_mosaic([["map", "average"], ["map", "average"], ["map", "contexts"]])
        ax = [places[name] for name in ("map", "average", "contexts")]
    return _figure([pictures.surface(design, context), average, pictures.context_distribution(0)], ax)


def _optimizer(of: Drawable) -> Optimizer:
    found = getattr(of, "optimizer", of)
    if not isinstance(found, Optimizer):
        raise EdrboError(f"{type(of).__name__} cannot be drawn", "give an Optimizer, a Study or a Result")
    return found


def _reported(of: Drawable) -> Pictures:
    optimizer = _optimizer(of)
    if len(optimizer) == 0:
        raise NothingReportedError("nothing was reported yet, so nothing can be drawn", "tell at least one value")
    return Pictures(optimizer)


def _design_name(pictures: Pictures, name: str) -> str:
    if name not in pictures.space.design:
        names = pictures.space.design_names
        raise InvalidSpaceError(
            f"{name!r} is not a design variable", close_match(name, names, f"the design variables are {list(names)}")
        )
    return name


def _figure(charts: Sequence[Chart], ax: Axes | Sequence[Axes] | None) -> Figure:
    from edrbo.charts.figure import draw_all

    return draw_all(charts, ax)
