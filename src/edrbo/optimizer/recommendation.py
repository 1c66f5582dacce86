"""The recommendation: the design with the best posterior value, with its uncertainty; not the best observation. Where
runs fail it is the best of the designs with a sufficient probability of success.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.acquisition.acquisition import ModelGoal
from edrbo.acquisition.objective import Objective
from edrbo.acquisition.penalties import Bar, penalize_failure
from edrbo.acquisition.search.maximizer import BUDGET, Budget
from edrbo.charts import Axis, Chart, Points, Spans, chart_image, span
from edrbo.contexts.distributions import ContextDistribution, ContextPoints, box_points
from edrbo.contexts.partial import Donors
from edrbo.contexts.uncertainty import DistributionUncertainty, distribution_uncertainty, known_distribution
from edrbo.errors import InvalidValueError
from edrbo.html_table import html_table
from edrbo.optimizer.answers import LikelyDesign, OutcomeAnswer, Prediction, TriedRun
from edrbo.optimizer.calibration import Trust
from edrbo.optimizer.candidates import CandidateSet
from edrbo.optimizer.goal_posterior import GoalAnswers, text_of
from edrbo.optimizer.intervals import ValueIntervals, value_intervals
from edrbo.optimizer.outcome_posterior import OutcomePosterior
from edrbo.optimizer.stopping import Outlook, Rivals, outlook
from edrbo.optimizer.tolerance import Tolerances, deviations_in
from edrbo.optimizer.training_data import TrainingData
from edrbo.records.change_point import ProcessChange
from edrbo.records.descriptions import heading
from edrbo.records.goals import Expected
from edrbo.space.variables import format_value
from edrbo.surrogate.ensemble import ExpertEnsemble
from edrbo.surrogate.feasibility import Feasibility
from edrbo.text import AnswerText, answer_text
from edrbo.threads import engine_threads

ALMOST = 0.98  # if no tried design is as sure as that, this part of the surest one's probability is asked for
# In ranges of the outcomes: what an admissible design may at most lose for being less sure, and how fast the worth of
# one that is not falls with its probability.
RISK = 0.1
STEEPNESS = (10.0, 1000.0)
WALL_TOLERANCE = 1e-3  # by how much the wall may be leaned on


def best_feasible(
    approximations: Sequence[Objective],
    posterior: OutcomePosterior,
    candidates: CandidateSet,
    starts: Tensor,
    seed: int,
    least_success: float,
    *,
    kinks: bool = False,
    budget: Budget = BUDGET,
) -> Tensor:
    """The design (d_x) that maximizes ``approximations`` of a choice among those that succeed with a probability of
    ``least_success``.

    If not even the designs tried (``starts``, S × d_x) are believed to, the bar is lowered to what they reach. Among
    admissible designs the surer one is preferred if it costs little.
    """
    starts = candidates.starts(starts)
    feasibility = posterior.feasibility
    if feasibility is None:
        return candidates.best(approximations, seed=seed, starts=starts, kinks=kinks, budget=budget)
    level = reachable(feasibility, starts, least_success)
    unit = posterior.outcome_range
    for steepness in STEEPNESS:
        bar = Bar(level, RISK * unit, steepness * unit)
        penalized = penalize_failure(approximations, feasibility, bar)
        x = candidates.best(penalized, seed=seed, starts=starts, kinks=True, budget=budget)
        if float(feasibility.probability(x[None])) >= level - WALL_TOLERANCE:
            return x
    tried = starts[feasibility.probability(starts) >= level]
    return tried[approximations[-1](tried).argmax()]


def reachable(feasibility: Feasibility, starts: Tensor, least_success: float) -> float:
    """``least_success``, or what comes close to the surest of ``starts`` (S × d_x) where none reaches it."""
    return min(least_success, ALMOST * float(feasibility.probability(starts).max()))


Array = NDArray[np.float64]
Part = TypeVar("Part")
Admit = Callable[[Array], Array]  # designs (n × d_x) that can be chosen near points

NEW_CONTEXTS = 16  # points of the context box that stand for contexts not seen yet
NEAREST = 3  # tried runs that are named
EXTRAPOLATION_DISTANCE = 0.5  # lengthscales from the nearest tried design beyond which a prediction is an extrapolation


def best_design(
    posterior: OutcomePosterior, candidates: CandidateSet, starts: Tensor, seed: int, least_success: float
) -> Tensor:
    """The design (d_x) that is believed to be best under the goal, less a little for what is not known, among those
    that succeed with a probability of ``least_success``."""
    value = posterior.model_goal.posterior(
        posterior.model, posterior.points if posterior.smooth is None else posterior.smooth
    )
    return best_feasible(
        value.approximations(), posterior, candidates, starts, seed, least_success, kinks=value.has_kinks
    )


def known_distribution_of(
    training_data: TrainingData,
    context_distribution: ContextDistribution,
    half_life: float | None,
    forecast: Array | None,
    fixed: Array | None,
    donors: Donors | None = None,
) -> DistributionUncertainty:
    """The distribution to answer for: the user's own (``forecast`` n × d_c, or one ``fixed`` context), what ``donors``
    tell of a context known in part, or what the log tells."""
    given = forecast if fixed is None else fixed
    history = training_data.history(training_data.scale(), half_life, given)
    if not training_data.uses_context:
        return known_distribution(history.contexts.new_zeros(1, 0))
    if given is not None or training_data.distribution_is_known:
        found = known_distribution(history.contexts, None if given is not None else history.weights, history.levels)
        return found if donors is None else replace(found, effective=donors.effective, count=donors.number)
    found = distribution_uncertainty(context_distribution, history, training_data.state.log.effective(half_life))
    groups = training_data.seen_groups(half_life)
    fits = groups is not None and len(groups) == len(found.contexts)
    return replace(found, groups=torch.from_numpy(groups)) if fits else found


@dataclass(frozen=True)
class NoiseSd:
    """Standard deviations of single outcomes around f: of the design ``here``, and the least and the largest of those
    tried."""

    here: float
    least: float
    most: float


@dataclass(frozen=True, eq=False)
class Recommender:
    """All that an answer is made from: data, model and search distribution (``posterior``), ``worlds``, whose members
    are draws of an expert and its hyper-parameters, the distribution as far as it is known, and what the model
    deserves."""

    training_data: TrainingData
    posterior: OutcomePosterior
    worlds: ExpertEnsemble
    context_distribution: DistributionUncertainty
    trust: Trust
    seed: int

    @property
    def model_goal(self) -> ModelGoal:
        return self.posterior.model_goal

    @cached_property
    def tolerances(self) -> Tolerances | None:
        """Of design variables, or noise that varies: then contexts are pairs."""
        return deviations_in(self.training_data.space, self.posterior.model)

    @property
    def varying(self) -> tuple[str, ...]:
        """The names of what a context of the model is made of."""
        count = self.context_distribution.contexts.shape[1]
        own = () if self.tolerances is None else self.tolerances.titles
        return own + (self.training_data.space.context_names if count > len(own) else ())

    @cached_property
    def answers(self) -> GoalAnswers:
        return GoalAnswers(
            replace(self.posterior, model=self.worlds), self.context_distribution, self.trust, *self._box(), self.seed
        )

    def values(self, x: Tensor) -> ValueIntervals:
        """Beliefs about the mean of designs ``x`` (N × d_x), in the model's units."""
        lower, upper = self._box()
        box = (
            box_points(lower, upper, NEW_CONTEXTS, self.context_distribution.levels)
            if len(lower)
            else self.context_distribution.contexts
        )
        return value_intervals(self.worlds, self.context_distribution, box, x, self.trust, self.posterior.model)

    def predict(self, x: Tensor) -> Prediction:
        return self.prediction(x)[1]

    def better(self, x: Tensor, on_average: Tensor) -> Tensor:
        """Of a design (d_x) and the one that is best for the mean, the one with the better posterior expectation under
        the goal in the contexts as they were seen.

        ``x`` was found by the mean surface, mostly on another distribution. What is not known of f and of the
        distribution makes a tail or a worst case worse than that surface says, more so far from what was tried.
        """
        if torch.equal(x, on_average):
            return x
        both = torch.stack([x, on_average])
        return both[int((self.model_goal.sense * self.answers.values(both).expected).argmax())]

    def nearest(self, x: Tensor) -> list[TriedRun]:
        """The tried runs nearest to the design ``x`` (d_x), by the experts' mean lengthscales."""
        data, space = self.training_data.observations, self.training_data.space
        lengthscale = self.posterior.model.gp.hyper.lengthscale[:, : space.d_x].log().mean(0).exp().numpy()
        distance = np.sqrt(np.square((data.x - x.numpy()) / lengthscale).sum(1))
        runs = self.training_data.state.owners
        rows = np.argsort(distance, kind="stable")[:NEAREST]
        designs, contexts = space.decode_designs(data.x[rows]), space.name_contexts(data.c[rows])
        return [
            TriedRun(
                run=int(runs[row]),
                design=designs[i],
                context=contexts[i] if contexts[i] else None,
                value=float(data.y[row]),
                distance=float(distance[row]),
            )
            for i, row in enumerate(rows)
        ]

    def noise_sd(self, x: Tensor) -> NoiseSd | None:
        """Of outcomes of the design ``x`` (d_x), over the contexts; beside those of what was tried."""
        model, points = self.posterior.model, self.posterior.points
        ratio, tried = model.gp.noise_ratio(_joint(x, points.atoms)), model.gp.noise_ratio(model.inputs)
        if ratio is None or tried is None:
            return None
        ratios = torch.stack([ratio @ points.weights, tried.min(), tried.max()])
        noise_variance = model.gp.hyper.noise_variance.mean() * ratios
        scale = model.scaling.slope(noise_variance.new_zeros(1))
        return NoiseSd(*self.training_data.units.spread_to_user((noise_variance.sqrt() * scale).numpy()).tolist())

    def _box(self) -> tuple[Tensor, Tensor]:
        """The ends of the box of those contexts that the model knows."""
        box = self.training_data.whole_box if self.model_goal.over_all_bounds else self.training_data.box
        lower, upper = box(self.training_data.scale())
        tolerances, count = self.tolerances, self.context_distribution.contexts.shape[1]
        if tolerances is None:
            return lower[:count], upper[:count]
        return tolerances.box(lower[: count - tolerances.count], upper[: count - tolerances.count])

    def prediction(self, x: Tensor) -> tuple[ValueIntervals, Prediction, dict[str, float]]:
        """Of designs ``x`` (N × d_x); and of the first one what the interval of its value is made of."""
        user, found = self.training_data.units.to_user, self.values(x)
        mean = user(found.mean)
        ends = np.sort(user([found.mean - found.half, found.mean + found.half]), axis=0)
        outcomes = np.sort(user([found.outcome_lower, found.outcome_upper]), axis=0)
        widths = self.training_data.units.spread_to_user(
            [found.disagreement, found.model, found.contexts, found.experts]
        )
        if self.model_goal.goal == Expected():
            return found, Prediction(*[mean, *ends, *widths, *outcomes, mean, *ends]), _named(*widths[1:])
        values = self.answers.values(x)
        shown = values.expected, *values.interval
        if self.trust.freedom == 0.0:  # one outcome has no scale
            shown = values.expected, *np.stack([-np.inf + 0.0 * mean, np.inf + 0.0 * mean])
        return found, Prediction(*[mean, *ends, *widths, *outcomes, *shown]), _named(*values.parts)


