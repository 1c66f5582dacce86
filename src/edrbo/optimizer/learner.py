"""The surrogate of the observations, kept and brought up to date as they grow."""

from __future__ import annotations

import torch

from edrbo.acquisition.methods import Method
from edrbo.optimizer.stored_fit import StoredFit
from edrbo.optimizer.training import Evidence
from edrbo.surrogate.ensemble import Ensemble
from edrbo.surrogate.schedule import FittedModel, advance


class Learner:
    """Fits the surrogate of ``method``; ``stored`` is a fit made before this process."""

    def __init__(self, method: Method, stored: StoredFit | None = None) -> None:
        self.stored = stored
        self._method = method
        self._fitted: FittedModel | None = None
        self._digest = ""  # of what it was fitted to

    @property
    def fit(self) -> StoredFit | None:
        """The last fit; None before the first."""
        if self._fitted is None:
            return self.stored
        return StoredFit(self._fitted.fitted, self._fitted.hyper, self._fitted.rows, self._digest)

    def offer(self, stored: StoredFit | None, evidence: Evidence) -> None:
        """A fit made elsewhere; it is used if it is of these data and further on than our own."""
        own = self.fit
        if stored is None or (own is not None and stored.rows <= own.rows):
            return
        if stored.suits(self._method, evidence.space) and stored.usable(evidence) is not None:
            self.stored, self._fitted = stored, None

    def model(self, evidence: Evidence) -> Ensemble | None:
        """The surrogate on all complete observations; None if there is none."""
        rows = evidence.training
        n = len(rows)
        if n == 0:
            return None
        fitted = self._fitted
        if fitted is not None and (fitted.rows > n or evidence.digest(fitted.rows) != self._digest):
            fitted = None  # something was corrected or undone
        if fitted is None or fitted.rows != n:
            fitted = advance(
                self._method.surrogate,
                fitted,
                n,
                evidence.inputs,
                torch.from_numpy(evidence.outcomes[rows]),
                evidence.noise_of,
                None if self.stored is None else self.stored.usable(evidence),
            )
            self._digest = evidence.digest(n)
        self._fitted = fitted
        return fitted.model
