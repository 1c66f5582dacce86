"""Information gain, β_t, the regret bound, and what they are worth."""

from edrbo.acquisition.confidence import (
    TheoryBeta,
    beta,
    information_gain,
    information_gain_path,
    posterior_norm,
    realized_gain,
    rkhs_norm_lower_estimate,
)
from edrbo.theory.bounds import (
    FixedSurrogate,
    MaximumGain,
    RegretBounds,
    acquisition_lipschitz,
    lipschitz_constants,
    max_information_gain,
    regret_bound,
    regret_bounds,
    section_lipschitz_constants,
    trivial_bound,
    unit_kernel,
)

__all__ = [
    "FixedSurrogate",
    "MaximumGain",
    "RegretBounds",
    "TheoryBeta",
    "acquisition_lipschitz",
    "beta",
    "information_gain",
    "information_gain_path",
    "lipschitz_constants",
    "max_information_gain",
    "posterior_norm",
    "realized_gain",
    "regret_bound",
    "regret_bounds",
    "rkhs_norm_lower_estimate",
    "section_lipschitz_constants",
    "trivial_bound",
    "unit_kernel",
]
