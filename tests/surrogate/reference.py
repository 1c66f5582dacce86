"""The same Gaussian processes in GPyTorch, one kernel at a time: the independent reference of our engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpytorch
import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import MaternKernel, RBFKernel, RQKernel, ScaleKernel
from torch import Tensor

from edrbo.surrogate.kernels import Hyperparameters

BASE_KERNELS: dict[str, Callable[[int], Any]] = {
    "se": lambda d: RBFKernel(ard_num_dims=d),
    "rq": lambda d: RQKernel(ard_num_dims=d),
    "matern32": lambda d: MaternKernel(nu=1.5, ard_num_dims=d),
    "matern52": lambda d: MaternKernel(nu=2.5, ard_num_dims=d),
}


def random_data(n: int, d: int, seed: int) -> tuple[Tensor, Tensor]:
    """Inputs (n × d) and smooth outcomes (n) with mean 0 and variance 1."""
    x = uniform(n, d, seed=seed)
    y = torch.sin(5.0 * x).sum(-1) + 0.3 * (x.sum(-1) - 0.5 * d).square() + 0.1 * uniform(n, seed=seed + 1)
    return x, (y - y.mean()) / y.std(correction=0) if n > 1 else y


def uniform(*size: int, seed: int, low: float = 0.0, high: float = 1.0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return low + (high - low) * torch.rand(*size, generator=generator, dtype=torch.float64)


def random_hyper(experts: int, d: int, seed: int) -> Hyperparameters:
    return Hyperparameters(
        lengthscale=uniform(experts, d, seed=seed, low=0.2, high=1.2),
        outputscale=uniform(experts, seed=seed + 1, low=0.5, high=2.0),
        noise_variance=uniform(experts, seed=seed + 2, low=1e-3, high=5e-2),
        mean=uniform(experts, seed=seed + 3, low=-1.0, high=1.0),
        shape=uniform(experts, seed=seed + 4, low=0.4, high=3.0),
    )


class Reference(gpytorch.models.ExactGP):
    """Expert m of ``hyper`` as a GPyTorch model; ``noise_variance`` (n) replaces the learnt noise where it is given."""

    def __init__(
        self, name: str, hyper: Hyperparameters, m: int, x: Tensor, y: Tensor, noise_variance: Tensor | None
    ) -> None:
        if noise_variance is None:
            likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
            likelihood.noise = hyper.noise_variance[m]
        else:
            likelihood = gpytorch.likelihoods.FixedNoiseGaussianLikelihood(noise_variance)
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = ScaleKernel(BASE_KERNELS[name](x.shape[-1]))
        self.double()
        self.mean_module.constant.data.fill_(float(hyper.mean[m]))
        self.covar_module.outputscale = hyper.outputscale[m]
        self.covar_module.base_kernel.lengthscale = hyper.lengthscale[m]
        if name == "rq":
            self.covar_module.base_kernel.alpha = hyper.shape[m]

    def forward(self, x: Tensor) -> MultivariateNormal:
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))

    def exact_posterior(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Mean (q) and covariance (q × q) of the latent function."""
        self.eval()
        with torch.no_grad():
            posterior = self(points)
            return posterior.mean, posterior.covariance_matrix

    def log_marginal_likelihood(self) -> Tensor:
        self.train()
        mll = gpytorch.mlls.ExactMarginalLogLikelihood(self.likelihood, self)
        (x,), y = self.train_inputs, self.train_targets
        value: Tensor = mll(self(x), y) * len(y)
        return value


def central_difference(function: Callable[[Tensor], Tensor], at: Tensor, step: float = 1e-5) -> Tensor:
    """Gradient (like ``at``) of a scalar function by central differences of fourth order."""
    flat = at.detach().reshape(-1)
    slopes = []
    for i in range(len(flat)):
        unit = torch.zeros_like(flat)
        unit[i] = step
        near, far = (
            float(function((flat + k * unit).reshape(at.shape)) - function((flat - k * unit).reshape(at.shape)))
            for k in (1, 2)
        )
        slopes.append((8.0 * near - far) / (12.0 * step))
    return torch.tensor(slopes, dtype=torch.float64).reshape(at.shape)
