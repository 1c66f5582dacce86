"""ask / tell / recommend: the only stateful class of the core.

Every outcome has an ``OutcomeModel``, by name, the main one first. State changes only at the end of a call that
succeeded, so a raised error leaves the optimizer as it was.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, ParamSpec, Self, TypeVar, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.acquisition.area import Area, Room
from edrbo.acquisition.methods import Method, get_method
from edrbo.acquisition.objective import Objective
from edrbo.acquisition.penalties import Costs, best_per_cost
from edrbo.errors import EdrboError, InvalidDesignError, InvalidValueError, UnknownNameError
from edrbo.optimizer import json_record
from edrbo.optimizer.answer import Prediction
from edrbo.optimizer.belief import Belief
from edrbo.optimizer.choice import Choice, Law, Question, read_choice, read_law, read_question
from edrbo.optimizer.expecting import Expecting
from edrbo.optimizer.exploring import looks_around
from edrbo.optimizer.front import Front, find_front, need_front
from edrbo.optimizer.joint import Joint, Part
from edrbo.optimizer.outcome_model import OutcomeModel
from edrbo.optimizer.posterior import Posterior
from edrbo.optimizer.recommendation import Knowledge, Recommendation, best_design
from edrbo.optimizer.several import need_one_main, recommend_under_limits
from edrbo.optimizer.stored_fit import StoredFit
from edrbo.optimizer.tradeoff import Tradeoff, candidates, trade_off
from edrbo.optimizer.training import Evidence
from edrbo.records.checks import read_number
from edrbo.records.events import Asked, Event
from edrbo.records.goals import CVaR, Expected, Goal
from edrbo.records.named_law import check_law
from edrbo.records.outcome_range import OutcomeRange
from edrbo.records.outcomes import Limit, Maximize, Minimize
from edrbo.records.recorder import Make, Recorder
from edrbo.records.settings import DEFAULT, INITIAL, LEAST_SUCCESS, Outliers, Purpose, Settings
from edrbo.records.state import State
from edrbo.records.suggestion import Suggestion
from edrbo.records.units import Direction
from edrbo.space import Space
from edrbo.streams import stream_seed
from edrbo.surrogate.cost import learn_cost
from edrbo.surrogate.ensemble import Ensemble
from edrbo.threads import engine_threads

Array = NDArray[np.float64]
Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


def _one_at_a_time(method: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
    """A method of ``Optimizer`` that looks at its state or its models: one thread at a time does."""

    @wraps(method)
    def locked(*arguments: Arguments.args, **named: Arguments.kwargs) -> Answer:
        optimizer: Any = arguments[0]
        with optimizer._lock:
            return method(*arguments, **named)

    return locked


class Optimizer(Recorder):
    """Bayesian optimization of f(x, c) under a goal, E_c f(x, c) unless another is given, by ask and tell.

    >>> from edrbo import Optimizer, Space
    >>> optimizer = Optimizer(Space(design={"order": (0, 1)}, context={"demand": (0, 1)}), seed=0)
    >>> suggestion = optimizer.ask()
    >>> optimizer.tell(suggestion, context={"demand": 0.3}, value=1.2)

    Same seed and data, same suggestions. Threads may share one.

    Args:
        space: What is set and what the world sets.
        method: How designs are chosen: a name of ``edrbo.method_names()``, or a ``Method``.
        direction: "maximize" or "minimize".
        seed: Seed of everything random: the same seed and data give the same suggestions.
        forgetting: A context's weight halves with every so many later ones; None: all count alike.
        initial: Quasi-random designs before the model takes over.
        goal: What best means: a text such as "cvar:0.1", or a ``Goal``.
        aim: "operate" if every run counts, "identify" if only the design in the end does.
        evaluations: How many runs there will be, if that is known; for "identify".
        least_success: Designs that succeed with less probability are not recommended.
        outliers: "robust": single outcomes absurdly far from all others are not learned from; "keep": they are.
        outcome: What is measured, as "gloss".
        unit: The unit of what is measured.
        title: A name for people.
        outcome_range: What the outcome can be at all, as (0, 100) or (0, None): answers are held to it.
        outcomes: What each of several outcomes is for: ``Maximize``, ``Minimize`` or ``Limit`` by name.
        law: The law of contexts, if you know it: a text such as "humidity = norm(55, 12)", laws by name, or samples.
        cost: What a run costs, in what you set: a text such as "1 + 9 * x", or a function of a design.
    """

    def __init__(
        self,
        space: Space,
        method: str | Method = DEFAULT,
        *,
        direction: Direction = "maximize",
        seed: int = 0,
        forgetting: float | None = None,
        initial: int = INITIAL,
        goal: Goal | str = "expected",
        aim: Purpose = "operate",
        evaluations: int | None = None,
        least_success: float = LEAST_SUCCESS,
        outliers: Outliers = "robust",
        outcome: str = "value",
        unit: str = "",
        title: str = "",
        outcome_range: OutcomeRange | str | tuple[float | None, float | None] | None = None,
        outcomes: Mapping[str, Maximize | Minimize | Limit] | None = None,
        law: Any = None,
        cost: str | Callable[[dict[str, Any]], float] | None = None,
    ) -> None:
        choices = {
            "direction": direction,
            "seed": seed,
            "forgetting": forgetting,
            "initial": initial,
            "goal": goal,
            "aim": aim,
            "evaluations": evaluations,
            "least_success": least_success,
            "outliers": outliers,
            "outcome": outcome,
            "unit": unit,
            "title": title,
            "outcome_range": outcome_range,
            "outcomes": outcomes,
            "law": law,
            "cost": cost,
        }
        settings = Settings.of(space, method, choices)
        self._begin(State.start(settings), None)

    def _begin(self, state: State, stored: StoredFit | None) -> None:
        self._lock = threading.RLock()
        self._method = get_method(state.settings.method)
        _check_limits(self._method, state)
        check_law(state.settings.law, state.space)
        self._state = state
        self._models = {state.settings.outcome: OutcomeModel(state, self._method, stored)}
        # fits of the outcomes besides the main one, as far as they were made elsewhere
        self._stored_others: Mapping[str, StoredFit] = {} if stored is None else stored.others

    @classmethod
    def of(cls, state: State, stored: StoredFit | None = None) -> Self:
        """One that goes on from a state.

        Args:
            state: Everything that has happened.
            stored: A fit made on a beginning of its data.
        """
        optimizer = cls.__new__(cls)
        optimizer._begin(state, stored)
        return optimizer

    # ---------------------------------------------------------------- what is known

    @property
    def state(self) -> State:
        return self._state

    @property
    def settings(self) -> Settings:
        return self._state.settings

    @property
    def direction(self) -> Direction:
        return self.settings.direction

    @property
    def method(self) -> Method:
        """How designs are chosen."""
        return self._method

    @_one_at_a_time
    def _record(self, make: Make) -> Event:
        return self.apply(make(self._state))

    @_one_at_a_time
    def apply(self, event: Event) -> Event:
        """Take in an event from elsewhere; gives it with the name it has here.

        Args:
            event: What happened.
        """
        named = event if event.ref else replace(event, ref=self._state.free_ref)
        self.go_on(self._state.apply(named))
        return named

    @_one_at_a_time
    def go_on(self, state: State) -> None:
        """Go on from another state. A model of earlier data is kept and used where these data begin with its own.

        Args:
            state: Everything that has happened.
        """
        if state.settings != self._state.settings:
            method = get_method(state.settings.method)
            _check_limits(method, state)
            self._models[state.settings.outcome] = self._models.pop(self.settings.outcome)
            self._method = method
        self._state = state
        self._main.go_on(state, self._method)

    @_one_at_a_time
    def offer(self, stored: StoredFit | None) -> None:
        """A fit made elsewhere; it is used if it is of these data and further on than our own.

        Args:
            stored: The fit; None changes nothing.
        """
        self._main.offer(stored)
        if stored is not None and stored.others:
            self._stored_others = stored.others
            for name, model in self._others.items():
                model.offer(stored.others.get(name))

    @property
    @_one_at_a_time
    def fit(self) -> StoredFit | None:
        """The last fit, as ``of`` takes it; None before the first."""
        main, own = self._main.fit, {name: model.fit for name, model in self._others.items()}
        others = {**self._stored_others, **{name: fit for name, fit in own.items() if fit is not None}}
        return main if main is None or not others else replace(main, others=others)

    @property
    @_one_at_a_time
    @engine_threads()
    def model(self) -> Ensemble | None:
        """The surrogate of the observations it is fitted to, None without any. It maximizes, whatever the direction."""
        return self._main.surrogate(self._main.data())

    # ---------------------------------------------------------------- models

    @property
    def _main(self) -> OutcomeModel:
        return self._models[self.settings.outcome]

    @property
    def _others(self) -> dict[str, OutcomeModel]:
        """The models of the other outcomes, as far as there are any yet."""
        return {name: model for name, model in self._models.items() if name != self.settings.outcome}

    def _outcome_models(self) -> dict[str, OutcomeModel]:
        """A model of every outcome that was told, the main one first, up to date."""
        outcomes = self.settings.outcomes
        for name in [] if outcomes is None else outcomes.others:
            state = self._state.of_outcome(name)
            if name in self._models:
                self._models[name].go_on(state, self._method)
            elif state.told:
                self._models[name] = OutcomeModel(state, self._method)
                self._models[name].offer(self._stored_others.get(name))
        named = [self.settings.outcome, *(() if outcomes is None else outcomes.others)]
        known = {name: self._models[name] for name in named if name in self._models}
        return {name: model for name, model in known.items() if model is self._main or model.state.told}

    def _model_of(self, name: str | None) -> OutcomeModel:
        """Of one of several outcomes, by default of the main one."""
        outcomes = self.settings.outcomes
        if name is None or name == self.settings.outcome:
            return self._main
        if outcomes is None:
            raise UnknownNameError(f"{name!r} is not an outcome", f"this study has one: {self.settings.outcome}")
        if outcomes.known(name) not in (models := self._outcome_models()):
            raise EdrboError(f"{name!r} was never told, so nothing is known of it", "tell at least one value of it")
        return models[name]

    def _known_outcomes(self, goal: Goal | str | None, law: Law, seed: int) -> dict[str, Knowledge]:
        """What is known of every outcome, the main one first and under ``goal``."""
        assert self.settings.outcomes is not None
        others = {name: self._model_of(name) for name in self.settings.outcomes.others}
        known = {self.settings.outcome: self._main.knowledge(law, seed, goal)}
        return known | {name: model.knowledge(law, seed) for name, model in others.items()}

    def _posterior(self, data: Evidence, law: Law, pending: list[Array]) -> Posterior:
        """What is believed when a design is asked for, of one outcome or of all; ``data`` are the main one's."""
        main = self._main.posterior(data, law, pending=pending, asking=True)
        if (outcomes := self.settings.outcomes) is None:
            return main
        parts = [Part(outcomes.main, outcomes[outcomes.main], main, self._main.known_law(data, law))]
        for name, model in self._outcome_models().items():
            if model is self._main:
                continue
            own = model.data()
            posterior = model.posterior(own, law, pending=pending, asking=True)
            parts.append(Part(name, outcomes[name], posterior, model.known_law(own, law)))
        tried = np.unique(np.vstack([data.observations.x, *(x[None] for x in pending)]), axis=0)
        return Joint(tuple(parts), tried=torch.from_numpy(tried))

    def _costs(self) -> Costs | None:
        """What runs cost: as the user's function says, or learned from what was told; None if nothing is known."""
        if self.settings.cost is not None:
            return self.settings.cost
        runs = [run for run in self._state.runs.values() if run.cost is not None]
        return learn_cost(np.array([run.x for run in runs]), np.array([run.cost for run in runs])) if runs else None

    # ---------------------------------------------------------------- ask

    @overload
    def ask(
        self,
        n: None = None,
        *,
        forecast: Any = None,
        context: Any = None,
        fixed: Mapping[str, Any] | None = None,
        candidates: Any = None,
        repeat: bool | None = None,
    ) -> Suggestion: ...
    @overload
    def ask(
        self,
        n: int,
        *,
        forecast: Any = None,
        context: Any = None,
        fixed: Mapping[str, Any] | None = None,
        candidates: Any = None,
        repeat: bool | None = None,
    ) -> list[Suggestion]: ...
    @_one_at_a_time
    @engine_threads()
    def ask(
        self,
        n: int | None = None,
        *,
        forecast: Any = None,
        context: Any = None,
        fixed: Mapping[str, Any] | None = None,
        candidates: Any = None,
        repeat: bool | None = None,
    ) -> Suggestion | list[Suggestion]:
        """The next design, or a list of ``n`` that are aware of each other and of everything pending.

        Args:
            n: How many; None: one, which is not in a list.
            forecast: Samples of the contexts to expect, in place of the law that is estimated.
            context: The context that will be met, or some of it.
            fixed: Variables that are held, values by name.
            candidates: The only designs to choose from: dicts, rows or a data frame.
            repeat: Whether a candidate may be suggested that was told already; by default as it makes sense: not
                without contexts, or where the same one is met again.
        """
        count = 1 if n is None else n
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
            raise InvalidValueError(f"cannot ask for {n!r} suggestions", "ask for one or more")
        question = read_question(
            self._state, forecast=forecast, context=context, fixed=fixed, candidates=candidates, repeat=repeat
        )
        costs = self._costs()
        found = self._designs(int(count), question, costs)
        first, version = self._state.next_id, self._state.version
        paid = [None if costs is None else float(costs.of(x[None])[0]) for x, _ in found]
        for i, (x, expects) in enumerate(found):
            self.apply(Asked(id=first + i, x=x, expects=expects, cost=paid[i], version=version))
        names = self.space.decode_designs(np.stack([x for x, _ in found]))
        suggestions = [Suggestion(first + i, design, found[i][1], paid[i]) for i, design in enumerate(names)]
        return suggestions[0] if n is None else suggestions

    def _designs(
        self, count: int, question: Question, costs: Costs | None
    ) -> list[tuple[Array, Mapping[str, Any] | None]]:
        """``count`` designs (d_x each) that know of each other, with what is expected of each that a model chose."""
        designs: list[Array] = []
        expects: list[Mapping[str, Any] | None] = []
        posterior: Posterior | None = None
        asked, data = self._state.suggested, self._main.data()
        for i in range(count):
            choice = question.choice.without([*question.taken(self._state), *designs])
            if self._wants_initial(len(designs)):
                designs.append(choice.initial(asked + i, stream_seed(self.settings.seed, "initial design")))
                expects.append(None)
                continue
            if posterior is None:
                pending = [*self._state.pending.values(), *designs]
                posterior = self._posterior(data, question.law, pending)
                known = self._main.surrogate(data) or posterior.model
                expecting = Expecting.by(known, posterior.points, data, question.law[0])
            under_way = len(self._state.pending) + len(designs)
            if self._looks_around(posterior, data, under_way):
                x = self._roomiest(choice, designs, asked + i)
            else:
                asked_by = posterior.for_suggestion(len(self) + under_way)
                x = self._best(asked_by, choice, data.starts(), asked + i, costs)
            designs.append(x)
            expects.append(expecting.of(x))
            if i + 1 < count:
                posterior = posterior.with_pending(torch.from_numpy(x)[None])
        return list(zip(designs, expects, strict=True))

    def _wants_initial(self, more: int) -> bool:
        """A failed design is replaced, as it says nothing about f; but not more of them than were wanted at first."""
        replaced = min(len(self._state.failed), self.settings.initial)
        known = len(self) + len(self._state.failed) - replaced + len(self._state.pending) + more
        return len(self) == 0 or known < self.settings.initial

    def _looks_around(self, posterior: Posterior, data: Evidence, pending: int) -> bool:
        if self.settings.aim != "identify" or not len(data.observations.x):
            return False
        worth = posterior.values(torch.tensor(data.observations.x)).numpy()
        return looks_around(worth, self.settings.initial, pending, self.settings.evaluations)

    def _roomiest(self, choice: Choice, asked: Sequence[Array], index: int) -> Array:
        """The design (d_x) with most room around it, among all that were tried or ``asked`` for."""
        runs = [run.x for run in self._state.runs.values()]
        room = Room(torch.from_numpy(np.stack([*runs, *asked])), Area(self.space).free)
        seed = stream_seed(self.settings.seed, "maximize", index)
        starts = torch.zeros(0, self.space.d_x, dtype=torch.float64)
        return choice.settled(choice.best([room], seed=seed, starts=starts, kinks=True)).numpy()

    def _best(self, posterior: Posterior, choice: Choice, starts: Tensor, index: int, costs: Costs | None) -> Array:
        seed = stream_seed(self.settings.seed, "maximize", index)
        acquisition = posterior.acquisition()
        ladder = posterior.apart(posterior.feasible(acquisition.ladder()))

        def search(some: Sequence[Objective]) -> Tensor:
            return choice.settled(choice.best(some, seed=seed, starts=starts, kinks=acquisition.has_kinks))

        if costs is None:
            return search(ladder).numpy()
        return best_per_cost(ladder, costs, posterior.level(choice.starts(starts)), search).numpy()

    # ---------------------------------------------------------------- recommend

    @_one_at_a_time
    @engine_threads()
    def recommend(
        self,
        *,
        goal: Goal | str | None = None,
        ball: float = 0.1,
        forecast: Any = None,
        context: Any = None,
        fixed: Mapping[str, Any] | None = None,
        candidates: Any = None,
    ) -> Recommendation:
        """The design that is best under the goal. What else is to be said of it is computed when it is read.

        Args:
            goal: Another goal than the optimizer's own, for the same data.
            ball: How far the law of contexts may move, for the worst case: a fraction of the context range.
            forecast: Samples of the contexts to expect, in place of the law that is estimated.
            context: The context that will be met, or some of it.
            fixed: Variables that are held, values by name.
            candidates: The only designs to choose from: dicts, rows or a data frame.
        """
        if not 0 <= (radius := read_number(ball)) < math.inf:
            raise InvalidValueError(f"ball is {ball!r}", "it is a distance, as a fraction of the context range")
        ball = radius
        question, seed = self._answering(forecast, context, fixed, candidates)
        if (outcomes := self.settings.outcomes) is not None:
            need_one_main(outcomes)
            return recommend_under_limits(self._known_outcomes(goal, question.law, seed), question.choice, ball)
        known = self._main.knowledge(question.law, seed, goal)
        best = self._best_designs(known, question)
        return Recommendation(known, *best, ball=ball, admit=question.choice.admit)

    def _answering(
        self, forecast: Any, context: Any, fixed: Mapping[str, Any] | None, candidates: Any
    ) -> tuple[Question, int]:
        if len(self) == 0:
            raise EdrboError("nothing was told yet, so nothing can be recommended", "tell at least one value")
        question = read_question(self._state, forecast=forecast, context=context, fixed=fixed, candidates=candidates)
        return question, stream_seed(self.settings.seed, "recommend", len(self))

    @_one_at_a_time
    @engine_threads()
    def front(
        self,
        *,
        reference: Mapping[str, float] | None = None,
        forecast: Any = None,
        context: Any = None,
        fixed: Mapping[str, Any] | None = None,
        candidates: Any = None,
    ) -> Front:
        """Designs of which none is better than another in all main outcomes, each under its goal and with its limits
        kept; and the hypervolume that they dominate.

        Args:
            reference: Values by main outcome down to which the hypervolume counts; by default just behind the front.
            forecast: Samples of the contexts to expect, in place of the law that is estimated.
            context: The context that will be met, or some of it.
            fixed: Variables that are held, values by name.
            candidates: The only designs to choose from: dicts, rows or a data frame.
        """
        outcomes = need_front(self.settings.outcomes)
        if len(self) == 0:
            raise EdrboError("nothing was told yet, so there is no front", "tell at least one value of each outcome")
        question, seed = self._answering(forecast, context, fixed, candidates)
        return find_front(self._known_outcomes(None, question.law, seed), outcomes, question.choice, reference)

    @_one_at_a_time
    @engine_threads()
    def predict(
        self,
        designs: Any,
        *,
        goal: Goal | str | None = None,
        forecast: Any = None,
        context: Any = None,
        outcome: str | None = None,
    ) -> Prediction:
        """What is believed of the mean and the goal's value of designs.

        Args:
            designs: A dict, dicts, rows or a data frame.
            goal: Another goal than the optimizer's own, for the same data.
            forecast: Samples of the contexts to expect, in place of the law that is estimated.
            context: The context that will be met, or some of it.
            outcome: One of several, the main one by default; the value of a limit is the share of contexts in which it
                holds.
        """
        x = torch.from_numpy(self.space.encode_designs(designs))
        if not len(x):
            raise InvalidDesignError("no design was given", "give at least one")
        if len(self) == 0:
            raise EdrboError("nothing was told yet, so nothing can be predicted", "tell at least one value")
        seed = stream_seed(self.settings.seed, "recommend", len(self))
        return self._model_of(outcome).knowledge(read_law(self._state, forecast, context), seed, goal).predict(x)

    @_one_at_a_time
    @engine_threads()
    def tradeoff(self, goal: Goal | str | None = None, *, forecast: Any = None) -> Tradeoff:
        """Designs between the best on average and the best under a goal.

        Args:
            goal: The goal, by default the optimizer's own, or the mean of the worst 10 % of contexts.
            forecast: Samples of the contexts to expect, in place of the law that is estimated.
        """
        if len(self) == 0:
            raise EdrboError("nothing was told yet, so nothing can be traded off", "tell at least one value")
        if self.settings.outcomes is not None:
            hint = "front() is for several main outcomes; predict(outcome=…) looks at each"
            raise EdrboError("a trade-off of goals is one of a single outcome", hint)
        data, law = self._main.data(), read_law(self._state, forecast, None)
        model_goal = self._main.goal(data, goal)
        if model_goal.goal == Expected():
            model_goal = replace(model_goal, goal=CVaR(0.1))
        seed = stream_seed(self.settings.seed, "recommend", len(self))
        model_goals = (replace(model_goal, goal=Expected()), model_goal)
        beliefs = [self._main.posterior(data, law, each, pending=[], asking=False) for each in model_goals]
        best = [self._best_answer(belief, data, read_choice(self.space), seed) for belief in beliefs]
        x = candidates(self.space, self.observations.x, best, seed)
        return trade_off(
            beliefs, x, self.settings, lambda some: self.predict(some, goal=model_goal.goal, forecast=forecast)
        )

    def _best_designs(self, known: Knowledge, question: Question) -> tuple[Tensor, Tensor]:
        """The best design (d_x) under the goal and the one for the mean."""
        x = self._best_answer(known.belief, known.evidence, question.choice, known.seed)
        if known.model_goal.goal == Expected():
            return x, x
        on_average = replace(known.model_goal, goal=Expected())
        mean = self._main.posterior(known.evidence, question.law, on_average, pending=[], asking=False)
        average = self._best_answer(mean, known.evidence, question.choice, known.seed)
        return known.better(x, average), average

    def _best_answer(self, belief: Belief, evidence: Evidence, choice: Choice, seed: int) -> Tensor:
        found = best_design(belief, choice, evidence.starts(), seed, self.settings.least_success)
        return choice.settled(found)

    # ---------------------------------------------------------------- JSON

    @_one_at_a_time
    def to_json(self) -> str:
        """Everything as text; ``from_json`` gives an optimizer that goes on exactly as this one would."""
        return json_record.write(self._state, self.fit)

    @classmethod
    def from_json(cls, text: str) -> Optimizer:
        """The inverse of ``to_json``; InvalidValueError for anything else.

        Args:
            text: What ``to_json`` gave.
        """
        return cls.of(*json_record.read(text))


def _check_limits(method: Method, state: State) -> None:
    outcomes = state.settings.outcomes
    if outcomes is not None and outcomes.limits and not method.score.uses_context and state.space.d_c:
        raise InvalidValueError(
            "this method takes contexts for noise, and a limit is to hold in a share of them",
            "choose a method that models contexts, as edrbo does",
        )
