"""Which part of EDRBO does the work: a plugin for the benchmark with one part changed at a time, and some pairs.

    edrbo bench run --plugin research/ablation.py --methods edrbo,ABLATION --seeds 300:303 --evaluations 100 \\
        --workers 2 --out ablation

where ABLATION stands for the names below, joined by commas (``python research/ablation.py`` prints them).
``research/ablation_figure.py ablation`` makes the figure and the table of research/journal.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from edrbo.acquisition.methods import Method
from edrbo.acquisition.risk import Expectation, WassersteinLipschitz
from edrbo.acquisition.scores import BarycenterUCB
from edrbo.contexts.distributions import KDE, Empirical
from edrbo.surrogate.ensemble import ExpertEnsemble, Surrogate
from edrbo.surrogate.fit import Likelihood, unpack
from edrbo.surrogate.kernels import Hyperparameters, Priors, dimension_scaled, get_kernel
from edrbo.surrogate.scaling import Scaling
from edrbo.surrogate.warping import WarpedSurrogate

STEPS, SLOWEST, FASTEST, HALF_CYCLE = 110, 1e-4, 1e-2, 10  # of the published program's fit


def flat(d: int) -> Priors:
    return Priors(lengthscale=None, noise_variance=None, shape=None)


@dataclass(frozen=True)
class TruncatedFit(Surrogate):
    """The published program's fit, imitated: 110 AdamW steps with a cyclic rate from softplus(0) = 0.693, no priors.

    The steps sum to about 0.6 in the softplus argument, so that lengthscales end between 0.45 and 1.05: the truncation
    is the prior.
    """

    def fit(
        self,
        X: Tensor,
        Y: Tensor,
        Yvar: Tensor | None = None,
        *,
        start: Hyperparameters | None = None,
        cold: bool = True,
    ) -> ExpertEnsemble:
        scaling = Scaling.of(Y)
        kernels = tuple(get_kernel(name) for name in self.experts)
        likelihood = Likelihood(X, scaling.standardize(Y), scaling.noise_variance(Yvar, Y), self.priors(X.shape[-1]))
        raw = torch.zeros(len(kernels), X.shape[-1] + 3, dtype=torch.float64)
        first, second = torch.zeros_like(raw), torch.zeros_like(raw)
        for step in range(1, STEPS + 1):
            value = torch.nn.functional.softplus(raw).clamp_min(1e-6)
            _, gradient = likelihood.value_and_gradient(value.log(), kernels)
            gradient = -gradient / len(Y) * torch.sigmoid(raw) / value
            first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient.square()
            phase = abs((step / HALF_CYCLE) % 2.0 - 1.0)  # 1 at the ends of a cycle, 0 in its middle
            rate = FASTEST - (FASTEST - SLOWEST) * phase
            direction = (first / (1.0 - 0.9**step)) / ((second / (1.0 - 0.999**step)).sqrt() + 1e-8)
            raw = raw - rate * (direction + 0.01 * raw)
        return self.at(X, Y, Yvar, unpack(torch.nn.functional.softplus(raw).clamp_min(1e-6).log()))


def variant(surrogate: Surrogate, score: BarycenterUCB) -> Method:
    return Method(surrogate, score, Empirical(), Expectation())


OURS, PAPER, NONE = Surrogate(), BarycenterUCB(), BarycenterUCB(radius_weight=0.0)
PUBLISHED, BOTORCH, ML = TruncatedFit(priors=flat), Surrogate(priors=dimension_scaled), Surrogate(priors=flat)

# The published radius cancels when candidates are compared (docs/methods.md): radius=none is the published one too.
METHODS = {
    "radius=none": variant(OURS, NONE),
    "prior=published": variant(PUBLISHED, PAPER),
    "prior=published+radius=none": variant(PUBLISHED, NONE),
    "prior=botorch": variant(BOTORCH, PAPER),
    "prior=botorch+radius=none": variant(BOTORCH, NONE),
    "prior=ml": variant(ML, PAPER),
    "prior=ml+radius=none": variant(ML, NONE),
    **{f"expert={name}": variant(Surrogate(experts=(name,)), PAPER) for name in ("se", "rq", "matern32", "matern52")},
    "experts=evidence": variant(Surrogate(weighting="evidence"), PAPER),
    "beta=0.75": variant(OURS, BarycenterUCB(0.75)),
    "beta=3": variant(OURS, BarycenterUCB(3.0)),
    "integrated": variant(OURS, BarycenterUCB(integrated=True)),
    "integrated+beta=3": variant(OURS, BarycenterUCB(3.0, integrated=True)),
    "law=kde": Method(OURS, PAPER, KDE(samples=512), Expectation()),
    "law=wasserstein": Method(OURS, PAPER, Empirical(), lambda n, d_c: WassersteinLipschitz(0.3 / math.sqrt(n))),
    "warped": variant(WarpedSurrogate(), PAPER),
    "warped+radius=none": variant(WarpedSurrogate(), NONE),
    "warped+expert=se": variant(WarpedSurrogate(experts=("se",)), PAPER),
}

if __name__ == "__main__":
    print(",".join(METHODS))
