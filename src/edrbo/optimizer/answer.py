"""What is answered: values in the user's units and direction, with their uncertainty and where they come from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edrbo.errors import InvalidValueError


@dataclass(frozen=True)
class TriedRun:
    """A run that was told, under its id.

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

    aim             what it is for, in words, with its ``unit``
    expected        posterior mean of its average over contexts, with the central 95 % ``interval``
    outcome         central 95 % interval of its next single value
    value           posterior expectation of its goal's value, with the 95 % ``value_interval``; of a limit that is the
                    share of contexts in which it holds
    holds           of a limit: how probable it is, given the data, that it holds in the share of contexts asked for
    """

    aim: str
    unit: str
    expected: float
    interval: tuple[float, float]
    outcome: tuple[float, float]
    value: float
    value_interval: tuple[float, float]
    holds: float | None = None


@dataclass(frozen=True)
class Recommendation:
    """What to set, and what to expect. Values are in the user's units and direction.

    design              what to set, by name
    goal                what the design is best for, as text, and its ``title`` in words
    value               posterior expectation of the goal's value, with the central 95 % ``value_interval`` of it under
                        the *true* law and that interval's ``value_parts`` (see ``interval_parts``)
    price               mean, mean of the worst 10 % of contexts, and worst mean in the ball, of ``recommended`` and of
                        the design that is best ``on average``: what robustness costs and buys
    expected            posterior mean of E_c f(x, c) under the context law, summed over all contexts seen
    interval            central 95 % interval of the value under the *true* law
    interval_parts      its half-width by source, which add in squares: what is not known of f (``model``), of the law
                        (``contexts``; 0 for a forecast or a fixed context), and which expert is right (``experts``)
    outcome             central 95 % interval of the next single outcome at this design, context and noise included
    left_to_gain        with 95 % probability no design is better than this one by more, under the goal
    ten_more_runs       how much better the recommended design is expected to be after ten more runs
    gain_quantiles      0, 1, …, 100 % quantiles of how much better the best design is; see ``probability_best_within``
    untried             whether this design is far from every one tried (more than half a lengthscale)
    unseen              whether ``expected`` is better than every outcome told
    nearest             the tried runs nearest to this design, nearest first
    robust              ``expected`` made worse by √2 × the mean disagreement of the experts
    worst_case          the worst expected value when the context law moves by at most ``ball``: at or beyond this with
                        95 % probability, so that contexts nobody has seen count as what they are, unknown
    ball                Wasserstein-1 distance, as a fraction of the context ranges
    disagreement        mean over contexts of ε̂(x, c), the experts' distance from their barycenter
    context_effect      per context variable: standard deviation of f(x, c) due to it alone
    law_error           Wasserstein-2 distance of the atoms the search used from the law they stand for, coded
    observations        how many outcomes it stands on
    success             probability that an evaluation of the design succeeds; None as long as none has failed
    outcomes            of a study of several: what to expect of each, by name; everything above is about the main one,
                        and what is left to gain is so among designs that are believed to keep the limits
    limits_hold         whether each limit holds with the confidence asked for; None without limits

    After a single outcome there is no scale to judge it by, and the intervals are infinite.
    """

    design: dict[str, Any]
    goal: str
    title: str
    value: float
    value_interval: tuple[float, float]
    value_parts: dict[str, float]
    price: dict[str, dict[str, float]]
    expected: float
    interval: tuple[float, float]
    interval_parts: dict[str, float]
    outcome: tuple[float, float]
    left_to_gain: float
    ten_more_runs: float
    gain_quantiles: tuple[float, ...]
    untried: bool
    unseen: bool
    nearest: tuple[TriedRun, ...]
    robust: float
    worst_case: float
    ball: float
    disagreement: float
    context_effect: dict[str, float]
    law_error: float
    observations: int
    success: float | None = None
    outcomes: dict[str, OutcomeAnswer] = field(default_factory=dict)
    limits_hold: bool | None = None

    def probability_best_within(self, delta: float) -> float:
        """How probable it is that no design is better than this one by more than ``delta`` (in units of the value)."""
        if not delta >= 0:
            raise InvalidValueError(f"delta is {delta!r}", "give a difference of values, zero or more")
        levels = np.linspace(0.0, 1.0, len(self.gain_quantiles))
        return float(np.interp(delta, self.gain_quantiles, levels))


@dataclass(frozen=True, eq=False)
class Prediction:
    """Beliefs about the expected value of n designs, in the user's units: arrays of length n.

    ``lower`` and ``upper`` bound the central 95 % interval of E_c f(x, c) under the true law; ``from_model``,
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
