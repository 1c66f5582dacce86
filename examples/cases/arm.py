"""The pendulum as an arm that swings parts up and comes back without: one set of gains for empty and full.

Simulator, controller and outcome are those of pendulum.py; only the distribution of the masses is another. Every second
swing is empty: the arm with its gripper weighs about half a kilogram. Every other one it holds a part, and parts are of
many kinds: with them it weighs anything from one kilogram to two. That makes one kilogram on average, which is what the
controller believes. The motor is the same for all, so a full arm needs more swings and can be held only near the top.

    python examples/cases/arm.py
"""

from __future__ import annotations

import numpy as np
from pendulum import carrying, shares, show


def masses() -> np.ndarray:
    """(100,) kilograms: half of them 0.45 to 0.55, half of them 1 to 2."""
    share = shares()[:, 0]
    return np.where(share < 0.5, 0.45 + 0.2 * share, 2.0 * share)


CASE = carrying("arm", masses(), least=0.4, most=2.1)

if __name__ == "__main__":
    show(CASE)
