"""Parts of answers: values in the user's units and direction, with their uncertainty and where they come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class TriedRun:
    """A run that was reported, under its id.

    ``distance`` is that of its design from the recommended one in lengthscales of the model: at 1 it tells about half
    of the outcome there.
    """

    run: int
    design: dict[str, Any]
    context: dict[str, Any] | None
    value: float
    distance: float


@dataclass(frozen=True)
class OutcomeAnswer:
    """What to expect of one of several outcomes at the recommended design, in its own units.

    aim                     what it is for, in words, with its ``unit``
    expected                posterior mean of its average over contexts, with the central 95 % ``interval``
    outcome_interval        central 95 % interval of its next single value
    value                   posterior expectation of its goal's value, with the 95 % ``value_interval``; of a limit that
                            is the share of contexts in which it holds
    holds                   of a limit: how probable it is, given the data, that it holds in the share of contexts asked
                            for
    contexts_known          of a limit: of how many contexts is known what they are like; None if their distribution is
    """

    aim: str
    unit: str
    expected: float
    interval: tuple[float, float]
    outcome_interval: tuple[float, float]
    value: float
    value_interval: tuple[float, float]
    holds: float | None = None
    contexts_known: float | None = None


@dataclass(frozen=True)
class LikelyDesign:
    """The best design that keeps every limit as far as can be expected, whether or not that is sure: its mean over
    contexts with the central 95 % ``interval``."""

    design: dict[str, Any]
    expected: float
    interval: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Prediction:
    """Beliefs about the expected value of n designs, in the user's units: arrays of length n.

    ``lower`` and ``upper`` bound the central 95 % interval of E_c f(x, c) under the true distribution; ``from_model``,
    ``from_contexts`` and ``from_experts`` are its half-width by source and add in squares. ``outcome_lower`` and
    ``outcome_upper`` bound the next single outcome, context and noise included. ``value``, ``value_lower`` and
    ``value_upper`` are the same for the goal's value (its posterior expectation), in the goal's units.
    """

    expected: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    disagreement: NDArray[np.float64]
    from_model: NDArray[np.float64]
    from_contexts: NDArray[np.float64]
    from_experts: NDArray[np.float64]
    outcome_lower: NDArray[np.float64]
    outcome_upper: NDArray[np.float64]
    value: NDArray[np.float64]
    value_lower: NDArray[np.float64]
    value_upper: NDArray[np.float64]
