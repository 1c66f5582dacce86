"""Contexts in Optuna's pictures: a copy of a study in which what the world set stands among the parameters."""

from __future__ import annotations

from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial

from edrbo.errors import EdrboError, InvalidContextError
from edrbo.integrations.optuna.translation import CONTEXT, read_context
from edrbo.space import Space


def contexts_as_parameters(study: optuna.Study, space: Space) -> optuna.Study:
    """In memory; of the trials those that are complete and whose context is known in full."""
    found = [(trial, values) for trial in study.trials if (values := _context_of(trial, space)) is not None]
    if not found:
        raise EdrboError("no complete trial has a context", "set the user attribute context of each trial")
    known = {name for trial, _ in found for name in trial.params}
    titles = {name: f"context {name}" if name in known else name for name in space.context_names}
    kinds = {name: _kind([values[name] for _, values in found]) for name in space.context_names}
    copy = optuna.create_study(directions=study.directions, study_name=study.study_name)
    for trial, values in found:
        copy.add_trial(
            create_trial(
                state=trial.state,
                values=trial.values,
                params={**trial.params, **{titles[name]: value for name, value in values.items()}},
                distributions={**trial.distributions, **{titles[name]: kinds[name] for name in values}},
                user_attrs=trial.user_attrs,
            )
        )
    return copy


def _context_of(trial: FrozenTrial, space: Space) -> dict[str, Any] | None:
    if trial.state != TrialState.COMPLETE or trial.user_attrs.get(CONTEXT) is None or not space.d_c:
        return None
    try:
        values = space.name_contexts(read_context(space, trial.user_attrs[CONTEXT]))[0]
    except InvalidContextError:
        return None
    return values if len(values) == len(space.context_names) else None


def _kind(values: list[Any]) -> BaseDistribution:
    """What was seen, from end to end."""
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return FloatDistribution(float(min(values)), float(max(values)))
    return CategoricalDistribution(tuple(dict.fromkeys(values)))
