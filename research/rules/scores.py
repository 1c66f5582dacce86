"""Scores of beliefs about F(x) = Σ_j w_j f(x, c_j), other than the default's bound with β = 1.5.

All look at what is known of F once the data are there (``at``), as the paper's β does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import torch
from scipy.optimize import brentq
from torch import Tensor

from edrbo import register
from edrbo.acquisition.scores import UCB, BarycenterUCB, Score
from edrbo.contexts.distributions import compress
from edrbo.surrogate.ensemble import ExpertEnsemble, barycenter

ATOMS = 32  # contexts that stand for those seen
FAR = -1e5  # standard deviations below the best, from where on log h is its own asymptote
NORMAL_QUANTILE_80 = 0.8416212335729143


def tried_values(model: ExpertEnsemble, d_x: int) -> Tensor:
    """μ̄_F (n) of the designs that were tried, under the contexts that were seen."""
    designs, contexts = model.inputs[:, :d_x], model.inputs[:, d_x:]
    few = compress(contexts, torch.full((len(contexts),), 1.0 / len(contexts), dtype=torch.float64), ATOMS)
    with torch.no_grad():
        return model.barycenter(*model.paired_with(few.atoms).integrated(designs, few.weights))[0]


def upper_tail(model: ExpertEnsemble) -> float:
    """The 80 % quantile of the outcomes' errors, each predicted from all others, beside that of what was predicted."""
    y, mean, sd = model.leave_one_out()
    center, spread = barycenter(mean, sd)
    return float(((y - center) / spread).quantile(0.8)) / NORMAL_QUANTILE_80


def log_h(z: Tensor) -> Tensor:
    """log(φ(z) + z Φ(z)): of the expected improvement by a standard normal that begins at −z."""
    below, above = z.clamp(FAR, -1.0), z.clamp_min(-1.0)
    mills = math.sqrt(0.5 * math.pi) * torch.special.erfcx(below / -math.sqrt(2.0))
    ratio = (1.0 + below * mills).clamp_min(1e-300)
    tail = torch.where(z > -1e3, ratio.log(), -2.0 * below.abs().log()) - 0.5 * z.clamp_max(-1.0).square()
    body = (-0.5 * above.square()).exp() / math.sqrt(2.0 * math.pi) + above * torch.special.ndtr(above)
    return torch.where(z < -1.0, tail - 0.5 * math.log(2.0 * math.pi), body.log())


@register
@dataclass(frozen=True)
class MixtureLogEI(Score):
    """log mean_m E[(F_m − best)₊]: every expert may be the right one, and the one that expects most counts most."""

    d_x: int
    best: float = math.nan  # the largest posterior mean of a tried design
    integrated: bool = field(default=True, kw_only=True)

    def __call__(self, mean: Tensor, sd: Tensor, weights: Tensor | None = None) -> Tensor:
        each = log_h((mean - self.best) / sd) + sd.log()
        return each.logsumexp(-2) - math.log(mean.shape[-2])

    def at(self, model: ExpertEnsemble) -> MixtureLogEI:
        return replace(self, best=float(tried_values(model, self.d_x).max()))


@register
@dataclass(frozen=True)
class ImprovementLessCost(Score):
    """μ̄_F + H mean_m E[(F_m − best)₊]: what a run brings by itself, and what it brings the H runs after it.

    EIC (Hu et al., 2022) runs the design of the best expected improvement if that, over the runs that are left, is more
    than the run costs, else the best design; this is the largest difference of the two. How many are left nobody says:
    ``horizon`` times as many as there were.
    """

    d_x: int
    horizon: float = 1.0
    least: float = 1.0  # times σ at least and at most, as its upper tail has it
    most: float = 1.0
    stretch: float = 1.0
    best: float = math.nan
    runs: float = math.nan
    integrated: bool = field(default=True, kw_only=True)

    def __call__(self, mean: Tensor, sd: Tensor, weights: Tensor | None = None) -> Tensor:
        spread = self.stretch * sd
        improvement = (log_h((mean - self.best) / spread) + spread.log()).exp().mean(-2)
        return barycenter(mean, sd)[0] + self.runs * improvement

    def value_and_slopes(
        self, mean: Tensor, sd: Tensor, weights: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        z, experts = (mean - self.best) / (self.stretch * sd), mean.shape[-2]
        by_mean = (1.0 + self.runs * torch.special.ndtr(z)) / experts
        by_sd = self.runs * self.stretch * (-0.5 * z.square()).exp() / (math.sqrt(2.0 * math.pi) * experts)
        return self(mean, sd), by_mean, by_sd

    def at(self, model: ExpertEnsemble) -> ImprovementLessCost:
        best = float(tried_values(model, self.d_x).max())
        stretch = 1.0 if self.least == self.most == 1.0 else min(max(upper_tail(model), self.least), self.most)
        return replace(self, best=best, runs=self.horizon * model.observations, stretch=stretch)


@register
@dataclass(frozen=True)
class GrowingUCB(UCB):
    """μ̄_F + β σ̄_F with a β that grows as that of EIC does: of two designs of which one is sure, the other is as good if
    what it may bring over as many runs as there were pays for what it costs, n h(−β) = β."""

    integrated: bool = field(default=True, kw_only=True)

    def at(self, model: ExpertEnsemble) -> GrowingUCB:
        def excess(z: float) -> float:
            return model.observations * float(log_h(torch.tensor(-z, dtype=torch.float64)).exp()) - z

        return replace(self, beta=brentq(excess, 0.0, 10.0))


@register
@dataclass(frozen=True)
class TailUCB(UCB):
    """β times what the upper tail of the outcomes says: the 80 % quantile of their errors, each predicted from all
    others, in units of that of a normal (Pion and Vazquez calibrate the tail that an optimist relies on)."""

    least: float = 1.0
    most: float = 3.0
    integrated: bool = field(default=True, kw_only=True)

    def at(self, model: ExpertEnsemble) -> TailUCB:
        assert isinstance(self.beta, float)
        return replace(self, beta=self.beta * min(max(upper_tail(model), self.least), self.most))


@register
@dataclass(frozen=True)
class SeekThenAvoid(BarycenterUCB):
    """The radius with the other sign while little is known, and as the paper has it later: ``radius_weight`` grows from
    −``reach`` to ``reach`` and is zero after ``turn`` runs."""

    reach: float = 0.7
    turn: float = 20.0
    integrated: bool = field(default=True, kw_only=True)

    def at(self, model: ExpertEnsemble) -> SeekThenAvoid:
        share = 2.0 ** (-model.observations / self.turn)
        return replace(self, radius_weight=self.reach * (1.0 - 2.0 * share))
