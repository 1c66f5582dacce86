"""The design to use, with what is believed of it: a value with its uncertainty, not the luckiest observation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.acquisition.goal import ModelGoal
from edrbo.context.laws import ContextPoints, Law, box_points
from edrbo.context.partial import Donors
from edrbo.context.uncertainty import LawBelief, known_law, law_belief
from edrbo.errors import InvalidValueError
from edrbo.optimizer.admissible import best_admissible
from edrbo.optimizer.answer import OutcomeAnswer, Prediction, TriedRun
from edrbo.optimizer.belief import Belief
from edrbo.optimizer.choice import Choice
from edrbo.optimizer.goal_answer import GoalAnswers, text_of
from edrbo.optimizer.interval import ValueBeliefs, value_beliefs
from edrbo.optimizer.stopping import Outlook, Rivals, outlook
from edrbo.optimizer.training import Evidence
from edrbo.optimizer.trust import Trust
from edrbo.records.goals import Expected
from edrbo.surrogate.ensemble import Ensemble
from edrbo.threads import engine_threads

Array = NDArray[np.float64]
Part = TypeVar("Part")
Admit = Callable[[Array], Array]  # designs (n × d_x) that can be chosen near points

NEW_CONTEXTS = 16  # points of the context box that stand for contexts not seen yet
NEAREST = 3  # tried runs that are named
FAR = 0.5  # lengthscales from the nearest tried design to one that counts as untried


def best_design(belief: Belief, choice: Choice, starts: Tensor, seed: int, least_success: float) -> Tensor:
    """The design (d_x) that is believed to be best under the goal, less a little for what is not known, among those
    that succeed with a probability of ``least_success``."""
    value = belief.model_goal.belief(belief.model, belief.points if belief.smooth is None else belief.smooth)
    return best_admissible(value.ladder(), belief, choice, starts, seed, least_success, kinks=value.has_kinks)


def known_of_law(
    evidence: Evidence,
    law: Law,
    half_life: float | None,
    forecast: Array | None,
    fixed: Array | None,
    donors: Donors | None = None,
) -> LawBelief:
    """The law to answer for: the user's own (``forecast`` n × d_c, or one ``fixed`` context), what ``donors``
    tell of a context known in part, or what the log tells."""
    given = forecast if fixed is None else fixed
    history = evidence.history(evidence.scale(), half_life, given)
    if not evidence.uses_context:
        return known_law(history.contexts.new_zeros(1, 0))
    if given is not None or evidence.law_is_known:
        found = known_law(history.contexts, None if given is not None else history.weights, history.levels)
        return found if donors is None else replace(found, effective=donors.effective, count=donors.number)
    found = law_belief(law, history, evidence.state.log.effective(half_life))
    groups = evidence.seen_groups(half_life)
    fits = groups is not None and len(groups) == len(found.contexts)
    return replace(found, groups=torch.from_numpy(groups)) if fits else found


@dataclass(frozen=True, eq=False)
class Knowledge:
    """All that an answer is made from: data, model and search law (``belief``), ``worlds``, whose members are draws of
    an expert and its hyper-parameters, the law as far as it is known, and what the model deserves."""

    evidence: Evidence
    belief: Belief
    worlds: Ensemble
    law: LawBelief
    trust: Trust
    seed: int

    @property
    def model_goal(self) -> ModelGoal:
        return self.belief.model_goal

    @cached_property
    def answers(self) -> GoalAnswers:
        return GoalAnswers(replace(self.belief, model=self.worlds), self.law, self.trust, *self._box(), self.seed)

    def values(self, x: Tensor) -> ValueBeliefs:
        """Beliefs about the mean of designs ``x`` (N × d_x), in the model's units."""
        lower, upper = self._box()
        box = box_points(lower, upper, NEW_CONTEXTS, self.law.levels) if len(lower) else self.law.contexts
        return value_beliefs(self.worlds, self.law, box, x, self.trust, self.belief.model)

    def predict(self, x: Tensor) -> Prediction:
        return self.prediction(x)[1]

    def better(self, x: Tensor, on_average: Tensor) -> Tensor:
        """Of a design (d_x) and the one that is best for the mean, the one with the better posterior expectation under
        the goal in the contexts as they were seen.

        ``x`` was found by the mean surface, mostly on another law. What is not known of f and of the law makes a tail
        or a worst case worse than that surface says, more so far from what was tried.
        """
        if torch.equal(x, on_average):
            return x
        both = torch.stack([x, on_average])
        return both[int((self.model_goal.sense * self.answers.values(both).expected).argmax())]

    def nearest(self, x: Tensor) -> list[TriedRun]:
        """The tried runs nearest to the design ``x`` (d_x), by the experts' mean lengthscales."""
        data, space = self.evidence.observations, self.evidence.space
        lengthscale = self.belief.model.gp.hyper.lengthscale[:, : space.d_x].log().mean(0).exp().numpy()
        distance = np.sqrt(np.square((data.x - x.numpy()) / lengthscale).sum(1))
        runs = self.evidence.state.owners
        rows = np.argsort(distance, kind="stable")[:NEAREST]
        designs, contexts = space.decode_designs(data.x[rows]), space.name_contexts(data.c[rows])
        return [
            TriedRun(
                run=runs[int(row)],
                design=designs[i],
                context=contexts[i] if contexts[i] else None,
                value=float(data.y[row]),
                distance=float(distance[row]),
            )
            for i, row in enumerate(rows)
        ]

    def _box(self) -> tuple[Tensor, Tensor]:
        """The ends of the box of those contexts that the model knows."""
        box = self.evidence.whole_box if self.model_goal.over_all_bounds else self.evidence.box
        lower, upper = box(self.evidence.scale())
        count = self.law.contexts.shape[1]
        return lower[:count], upper[:count]

    def prediction(self, x: Tensor) -> tuple[ValueBeliefs, Prediction, dict[str, float]]:
        """Of designs ``x`` (N × d_x); and of the first one what the interval of its value is made of."""
        user, found = self.evidence.units.to_user, self.values(x)
        mean = user(found.mean)
        ends = np.sort(user([found.mean - found.half, found.mean + found.half]), axis=0)
        outcomes = np.sort(user([found.outcome_lower, found.outcome_upper]), axis=0)
        widths = self.evidence.units.spread_to_user([found.disagreement, found.model, found.contexts, found.experts])
        if self.model_goal.goal == Expected():
            return found, Prediction(*[mean, *ends, *widths, *outcomes, mean, *ends]), _named(*widths[1:])
        values = self.answers.values(x)
        shown = values.expected, *values.interval
        if self.trust.freedom == 0.0:  # one outcome has no scale
            shown = values.expected, *np.stack([-np.inf + 0.0 * mean, np.inf + 0.0 * mean])
        return found, Prediction(*[mean, *ends, *widths, *outcomes, *shown]), _named(*values.parts)


