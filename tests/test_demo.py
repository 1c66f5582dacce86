"""The demo as a stranger would run it, and what importing costs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import edrbo
from edrbo.errors import InvalidSpaceError
from edrbo.lab.cli import make_app


def test_the_demo_finds_the_order_and_draws_it(tmp_path: Path) -> None:
    picture = tmp_path / "demo.png"
    result = CliRunner().invoke(
        make_app([]), ["demo", "--evaluations", "15", "--out", str(picture)], env={"COLUMNS": "120"}
    )
    assert result.exit_code == 0, result.output
    line = next(row for row in result.output.splitlines() if "order quantity" in row)
    recommended, optimum = (float(cell) for cell in line.replace("│", " ").split()[-2:])
    assert optimum == pytest.approx(0.1878, abs=1e-4)
    assert recommended == pytest.approx(optimum, abs=0.08)
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert picture.stat().st_size > 20_000


def test_the_picture_needs_one_design_and_one_context_variable() -> None:
    optimizer = edrbo.Optimizer(edrbo.Space(design={"x": (0, 1), "y": (0, 1)}, context={"c": (0, 1)}))
    with pytest.raises(InvalidSpaceError):
        edrbo.plot.belief(optimizer)


@pytest.mark.parametrize("statement", ["import edrbo", "import edrbo.lab.cli", "import edrbo; edrbo.Space"])
def test_importing_stays_light(statement: str) -> None:
    """Half a second is kept by what is not imported; time itself is no test."""
    code = (
        f"{statement}\nimport sys\nheavy = {{'torch', 'scipy', 'optuna', 'matplotlib', 'pandas', 'plotly', 'dask'}}\n"
    )
    code += "print(sorted(heavy & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_public_names_exist_and_nothing_else_is_promised() -> None:
    for name in edrbo.__all__:
        assert getattr(edrbo, name).__module__.startswith("edrbo.")
    # Neither what the module imports for itself nor its tables are names for users.
    assert dir(edrbo) == sorted([*edrbo.__all__, "__version__", "plot"])
    assert len(set(edrbo.__all__)) == len(edrbo.__all__)
    with pytest.raises(AttributeError):
        _ = edrbo.nonsense
