"""Durable studies: an optimizer whose every step is on disk, or in a database, before the call returns."""

from edrbo.errors import MissingExtraError

try:
    from edrbo.study.study import Study
except ModuleNotFoundError as problem:
    if problem.name not in ("optuna", "sqlalchemy"):
        raise
    raise MissingExtraError(f"studies need {problem.name}", "pip install 'edrbo[study]'") from None

__all__ = ["Study"]
