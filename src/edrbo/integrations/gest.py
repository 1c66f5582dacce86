"""edrbo behind gest-api, the interface that Xopt, libEnsemble and Optimas share: VOCS, ``suggest``, ``ingest``.

VOCS                                      here
ContinuousVariable                        Real; Integer if its dtype is one of integers
DiscreteVariable                          Integer (numbers in a row), ordered Categorical (other numbers), Categorical
ContextualVariable                        a context variable
MINIMIZE, MAXIMIZE                        a main outcome; of two or three there is a front
LESS_THAN, GREATER_THAN, BOUNDS           a ``Limit``, which holds in a share of contexts
constants, discrete variables of one value   given out with every point
observables                               kept in ``results``
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from edrbo.acquisition.methods import Method
from edrbo.errors import (
    InvalidContextError,
    InvalidDesignError,
    InvalidSpaceError,
    InvalidValueError,
    MissingExtraError,
)
from edrbo.optimizer.optimizer import Optimizer
from edrbo.records.goals import Goal
from edrbo.records.input_reading import spell_checked
from edrbo.records.outcomes import CONFIDENCE, MOST_MAIN, PROBABILITY, Limit, Maximize, Minimize, OutcomeRange
from edrbo.records.settings import DEFAULT, INITIAL, LEAST_SUCCESS, Drift, NoiseModel, Outliers, Purpose
from edrbo.records.validation import read_number
from edrbo.space import Categorical, Integer, Real, Space, Variable

try:
    from gest_api import Generator
    from gest_api.vocs import (
        VOCS,
        BaseConstraint,
        BaseObjective,
        BaseVariable,
        BoundsConstraint,
        ContextualVariable,
        ContinuousVariable,
        DiscreteVariable,
        GreaterThanConstraint,
        LessThanConstraint,
        MaximizeObjective,
        MinimizeObjective,
    )
except ModuleNotFoundError as problem:
    if str(problem.name).split(".")[0] not in ("gest_api", "pydantic"):
        raise
    raise MissingExtraError("the generator needs gest-api", "pip install 'edrbo[gest]'") from None

__all__ = ["EDRBOGenerator"]

ID = "_id"  # gest-api's name for a point
ROUNDED = 1e-6  # relative: numbers that agree so far went through another program's tables
WHY = "xopt_error_str"  # where Xopt says why an evaluation failed
LONGEST_WHY = 500

Point = dict[str, Any]
NextContext = Mapping[str, Any] | Literal["any", "last"]


class EDRBOGenerator(Generator):
    """A generator for Xopt, libEnsemble and whatever else runs gest-api: the design that is best over contexts.

    >>> from gest_api.vocs import VOCS
    >>> vocs = VOCS(variables={"x": [0, 1], "c": "CONTEXTUAL"}, objectives={"f": "MAXIMIZE"})
    >>> generator = EDRBOGenerator(vocs)
    >>> (point,) = generator.suggest(1)  # x and _id: the world chooses c
    >>> generator.ingest([{**point, "c": 0.3, "f": -((point["x"] - 0.3) ** 2)}])

    A contextual variable is no part of a point that is suggested. It comes back with the results, and its distribution
    is learned from them; ``generator.next_context = {"c": 0.3}`` says what the next points will meet, if that is known.
    Constraints are limits that hold over contexts. A result without a finite value failed. Observables and all else
    that comes back is kept in ``results``. The answer is ``generator.optimizer.recommend()``.

    Args:
        vocs: Variables, objectives, constraints, constants and observables.
        method: How designs are chosen: a name of ``edrbo.method_names()``, or a ``Method``.
        seed: Seed of everything random: the same seed and data give the same points.
        batch_size: How many points ``suggest()`` gives if it is not said.
        next_context: What the next points will meet: "any", a context as they come, of which the distribution is
            learned; "last", one like the last that was seen, as Xopt's own generators take it; or values by name.
        probability: In which share of contexts constraints are to hold.
        confidence: How sure of that a recommendation is.
        context_half_life: A context's weight halves with every so many later ones; None: all count alike.
        initial: Quasi-random designs before the model takes over.
        goal: What best means: a text such as "cvar:0.1", or a ``Goal``.
        aim: "operate" if every run counts, "identify" if only the design in the end does.
        evaluations: How many runs there will be, if that is known; for "identify".
        least_success: Designs that succeed with less probability are not recommended.
        outliers: "robust": single outcomes absurdly far from all others are not learned from; "keep": they are.
        drift: f itself changes: after so many runs what it was counts half; "learned": the data say how fast.
        noise_model: "auto": noise varies over designs and contexts if the data say so; "constant": it does not.
        outcome_range: What the objective can be at all, as (0, 100) or (0, None): answers are held to it.
        context_distribution: The distribution of contexts, if you know it: a text such as "c = norm(55, 12)",
            distributions by name, or samples.
        cost: What a run costs, in what you set: a text such as "1 + 9 * x", or a function of a design.
    """

    returns_id = True

    @spell_checked
    def __init__(
        self,
        vocs: VOCS,
        method: str | Method = DEFAULT,
        *,
        seed: int = 0,
        batch_size: int = 1,
        next_context: NextContext = "any",
        probability: float = PROBABILITY,
        confidence: float = CONFIDENCE,
        context_half_life: float | None = None,
        initial: int = INITIAL,
        goal: Goal | str = "expected",
        aim: Purpose = "operate",
        evaluations: int | None = None,
        least_success: float = LEAST_SUCCESS,
        outliers: Outliers = "robust",
        drift: Drift = None,
        noise_model: NoiseModel = "auto",
        outcome_range: OutcomeRange | str | tuple[float | None, float | None] | None = None,
        context_distribution: Any = None,
        cost: str | Callable[[dict[str, Any]], float] | None = None,
    ) -> None:
        super().__init__(vocs)
        self.vocs = vocs
        self.batch_size = _count(batch_size)
        self.results: list[Point] = []
        self.next_context = next_context
        self._translation = Translation.of(vocs)
        outcomes = _outcomes(vocs, probability, confidence)
        first = next(iter(outcomes))
        self.optimizer = Optimizer(
            self._translation.space,
            method,
            direction=outcomes[first].direction,
            seed=seed,
            context_half_life=context_half_life,
            initial=initial,
            goal=goal,
            aim=aim,
            evaluations=evaluations,
            least_success=least_success,
            outliers=outliers,
            drift=drift,
            noise_model=noise_model,
            outcome=first,
            outcome_range=outcome_range,
            outcomes=None if len(outcomes) == 1 else outcomes,
            context_distribution=context_distribution,
            cost=cost,
        )

    def _validate_vocs(self, vocs: VOCS) -> None:
        Translation.of(vocs)
        _outcomes(vocs, PROBABILITY, CONFIDENCE)

    def suggest(self, num_points: int | None = None) -> list[Point]:
        """The next points, which are aware of each other and of all that have no result yet.

        Args:
            num_points: How many; None: ``batch_size``.
        """
        count = self.batch_size if num_points is None else _count(num_points)
        found = self.optimizer.ask(count, context=self._context_ahead()) if count else []
        return [{**self._translation.point(one.design), ID: one.id} for one in found]

    def ingest(self, results: list[Point]) -> None:
        """Take in results: all of them, or none if one of them cannot be.

        Args:
            results: Points with what was measured. Those that were not suggested here have no ``_id``.
        """
        before = self.optimizer.state
        try:
            for result in results:
                self._tell(result)
        except BaseException:
            self.optimizer.go_on(before)
            raise
        self.results += [dict(result) for result in results]

    def _context_ahead(self) -> Mapping[str, Any] | None:
        """What is known of the context that the next points meet; None: its distribution alone."""
        if isinstance(self.next_context, Mapping):
            return self.next_context
        if self.next_context not in ("any", "last"):
            raise InvalidContextError(
                f"the next context is {self.next_context!r}", 'it is "any", "last", or values by name'
            )
        seen = map(self._translation.context, reversed(self.results)) if self.next_context == "last" else iter(())
        return next((known for known in seen if known), None)

    def _tell(self, result: Mapping[str, Any]) -> None:
        self._translation.check_constants(result)
        design, number = self._translation.design(result), _id_of(result)
        if number is not None and number not in self.optimizer.state.pending:
            hint = "points that were not suggested here have no _id"
            raise InvalidValueError(f"no point with the _id {number} waits for its result", hint)
        names = self.optimizer.settings.outcomes or (self.optimizer.settings.outcome,)
        values = {name: _number(name, result.get(name)) for name in names}
        failed = all(value is None for value in values.values())
        several: Any = values if self.optimizer.settings.outcomes else next(iter(values.values()))
        set_as_asked = number is None or design == self._asked(number)
        self.optimizer.tell(
            design if number is None else number,
            self._translation.context(result) or None,
            None if failed else several,
            failed=failed,
            design=None if set_as_asked else design,
            why=str(result[WHY])[:LONGEST_WHY] if failed and isinstance(result.get(WHY), str) else None,
        )

    def _asked(self, number: int) -> Point:
        state = self.optimizer.state
        return state.space.decode_designs(state.runs[number].x)[0]


@dataclass(frozen=True)
class Translation:
    """Between points of gest-api and designs and contexts."""

    space: Space
    order: tuple[str, ...]  # of the variables, as the VOCS has them
    constants: Mapping[str, Any]
    single: Mapping[str, Any]  # discrete variables of one value

    @classmethod
    def of(cls, vocs: VOCS) -> Translation:
        """InvalidSpaceError, which is a ValueError, for what cannot be searched."""
        contextual = [name for name, given in vocs.variables.items() if isinstance(given, ContextualVariable)]
        constants = {name: constant.value for name, constant in vocs.constants.items()}
        observed = [name for name in vocs.observables if name not in contextual]  # Xopt's examples name a context twice
        _check_names([*vocs.variables, *constants, *vocs.objectives, *vocs.constraints, *observed, ID])
        single = {
            name: next(iter(given.values))
            for name, given in vocs.variables.items()
            if isinstance(given, DiscreteVariable) and len(given.values) == 1
        }
        design = {
            name: _variable(name, given)
            for name, given in vocs.variables.items()
            if name not in contextual and name not in single
        }
        if not design:
            raise InvalidSpaceError("there is nothing to choose", "VOCS must define at least one variable to be set")
        context = {name: _context_variable(vocs.variables[name]) for name in contextual}
        return cls(Space(design, context), tuple(vocs.variables), constants, single)

    def point(self, design: Mapping[str, Any]) -> Point:
        """A design as a point to evaluate; contextual variables are the world's."""
        known = {**design, **self.single}
        return {**{name: known[name] for name in self.order if name in known}, **self.constants}

    def design(self, result: Mapping[str, Any]) -> Point:
        """What was set."""
        missing = [name for name in (*self.space.design, *self.single) if name not in result]
        if missing:
            raise InvalidDesignError(f"the variable {missing[0]!r} is missing", "a result names every variable")
        self._check_single(result)
        return {name: _value(variable, result[name]) for name, variable in self.space.design.items()}

    def context(self, result: Mapping[str, Any]) -> Point:
        """What is known of the context that was met."""
        numbers = {name: _number(name, result.get(name)) for name in self.space.context_names}
        return {name: number for name, number in numbers.items() if number is not None}

    def check_constants(self, result: Mapping[str, Any]) -> None:
        """What was measured under another constant belongs to another problem."""
        for name, value in self.constants.items():
            if name in result and not _same(result[name], value):
                hint = "make it a contextual variable if it varies"
                raise InvalidValueError(f"the constant {name!r} is {value!r}, and a result has {result[name]!r}", hint)

    def _check_single(self, result: Mapping[str, Any]) -> None:
        for name, value in self.single.items():
            if not _same(result[name], value):
                raise InvalidDesignError(f"{name!r} is {result[name]!r}", f"its only value is {value!r}")


