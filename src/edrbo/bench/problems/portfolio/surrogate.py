"""The Gaussian process that turns simulator evaluations into a portfolio problem.

Squared-exponential kernel with a lengthscale per input, output scale 1, constant mean, on standardized
outputs. The problem's f is *minus* the posterior mean, because the stored values are negated returns. The
kernel is a product over inputs, so E_c f(x, c) costs one kernel column in x and one dot product:

    E f(x) = −shift − Σ_i k_x(x, x_i) · [α_i E k_c(c, c_i)],

where the bracket is computed once for a context distribution.

Maximum-likelihood hyper-parameters of the portfolio surrogate (ML-II), with an analytic gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from edrbo.bench.problems.oracle.distributions import AnyArray, Array, Product
from edrbo.bench.problems.portfolio.data import PortfolioData
from edrbo.bench.problems.problem import in_chunks
from edrbo.errors import InvalidValueError

D_X = 3


@dataclass(frozen=True)
class PortfolioHyperparameters:
    """Of the kernel and the mean, on outputs standardized with ``output_mean`` and ``output_sd``."""

    lengthscales: tuple[float, ...]
    noise: float
    mean: float
    output_mean: float
    output_sd: float


# Those of the published problem, for the original 3,000 evaluations.
PUBLISHED = PortfolioHyperparameters(
    lengthscales=(0.1043747, 2.836797, 0.1289441, 0.2533536, 0.7843871),
    noise=0.01901184,
    mean=-0.5037033,
    output_mean=-2.885738,
    output_sd=3.829588,
)


def kernel(a: AnyArray, b: Array, lengthscales: Sequence[float]) -> AnyArray:
    """exp(−½ Σ_j (a_j − b_j)²/ℓ_j²): (n, d), (m, d) → (n, m); analytic in a."""
    a, b = a / np.asarray(lengthscales), b / np.asarray(lengthscales)
    exponent = a @ b.T
    exponent -= (a**2).sum(-1)[:, None] / 2
    exponent -= (b**2).sum(-1) / 2
    return np.asarray(np.exp(exponent, out=exponent))


@dataclass(frozen=True, eq=False)
class PortfolioSurrogate:
    """Minus the posterior mean, and its exact expectation over independent contexts."""

    designs: Array
    contexts: Array
    hyperparameters: PortfolioHyperparameters
    # α·sd of the posterior mean Σ α_i k(·, z_i), in the units of the outputs.
    coefficients: Array
    _context_factors: dict[Product, Array] = field(default_factory=dict, init=False, repr=False)

    @staticmethod
    def of(data: PortfolioData, hyperparameters: PortfolioHyperparameters) -> PortfolioSurrogate:
        """Condition on the data: one Cholesky factorization."""
        from scipy.linalg import cho_factor, cho_solve

        h = hyperparameters
        covariance = kernel(data.inputs, data.inputs, h.lengthscales)
        covariance[np.diag_indices_from(covariance)] += h.noise
        residual = (data.outputs - h.output_mean) / h.output_sd - h.mean
        factor = cho_factor(covariance, lower=True, overwrite_a=True, check_finite=False)
        coefficients = h.output_sd * cho_solve(factor, residual, check_finite=False)
        return PortfolioSurrogate(data.inputs[:, :D_X], data.inputs[:, D_X:], h, coefficients)

    @property
    def _constant(self) -> float:
        h = self.hyperparameters
        return h.output_mean + h.output_sd * h.mean

    def _design_kernel(self, x: AnyArray) -> AnyArray:
        return kernel(x, self.designs, self.hyperparameters.lengthscales[:D_X])

    def _context_kernel(self, c: AnyArray) -> AnyArray:
        return kernel(c, self.contexts, self.hyperparameters.lengthscales[D_X:])

    def objective(self, x: AnyArray, c: AnyArray) -> AnyArray:
        """f(x, c): (…, 3), (…, 2) → (…)."""
        if c.ndim == 2 and x.ndim >= 2 and x.shape[-2] == 1:
            # Every design with every context: the kernel factorizes, so a matrix product does it.
            columns = self._design_kernel(x.reshape(-1, D_X)) * self.coefficients
            table = columns @ self._context_kernel(c).T
            return np.asarray(-self._constant - table.reshape(*x.shape[:-2], len(c)))
        shape = np.broadcast_shapes(x.shape[:-1], c.shape[:-1])
        both = [np.broadcast_to(part, (*shape, part.shape[-1])) for part in (x, c)]
        rows = np.concatenate(both, axis=-1).reshape(-1, D_X + c.shape[-1])
        inputs = np.hstack([self.designs, self.contexts])
        scales = self.hyperparameters.lengthscales
        mean = in_chunks(lambda z: kernel(z, inputs, scales) @ self.coefficients, rows, len(inputs))
        return np.asarray(-self._constant - mean.reshape(shape))

    def over_grid(self, x: Array, lines: Sequence[Array]) -> Array:
        """f at designs (n, 3) and the tensor product of two lines of contexts: (n, m_1 m_2), by matrix products."""
        scales = self.hyperparameters.lengthscales[D_X:]
        first, second = (
            kernel(line[:, None], self.contexts[:, j : j + 1], scales[j : j + 1]) for j, line in enumerate(lines)
        )
        columns = self._design_kernel(x) * self.coefficients
        tables = [(first * column) @ second.T for column in columns]
        return np.asarray(-self._constant - np.reshape(tables, (len(x), -1)))

    def expectation(self, x: AnyArray, context_distribution: Product) -> AnyArray:
        """E f(x) for independent contexts: (n, 3) → (n,)."""
        if context_distribution not in self._context_factors:
            self._context_factors[context_distribution] = self._context_factor(context_distribution)
        factor = self._context_factors[context_distribution]
        mean = in_chunks(lambda part: self._design_kernel(part) @ factor, x, len(factor))
        return np.asarray(-self._constant - mean)

    def _context_factor(self, context_distribution: Product) -> Array:
        """α_i E k_c(c, c_i), shape (n,): a one-dimensional integral for each context variable."""
        factor = self.coefficients
        for j, component in enumerate(context_distribution.components):
            nodes, weights = component.quadrature()
            scale = self.hyperparameters.lengthscales[D_X + j : D_X + j + 1]
            factor = factor * (weights @ kernel(nodes[:, None], self.contexts[:, j : j + 1], scale))
        return np.asarray(factor)


LENGTHSCALE_BOUNDS = (0.01, 20.0)
NOISE_BOUNDS = (1e-5, 1.0)


def fit_portfolio_surrogate(data: PortfolioData, max_rows: int = 1_000, seed: int = 0) -> PortfolioHyperparameters:
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
    return PortfolioHyperparameters(tuple(found[:d].tolist()), float(found[d]), mean, output_mean, output_sd)


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
