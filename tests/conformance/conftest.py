"""The problems as fixtures, one after the other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from problem_cases import CASES, ON_ORIGINAL, ORIGINAL

from edrbo.bench import problems
from edrbo.bench.problems.portfolio.data import ENVIRONMENT_VARIABLE
from edrbo.bench.problems.problem import Problem


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Problem]]:
    """Name of the case and the problem, away from whatever this user has imported."""
    name = str(request.param)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        patch.delenv(ENVIRONMENT_VARIABLE, raising=False)
        if name.endswith(ON_ORIGINAL):
            if not ORIGINAL:
                pytest.skip(f"{ENVIRONMENT_VARIABLE} names no file of the original evaluations")
            patch.setenv(ENVIRONMENT_VARIABLE, ORIGINAL)
        yield name, problems.get(name.removesuffix(ON_ORIGINAL))


@pytest.fixture(scope="module")
def problem(case: tuple[str, Problem]) -> Problem:
    return case[1]
