"""Which observations hyper-parameters are fitted to when there are very many.

A fit costs O(n³) each time the likelihood is looked at, conditioning on the data once. A few hundred observations say
nearly all there is to say about a handful of hyper-parameters, if they are chosen well: some spread out, which tell the
lengthscales, and some as they came, near-duplicates among them, which tell the noise.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

MOST_FITTED = 500  # what this costs in foretelling is in docs/speed.md


def representative(X: Tensor, size: int = MOST_FITTED) -> Tensor:
    """The numbers of ``size`` of the rows of ``X`` (n × d), in order; all of them if they are no more.

    Half are each as far as can be from those before (the unit cube's own distance), the first row being the first; the
    others stand at even steps among the rest. A function of the data in their order alone.
    """
    n = len(X)
    if n <= size:
        return torch.arange(n)
    points = X.numpy()
    spread = np.zeros(size // 2, dtype=np.int64)
    away = np.square(points - points[0]).sum(axis=1)
    for k in range(1, len(spread)):
        # ties by the first, and distances to nine digits: which row is taken must not hang on last bits
        spread[k] = int(np.round(away, 9).argmax())
        away = np.minimum(away, np.square(points - points[spread[k]]).sum(axis=1))
    others = np.setdiff1d(np.arange(n), spread)
    even = others[np.linspace(0, len(others) - 1, size - len(spread)).astype(np.int64)]
    return torch.from_numpy(np.union1d(spread, even))
