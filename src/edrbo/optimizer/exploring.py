"""aim="identify": which suggestions look where nobody has looked, although the model promises nothing there.

A model that is sure of itself never finds out that it is wrong. Where only the final design counts, a look costs no
more than an evaluation; but evaluations are spent best near the best design, so there is a measure to it: one look
after the initial designs, and one more each time the regret since, as the model reckons it today, has grown by that of
all initial designs. What is easy to learn is hardly looked around for; what keeps costing regret is looked around for
again and again (docs/why.md has the trials).

No record is kept of looks: they follow from the outcomes, in the order told. The suggestion that is made while p others
are pending answers to the outcome told p before the last, so each outcome is answered to once, whether designs are
asked for one by one, in batches or by several workers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LAST_PART = 0.2  # of the evaluations that are planned: too late to follow up what is found


def looks_around(worth: NDArray[np.float64], initial: int, pending: int, planned: int | None) -> bool:
    """Whether the next suggestion looks where nobody has, from what each design told is ``worth`` (n, in the order
    told) as the model reckons it; ``initial`` of them came first, ``pending`` others are being evaluated."""
    answered = len(worth) - 1 - pending
    if answered < initial - 1 or (planned is not None and len(worth) + pending >= (1.0 - LAST_PART) * planned):
        return False
    if answered == initial - 1:
        return True
    regret = worth.max() - worth
    unit = regret[:initial].sum()
    if not unit > 0:  # all the same
        return False
    paid = 0.5 + np.append(0.0, np.cumsum(regret[initial : answered + 1]) / unit)
    return bool(np.floor(paid[-1]) > np.floor(paid[-2]))
