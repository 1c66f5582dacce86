"""Durable studies: an optimizer whose every step is on disk, or in a database, before the call returns."""

from edrbo.errors import MissingExtraError

try:
    from edrbo.study.study import Study
except ModuleNotFoundError as problem:
    if str(problem.name).split(".")[0] not in ("optuna", "sqlalchemy"):
        raise
    raise MissingExtraError("studies need Optuna", "pip install 'edrbo[study]'") from None

__all__ = ["Study"]
