"""What matters: Sobol' indices of designs and contexts, and the shares of an outcome's variance.

    first order  S_k = Var(E[f | z_k]) / Var f       what variable k does by itself
    total        T_k = E[Var(f | all but z_k)] / Var f  what it does with and without the others (Homma, Saltelli 1996)

Designs are uniform over their bounds (of a variable on a logarithmic scale its logarithm), contexts as the learned
distribution has them. Indices of single variables take contexts as independent of each other; the shares of designs and
of contexts as a whole take them as they come together, and designs as the constraints allow.

The estimators are Jansen's (1999) on a Sobol' sequence. f is drawn from the posterior, over the experts and their
hyper-parameters, and every draw has indices of its own: their mean is reported, with its central 95 %. A draw is exact
at ``INDUCING`` points and the posterior mean given these elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.acquisition.search.maximizer import SearchRegion
from edrbo.contexts.distributions import sobol_points
from edrbo.errors import EdrboError
from edrbo.html_table import html_table
from edrbo.optimizer.calibration import LEAST_FREEDOM
from edrbo.optimizer.recommendation import Recommender
from edrbo.records.settings import Settings
from edrbo.streams import stream, stream_seed
from edrbo.surrogate.exact_gp import safe_cholesky
from edrbo.text import sensitivity_table, sensitivity_text

Array = NDArray[np.float64]

BASE, FEW_BASE, MANY_VARIABLES = 1024, 512, 8  # rows of each sample; of more variables than this fewer
INDUCING = 256  # points between which a draw of f is interpolated
DRAWS = 128  # of f, over all members
CLOUD = 4096  # designs that stand for all that constraints allow
AT_BEST = 128  # contexts in which the recommended design is looked at


@dataclass(frozen=True)
class Share:
    """Of a variance: posterior mean and central 95 % interval."""

    value: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class Influence:
    """Of one variable: ``first`` by itself, ``total`` with and without the others, of the variance of f."""

    role: Literal["design", "context"]
    first: Share
    total: Share


@dataclass(frozen=True)
class Sensitivity:
    """What the variance of an outcome comes from.

    variables      the Sobol' indices of each variable, designs first
    shares         of the variance of single outcomes when designs are anywhere: from "designs", from "contexts", from
                   "both" together (the best design depends on the context only through this), from "noise"; their sum
                   is one
    at_best        the same at the recommended design: from "contexts", from "noise"; empty where there is none, and
                   without contexts
    """

    outcome: str
    variables: dict[str, Influence]
    shares: dict[str, Share]
    at_best: dict[str, Share]
    settings: Settings = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the settings by name, in plain types."""
        return {
            "outcome": self.outcome,
            "variables": {name: asdict(one) for name, one in self.variables.items()},
            "shares": {name: asdict(one) for name, one in self.shares.items()},
            "at_best": {name: asdict(one) for name, one in self.at_best.items()},
        }

    def __str__(self) -> str:
        """The indices, and what they say."""
        heads, rows = sensitivity_table(self)
        lines = ["; ".join(f"{head} {cell}" for head, cell in zip(heads, row, strict=True)) for row in rows]
        return "\n".join([*lines, *sensitivity_text(self)])

    def _repr_html_(self) -> str:
        """The same, for notebooks."""
        return html_table("What matters", *sensitivity_table(self), sensitivity_text(self))


