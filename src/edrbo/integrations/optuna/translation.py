"""Optuna's distributions and trials in the words of the core, and what a trial costs.

FloatDistribution with a step, IntDistribution with a step   an Integer that counts the steps
CategoricalDistribution                                      a Categorical of the choices' positions
COMPLETE, and PRUNED with a last value                       an observation
FAIL, a constraint above zero, an infinite value or context  a failed evaluation
RUNNING                                                      pending, once its parameters are known
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from edrbo.errors import EdrboError, InvalidContextError, InvalidSpaceError, InvalidValueError
from edrbo.records.context_log import ContextBatch, summarized
from edrbo.records.events import Asked, Event, Failed, Reported, Seen
from edrbo.records.outcomes import Outcomes
from edrbo.records.settings import Settings
from edrbo.records.state import State
from edrbo.records.validation import LARGEST_COST, holds_unusable, read_number
from edrbo.space import Categorical, Integer, Real, Space, Variable
from edrbo.space.cost_function import HOW, Cost, as_cost

Array = NDArray[np.float64]

# user attributes
CONTEXT, FORECAST, CONTEXTS = "context", "forecast", "contexts"
OUTCOMES, CONSTRAINTS, COST = "outcomes", "constraints", "cost"
SHARED = "edrbo:params"  # system attribute: parameters chosen for a trial that has not suggested them all yet


def variable_of(distribution: BaseDistribution) -> Variable | None:
    """The core's variable, or None for a distribution it cannot search."""
    try:
        if isinstance(distribution, CategoricalDistribution):
            return Categorical(tuple(range(len(distribution.choices))))
        if isinstance(distribution, FloatDistribution) and distribution.step is None:
            return Real(distribution.low, distribution.high, log=distribution.log)
        if isinstance(distribution, FloatDistribution | IntDistribution):
            if distribution.log:
                return Integer(int(distribution.low), int(distribution.high), log=True)
            return Integer(0, round((distribution.high - distribution.low) / (distribution.step or 1)))
    except InvalidSpaceError:
        return None
    return None


def to_core(distribution: BaseDistribution, value: Any) -> float | int:
    """A parameter's value as the core's variable has it."""
    internal = distribution.to_internal_repr(value)
    if isinstance(distribution, CategoricalDistribution):
        return int(internal)
    if isinstance(distribution, FloatDistribution | IntDistribution) and not distribution.log and distribution.step:
        return round((internal - distribution.low) / distribution.step)
    return internal


def from_core(distribution: BaseDistribution, value: Any) -> Any:
    """The inverse of ``to_core``."""
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[int(value)]
    if isinstance(distribution, IntDistribution):
        return int(value) if distribution.log else distribution.low + int(value) * distribution.step
    if isinstance(distribution, FloatDistribution) and distribution.step is not None:
        return min(distribution.low + int(value) * distribution.step, distribution.high)
    return float(value)


@dataclass(frozen=True)
class Translation:
    """Between the trials of one search space and states of the core."""

    distributions: Mapping[str, BaseDistribution]
    space: Space

    @classmethod
    def of(cls, distributions: Mapping[str, BaseDistribution], context: Mapping[str, Any] | None) -> Translation:
        design = {f"design:{name}": variable_of(kind) for name, kind in distributions.items()}
        return cls(dict(distributions), Space(design, context))

    def params(self, design: Mapping[str, Any]) -> dict[str, Any]:
        """A design of the core as Optuna's parameters."""
        return {name: from_core(kind, design[f"design:{name}"]) for name, kind in self.distributions.items()}

    def coded(self, params: Mapping[str, Any]) -> Array | None:
        """Optuna's parameters as a coded design (d_x); None if they are not a point of the space."""
        try:
            values = {f"design:{name}": to_core(kind, params[name]) for name, kind in self.distributions.items()}
            x: Array = self.space.encode_designs(values)[0]
            return x
        except (KeyError, ValueError, EdrboError):
            return None

    def context(self, trial: FrozenTrial) -> Array | None:
        """The context (1 × d_c) of a trial; None if it has none that can be used."""
        given = trial.user_attrs.get(CONTEXT)
        if given is None or not self.space.d_c:
            return None
        try:
            return read_context(self.space, given)
        except InvalidContextError:
            return None

    def state(self, settings: Settings, trials: list[FrozenTrial], seen: Any, number: int) -> State:
        """Everything known when trial ``number`` is to be suggested; ``seen`` are contexts without an outcome."""
        reported = (self._event(trial, settings.outcomes) for trial in sorted(trials, key=_order))
        events = [*self._seen(settings, seen), *filter(None, reported)]
        events = [event for event in events if getattr(event, "id", None) != number]
        return replace(State.start(settings).apply(*events), suggested=number, next_id=number)

    def _seen(self, settings: Settings, seen: Any) -> Iterator[Event]:
        if seen is None or not self.space.d_c:
            return
        rows = self.space.read_contexts(seen, partial=True)
        batch = summarized(self.space, ContextBatch(rows, np.ones(len(rows)), len(rows)), settings.context_half_life)
        if batch.count:
            yield Seen(rows=batch.rows, weights=batch.weights, count=batch.count, summary=batch.summary)

    def _event(self, trial: FrozenTrial, outcomes: Outcomes | None) -> Event | None:
        """What a trial says; None if it says nothing that can be used."""
        x = self.coded({**trial.system_attrs.get(SHARED, {}), **trial.params})
        if x is None or trial.state == TrialState.WAITING:
            return None
        if trial.state == TrialState.RUNNING:
            return Asked(id=trial.number, x=x)
        context, value, others = self.context(trial), outcome(trial, outcomes), other_outcomes(trial, outcomes)
        row = None if context is None else context[0]
        if value is not None:
            return Reported(
                id=trial.number, x=x, context=row, value=value, others=others or None, cost=reported_cost(trial)
            )
        if trial.state != TrialState.PRUNED:
            return Failed(id=trial.number, x=x, context=row, cost=reported_cost(trial))
        return None if context is None else Seen(rows=context, weights=np.ones(1), count=1)


