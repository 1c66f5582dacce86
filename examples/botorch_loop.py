"""A BoTorch loop with our acquisition function: the rest of the program stays BoTorch's.

``RobustAcquisition`` takes any BoTorch model on (x, c). Here it is a plain ``SingleTaskGP``, and the design is the best
worst case over distributions of the context within a Wasserstein ball.
"""

import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood

from edrbo import RobustAcquisition
from edrbo.acquisition.risk import Wasserstein
from edrbo.acquisition.scores import UCB
from edrbo.contexts.distributions import ContextPoints, box_points

torch.manual_seed(0)
generator = torch.Generator().manual_seed(0)


def f(x: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    return -((x - 0.3 - 0.5 * c) ** 2)


X = torch.rand(8, 2, generator=generator, dtype=torch.float64)  # columns x, c
Y = f(X[:, :1], X[:, 1:])
box = box_points(torch.zeros(1, dtype=torch.float64), torch.ones(1, dtype=torch.float64), 32)
bounds = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
for _ in range(8):
    model = SingleTaskGP(X, Y)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    atoms = X[:, 1:]  # the distribution: all contexts seen, with equal weights
    context_distribution = ContextPoints(atoms, torch.full((len(atoms),), 1 / len(atoms), dtype=torch.float64), box)
    acquisition = RobustAcquisition(model, UCB(beta=1.5), context_distribution, Wasserstein(0.05, order=1))
    x, _ = optimize_acqf(acquisition, bounds, q=1, num_restarts=4, raw_samples=32)
    c = torch.rand(1, 1, generator=generator, dtype=torch.float64)  # the world chooses after us
    X, Y = torch.cat([X, torch.cat([x, c], dim=1)]), torch.cat([Y, f(x, c)])

mean = RobustAcquisition(SingleTaskGP(X, Y), UCB(beta=0.0), context_distribution, Wasserstein(0.05, order=1))
x, value = optimize_acqf(mean, bounds, q=1, num_restarts=4, raw_samples=32)
print(f"x = {x.item():.3f}, worst expected value near the observed distribution {value.item():.4f}")

# Contexts come from all of [0, 1] alike, so the true mean of a design is −(x − 0.55)² − 1/48, best at 0.55.
short = (x.item() - 0.55) ** 2
print(f"x = 0.55 is best on average; this one is {short:.4f} short of it, where designs differ by 0.3")
assert short < 0.003
