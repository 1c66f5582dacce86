"""BoTorch's log noisy expected improvement on x alone, as its tutorials use it."""

from __future__ import annotations

import warnings
from typing import final

import numpy as np
import torch
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms.outcome import Standardize
from botorch.optim.optimize import optimize_acqf
from botorch.sampling.normal import SobolQMCNormalSampler
from botorch.utils.sampling import manual_seed
from gpytorch.mlls import ExactMarginalLogLikelihood

from edrbo.bench.learners.learner import Array, ContextFree

RESTARTS = 4
RAW_SAMPLES = 128
FANTASIES = 128


@final
class LogNEI(ContextFree):
    """``SingleTaskGP`` fitted from scratch at every step, qLogNEI maximized by ``optimize_acqf``."""

    def propose(self) -> Array:
        seed, X = self.step_seed("lognei"), torch.from_numpy(self.x)
        bounds = torch.tensor([[0.0], [1.0]], dtype=torch.float64).expand(2, self.setup.d_x)
        # optimize_acqf draws from torch's global generator; `manual_seed` puts it back afterwards.
        with manual_seed(seed), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # failed line searches are tried again by BoTorch itself
            sampler = SobolQMCNormalSampler(torch.Size([FANTASIES]), seed=seed)
            acquisition = qLogNoisyExpectedImprovement(self._model(), X, sampler=sampler, prune_baseline=True)
            found, _ = optimize_acqf(acquisition, bounds, q=1, num_restarts=RESTARTS, raw_samples=RAW_SAMPLES)
        return self.setup.snap(np.asarray(found[0].numpy(), dtype=np.float64))

    def recommend(self) -> Array:
        with manual_seed(self.step_seed("lognei")), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mean = self._model().posterior(torch.from_numpy(self.x)).mean[:, 0]
        return self._x[int(mean.argmax())]

    def _model(self) -> SingleTaskGP:
        Y = torch.from_numpy(self.y)[:, None]
        model = SingleTaskGP(torch.from_numpy(self.x), Y, outcome_transform=Standardize(m=1))
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        return model
