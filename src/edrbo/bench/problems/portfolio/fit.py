"""Maximum-likelihood hyper-parameters of the portfolio surrogate (ML-II), with an analytic gradient."""

from __future__ import annotations

import numpy as np

from edrbo.bench.problems.oracle.distributions import Array
from edrbo.bench.problems.portfolio.data import PortfolioData
from edrbo.bench.problems.portfolio.surrogate import Hyperparameters, kernel
from edrbo.errors import InvalidValueError

LENGTHSCALE_BOUNDS = (0.01, 20.0)
NOISE_BOUNDS = (1e-5, 1.0)


def fit_portfolio_surrogate(data: PortfolioData, max_rows: int = 1_000, seed: int = 0) -> Hyperparameters:
    """Maximize the marginal likelihood on all rows, or on a seeded subsample of ``max_rows`` of them.

    Outputs are standardized with all rows; the constant mean is profiled out (generalized least squares).
    """
    from scipy.optimize import minimize

    output_mean, output_sd = float(data.outputs.mean()), float(data.outputs.std(ddof=1))
    rows = np.arange(len(data.outputs))
    if len(rows) > max_rows:
        rows = np.sort(np.random.default_rng(seed).choice(rows, max_rows, replace=False))
    inputs, outputs = data.inputs[rows], (data.outputs[rows] - output_mean) / output_sd

    def loss(log_parameters: Array) -> tuple[float, Array]:
        value, gradient, _ = negative_log_likelihood(log_parameters, inputs, outputs)
        return value / len(outputs), gradient / len(outputs)

    d = inputs.shape[1]
    end = minimize(
        loss,
        np.log([0.5] * d + [0.05]),
        jac=True,
        method="L-BFGS-B",
        bounds=[*[_logs(LENGTHSCALE_BOUNDS)] * d, _logs(NOISE_BOUNDS)],
        options={"ftol": 1e-10, "maxiter": 200},
    )
    if not np.isfinite(end.fun):
        raise InvalidValueError("The surrogate of the portfolio data could not be fitted.")
    _, _, mean = negative_log_likelihood(end.x, inputs, outputs)
    found = np.exp(end.x)
    return Hyperparameters(tuple(found[:d].tolist()), float(found[d]), mean, output_mean, output_sd)


def _logs(bounds: tuple[float, float]) -> tuple[float, float]:
    return float(np.log(bounds[0])), float(np.log(bounds[1]))


def negative_log_likelihood(log_parameters: Array, inputs: Array, outputs: Array) -> tuple[float, Array, float]:
    """−log p(outputs), its gradient, and the profiled mean; log_parameters = log(ℓ_1, …, ℓ_d, noise)."""
    from scipy.linalg import lapack

    parameters = np.exp(log_parameters)
    scales, noise = parameters[:-1], float(parameters[-1])
    signal = np.asarray(kernel(inputs, inputs, scales.tolist()))
    covariance = signal + noise * np.eye(len(outputs))
    factor, failed = lapack.dpotrf(covariance, lower=1, overwrite_a=1)
    if failed:
        raise InvalidValueError("The covariance of the portfolio data is not positive definite.")
    log_determinant = 2 * float(np.log(np.diag(factor)).sum())
    lower = np.tril(lapack.dpotri(factor, lower=1, overwrite_c=1)[0])
    inverse = lower + np.tril(lower, -1).T
    mean = float(inverse.sum(0) @ outputs / inverse.sum())
    residual = outputs - mean
    alpha = inverse @ residual
    value = 0.5 * (float(residual @ alpha) + log_determinant + len(outputs) * np.log(2 * np.pi))
    # ∂(−log p)/∂θ = ½ Σ_ab W_ab ∂K_ab/∂θ with W = K⁻¹ − αα'; ∂K/∂log ℓ_j = K_ab (z_a − z_b)²/ℓ_j².
    inverse -= np.outer(alpha, alpha)
    noise_gradient = 0.5 * noise * float(np.trace(inverse))
    inverse *= signal
    z = inputs / scales
    scale_gradient = z.T**2 @ inverse.sum(1) - np.einsum("aj,aj->j", z, inverse @ z)
    return value, np.append(scale_gradient, noise_gradient), mean
