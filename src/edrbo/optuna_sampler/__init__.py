"""Any method of edrbo as an Optuna sampler."""

from edrbo.errors import MissingExtraError

try:
    from edrbo.optuna_sampler.sampler import EDRBOSampler
except ModuleNotFoundError as problem:
    if problem.name not in ("optuna", "sqlalchemy"):
        raise
    raise MissingExtraError(f"the sampler needs {problem.name}", "pip install 'edrbo[study]'") from None

__all__ = ["EDRBOSampler"]
