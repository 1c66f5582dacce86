"""ask / tell / recommend: the only stateful class of the core.

State changes only at the end of a call that succeeded, so a raised error leaves the optimizer as it was.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Unpack, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.acquisition.goal import Aim
from edrbo.acquisition.methods import Method, get_method
from edrbo.errors import EdrboError, InvalidDesignError, InvalidValueError
from edrbo.optimizer import json_record
from edrbo.optimizer.belief import Belief, believe
from edrbo.optimizer.choice import Choice, read_choice
from edrbo.optimizer.expecting import Expecting
from edrbo.optimizer.learner import Learner
from edrbo.optimizer.question import AskWishes, Law, Question, Wishes, read_law, read_question
from edrbo.optimizer.recommendation import Knowledge, Prediction, Recommendation, best_design, known_of_law
from edrbo.optimizer.stored_fit import StoredFit
from edrbo.optimizer.tradeoff import Tradeoff, candidates, trade_off
from edrbo.optimizer.training import Evidence
from edrbo.optimizer.trust import earned_trust
from edrbo.records.checks import read_number
from edrbo.records.events import Asked, Event
from edrbo.records.goals import CVaR, Expected, Goal, as_goal
from edrbo.records.recorder import Make, Recorder
from edrbo.records.settings import DEFAULT, Choices, Settings
from edrbo.records.state import State
from edrbo.records.suggestion import Suggestion
from edrbo.records.units import Direction
from edrbo.space import Space
from edrbo.streams import stream_seed
from edrbo.surrogate.ensemble import Ensemble

Array = NDArray[np.float64]


class Optimizer(Recorder):
    """Bayesian optimization of f(x, c) under a goal, E_c f(x, c) unless another is given, by ask and tell.

    >>> from edrbo import Optimizer, Space
    >>> optimizer = Optimizer(Space(design={"order": (0, 1)}, context={"demand": (0, 1)}), seed=0)
    >>> suggestion = optimizer.ask()
    >>> optimizer.tell(suggestion, context={"demand": 0.3}, value=1.2)

    ``method`` is a name (``edrbo.method_names()``) or a ``Method``; ``forgetting`` halves a context's weight for every
    so many later ones; ``initial`` quasi-random designs come first (``records/settings.py`` has all choices). Same seed
    and data, same suggestions. Threads may share one.
    """

    def __init__(self, space: Space, method: str | Method = DEFAULT, **choices: Unpack[Choices]) -> None:
        self._begin(State.start(Settings.of(space, method, choices)))

    def _begin(self, state: State) -> None:
        self.method = get_method(state.settings.method)
        self._state = state
        self._learner = Learner(self.method)
        self._lock = threading.RLock()

    @classmethod
    def of(cls, state: State, stored: StoredFit | None = None) -> Optimizer:
        """An optimizer that goes on from ``state``; ``stored`` is a fit made on a beginning of its data."""
        optimizer = cls.__new__(cls)
        optimizer._begin(state)
        optimizer._learner.stored = stored
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
            before, self._state = self._state.settings, state
            if state.settings != before:
                self.method, fit = get_method(state.settings.method), self._learner.fit
                self._learner = Learner(self.method)
                self._learner.offer(fit, self._evidence())

    def offer(self, stored: StoredFit | None) -> None:
        """A fit made elsewhere; it is used if it is of these data and further on than our own."""
        with self._lock:
            self._learner.offer(stored, self._evidence())

    @property
    def fit(self) -> StoredFit | None:
        """The last fit, as ``of`` takes it; None before the first."""
        with self._lock:
            return self._learner.fit

    @property
    def model(self) -> Ensemble | None:
        """The surrogate of the observations it is fitted to, None without any. It maximizes, whatever the direction."""
        with self._lock:
            return self._learner.model(self._evidence())

    # ---------------------------------------------------------------- ask

    @overload
    def ask(self, n: None = None, **wishes: Unpack[AskWishes]) -> Suggestion: ...
    @overload
    def ask(self, n: int, **wishes: Unpack[AskWishes]) -> list[Suggestion]: ...
    def ask(self, n: int | None = None, **wishes: Unpack[AskWishes]) -> Suggestion | list[Suggestion]:
        """The next design, or a list of ``n`` that are aware of each other and of everything pending.

        ``forecast`` (samples of contexts) is the law for this ask; ``context`` fixes the next context. ``fixed`` holds
        variables at values by name; of ``candidates`` (designs) one is chosen that is not pending and, without contexts
        or with ``repeat=False``, was not told.
        """
        count = 1 if n is None else n
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
            raise InvalidValueError(f"cannot ask for {n!r} suggestions", "ask for one or more")
        with self._lock:
            found = self._designs(int(count), read_question(self.space, **wishes))
            first, version = self._state.next_id, self._state.version
            for i, (x, expects) in enumerate(found):
                self.apply(Asked(id=first + i, x=x, expects=expects, version=version))
            names = self.space.decode_designs(np.stack([x for x, _ in found]))
        suggestions = [Suggestion(first + i, design, found[i][1]) for i, design in enumerate(names)]
        return suggestions[0] if n is None else suggestions

    def _designs(self, count: int, question: Question) -> list[tuple[Array, Mapping[str, Any] | None]]:
        """``count`` designs (d_x each) that know of each other, with what is expected of each that a model chose."""
        designs: list[Array] = []
        expects: list[Mapping[str, Any] | None] = []
        belief: Belief | None = None
        asked, evidence = self._state.suggested, self._evidence()
        for i in range(count):
            choice = question.choice.without([*question.taken(self._state), *designs])
            if self._wants_initial(len(designs)):
                designs.append(choice.initial(asked + i, stream_seed(self.settings.seed, "initial design")))
                expects.append(None)
                continue
            if belief is None:
                pending = [*self._state.pending.values(), *designs]
                belief = self._belief(evidence, question.law, pending, self._aim(evidence), asking=True)
                known = self._learner.model(evidence) or belief.model
                expecting = Expecting.by(known, belief.points, evidence, question.law[0])
            x = self._best(belief, choice, evidence.starts(), asked + i)
            designs.append(x)
            expects.append(expecting.of(x))
            if i + 1 < count:
                belief = belief.with_pending(torch.from_numpy(x)[None])
        return list(zip(designs, expects, strict=True))

    def _wants_initial(self, more: int) -> bool:
        """A failed design is replaced, as it says nothing about f; but not more of them than were wanted at first."""
        replaced = min(len(self._state.failed), self.settings.initial)
        known = len(self) + len(self._state.failed) - replaced + len(self._state.pending) + more
        return len(self) == 0 or known < self.settings.initial

    def _best(self, belief: Belief, choice: Choice, starts: Tensor, index: int) -> Array:
        seed = stream_seed(self.settings.seed, "maximize", index)
        acquisition = belief.acquisition()
        ladder = belief.feasible(acquisition.ladder())
        x = choice.settled(choice.best(ladder, seed=seed, starts=starts, kinks=acquisition.has_kinks))
        design: Array = x.numpy()
        return design

    # ---------------------------------------------------------------- recommend

    def recommend(
        self, *, goal: Goal | str | None = None, ball: float = 0.1, **wishes: Unpack[Wishes]
    ) -> Recommendation:
        """The design that is best under the goal, for the estimated law, a ``forecast`` or one ``context``.

        ``goal`` looks at the same data under another goal than the optimizer's own; ``fixed`` and ``candidates`` limit
        the designs as in ``ask``.
        """
        if not 0 <= (radius := read_number(ball)) < math.inf:
            raise InvalidValueError(f"ball is {ball!r}", "it is a distance, as a fraction of the context range")
        ball = radius
        if len(self) == 0:
            raise EdrboError("nothing was told yet, so nothing can be recommended", "tell at least one value")
        question, seed = read_question(self.space, **wishes), stream_seed(self.settings.seed, "recommend", len(self))
        known = self._knowledge(goal, question.law, seed)
        x = average = self._best_answer(known.belief, known.evidence, question.choice, seed)
        if known.aim.goal != Expected():
            mean = self._belief(known.evidence, question.law, [], replace(known.aim, goal=Expected()), asking=False)
            average = self._best_answer(mean, known.evidence, question.choice, seed)
        return known.recommend(x, average, ball, question.choice)

    def predict(
        self, designs: Any, *, goal: Goal | str | None = None, forecast: Any = None, context: Any = None
    ) -> Prediction:
        """What is believed of the mean and the goal's value of ``designs`` (a dict, dicts, rows or a frame)."""
        x = torch.from_numpy(self.space.encode_designs(designs))
        if not len(x):
            raise InvalidDesignError("no design was given", "give at least one")
        if len(self) == 0:
            raise EdrboError("nothing was told yet, so nothing can be predicted", "tell at least one value")
        seed = stream_seed(self.settings.seed, "recommend", len(self))
        return self._knowledge(goal, read_law(self.space, forecast, context), seed).predict(x)

    def tradeoff(self, goal: Goal | str | None = None, *, forecast: Any = None) -> Tradeoff:
        """Designs between the best on average and the best under ``goal``: its own, or the worst 10 % of contexts."""
        if len(self) == 0:
            raise EdrboError("nothing was told yet, so nothing can be traded off", "tell at least one value")
        evidence, law = self._evidence(), read_law(self.space, forecast, None)
        aim = self._aim(evidence, goal)
        if aim.goal == Expected():
            aim = replace(aim, goal=CVaR(0.1))
        seed = stream_seed(self.settings.seed, "recommend", len(self))
        aims = (replace(aim, goal=Expected()), aim)
        beliefs = [self._belief(evidence, law, [], each, asking=False) for each in aims]
        best = [self._best_answer(belief, evidence, read_choice(self.space), seed) for belief in beliefs]
        x = candidates(self.space, self.observations.x, best, seed)
        return trade_off(beliefs, x, self.settings, lambda some: self.predict(some, goal=aim.goal, forecast=forecast))

    def _best_answer(self, belief: Belief, evidence: Evidence, choice: Choice, seed: int) -> Tensor:
        found = best_design(belief, choice, evidence.starts(), seed, self.settings.least_success)
        return choice.settled(found)

    def _knowledge(self, goal: Goal | str | None, law: Law, seed: int) -> Knowledge:
        """Everything an answer under this goal and law is made from."""
        evidence = self._evidence()
        belief = self._belief(evidence, law, [], self._aim(evidence, goal), asking=False)
        model = self._learner.model(evidence)
        trust = earned_trust(belief.model if model is None else model)
        known = known_of_law(evidence, self.method.law, self.settings.forgetting, *law)
        return Knowledge(evidence, belief, known, trust, seed)

    def _aim(self, evidence: Evidence, goal: Goal | str | None = None) -> Aim:
        return Aim(self.settings.goal if goal is None else as_goal(goal), evidence.units)

    # ---------------------------------------------------------------- model and law

    def _evidence(self) -> Evidence:
        return Evidence(self._state, self.method.score.uses_context)

    def _belief(
        self,
        evidence: Evidence,
        law: Law,
        pending: list[Array],
        aim: Aim,
        *,
        asking: bool,
    ) -> Belief:
        forecast, fixed = law
        model = self._learner.model(evidence)
        scale = evidence.scale()
        return believe(
            self.method,
            model,
            evidence.extras(pending),
            evidence.history(scale, self.settings.forgetting, forecast),
            None if fixed is None else torch.from_numpy(scale.encode(fixed)),
            len(self),
            stream_seed(self.settings.seed, "law", len(self)),
            aim,
            asking=asking,
        )

    # ---------------------------------------------------------------- JSON

    def to_json(self) -> str:
        """Everything as text; ``from_json`` gives an optimizer that goes on exactly as this one would."""
        with self._lock:
            return json_record.write(self._state, self.fit)

    @classmethod
    def from_json(cls, text: str) -> Optimizer:
        """The inverse of ``to_json``; InvalidValueError for anything else."""
        return cls.of(*json_record.read(text))
