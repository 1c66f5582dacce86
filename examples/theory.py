"""What the paper's theory says about a run, next to what happened.

A smooth function of one design and one context: first edrbo as it is, then as the theorems ask for it, with kernels
fixed beforehand, the paper's scaled posterior and β by Lemma 1.
"""

import math

import numpy as np

from edrbo import Method, Optimizer, Space, Surrogate
from edrbo.acquisition.risk import Expectation
from edrbo.acquisition.scores import BarycenterUCB
from edrbo.contexts.distributions import Empirical
from edrbo.theory import FixedSurrogate, TheoryBeta, regret_bounds

NOISE_SD, STEPS = 0.05, 25
LAMBDA = NOISE_SD**2


def run(surrogate: Surrogate, beta: float | TheoryBeta) -> tuple[Optimizer, list[float]]:
    """Maximize the mean of f(x, c) = sin(3x) + (c − ½) x over c uniform on [0, 1], which is sin(3x), at most 1."""
    method = Method(surrogate, BarycenterUCB(beta), Empirical(), Expectation())
    optimizer = Optimizer(Space(design={"x": (0, 1)}, context={"c": (0, 1)}), method, seed=1)
    rng, regret = np.random.default_rng(1), []
    for _ in range(STEPS):
        suggestion = optimizer.ask()
        x, c = suggestion["x"], rng.uniform()
        optimizer.tell(suggestion, {"c": c}, math.sin(3 * x) + (c - 0.5) * x + rng.normal(scale=NOISE_SD))
        regret.append(1.0 - math.sin(3 * x))
    return optimizer, regret


# B is our own promise about f: on a grid, rkhs_norm_lower_estimate gives 2.2 to 3.7 for the four experts.
runs = {
    "edrbo": (Surrogate(), 1.5),
    "as the theorems ask": (FixedSurrogate(lengthscale=0.5, noise_variance=LAMBDA), TheoryBeta(B=5.0, R=NOISE_SD)),
}
for label, (surrogate, rule) in runs.items():
    optimizer, regret = run(surrogate, rule)
    assert optimizer.model is not None
    beta = rule(optimizer.model) if isinstance(rule, TheoryBeta) else rule
    bounds = regret_bounds(optimizer.model, regret, value_range=1.0, beta=beta, noise_variance=LAMBDA)
    print(f"{label}: β = {beta:.2f}, regret {bounds.regret[-1]:.1f} after {STEPS} evaluations")
    print(f"    at most {bounds.trivial[-1]:.0f} whatever one does; the theorem says {bounds.theorem[-1]:,.0f}")
    x = float(optimizer.recommend().design["x"])
    print(
        f"    it recommends x = {x:.3f}, worth {math.sin(3 * x):.4f} on average; the best is {math.pi / 6:.3f}, worth 1"
    )
    assert math.sin(3 * x) > 0.98
    assert bounds.regret[-1] < bounds.trivial[-1] < bounds.theorem[-1]
