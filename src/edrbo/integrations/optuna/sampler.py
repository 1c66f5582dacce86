"""Any method of edrbo as an Optuna sampler."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.search_space import intersection_search_space
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from edrbo.acquisition.methods import Method
from edrbo.errors import EdrboError, InvalidContextError, InvalidValueError
from edrbo.integrations.optuna.translation import (
    CONTEXT,
    CONTEXTS,
    FORECAST,
    SHARED,
    Translation,
    check_cost,
    cost_of_designs,
    only_value,
    read_context,
    variable_of,
)
from edrbo.integrations.optuna.visualization import contexts_as_parameters
from edrbo.optimizer.optimizer import Optimizer
from edrbo.optimizer.pareto import ParetoFront
from edrbo.optimizer.recommendation import Recommendation
from edrbo.records.goals import Goal
from edrbo.records.outcomes import Direction, Limit, Maximize, Minimize, OutcomeRange
from edrbo.records.settings import DEFAULT, INITIAL, LEAST_SUCCESS, Drift, NoiseModel, Outliers, Purpose, Settings
from edrbo.records.validation import holds_unusable
from edrbo.space import Space


class EDRBOSampler(BaseSampler):
    """Sample the parameters whose expected value over contexts is best.

    >>> import optuna
    >>> def objective(trial):
    ...     x = trial.suggest_float("x", 0, 1)
    ...     c = 0.3  # seen after x was chosen
    ...     trial.set_user_attr("context", {"c": c})
    ...     return -((x - c) ** 2)
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study(direction="maximize", sampler=EDRBOSampler(context={"c": (0, 1)}, seed=0))
    >>> study.optimize(objective, n_trials=8)

    User attributes of a trial: ``context``, the context it met, or, set before the first ``suggest``, the one it is
    about to meet; ``forecast``, set before the first ``suggest``: samples of the distribution of its context. User
    attribute of the study: ``contexts``, samples without an outcome.

    With ``outcomes`` the objective's values are the main ones, in their order; the others are constraints of the trial
    by name (``trial.set_constraint``) or in its user attribute ``outcomes``, and limits hold over contexts.

    A trial says what it costs in its user attribute ``cost``, or the sampler knows it by its argument ``cost``.

    A trial that fails, breaks a constraint, or has a value or context that is NaN or infinite says where trials fail; a
    pruned one counts by its last value. Constraints are ``trial.set_constraint``'s, or in the user attribute
    ``constraints`` by name (of Optuna 4 these alone). Parameters that not every trial has are drawn at random.

    Args:
        context: The context variables by name, as ``Space`` takes them.
        method: How designs are chosen: a name of ``edrbo.method_names()``, or a ``Method``.
        seed: Seed of everything random; None: another one every time.
        independent_sampler: Draws the parameters that not every trial has.
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
        cost: What a trial costs, in its parameters: a text such as "1 + 9 * x", or a function of them.
        earlier: Studies of related machines, campaigns or a simulator to learn from, with the names of the parameters:
            studies or ``EarlierStudy``; each counts as much as it is like this one.
    """

    def __init__(
        self,
        context: Mapping[str, Any] | None = None,
        method: str | Method = DEFAULT,
        seed: int | None = None,
        *,
        independent_sampler: BaseSampler | None = None,
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
        self._context = dict(context or {})
        if seed is None:
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        self._cost, self._earlier = check_cost(cost), earlier
        # Refuses bad settings now; the space is that of the study, and known only later, and so is its direction.
        space = Space({"design": (0, 1)}, self._context)
        self._settings = Settings.of_call(locals(), cost=None)
        self._independent = independent_sampler or RandomSampler(seed=self._settings.seed % 2**32)
        self._optimizers: dict[str, Optimizer] = {}  # by direction and search space; they remember their fits
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in ("_lock", "_optimizers")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock(), _optimizers={})

    def reseed_rng(self) -> None:
        # Our own streams are named by the trial's number, so that no two workers share one.
        self._independent.reseed_rng()

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        return self._search_space(study)

    def _search_space(self, study: optuna.Study) -> dict[str, BaseDistribution]:
        found = intersection_search_space(study.get_trials(deepcopy=False))
        return {
            name: kind for name, kind in sorted(found.items()) if not kind.single() and variable_of(kind) is not None
        }

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        self._check_objectives(study)
        if not search_space:
            return {}
        translation = Translation.of(search_space, self._context)
        with self._lock:  # so that threads know of each other's choice
            optimizer = self._optimizer(study, translation, trial.number)
            known = {"forecast": trial.user_attrs.get(FORECAST), "context": trial.user_attrs.get(CONTEXT)}
            if known["context"] is not None:
                known["forecast"] = None
            params = translation.params(optimizer.ask(**known).design)
            study._storage.set_trial_system_attr(trial._trial_id, SHARED, params)
        return params

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        self._check_objectives(study)
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        self._independent.before_trial(study, trial)

    def after_trial(
        self, study: optuna.Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """A context that cannot be used is an error here, where it was made; later it counts as not known."""
        self._independent.after_trial(study, trial, state, values)
        given = trial.user_attrs.get(CONTEXT)
        if given is None or holds_unusable(given):  # the latter is how simulators say that they failed
            return
        if not self._context:
            raise InvalidContextError(
                f"trial {trial.number} has a context, the sampler has none",
                'name its variables, as in EDRBOSampler(context={"c": (0, 1)})',
            )
        try:
            read_context(self._settings.space, given)
        except InvalidContextError as problem:
            raise InvalidContextError(f"trial {trial.number}: {problem.message}", problem.hint) from None

    def recommend(
        self,
        study: optuna.Study,
        *,
        forecast: Any = None,
        context: Any = None,
        goal: Goal | str | None = None,
        radius: float = 0.1,
    ) -> Recommendation:
        """The parameters that are best under the goal, which need not be those of ``study.best_trial``.

        Parameters that not every trial has are left open, and the answer says so (``left_open``).

        Args:
            study: The Optuna study.
            forecast: Samples of the contexts to expect, in place of the distribution that is estimated.
            context: The context that will be met.
            goal: Another goal than the sampler's: a text such as "cvar:0.1", or a ``Goal``.
            radius: How far the distribution of contexts may move, for the worst case: a fraction of the context range.
        """
        translation = self._translation(study)
        with self._lock:
            optimizer = self._optimizer(study, translation, len(study.get_trials(deepcopy=False)))
            found = optimizer.recommend(forecast=forecast, context=context, goal=goal, radius=radius)
        fixed, left_open = self._besides(study, translation)
        return found.in_words(lambda design: {**translation.params(design), **fixed}, left_open)

    def _besides(self, study: optuna.Study, translation: Translation) -> tuple[dict[str, Any], list[str]]:
        """Parameters that have one value, and words on those that are not searched."""
        trials = study.get_trials(deepcopy=False)
        common = intersection_search_space(trials)
        fixed = {name: only_value(kind) for name, kind in common.items() if kind.single()}
        every = dict.fromkeys(name for trial in trials for name in trial.params)
        left_open = []
        for name in every:
            if name in common and name not in fixed and name not in translation.distributions:
                left_open.append(f"{name} has too many values to be searched, and is drawn at random")
            elif name not in common:
                left_open.append(f"{name} is not in every trial, or its range changed, and is drawn at random")
        return fixed, left_open

    def front(
        self,
        study: optuna.Study,
        *,
        reference: Mapping[str, float] | None = None,
        forecast: Any = None,
        context: Any = None,
        fixed: Mapping[str, Any] | None = None,
        candidates: Any = None,
    ) -> ParetoFront:
        """Of several main outcomes, the parameters of which none are better in all.

        Args:
            study: The Optuna study.
            reference: Values by main outcome down to which the hypervolume counts; by default just behind the front.
            forecast: Samples of the contexts to expect, in place of the distribution that is estimated.
            context: The context that will be met.
            fixed: Parameters that are held, values by name.
            candidates: The only parameters to choose from.
        """
        translation = self._translation(study)
        with self._lock:
            optimizer = self._optimizer(study, translation, len(study.get_trials(deepcopy=False)))
            found = optimizer.front(
                reference=reference, forecast=forecast, context=context, fixed=fixed, candidates=candidates
            )
        points = tuple(replace(point, design=translation.params(point.design)) for point in found.points)
        return replace(found, points=points)

    def with_contexts(self, study: optuna.Study) -> optuna.Study:
        """A copy for ``optuna.visualization`` and ``optuna.importance``, where contexts are parameters like the others.

        Args:
            study: The Optuna study; its trials without a value, or of which the context is not known, are left out.
        """
        return contexts_as_parameters(study, Space({"design": (0, 1)}, self._context))

    def _translation(self, study: optuna.Study) -> Translation:
        self._check_objectives(study)
        search_space = self._search_space(study)
        if not search_space:
            raise EdrboError("no parameter is common to all finished trials", "run some trials first")
        return Translation.of(search_space, self._context)

    def _optimizer(self, study: optuna.Study, translation: Translation, number: int) -> Optimizer:
        """An optimizer that knows all trials; one that has been used before goes on from its last fit."""
        direction: Direction = "minimize" if study.directions[0] == StudyDirection.MINIMIZE else "maximize"
        cost: Any = cost_of_designs(self._cost, translation)
        known: Any = self._earlier
        settings = replace(self._settings, space=translation.space, direction=direction, cost=cost, earlier=known)
        key = f"{study._study_id} {direction} {translation.distributions!r}"
        seen = study.user_attrs.get(CONTEXTS)
        state = translation.state(settings, study.get_trials(deepcopy=False), seen, number)
        if key in self._optimizers:
            self._optimizers[key].go_on(state)
        else:
            self._optimizers = {key: Optimizer.of(state)}
        return self._optimizers[key]

    def _check_objectives(self, study: optuna.Study) -> None:
        """As many as there are main outcomes, each in its direction."""
        outcomes = self._settings.outcomes
        if outcomes is None:
            if len(study.directions) != 1:
                raise ValueError("EDRBOSampler has one objective; for several give it outcomes, or use another sampler")
            return
        wanted = [outcomes.wanted[name].direction for name in outcomes.mains]
        given = ["minimize" if one == StudyDirection.MINIMIZE else "maximize" for one in study.directions]
        if wanted != given:
            hint = "the objectives of a study are the main outcomes of its sampler, in their order"
            raise InvalidValueError(f"the study's directions are {given}, those of the outcomes {wanted}", hint)
