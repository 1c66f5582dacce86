"""Pictures: everything drawn lies inside the picture, and the slices show the right numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from edrbo.bench import problems
from edrbo.bench.problems.picture import LINE, draw_problem, save_picture, slice_values


@pytest.mark.parametrize("name", ["newsvendor", "complicated-hartmann", "modified-branin"])
def test_nothing_is_cut_off(name: str) -> None:
    figure = draw_problem(problems.get(name))
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    drawn, (width, height) = figure.get_tightbbox(canvas.get_renderer()), figure.get_size_inches()
    assert drawn.x0 >= 0
    assert drawn.y0 >= 0
    assert drawn.x1 <= width
    assert drawn.y1 <= height
    assert any(name in text.get_text() for text in figure.findobj(Text))


def test_slice_is_the_function() -> None:
    problem = problems.get("modified-branin")
    table = slice_values(problem, j=1, k=0)
    x, c = problem.x_star.copy(), np.array([LINE[20], 0.5])
    x[1] = LINE[100]
    assert table[20, 100] == pytest.approx(float(problem.evaluate(x, c)), rel=1e-12)


def test_saved_picture_is_small(tmp_path: Path) -> None:
    path = tmp_path / "new" / "picture.png"
    save_picture(problems.get("six-hump-camel"), path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.stat().st_size < 120_000