def only_value(distribution: BaseDistribution) -> Any:
    """Of a parameter that has one value."""
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[0]
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    return distribution.low


def read_context(space: Space, given: Any) -> Array:
    """One context (1 × d_c) as a user gives it."""
    rows = space.read_contexts(given if isinstance(given, Mapping) else [given], partial=True)
    if len(rows) != 1:
        raise InvalidContextError(f"{len(rows)} contexts for one trial", "a trial has one context")
    return rows


def outcome(trial: FrozenTrial, outcomes: Outcomes | None = None) -> float | None:
    """The (first) value of a finished trial, or None if it has none that may be learned from.

    A constraint above zero is a failure, unless it is an outcome with a limit of its own.
    """
    if holds_unusable(trial.user_attrs.get(CONTEXT)):
        return None
    if any(not constraint <= 0 for name, constraint in constraints(trial).items() if name not in (outcomes or ())):
        return None
    if trial.state == TrialState.COMPLETE:
        value = None if not trial.values else trial.values[0]
    elif trial.state == TrialState.PRUNED and trial.intermediate_values:
        value = trial.intermediate_values[max(trial.intermediate_values)]
    else:
        return None
    return value if value is not None and math.isfinite(value) else None


def constraints(trial: FrozenTrial) -> dict[str, float]:
    """By name: those of the trial, which Optuna 4 does not have, and of its user attribute ``constraints``."""
    own = getattr(trial, "constraints", {})  # of Optuna 5
    given = trial.user_attrs.get(CONSTRAINTS)
    found = {**own, **(given if isinstance(given, Mapping) else {})}
    return {name: read_number(value) for name, value in found.items()}


def other_outcomes(trial: FrozenTrial, outcomes: Outcomes | None) -> dict[str, float]:
    """Outcomes besides the main one: further values in the order of the study's directions, constraints by name, and
    those of the user attribute ``outcomes``; what is no finite number was not measured."""
    if outcomes is None:
        return {}
    given = trial.user_attrs.get(OUTCOMES)
    found = {**constraints(trial), **(given if isinstance(given, Mapping) else {})}
    if trial.state == TrialState.COMPLETE and trial.values:
        found |= dict(zip(outcomes.mains, trial.values, strict=False))
    numbers = {name: read_number(found[name]) for name in outcomes.others if name in found}
    return {name: number for name, number in numbers.items() if math.isfinite(number)}


def reported_cost(trial: FrozenTrial) -> float | None:
    """Its user attribute ``cost``, if that is a number of zero or more."""
    number = read_number(trial.user_attrs.get(COST))
    return number if 0.0 <= number <= LARGEST_COST else None


def _order(trial: FrozenTrial) -> tuple[bool, float, int]:
    """Finished trials by their end, as every process reads it, then the others by number."""
    if trial.datetime_complete is None:
        return True, 0.0, trial.number
    return False, trial.datetime_complete.timestamp(), trial.number


Given = str | Callable[[dict[str, Any]], float]


@dataclass(frozen=True)
class ParameterCost:
    """``function`` of Optuna's parameters as one of a design of the core."""

    function: Callable[[dict[str, Any]], float]
    translation: Translation

    def __call__(self, design: dict[str, Any]) -> float:
        return self.function(self.translation.params(design))


@dataclass(frozen=True)
class WrittenCost:
    """The number that ``cost`` makes of parameters; those that are no numbers do not occur in it."""

    cost: Cost

    def __call__(self, params: dict[str, Any]) -> float:
        numbers = [read_number(params[name]) for name in self.cost.space.design_names]
        return float(self.cost.expression.evaluate(np.array([numbers]))[0][0])


def check_cost(given: Any) -> Given | None:
    """InvalidValueError for what is neither text nor a function; the parameters are known later."""
    if given is not None and not isinstance(given, str) and not callable(given):
        raise InvalidValueError(f"the cost is {given!r}", HOW)
    kept: Given | None = given
    return kept


def cost_of_designs(given: Given | None, translation: Translation) -> ParameterCost | None:
    """What ``Settings`` takes, once the parameters are known."""
    if not isinstance(given, str):
        return None if given is None else ParameterCost(given, translation)
    cost = as_cost(given, Space({name: _variable(kind) for name, kind in translation.distributions.items()}))
    return None if cost is None else ParameterCost(WrittenCost(cost), translation)


def _variable(kind: BaseDistribution) -> Variable:
    """As users see it: its values, not its steps."""
    if isinstance(kind, FloatDistribution | IntDistribution):
        return Real(float(kind.low), float(kind.high))
    assert isinstance(kind, CategoricalDistribution)
    return Categorical(tuple(range(len(kind.choices))))