def _check_names(names: list[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidSpaceError(f"{twice[0]!r} names two things", "give each a name of its own")


def _variable(name: str, given: BaseVariable) -> Variable:
    try:
        return _kind_of(given)
    except InvalidSpaceError as problem:
        raise InvalidSpaceError(f"the variable {name!r}: {problem.message}", problem.hint) from None


def _kind_of(given: BaseVariable) -> Variable:
    dtype = None if given.dtype is None else np.dtype(given.dtype)
    if dtype is not None and dtype.shape:
        raise InvalidSpaceError("it is an array", "name each of its entries")
    if isinstance(given, ContinuousVariable):
        lower, upper = given.domain
        if dtype is not None and dtype.kind in "iu" and math.isfinite(upper - lower):
            return Integer(math.ceil(lower), math.floor(upper))
        return Real(lower, upper)
    if isinstance(given, DiscreteVariable):
        return _choices(given.values)
    raise InvalidSpaceError(f"it is a {type(given).__name__}", "it is continuous or discrete")


def _choices(values: set[Any]) -> Variable:
    """A set has no order of its own: numbers have theirs, and names that of the alphabet, the same in every process."""
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return Categorical(tuple(sorted(values, key=lambda value: (type(value).__name__, str(value)))))
    numbers = sorted(values)
    if all(isinstance(value, int) for value in numbers) and numbers[-1] - numbers[0] == len(numbers) - 1:
        return Integer(numbers[0], numbers[-1])
    return Categorical(tuple(numbers), ordered=True)


def _context_variable(given: ContextualVariable) -> Real:
    lower, upper = (bound if math.isfinite(bound) else None for bound in given.domain)
    return Real(lower, upper)


def _outcomes(vocs: VOCS, probability: float, confidence: float) -> dict[str, Maximize | Minimize | Limit]:
    """What each is for, the main one first."""
    if not 1 <= len(vocs.objectives) <= MOST_MAIN:
        hint = f"VOCS must define at least one objective, and at most {MOST_MAIN}"
        raise InvalidValueError(f"there are {len(vocs.objectives)} objectives", hint)
    mains = {name: _main(name, given) for name, given in vocs.objectives.items()}
    return {**mains, **{name: _limit(given, probability, confidence) for name, given in vocs.constraints.items()}}


def _main(name: str, given: BaseObjective) -> Maximize | Minimize:
    if isinstance(given, MaximizeObjective):
        return Maximize()
    if isinstance(given, MinimizeObjective):
        return Minimize()
    raise InvalidValueError(f"the objective {name!r} is a {type(given).__name__}", "MINIMIZE or MAXIMIZE it")


def _limit(given: BaseConstraint, probability: float, confidence: float) -> Limit:
    limit = partial(Limit, probability=probability, confidence=confidence)
    if isinstance(given, LessThanConstraint):
        return limit(upper=given.value)
    if isinstance(given, GreaterThanConstraint):
        return limit(lower=given.value)
    if isinstance(given, BoundsConstraint):
        return limit(lower=given.range[0], upper=given.range[1])
    raise InvalidValueError(f"a constraint is a {type(given).__name__}", "LESS_THAN, GREATER_THAN and BOUNDS are known")


def _value(variable: Variable, given: Any) -> Any:
    """As the space has it; other programs keep every column as numbers of one kind."""
    plain = given.item() if isinstance(given, np.generic) else given
    if isinstance(variable, Categorical):
        return next((choice for choice in variable.choices if _same(plain, choice)), plain)
    number = read_number(plain)
    whole = isinstance(variable, Integer) and math.isfinite(number) and _same(number, round(number))
    return round(number) if whole else number


def _same(one: Any, other: Any) -> bool:
    first, second = np.asarray(one), np.asarray(other)
    if first.dtype.kind in "biuf" and second.dtype.kind in "biuf":
        return first.shape == second.shape and bool(np.allclose(first, second, rtol=ROUNDED, atol=0.0, equal_nan=True))
    return bool(np.array_equal(first, second))


def _id_of(result: Mapping[str, Any]) -> int | None:
    """None for a point that came from elsewhere; a table fills its place with NaN."""
    number = _number(ID, result.get(ID))
    if number is None:
        return None
    if number != round(number):
        raise InvalidValueError(f"the _id is {result[ID]!r}", "leave it as it was suggested")
    return round(number)


def _number(name: str, given: Any) -> float | None:
    """None for what is not known; an infinite number says nothing either."""
    number = read_number(given)
    if math.isnan(number) and not (given is None or isinstance(given, float | np.floating)):
        raise InvalidValueError(f"{name!r} is {given!r} in a result", "it is a number, or NaN for what is not known")
    return number if math.isfinite(number) else None


def _count(given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < 0:
        raise InvalidValueError(f"cannot suggest {given!r} points", "ask for a whole number of them")
    return int(given)
