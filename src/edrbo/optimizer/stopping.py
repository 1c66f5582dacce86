"""When to stop: the posterior of the optimality gap, and the expected improvement by further runs.

The value is drawn jointly at a few dozen designs that might be the best: an expert, f in a few contexts from its joint
posterior, a distribution. In each drawn world the best of them is so much better than the recommended one; that is the
optimality gap there. The lengthscales of the members, which are draws from their posterior, are shortened a little
before, since a run that has converged to a local optimum knows little of how rough f is elsewhere
(docs/calibration.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.acquisition.acquisition import CHUNK
from edrbo.contexts.distributions import ContextPoints, sobol_points
from edrbo.contexts.uncertainty import DistributionUncertainty
from edrbo.optimizer.calibration import Trust
from edrbo.space import Space
from edrbo.streams import stream, stream_seed
from edrbo.surrogate.ensemble import ExpertEnsemble
from edrbo.surrogate.exact_gp import safe_cholesky
from edrbo.surrogate.gaussian_model import pairs
from edrbo.surrogate.scaling import Scaling

Array = NDArray[np.float64]

# of the lengthscales, for a mean; and for tails and shares, where f in single contexts counts, of which less is known
LENGTHSCALE_FACTOR, TAIL_FACTOR = 0.8, 0.6
SCREENED, SCREENED_NEAR = 512, 64  # designs looked at: anywhere, and around the recommended one
REACHES = (0.02, 0.1)  # how far around, in the unit cube
OPTIMISM = (-2.0, -1.0, 0.0, 1.0, 2.0, 4.0)  # standard deviations of f by which contenders are picked, and …
PICKED, FEW_PICKED = 8, 6  # … how many by each; the few where more contexts count
ATOMS, TAIL_ATOMS = 8, 16  # contexts that stand for the distribution, for its mean and for what hangs on its tails …
# … where f in so many follows from these, and once smoothed in so many, since of a few atoms many designs have the
# same share
TAIL_CONTEXTS, SMOOTH_CONTEXTS = 64, 160
WORLDS, TAIL_WORLDS = 1024, 512  # drawn
DISTRIBUTIONS = 8  # drawn where a worst one has to be found beside each
RUNS = 10  # more runs whose improvement is predicted …
FUTURES = 32  # … by each expert, in at least so many ways


Value = Callable[[Tensor, Tensor, ContextPoints], Tensor]


def average(outcomes: Tensor, weights: Tensor, points: ContextPoints) -> Tensor:
    """The expected value."""
    return (outcomes * weights).sum(-1)


@dataclass(frozen=True, eq=False)
class Measure:
    """How good outcomes are: ``value`` takes them (... × n) in contexts of probabilities ``weights`` (... × n), and the
    contexts with their mean distribution; a larger one is better.

    ``anywhere`` (p × d_c) are contexts without probability that it also wants to see. A ``needs_context_grid`` one
    takes the distribution from the contexts, one for all outcomes, and is asked less; one ``of_tails`` of fewer designs
    in more contexts, of which one more may come from ``unseen`` (q × d_c); in a ``box`` (its lower and upper ends, d_c)
    these are smoothed. ``lengthscale_factor`` is that of the model it is looked for in.
    """

    value: Value = average
    anywhere: Tensor = field(default_factory=lambda: torch.zeros(0, 0, dtype=torch.float64))
    needs_context_grid: bool = False
    of_tails: bool = False
    unseen: Tensor = field(default_factory=lambda: torch.zeros(0, 0, dtype=torch.float64))
    box: tuple[Tensor, Tensor] | None = None
    lengthscale_factor: float = LENGTHSCALE_FACTOR

    def __call__(self, outcomes: Tensor, distributions: Tensor, points: ContextPoints) -> Tensor:
        """Of outcomes (worlds × K × n), each world under a distribution of its own (worlds × n): worlds × K."""
        if not self.needs_context_grid:
            return self.value(outcomes, distributions[:, None].expand_as(outcomes), points)
        known, found = len(points.weights), outcomes.new_empty(outcomes.shape[:-1])
        several, which = torch.unique(distributions, dim=0, return_inverse=True)
        for k, distribution in enumerate(several):
            rows, moved = which == k, replace(points, weights=distribution[:known])
            found[rows] = self.value(outcomes[rows], moved.mass.expand_as(outcomes[rows]), moved)
        return found


@dataclass(frozen=True, eq=False)
class Rivals:
    """Where to look for better designs than ``x`` (d_x): anywhere, around it, and among those ``tried`` (n × d_x).

    ``admit`` gives those near points (n × d_x) that can be chosen; by default what the space lets be suggested.
    """

    space: Space
    x: Tensor
    tried: Tensor
    seed: int
    admit: Callable[[Array], Array] | None = None


@dataclass(frozen=True, eq=False)
class Outlook:
    """In units of the value: ``gains`` (worlds) of the best design over the recommended one, smallest first, and what
    ``RUNS`` more runs are expected to bring."""

    gains: Array
    more_runs: float


def outlook(
    model: ExpertEnsemble,
    context_distribution: DistributionUncertainty,
    rivals: Rivals,
    trust: Trust,
    measure: Measure | None = None,
    fitted: ExpertEnsemble | None = None,
) -> Outlook:
    """For the recommended design ``rivals.x``; by default its expected value in the model's units counts.

    Where the members of ``model`` are many draws of hyper-parameters, contenders may be picked by the few of
    ``fitted``.
    """
    if trust.freedom == 0.0:  # one outcome has no scale
        return Outlook(np.array([np.inf]), np.inf)
    measure = measure or Measure()
    model, screening = (one.rougher(measure.lengthscale_factor) for one in (model, fitted or model))
    worlds = TAIL_WORLDS if measure.of_tails else WORLDS // 8 if measure.needs_context_grid else WORLDS
    small = (
        context_distribution.thinned_to_extremes(TAIL_ATOMS)
        if measure.of_tails
        else context_distribution.thinned(ATOMS)
    )
    anywhere = measure.anywhere if len(measure.anywhere) else small.contexts[:0]
    points = ContextPoints(small.contexts, small.weights, anywhere)
    with torch.no_grad():
        designs = _contenders(screening, points, rivals, trust, measure)
        atoms, beside = points.all, None
        if measure.of_tails:
            small = context_distribution.thinned_to_extremes(TAIL_CONTEXTS)
            small = small.with_one_more(measure.unseen)
            if measure.box is not None:
                small = small.smoothed(SMOOTH_CONTEXTS, *measure.box, stream_seed(rivals.seed, "smoothed"))
            points = ContextPoints(small.contexts, small.weights, anywhere)
            rows = spread_out(small.contexts, TAIL_ATOMS)
            atoms, beside = small.contexts[rows], _beside(model, designs, small.contexts, rows)
        mean, covariance = model.gp.posterior(pairs(designs, atoms))  # M × Kn, M × Kn × Kn
        shares = mean.new_full((len(mean),), 1.0 / len(mean)) if model.weights is None else model.weights
        gains, brought = [], []
        for m, share in enumerate(shares.tolist()):
            seed = stream_seed(rivals.seed, "outlook", m)
            others = None if beside is None else beside.of(m)
            expert = _Expert(model.scaling, mean[m], covariance[m], trust, points, measure, seed, others)
            values = expert.draw(small, max(RUNS, round(share * worlds)))
            gains.append((values.amax(-1) - values[:, 0]).numpy())
            brought.append(
                share
                * expert.after(values[:RUNS].argmax(-1), trust.noise_variance[m], max(FUTURES, round(share * worlds)))
            )
    return Outlook(np.sort(np.concatenate(gains)), sum(brought))


def spread_out(contexts: Tensor, size: int) -> Tensor:
    """The numbers of at most ``size`` of contexts (n × d_c), each as far as possible from those before it."""
    if len(contexts) <= size:
        return torch.arange(len(contexts))
    chosen = [int((contexts - contexts.mean(0)).square().sum(-1).argmin())]
    away = (contexts - contexts[chosen[0]]).square().sum(-1)
    for _ in range(size - 1):
        chosen.append(int(away.argmax()))
        away = torch.minimum(away, (contexts - contexts[chosen[-1]]).square().sum(-1))
    return torch.tensor(chosen)


@dataclass(frozen=True, eq=False)
class _Beside:
    """f at K designs in all of n contexts from f there in s of them (``rows``), design by design.

    Its ``mean`` (… K × n) moves by ``gain`` (… K × n × s) times how far f is off at those; ``left`` (… K × n) is the
    standard deviation of what stays unknown.
    """

    rows: Tensor
    nearest: Tensor  # n: which of the s stands for each context
    mean: Tensor
    gain: Tensor
    left: Tensor

    def of(self, m: int) -> _Beside:
        """Of one expert."""
        return replace(self, mean=self.mean[m], gain=self.gain[m], left=self.left[m])

    def extended(self, drawn: Tensor) -> Tensor:
        """Of outcomes (worlds × Ks) in those contexts: worlds × K × n."""
        off = drawn.reshape(len(drawn), len(self.mean), -1) - self.mean[:, self.rows]
        return self.mean + torch.einsum("wks,kns->wkn", off, self.gain)


def _beside(model: ExpertEnsemble, designs: Tensor, contexts: Tensor, rows: Tensor) -> _Beside:
    """Of all experts, for ``designs`` (K × d_x) in ``contexts`` (n × d_c), of which ``rows`` (s) are drawn."""
    parts = [model.gp.posterior_beside(pairs(design[None], contexts), rows) for design in designs]
    mean, variance, covariance = (torch.stack(part, dim=1) for part in zip(*parts, strict=True))
    roots = safe_cholesky(covariance[..., rows, :])  # M × K × s × s
    halves = torch.linalg.solve_triangular(roots, covariance.mT, upper=False)  # M × K × s × n
    gain = torch.linalg.solve_triangular(roots.mT, halves, upper=True).mT
    left = (variance - halves.square().sum(-2)).clamp_min(0.0).sqrt()
    left[..., rows] = 0.0
    away = (contexts[:, None] - contexts[rows]).square().sum(-1)
    return _Beside(rows, away.argmin(1), mean, gain, left)


@dataclass(frozen=True, eq=False)
class _Expert:
    """One expert's joint belief about f at K designs in n contexts, and so about the value of the designs.

    With ``beside`` these are some of the contexts of ``points``, and f in all follows from them.
    """

    scaling: Scaling
    mean: Tensor  # Kn, the context running fastest
    covariance: Tensor
    trust: Trust
    points: ContextPoints
    measure: Measure
    seed: int
    beside: _Beside | None = None

    def draw(self, context_distribution: DistributionUncertainty, count: int) -> Tensor:
        """The value of the designs in ``count`` worlds (count × K)."""
        random = stream(self.seed, "worlds")
        normal = torch.from_numpy(random.standard_normal((count, len(self.mean))))
        stretch = self._stretch(random, count)
        rows = self.mean + stretch * (normal @ safe_cholesky(self.covariance).mT)
        several = min(DISTRIBUTIONS, count) if self.measure.needs_context_grid else count
        distributions = context_distribution.small_sample().draw(several, self.seed)[torch.arange(count) % several]
        distributions = torch.nn.functional.pad(distributions, (0, len(self.points.support)))
        if self.beside is None:
            return self._values(rows, distributions)
        # designs near one another are off alike: one number for all
        own = torch.from_numpy(random.standard_normal((count, 1, self.points.weights.shape[0])))
        return self._values(rows, distributions, stretch[..., None] * own * self.beside.left)

    def after(self, designs: Tensor, noise_variance: Tensor, count: int) -> float:
        """How much the best value at the mean of f is expected to rise when these designs are run, in contexts as they
        come: that mean then is normal around today's, with the covariance that the runs explain. Without the tails of
        few data, which have no mean.
        """
        random, probability = stream(self.seed, "runs"), self.points.weights
        met = torch.from_numpy(random.choice(len(probability), len(designs), p=probability.numpy()))
        size = len(self.points.all) if self.beside is None else len(self.beside.rows)
        runs = designs * size + (met if self.beside is None else self.beside.nearest[met])
        root = safe_cholesky(self.covariance[runs][:, runs] + torch.diag_embed(noise_variance.expand(len(runs))))
        moves = torch.linalg.solve_triangular(root, self.covariance[runs], upper=False)  # runs × Kn
        normal = torch.from_numpy(random.standard_normal((count, len(runs))))
        rows = self.mean + normal @ moves
        mass = self.points.mass.expand(count, -1)
        now = self._values(self.mean[None], mass[:1])
        return float(self._values(rows, mass).amax(-1).mean() - now.max())

    def _values(self, rows: Tensor, distributions: Tensor, more: Tensor | None = None) -> Tensor:
        """Of modelled outcomes (worlds × Kn) under distributions (worlds × n): worlds × K; with ``more`` (worlds × K ×
        n) where they are drawn in a few contexts only."""
        if self.beside is None:
            modelled = rows.reshape(len(rows), -1, distributions.shape[-1])
        else:
            modelled = self.beside.extended(rows) if more is None else self.beside.extended(rows) + more
        return self.measure(self.scaling.value(modelled), distributions, self.points)

    def _stretch(self, random: np.random.Generator, count: int) -> Tensor:
        """Student's: by how much more than the model says f may be off, world by world (count × 1)."""
        freedom = self.trust.freedom
        return torch.from_numpy(self.trust.stretch * np.sqrt(freedom / random.chisquare(freedom, (count, 1))))


