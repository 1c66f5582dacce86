"""The registry of problems. A new problem is a function, a context distribution and a line in this file.

The nine of the paper are the benchmark. The further ones, of other dimensions, distributions and noise, are there to
check that a method is not tuned to nine curves; the high ones have ten to eighteen designs, some of them whole numbers
and choices; the classic ones are of the literature of robust design. The family of :mod:`edrbo.bench.problems.bbob` is
for evidence with power: 72 problems, and as many with noise.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

from edrbo.bench.problems import bbob
from edrbo.bench.problems.beacons import beacons_problem
from edrbo.bench.problems.building import building_problem
from edrbo.bench.problems.cliff import cliff_problem
from edrbo.bench.problems.coating import coating_problem
from edrbo.bench.problems.dose import dose_response_problem
from edrbo.bench.problems.kiln import noisy_kiln_problem
from edrbo.bench.problems.newsvendor import newsvendor_problem
from edrbo.bench.problems.paint_shop import paint_shop_problem
from edrbo.bench.problems.portfolio.problem import portfolio_normal, portfolio_uniform
from edrbo.bench.problems.problem import Problem
from edrbo.bench.problems.recipe import recipe_problem
from edrbo.bench.problems.ripples import ripples_problem
from edrbo.bench.problems.seasons import two_seasons_problem
from edrbo.bench.problems.synthetic import (
    ackley_problem,
    branin_williams_problem,
    complicated_hartmann,
    crossed_barrel_problem,
    hartmann_problem,
    michalewicz_problem,
    modified_branin_problem,
    six_hump_camel,
    three_hump_camel,
)
from edrbo.bench.problems.wing import wing_problem
from edrbo.errors import UnknownNameError

# Formula problems are made once; the portfolio problems depend on the data in place and keep their own cache.
_PAPER: dict[str, Callable[[], Problem]] = {
    "three-hump-camel": cache(three_hump_camel),
    "six-hump-camel": cache(six_hump_camel),
    "ackley": cache(ackley_problem),
    "hartmann": cache(hartmann_problem),
    "complicated-hartmann": cache(complicated_hartmann),
    "modified-branin": cache(modified_branin_problem),
    "newsvendor": cache(newsvendor_problem),
    "portfolio-uniform": portfolio_uniform,
    "portfolio-normal": portfolio_normal,
}

_FURTHER: dict[str, Callable[[], Problem]] = {
    "two-seasons": cache(two_seasons_problem),
    "dose-response": cache(dose_response_problem),
    "cliff": cache(cliff_problem),
    "ripples": cache(ripples_problem),
    "noisy-kiln": cache(noisy_kiln_problem),
    "beacons": cache(beacons_problem),
    "coating": cache(coating_problem),
    "wing": cache(wing_problem),
}
_HIGH: dict[str, Callable[[], Problem]] = {
    "building": cache(building_problem),
    "paint-shop": cache(paint_shop_problem),
    "recipe": cache(recipe_problem),
}
_CLASSIC: dict[str, Callable[[], Problem]] = {
    "branin-williams": cache(branin_williams_problem),
    "crossed-barrel": cache(crossed_barrel_problem),
    "michalewicz": cache(michalewicz_problem),
}
_BBOB: dict[str, Callable[[], Problem]] = {
    member.name: cache(partial(bbob.bbob_problem, member)) for member in (*bbob.members(), *bbob.members(noisy=True))
}
_REGISTRY = _PAPER | _FURTHER | _HIGH | _CLASSIC | _BBOB


def names() -> list[str]:
    """Names of the nine problems of the benchmark, in the order of the paper."""
    return list(_PAPER)


def further_names() -> list[str]:
    """Names of the further problems, from few to many designs."""
    return list(_FURTHER)


def high_names() -> list[str]:
    """Names of the problems of many designs, from few to many."""
    return list(_HIGH)


def classic_names() -> list[str]:
    """Names of the classic problems of robust design, from few to many designs."""
    return list(_CLASSIC)


def bbob_names(part: bbob.Part = "all", noisy: bool = False) -> list[str]:
    """Names of the bbob family, or of the half on which rules are chosen or confirmed; or of the noisy ones."""
    return [member.name for member in bbob.members(part, noisy)]


def get(name: str) -> Problem:
    """The problem called ``name``, of any kind; asking again gives the same value, with its x* already found."""
    if name not in _REGISTRY:
        shown = ", ".join(known for known in _REGISTRY if known not in _BBOB)
        raise UnknownNameError(f"There is no problem called {name!r}.", f"one of {shown}, {next(iter(_BBOB))} …")
    return _REGISTRY[name]()
