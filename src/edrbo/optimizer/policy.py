"""A policy: the best design for each context, and what it is worth to know the context before choosing.

    x*       the one best design, under the goal and the distribution of contexts
    x*(c)    the best design once the context is known; once some of it is, the best on average over the rest given that
    worth    goal of f(x*(c), c) less goal of f(x*, c), both over the distribution of contexts

Better outcomes never make a monotone goal worse, so that under each of these x*(c) is best at each context by itself.
Where only some variables are known, it is the best for the mean over the rest.

The worth is of the policy as it is known now. Its interval is that of the difference: f at both designs of a context is
drawn together, and so are the distributions, so that what moves both values alike does not count (``paired_values``).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.charts import Axis, Chart, Line, Mark, Points, chart_image, span
from edrbo.contexts.distributions import ContextPoints, box_points, compress
from edrbo.contexts.partial import COMPLETIONS, complete, thinned
from edrbo.contexts.uncertainty import DistributionUncertainty
from edrbo.errors import EdrboError, InvalidContextError
from edrbo.html_table import html_table
from edrbo.optimizer.candidates import CandidateSet
from edrbo.optimizer.goal_posterior import FEW_SUPPORT, paired_values, text_of
from edrbo.optimizer.recommendation import Recommender, best_design
from edrbo.records.descriptions import heading
from edrbo.records.settings import Settings
from edrbo.space import Variable
from edrbo.space.context_scale import ContextScale
from edrbo.space.point_tables import close_match
from edrbo.text import policy_table, policy_text

Array = NDArray[np.float64]

ATOMS = 64  # contexts of the distribution in which both designs are looked at: two points each of one joint draw
CURVE, SIDE = 21, 9  # contexts of the table: of one variable, and of each of two
MOST_ROWS, FEW_ROWS = 128, 24  # of a grid, and of a table where a grid would be larger


@dataclass(frozen=True)
class PolicyRow:
    """The best ``design`` where ``context`` is known, and what is ``expected`` of it there, with its 95 % interval."""

    context: dict[str, Any]
    design: dict[str, Any]
    expected: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class Policy:
    """The best design for each context, in the user's units and direction.

    goal          what best means over the distribution of contexts, as text; ``title`` in words
    known         the context variables that are known before the design is chosen
    rows          the table: a grid over the contexts seen, or the contexts asked for
    one           the one design that is best without knowing
    value         the goal's value when the design follows the policy, with its 95 % ``value_interval``
    one_value     the same when it is always ``one``, with ``one_interval``
    worth         by how much the policy is better, a gain in either direction; with its 95 % ``worth_interval``
    settings      those of the experiment
    """

    goal: str
    title: str
    known: tuple[str, ...]
    rows: tuple[PolicyRow, ...]
    one: dict[str, Any]
    value: float
    value_interval: tuple[float, float]
    one_value: float
    one_interval: tuple[float, float]
    worth: float
    worth_interval: tuple[float, float]
    settings: Settings = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the settings by name, in plain types."""
        named = {part.name: getattr(self, part.name) for part in fields(self) if part.name != "settings"}
        return {**named, "rows": [asdict(row) for row in self.rows]}

    def __str__(self) -> str:
        """The table, and what the policy is worth."""
        heads, rows = policy_table(self.settings, self)
        lines = ["; ".join(f"{head} {cell}" for head, cell in zip(heads, row, strict=True)) for row in rows]
        return "\n".join([*policy_text(self.settings, self), *lines])

    def _repr_html_(self) -> str:
        """The same with a picture, for notebooks."""
        below = policy_text(self.settings, self)
        return html_table("Policy", *policy_table(self.settings, self), below, chart_image(self._chart()))

    def _chart(self) -> Chart:
        """What to set that moves most, against the first context that is known."""
        space, met = self.settings.space, self.known[0]
        coded = space.encode_designs([row.design for row in self.rows])
        moves = [np.ptp(coded[:, part.start : part.stop], axis=0).max() for part in space.columns]
        name = space.design_names[int(np.argmax(moves))]
        across, x = _axis(met, space.context[met], [row.context[met] for row in self.rows])
        upward, y = _axis(name, space.design[name], [row.design[name] for row in self.rows] + [self.one[name]])
        one = Line([across.low, across.high], [y[-1]] * 2, "grey", "without knowing", dashed=True)
        marks: tuple[Mark, ...] = (one, Points(x, y[:-1], label="best where it is known", size=4.0))
        if len(self.known) == 1:
            marks = (*marks, Line(x, y[:-1], thin=True))
        return Chart(f"{name} by {met}", across, upward, marks)


