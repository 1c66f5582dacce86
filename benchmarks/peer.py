"""The peer: EDRBO as one would write it in plain BoTorch, for timing against.

Four ``SingleTaskGP``s (squared exponential, rational quadratic, Matérn 3/2 and 5/2), 110 Adam steps each, and
``optimize_acqf`` with 1,024 raw samples and 10 restarts over all observed contexts, all options at their defaults.
Written from the paper, not from the authors' program; nothing is done to make it slow.
"""

from __future__ import annotations

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.models import SingleTaskGP
from botorch.models.transforms import Standardize
from botorch.optim import optimize_acqf
from botorch.utils.transforms import t_batch_mode_transform
from gpytorch.kernels import MaternKernel, RBFKernel, RQKernel, ScaleKernel
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

BETA, RESTARTS, RAW_SAMPLES, ADAM_STEPS = 1.5, 10, 1024, 110


class PlainEDRBO(AcquisitionFunction):
    def __init__(self, models: list[SingleTaskGP], contexts: Tensor) -> None:
        super().__init__(model=models[0])
        self.models = models
        self.contexts = contexts

    @t_batch_mode_transform(expected_q=1)
    def forward(self, X: Tensor) -> Tensor:
        contexts = self.contexts.expand(X.shape[0], *self.contexts.shape)
        joint = torch.cat([X.expand(-1, contexts.shape[1], -1), contexts], dim=-1)  # b × n × d
        posteriors = [model.posterior(joint) for model in self.models]
        mean = torch.stack([p.mean.squeeze(-1) for p in posteriors])
        sd = torch.stack([p.variance.squeeze(-1).clamp_min(1e-12).sqrt() for p in posteriors])
        center, spread = mean.mean(0), sd.mean(0)
        radius = ((mean - center).square() + (sd - spread).square()).amax(0).clamp_min(1e-18).sqrt()
        return (center + BETA * spread - 2**0.5 * radius).mean(-1)


def fit(X: Tensor, Y: Tensor) -> list[SingleTaskGP]:
    d = X.shape[-1]
    bases = (RBFKernel, RQKernel, lambda **k: MaternKernel(nu=1.5, **k), lambda **k: MaternKernel(nu=2.5, **k))
    models = []
    for base in bases:
        kernel = ScaleKernel(base(ard_num_dims=d))
        model = SingleTaskGP(X, Y, covar_module=kernel, outcome_transform=Standardize(1))
        mll = ExactMarginalLogLikelihood(model.likelihood, model)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        model.train()
        for _ in range(ADAM_STEPS):
            optimizer.zero_grad()
            loss = -mll(model(*model.train_inputs), model.train_targets)
            loss.backward()
            optimizer.step()
        models.append(model.eval())
    return models


def suggest(X: Tensor, Y: Tensor, d_x: int) -> Tensor:
    """The next design (d_x) from inputs X (n × (d_x + d_c)) and outcomes Y (n × 1)."""
    acquisition = PlainEDRBO(fit(X, Y), X[:, d_x:])
    bounds = torch.tensor([[0.0] * d_x, [1.0] * d_x], dtype=torch.float64)
    x, _ = optimize_acqf(acquisition, bounds, q=1, num_restarts=RESTARTS, raw_samples=RAW_SAMPLES)
    return x[0]
