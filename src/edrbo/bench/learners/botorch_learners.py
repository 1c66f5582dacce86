"""BoTorch's log noisy expected improvement: on x alone, as its tutorials use it (``LogNEI``), and the strongest thing
that an expert would build of its parts without this package (``ExpectationNEI``): one GP on (x, c), where the
expectation over observed contexts is the objective (``AppendFeatures`` and the ``Expectation`` risk measure).
"""

from __future__ import annotations

import warnings
from typing import final

import numpy as np
import torch
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.acquisition.risk_measures import Expectation
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import AppendFeatures
from botorch.models.transforms.outcome import Standardize
from botorch.optim.optimize import optimize_acqf
from botorch.sampling.normal import SobolQMCNormalSampler
from botorch.utils.sampling import manual_seed
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from edrbo.bench.learners.learner import Array, ContextFree, Learner, Setup, initial_designs
from edrbo.streams import stream, stream_seed

RESTARTS = 4
RAW_SAMPLES = 64
FANTASIES = 64
CONTEXTS = 16  # of those seen, at most, drawn anew at every step: the cost grows with their square


@final
class ExpectationNEI(Learner):
    """``SingleTaskGP`` on (x, c), fitted from scratch at every step; qLogNEI of the mean over contexts."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self._initial = initial_designs(setup)
        self._x: list[Array] = []
        self._c: list[Array] = []
        self._y: list[float] = []

    def suggest(self) -> Array:
        n = len(self._y)
        return self._initial[n] if n < len(self._initial) else self._propose()

    def observe(self, x: Array, c: Array, y: float) -> None:
        self._x.append(np.array(x))
        self._c.append(np.array(c))
        self._y.append(y)

    def _propose(self) -> Array:
        seed = stream_seed(self.setup.seed, "expectation nei", len(self._y)) % 2**32
        contexts = self._contexts()
        bounds = torch.tensor([[0.0], [1.0]], dtype=torch.float64).expand(2, self.setup.d_x)
        # optimize_acqf draws from torch's global generator; `manual_seed` puts it back afterwards.
        with manual_seed(seed), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # failed line searches are tried again by BoTorch itself
            acquisition = qLogNoisyExpectedImprovement(
                self._model(contexts),
                torch.from_numpy(np.stack(self._x)),
                sampler=SobolQMCNormalSampler(torch.Size([FANTASIES]), seed=seed),
                objective=Expectation(n_w=len(contexts)),
                prune_baseline=True,
            )
            found, _ = optimize_acqf(acquisition, bounds, q=1, num_restarts=RESTARTS, raw_samples=RAW_SAMPLES)
        return self.setup.snap(np.asarray(found[0].numpy(), dtype=np.float64))

    def recommend(self) -> Array:
        """The tried design with the best mean over all contexts seen."""
        contexts = torch.from_numpy(np.stack(self._c))
        with manual_seed(0), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = self._model(contexts)
            means = [float(model.posterior(torch.from_numpy(x)[None]).mean.mean()) for x in self._x]
        return self._x[int(np.argmax(means))]

    def _contexts(self) -> Tensor:
        """Some of the contexts seen (k × d_c)."""
        n = len(self._c)
        rows = stream(self.setup.seed, "expectation nei contexts", n).permutation(n)[:CONTEXTS]
        return torch.from_numpy(np.stack(self._c)[rows])

    def _model(self, contexts: Tensor) -> SingleTaskGP:
        joint = torch.from_numpy(np.hstack([np.stack(self._x), np.stack(self._c)]))
        outcomes = torch.from_numpy(np.array(self._y))[:, None]
        model = SingleTaskGP(
            joint,
            outcomes,
            outcome_transform=Standardize(m=1),
            input_transform=AppendFeatures(feature_set=contexts),
        )
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        model.eval()
        return model


MARGINAL_RAW_SAMPLES = 128
MARGINAL_FANTASIES = 128


@final
class LogNEI(ContextFree):
    """``SingleTaskGP`` fitted from scratch at every step, qLogNEI maximized by ``optimize_acqf``."""

    def propose(self) -> Array:
        seed, X = self.step_seed("lognei"), torch.from_numpy(self.x)
        bounds = torch.tensor([[0.0], [1.0]], dtype=torch.float64).expand(2, self.setup.d_x)
        # optimize_acqf draws from torch's global generator; `manual_seed` puts it back afterwards.
        with manual_seed(seed), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # failed line searches are tried again by BoTorch itself
            sampler = SobolQMCNormalSampler(torch.Size([MARGINAL_FANTASIES]), seed=seed)
            acquisition = qLogNoisyExpectedImprovement(self._model(), X, sampler=sampler, prune_baseline=True)
            found, _ = optimize_acqf(acquisition, bounds, q=1, num_restarts=RESTARTS, raw_samples=MARGINAL_RAW_SAMPLES)
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
