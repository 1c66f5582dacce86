"""Functions that the field tests itself on, some of their inputs being contexts.

Ackley (two designs, one context: hundreds of local maxima), modified Branin (each design meets one context), three-hump
and six-hump camel, Hartmann in six variables (under an easy and a hard context distribution), Michalewicz in five (all
of them off by what the day brings), Branin-Williams (two contexts of twelve combinations; Williams, Santner and Notz
2000), and the crossed barrel: two rings joined by twisted struts, printed to absorb a blow (after Gongora et al. 2020).

The barrel's variables are those of the experiment: number of struts, their twist, radius and wall. Its toughness is a
formula of our own, not a fit of the measured barrels, which cannot be shipped: a barrel bends softly at a middling
twist, which is another for stiff prints and for many struts, or folds up at a large one. The context is how stiff the
print came out.
"""

from __future__ import annotations

import numpy as np

from edrbo.bench.problems.oracle.distributions import (
    AnyArray,
    Array,
    Cauchy,
    Clipped,
    Discrete,
    Normal,
    Product,
    clipped_normal,
    equal_mixture,
    iid,
)
from edrbo.bench.problems.problem import Problem, in_chunks
from edrbo.space import Integer, Space

# At x = (0.5, 0.5) f has a cusp at c = 0.5, and nearby designs curve as sharply: panels shrink towards it.
ACKLEY_BREAKS = (0.5, *(0.5 + sign * 2.0**-k for sign in (-1, 1) for k in range(7, 20)))


def _coordinates(inputs: AnyArray) -> AnyArray:
    return np.asarray(65.536 * inputs - 32.768)


def ackley(x: AnyArray, c: AnyArray) -> AnyArray:
    z_x, z_c = _coordinates(x), _coordinates(c)
    mean_square = ((z_x**2).sum(-1) + (z_c**2).sum(-1)) / 3
    mean_cosine = (np.cos(2 * np.pi * z_x).sum(-1) + np.cos(2 * np.pi * z_c).sum(-1)) / 3
    return np.asarray(20 * np.exp(-0.2 * np.sqrt(mean_square)) + np.exp(mean_cosine) - 20 - np.e)


def expected_ackley(x: AnyArray, context_distribution: Product) -> AnyArray:
    """The cosine term is a product of a factor in x and one in c; the other term depends on ‖z_x‖² alone."""
    nodes, weights = context_distribution.quadrature(ACKLEY_BREAKS)
    z_x, z_c = _coordinates(x), _coordinates(nodes[:, 0])
    cosine_c = weights @ np.exp(np.cos(2 * np.pi * z_c) / 3)
    cosine_x = np.exp(np.cos(2 * np.pi * z_x).sum(-1) / 3)
    square_c = z_c**2
    bowl = in_chunks(
        lambda square_x: np.exp(-0.2 * np.sqrt((square_x[:, None] + square_c) / 3)) @ weights,
        (z_x**2).sum(-1),
        len(weights),
    )
    return np.asarray(20 * bowl + cosine_x * cosine_c - 20 - np.e)


def ackley_problem() -> Problem:
    return Problem(
        name="ackley",
        description="A needle in a field of ripples; the context blurs the needle.",
        d_x=2,
        context_distribution=iid(clipped_normal(0.5, 0.2)),
        objective=ackley,
        expectation=expected_ackley,
        breaks=ACKLEY_BREAKS,
        landmark=(0.5, 0.5),
    )


def _root_branin(u: AnyArray, v: AnyArray) -> AnyArray:
    """√h(u, v) with h Branin's function, which is positive everywhere."""
    curve = v - 5.1 * u**2 / (4 * np.pi**2) + 5 * u / np.pi - 6
    return np.asarray(np.sqrt(curve**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(u) + 10))


def modified_branin(x: AnyArray, c: AnyArray) -> AnyArray:
    first = _root_branin(15 * x[..., 0] - 5, 15 * c[..., 0])
    second = _root_branin(15 * c[..., 1] - 5, 15 * x[..., 1])
    return np.asarray(-first * second)


