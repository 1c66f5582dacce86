"""A dose for everyone: the response depends on the patient's sensitivity, the harm on the clearance."""

from __future__ import annotations

import numpy as np

from edrbo.bench.problems.oracle.distributions import AnyArray, Cauchy, Clipped, Mixture, Normal, Product
from edrbo.bench.problems.problem import Problem, in_chunks


def _response(dose: AnyArray, sensitivity: AnyArray) -> AnyArray:
    """Hill's curve of order four; a sensitive patient reaches half of it at a small dose."""
    half = 0.55 - 0.45 * sensitivity
    return np.asarray(dose**4 / (dose**4 + half**4))


def _harm(dose: AnyArray, clearance: AnyArray) -> AnyArray:
    """Grows with the square of what is left of the dose."""
    return np.asarray(3 * (dose * np.exp(-1.2 * clearance)) ** 2)


def dose_response(x: AnyArray, c: AnyArray) -> AnyArray:
    return np.asarray(_response(x[..., 0], c[..., 0]) - _harm(x[..., 0], c[..., 1]))


def expected_dose_response(x: AnyArray, context_distribution: Product) -> AnyArray:
    """Response and harm meet one context each."""
    (sensitivity, of_sensitivity), (clearance, of_clearance) = (
        part.quadrature() for part in context_distribution.components
    )

    def difference(dose: AnyArray) -> AnyArray:
        response = _response(dose, sensitivity) @ of_sensitivity
        return np.asarray(response - _harm(dose, clearance) @ of_clearance)

    return in_chunks(difference, x[:, :1], len(sensitivity))


def dose_response_problem() -> Problem:
    two_kinds = Mixture((Normal(0.3, 0.1), Normal(0.75, 0.08)), (0.25, 0.75))
    return Problem(
        name="dose-response",
        description="One dose for patients of heavy-tailed sensitivity and two kinds of clearance.",
        d_x=1,
        context_distribution=Product((Clipped(Cauchy(0.4, 0.08)), Clipped(two_kinds))),
        objective=dose_response,
        expectation=expected_dose_response,
    )
