"""A goal, the mean made worse by a share of the distance from it: edrbo bench run --plugin goal.py --goal calm:0.5"""

from dataclasses import dataclass
from typing import ClassVar

import edrbo


@edrbo.register  # so that it has a text, and a study can store it
@dataclass(frozen=True)
class Calm(edrbo.Goal):
    share: float = 0.5
    name: ClassVar[str] = "calm"

    def value(self, outcomes, weights, direction):  # (... × m), (m) → (...); NumPy arrays or torch tensors
        mean = (weights * outcomes).sum(-1)
        spread = (weights * abs(outcomes - mean[..., None])).sum(-1)
        return mean - self.share * spread if direction == "maximize" else mean + self.share * spread

    def title(self, direction="maximize", outcome="outcome"):
        return f"mean less {self.share:g} × the mean distance from it"
