"""The Pareto front of two or three outcomes, each design with its limits kept."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.acquisition.hypervolume import hypervolume, not_dominated, reference_of
from edrbo.acquisition.objective import ObjectiveWrapper
from edrbo.acquisition.penalties import LimitPenalty
from edrbo.charts import Axis, Chart, Line, Points, chart_image, span
from edrbo.contexts.distributions import sobol_points
from edrbo.errors import EdrboError, InvalidValueError, UnknownNameError
from edrbo.html_table import html_table
from edrbo.optimizer.candidates import CandidateSet
from edrbo.optimizer.constrained import ConstrainedRecommender, recommender_of
from edrbo.optimizer.recommendation import Recommender, best_feasible
from edrbo.records.descriptions import outcome_headings
from edrbo.records.outcomes import Outcomes
from edrbo.records.settings import Settings
from edrbo.records.validation import read_number
from edrbo.text import describe_doubt, describe_hypervolume, front_table

Array = NDArray[np.float64]

DIRECTIONS = {2: 8, 3: 4}  # steps between one outcome alone and another, for each number of outcomes
SPREAD = 512  # quasi-random designs looked at besides
SLANT = 0.05  # of the sum, beside the least: what is worse in one outcome only is not as good
MAX_POINTS = 16
CAUTION = 2.0  # standard deviations by which limits are kept


@dataclass(frozen=True)
class ParetoPoint:
    """A design and what is expected of it: by main outcome the posterior expectation of its goal's value and a 95 %
    interval; by limit the probability that it holds as asked."""

    design: dict[str, Any]
    values: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    holds: dict[str, float]


@dataclass(frozen=True)
class ParetoFront:
    """``points`` from the best in the first outcome on, none better than another in all.

    ``hypervolume`` is what they dominate, down to ``reference``, in the users' units multiplied; ``sure`` says whether
    all limits hold with the confidence asked for at every point (if no design is so sure, the surest are shown).
    """

    points: tuple[ParetoPoint, ...]
    hypervolume: float
    reference: dict[str, float]
    sure: bool
    settings: Settings = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the settings by name, in plain types."""
        named = {part.name: getattr(self, part.name) for part in fields(self) if part.name != "settings"}
        return {**named, "points": [asdict(point) for point in self.points]}

    def __str__(self) -> str:
        """A line for each design, and what they dominate."""
        heads, rows = front_table(self.settings, self)
        lines = ["; ".join(f"{head} {cell}" for head, cell in zip(heads, row, strict=True)) for row in rows]
        return "\n".join([*lines, *self._below])

    def _repr_html_(self) -> str:
        """A table of its designs and a picture of its first two outcomes, for notebooks."""
        return html_table("Pareto front", *front_table(self.settings, self), self._below, chart_image(self._chart()))

    @property
    def _below(self) -> list[str]:
        return list(filter(None, [describe_hypervolume(self), describe_doubt(self)]))

    def _chart(self) -> Chart:
        one, other = list(self.reference)[:2]
        points = sorted(self.points, key=lambda point: point.values[one])
        (x, left, right), (y, lower, upper) = (
            (
                [point.values[name] for point in points],
                *([_finite(point.intervals[name][side], point.values[name]) for point in points] for side in (0, 1)),
            )
            for name in (one, other)
        )
        marks = (
            Line(x, y, "green"),
            Points(x, y, "green", "average, 95 %", lower=lower, upper=upper, left=left, right=right, size=4.5),
        )
        heads = outcome_headings(self.settings)
        across, upward = Axis.of(heads[one], span([*left, *right])), Axis.of(heads[other], span([*lower, *upper]))
        return Chart(f"{other} against {one}", across, upward, marks)


def _finite(end: float, middle: float) -> float:
    return end if math.isfinite(end) else middle


def find_pareto_front(
    knowns: Mapping[str, Recommender],
    outcomes: Outcomes,
    candidates: CandidateSet,
    reference: Mapping[str, float] | None,
) -> ParetoFront:
    """From what is known of every outcome; ``reference`` is in the user's units, by default just behind the front."""
    given = None if reference is None else _read_reference(reference, outcomes.mains)
    recommender = recommender_of(knowns, candidates)
    x, sure = _sure_ones(recommender, _candidates(recommender))
    senses = torch.tensor([knowns[name].model_goal.sense for name in outcomes.mains], dtype=torch.float64)
    x = x[_chosen(_values(recommender, x))]
    said = [knowns[name].predict(x) for name in outcomes.mains]
    values = torch.from_numpy(np.stack([one.value for one in said], axis=-1))
    kept = not_dominated(senses * values)
    order = torch.argsort(-(senses * values)[kept][:, 0], stable=True)
    rows = torch.arange(len(x))[kept][order].tolist()
    better = (senses * values)[rows]
    sizes = torch.tensor([_size(knowns[name]) for name in outcomes.mains], dtype=torch.float64)
    behind = senses * sizes * reference_of(better / sizes) if given is None else given
    holds = {name: chance.holds(x[rows]) for name, chance in zip(outcomes.limits, recommender.chances, strict=True)}
    designs = candidates.space.decode_designs(x[rows].numpy())
    points = [
        ParetoPoint(
            design=design,
            values={name: float(one.value[row]) for name, one in zip(outcomes.mains, said, strict=True)},
            intervals={
                name: (float(one.value_lower[row]), float(one.value_upper[row]))
                for name, one in zip(outcomes.mains, said, strict=True)
            },
            holds={name: float(held[k]) for name, held in holds.items()},
        )
        for k, (row, design) in enumerate(zip(rows, designs, strict=True))
    ]
    volume = hypervolume(better / sizes, senses * behind / sizes) * float(sizes.prod())
    return ParetoFront(
        tuple(points),
        volume,
        dict(zip(outcomes.mains, behind.tolist(), strict=True)),
        sure,
        knowns[outcomes.main].training_data.state.settings,
    )


