"""A request for suggestions or a recommendation: the distribution of the context, and the candidate set.

These are all designs of a space, those with some variables held, or those of a list.

aim="identify" (best final design): some suggestions explore, maximizing the distance to all tried designs.

An overconfident model never finds out that it is wrong. Where only the final design counts, exploration costs no more
than an evaluation; but evaluations are spent best near the best design. So one suggestion explores after the initial
designs, and then a share of them that equals the average regret since, as the model estimates it today, in units of the
regret of all initial designs. Easy problems hardly explore; where regret goes on, exploration goes on (the journal has
the trials).

No record is kept of which suggestions explored: they follow from the outcomes and from the number of the suggestion, so
they are the same whatever was interrupted. In batches the one after the initial designs is left out where its number
was asked for before they were reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.acquisition.objective import Objective
from edrbo.acquisition.search.maximizer import BUDGET, Budget, best_listed, maximize
from edrbo.contexts.distributions import sobol_points
from edrbo.contexts.partial import Donors
from edrbo.errors import (
    AllTriedError,
    InvalidContextError,
    InvalidDesignError,
    InvalidSpaceError,
    InvalidValueError,
)
from edrbo.optimizer.training_data import TrainingData
from edrbo.records.input_reading import need_contexts, read_one_context
from edrbo.records.state import State
from edrbo.space import Region, Space
from edrbo.space.point_tables import close_match
from edrbo.streams import in_turn

REGRET_RATE = 1.0  # explorations for a regret as large as that of all initial designs
MAX_SHARE = 1.0 / 3.0  # of suggestions that explore
MOST_WORTH = 1024  # reported designs whose worth is asked for
FINAL_SHARE = 0.2  # of the evaluations that are planned: too late to follow up what is found


def is_exploring(worth: NDArray[np.float64], initial: int, pending: int, planned: int | None) -> bool:
    """Whether the next suggestion explores, given what each reported design is ``worth`` (n, in the order of reports)
    by the model; ``initial`` of them came first, ``pending`` others are being evaluated."""
    number = len(worth) + pending
    if len(worth) < initial or (planned is not None and number >= (1.0 - FINAL_SHARE) * planned):
        return False
    if number == initial:
        return True
    return in_turn(number - initial) < exploration_share(worth, initial)


def looked_at(count: int, initial: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The reported designs, by number, of which it is asked what they are worth, and for each of all ``count`` the
    place of the one that stands for it: of very many later ones some, at even steps, stand for those after them."""
    everything = np.arange(count)
    if count <= MOST_WORTH:
        return everything, everything
    later = np.linspace(initial, count - 1, MOST_WORTH).astype(np.intp)
    rows = np.unique(np.concatenate([everything[:initial], later]))
    return rows, np.searchsorted(rows, everything, side="right") - 1


def exploration_share(worth: NDArray[np.float64], initial: int) -> float:
    """The share of suggestions that explore, at most ``MAX_SHARE``."""
    regret = worth.max() - worth
    first, later = regret[:initial].sum(), regret[initial:].sum()
    if not first > 0:  # all initial designs are the same: nothing says what regret is much
        return 0.0
    return min(MAX_SHARE, REGRET_RATE * float(later / first) / (len(worth) - initial + 1))


Array = NDArray[np.float64]
# A forecast (n × d_c), or one context (1 × d_c); or contexts that one may be of which a part is known (n × d_c), and
# whose they are.
ForecastOrContext = tuple[Array | None, Array | None] | tuple[Array, None, Donors]


class RequestOptions(TypedDict, total=False):
    """Keyword arguments of ``recommend``, and with ``repeat`` of ``ask``."""

    forecast: Any
    context: Any
    fixed: Mapping[str, Any] | None
    candidates: Any


@dataclass(frozen=True, eq=False)
class AskRequest:
    context_distribution: ForecastOrContext
    candidates: CandidateSet
    repeat: bool = True  # whether listed designs may be suggested that were reported already

    def of(self, data: TrainingData) -> AskRequest:
        """Until a context has been met here, those of earlier studies are expected, unless another is."""
        forecast, given, *_ = self.context_distribution
        if forecast is not None or given is not None or data.knows_contexts or not len(data.earlier_contexts):
            return self
        return replace(self, context_distribution=(data.earlier_contexts, None))

    def taken(self, state: State) -> list[Array]:
        """Designs of a list that are not to be suggested."""
        return [*state.pending.values(), *([] if self.repeat else state.observations.x)]


def read_request(
    state: State,
    *,
    forecast: Any = None,
    context: Any = None,
    fixed: Mapping[str, Any] | None = None,
    candidates: Any = None,
    repeat: bool | None = None,
) -> AskRequest:
    """``repeat`` is by default as it makes sense: another context may come, the same one tells nothing new."""
    if repeat is not None and candidates is None:
        raise InvalidValueError("repeat is for candidates", "give candidates, or leave it out")
    if not isinstance(repeat, bool | None):
        raise InvalidValueError(f"repeat is {repeat!r}", "it is True or False")
    again = bool(state.space.d_c) if repeat is None else repeat
    return AskRequest(
        read_distribution(state, forecast, context), read_candidates(state.space, fixed, candidates), again
    )


