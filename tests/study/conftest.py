"""A small space, study files in private folders, and one real PostgreSQL for the session."""

from __future__ import annotations

import pytest

from edrbo.space import Categorical, Integer, Real, Space


@pytest.fixture
def space() -> Space:
    return Space(
        design={"speed": (1.0, 9.0), "rate": Real(1e-4, 1.0, log=True), "layers": Integer(1, 8), "kind": ["a", "b"]},
        context={"humidity": (0.0, 1.0)},
    )


@pytest.fixture
def line() -> Space:
    """One design and one context variable."""
    return Space(design={"speed": (1.0, 9.0)}, context={"humidity": (0.0, 1.0)})


@pytest.fixture
def everything() -> Space:
    """Names that try to be markup, paths, headings and escape codes, and choices of all types."""
    return Space(
        design={
            "value": (0.0, 1.0),
            "../../etc/passwd": (0.0, 1.0),
            "<script>alert(1)</script>": Categorical(("<b>", "a,b\n\"c'", "x")),
            "[red]\x1b[31mn": Integer(1, 3),
            "flag": Categorical((True, False)),
            "number": Categorical((1, 2.5)),
        },
        context={"status": None, "{c}": (0.0, 1.0)},
    )


@pytest.fixture(scope="session")
def postgresql(postgresql_server: str) -> str:
    """The URL of a database for all of these tests."""
    return postgresql_server
