"""The registry of problems. A new problem is a function, a context law and a line below."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from edrbo.bench.problem import Problem
from edrbo.bench.problems.ackley import ackley_problem
from edrbo.bench.problems.branin import modified_branin_problem
from edrbo.bench.problems.camel import six_hump_camel, three_hump_camel
from edrbo.bench.problems.hartmann import complicated_hartmann, hartmann_problem
from edrbo.bench.problems.newsvendor import newsvendor_problem
from edrbo.bench.problems.portfolio import portfolio_normal, portfolio_uniform
from edrbo.errors import UnknownNameError

# Formula problems are made once; the portfolio problems depend on the data in place and keep their own cache.
_REGISTRY: dict[str, Callable[[], Problem]] = {
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


def names() -> list[str]:
    """Names of all problems, in the order of the paper."""
    return list(_REGISTRY)


def get(name: str) -> Problem:
    """The problem called ``name``; asking again gives the same value, with its x* already found."""
    if name not in _REGISTRY:
        raise UnknownNameError(f"There is no problem called {name!r}.", f"one of {', '.join(_REGISTRY)}")
    return _REGISTRY[name]()