def context_effects(posterior: OutcomePosterior, x: Tensor) -> list[float]:
    """Standard deviation of the main effect of each context variable at ``x``: Var_k(E[f | c_k])^½."""
    atoms, weights = posterior.points.atoms, posterior.points.weights
    effects = []
    with torch.no_grad():
        for columns in _variables(posterior.points):
            mixed = atoms.repeat(len(atoms), 1)
            mixed[:, columns] = atoms[:, columns].repeat_interleave(len(atoms), dim=0)
            center, _ = posterior.model.barycenter(*posterior.model.moments(_joint(x, mixed)))
            main = center.reshape(len(atoms), len(atoms)) @ weights
            effects.append(float(((main - main @ weights).square() @ weights).sqrt()))
    return effects


def _variables(points: ContextPoints) -> tuple[slice, ...]:
    """The coded columns of each context variable."""
    if points.levels is not None:
        return points.levels.scale.blocks
    return tuple(slice(k, k + 1) for k in range(points.atoms.shape[1]))


def _joint(x: Tensor, contexts: Tensor) -> Tensor:
    return torch.cat([x.expand(len(contexts), -1), contexts], dim=-1)


def _named(model: Array, contexts: Array, experts: Array) -> dict[str, float]:
    """The half-widths of the first design's interval, by source."""
    return {"model": float(model[0]), "contexts": float(contexts[0]), "experts": float(experts[0])}


