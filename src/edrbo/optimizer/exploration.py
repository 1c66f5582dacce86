"""aim="identify" (best final design): some suggestions explore, maximizing the distance to all tried designs.

An overconfident model never finds out that it is wrong. Where only the final design counts, exploration costs no more
than an evaluation; but evaluations are spent best near the best design. So one suggestion explores after the initial
designs, and then a share of them that equals the average regret since, as the model estimates it today, in units of the
regret of all initial designs. Easy problems hardly explore; where regret goes on, exploration goes on (docs/why.md has
the trials).

No record is kept of which suggestions explored: they follow from the outcomes and from the number of the suggestion, so
they are the same whatever was interrupted. In batches the one after the initial designs is left out where its number
was asked for before they were reported.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edrbo.streams import in_turn

REGRET_RATE = 1.0  # explorations for a regret as large as that of all initial designs
MAX_SHARE = 1.0 / 3.0  # of suggestions that explore
FINAL_SHARE = 0.2  # of the evaluations that are planned: too late to follow up what is found


def is_exploring(worth: NDArray[np.float64], initial: int, pending: int, planned: int | None) -> bool:
    """Whether the next suggestion explores, given what each reported design is ``worth`` (n, in the order of reports)
    by the model; ``initial`` of them came first, ``pending`` others are being evaluated."""
    number = len(worth) + pending
    if len(worth) < initial or (planned is not None and number >= (1.0 - FINAL_SHARE) * planned):
        return False
    if number == initial:
        return True
    return in_turn(number - initial) < exploration_share(worth, initial)


def exploration_share(worth: NDArray[np.float64], initial: int) -> float:
    """The share of suggestions that explore, at most ``MAX_SHARE``."""
    regret = worth.max() - worth
    first, later = regret[:initial].sum(), regret[initial:].sum()
    if not first > 0:  # all initial designs are the same: nothing says what regret is much
        return 0.0
    return min(MAX_SHARE, REGRET_RATE * float(later / first) / (len(worth) - initial + 1))
