"""A state and what is believed of it: the learner's model, the law of contexts, and beliefs made of both.

State changes only at the end of a call that succeeded, so a raised error leaves everything as it was.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray

from edrbo.acquisition.costly import Costs
from edrbo.acquisition.goal import ModelGoal
from edrbo.acquisition.methods import Method, get_method
from edrbo.errors import EdrboError, InvalidValueError, UnknownNameError
from edrbo.optimizer.belief import Belief, believe, conditioned
from edrbo.optimizer.joint import Joint, Part
from edrbo.optimizer.learner import Learner
from edrbo.optimizer.question import Law
from edrbo.optimizer.recommendation import Knowledge, known_of_law
from edrbo.optimizer.stored_fit import StoredFit
from edrbo.optimizer.training import Evidence
from edrbo.optimizer.trust import earned_trust
from edrbo.records.events import Event
from edrbo.records.goals import Goal, as_goal
from edrbo.records.named_law import check_law
from edrbo.records.recorder import Make, Recorder
from edrbo.records.settings import Settings
from edrbo.records.state import State
from edrbo.records.units import Direction
from edrbo.streams import stream_seed
from edrbo.surrogate.cost import learn_cost
from edrbo.surrogate.ensemble import Ensemble
from edrbo.surrogate.marginal import doubted

Array = NDArray[np.float64]


class Thinker(Recorder):
    """What ``Optimizer`` answers from. Of several outcomes the main one is its own; each other one has a thinker."""

    def _begin(self, state: State) -> None:
        self.method = get_method(state.settings.method)
        _check_limits(self.method, state)
        check_law(state.settings.law, state.space)
        self._state = state
        self._learner = Learner(self.method)
        self._others: dict[str, Thinker] = {}  # of the outcomes besides the main one, each as if it were the only one
        self._stored_others: Mapping[str, StoredFit] = {}  # their fits, as far as they were made elsewhere
        self._lock = threading.RLock()

    @classmethod
    def of(cls, state: State, stored: StoredFit | None = None) -> Self:
        """One that goes on from ``state``; ``stored`` is a fit made on a beginning of its data."""
        thinker = cls.__new__(cls)
        thinker._begin(state)
        thinker._learner.stored = stored
        thinker._stored_others = {} if stored is None else stored.others
        return thinker

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

    def _record(self, make: Make) -> Event:
        with self._lock:
            event = make(self._state)
            return self.apply(event)

    def apply(self, event: Event) -> Event:
        """Take in an event from elsewhere; gives it with the name it has here."""
        with self._lock:
            named = event if event.ref else replace(event, ref=self._state.free_ref)
            self.go_on(self._state.apply(named))
            return named

    def go_on(self, state: State) -> None:
        """Go on from ``state``. A model of earlier data is kept and used where these data begin with its own."""
        with self._lock:
            if state.settings == self._state.settings:
                self._state = state
            else:
                method, fit = get_method(state.settings.method), self._learner.fit
                _check_limits(method, state)
                self._state, self.method, self._learner = state, method, Learner(method)
                self._learner.offer(fit, self._evidence())

    def offer(self, stored: StoredFit | None) -> None:
        """A fit made elsewhere; it is used if it is of these data and further on than our own."""
        with self._lock:
            self._learner.offer(stored, self._evidence())
            if stored is not None and stored.others:
                self._stored_others = stored.others
                for name, other in self._others.items():
                    other.offer(stored.others.get(name))

    @property
    def fit(self) -> StoredFit | None:
        """The last fit, as ``of`` takes it; None before the first."""
        with self._lock:
            main, own = self._learner.fit, {name: other.fit for name, other in self._others.items()}
            others = {**self._stored_others, **{name: fit for name, fit in own.items() if fit is not None}}
            return main if main is None or not others else replace(main, others=others)

    @property
    def model(self) -> Ensemble | None:
        """The surrogate of the observations it is fitted to, None without any. It maximizes, whatever the direction."""
        with self._lock:
            return self._learner.model(self._evidence())

    # ---------------------------------------------------------------- model and law

    def _evidence(self) -> Evidence:
        return Evidence(self._state, self.method.score.uses_context)

    def _belief(
        self,
        evidence: Evidence,
        law: Law,
        pending: list[Array],
        model_goal: ModelGoal,
        *,
        asking: bool,
    ) -> Belief:
        forecast, fixed = law[0], law[1]
        model = self._learner.model(evidence)
        scale = evidence.scale()
        history = evidence.history(scale, self.settings.forgetting, forecast)
        if model_goal.over_all_bounds:
            lower, upper = evidence.whole_box(scale)
            history = replace(history, lower=lower, upper=upper)
        return believe(
            self.method,
            model,
            evidence.extras(pending),
            history,
            None if fixed is None else torch.from_numpy(scale.encode(fixed)),
            len(self),
            stream_seed(self.settings.seed, "law", len(self)),
            model_goal,
            asking=asking,
            forecast=forecast is not None,
        )

    def _knowledge(self, goal: Goal | str | None, law: Law, seed: int) -> Knowledge:
        """Everything an answer under this goal and law is made from."""
        evidence = self._evidence()
        belief = self._belief(evidence, law, [], self._model_goal(evidence, goal), asking=False)
        model = self._learner.model(evidence)
        surrogate = self.method.surrogate
        if model is None:
            worlds, trust = belief.model, earned_trust(belief.model)
        else:
            members = doubted(surrogate, model)
            worlds = conditioned(surrogate, members, evidence.extras([]), belief.points)
            trust = earned_trust(members)
        known = known_of_law(evidence, self.method.law, self.settings.forgetting, *law)
        return Knowledge(evidence, belief, worlds, known, trust, seed)

    def _model_goal(self, evidence: Evidence, goal: Goal | str | None = None) -> ModelGoal:
        return ModelGoal(self.settings.goal if goal is None else as_goal(goal), evidence.units)

    def _costs(self) -> Costs | None:
        """What runs cost: as the user's function says, or learned from what was told; None if nothing is known."""
        if self.settings.cost is not None:
            return self.settings.cost
        runs = [run for run in self._state.runs.values() if run.cost is not None]
        return learn_cost(np.array([run.x for run in runs]), np.array([run.cost for run in runs])) if runs else None

    # ---------------------------------------------------------------- several outcomes

    def _parts(self) -> dict[str, Thinker]:
        """An optimizer for every outcome besides the main one that was told, as if it were the only one."""
        outcomes = self.settings.outcomes
        names = [] if outcomes is None else outcomes.others
        for name in names:
            state = self._state.of_outcome(name)
            if name in self._others:
                self._others[name].go_on(state)
            elif state.told:
                self._others[name] = Thinker.of(state)
                self._others[name].offer(self._stored_others.get(name))
        return {name: self._others[name] for name in names if name in self._others and self._others[name].state.told}

    def _of_outcome(self, name: str | None) -> Thinker:
        """The thinker of one of several outcomes, by default of the main one."""
        outcomes = self.settings.outcomes
        if name is None or name == self.settings.outcome:
            return self
        if outcomes is None:
            raise UnknownNameError(f"{name!r} is not an outcome", f"this study has one: {self.settings.outcome}")
        if outcomes.known(name) not in (parts := self._parts()):
            raise EdrboError(f"{name!r} was never told, so nothing is known of it", "tell at least one value of it")
        return parts[name]

    def _known_outcomes(self, goal: Goal | str | None, law: Law, seed: int) -> dict[str, Knowledge]:
        """What is known of every outcome, the main one first and under ``goal``."""
        with self._lock:
            assert self.settings.outcomes is not None
            others = {name: self._of_outcome(name) for name in self.settings.outcomes.others}
            known = {self.settings.outcome: self._knowledge(goal, law, seed)}
            return known | {name: one._knowledge(None, law, seed) for name, one in others.items()}

    def _asking(self, evidence: Evidence, law: Law, pending: list[Array]) -> Belief | Joint:
        """What is believed when a design is asked for, of one outcome or of all."""
        belief = self._belief(evidence, law, pending, self._model_goal(evidence), asking=True)
        if (outcomes := self.settings.outcomes) is None:
            return belief
        known = known_of_law(evidence, self.method.law, self.settings.forgetting, *law)
        parts = [Part(outcomes.main, outcomes[outcomes.main], belief, known)]
        for name, other in self._parts().items():
            found = other._evidence()
            other_belief = other._belief(found, law, pending, other._model_goal(found), asking=True)
            seen = known_of_law(found, self.method.law, self.settings.forgetting, *law)
            parts.append(Part(name, outcomes[name], other_belief, seen))
        tried = np.unique(np.vstack([evidence.observations.x, *(x[None] for x in pending)]), axis=0)
        return Joint(tuple(parts), tried=torch.from_numpy(tried))


def _check_limits(method: Method, state: State) -> None:
    outcomes = state.settings.outcomes
    if outcomes is not None and outcomes.limits and not method.score.uses_context and state.space.d_c:
        raise InvalidValueError(
            "this method takes contexts for noise, and a limit is to hold in a share of them",
            "choose a method that models contexts, as edrbo does",
        )
