"""An acquisition near a design: contexts added that matter for its worst case there."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from edrbo.acquisition.acquisition import RobustAcquisition
from edrbo.acquisition.risk import Expectation, Functional, Minimum, TotalVariation, Wasserstein
from edrbo.acquisition.scores import UCB, BarycenterUCB, Score
from edrbo.acquisition.search.maximizer import maximize
from edrbo.contexts.distributions import ContextPoints, box_points
from edrbo.space import Space
from edrbo.surrogate.ensemble import ExpertEnsemble, Surrogate

D_X = 2


def fitted(d_c: int) -> ExpertEnsemble:
    inputs = torch.rand(40, D_X + d_c, generator=torch.Generator().manual_seed(d_c), dtype=torch.float64)
    outcomes = torch.sin(5.0 * inputs[:, D_X:].sum(-1)) + inputs[:, 0] * inputs[:, -1] - (inputs[:, 1] - 0.4).square()
    return Surrogate().fit(inputs, outcomes)


def points_in(d_c: int, support: int) -> ContextPoints:
    atoms = torch.rand(24, d_c, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    zeros = torch.zeros(d_c, dtype=torch.float64)
    return ContextPoints(atoms, torch.full((24,), 1.0 / 24, dtype=torch.float64), box_points(zeros, zeros + 1, support))


DESIGNS = torch.tensor([[0.2, 0.3], [0.8, 0.6]], dtype=torch.float64)


def on_many_points(acquisition: RobustAcquisition, d_c: int) -> Tensor:
    """The same on a support that stands for the whole box."""
    points = points_in(d_c, 1500)
    return RobustAcquisition(acquisition.model, acquisition.score, points, acquisition.functional).evaluate(DESIGNS)


@pytest.mark.parametrize("d_c", [1, 2, 3])
@pytest.mark.parametrize(
    "functional", [Wasserstein(0.1), Wasserstein(0.1, order=2), Minimum(64), TotalVariation(0.4)], ids=str
)
def test_near_a_design_the_worst_case_is_that_of_the_whole_box(functional: Functional, d_c: int) -> None:
    score: Score = UCB(integrated=True) if d_c == 2 and isinstance(functional, Wasserstein) else BarycenterUCB()
    acquisition = RobustAcquisition(fitted(d_c), score, points_in(d_c, 64), functional)
    with torch.no_grad():
        close, dense = acquisition.near(DESIGNS).evaluate(DESIGNS), on_many_points(acquisition, d_c)
        mean = RobustAcquisition(acquisition.model, score, acquisition.points, Expectation()).evaluate(DESIGNS)
    assert bool((mean - close >= 0.97 * (mean - dense)).all())


def test_nothing_is_added_where_the_distribution_is_certain() -> None:
    acquisition = RobustAcquisition(fitted(1), UCB(), points_in(1, 0), Expectation())
    assert acquisition.near(DESIGNS) is acquisition


def test_the_slope_in_the_context_is_that_of_differences() -> None:
    acquisition = RobustAcquisition(fitted(2), BarycenterUCB(), points_in(2, 0), Expectation())
    contexts = torch.tensor([[0.31, 0.72], [0.55, 0.14]], dtype=torch.float64)
    field, both = acquisition._field(DESIGNS[:2]), torch.tensor([1, 0])
    value, slope = field.values_and_slopes(both, contexts)
    for k in range(2):
        step = torch.zeros(2, dtype=torch.float64)
        step[k] = 1e-6
        above, below = (field.values(both, contexts + way * step) for way in (1, -1))
        torch.testing.assert_close(slope[:, k], (above - below) / 2e-6, rtol=1e-4, atol=1e-7)
    assert value.shape == (2,)


def test_the_maximizer_ends_where_no_refined_point_beats_it() -> None:
    space = Space(design={"a": (0, 1), "b": (0, 1)}, context={f"c{i}": (0, 1) for i in range(3)})
    acquisition = RobustAcquisition(fitted(3), BarycenterUCB(), points_in(3, 64), Wasserstein(0.1, order=2))
    found = maximize(acquisition.approximations(), space, seed=0)
    grid = torch.rand(200, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    with torch.no_grad():
        best = acquisition.near(found.x[None]).evaluate(found.x[None])
        others = acquisition.near(torch.cat([found.x[None], grid[:4]])).evaluate(grid)
    assert float(best) >= float(others.max()) - 1e-3 * float(others.max() - others.min())
