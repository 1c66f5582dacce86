"""Suggestions by another belief than that of the fit, which stays what it was: draws of hyper-parameters, grids of
lengthscales. The design is searched as the optimizer does it, and handed to it as the only candidate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from edrbo.acquisition.acquisition import RobustAcquisition
from edrbo.acquisition.risk import Expectation
from edrbo.acquisition.scores import MeanUCB, Score
from edrbo.acquisition.search.maximizer import maximize
from edrbo.bench.learners.learner import Setup
from edrbo.contexts.distributions import ContextPoints, compress
from edrbo.streams import stream_seed
from edrbo.surrogate.ensemble import ExpertEnsemble
from edrbo.surrogate.exact_gp import ExactGP
from edrbo.surrogate.kernels import Hyperparameters, ensemble_priors
from edrbo.surrogate.marginal import marginalized
from rules.hills import Array, HillVisitor, Rule

Believe = Callable[[ExpertEnsemble], ExpertEnsemble]

MOST_ATOMS = 64  # contexts that stand for those seen, as in the optimizer


def laplace_draws(model: ExpertEnsemble) -> ExpertEnsemble:
    """Each expert as four draws of its hyper-parameters around its fit."""
    return marginalized(model, ensemble_priors(model.gp.x.shape[-1]))


def grid(factors: tuple[float, ...]) -> Believe:
    """Every kernel with every one of these factors of its lengthscales, under one barycenter (WBGP-BO, with the fit in
    the middle of the grid)."""

    def believe(model: ExpertEnsemble) -> ExpertEnsemble:
        gp, count = model.gp, len(factors)
        hyper = Hyperparameters(
            torch.cat([factor * gp.hyper.lengthscale for factor in factors]),
            *(getattr(gp.hyper, name).repeat(count) for name in ("outputscale", "noise_variance", "mean", "shape")),
            power=gp.hyper.power,
        )
        return replace(model, gp=ExactGP.condition(gp.kernels * count, hyper, gp.x, gp.y))

    return believe


class AskedBy(HillVisitor):
    """The default, asked by ``believe`` of its model under a score."""

    def __init__(self, setup: Setup, believe: Believe, score: Score | None = None) -> None:
        super().__init__(setup, Rule())
        self.believe, self.score = believe, MeanUCB() if score is None else score

    def suggest(self) -> Array:
        runs = len(self._optimizer)
        if runs < self.setup.initial:
            return self.default()
        model = self._optimizer.model
        assert model is not None  # every outcome has its context
        model, d_x = self.believe(model), self.setup.d_x
        seen = model.inputs[:, d_x:]
        small = compress(seen, torch.full((len(seen),), 1.0 / len(seen), dtype=torch.float64), MOST_ATOMS)
        points = ContextPoints(small.atoms, small.weights, seen[:0])
        acquisition = RobustAcquisition(model, self.score.at(model), points, Expectation())
        found = maximize(
            acquisition.approximations(),
            self.setup.space,
            seed=stream_seed(self.setup.seed, "maximize", runs),
            starts=model.inputs[:, :d_x],
        )
        return self.asked(torch.from_numpy(self.setup.snap(found.x.numpy())))
