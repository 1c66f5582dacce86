"""Whether the process has changed since a run: forecasts one step ahead, of a model in which it has against one in
which it has not.

Both are Gaussian processes of the outcome over design and context, with a lengthscale for each input and a noise,
averaged over a few values around what fits best where nothing changes. Where the process changes at run k, it does so
in one of five ways: f before and after are correlated by one of ``ALIKE`` only; f is moved by a constant; f begins to
drift, or its level to wander. The evidence of a model is the product of its forecasts, each of a run by those before
it, so the ratio of evidences says which of the two forecast better (Adams and MacKay, 2007; Saatçi, Turner and
Rasmussen, 2010). Single outcomes far off do not count more than is usual.

Before the first run a change is as likely at each run as at any other that is reached (``HAZARD``). The ratio averaged
over where it began is then a martingale as long as nothing changes, and exceeds 1/``FALSE_ALARMS`` at any time, however
often one looks, with no more than that probability (Ville, 1939). docs/guides/wear.md has what was measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edrbo.records.sanity import outliers
from edrbo.records.settings import LEARNED
from edrbo.records.state import State

Array = NDArray[np.float64]

FALSE_ALARMS = 0.02  # in a study, however long it is
HAZARD = 0.01  # of a change, at every run
MOST_ROWS = 120  # the last ones are looked at
FEWEST_ROWS, FEWEST_SINCE, FEWEST_BEFORE = 12, 4, 5
LENGTHSCALES = (0.15, 0.3, 0.6, 1.2, 2.4, 5.0)  # of the unit cube: that of each input is one of these
NOISES = (0.002, 0.007, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8)  # variances, where that of all outcomes is one
ROUNDS = 2  # over all inputs, each with every noise
TYPICAL, WIDTH = 0.7, 0.75  # median and log-sd of the prior of lengthscales
LONGER = (1.0, 1.7)  # around what fits best where nothing changes, lengthscales times so much …
QUIETER = (2.0, 1.0, 1 / 3, 1 / 10, 1 / 30)  # … and noises: a change is taken for noise at first
LEAST_NOISE = 1e-3
FARTHEST = 2.5  # standard deviations from what all others predict: an outcome farther off counts as if there
ALIKE = (0.0, 0.8)  # how f after a change is correlated with f before it
MOVED = 1.0  # variance of a constant by which it moves …
WANDERS = 30.0  # … at once, or in so many runs, as Brownian motion does
WEARS = 16.0  # the half-life of f where it begins to drift
LEARNED_HALF_LIVES = (math.inf, 64.0, 16.0)  # of drift, if that is learned
STEPS = 12  # places of a change that are looked at first; then those around the best


@dataclass(frozen=True)
class ProcessChange:
    """``outcome`` has come out otherwise since ``run``; ``odds`` to one, against no change."""

    run: int
    outcome: str
    odds: float


@lru_cache(maxsize=4)  # a page asks it again and again
def process_change(state: State) -> ProcessChange | None:
    """Where the process has changed, by the outcomes; None if there is no sign of it."""
    outcomes = state.settings.outcomes
    names = [state.settings.outcome] if outcomes is None else list(outcomes)
    states = [state] if outcomes is None else [state.of_outcome(name) for name in names]
    found = [_change(one, FALSE_ALARMS / len(names)) for one in states]
    return max((one for one in found if one is not None), key=lambda one: one.odds, default=None)


def _change(state: State, false_alarms: float) -> ProcessChange | None:
    data = state.observations
    rows = state.training_order if state.space.d_c else np.arange(len(data))
    rows = np.sort(rows[~outliers(state)[rows]])[-MOST_ROWS:]
    if len(rows) < FEWEST_ROWS:
        return None
    owners = np.array(state.owners)[rows]
    order = {key: float(number) for number, key in enumerate(state.reported_order)}
    time = np.array([order[key] for key in owners.tolist()])
    contexts = data.c[rows]
    coded = state.space.context_scale(contexts).encode(contexts) if state.space.d_c else contexts
    drift = state.settings.drift
    half_lives = LEARNED_HALF_LIVES if drift == LEARNED else (math.inf,) if drift is None else (float(drift),)
    best, odds = change_odds(np.concatenate([data.x[rows], coded], axis=1), data.y[rows], time, half_lives)
    if odds < 1.0 / false_alarms:
        return None
    return ProcessChange(int(owners[int(np.argmax(time >= best))]), state.settings.outcome, odds)


def change_odds(
    inputs: Array, y: Array, time: Array, half_lives: tuple[float, ...] = (math.inf,)
) -> tuple[float, float]:
    """The most probable time (of those in ``time``, n) from which on outcomes ``y`` (n) at ``inputs`` (n × d, coded)
    come otherwise, and the odds of a change over none, averaged over when it may have been."""
    scale = float(y.std()) or 1.0
    models = _Models(inputs, (y - y.mean()) / scale, time, half_lives)
    times = np.unique(time)
    since = np.array([(time >= t).sum() for t in times])
    possible = times[(since >= FEWEST_SINCE) & (len(time) - since >= FEWEST_BEFORE)]
    first = float(times[0])
    unseen = 1.0 - sum(_prior(t - first) for t in possible)  # no change yet, or one that cannot be told
    if not len(possible):
        return first, 1.0
    known: dict[float, float] = {}
    stride = max(1, len(possible) // STEPS)
    for t in possible[::stride]:
        known[float(t)] = models.gain(float(t))
    center = int(np.flatnonzero(possible == max(known, key=lambda t: known[t]))[0])
    for t in possible[max(0, center - stride + 1) : center + stride]:
        if float(t) not in known:
            known[float(t)] = models.gain(float(t))
    looked = np.array(sorted(known))
    nearest = looked[np.abs(possible[:, None] - looked).argmin(axis=1)]  # the others are as their neighbors
    logs = np.array(
        [math.log(_prior(t - first)) + known[float(near)] for t, near in zip(possible, nearest, strict=True)]
    )
    total = float(np.logaddexp.reduce(np.append(logs, math.log(unseen))))
    best = max(known, key=lambda t: math.log(_prior(t - first)) + known[t])
    return best, math.exp(min(total, 700.0))


def _prior(runs: float) -> float:
    """That the process changes after so many runs, and not before."""
    return HAZARD * float((1.0 - HAZARD) ** runs)


class _Models:
    """Evidence of the outcomes (n, standardized), averaged over lengthscales, noises and half-lives."""

    def __init__(self, inputs: Array, y: Array, time: Array, half_lives: tuple[float, ...]) -> None:
        self.y, self.time = y, time
        self.squares = np.square(inputs[:, None] - inputs).transpose(2, 0, 1)  # d × n × n
        age = np.abs(time[:, None] - time)
        drifts = np.stack([np.exp2(-age / half_life) for half_life in half_lives])
        length, noise = self._fitted(drifts[:1])
        self.y = self._robust(self._signal(length) * drifts[0], noise)
        signal = np.stack([self._signal(factor * length) for factor in LONGER])
        self.signal = (signal[:, None] * drifts).reshape(-1, *age.shape)  # L × n × n
        self.noise = np.maximum(noise * np.array(QUIETER), LEAST_NOISE)
        self.constant = self._evidence(self.signal)

    def _signal(self, length: Array) -> Array:
        """Matérn 5/2 with a lengthscale for each input (d): n × n."""
        return _matern(np.sqrt(5.0 * np.tensordot(length**-2.0, self.squares, axes=1)))

    def _fitted(self, drift: Array) -> tuple[Array, float]:
        """The lengthscales (d) and the noise that fit best, one input after the other."""
        length, noise = np.full(len(self.squares), LENGTHSCALES[2]), NOISES[3]
        for k in list(range(len(length))) * ROUNDS:
            tried = np.repeat(length[None], len(LENGTHSCALES), axis=0)
            tried[:, k] = LENGTHSCALES
            logs = self._logs(np.stack([self._signal(one) for one in tried]) * drift, np.array(NOISES))
            logs = logs - 0.5 * np.square((np.log(tried) - math.log(TYPICAL)) / WIDTH).sum(axis=1)[:, None]
            row, column = np.unravel_index(int(logs.argmax()), logs.shape)
            length, noise = tried[row], NOISES[column]
        return length, noise

    def _robust(self, signal: Array, noise: float) -> Array:
        """The outcomes, none farther than ``FARTHEST`` from what all others predict."""
        inverse = np.linalg.inv(signal + 1.0 + noise * np.eye(len(self.y)))
        own = np.diagonal(inverse)
        off = inverse @ self.y / own
        reach: Array = FARTHEST / np.sqrt(own)
        return self.y - off + np.clip(off, -reach, reach)

    def gain(self, t: float) -> float:
        """Log evidence of a change at time ``t`` less that of none."""
        after: NDArray[np.bool_] = self.time >= t
        same = after[:, None] == after
        since = np.clip(self.time - t, 0.0, None)
        factors: list[Array] = [np.where(same, 1.0, alike).astype(np.float64) for alike in ALIKE]
        factors += [np.exp2(-np.abs(since[:, None] - since) / WEARS)]
        moves: list[NDArray[np.floating[Any]]] = [
            np.outer(after, after) * 1.0,
            np.minimum(since[:, None], since) / WANDERS,
        ]
        changed = [self._evidence(self.signal * factor) for factor in factors]
        changed += [self._evidence(self.signal + move * MOVED) for move in moves]
        return float(np.logaddexp.reduce(changed)) - math.log(len(changed)) - self.constant

    def _evidence(self, signal: Array) -> float:
        """Log of the mean over models of their evidence; of ``signal`` (L × n × n) with every noise.

        The constant mean is normal with variance one. With yᵀ (K⁻¹) y < c = yᵀy / noise, the last row of the Cholesky
        factor of [[K, y], [yᵀ, c]] has the quadratic form: one factorization gives that and the determinant.
        """
        logs = self._logs(signal, self.noise)
        return float(np.logaddexp.reduce(logs, axis=None)) - math.log(logs.size)

    def _logs(self, signal: Array, noise: Array) -> Array:
        """Of each signal with each noise."""
        n = len(self.y)
        joint = np.empty((len(signal), len(noise), n + 1, n + 1))
        joint[..., :n, :n] = (signal + 1.0)[:, None] + noise[:, None, None] * np.eye(n)
        joint[..., :n, n] = joint[..., n, :n] = self.y
        bound = (1.0 + float(self.y @ self.y)) / noise
        joint[..., n, n] = bound
        roots = np.diagonal(np.linalg.cholesky(joint), axis1=-2, axis2=-1)
        quadratic = bound - np.square(roots[..., n])
        logs: Array = -0.5 * quadratic - np.log(roots[..., :n]).sum(-1)
        return logs


def _matern(scaled: Array) -> Array:
    """Matérn 5/2 of √5 r/ℓ."""
    return (1.0 + scaled + np.square(scaled) / 3.0) * np.exp(-scaled)
