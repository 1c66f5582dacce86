"""Durable studies: an optimizer whose every step is on disk, or in a database, before the call returns."""

from edrbo.study.study import Study

__all__ = ["Study"]
