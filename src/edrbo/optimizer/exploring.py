"""aim="identify": which suggestions look where nobody has looked, although the model promises nothing there.

A model that is sure of itself never finds out that it is wrong. Where only the final design counts, a look costs no
more than an evaluation; but evaluations are spent best near the best design, so there is a measure to it: one look
after the initial designs, and then as large a share of the suggestions as regret has been paid since, on average and as
the model reckons it today, in units of that of all initial designs. What is easy to learn is hardly looked around for;
what keeps costing regret is looked around for again and again (docs/why.md has the trials).

No record is kept of looks: they follow from the outcomes and from the number of the suggestion, so they are the same
whatever was interrupted. In batches the one after the initial designs is left out where its number was asked for before
they were told.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edrbo.streams import in_turn

RATE = 1.0  # looks for a regret as large as that of all initial designs
MOST = 1.0 / 3.0  # of suggestions that look around
LAST_PART = 0.2  # of the evaluations that are planned: too late to follow up what is found


def looks_around(worth: NDArray[np.float64], initial: int, pending: int, planned: int | None) -> bool:
    """Whether the next suggestion looks where nobody has, from what each design told is ``worth`` (n, in the order
    told) as the model reckons it; ``initial`` of them came first, ``pending`` others are being evaluated."""
    number = len(worth) + pending
    if len(worth) < initial or (planned is not None and number >= (1.0 - LAST_PART) * planned):
        return False
    if number == initial:
        return True
    return in_turn(number - initial) < share_of_looks(worth, initial)


def share_of_looks(worth: NDArray[np.float64], initial: int) -> float:
    """The share of suggestions that are to look around, at most ``MOST``."""
    regret = worth.max() - worth
    first, later = regret[:initial].sum(), regret[initial:].sum()
    if not first > 0:  # all initial designs are the same: nothing says what regret is much
        return 0.0
    return min(MOST, RATE * float(later / first) / (len(worth) - initial + 1))
