"""The parts of edrbo as BoTorch knows such things: the ensemble as a ``Model``, the acquisition as an
``AcquisitionFunction``, and stock models for our acquisition."""

from edrbo.errors import MissingExtraError

try:
    from edrbo.integrations.botorch.acquisition import RobustAcquisition
    from edrbo.integrations.botorch.model import Ensemble
    from edrbo.integrations.botorch.stock_model import StockModel
except ModuleNotFoundError as problem:
    if str(problem.name).split(".")[0] not in ("botorch", "gpytorch", "linear_operator"):
        raise
    raise MissingExtraError("this part of edrbo needs BoTorch", "pip install 'edrbo[botorch]'") from None

__all__ = ["Ensemble", "RobustAcquisition", "StockModel"]
