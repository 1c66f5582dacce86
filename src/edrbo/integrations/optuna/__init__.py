"""Any method of edrbo as an Optuna sampler."""

from edrbo.errors import MissingExtraError

try:
    from edrbo.integrations.optuna.sampler import EDRBOSampler
except ModuleNotFoundError as problem:
    if str(problem.name).split(".")[0] not in ("optuna", "sqlalchemy"):
        raise
    raise MissingExtraError("the sampler needs Optuna", "pip install 'edrbo[optuna]'") from None

__all__ = ["EDRBOSampler"]