def expected_branin(x: AnyArray, context_distribution: Product) -> AnyArray:
    """c₁ and c₂ are independent and meet different factors, so the expectation is a product of two."""

    def both(part: AnyArray) -> AnyArray:
        c_1, weights_1 = context_distribution.components[0].quadrature()
        c_2, weights_2 = context_distribution.components[1].quadrature()
        first = _root_branin(15 * part[:, :1] - 5, 15 * c_1) @ weights_1
        second = _root_branin(15 * c_2 - 5, 15 * part[:, 1:]) @ weights_2
        return np.asarray(-first * second)

    width: Array = context_distribution.components[0].quadrature()[1]
    return in_chunks(both, x, len(width))


def modified_branin_problem() -> Problem:
    return Problem(
        name="modified-branin",
        description="A product of two Branin functions; each design variable meets one context variable.",
        d_x=2,
        context_distribution=iid(clipped_normal(0.5, 0.2), 2),
        objective=modified_branin,
        expectation=expected_branin,
    )


def three_hump(x: AnyArray, c: AnyArray) -> AnyArray:
    u, v = 2 * x[..., 0] - 1, 2 * c[..., 0] - 1
    return np.asarray(-(2 * u**2 - 1.05 * u**4 + u**6 / 6 + u * v + v**2))


def six_hump(x: AnyArray, c: AnyArray) -> AnyArray:
    u, v = 4 * x[..., 0] - 2, 2 * c[..., 0] - 1
    return np.asarray(-((4 - 2.1 * u**2 + u**4 / 3) * u**2 + u * v + (-4 + 4 * v**2) * v**2))


def three_hump_camel() -> Problem:
    return Problem(
        name="three-hump-camel",
        description="One hump in the middle; the context tilts it.",
        d_x=1,
        context_distribution=iid(clipped_normal(0.5, 0.2)),
        objective=three_hump,
        landmark=(0.5,),
    )


def six_hump_camel() -> Problem:
    return Problem(
        name="six-hump-camel",
        description="Two humps whose order depends on the context; on average a flat ridge between them.",
        d_x=1,
        context_distribution=iid(clipped_normal(0.6, 0.2)),
        objective=six_hump,
    )


BARREL = Space({"struts": Integer(6, 12), "twist": (0.0, 1.0), "radius": (0.0, 1.0), "wall": (0.0, 1.0)})


def crossed_barrel(x: AnyArray, c: AnyArray) -> AnyArray:
    """Toughness in joules; struts, twist (0 to 200 degrees), radius (1.5 to 2.5 mm), wall (0.7 to 1.4 mm), coded."""
    struts, twist, radius, wall, stiff = x[..., 0], x[..., 1], x[..., 2], x[..., 3], c[..., 0]
    carried = (
        (0.6 + 0.8 * struts) * (0.5 + 1.3 * radius - 0.8 * radius**2 * (0.5 + struts)) * (0.6 + wall - 0.7 * wall**2)
    )
    bending = np.exp(-14 * (twist - 0.3 - 0.35 * stiff + 0.2 * struts) ** 2)
    folding = (1.1 - 0.6 * stiff) * np.exp(-40 * (twist - 0.88 + 0.1 * wall) ** 2)
    cracks = 0.25 * np.exp(3 * (stiff * wall - 0.6))
    return np.asarray(30 * carried * (bending + folding) - 10 * cracks)


def crossed_barrel_problem() -> Problem:
    return Problem(
        name="crossed-barrel",
        description="Struts, twist, radius and wall of a printed barrel, to absorb much however stiff the print.",
        d_x=BARREL.d_x,
        context_distribution=iid(clipped_normal(0.45, 0.25)),
        objective=crossed_barrel,
        design=BARREL,
    )


HARTMANN_ALPHA = np.array([1.0, 1.2, 3.0, 3.2])
HARTMANN_A = np.array(
    [
        [10.0, 3.0, 17.0, 3.5, 1.7, 8.0],
        [0.05, 10.0, 17.0, 0.1, 8.0, 14.0],
        [3.0, 3.5, 1.7, 10.0, 17.0, 8.0],
        [17.0, 8.0, 0.05, 10.0, 0.1, 14.0],
    ]
)
HARTMANN_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def _design_bumps(x: AnyArray) -> AnyArray:
    """(…, 5) → (…, 4)."""
    return np.asarray(np.exp(-(HARTMANN_A[:, :5] * (x[..., None, :] - HARTMANN_P[:, :5]) ** 2).sum(-1)))


def _context_bumps(c: AnyArray) -> AnyArray:
    """(…, 1) → (…, 4)."""
    return np.asarray(np.exp(-HARTMANN_A[:, 5] * (c - HARTMANN_P[:, 5]) ** 2))


