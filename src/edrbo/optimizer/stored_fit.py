"""Hyper-parameters kept between processes.

A fit belongs to the observations it was made on. It is used only where these come first, bit for bit, in the present
ones; then going on from it and computing everything anew give the same numbers (surrogate/refit.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from edrbo import __version__
from edrbo.acquisition.methods import Method
from edrbo.errors import InvalidValueError
from edrbo.optimizer.training_data import TrainingData
from edrbo.space import Space
from edrbo.surrogate.kernels import Hyperparameters


@dataclass(frozen=True, eq=False)
class StoredFit:
    """``hyper`` were fitted on the first ``rows`` observations; ``digest`` is that of the first ``count``.

    ``others`` are the fits of outcomes besides the main one.
    """

    rows: int
    hyper: Hyperparameters
    count: int
    digest: str
    others: Mapping[str, StoredFit] = field(default_factory=dict)

    def usable(self, training_data: TrainingData) -> tuple[int, Hyperparameters] | None:
        """(rows, hyper-parameters), or None if they were fitted to other data."""
        same = self.count <= len(training_data.training) and self.digest == training_data.digest(self.count)
        return (self.rows, self.hyper) if same else None

    def suits(self, method: Method, space: Space) -> bool:
        """Whether it has the experts and the inputs of the model of ``method``."""
        inputs = space.d_x + (space.context_width if method.score.uses_context else 0)
        return self.hyper.lengthscale.shape == (len(method.surrogate.experts), inputs)

    def to_dict(self) -> dict[str, Any]:
        """JSON types only."""
        return {
            "version": __version__,
            "observations": self.count,
            "digest": self.digest,
            "rows": self.rows,
            **self.hyper.to_dict(),
            **({"others": {name: fit.to_dict() for name, fit in self.others.items()}} if self.others else {}),
        }

    @classmethod
    def from_dict(cls, record: Any) -> StoredFit | None:
        """The inverse of ``to_dict``; None for a fit of another version, which may have fitted otherwise."""
        if record is None:
            return None
        if not isinstance(record, Mapping):
            raise InvalidValueError("the stored fit is not an object")
        if record.get("version") != __version__:
            return None
        hyper = Hyperparameters.from_dict(record)
        _check(hyper)
        rows, count = record["rows"], record["observations"]
        whole = all(isinstance(number, int) and not isinstance(number, bool) for number in (rows, count))
        if not whole or not 1 <= rows <= count or not isinstance(record["digest"], str):
            raise InvalidValueError("the stored fit does not fit together")
        others = record.get("others", {})
        if not isinstance(others, Mapping):
            raise InvalidValueError("the stored fits of other outcomes are not an object")
        read = {name: cls.from_dict(part) for name, part in others.items()}
        return cls(rows, hyper, count, record["digest"], {name: fit for name, fit in read.items() if fit is not None})


def _check(hyper: Hyperparameters) -> None:
    positive = (hyper.lengthscale, hyper.outputscale, hyper.noise_variance, hyper.shape)
    experts = hyper.outputscale.shape
    shapes = hyper.lengthscale.ndim == 2 and hyper.lengthscale.shape[:1] == experts
    shapes = (
        shapes
        and len(experts) == 1
        and all(part.shape == experts for part in (hyper.noise_variance, hyper.mean, hyper.shape))
    )
    numbers = all(bool(part.isfinite().all()) and bool((part > 0).all()) for part in positive)
    power = isinstance(hyper.power, int | float) and math.isfinite(hyper.power)
    if not (shapes and numbers and power and bool(hyper.mean.isfinite().all())):
        raise InvalidValueError("the hyper-parameters of the stored fit make no sense")
