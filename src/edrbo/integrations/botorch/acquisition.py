"""Our acquisition as a BoTorch ``AcquisitionFunction``, on our ensemble or on any stock model."""

from __future__ import annotations

from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.models.model import Model
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from edrbo.acquisition import acquisition as engine
from edrbo.acquisition.risk import Functional
from edrbo.acquisition.scores import Score
from edrbo.contexts.distributions import ContextPoints
from edrbo.integrations.botorch.model import Ensemble
from edrbo.integrations.botorch.stock_model import StockModel
from edrbo.surrogate import ensemble
from edrbo.threads import engine_threads


class RobustAcquisition(AcquisitionFunction):
    """α(x) = functional_c s(x, c).

    ``model`` is an ensemble (the fast path) or any single-output BoTorch model on (x, c); the last d_c inputs are the
    context. Inputs and contexts are in the coding the model was trained on.
    """

    def __init__(
        self, model: Model | ensemble.ExpertEnsemble, score: Score, points: ContextPoints, functional: Functional
    ) -> None:
        model = Ensemble(model) if isinstance(model, ensemble.ExpertEnsemble) else model
        super().__init__(model=model)
        beliefs = model.experts if isinstance(model, Ensemble) else StockModel(model)
        self.engine = engine.RobustAcquisition(beliefs, score, points, functional)
        self.set_X_pending(None)

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    @engine_threads()
    def forward(self, X: Tensor) -> Tensor:
        """``X`` is b × 1 × d_x; gives b values."""
        return self.engine.evaluate(X.reshape(-1, X.shape[-1])).reshape(X.shape[:-2])
