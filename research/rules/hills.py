"""Top-two over hills: a visit to the rival, the best other local maximum of what a design is believed to be worth.

A run that ends on a wrong hill often has seen the better one: its model has a second local maximum there, lower by more
than it doubts. A bound asks there only where it is above all others; this rule asks there in its turn, as long as the
rival has a chance to be better.

    surface      μ̄_F(x) + optimism · σ̄_F(x), F(x) = Σ_j w_j f(x, c_j) over the contexts seen
    hills        its local maxima with a valley between them
    chance       P(F(rival) > F(best)): each expert may be right, Student's t in place of the normal, σ times ``doubt``
    visits       designs tried within a lengthscale of the rival's top; the chance is divided by one more than these
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import t as student
from torch import Tensor

from edrbo.acquisition.acquisition import RobustAcquisition
from edrbo.acquisition.risk import Expectation
from edrbo.acquisition.scores import UCB
from edrbo.bench.learners.learner import OptimizerLearner, Setup
from edrbo.contexts.distributions import ContextPoints, compress, sobol_points
from edrbo.records.settings import DEFAULT, Purpose
from edrbo.streams import in_turn, stream_seed
from edrbo.surrogate.ensemble import ExpertEnsemble
from edrbo.surrogate.gaussian_model import pairs
from edrbo.surrogate.quasi_newton import minimize_lbfgs

Array = NDArray[np.float64]

ATOMS = 16  # contexts that stand for those seen
SCREENED, CLIMBS = 256, 12
VALLEY = 0.005  # of the surface's spread: how far it falls between two hills
STEPS = 15  # between two tops
REACH = 0.15  # how far from the rival's top its most promising design may be, largest coordinate
FREEDOM = 4.0  # of the errors of the model


@dataclass(frozen=True, eq=False)
class Hills:
    """Tops (K × d_x) of the surface, highest first, and under each of M experts the mean and the standard deviation of
    F there less F at the first (M × K)."""

    tops: Tensor
    ahead: Tensor
    doubt: Tensor

    def chances(self, stretch: float) -> Tensor:
        """That each (K) is better than the first, with ``stretch`` times the model's doubt."""
        z = (self.ahead[:, 1:] / (stretch * self.doubt[:, 1:])).numpy()
        own = torch.from_numpy(student.cdf(z, FREEDOM)).mean(0)
        return torch.cat([own.new_full((1,), 0.5), own])

    def gains(self, stretch: float) -> tuple[Tensor, Tensor]:
        """How much more each (K) is worth than the first, as far as it is, and how much less, as far as it is not:
        expectations under normals."""
        doubt = (stretch * self.doubt).clamp_min(1e-300)
        z = self.ahead / doubt
        density = (-0.5 * z.square()).exp() / np.sqrt(2.0 * np.pi)
        more = doubt * (density + z * torch.special.ndtr(z))
        return more.mean(0), (more - self.ahead).mean(0)


def context_points(model: ExpertEnsemble, d_x: int) -> ContextPoints:
    """A few contexts for those that the model has seen."""
    seen = model.inputs[:, d_x:]
    small = compress(seen, torch.full((len(seen),), 1.0 / len(seen), dtype=torch.float64), ATOMS)
    return ContextPoints(small.atoms, small.weights, seen[:0])


def surface_of(model: ExpertEnsemble, points: ContextPoints, optimism: float) -> RobustAcquisition:
    return RobustAcquisition(model, UCB(optimism, integrated=True), points, Expectation())


def tops_of(surface: RobustAcquisition, tried: Tensor, seed: int) -> Tensor:
    """Local maxima (K × d_x) with valleys between them, highest first; looked for from those of quasi-random designs
    and of ``tried`` ones (n × d_x) that are higher than all around them."""
    designs = torch.cat([sobol_points(tried.shape[1], SCREENED, seed), tried])
    values = surface.evaluate(designs)
    spread = max(float(values.max() - values.min()), 1e-300)
    apart = torch.cdist(designs, designs)
    around = apart.topk(2 * tried.shape[1] + 3, largest=False).indices  # itself among them
    peaks = torch.nonzero(values >= values[around].amax(-1)).squeeze(-1)
    best = peaks[values[peaks].argsort(descending=True, stable=True)[:CLIMBS]]
    ends, heights = climbed(surface, designs[best], 0.0, 1.0, spread)
    tops: list[int] = []
    for row in heights.argsort(descending=True, stable=True).tolist():
        if all(has_valley(surface, ends[row], ends[other], VALLEY * spread) for other in tops):
            tops.append(row)
    return ends[tops]