def _size(known: Recommender) -> float:
    """How far values of an outcome's goal may be apart, in its own units."""
    wide = float(known.model_goal.units.spread_to_user(known.posterior.outcome_range))
    return {"outcome": wide, "probability": 1.0, "squared outcome": wide**2}[known.model_goal.goal.kind]


def _candidates(recommender: ConstrainedRecommender) -> Tensor:
    """The best designs in several directions between the outcomes, those tried, and some from everywhere (N × d_x)."""
    top = recommender.joint.cautious(recommender.chances, CAUTION if recommender.chances else 0.0)
    spread = torch.from_numpy(
        recommender.candidates.admit(sobol_points(recommender.candidates.space.d_x, SPREAD, recommender.seed).numpy())
    )
    found = torch.cat([recommender.starts, spread])
    values = _values(recommender, found)
    low, size = values.amin(0), (values.amax(0) - values.amin(0)).clamp_min(1e-300)
    for direction in _directions(values.shape[-1]):
        approximations = [_Scalar(level, direction / size, low) for level in top]
        least = recommender.joint.least_success
        x = best_feasible(
            approximations, recommender.joint.main, recommender.candidates, found, recommender.seed, least, kinks=True
        )
        found = torch.cat([found, recommender.candidates.settled(x)[None]])
    return torch.from_numpy(np.unique(found.numpy(), axis=0))


def _directions(count: int) -> list[Tensor]:
    """Weights (count) that sum to one, on a lattice."""
    steps = DIRECTIONS[count]
    lattice = [part for part in itertools.product(range(steps + 1), repeat=count) if sum(part) == steps]
    return [(torch.tensor(part, dtype=torch.float64) / steps).clamp_min(0.01) for part in lattice]


@dataclass(frozen=True, eq=False)
class _Scalar(ObjectiveWrapper):
    """The least of the weighted values above ``low`` and a little of their sum (Chebyshev's, augmented), under the
    penalties of ``limited``."""

    objective: LimitPenalty
    weights: Tensor
    low: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        values = torch.stack([weight * objective(x) for weight, objective in self.objective.terms], dim=-1)
        apart = self.weights * (values - self.low)
        penalty = self.objective.worth(x) - self.objective(x)
        value: Tensor = apart.amin(-1) + SLANT * apart.sum(-1) - float(self.weights.max()) * penalty
        return value

    def value_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        parts = [(weight, *objective.value_and_gradient(x)) for weight, objective in self.objective.terms]
        values = torch.stack([weight * value for weight, value, _ in parts], dim=-1)
        slopes = torch.stack([weight * gradient for weight, _, gradient in parts], dim=1)  # N × K × d_x
        apart = self.weights * (values - self.low)
        least, which = apart.min(-1)
        shares = SLANT * self.weights + torch.nn.functional.one_hot(which, len(self.weights)) * self.weights
        total, slope = self.objective.value_and_gradient(x)
        scale = float(self.weights.max())
        value = least + SLANT * apart.sum(-1) + scale * (total - values.sum(-1))
        return value, (shares[..., None] * slopes).sum(1) + scale * (slope - slopes.sum(1))


def _values(recommender: ConstrainedRecommender, x: Tensor) -> Tensor:
    """Cautious values (N × K) at designs ``x``, larger is better."""
    top = recommender.joint.cautious((), 0.0)[-1]
    with torch.no_grad():
        return torch.stack([weight * objective(x) for weight, objective in top.terms], dim=-1)


def _sure_ones(recommender: ConstrainedRecommender, x: Tensor) -> tuple[Tensor, bool]:
    """Those of designs (N × d_x) whose limits hold with confidence, or nearly as surely as the surest."""
    if not recommender.chances:
        return x, True
    x = torch.from_numpy(recommender.admit(x.numpy())) if len(recommender.admit(x.numpy())) else x
    kept, sure = recommender.surest(x)
    return x[torch.from_numpy(kept)], sure


def _chosen(values: Tensor) -> Tensor:
    """Rows of a front of values (N × K): few, and far apart."""
    rows = torch.arange(len(values))[not_dominated(values)]
    size = (values[rows].amax(0) - values[rows].amin(0)).clamp_min(1e-300)
    taken = sorted(set(values[rows].argmax(0).tolist()))  # the best in each outcome
    while len(taken) < min(MAX_POINTS, len(rows)):
        apart = ((values[rows][:, None] - values[rows][taken]) / size).abs().amax(-1).amin(-1)
        if float(apart.max()) <= 0.0:
            break
        taken.append(int(apart.argmax()))
    return rows[taken]


def _read_reference(given: Any, names: Sequence[str]) -> Tensor:
    if not isinstance(given, Mapping):
        raise InvalidValueError(f"the reference is {given!r}", f"give a number for each of {', '.join(names)}")
    for name in given:
        if name not in names:
            raise UnknownNameError(f"{name!r} is not a main outcome", f"they are {', '.join(names)}")
    numbers = [read_number(given.get(name)) for name in names]
    if not np.isfinite(numbers).all():
        raise InvalidValueError(f"the reference is {dict(given)}", f"give a number for each of {', '.join(names)}")
    return torch.tensor(numbers, dtype=torch.float64)


def need_pareto_front(outcomes: Outcomes | None) -> Outcomes:
    """EdrboError where one design is the best."""
    if outcomes is None or len(outcomes.mains) < 2:
        hint = "recommend() gives it; several outcomes without a weight have a front"
        raise EdrboError("there is one main outcome, and so one best design", hint)
    return outcomes
