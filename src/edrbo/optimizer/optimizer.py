"""ask / tell / recommend: the only stateful class of the core.

Every outcome has an ``OutcomeModel``, by name, the main one first. State changes only at the end of a call that
succeeded, so a raised error leaves the optimizer as it was.
"""

from __future__ import annotations

import itertools
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

from edrbo.acquisition.methods import Method, get_method
from edrbo.acquisition.objective import Objective
from edrbo.acquisition.penalties import Costs, best_per_cost
from edrbo.acquisition.search.maximizer import MaximinDistance, SearchRegion
from edrbo.errors import (
    EdrboError,
    InvalidDesignError,
    InvalidValueError,
    NothingReportedError,
    SeveralOutcomesError,
    UnknownNameError,
)
from edrbo.optimizer import json_record
from edrbo.optimizer.answers import Prediction
from edrbo.optimizer.candidates import (
    AskRequest,
    CandidateSet,
    ForecastOrContext,
    is_exploring,
    looked_at,
    read_candidates,
    read_distribution,
    read_request,
)
from edrbo.optimizer.constrained import need_one_main, recommend_under_limits
from edrbo.optimizer.joint_posterior import JointPosterior, OutcomePart
from edrbo.optimizer.outcome_model import OutcomeForecaster, OutcomeModel, StoredFit
from edrbo.optimizer.outcome_posterior import OutcomePosterior, Posterior
from edrbo.optimizer.pareto import ParetoFront, find_pareto_front, need_pareto_front
from edrbo.optimizer.policy import Policy, find_policy
from edrbo.optimizer.recommendation import Recommendation, Recommender, best_design
from edrbo.optimizer.sensitivity import Sensitivity, find_sensitivity
from edrbo.optimizer.tolerance import contexts_alone
from edrbo.optimizer.tradeoff import Tradeoff, candidates, trade_off
from edrbo.optimizer.training_data import TrainingData
from edrbo.records.events import Asked, Event
from edrbo.records.goals import CVaR, Expected, Goal
from edrbo.records.input_reading import need_contexts, read_one_context, spell_checked
from edrbo.records.outcomes import Direction, Limit, Maximize, Minimize, OutcomeRange
from edrbo.records.recorder import Make, Recorder
from edrbo.records.run import Suggestion
from edrbo.records.scipy_distributions import check_distribution
from edrbo.records.settings import DEFAULT, INITIAL, LEAST_SUCCESS, Drift, NoiseModel, Outliers, Purpose, Settings
from edrbo.records.state import State
from edrbo.records.validation import read_number
from edrbo.space import Space
from edrbo.streams import stream_seed
from edrbo.surrogate.cost_model import learn_cost
from edrbo.surrogate.ensemble import ExpertEnsemble
from edrbo.threads import engine_threads

CHECKS = 2  # quasi-random designs after the first run, where earlier studies are learned from
Array = NDArray[np.float64]
Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")