def _on_read(compute: Callable[[Any], Part]) -> cached_property[Part]:
    """Of a recommendation: what is computed when it is first read, and kept."""
    return cached_property(engine_threads()(compute))


class Recommendation:
    """What to set, and what to expect. Values are in the user's units and direction.

    Only the design is computed at once; everything else is when it is read, from the data as they were.

    After a single outcome there is no scale to judge it by, and the intervals are infinite.
    """

    def __init__(
        self,
        known: Recommender,
        x: Tensor,
        on_average: Tensor,
        *,
        radius: float,
        admit: Admit,
        outcomes: Callable[[], dict[str, OutcomeAnswer]] = dict,
        confidences: Mapping[str, float] | None = None,
        likely: Callable[[], LikelyDesign] | None = None,
    ) -> None:
        """From everything that is known.

        Args:
            known: Of the main outcome.
            x: The design (d_x), the best of those that ``admit`` gives.
            on_average: The design (d_x) that is best for the mean.
            radius: How far the distribution of contexts may move, for the worst case: a fraction of the context range.
            admit: Gives designs (n × d_x) that can be chosen near points.
            outcomes: What to expect of each of several outcomes.
            confidences: With what probability each limit is to hold, by name.
            likely: Where that cannot be, the best design that keeps the limits as far as can be expected.
        """
        self._known, self._x, self._on_average, self._admit = known, x, on_average, admit
        self._outcomes, self._confidences, self._likely = outcomes, confidences or {}, likely
        self.design: dict[str, Any] = known.training_data.space.decode_designs(x.numpy())[0]
        self.radius = radius
        self.left_open: tuple[str, ...] = ()  # what it says nothing of, each with the reason
        self._words: Callable[[Mapping[str, Any]], dict[str, Any]] = dict

    def __repr__(self) -> str:
        low, high = self.value_interval
        return f"Recommendation({self.design!r}, {self.title}: {self.value:.6g}, 95 % interval {low:.6g} to {high:.6g})"

    def __str__(self) -> str:
        """What to set and what to expect, in a few lines."""
        text = self._text
        facts = [f"{fact.label}: {fact.value} ({fact.explanation})" for fact in text.facts]
        return "\n".join(
            [self._settings_text, f"best for: {text.goal}", *facts, *(f"! {doubt}" for doubt in self._doubts)]
        )

    def _repr_html_(self) -> str:
        """The same as a table with a picture, for notebooks."""
        text = self._text
        rows = [("set", self._settings_text, ""), ("best for", text.goal, ""), *text.facts]
        return html_table("Recommendation", (), rows, self._doubts, chart_image(self._chart()))

    def _chart(self) -> Chart:
        """What to expect, beside the results."""
        settings = self._known.training_data.state.settings
        seen = self._known.training_data.observations.y.tolist()
        parts: list[tuple[str, float, tuple[float, float]]] = [
            ("next run", self.expected, self.outcome_interval),
            ("on average", self.expected, self.interval),
        ]
        goal = self._known.model_goal.goal
        if goal != Expected() and goal.of_outcomes:
            parts.append(("goal", self.value, self.value_interval))
        names = ("results", *(name for name, _, _ in parts))
        ends = [end for _, middle, both in parts for end in (middle, *both)]
        places = [1.0 + k for k in range(len(parts))]
        low, high = (
            [both[side] if math.isfinite(both[side]) else middle for _, middle, both in parts] for side in (0, 1)
        )
        marks = (
            Spans(places, low, high, "green", "95 % sure"),
            Points([middle for _, middle, _ in parts], places, "grey", size=5.0),
            Points(seen, [0.0] * len(seen), label="result", faint=True),
        )
        across = Axis.of(heading(settings.outcome, settings.unit), span([*seen, *ends]))
        return Chart("What to expect", across, Axis.of("", (0.0, 1.0), names), marks)

    @property
    def _doubts(self) -> tuple[str, ...]:
        return (*self._text.doubts, *(f"Left open: {words}" for words in self.left_open))

    @property
    def _text(self) -> AnswerText:
        return answer_text(self, self._known.training_data.state.settings)

    @property
    def _settings_text(self) -> str:
        known = self._known.training_data.space.design
        texts = {
            name: format_value(known[name], value) if name in known else str(value)
            for name, value in self.design.items()
        }
        return ", ".join(f"{name} = {text}" for name, text in texts.items())

    def __eq__(self, other: object) -> bool:
        return self.to_dict() == other.to_dict() if isinstance(other, Recommendation) else NotImplemented

    def in_words(
        self, words: Callable[[Mapping[str, Any]], dict[str, Any]], left_open: Sequence[str] = ()
    ) -> Recommendation:
        """The same with designs in other words.

        Args:
            words: From a design as the space names it to one as the user does.
            left_open: What the answer says nothing of, each with the reason.
        """
        other = copy(self)
        other.__dict__.pop("nearest", None)  # kept in the words of before
        other.design, other.left_open, other._words = words(self.design), tuple(left_open), words
        return other

    def to_dict(self) -> dict[str, Any]:
        """Everything by name, with parts as dicts."""
        found = {name: getattr(self, name) for name in PARTS}
        found["process_change"] = None if self.process_change is None else asdict(self.process_change)
        found["noise_sd"] = None if self.noise_sd is None else asdict(self.noise_sd)
        found["nearest"] = tuple(asdict(run) for run in self.nearest)
        found["likely"] = None if self.likely is None else asdict(self.likely)
        found["outcomes"] = {name: asdict(answer) for name, answer in self.outcomes.items()}
        return found

    @property
    def earlier(self) -> dict[str, dict[str, float]]:
        """Of each earlier study that was learned from, by name, the ``runs`` and their ``correlation`` with this one,
        the mean over the posterior of the experts and their hyper-parameters."""
        runs, known = self._known.training_data.earlier_runs, self._known.worlds.correlation
        if known is None:
            return {}
        return {
            part.name: {"runs": len(part.y), "correlation": found}
            for part, found in zip(runs, known.tolist(), strict=True)
        }

    # ---------------------------------------------------------------- the goal

    @property
    def goal(self) -> str:
        """What the design is best for, as text."""
        return text_of(self._known.model_goal.goal)

    @property
    def title(self) -> str:
        """The same in words."""
        settings = self._known.training_data.state.settings
        return self._known.model_goal.goal.title(settings.direction, settings.outcome)

    @_on_read
    def _said(self) -> tuple[ValueIntervals, Prediction, dict[str, float]]:
        return self._known.prediction(self._x[None])

    @property
    def value(self) -> float:
        """Posterior expectation of the goal's value."""
        return float(self._said[1].value[0])

    @property
    def value_interval(self) -> tuple[float, float]:
        """Central 95 % interval of it under the *true* distribution."""
        return float(self._said[1].value_lower[0]), float(self._said[1].value_upper[0])

    @property
    def value_parts(self) -> dict[str, float]:
        """The parts of that interval, as in ``interval_parts``."""
        return self._said[2]

    @_on_read
    def price(self) -> dict[str, dict[str, float]]:
        """Mean, mean of the worst 10 % of contexts, and worst mean in the ball, of ``recommended`` and of the design
        that is best ``on average``: what robustness costs and buys."""
        known, both = self._known, torch.stack([self._x, self._on_average])
        means = known.training_data.units.to_user(known.values(both).mean).tolist()
        return known.answers.price(both, means, self.radius)

    # ---------------------------------------------------------------- the mean over contexts

    @property
    def expected(self) -> float:
        """Posterior mean of E_c f(x, c) under the context distribution, summed over all contexts seen."""
        return float(self._said[1].expected[0])

    @property
    def interval(self) -> tuple[float, float]:
        """Central 95 % interval of that value under the *true* distribution."""
        return float(self._said[1].lower[0]), float(self._said[1].upper[0])

    @property
    def interval_parts(self) -> dict[str, float]:
        """Its half-width by source, which add in squares: what is not known of f (``model``), of the distribution
        (``contexts``; 0 for a forecast or a fixed context), and which expert is right (``experts``)."""
        said = self._said[1]
        return _named(said.from_model, said.from_contexts, said.from_experts)

    @property
    def outcome_interval(self) -> tuple[float, float]:
        """Central 95 % interval of the next single outcome at this design, context and noise included."""
        return float(self._said[1].outcome_lower[0]), float(self._said[1].outcome_upper[0])

    @property
    def outcome_spread(self) -> float:
        """How far apart ordinary outcomes are: what a bound is to be seen against."""
        known = self._known
        return float(known.training_data.units.spread_to_user(known.posterior.outcome_range))

    @property
    def robust(self) -> float:
        """``expected`` made worse by √2 × the mean disagreement of the experts."""
        return float(self._known.training_data.units.to_user(self._said[0].robust[0]))

    @property
    def disagreement(self) -> float:
        """Mean over contexts of ε̂(x, c), the experts' distance from their barycenter."""
        return float(self._said[1].disagreement[0])

    @_on_read
    def context_effect(self) -> dict[str, float]:
        """Per context variable: standard deviation of f(x, c) due to it alone."""
        training_data = self._known.training_data
        effects = training_data.units.spread_to_user(context_effects(self._known.posterior, self._x)).tolist()
        return dict(zip(self._known.varying, effects, strict=True))

    @_on_read
    def worst_case(self) -> float:
        """The worst expected value when the context distribution moves by at most ``radius``: at or beyond this with 95
        % probability, so that contexts nobody has seen count as what they are, unknown."""
        moves = self._known.posterior.points.atoms.shape[1] > 0 and self.radius > 0
        return self._known.answers.worst_case(self._x, self.radius) if moves else self.expected

    # ---------------------------------------------------------------- what is left to gain

    @_on_read
    def _outlook(self) -> Outlook:
        known, training_data = self._known, self._known.training_data
        rivals = Rivals(training_data.space, self._x, training_data.starts(), known.seed, self._admit)
        goal = known.model_goal.goal
        trust, model = known.trust.under(goal), known.answers.model_under(goal)
        fitted = known.posterior.model
        return outlook(model, known.context_distribution, rivals, trust, known.answers.measure, fitted)

    @_on_read
    def gain_quantiles(self) -> tuple[float, ...]:
        """0, 1, …, 100 % quantiles of how much better the best design is; see ``probability_best_within``."""
        return tuple(np.quantile(self._outlook.gains, np.linspace(0.0, 1.0, 101), method="lower").tolist())

    @property
    def optimality_gap(self) -> float:
        """With 95 % probability no design is better than this one by more, under the goal."""
        return self.gain_quantiles[95]

    @property
    def expected_improvement_10(self) -> float:
        """How much better the recommended design is expected to be after ten more runs."""
        return max(self._outlook.more_runs, 0.0)

    def probability_best_within(self, delta: float) -> float:
        """How probable it is that no design is better than this one by more than that.

        Args:
            delta: A difference of values, zero or more.
        """
        if not delta >= 0:
            raise InvalidValueError(f"delta is {delta!r}", "give a difference of values, zero or more")
        levels = np.linspace(0.0, 1.0, len(self.gain_quantiles))
        return float(np.interp(delta, self.gain_quantiles, levels))

    # ---------------------------------------------------------------- what it stands on

    @_on_read
    def nearest(self) -> tuple[TriedRun, ...]:
        """The tried runs nearest to this design, nearest first."""
        return tuple(replace(run, design=self._words(run.design)) for run in self._known.nearest(self._x))

    @property
    def is_extrapolation(self) -> bool:
        """Whether this design is far from every one tried (more than half a lengthscale)."""
        return self.nearest[0].distance > EXTRAPOLATION_DISTANCE

    @property
    def beats_observations(self) -> bool:
        """Whether ``expected`` is better than every outcome reported."""
        training_data = self._known.training_data
        return bool(self._said[0].mean[0] > training_data.outcomes[training_data.kept].max())

    @cached_property
    def process_change(self) -> ProcessChange | None:
        """Since which run outcomes come otherwise; None if there is no sign of it."""
        return self._known.training_data.process_change

    @_on_read
    def noise_sd(self) -> NoiseSd | None:
        """How far single outcomes scatter around the mean in their context, where that varies; None where it does not,
        as far as the data say."""
        return self._known.noise_sd(self._x)

    @property
    def drift_half_life(self) -> float | None:
        """After how many runs what was known of f counts half; None where f stays."""
        found = self._known.posterior.model.gp.hyper.half_life
        return None if found is None or math.isinf(found) else found

    @property
    def observations(self) -> int:
        """How many outcomes it stands on."""
        return len(self._known.training_data.observations)

    @property
    def approximation(self) -> dict[str, float] | None:
        """Of very many outcomes the model is that of so many ``inducing_points``, runs that stand for all; what these
        ``leave_out`` of f at the runs is so large, a standard deviation. None where the model is exact."""
        model, units = self._known.posterior.model, self._known.training_data.units
        if model.approximation is None:
            return None
        left_out = float(units.spread_to_user(model.approximation.error))
        return {"inducing_points": model.approximation.points, "leave_out": left_out}

    @property
    def distribution_error(self) -> float:
        """Wasserstein-2 distance of the atoms the search used from the distribution they stand for, coded."""
        return self._known.posterior.points.compression_error

    @_on_read
    def success(self) -> float | None:
        """Probability that an evaluation of the design succeeds; None as long as none has failed."""
        return self._known.posterior.success(self._x)

    @_on_read
    def outcomes(self) -> dict[str, OutcomeAnswer]:
        """Of a study of several: what to expect of each, by name. Everything else is about the main one, and what is
        left to gain is so among designs that are believed to keep the limits."""
        return self._outcomes()

    @_on_read
    def likely(self) -> LikelyDesign | None:
        """Where limits do not hold with the confidence asked for: the best design that keeps them as far as can be
        expected."""
        return None if self._likely is None else self._likely()

    @property
    def limits_hold(self) -> bool | None:
        """Whether each limit holds with the confidence asked for; None without limits."""
        held = [(self.outcomes[name].holds, confidence) for name, confidence in self._confidences.items()]
        return all(holds is not None and holds >= confidence for holds, confidence in held) if held else None


PARTS = (
    *("design", "goal", "title", "value", "value_interval", "value_parts", "price", "expected", "interval"),
    *(
        "interval_parts",
        "outcome_interval",
        "optimality_gap",
        "expected_improvement_10",
        "gain_quantiles",
        "is_extrapolation",
        "beats_observations",
        "nearest",
    ),
    *(
        "robust",
        "worst_case",
        "radius",
        "disagreement",
        "context_effect",
        "distribution_error",
        "approximation",
        "observations",
        "success",
    ),
    *("outcomes", "limits_hold", "likely", "earlier", "process_change", "noise_sd", "drift_half_life"),
)