def climbed(
    surface: RobustAcquisition, starts: Tensor, lower: Array | float, upper: Array | float, spread: float
) -> tuple[Tensor, Tensor]:
    """Ends (S × d_x) of climbs from ``starts`` within bounds, and their heights (S)."""

    def negative(points: Array, rows: Sequence[int] | None = None) -> tuple[Array, Array]:
        value, gradient = surface.value_and_gradient(torch.from_numpy(points))
        return -value.numpy() / spread, -gradient.numpy() / spread

    low, high = (np.broadcast_to(bound, starts.shape[1:]) for bound in (lower, upper))
    ends, costs = minimize_lbfgs(
        negative, starts.numpy(), low, high, max_iterations=40, max_line_search=8, ftol=1e-7, gtol=1e-6
    )
    return torch.from_numpy(ends), torch.from_numpy(-costs * spread)


def has_valley(surface: RobustAcquisition, one: Tensor, other: Tensor, depth: float) -> bool:
    """Whether the surface falls below the lower of the two by so much on the straight way between them."""
    share = torch.linspace(0.0, 1.0, STEPS, dtype=torch.float64)[:, None]
    values = surface.evaluate(one + share * (other - one))
    return float(values.min()) < min(float(values[0]), float(values[-1])) - depth


def compared(model: ExpertEnsemble, points: ContextPoints, tops: Tensor) -> Hills:
    """What is believed of F at ``tops`` (K × d_x) beside the first, in units of y; of a model that is not warped."""
    mean, covariance = model.gp.posterior(pairs(tops, points.atoms))
    average = torch.block_diag(*[points.weights[None]] * len(tops))
    worth, joint = mean @ average.mT, average @ covariance @ average.mT
    own = joint.diagonal(dim1=-2, dim2=-1)
    doubt = (own + own[:, :1] - 2.0 * joint[:, 0]).clamp_min(0.0).sqrt()
    scale = model.scaling.scale
    return Hills(tops, scale * (worth - worth[:, :1]), scale * doubt)


def visits(model: ExpertEnsemble, top: Tensor, tried: Tensor) -> int:
    """How many designs were tried within a lengthscale of ``top`` (d_x)."""
    lengthscale = model.gp.hyper.lengthscale[:, : len(top)].log().mean(0).exp()
    return int((((tried - top) / lengthscale).square().sum(-1) < 1.0).sum())


@dataclass(frozen=True)
class Rule:
    """When the rival is visited: in its ``turn``, as long as its chance over its visits is at least ``least``; and
    while it ``pays``: what it is expected to be better by, over ``horizon`` times the runs so far, is more than what it
    is expected to be worse by."""

    turn: float = 1.0
    least: float = 0.01
    pays: bool = True
    horizon: float = 0.5
    stretch: float = 2.0
    optimism: float = 0.0


class HillVisitor(OptimizerLearner):
    """The default, which visits the rival hill."""

    def __init__(self, setup: Setup, rule: Rule, aim: Purpose = "operate") -> None:
        super().__init__(setup, DEFAULT, aim)
        self.setup, self.rule = setup, rule
        self.visited: list[int] = []  # numbers of the suggestions that were visits

    def suggest(self) -> Array:
        runs = len(self._optimizer)
        if runs >= self.setup.initial and in_turn(runs - self.setup.initial) < self.rule.turn:
            x = self.rival()
            if x is not None:
                self.visited.append(runs)
                return self.asked(x)
        return self.default()

    def default(self) -> Array:
        """The suggestion of the optimizer."""
        return super().suggest()

    def asked(self, x: Tensor) -> Array:
        """``x`` (d_x) as the next suggestion."""
        (design,) = self._optimizer.space.decode_designs(x[None].numpy())
        suggestion = self._optimizer.ask(candidates=[design])
        return np.array(self._optimizer.state.pending[suggestion.id])

    def rival(self) -> Tensor | None:
        """Where the rival hill is asked (d_x); None if there is none worth a visit."""
        model, rule, d_x = self._optimizer.model, self.rule, self.setup.d_x
        assert model is not None  # every outcome has its context
        points, tried = context_points(model, d_x), model.inputs[:, :d_x]
        seed = stream_seed(self.setup.seed, "hills", len(self._optimizer))
        with torch.no_grad():
            tops = tops_of(surface_of(model, points, rule.optimism), tried, seed)
            if len(tops) < 2:
                return None
            surface = surface_of(model, points, 1.5)
            found = compared(model, points, tops)
            more, less = found.gains(rule.stretch)
            count = torch.tensor([visits(model, top, tried) for top in tops], dtype=torch.float64)
            chances = found.chances(rule.stretch) / (1.0 + count)
            wanted = chances >= rule.least
            if rule.pays:
                wanted &= rule.horizon * len(tried) * more / (1.0 + count) > less
            wanted[0] = False
            if not bool(wanted.any()):
                return None
            best = tops[int(torch.where(wanted, chances, -1.0).argmax())]
            low, high = (best - REACH).clamp_min(0.0).numpy(), (best + REACH).clamp_max(1.0).numpy()
            ends, _ = climbed(surface, best[None], low, high, float(found.doubt.max()))
        return torch.from_numpy(self.setup.snap(ends[0].numpy()))