def _axis(name: str, variable: Variable, values: list[Any]) -> tuple[Axis, list[float]]:
    """An axis for values of a variable, and their places on it."""
    title = heading(name, variable.unit)
    if variable.numeric:
        places = [float(value) for value in values]
        return Axis.of(title, span(places)), places
    labels = list(dict.fromkeys(variable.text(value) for value in values))
    return Axis.of(title, (0.0, 1.0), labels), [float(labels.index(variable.text(value))) for value in values]


def find_policy(
    known: Recommender, one: Tensor, candidates: CandidateSet, least_success: float, names: Any, contexts: Any
) -> Policy:
    """The policy of what is ``known``, beside the best design ``one`` (d_x).

    ``names`` are the context variables that are known before (None: all), ``contexts`` those of the table.
    """
    space, settings = known.training_data.space, known.training_data.state.settings
    tolerances = known.tolerances
    if known.posterior.points.atoms.shape[1] == (0 if tolerances is None else tolerances.count):
        raise EdrboError("this method takes contexts for noise", "choose a method that models contexts, as edrbo does")
    chosen = _read_names(names, space.context_names)
    finder = _Finder(known, candidates, least_success, np.isin(space.context_names, chosen))
    shown = finder.table(chosen) if contexts is None else _read_contexts(known, chosen, contexts)
    rows = tuple(finder.row(row) for row in shown)

    goal, model_goal = known.model_goal.goal, known.model_goal
    at = finder.distribution
    support = finder.support
    points = ContextPoints(at.contexts, at.weights, support, levels=at.levels)
    seen = points.all if tolerances is None else points.all[:, tolerances.count :]
    distinct, which = np.unique(seen.numpy(), axis=0, return_inverse=True)
    designs = torch.stack([finder.best(row)[0] for row in finder.scale.decode(distinct)])
    follows = designs[torch.from_numpy(which.reshape(-1))]
    both = paired_values(
        model_goal,
        known.answers.model_under(goal),
        points,
        at.effective,
        follows,
        one.expand_as(follows),
        known.trust,
        known.seed,
        at.groups,
    )
    (value, ends), (one_value, one_ends), (worth, worth_ends) = both
    if known.trust.freedom == 0.0:  # one outcome has no scale
        ends = one_ends = worth_ends = (-math.inf, math.inf)
    return Policy(
        goal=text_of(goal),
        title=goal.title(settings.direction, settings.outcome),
        known=chosen,
        rows=rows,
        one=space.decode_designs(one.numpy())[0],
        value=value,
        value_interval=ends,
        one_value=one_value,
        one_interval=one_ends,
        worth=worth,
        worth_interval=worth_ends,
        settings=settings,
    )


