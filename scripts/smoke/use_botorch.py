"""Our acquisition and our model in BoTorch's own optimizer."""

from __future__ import annotations

import torch
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf

from edrbo import Ensemble, RobustAcquisition
from edrbo.acquisition.risk import Wasserstein
from edrbo.acquisition.scores import UCB
from edrbo.contexts.distributions import ContextPoints, box_points

generator = torch.Generator().manual_seed(0)
inputs = torch.rand(12, 2, dtype=torch.float64, generator=generator)  # columns x, c
outcomes = -((inputs[:, :1] - 0.3 - 0.5 * inputs[:, 1:]) ** 2)
zero, one = torch.zeros(1, dtype=torch.float64), torch.ones(1, dtype=torch.float64)
context_distribution = ContextPoints(
    inputs[:, 1:], torch.full((12,), 1 / 12, dtype=torch.float64), box_points(zero, one, 16)
)
for model in (SingleTaskGP(inputs, outcomes).eval(), Ensemble.fit(inputs, outcomes)):
    acquisition = RobustAcquisition(model, UCB(beta=1.0), context_distribution, Wasserstein(0.05, order=1))
    x, value = optimize_acqf(acquisition, torch.stack([zero, one]), q=1, num_restarts=1, raw_samples=4)
    assert x.shape == (1, 1)
    assert torch.isfinite(value)