def _one_at_a_time(method: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
    """A method of ``Optimizer`` that looks at its state or its models: one thread at a time does."""

    @wraps(method)
    def locked(*arguments: Arguments.args, **named: Arguments.kwargs) -> Returned:
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
        context_half_life: A context's weight halves with every so many later ones; None: all count alike.
        initial: Quasi-random designs before the model takes over.
        goal: What best means: a text such as "cvar:0.1", or a ``Goal``.
        aim: "operate" if every run counts, "identify" if only the design in the end does.
        evaluations: How many runs there will be, if that is known; for "identify".
        least_success: Designs that succeed with less probability are not recommended.
        outliers: "robust": single outcomes absurdly far from all others are not learned from; "keep": they are.
        drift: f itself changes: after so many runs what it was counts half; "learned": the data say how fast.
        noise_model: "auto": noise varies over designs and contexts if the data say so; "constant": it does not.
        outcome: What is measured, as "gloss".
        unit: The unit of what is measured.
        title: A name for people.
        outcome_range: What the outcome can be at all, as (0, 100) or (0, None): answers are held to it.
        outcomes: What each of several outcomes is for: ``Maximize``, ``Minimize`` or ``Limit`` by name.
        context_distribution: The distribution of contexts, if you know it: a text such as "humidity = norm(55, 12)",
            distributions by name, or samples.
        cost: What a run costs, in what you set: a text such as "1 + 9 * x", or a function of a design.
        earlier: Studies of related machines, campaigns or a simulator to learn from: files, studies or
            ``EarlierStudy``; each counts as much as it is like this one.
    """

    @spell_checked
    def __init__(
        self,
        space: Space,
        method: str | Method = DEFAULT,
        *,
        direction: Direction = "maximize",
        seed: int = 0,
        context_half_life: float | None = None,
        initial: int = INITIAL,
        goal: Goal | str = "expected",
        aim: Purpose = "operate",
        evaluations: int | None = None,
        least_success: float = LEAST_SUCCESS,
        outliers: Outliers = "robust",
        drift: Drift = None,
        noise_model: NoiseModel = "auto",
        outcome: str = "value",
        unit: str = "",
        title: str = "",
        outcome_range: OutcomeRange | str | tuple[float | None, float | None] | None = None,
        outcomes: Mapping[str, Maximize | Minimize | Limit] | None = None,
        context_distribution: Any = None,
        cost: str | Callable[[dict[str, Any]], float] | None = None,
        earlier: Any = None,
    ) -> None:
        self._begin(State.start(Settings.of_call(locals())), None)

    def _begin(self, state: State, stored: StoredFit | None) -> None:
        self._lock = threading.RLock()
        self._method = get_method(state.settings.method)
        _check_limits(self._method, state)
        _check_earlier(self._method, state)
        check_distribution(state.settings.context_distribution, state.space)
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

    def __repr__(self) -> str:
        met = ", ".join(self.space.context_names) or "no contexts"
        return f"Optimizer({', '.join(self.space.design_names)} given {met}, {len(self)} observations)"

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
    def record_all(self, make: Callable[[State], Sequence[Event]]) -> Sequence[Event]:
        """Record the events that ``make`` gives for the present state, all of them or none.

        Args:
            make: From the state to the events that follow it, in order.
        """
        events = list(make(self._state))
        count = len(self._state.history)
        refs = (ref for k in itertools.count() if (ref := str(count + k)) not in self._state.refs)
        named = [event if event.ref else replace(event, ref=next(refs)) for event in events]
        self.go_on(self._state.apply(*named))
        return named

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
            _check_earlier(method, state)
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
    def model(self) -> ExpertEnsemble | None:
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
        """A model of every outcome that was reported, the main one first, up to date."""
        outcomes = self.settings.outcomes
        for name in [] if outcomes is None else outcomes.others:
            state = self._state.of_outcome(name)
            if name in self._models:
                self._models[name].go_on(state, self._method)
            elif state.reported:
                self._models[name] = OutcomeModel(state, self._method, alone=False)
                self._models[name].offer(self._stored_others.get(name))
        named = [self.settings.outcome, *(() if outcomes is None else outcomes.others)]
        known = {name: self._models[name] for name in named if name in self._models}
        return {name: model for name, model in known.items() if model is self._main or model.state.reported}

    def _model_of(self, name: str | None) -> OutcomeModel:
        """Of one of several outcomes, by default of the main one."""
        outcomes = self.settings.outcomes
        if name is None or name == self.settings.outcome:
            return self._main
        if outcomes is None:
            raise UnknownNameError(f"{name!r} is not an outcome", f"this study has one: {self.settings.outcome}")
        if outcomes.known(name) not in (models := self._outcome_models()):
            raise EdrboError(f"{name!r} was never reported, so nothing is known of it", "tell at least one value of it")
        return models[name]

    def _known_outcomes(
        self, goal: Goal | str | None, context_distribution: ForecastOrContext, seed: int
    ) -> dict[str, Recommender]:
        """What is known of every outcome, the main one first and under ``goal``."""
        assert self.settings.outcomes is not None
        others = {name: self._model_of(name) for name in self.settings.outcomes.others}
        known = {self.settings.outcome: self._main.knowledge(context_distribution, seed, goal)}
        return known | {name: model.knowledge(context_distribution, seed) for name, model in others.items()}

    def _posterior(
        self, data: TrainingData, context_distribution: ForecastOrContext, pending: list[Array]
    ) -> Posterior:
        """What is believed when a design is asked for, of one outcome or of all; ``data`` are the main one's."""
        main = self._main.posterior(data, context_distribution, pending=pending, asking=True)
        if (outcomes := self.settings.outcomes) is None:
            return main
        parts = [
            OutcomePart(
                outcomes.main, outcomes[outcomes.main], main, self._main.known_distribution(data, context_distribution)
            )
        ]
        for name, model in self._outcome_models().items():
            if model is self._main:
                continue
            own = model.data()
            posterior = model.posterior(own, context_distribution, pending=pending, asking=True)
            parts.append(
                OutcomePart(name, outcomes[name], posterior, model.known_distribution(own, context_distribution))
            )
        tried = np.unique(np.vstack([data.observations.x, *(x[None] for x in pending)]), axis=0)
        return JointPosterior(tuple(parts), tried=torch.from_numpy(tried))

    def _costs(self) -> Costs | None:
        """What runs cost: as the user's function says, or learned from what was reported; None if nothing is known."""
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
            forecast: Samples of the contexts to expect, in place of the distribution that is estimated.
            context: The context that will be met, or some of it.
            fixed: Variables that are held, values by name.
            candidates: The only designs to choose from: dicts, rows or a data frame.
            repeat: Whether a candidate may be suggested that was reported already; by default as it makes sense: not
                without contexts, or where the same one is met again.
        """
        count = 1 if n is None else n
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
            raise InvalidValueError(f"cannot ask for {n!r} suggestions", "ask for one or more")
        request = read_request(
            self._state, forecast=forecast, context=context, fixed=fixed, candidates=candidates, repeat=repeat
        )
        costs = self._costs()
        found = self._designs(int(count), request, costs)
        first, version = self._state.next_id, self._state.version
        known = None if context is None else read_one_context(self.space, context, partial=True)
        paid = [None if costs is None else float(costs.of(x[None])[0]) for x, _ in found]
        for i, (x, outcome_forecast) in enumerate(found):
            more: dict[str, Any] = {"outcome_forecast": outcome_forecast, "cost": paid[i], "context": known}
            self.apply(Asked(id=first + i, x=x, version=version, **more))
        names = self.space.decode_designs(np.stack([x for x, _ in found]))
        suggestions = [Suggestion(first + i, design, found[i][1], paid[i]) for i, design in enumerate(names)]
        return suggestions[0] if n is None else suggestions

    def _designs(
        self, count: int, request: AskRequest, costs: Costs | None
    ) -> list[tuple[Array, Mapping[str, Any] | None]]:
        """``count`` designs (d_x each) that know of each other, with what is expected of each that a model chose."""
        designs: list[Array] = []
        outcome_forecast: list[Mapping[str, Any] | None] = []
        posterior: Posterior | None = None
        asked, data = self._state.suggested, self._main.data()
        request = request.of(data)
        for i in range(count):
            candidates = request.candidates.without([*request.taken(self._state), *designs])
            if self._wants_initial(len(designs)):
                designs.append(candidates.initial(asked + i, stream_seed(self.settings.seed, "initial design")))
                outcome_forecast.append(None)
                continue
            if posterior is None:
                pending = [*self._state.pending.values(), *designs]
                posterior = self._posterior(data, request.context_distribution, pending)
                known = self._main.forecasting(data) or posterior.model
                points = contexts_alone(self.space, posterior.model, posterior.points)
                forecaster = OutcomeForecaster.by(known, points, data, request.context_distribution[0])
            under_way = len(self._state.pending) + len(designs)
            if self._is_exploring(posterior, data, under_way):
                x = self._most_distant(candidates, designs, asked + i)
            else:
                asked_by = posterior.for_suggestion(len(self) + under_way)
                x = self._best(asked_by, candidates, data.starts(), asked + i, costs)
            designs.append(x)
            outcome_forecast.append(forecaster.of(x))
            if i + 1 < count:
                posterior = posterior.with_pending(torch.from_numpy(x)[None])
        return list(zip(designs, outcome_forecast, strict=True))

    def _wants_initial(self, more: int) -> bool:
        """A failed design is replaced, as it says nothing about f; but not more of them than were wanted at first."""
        replaced = min(len(self._state.failed), self.settings.initial)
        known = len(self) + len(self._state.failed) - replaced + len(self._state.pending) + more
        if self.settings.earlier is not None:  # they choose the first design; the next ones tell whether they are alike
            return 1 <= known < min(1 + CHECKS, self.settings.initial)
        return len(self) == 0 or known < self.settings.initial

    def _is_exploring(self, posterior: Posterior, data: TrainingData, pending: int) -> bool:
        if self.settings.aim != "identify" or not len(data.observations.x):
            return False
        initial, count = self.settings.initial, len(data.observations.x)
        rows, places = looked_at(count, initial)
        worth = posterior.values(torch.tensor(data.observations.x[rows])).numpy()[places]
        return is_exploring(worth, initial, pending, self.settings.evaluations)

    def _most_distant(self, candidates: CandidateSet, asked: Sequence[Array], index: int) -> Array:
        """The design (d_x) farthest from all that were tried or ``asked`` for."""
        runs = [run.x for run in self._state.runs.values()]
        distance = MaximinDistance(torch.from_numpy(np.stack([*runs, *asked])), SearchRegion(self.space).free)
        seed = stream_seed(self.settings.seed, "maximize", index)
        starts = torch.zeros(0, self.space.d_x, dtype=torch.float64)
        return candidates.settled(candidates.best([distance], seed=seed, starts=starts, kinks=True)).numpy()

    def _best(
        self, posterior: Posterior, candidates: CandidateSet, starts: Tensor, index: int, costs: Costs | None
    ) -> Array:
        seed = stream_seed(self.settings.seed, "maximize", index)
        acquisition = posterior.acquisition()
        approximations = posterior.penalize_pending(posterior.feasible(acquisition.approximations()))

        def search(some: Sequence[Objective]) -> Tensor:
            return candidates.settled(candidates.best(some, seed=seed, starts=starts, kinks=acquisition.has_kinks))

        if costs is None:
            return search(approximations).numpy()
        return best_per_cost(approximations, costs, posterior.level(candidates.starts(starts)), search).numpy()

    # ---------------------------------------------------------------- recommend

    @_one_at_a_time
    @engine_threads()
    def recommend(
        self,
        *,
        goal: Goal | str | None = None,
        radius: float = 0.1,
        forecast: Any = None,
        context: Any = None,
        fixed: Mapping[str, Any] | None = None,
        candidates: Any = None,
    ) -> Recommendation:
        """The design that is best under the goal. What else is to be said of it is computed when it is read.

        Args:
            goal: Another goal than the optimizer's own, for the same data.
            radius: How far the distribution of contexts may move, for the worst case: a fraction of the context range.
            forecast: Samples of the contexts to expect, in place of the distribution that is estimated.
            context: The context that will be met, or some of it.
            fixed: Variables that are held, values by name.
            candidates: The only designs to choose from: dicts, rows or a data frame.
        """
        if not 0 <= (radius := read_number(radius)) < math.inf:
            raise InvalidValueError(f"radius is {radius!r}", "it is a distance, as a fraction of the context range")
        request, seed = self._answering(forecast, context, fixed, candidates)
        if (outcomes := self.settings.outcomes) is not None:
            need_one_main(outcomes)
            return recommend_under_limits(
                self._known_outcomes(goal, request.context_distribution, seed), request.candidates, radius
            )
        known = self._main.knowledge(request.context_distribution, seed, goal)
        best = self._best_designs(known, request)
        return Recommendation(known, *best, radius=radius, admit=request.candidates.admit)

    def _need_reports(self, so: str, hint: str = "tell at least one value") -> None:
        if len(self) == 0:
            raise NothingReportedError(f"nothing was reported yet, so {so}", hint)

    def _answering(
        self, forecast: Any, context: Any, fixed: Mapping[str, Any] | None, candidates: Any
    ) -> tuple[AskRequest, int]:
        self._need_reports("nothing can be recommended")
        request = read_request(self._state, forecast=forecast, context=context, fixed=fixed, candidates=candidates)
        return request, stream_seed(self.settings.seed, "recommend", len(self))

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
    ) -> ParetoFront:
        """Designs of which none is better than another in all main outcomes, each under its goal and with its limits
        kept; and the hypervolume that they dominate.

        Args:
            reference: Values by main outcome down to which the hypervolume counts; by default just behind the front.
            forecast: Samples of the contexts to expect, in place of the distribution that is estimated.
            context: The context that will be met, or some of it.
            fixed: Variables that are held, values by name.
            candidates: The only designs to choose from: dicts, rows or a data frame.
        """
        outcomes = need_pareto_front(self.settings.outcomes)
        self._need_reports("there is no front", "tell at least one value of each outcome")
        request, seed = self._answering(forecast, context, fixed, candidates)
        return find_pareto_front(
            self._known_outcomes(None, request.context_distribution, seed), outcomes, request.candidates, reference
        )

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
            forecast: Samples of the contexts to expect, in place of the distribution that is estimated.
            context: The context that will be met, or some of it.
            outcome: One of several, the main one by default; the value of a limit is the share of contexts in which it
                holds.
        """
        x = torch.from_numpy(self.space.encode_designs(designs))
        if not len(x):
            raise InvalidDesignError("no design was given", "give at least one")
        self._need_reports("nothing can be predicted")
        seed = stream_seed(self.settings.seed, "recommend", len(self))
        return (
            self._model_of(outcome).knowledge(read_distribution(self._state, forecast, context), seed, goal).predict(x)
        )

    @_one_at_a_time
    @engine_threads()
    def tradeoff(self, goal: Goal | str | None = None, *, forecast: Any = None) -> Tradeoff:
        """Designs between the best on average and the best under a goal.

        Args:
            goal: The goal, by default the optimizer's own, or the mean of the worst 10 % of contexts.
            forecast: Samples of the contexts to expect, in place of the distribution that is estimated.
        """
        self._need_reports("nothing can be traded off")
        if self.settings.outcomes is not None:
            hint = "front() is for several main outcomes; predict(outcome=…) looks at each"
            raise SeveralOutcomesError("a trade-off of goals is one of a single outcome", hint)
        data, context_distribution = self._main.data(), read_distribution(self._state, forecast, None)
        model_goal = self._main.goal(data, goal)
        if model_goal.goal == Expected():
            model_goal = replace(model_goal, goal=CVaR(0.1))
        seed = stream_seed(self.settings.seed, "recommend", len(self))
        model_goals = (replace(model_goal, goal=Expected()), model_goal)
        posteriors = [
            self._main.posterior(data, context_distribution, each, pending=[], asking=False) for each in model_goals
        ]
        best = [self._best_answer(posterior, data, read_candidates(self.space), seed) for posterior in posteriors]
        x = candidates(self.space, self.observations.x, best, seed)
        return trade_off(
            posteriors, x, self.settings, lambda some: self.predict(some, goal=model_goal.goal, forecast=forecast)
        )

    @_one_at_a_time
    @engine_threads()
    def policy(
        self,
        *,
        known: str | Sequence[str] | None = None,
        contexts: Any = None,
        goal: Goal | str | None = None,
        forecast: Any = None,
        fixed: Mapping[str, Any] | None = None,
        candidates: Any = None,
    ) -> Policy:
        """The best design for each context, and what it is worth to know the context before choosing.

        Args:
            known: The context variables that are known before the design is chosen; by default all.
            contexts: Those of the table, as dicts, rows or a data frame; by default a grid over those seen.
            goal: Another goal than the optimizer's own, for the same data.
            forecast: Samples of the contexts to expect, in place of the distribution that is estimated.
            fixed: Variables that are held, values by name.
            candidates: The only designs to choose from: dicts, rows or a data frame.
        """
        need_contexts(self.space)
        if self.settings.outcomes is not None:
            hint = "recommend(context=…) gives the best design for one context with every limit kept"
            raise SeveralOutcomesError("a policy is one of a single outcome", hint)
        request, seed = self._answering(forecast, None, fixed, candidates)
        recommender = self._main.knowledge(request.context_distribution, seed, goal)
        one, _ = self._best_designs(recommender, request)
        return find_policy(recommender, one, request.candidates, self.settings.least_success, known, contexts)

    @_one_at_a_time
    @engine_threads()
    def sensitivity(self, *, outcome: str | None = None, forecast: Any = None) -> Sensitivity:
        """What matters: Sobol' indices of every design and context variable, and what the variance of an outcome comes
        from: designs, contexts, both together, noise.

        Args:
            outcome: One of several, the main one by default.
            forecast: Samples of the contexts to expect, in place of the distribution that is estimated.
        """
        self._need_reports("nothing is known to matter", "tell at least two values")
        request, seed = self._answering(forecast, None, None, None)
        model, best = self._model_of(outcome), None
        known = model.knowledge(request.context_distribution, seed)
        if not self.settings.has_front:
            best = torch.from_numpy(self.space.encode_designs(self.recommend(forecast=forecast).design)[0])
        return find_sensitivity(known, best, outcome or self.settings.outcome)

    def _best_designs(self, known: Recommender, request: AskRequest) -> tuple[Tensor, Tensor]:
        """The best design (d_x) under the goal and the one for the mean."""
        x = self._best_answer(known.posterior, known.training_data, request.candidates, known.seed)
        if known.model_goal.goal == Expected():
            return x, x
        on_average = replace(known.model_goal, goal=Expected())
        mean = self._main.posterior(
            known.training_data, request.context_distribution, on_average, pending=[], asking=False
        )
        average = self._best_answer(mean, known.training_data, request.candidates, known.seed)
        return known.better(x, average), average

    def _best_answer(
        self, posterior: OutcomePosterior, training_data: TrainingData, candidates: CandidateSet, seed: int
    ) -> Tensor:
        found = best_design(posterior, candidates, training_data.starts(), seed, self.settings.least_success)
        return candidates.settled(found)

    # ---------------------------------------------------------------- copies and JSON

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """One that goes on by itself; what both know cannot be changed, so it is shared."""
        with self._lock:
            return type(self).of(self._state, self.fit)

    def __copy__(self) -> Self:
        return self.__deepcopy__({})

    def __reduce__(self) -> tuple[Callable[[str], Optimizer], tuple[str]]:
        """For ``pickle`` between the user's own processes: as ``to_json`` has it."""
        return type(self).from_json, (self.to_json(),)

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


def _check_earlier(method: Method, state: State) -> None:
    earlier = state.settings.earlier
    if earlier is None:
        return
    unread = [part.where for part in earlier.parts if not part.is_read]
    if unread:
        hint = "give edrbo.EarlierStudy.of(Study.open(…)); Study.open(…, earlier=…) reads files itself"
        raise InvalidValueError(f"the earlier study {unread[0]!r} was not read", hint)
    if not method.surrogate.learns_from_earlier:
        raise InvalidValueError("this method learns nothing from earlier studies", "choose a method such as edrbo-mean")


def _check_limits(method: Method, state: State) -> None:
    outcomes = state.settings.outcomes
    if outcomes is not None and outcomes.limits and not method.score.uses_context and state.space.d_c:
        raise InvalidValueError(
            "this method takes contexts for noise, and a limit is to hold in a share of them",
            "choose a method that models contexts, as edrbo does",
        )
