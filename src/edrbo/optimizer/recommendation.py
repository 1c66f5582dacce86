"""The design to use, with what is believed of it: a value with its uncertainty, not the luckiest observation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.acquisition.goal import ModelGoal
from edrbo.context.laws import ContextPoints, Law, box_points
from edrbo.context.partial import Donors
from edrbo.context.uncertainty import LawBelief, known_law, law_belief
from edrbo.optimizer.admissible import best_admissible
from edrbo.optimizer.answer import Prediction, Recommendation, TriedRun
from edrbo.optimizer.belief import Belief
from edrbo.optimizer.choice import Choice
from edrbo.optimizer.goal_answer import GoalAnswers, text_of
from edrbo.optimizer.interval import ValueBeliefs, value_beliefs
from edrbo.optimizer.stopping import Rivals, outlook
from edrbo.optimizer.training import Evidence
from edrbo.optimizer.trust import Trust
from edrbo.records.goals import Expected
from edrbo.surrogate.ensemble import Ensemble

__all__ = ["Knowledge", "Prediction", "Recommendation", "TriedRun", "best_design", "known_of_law"]

Array = NDArray[np.float64]
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
        return self._prediction(x)[1]

    def recommend(self, x: Tensor, on_average: Tensor, ball: float, admit: Admit) -> Recommendation:
        """What is known of the design ``x`` (d_x), the best of those that ``admit`` gives; ``on_average`` is for the
        mean."""
        evidence, goal = self.evidence, self.model_goal.goal
        found, answer, parts = self._prediction(x[None])
        effects = evidence.units.spread_to_user(context_effects(self.belief, x)).tolist()  # none for a model of x alone
        rivals = Rivals(evidence.space, x, evidence.starts(), self.seed, admit)
        future = outlook(
            self.answers.model_under(self.model_goal.goal), self.law, rivals, self.trust, self.answers.measure
        )
        gains = np.quantile(future.gains, np.linspace(0.0, 1.0, 101), method="lower").tolist()
        nearest, both = self.nearest(x), torch.stack([x, on_average])
        settings = evidence.state.settings
        return Recommendation(
            design=evidence.space.decode_designs(x.numpy())[0],
            goal=text_of(goal),
            title=goal.title(settings.direction, settings.outcome),
            value=float(answer.value[0]),
            value_interval=(float(answer.value_lower[0]), float(answer.value_upper[0])),
            value_parts=parts,
            price=self.answers.price(both, evidence.units.to_user(self.values(both).mean).tolist(), ball),
            expected=float(answer.expected[0]),
            interval=(float(answer.lower[0]), float(answer.upper[0])),
            interval_parts=_named(answer.from_model, answer.from_contexts, answer.from_experts),
            outcome=(float(answer.outcome_lower[0]), float(answer.outcome_upper[0])),
            left_to_gain=gains[95],
            ten_more_runs=max(future.more_runs, 0.0),
            gain_quantiles=tuple(gains),
            untried=nearest[0].distance > FAR,
            unseen=bool(found.mean[0] > evidence.outcomes[evidence.kept].max()),
            nearest=tuple(nearest),
            robust=float(evidence.units.to_user(found.robust[0])),
            worst_case=self.answers.worst_case(x, ball) if effects and ball > 0 else float(answer.expected[0]),
            ball=ball,
            disagreement=float(answer.disagreement[0]),
            context_effect=dict(zip(evidence.space.context_names if effects else (), effects, strict=True)),
            law_error=self.belief.points.compression_error,
            observations=len(evidence.observations),
            success=self.belief.success(x),
        )

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

    def _prediction(self, x: Tensor) -> tuple[ValueBeliefs, Prediction, dict[str, float]]:
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
