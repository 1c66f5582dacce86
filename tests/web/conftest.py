from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from edrbo import Space, Study
from edrbo.space import Integer

pytest.importorskip("fastapi", reason="needs edrbo[web]")

from live import Client, study_server
from load import new_database

from edrbo.lab.web.app import WARNINGS

if TYPE_CHECKING:
    from chromium import Browsers


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What the server sets for its process is set for a test too, whose filters are its own."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            for kind in WARNINGS:
                item.add_marker(pytest.mark.filterwarnings(f"ignore::edrbo.errors.{kind.__name__}"))


@pytest.fixture
def space() -> Space:
    return Space(
        {"speed": (1, 9), "layers": Integer(1, 4), "kind": ["plain", "glossy"]},
        {"humidity": (0, 100), "load": None},
    )


@pytest.fixture
def initial() -> int:
    """Suggestions that come before the model's; a test that hangs on other things may have many of them."""
    return 5


@pytest.fixture
def study(tmp_path: Path, space: Space, initial: int) -> Study:
    return Study.open(tmp_path / "coating.db", space, by="login", initial=initial)


@pytest.fixture
def postgresql(postgresql_server: str) -> str:
    """The URL of a database of the test's own."""
    return new_database(postgresql_server)


@pytest.fixture
def client(study: Study, tmp_path: Path) -> Iterator[Client]:
    with study_server(tmp_path / "coating.db") as found:
        yield found


@pytest.fixture(scope="session")
def all_browsers() -> Iterator[Browsers]:
    from chromium import Browsers

    found = Browsers()
    yield found
    found.quit()


@pytest.fixture
def browsers(all_browsers: Browsers) -> Iterator[Browsers]:
    yield all_browsers
    all_browsers.clean()
