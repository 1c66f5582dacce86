"""What a suggestion that is being evaluated does to the belief: it tells what one evaluation can tell, not more."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from edrbo import Optimizer, Space
from edrbo.optimizer.outcome_posterior import OutcomePosterior

pytestmark = pytest.mark.torch_numeric


def belief_of(pending: list[list[float]], outcomes: int = 8) -> OutcomePosterior:
    """Of a rough function whose contexts are of two kinds, far apart."""
    optimizer = Optimizer(Space(design={"x": (0, 1), "z": (0, 1)}, context={"c": (0, 1)}), seed=0)
    rng = np.random.default_rng(0)
    for i in range(outcomes):
        x, z, c = *rng.random(2), 0.1 + 0.8 * (i % 2)
        optimizer.tell({"x": x, "z": z}, {"c": c}, float(np.sin(9 * x + 5 * z) + np.cos(7 * x) * c))
    training_data = optimizer._main.data()
    rows = [np.array(x) for x in pending]
    return optimizer._main.posterior(training_data, (None, None), pending=rows, asking=True)


def about_the_mean(posterior: OutcomePosterior, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    paired = posterior.model.paired_with(posterior.points.atoms)
    return posterior.model.barycenter(*paired.integrated(x, posterior.points.weights))


PENDING = [[0.9, 0.9], [0.9, 0.1], [0.5, 0.95]]


def test_at_once_or_one_after_the_other() -> None:
    at_once, in_turn = belief_of(PENDING), belief_of([])
    for x in PENDING:
        in_turn = in_turn.with_pending(torch.tensor([x], dtype=torch.float64))
    points = torch.rand(20, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    (mean, sd), (other_mean, other_sd) = about_the_mean(at_once, points), about_the_mean(in_turn, points)
    torch.testing.assert_close(sd, other_sd, rtol=1e-7, atol=1e-9)
    assert ((mean - other_mean).abs() < 0.02 * sd).all()  # experts disagree a little about the outcome to come


def test_it_moves_no_mean_and_tells_what_one_evaluation_can_tell() -> None:
    before, after = belief_of([]), belief_of(PENDING[:1])
    x = torch.tensor(PENDING[:1], dtype=torch.float64)
    (mean, sd), (mean_after, sd_after) = (about_the_mean(posterior, x) for posterior in (before, after))
    assert float((mean_after - mean).abs()) < 0.01 * float(sd)
    reported = []
    for atom in before.points.atoms:
        joint = torch.cat([x, atom[None]], dim=-1)
        center, _ = before.model.barycenter(*before.model.gp.moments(joint))
        model = before.model.with_modelled(joint, center, before.model.gp.hyper.noise_variance.mean()[None])
        paired = model.paired_with(before.points.atoms)
        reported.append(float(model.barycenter(*paired.integrated(x, before.points.weights))[1]))
    assert min(reported) * (1 - 1e-6) <= float(sd_after) <= max(reported) * (1 + 1e-6)
    assert float(sd_after) < 0.95 * float(sd)


def test_contexts_take_turns() -> None:
    """The same design again and again is known in every kind of context in the end."""
    x = torch.tensor(PENDING[:1], dtype=torch.float64)
    sds = [float(about_the_mean(belief_of(PENDING[:1] * count), x)[1]) for count in range(6)]
    assert all(later < earlier for earlier, later in itertools.pairwise(sds))
    assert sds[5] < 0.35 * sds[0]
    assert len(belief_of(PENDING[:1] * 6).model.inputs[8:, 2].unique()) > 1