def jansen(values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The variance (...), first-order and total indices (... × K) from f at K + 2 samples of N rows
    (... × (K + 2) × N): at A, at B, and for each k at A with what belongs to k from B."""
    a, b, mixed = values[..., :1, :], values[..., 1:2, :], values[..., 2:, :]
    variance = values[..., :2, :].flatten(-2).var(-1, correction=0)
    scale = 2.0 * variance.clamp_min(1e-300)[..., None]
    first = 1.0 - (b - mixed).square().mean(-1) / scale
    total = (a - mixed).square().mean(-1) / scale
    return variance, first, total


def find_sensitivity(known: Recommender, best: Tensor | None, outcome: str) -> Sensitivity:
    """Of what is ``known``, with the recommended design ``best`` (d_x), where there is one."""
    if known.trust.freedom == 0.0:
        raise EdrboError("one outcome has no variance", "tell at least two")
    space, settings = known.training_data.space, known.training_data.state.settings
    sampler = _Sampler(known)
    single, groups = sampler.single(), sampler.groups()
    there = single[:0] if best is None or not sampler.meets else sampler.at(best)
    sizes = [len(single), len(groups), len(there)]
    alone, joint, here = torch.split(_draw(known, sampler, torch.cat([single, groups, there])), sizes, dim=-1)
    names = sampler.names
    _, first, total = jansen(alone.reshape(len(alone), 2 + len(names), -1))
    variables = {
        name: Influence(
            "design" if k < len(space.design_names) else "context", _share(first[:, k]), _share(total[:, k])
        )
        for k, name in enumerate(names)
    }
    variance, of_designs, all_designs = jansen(joint.reshape(len(joint), 3, -1))
    of_designs, of_contexts = of_designs[:, 0].clamp(0.0, 1.0), (1.0 - all_designs[:, 0]).clamp(0.0, 1.0)
    of_contexts = torch.minimum(of_contexts, 1.0 - of_designs)
    noise = _noise(known, joint)
    parts = {"designs": variance, "noise": noise}
    if sampler.meets:
        of_both = 1.0 - of_designs - of_contexts
        of_f = {"designs": of_designs, "contexts": of_contexts, "both": of_both}
        parts = {**{name: part * variance for name, part in of_f.items()}, "noise": noise}
    shares = {name: _share(part / (variance + noise)) for name, part in parts.items()}
    at_best: dict[str, Share] = {}
    if len(there):
        moved, noise = here.var(-1, correction=0), _noise(known, here)
        at_best = {"contexts": _share(moved / (moved + noise)), "noise": _share(noise / (moved + noise))}
    return Sensitivity(outcome, variables, shares, at_best, settings)


class _Sampler:
    """Inputs of the model (rows × d): designs coded, contexts coded as the distribution's."""

    def __init__(self, known: Recommender) -> None:
        space = known.training_data.space
        self.known, self.space = known, space
        self.contexts, self.weights = known.context_distribution.contexts, known.context_distribution.weights
        self.meets = self.contexts.shape[1] > 0  # whether the model knows of contexts
        self.names: Sequence[str] = [*space.design_names, *known.varying]
        self.count = BASE if len(self.names) <= MANY_VARIABLES else FEW_BASE

    def single(self) -> Tensor:
        """A, B, and A with each variable from B, one after the other."""
        unit = sobol_points(2 * len(self.names), self.count, stream_seed(self.known.seed, "sobol"))
        a, b = self._coded(unit[:, : len(self.names)]), self._coded(unit[:, len(self.names) :])
        samples = [a, b]
        for block in self._blocks():
            mixed = a.clone()
            mixed[:, block] = b[:, block]
            samples.append(mixed)
        return torch.cat(samples)

    def groups(self) -> Tensor:
        """A, B, and A with the design from B; contexts as they come together, designs as they may be."""
        seed, number = stream_seed(self.known.seed, "groups"), len(self.space.columns)
        unit = sobol_points(2 * (number + 1), self.count, seed)
        c = [self._quantile(self.contexts, unit[:, k]) for k in (0, 1)]
        x = [self._designs(part) for part in torch.split(unit[:, 2:], number, dim=-1)]
        if self.space.region is not None:  # whose points are no function of the unit cube's
            region = SearchRegion(self.space, self.space.region)
            clouds = [region.cloud(CLOUD, stream_seed(seed, part)) for part in ("A", "B")]
            x = [cloud[(unit[:, 2 + k] * len(cloud)).long()] for k, cloud in enumerate(clouds)]
        return torch.cat([torch.cat(pair, dim=-1) for pair in ((x[0], c[0]), (x[1], c[1]), (x[1], c[0]))])

    def at(self, x: Tensor) -> Tensor:
        """The design ``x`` (d_x) in contexts as they come."""
        steps = (torch.arange(AT_BEST, dtype=x.dtype) + 0.5) / AT_BEST
        c = self._quantile(self.contexts, steps)
        return torch.cat([x.expand(len(c), -1), c], dim=-1)

    def inducing(self) -> Tensor:
        """Where draws of f are exact."""
        unit = sobol_points(len(self.names), INDUCING, stream_seed(self.known.seed, "inducing"))
        return torch.from_numpy(np.unique(self._coded(unit).numpy(), axis=0))

    def _blocks(self) -> list[slice]:
        """The coded columns of each variable."""
        blocks = [slice(column.start, column.stop) for column in self.space.columns]
        return blocks + [slice(self.space.d_x + one.start, self.space.d_x + one.stop) for one in self._context_blocks()]

    def _context_blocks(self) -> Sequence[slice]:
        if not self.meets:
            return []
        levels = self.known.context_distribution.levels
        return [slice(k, k + 1) for k in range(self.contexts.shape[1])] if levels is None else levels.scale.blocks

    def _coded(self, unit: Tensor) -> Tensor:
        """Points of the unit cube, a coordinate for each variable, as inputs; contexts independent of each other."""
        first = len(self.space.columns)
        c = [self._quantile(self.contexts[:, b], unit[:, first + k]) for k, b in enumerate(self._context_blocks())]
        return torch.cat([self._designs(unit), *c], dim=-1)

    def _designs(self, unit: Tensor) -> Tensor:
        """The first coordinates as designs: of levels each is as likely."""
        parts = []
        for k, column in enumerate(self.space.columns):
            if not column.size:
                parts.append(unit[:, k : k + 1])
                continue
            levels = torch.from_numpy(self.space.levels(column.name))
            parts.append(levels[(unit[:, k] * len(levels)).long().clamp_max(len(levels) - 1)])
        return torch.from_numpy(self.space.snap(torch.cat(parts, dim=-1).numpy()))

    def _quantile(self, rows: Tensor, levels: Tensor) -> Tensor:
        """Of contexts, or some columns of them, in lexicographic order those at these shares of the distribution."""
        order = torch.from_numpy(np.lexsort(rows.numpy().T[::-1])) if rows.shape[1] else torch.arange(len(rows))
        below = self.weights[order].cumsum(0)
        place = torch.searchsorted(below / below[-1], levels.contiguous()).clamp_max(len(rows) - 1)
        return rows[order[place]]


def _draw(known: Recommender, sampler: _Sampler, inputs: Tensor) -> Tensor:
    """Draws of f (draws × rows), in the model's units of y; each member has its share of them."""
    model, trust, points = known.worlds, known.trust, sampler.inducing()
    rows, both = torch.arange(len(points)), torch.cat([points, inputs])
    drawn = []
    with torch.no_grad():
        for m, count in enumerate(_counts(known)):
            if not count:
                continue
            random = stream(known.seed, "sensitivity", m)
            mean, _, beside = model.gp.expert(m).posterior_beside(both, rows)
            root = safe_cholesky(beside[0, rows])
            gains = torch.linalg.solve_triangular(root, beside[0, len(rows) :].mT, upper=False)
            normal = torch.from_numpy(random.standard_normal((count, len(rows))))
            freedom = max(trust.freedom, LEAST_FREEDOM)
            stretch = torch.from_numpy(trust.stretch * np.sqrt(freedom / random.chisquare(freedom, (count, 1))))
            drawn.append(model.scaling.value(mean[0, len(rows) :] + stretch * (normal @ gains)))
    return known.model_goal.held(torch.cat(drawn))


def _counts(known: Recommender) -> list[int]:
    """How many of the draws are each member's."""
    model = known.worlds
    shares = np.full(model.num_experts, 1.0 / model.num_experts) if model.weights is None else model.weights.numpy()
    counts: list[int] = np.diff(np.round(np.cumsum([0.0, *shares]) * DRAWS)).astype(int).tolist()
    return counts


def _noise(known: Recommender, outcomes: Tensor) -> Tensor:
    """The variance of the noise of each draw (draws), in the units of ``outcomes`` (draws × rows), over these."""
    scaling = known.worlds.scaling
    own = known.trust.noise_variance.repeat_interleave(torch.tensor(_counts(known)))
    noise: Tensor = own * scaling.slope(scaling.standardize(outcomes)).square().mean(-1)
    return noise


def _share(draws: Tensor) -> Share:
    held = draws.clamp(0.0, 1.0).numpy()
    low, high = np.quantile(held, [0.025, 0.975])
    mean = float(held.mean())
    return Share(mean, (min(float(low), mean), max(float(high), mean)))
