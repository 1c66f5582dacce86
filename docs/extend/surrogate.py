"""A surrogate: sparse axis-aligned GPs (SAAS), or any other BoTorch model whose posterior is Gaussian or a mixture."""

from dataclasses import dataclass

from botorch.fit import fit_gpytorch_mll
from botorch.models import EnsembleMapSaasSingleTaskGP
from gpytorch.mlls import ExactMarginalLogLikelihood

import edrbo
from edrbo.acquisition.risk import Expectation
from edrbo.acquisition.scores import MeanUCB
from edrbo.contexts import Empirical
from edrbo.integrations.botorch import BotorchSurrogate


@edrbo.register  # so that a study can store it
@dataclass(frozen=True)
class Saas(BotorchSurrogate):
    def fit_model(self, X, Y, Yvar):  # n × (d_x + d_c), the context last; n × 1, standardized; None or n × 1
        model = EnsembleMapSaasSingleTaskGP(X, Y, Yvar)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        return model


METHODS = {"saas": edrbo.Method(Saas(), MeanUCB(), Empirical(), Expectation())}