def hartmann(x: AnyArray, c: AnyArray) -> AnyArray:
    return np.asarray((HARTMANN_ALPHA * _design_bumps(x) * _context_bumps(c)).sum(-1))


def expected_hartmann(x: AnyArray, context_distribution: Product) -> AnyArray:
    """Every bump is a product of a factor in x and one in c."""
    nodes, weights = context_distribution.quadrature()
    return np.asarray(_design_bumps(x) @ (HARTMANN_ALPHA * (weights @ _context_bumps(nodes))))


def hartmann_problem() -> Problem:
    return Problem(
        name="hartmann",
        description="Four bumps in six dimensions, the last one being the context.",
        d_x=5,
        context_distribution=iid(clipped_normal(0.5, 0.2)),
        objective=hartmann,
        expectation=expected_hartmann,
    )


def complicated_hartmann() -> Problem:
    normals = [(0.1, 0.02), (0.3, 0.075), (0.4, 0.1), (0.5, 0.1), (0.7, 0.075), (0.8, 0.03)]
    parts = [*(Normal(mean, sd) for mean, sd in normals), Cauchy(0.2, 0.02), Cauchy(0.8, 0.02)]
    return Problem(
        name="complicated-hartmann",
        description="Hartmann under a context distribution of eight modes, two of them heavy-tailed.",
        d_x=5,
        context_distribution=iid(Clipped(equal_mixture(parts))),
        objective=hartmann,
        expectation=expected_hartmann,
    )


MICHALEWICZ_OFFSET = 0.05  # of every setting, at either end of the context
# Where the function is largest without a context (Michalewicz 1992; steepness 10), in the unit cube.
MICHALEWICZ_LARGEST = (2.202906 / np.pi, 0.5, 1.284992 / np.pi, 1.923058 / np.pi, 1.720470 / np.pi)


def michalewicz(x: AnyArray, c: AnyArray) -> AnyArray:
    """Σ_i sin z_i · sin²⁰(i z_i²/π) with z = π (x + 0.1 (c − ½))."""
    z = np.pi * (x + 2 * MICHALEWICZ_OFFSET * (c - 0.5))
    squared = np.sin(np.arange(1, 6) * z**2 / np.pi) ** 2
    return np.asarray((np.sin(z) * squared**10).sum(axis=-1))


def michalewicz_problem() -> Problem:
    return Problem(
        name="michalewicz",
        description="Five narrow valleys, one a setting, that all move with the day: 120 local optima.",
        d_x=5,
        context_distribution=iid(clipped_normal(0.5, 0.25)),
        objective=michalewicz,
        landmark=MICHALEWICZ_LARGEST,
    )


# The joint distribution of the paper is the product of these two.
WILLIAMS_SECOND = Clipped(Discrete((0.25, 0.5, 0.75), (0.25, 0.5, 0.25)))
WILLIAMS_THIRD = Clipped(Discrete((0.2, 0.4, 0.6, 0.8), (0.15, 0.35, 0.35, 0.15)))


def branin(u: AnyArray, v: AnyArray) -> AnyArray:
    curve = v - 5.1 * u**2 / (4 * np.pi**2) + 5 * u / np.pi - 6
    return np.asarray(curve**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(u) + 10)


def branin_williams(x: AnyArray, c: AnyArray) -> AnyArray:
    """Minus the product of the paper, with x its first and fourth variable and c its second and third."""
    return np.asarray(-branin(15 * x[..., 0] - 5, 15 * c[..., 0]) * branin(15 * c[..., 1] - 5, 15 * x[..., 1]))


def branin_williams_problem() -> Problem:
    return Problem(
        name="branin-williams",
        description="A product of two Branin functions; twelve combinations of two environmental variables.",
        d_x=2,
        context_distribution=Product((WILLIAMS_SECOND, WILLIAMS_THIRD)),
        objective=branin_williams,
        expectation=expected_branin_williams,
    )


def expected_branin_williams(x: AnyArray, context_distribution: Product) -> AnyArray:
    """The contexts are independent and meet different factors, so the expectation is a product of two."""
    (c_1, weights_1), (c_2, weights_2) = (component.quadrature() for component in context_distribution.components)
    first = branin(15 * x[:, :1] - 5, 15 * c_1) @ weights_1
    second = branin(15 * c_2 - 5, 15 * x[:, 1:]) @ weights_2
    return np.asarray(-first * second)
