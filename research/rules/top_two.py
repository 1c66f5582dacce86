"""Top-two by expected improvement (Qin, Klabjan and Russo, 2017), for who wants to know the best design in the end.

The leader is the design that is believed to be best, the challenger the one that is expected to be better than it by
most, as far as it is: E[(F(x) − F(leader))₊] under the joint posterior, so that designs next to the leader, which are
right when it is, are no challengers. Suggestions are in turn the default's and the challenger.
"""

from __future__ import annotations

import torch
from torch import Tensor

from edrbo.bench.learners.learner import Setup
from edrbo.contexts.distributions import ContextPoints, sobol_points
from edrbo.streams import in_turn, stream, stream_seed
from edrbo.surrogate.ensemble import ExpertEnsemble
from edrbo.surrogate.gaussian_model import pairs
from rules.hills import Array, HillVisitor, Rule, climbed, context_points, surface_of
from rules.scores import log_h

SCATTERED, NEAR = 256, 128  # candidates anywhere, and around those tried
REACH = 0.1  # standard deviation of steps around these
ROUNDS, AROUND = 3, 32  # refinements of the best, each with half the steps


def log_gains(model: ExpertEnsemble, points: ContextPoints, leader: Tensor, designs: Tensor) -> Tensor:
    """log E[(F(x) − F(leader))₊] (N) of ``designs`` (N × d_x) beside ``leader`` (d_x), any expert being right."""
    contexts, count = points.atoms, len(points.atoms)
    mean, sd = model.gp.paired_with(contexts).integrated(torch.cat([leader[None], designs]), points.weights)
    joint = pairs(torch.cat([leader[None], designs]), contexts)
    _, _, beside = model.gp.posterior_beside(joint, torch.arange(count))
    shared = ((beside @ points.weights).reshape(len(beside), -1, count) @ points.weights)[:, 1:]
    apart = (sd[:, 1:].square() + sd[:, :1].square() - 2.0 * shared).clamp_min(1e-14).sqrt()
    each = log_h((mean[:, 1:] - mean[:, :1]) / apart) + apart.log()
    return each.logsumexp(0)


class TopTwo(HillVisitor):
    """The default, and in ``turn`` the challenger."""

    def __init__(self, setup: Setup, turn: float = 0.5) -> None:
        super().__init__(setup, Rule(turn=turn))

    def suggest(self) -> Array:
        runs = len(self._optimizer)
        if runs < self.setup.initial or in_turn(runs - self.setup.initial) >= self.rule.turn:
            return self.default()
        return self.asked(self.challenger())

    def challenger(self) -> Tensor:
        """The design (d_x)."""
        model, d_x, runs = self._optimizer.model, self.setup.d_x, len(self._optimizer)
        assert model is not None  # every outcome has its context
        points, tried = context_points(model, d_x), model.inputs[:, :d_x]
        with torch.no_grad():
            leader = self.leader(model, points, tried)
            random = stream(self.setup.seed, "challengers", runs)

            def around(centers: Tensor, size: float, count: int) -> Tensor:
                rows = torch.from_numpy(random.integers(len(centers), size=count))
                steps = torch.from_numpy(random.standard_normal((count, d_x)))
                return (centers[rows] + size * steps).clamp(0.0, 1.0)

            seed = stream_seed(self.setup.seed, "challengers", runs)
            designs = torch.cat([sobol_points(d_x, SCATTERED, seed), around(tried, REACH, NEAR)])
            values = log_gains(model, points, leader, designs)
            for k in range(ROUNDS):
                best = designs[values.topk(2).indices]
                more = around(best, REACH * 0.5 ** (k + 1), AROUND)
                designs, values = (
                    torch.cat([designs, more]),
                    torch.cat([values, log_gains(model, points, leader, more)]),
                )
            found = designs[int(values.argmax())]
        return torch.from_numpy(self.setup.snap(found.numpy()))

    def leader(self, model: ExpertEnsemble, points: ContextPoints, tried: Tensor) -> Tensor:
        """The design (d_x) of the largest posterior mean: the top of the hill of the best tried one."""
        surface = surface_of(model, points, 0.0)
        values = surface.evaluate(tried)
        spread = max(float(values.max() - values.min()), 1e-300)
        ends, _ = climbed(surface, tried[values.argmax()][None], 0.0, 1.0, spread)
        return ends[0]