def read_distribution(state: State, forecast: Any, context: Any) -> ForecastOrContext:
    """A context of which a part is known is a forecast: those that it may be, given that part."""
    space = state.space
    if forecast is not None and context is not None:
        raise InvalidContextError("both a forecast and a context were given", "give one of them")
    if forecast is not None:
        need_contexts(space)
        rows = space.read_contexts(forecast)
        if not len(rows):
            raise InvalidContextError("the forecast is empty", "give at least one sample, or no forecast")
        return rows, None
    if context is None:
        return None, None
    row = read_one_context(space, context, partial=True)
    if not np.isnan(row).any():
        return None, row[None]
    likely, donors = TrainingData(state, uses_context=True).likely(row)
    return likely, None, donors


BLOCK = 64  # designs that fill a region together, and
CLOUD = 1024  # quasi-random points from which they are taken
SAME_DESIGN = 1e-9  # how close the codes of one design are


@dataclass(frozen=True, eq=False)
class CandidateSet:
    """``region`` is None where nothing limits the designs of ``space``; of ``listed`` designs (n × d_x) only those
    count."""

    space: Space
    region: Region | None = None
    listed: Array | None = None

    def admit(self, points: Array) -> Array:
        """Designs that can be chosen near ``points`` (n × d_x); all listed ones."""
        if self.listed is not None:
            return self.listed
        return self.space.snap(points) if self.region is None else self.region.admit(points)

    def starts(self, tried: Tensor) -> Tensor:
        """Of designs ``tried`` (n × d_x) what a search may begin with."""
        limited = self.region is not None or self.listed is not None
        return torch.from_numpy(self.admit(tried.numpy())) if limited else tried

    def initial(self, index: int, seed: int) -> Array:
        """Number ``index`` of a quasi-random sequence of designs (d_x)."""
        if self.region is None or self.listed is not None:
            point: Array = sobol_points(self.space.d_x, index + 1, seed)[-1].numpy()
            if self.listed is None:
                return self.space.snap(point)
            nearest: Array = self.listed[np.square(self.listed - point).sum(axis=1).argmin()]
            return nearest
        blocks = index // BLOCK + 1
        cloud = sobol_points(self.space.d_x, CLOUD * blocks, seed).numpy()
        found = self.region.points(cloud, BLOCK * blocks, seed)
        chosen: Array = found[index % len(found)]
        return chosen

    def best(
        self,
        approximations: Sequence[Objective],
        *,
        seed: int,
        starts: Tensor,
        kinks: bool,
        budget: Budget = BUDGET,
    ) -> Tensor:
        """The design (d_x) with the largest objective ``approximations[-1]``."""
        if self.listed is not None:
            return best_listed(approximations, torch.from_numpy(self.listed)).x
        found = maximize(
            approximations, self.space, seed=seed, starts=starts, kinks=kinks, region=self.region, budget=budget
        )
        return found.x

    def settled(self, x: Tensor) -> Tensor:
        """``x`` (d_x) on the steps, where nothing else has put it there."""
        limited = self.region is not None or self.listed is not None
        return x if limited else torch.from_numpy(self.space.snap(x.numpy()))

    def without(self, taken: Sequence[Array]) -> CandidateSet:
        """The same list less designs that are taken; AllTriedError if none is left."""
        if self.listed is None or not len(taken):
            return self
        apart = np.abs(self.listed[:, None] - np.stack(taken)).max(axis=2)
        left = self.listed[(apart > SAME_DESIGN).all(axis=1)]
        if not len(left):
            raise AllTriedError(
                f"all {len(self.listed)} candidates have been tried or are being tried",
                "give others, or repeat=True to run some again",
            )
        return replace(self, listed=left)


def read_candidates(space: Space, fixed: Mapping[str, Any] | None = None, candidates: Any = None) -> CandidateSet:
    """From what people give: values by name that are held, and designs of which one is to be chosen."""
    region = space.region if fixed is None else _holding(space, fixed)
    return CandidateSet(space, region, None if candidates is None else _listed(space, region, candidates))


def _holding(space: Space, fixed: Any) -> Region | None:
    if not isinstance(fixed, Mapping):
        raise InvalidDesignError(f"fixed is {fixed!r}", 'give values by name, as in fixed={"speed": 30}')
    held = np.full(space.d_x, np.nan)
    for name, value in fixed.items():
        column = next((column for column in space.columns if column.name == name), None)
        if column is None:
            hint = close_match(name, space.design_names, f"the design variables are {list(space.design_names)}")
            raise InvalidDesignError(f"{name!r} is not a design variable", hint)
        if np.ndim(value):
            raise InvalidDesignError(f"{name!r} is held at {value!r}", "a variable is held at one value")
        held[column.start : column.stop] = space.design[name].encode(name, np.array([value], dtype=object))[0]
    if np.isnan(held).all():
        return space.region
    try:
        return Region(list(space.design.items()), held=held) if space.region is None else space.region.holding(held)
    except InvalidSpaceError as problem:
        raise InvalidDesignError(problem.message, "hold other values, or fewer") from None


def _listed(space: Space, region: Region | None, candidates: Any) -> Array:
    rows = np.unique(space.encode_designs(candidates), axis=0)
    if not len(rows):
        raise InvalidDesignError("there are no candidates", "give at least one design")
    if region is None:
        return rows
    inside = rows[
        region.inside(rows) & (np.isnan(region.held) | (np.abs(rows - region.held) <= SAME_DESIGN)).all(axis=1)
    ]
    if not len(inside):
        what = "what is held or must hold" if not np.isnan(region.held).all() else "the constraints"
        raise InvalidDesignError(f"none of the {len(rows)} candidates agrees with {what}", "give others")
    return inside