def context_effects(belief: Belief, x: Tensor) -> list[float]:
    """Standard deviation of the main effect of each context variable at ``x``: Var_k(E[f | c_k])^½."""
    atoms, weights = belief.points.atoms, belief.points.weights
    effects = []
    with torch.no_grad():
        for columns in _variables(belief.points):
            mixed = atoms.repeat(len(atoms), 1)
            mixed[:, columns] = atoms[:, columns].repeat_interleave(len(atoms), dim=0)
            center, _ = belief.model.barycenter(*belief.model.moments(_joint(x, mixed)))
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
        known: Knowledge,
        x: Tensor,
        on_average: Tensor,
        *,
        ball: float,
        admit: Admit,
        outcomes: Callable[[], dict[str, OutcomeAnswer]] = dict,
        confidences: Mapping[str, float] | None = None,
    ) -> None:
        """From everything that is known.

        Args:
            known: Of the main outcome.
            x: The design (d_x), the best of those that ``admit`` gives.
            on_average: The design (d_x) that is best for the mean.
            ball: How far the law of contexts may move, for the worst case: a fraction of the context range.
            admit: Gives designs (n × d_x) that can be chosen near points.
            outcomes: What to expect of each of several outcomes.
            confidences: With what probability each limit is to hold, by name.
        """
        self._known, self._x, self._on_average, self._admit = known, x, on_average, admit
        self._outcomes, self._confidences = outcomes, confidences or {}
        self.design: dict[str, Any] = known.evidence.space.decode_designs(x.numpy())[0]
        self.ball = ball

    def __repr__(self) -> str:
        low, high = self.value_interval
        return f"Recommendation({self.design!r}, {self.title}: {self.value:.6g}, 95 % interval {low:.6g} to {high:.6g})"

    def __eq__(self, other: object) -> bool:
        return self.to_dict() == other.to_dict() if isinstance(other, Recommendation) else NotImplemented

    def with_design(self, design: Mapping[str, Any]) -> Recommendation:
        """The same in other words.

        Args:
            design: What to set, by name.
        """
        other = copy(self)
        other.design = dict(design)
        return other

    def to_dict(self) -> dict[str, Any]:
        """Everything by name, with parts as dicts."""
        found = {name: getattr(self, name) for name in PARTS}
        found["nearest"] = tuple(asdict(run) for run in self.nearest)
        found["outcomes"] = {name: asdict(answer) for name, answer in self.outcomes.items()}
        return found

    # ---------------------------------------------------------------- the goal

    @property
    def goal(self) -> str:
        """What the design is best for, as text."""
        return text_of(self._known.model_goal.goal)

    @property
    def title(self) -> str:
        """The same in words."""
        settings = self._known.evidence.state.settings
        return self._known.model_goal.goal.title(settings.direction, settings.outcome)

    @_on_read
    def _said(self) -> tuple[ValueBeliefs, Prediction, dict[str, float]]:
        return self._known.prediction(self._x[None])

    @property
    def value(self) -> float:
        """Posterior expectation of the goal's value."""
        return float(self._said[1].value[0])

    @property
    def value_interval(self) -> tuple[float, float]:
        """Central 95 % interval of it under the *true* law."""
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
        means = known.evidence.units.to_user(known.values(both).mean).tolist()
        return known.answers.price(both, means, self.ball)

    # ---------------------------------------------------------------- the mean over contexts

    @property
    def expected(self) -> float:
        """Posterior mean of E_c f(x, c) under the context law, summed over all contexts seen."""
        return float(self._said[1].expected[0])

    @property
    def interval(self) -> tuple[float, float]:
        """Central 95 % interval of that value under the *true* law."""
        return float(self._said[1].lower[0]), float(self._said[1].upper[0])

    @property
    def interval_parts(self) -> dict[str, float]:
        """Its half-width by source, which add in squares: what is not known of f (``model``), of the law (``contexts``;
        0 for a forecast or a fixed context), and which expert is right (``experts``)."""
        said = self._said[1]
        return _named(said.from_model, said.from_contexts, said.from_experts)

    @property
    def outcome(self) -> tuple[float, float]:
        """Central 95 % interval of the next single outcome at this design, context and noise included."""
        return float(self._said[1].outcome_lower[0]), float(self._said[1].outcome_upper[0])

    @property
    def robust(self) -> float:
        """``expected`` made worse by √2 × the mean disagreement of the experts."""
        return float(self._known.evidence.units.to_user(self._said[0].robust[0]))

    @property
    def disagreement(self) -> float:
        """Mean over contexts of ε̂(x, c), the experts' distance from their barycenter."""
        return float(self._said[1].disagreement[0])

    @_on_read
    def context_effect(self) -> dict[str, float]:
        """Per context variable: standard deviation of f(x, c) due to it alone."""
        evidence = self._known.evidence
        effects = evidence.units.spread_to_user(context_effects(self._known.belief, self._x)).tolist()
        names = evidence.space.context_names if effects else ()  # none for a model of x alone
        return dict(zip(names, effects, strict=True))

    @_on_read
    def worst_case(self) -> float:
        """The worst expected value when the context law moves by at most ``ball``: at or beyond this with 95 %
        probability, so that contexts nobody has seen count as what they are, unknown."""
        moves = self._known.belief.points.atoms.shape[1] > 0 and self.ball > 0
        return self._known.answers.worst_case(self._x, self.ball) if moves else self.expected

    # ---------------------------------------------------------------- what is left to gain

    @_on_read
    def _outlook(self) -> Outlook:
        known, evidence = self._known, self._known.evidence
        rivals = Rivals(evidence.space, self._x, evidence.starts(), known.seed, self._admit)
        model = known.answers.model_under(known.model_goal.goal)
        return outlook(model, known.law, rivals, known.trust, known.answers.measure)

    @_on_read
    def gain_quantiles(self) -> tuple[float, ...]:
        """0, 1, …, 100 % quantiles of how much better the best design is; see ``probability_best_within``."""
        return tuple(np.quantile(self._outlook.gains, np.linspace(0.0, 1.0, 101), method="lower").tolist())

    @property
    def left_to_gain(self) -> float:
        """With 95 % probability no design is better than this one by more, under the goal."""
        return self.gain_quantiles[95]

    @property
    def ten_more_runs(self) -> float:
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
        return tuple(self._known.nearest(self._x))

    @property
    def untried(self) -> bool:
        """Whether this design is far from every one tried (more than half a lengthscale)."""
        return self.nearest[0].distance > FAR

    @property
    def unseen(self) -> bool:
        """Whether ``expected`` is better than every outcome told."""
        evidence = self._known.evidence
        return bool(self._said[0].mean[0] > evidence.outcomes[evidence.kept].max())

    @property
    def observations(self) -> int:
        """How many outcomes it stands on."""
        return len(self._known.evidence.observations)

    @property
    def law_error(self) -> float:
        """Wasserstein-2 distance of the atoms the search used from the law they stand for, coded."""
        return self._known.belief.points.compression_error

    @_on_read
    def success(self) -> float | None:
        """Probability that an evaluation of the design succeeds; None as long as none has failed."""
        return self._known.belief.success(self._x)

    @_on_read
    def outcomes(self) -> dict[str, OutcomeAnswer]:
        """Of a study of several: what to expect of each, by name. Everything else is about the main one, and what is
        left to gain is so among designs that are believed to keep the limits."""
        return self._outcomes()

    @property
    def limits_hold(self) -> bool | None:
        """Whether each limit holds with the confidence asked for; None without limits."""
        held = [(self.outcomes[name].holds, confidence) for name, confidence in self._confidences.items()]
        return all(holds is not None and holds >= confidence for holds, confidence in held) if held else None


PARTS = (
    *("design", "goal", "title", "value", "value_interval", "value_parts", "price", "expected", "interval"),
    *("interval_parts", "outcome", "left_to_gain", "ten_more_runs", "gain_quantiles", "untried", "unseen", "nearest"),
    *("robust", "worst_case", "ball", "disagreement", "context_effect", "law_error", "observations", "success"),
    *("outcomes", "limits_hold"),
)
