"""What a trial costs: said by the parameters, or reported with each trial."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from edrbo.errors import InvalidValueError
from edrbo.integrations.optuna.translation import Translation
from edrbo.records.validation import read_number
from edrbo.space import Categorical, Real, Space, Variable
from edrbo.space.cost_function import HOW, Cost, as_cost

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