@dataclass(frozen=True, eq=False)
class _Finder:
    """Finds the best design of a context; ``observed`` (d_c) are the variables that are known of it."""

    known: Recommender
    candidates: CandidateSet
    least_success: float
    observed: NDArray[np.bool_]

    @property
    def scale(self) -> ContextScale:
        return self.known.training_data.scale()

    @property
    def distribution(self) -> DistributionUncertainty:
        """On the contexts that both designs are looked at in: of many some, with their extremes where tails count."""
        known = self.known
        tails = known.model_goal.goal.of_outcomes
        return (known.context_distribution.thinned_to_extremes if tails else known.context_distribution.thinned)(ATOMS)

    @property
    def support(self) -> Tensor:
        """Contexts of the box besides, under goals that look there."""
        answers, contexts = self.known.answers, self.known.context_distribution
        if not self.known.model_goal.goal.over_box:
            return contexts.contexts[:0]
        return box_points(answers.lower, answers.upper, FEW_SUPPORT, contexts.levels)

    @cached_property
    def seen(self) -> ContextPoints:
        """The distribution of contexts."""
        dist, tolerances = self.known.context_distribution, self.known.tolerances
        points = ContextPoints(dist.contexts, dist.weights, dist.contexts[:0], levels=dist.levels)
        return points if tolerances is None else tolerances.contexts(points)

    def given(self, row: Array) -> ContextPoints:
        """What a context may be of which the known part of ``row`` (d_c) is known, beside tolerances if there are."""
        points, tolerances = self._contexts(row), self.known.tolerances
        return points if tolerances is None else tolerances.points(points)

    def _contexts(self, row: Array) -> ContextPoints:
        scale, dist = self.scale, self.seen
        if self.observed.all():
            atoms = torch.from_numpy(scale.encode(row[None]))
            return ContextPoints(atoms, atoms.new_ones(1), atoms[:0], levels=dist.levels)
        part = np.where(self.observed, row, np.nan)
        found = thinned(complete(part, scale.decode(dist.atoms.numpy()), dist.weights.numpy(), scale), COMPLETIONS)
        atoms, weights = torch.from_numpy(found.contexts), torch.from_numpy(found.weights)
        return ContextPoints(atoms, weights / weights.sum(), atoms[:0], levels=dist.levels)

    def best(self, row: Array) -> tuple[Tensor, ContextPoints]:
        """The best design (d_x) where ``row`` (d_c) is known, and what the context may be."""
        points, known = self.given(row), self.known
        feasibility = known.posterior.feasibility
        if feasibility is not None and (width := feasibility.atoms.shape[1]):
            own = points.atoms[:, points.atoms.shape[1] - width :]
            feasibility = replace(feasibility, atoms=own, weights=points.weights)
        tolerances = known.tolerances
        goal = known.model_goal.given_context() if tolerances is None else tolerances.goal(known.model_goal)
        posterior = replace(known.posterior, points=points, smooth=None, model_goal=goal, feasibility=feasibility)
        starts = known.training_data.starts()
        x = best_design(posterior, self.candidates, starts, known.seed, self.least_success)
        return self.candidates.settled(x), points

    def row(self, row: Array) -> PolicyRow:
        """Of the table: where ``row`` (d_c) is known."""
        x, points = self.best(row)
        known, data = self.known, self.known.training_data
        with torch.no_grad():
            mean, sd = known.worlds.paired_with(points.atoms).integrated(x[None], points.weights)
        weights = known.worlds.weights
        shares = mean.new_full((len(mean),), 1.0 / len(mean)) if weights is None else weights
        center = float(shares @ mean[:, 0])
        spread = math.sqrt(float(shares @ (sd[:, 0].square() + (mean[:, 0] - center).square())))
        half = known.trust.reach * spread if spread > 0.0 else 0.0
        value, *ends = (float(data.units.to_user(number)) for number in (center, center - half, center + half))
        observed = [name for name, seen in zip(data.space.context_names, self.observed, strict=True) if seen]
        met = data.space.name_contexts(row[None])[0]
        return PolicyRow(
            context={name: met[name] for name in observed},
            design=data.space.decode_designs(x.numpy())[0],
            expected=value,
            interval=(min(ends), max(ends)),
        )

    def table(self, names: Sequence[str]) -> list[Array]:
        """Contexts (d_c each) of a grid over those of the distribution; or of many variables some of these."""
        space, scale = self.known.training_data.space, self.scale
        seen = scale.decode(self.seen.atoms.numpy())
        variables, count = space.context, CURVE if len(names) == 1 else SIDE
        axes = []
        for k, name in enumerate(space.context_names):
            values = seen[:, k]
            if name not in names:
                axes.append(np.array([np.nan]))
            elif variables[name].size:
                axes.append(np.unique(values))
            elif variables[name].log:
                axes.append(np.unique(np.geomspace(values.min(), values.max(), count)))
            else:
                axes.append(np.unique(np.linspace(values.min(), values.max(), count)))
        if math.prod(len(axis) for axis in axes) > MOST_ROWS:
            few = compress(self.seen.atoms, self.seen.weights, FEW_ROWS, discrete=self.seen.discrete).atoms.numpy()
            rows = np.unique(np.where(self.observed, scale.decode(few), np.nan), axis=0)
            return list(rows)
        return [np.array(row) for row in itertools.product(*axes)]


def _read_names(given: Any, names: Sequence[str]) -> tuple[str, ...]:
    """Of context variables, in the order of naming."""
    if given is None:
        return tuple(names)
    wanted = [given] if isinstance(given, str) else list(given)
    for name in wanted:
        if name not in names:
            hint = close_match(str(name), names, f"the context variables are {', '.join(names)}")
            raise InvalidContextError(f"{name!r} is not a context variable", hint)
    if not wanted:
        raise InvalidContextError("no context variable is known", "name at least one, or leave it out")
    return tuple(name for name in names if name in wanted)


def _read_contexts(known: Recommender, names: Sequence[str], contexts: Any) -> list[Array]:
    """Those of the table (d_c each), of which all of ``names`` have to be known."""
    space = known.training_data.space
    listed = [contexts] if isinstance(contexts, Mapping) else contexts
    rows = space.read_contexts(listed, partial=True)
    lacking = [name for k, name in enumerate(space.context_names) if name in names and np.isnan(rows[:, k]).any()]
    if lacking or not len(rows):
        raise InvalidContextError(
            f"{lacking[0]!r} is missing in a context of the table" if lacking else "the table has no context",
            "give every variable that is known before, or name those that are: known=[…]",
        )
    return list(rows)