def _contenders(model: ExpertEnsemble, points: ContextPoints, rivals: Rivals, trust: Trust, measure: Measure) -> Tensor:
    """Designs that might be the best (K × d_x), the recommended one first: those of the largest value when f is some
    standard deviations off its mean."""
    designs = _candidates(rivals)
    if not len(designs):  # only the recommended one can be chosen
        return rivals.x[None]
    contexts = points.all
    paired, width = model.paired_with(contexts), model.num_experts * len(contexts) * model.gp.x.shape[-2]
    parts = [
        torch.stack(model.barycenter(*paired.moments(some))) for some in torch.split(designs, max(1, CHUNK // width))
    ]
    mean, sd = torch.cat(parts, dim=1).reshape(2, len(designs), -1)
    picked: set[int] = set()
    for optimism in OPTIMISM:
        values = measure.value(mean + optimism * trust.stretch * sd, points.mass.expand_as(mean), points)
        best = values.argsort(descending=True, stable=True)
        picked.update(best[: FEW_PICKED if len(points.all) > ATOMS else PICKED].tolist())
    return torch.cat([rivals.x[None], designs[sorted(picked)]])


def _candidates(rivals: Rivals) -> Tensor:
    """Designs anywhere, around the recommended one and tried, each once; not the recommended one."""
    x, space = rivals.x, rivals.space
    points = sobol_points(space.d_x, SCREENED + SCREENED_NEAR, stream_seed(rivals.seed, "contenders"))
    reach = torch.tensor(REACHES, dtype=x.dtype).repeat_interleave(SCREENED_NEAR // len(REACHES))[:, None]
    around = (x + reach * torch.special.ndtri(points[SCREENED:].clamp(1e-6, 1.0 - 1e-6))).clamp(0.0, 1.0)
    snapped = (rivals.admit or space.admit)(torch.cat([points[:SCREENED], around, rivals.tried]).numpy())
    designs = torch.from_numpy(np.unique(snapped, axis=0))
    return designs[(designs != x).any(-1)]  # next to itself a design would seem to have a rival
