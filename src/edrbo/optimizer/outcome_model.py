"""What is inferred of one outcome: its data, the surrogate that is brought up to date as they grow, and posteriors
made of both."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from edrbo.acquisition.goal import ModelGoal
from edrbo.acquisition.methods import Method
from edrbo.context.uncertainty import LawBelief
from edrbo.optimizer.belief import Belief, believe, conditioned
from edrbo.optimizer.choice import Law
from edrbo.optimizer.recommendation import Knowledge, known_of_law
from edrbo.optimizer.stored_fit import StoredFit
from edrbo.optimizer.training import Evidence
from edrbo.optimizer.trust import earned_trust
from edrbo.records.goals import Goal, as_goal
from edrbo.records.state import State
from edrbo.streams import stream_seed
from edrbo.surrogate.ensemble import Ensemble
from edrbo.surrogate.marginal import doubted
from edrbo.surrogate.schedule import FittedModel, advance

Array = NDArray[np.float64]


class OutcomeModel:
    """One outcome of an experiment, as if it were the only one.

    Args:
        state: The experiment as far as this outcome goes.
        method: What models it.
        stored: A fit that was made on a beginning of its data.
    """

    def __init__(self, state: State, method: Method, stored: StoredFit | None = None) -> None:
        self.state = state
        self.method = method
        self.stored = stored
        self._fitted: FittedModel | None = None
        self._digest = ""  # of what it was fitted to

    def go_on(self, state: State, method: Method) -> None:
        """Go on from ``state``. A surrogate of earlier data is kept and used where these data begin with its own."""
        if state.settings == self.state.settings:
            self.state = state
            return
        fit = self.fit
        self.state, self.method, self.stored, self._fitted = state, method, None, None
        self.offer(fit)

    # ---------------------------------------------------------------- the surrogate

    @property
    def fit(self) -> StoredFit | None:
        """The last fit; None before the first."""
        if self._fitted is None:
            return self.stored
        return StoredFit(self._fitted.fitted, self._fitted.hyper, self._fitted.rows, self._digest)

    def offer(self, stored: StoredFit | None) -> None:
        """A fit made elsewhere; it is used if it is of these data and further on than our own."""
        own = self.fit
        if stored is None or (own is not None and stored.rows <= own.rows):
            return
        if stored.suits(self.method, self.state.space) and stored.usable(self.data()) is not None:
            self.stored, self._fitted = stored, None

    def data(self) -> Evidence:
        """The observations in the terms of the surrogate."""
        return Evidence(self.state, self.method.score.uses_context)

    def surrogate(self, data: Evidence) -> Ensemble | None:
        """The surrogate on all complete observations of ``data``; None if there is none."""
        rows = data.training
        n = len(rows)
        if n == 0:
            return None
        fitted = self._fitted
        if fitted is not None and (fitted.rows > n or data.digest(fitted.rows) != self._digest):
            fitted = None  # something was corrected or undone
        if fitted is None or fitted.rows != n:
            fitted = advance(
                self.method.surrogate,
                fitted,
                n,
                data.inputs,
                torch.from_numpy(data.outcomes[rows]),
                data.noise_of,
                None if self.stored is None else self.stored.usable(data),
            )
            self._digest = data.digest(n)
        self._fitted = fitted
        return fitted.model

    # ---------------------------------------------------------------- posteriors

    def goal(self, data: Evidence, goal: Goal | str | None = None) -> ModelGoal:
        """``goal``, or the outcome's own, in the surrogate's units."""
        return ModelGoal(self.state.settings.goal if goal is None else as_goal(goal), data.units)

    def posterior(
        self, data: Evidence, law: Law, goal: ModelGoal | None = None, *, pending: list[Array], asking: bool
    ) -> Belief:
        """What is believed of the outcome under a law of contexts, for asking or for answering.

        Args:
            data: From ``data()``.
            law: A forecast, one context, or neither.
            goal: Another goal than the outcome's own.
            pending: Designs (d_x each) that are being evaluated.
            asking: Whether a design is to be suggested.
        """
        forecast, fixed = law[0], law[1]
        model = self.surrogate(data)
        model_goal = self.goal(data) if goal is None else goal
        scale, settings = data.scale(), self.state.settings
        history = data.history(scale, settings.forgetting, forecast)
        if model_goal.over_all_bounds:
            lower, upper = data.whole_box(scale)
            history = replace(history, lower=lower, upper=upper)
        return believe(
            self.method,
            model,
            data.extras(pending),
            history,
            None if fixed is None else torch.from_numpy(scale.encode(fixed)),
            len(self.state.told),
            stream_seed(settings.seed, "law", len(self.state.told)),
            model_goal,
            asking=asking,
            forecast=forecast is not None,
        )

    def known_law(self, data: Evidence, law: Law) -> LawBelief:
        """The law to answer for, as far as it is known."""
        return known_of_law(data, self.method.law, self.state.settings.forgetting, *law)

    def knowledge(self, law: Law, seed: int, goal: Goal | str | None = None) -> Knowledge:
        """Everything an answer under this goal and law is made from."""
        data = self.data()
        belief = self.posterior(data, law, self.goal(data, goal), pending=[], asking=False)
        model = self.surrogate(data)
        surrogate = self.method.surrogate
        if model is None:
            worlds, trust = belief.model, earned_trust(belief.model)
        else:
            members = doubted(surrogate, model)
            worlds = conditioned(surrogate, members, data.extras([]), belief.points)
            trust = earned_trust(members)
        return Knowledge(data, belief, worlds, self.known_law(data, law), trust, seed)
