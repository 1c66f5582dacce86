"""The model of one outcome: its data, the surrogate refitted as they grow, and posteriors conditioned on both."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from edrbo.acquisition.acquisition import ModelGoal
from edrbo.acquisition.methods import Method
from edrbo.contexts.uncertainty import DistributionUncertainty
from edrbo.optimizer.calibration import earned_trust
from edrbo.optimizer.candidates import ForecastOrContext
from edrbo.optimizer.outcome_posterior import OutcomePosterior, condition, conditioned
from edrbo.optimizer.recommendation import Recommender, known_distribution_of
from edrbo.optimizer.stored_fit import StoredFit
from edrbo.optimizer.tolerance import Tolerances
from edrbo.optimizer.training_data import TrainingData
from edrbo.records.goals import Goal, as_goal
from edrbo.records.state import State
from edrbo.streams import stream_seed
from edrbo.surrogate.ensemble import ExpertEnsemble
from edrbo.surrogate.marginal import doubted
from edrbo.surrogate.refit import FittedModel, advance

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

    def data(self) -> TrainingData:
        """The observations in the terms of the surrogate."""
        return TrainingData(self.state, self.method.score.uses_context)

    def surrogate(self, data: TrainingData) -> ExpertEnsemble | None:
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

    def goal(self, data: TrainingData, goal: Goal | str | None = None) -> ModelGoal:
        """``goal``, or the outcome's own, in the surrogate's units."""
        return ModelGoal(self.state.settings.goal if goal is None else as_goal(goal), data.units)

    def posterior(
        self,
        data: TrainingData,
        context_distribution: ForecastOrContext,
        goal: ModelGoal | None = None,
        *,
        pending: list[Array],
        asking: bool,
    ) -> OutcomePosterior:
        """What is believed of the outcome under a distribution of contexts, for asking or for answering.

        Args:
            data: From ``data()``.
            context_distribution: A forecast, one context, or neither.
            goal: Another goal than the outcome's own.
            pending: Designs (d_x each) that are being evaluated.
            asking: Whether a design is to be suggested.
        """
        posterior = self._of_inputs(data, context_distribution, goal, pending=pending, asking=asking)
        tolerances = Tolerances.of(self.state.space)
        if tolerances is None:
            return posterior
        wanted = self.goal(data) if goal is None else goal
        given = context_distribution[1] is not None
        return tolerances.posterior(posterior, tolerances.goal(wanted) if given else None)

    def _of_inputs(
        self,
        data: TrainingData,
        context_distribution: ForecastOrContext,
        goal: ModelGoal | None,
        *,
        pending: list[Array],
        asking: bool,
    ) -> OutcomePosterior:
        """The same of what comes out: without tolerances."""
        forecast, fixed = context_distribution[0], context_distribution[1]
        model = self.surrogate(data)
        model_goal = self.goal(data) if goal is None else goal
        scale, settings = data.scale(), self.state.settings
        history = data.history(scale, settings.context_half_life, forecast)
        if model_goal.over_all_bounds:
            lower, upper = data.whole_box(scale)
            history = replace(history, lower=lower, upper=upper)
        return condition(
            self.method,
            model,
            data.extras(pending),
            history,
            None if fixed is None else torch.from_numpy(scale.encode(fixed)),
            len(self.state.reported),
            stream_seed(settings.seed, "law", len(self.state.reported)),
            model_goal,
            asking=asking,
            forecast=forecast is not None,
        )

    def known_distribution(
        self, data: TrainingData, context_distribution: ForecastOrContext
    ) -> DistributionUncertainty:
        """The distribution to answer for, as far as it is known."""
        found = known_distribution_of(
            data, self.method.context_distribution, self.state.settings.context_half_life, *context_distribution
        )
        tolerances = Tolerances.of(self.state.space)
        return found if tolerances is None else tolerances.distribution(found)

    def forecasting(self, data: TrainingData) -> ExpertEnsemble | None:
        """The surrogate, asked about what is set."""
        model, tolerances = self.surrogate(data), Tolerances.of(self.state.space)
        return model if model is None or tolerances is None else tolerances.model(model)

    def knowledge(
        self, context_distribution: ForecastOrContext, seed: int, goal: Goal | str | None = None
    ) -> Recommender:
        """Everything an answer under this goal and distribution is made from."""
        data, tolerances = self.data(), Tolerances.of(self.state.space)
        posterior = self.posterior(data, context_distribution, self.goal(data, goal), pending=[], asking=False)
        model = self.surrogate(data)
        surrogate = self.method.surrogate
        if model is None:
            worlds, trust = posterior.model, earned_trust(posterior.model)
        else:
            members = doubted(surrogate, model)
            points = posterior.points if tolerances is None else tolerances.contexts(posterior.points)
            worlds = conditioned(surrogate, members, data.extras([]), points)
            worlds = worlds if tolerances is None else tolerances.model(worlds)
            trust = earned_trust(members)
        return Recommender(data, posterior, worlds, self.known_distribution(data, context_distribution), trust, seed)
