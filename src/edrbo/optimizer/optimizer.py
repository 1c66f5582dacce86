"""ask / tell / recommend: the only stateful class of the core.

State changes only at the end of a call that succeeded, so a raised error leaves the optimizer as it was.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.acquisition.area import Area
from edrbo.acquisition.costly import Costs, best_per_cost
from edrbo.acquisition.maximizer import Objective
from edrbo.acquisition.methods import Method
from edrbo.acquisition.room import Room
from edrbo.errors import EdrboError, InvalidDesignError, InvalidValueError
from edrbo.optimizer import json_record
from edrbo.optimizer.belief import Belief
from edrbo.optimizer.choice import Choice, read_choice
from edrbo.optimizer.expecting import Expecting
from edrbo.optimizer.exploring import looks_around
from edrbo.optimizer.front import Front, find_front, need_front
from edrbo.optimizer.joint import Joint
from edrbo.optimizer.question import AskWishes, Question, Wishes, read_law, read_question
from edrbo.optimizer.recommendation import Knowledge, Prediction, Recommendation, best_design
from edrbo.optimizer.several import need_one_main, recommend_under_limits
from edrbo.optimizer.thinker import Thinker
from edrbo.optimizer.tradeoff import Tradeoff, candidates, trade_off
from edrbo.optimizer.training import Evidence
from edrbo.records.checks import read_number
from edrbo.records.events import Asked
from edrbo.records.goals import CVaR, Expected, Goal
from edrbo.records.settings import DEFAULT, Choices, Settings
from edrbo.records.state import State
from edrbo.records.suggestion import Suggestion
from edrbo.space import Space
from edrbo.streams import stream_seed
from edrbo.threads import engine_threads

Array = NDArray[np.float64]


class Optimizer(Thinker):
    """Bayesian optimization of f(x, c) under a goal, E_c f(x, c) unless another is given, by ask and tell.

    >>> from edrbo import Optimizer, Space
    >>> optimizer = Optimizer(Space(design={"order": (0, 1)}, context={"demand": (0, 1)}), seed=0)
    >>> suggestion = optimizer.ask()
    >>> optimizer.tell(suggestion, context={"demand": 0.3}, value=1.2)

    ``method`` is a name (``edrbo.method_names()``; "edrbo-mean" by default) or a ``Method``; ``forgetting`` halves a
    context's weight for every so many later ones; ``initial`` quasi-random designs come first (``Settings`` has all
    choices). Same seed and data, same suggestions. Threads may share one.
    """

    def __init__(self, space: Space, method: str | Method = DEFAULT, **choices: Unpack[Choices]) -> None:
        self._begin(State.start(Settings.of(space, method, choices)))

    # ---------------------------------------------------------------- ask

    @overload
    def ask(self, n: None = None, **wishes: Unpack[AskWishes]) -> Suggestion: ...
    @overload
    def ask(self, n: int, **wishes: Unpack[AskWishes]) -> list[Suggestion]: ...
    @engine_threads()
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
            costs = self._costs()
            found = self._designs(int(count), read_question(self._state, **wishes), costs)
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
        belief: Belief | Joint | None = None
        asked, evidence = self._state.suggested, self._evidence()
        for i in range(count):
            choice = question.choice.without([*question.taken(self._state), *designs])
            if self._wants_initial(len(designs)):
                designs.append(choice.initial(asked + i, stream_seed(self.settings.seed, "initial design")))
                expects.append(None)
                continue
            if belief is None:
                pending = [*self._state.pending.values(), *designs]
                belief = self._asking(evidence, question.law, pending)
                known = self._learner.model(evidence) or belief.model
                expecting = Expecting.by(known, belief.points, evidence, question.law[0])
            under_way = len(self._state.pending) + len(designs)
            if self._looks_around(belief, evidence, under_way):
                x = self._roomiest(choice, designs, asked + i)
            else:
                asked_by = belief.for_suggestion(len(self) + under_way)
                x = self._best(asked_by, choice, evidence.starts(), asked + i, costs)
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

    def _looks_around(self, belief: Belief | Joint, evidence: Evidence, pending: int) -> bool:
        if self.settings.aim != "identify" or not len(evidence.observations.x):
            return False
        worth = belief.values(torch.tensor(evidence.observations.x)).numpy()
        return looks_around(worth, self.settings.initial, pending, self.settings.evaluations)

    def _roomiest(self, choice: Choice, asked: Sequence[Array], index: int) -> Array:
        """The design (d_x) with most room around it, among all that were tried or ``asked`` for."""
        runs = [run.x for run in self._state.runs.values()]
        room = Room(torch.from_numpy(np.stack([*runs, *asked])), Area(self.space).free)
        seed = stream_seed(self.settings.seed, "maximize", index)
        starts = torch.zeros(0, self.space.d_x, dtype=torch.float64)
        return choice.settled(choice.best([room], seed=seed, starts=starts, kinks=True)).numpy()

    def _best(self, belief: Belief | Joint, choice: Choice, starts: Tensor, index: int, costs: Costs | None) -> Array:
        seed = stream_seed(self.settings.seed, "maximize", index)
        acquisition = belief.acquisition()
        ladder = belief.apart(belief.feasible(acquisition.ladder()))

        def search(some: Sequence[Objective]) -> Tensor:
            return choice.settled(choice.best(some, seed=seed, starts=starts, kinks=acquisition.has_kinks))

        if costs is None:
            return search(ladder).numpy()
        return best_per_cost(ladder, costs, belief.level(choice.starts(starts)), search).numpy()

    # ---------------------------------------------------------------- recommend

    @engine_threads()
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
        question, seed = self._answering(wishes)
        if (outcomes := self.settings.outcomes) is not None:
            need_one_main(outcomes)
            return recommend_under_limits(self._known_outcomes(goal, question.law, seed), question.choice, ball)
        known = self._knowledge(goal, question.law, seed)
        return known.recommend(*self._best_designs(known, question), ball, question.choice.admit)

    @engine_threads()
    def best_design(self, *, goal: Goal | str | None = None, **wishes: Unpack[Wishes]) -> dict[str, Any]:
        """The design that ``recommend`` gives, without what is to be said of it: in a fraction of its time."""
        if self.settings.outcomes is not None:  # limits are a matter of all that is said
            return self.recommend(goal=goal, **wishes).design
        question, seed = self._answering(wishes)
        x, _ = self._best_designs(self._knowledge(goal, question.law, seed), question)
        return dict(self.space.decode_designs(x.numpy())[0])

    def _answering(self, wishes: Wishes) -> tuple[Question, int]:
        if len(self) == 0:
            raise EdrboError("nothing was told yet, so nothing can be recommended", "tell at least one value")
        return read_question(self._state, **wishes), stream_seed(self.settings.seed, "recommend", len(self))

    @engine_threads()
    def front(self, *, reference: Mapping[str, float] | None = None, **wishes: Unpack[Wishes]) -> Front:
        """Designs of which none is better than another in all main outcomes, each under its goal and with its limits
        kept; and the hypervolume that they dominate down to ``reference``, values by name."""
        outcomes = need_front(self.settings.outcomes)
        if len(self) == 0:
            raise EdrboError("nothing was told yet, so there is no front", "tell at least one value of each outcome")
        question, seed = read_question(self._state, **wishes), stream_seed(self.settings.seed, "recommend", len(self))
        return find_front(self._known_outcomes(None, question.law, seed), outcomes, question.choice, reference)

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
        """What is believed of the mean and the goal's value of ``designs`` (a dict, dicts, rows or a frame).

        ``outcome`` is one of several, the main one by default; the value of a limit is the share of contexts in which
        it holds.
        """
        x = torch.from_numpy(self.space.encode_designs(designs))
        if not len(x):
            raise InvalidDesignError("no design was given", "give at least one")
        if len(self) == 0:
            raise EdrboError("nothing was told yet, so nothing can be predicted", "tell at least one value")
        seed = stream_seed(self.settings.seed, "recommend", len(self))
        with self._lock:
            return self._of_outcome(outcome)._knowledge(goal, read_law(self._state, forecast, context), seed).predict(x)

    @engine_threads()
    def tradeoff(self, goal: Goal | str | None = None, *, forecast: Any = None) -> Tradeoff:
        """Designs between the best on average and the best under ``goal``: its own, or the worst 10 % of contexts."""
        if len(self) == 0:
            raise EdrboError("nothing was told yet, so nothing can be traded off", "tell at least one value")
        if self.settings.outcomes is not None:
            hint = "front() is for several main outcomes; predict(outcome=…) looks at each"
            raise EdrboError("a trade-off of goals is one of a single outcome", hint)
        evidence, law = self._evidence(), read_law(self._state, forecast, None)
        model_goal = self._model_goal(evidence, goal)
        if model_goal.goal == Expected():
            model_goal = replace(model_goal, goal=CVaR(0.1))
        seed = stream_seed(self.settings.seed, "recommend", len(self))
        model_goals = (replace(model_goal, goal=Expected()), model_goal)
        beliefs = [self._belief(evidence, law, [], each, asking=False) for each in model_goals]
        best = [self._best_answer(belief, evidence, read_choice(self.space), seed) for belief in beliefs]
        x = candidates(self.space, self.observations.x, best, seed)
        return trade_off(
            beliefs, x, self.settings, lambda some: self.predict(some, goal=model_goal.goal, forecast=forecast)
        )

    def _best_designs(self, known: Knowledge, question: Question) -> tuple[Tensor, Tensor]:
        """The best design (d_x) under the goal and the one for the mean."""
        x = self._best_answer(known.belief, known.evidence, question.choice, known.seed)
        if known.model_goal.goal == Expected():
            return x, x
        mean = self._belief(known.evidence, question.law, [], replace(known.model_goal, goal=Expected()), asking=False)
        average = self._best_answer(mean, known.evidence, question.choice, known.seed)
        return known.better(x, average), average

    def _best_answer(self, belief: Belief, evidence: Evidence, choice: Choice, seed: int) -> Tensor:
        found = best_design(belief, choice, evidence.starts(), seed, self.settings.least_success)
        return choice.settled(found)

    # ---------------------------------------------------------------- JSON

    def to_json(self) -> str:
        """Everything as text; ``from_json`` gives an optimizer that goes on exactly as this one would."""
        with self._lock:
            return json_record.write(self._state, self.fit)

    @classmethod
    def from_json(cls, text: str) -> Optimizer:
        """The inverse of ``to_json``; InvalidValueError for anything else."""
        return cls.of(*json_record.read(text))
