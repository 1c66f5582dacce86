"""Variations of ``aim="identify"``, told how many evaluations there will be, and turns with a worst case, for
benchmarks/trials.py: rules in words, ``identify told rate=0.5 last=0.4`` or ``turns tv=2``.

    rate, last    those of optimizer/exploring.py
    first=0       no look right after the initial designs
    look=4        a look is where μ̄_F + 4 σ̄_F is largest, not where most room is
    beta          of all other suggestions
    end_beta      of those in the last fifth
    tv=2          every second suggestion by the worst case over a total-variation ball, as drbo-kde asks
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from edrbo import Optimizer
from edrbo.acquisition.methods import Method, shrinking_total_variation
from edrbo.acquisition.score import UCB, BarycenterUCB, MeanUCB
from edrbo.context.laws import KDE
from edrbo.optimizer import exploring
from edrbo.optimizer.belief import Belief
from edrbo.optimizer.question import read_question

RATE, LAST_PART = exploring.RATE, exploring.LAST_PART
BETA = 1.5


def words_of(rule: str) -> dict[str, float]:
    """The numbers of a rule in words."""
    return {name: float(value) for name, _, value in (word.partition("=") for word in rule.split()) if value}


def is_told(rule: str) -> bool:
    return rule.startswith("identify told")


def in_words(rule: str) -> bool:
    return is_told(rule) or rule.startswith("turns ")


def set_looks(rule: str) -> None:
    """How many looks there are: a module's constants, so for every rule anew."""
    words = words_of(rule) if is_told(rule) else {}
    exploring.RATE, exploring.LAST_PART = words.get("rate", RATE), words.get("last", LAST_PART)


def rule_of(rule: str, evaluations: int) -> Callable[[Optimizer, Belief], Belief]:
    """The optimism of suggestions that are not looks."""
    words = words_of(rule)

    def by(optimizer: Optimizer, belief: Belief) -> Belief:
        if belief.functional is not None:  # the turn of the worst case
            return belief
        late = len(optimizer) >= (1.0 - LAST_PART) * evaluations
        beta = words["end_beta"] if late and "end_beta" in words else words.get("beta", BETA)
        return replace(belief, score=MeanUCB(beta))

    return by


def overrides(rule: str) -> dict[str, Any]:
    """Methods of the optimizer that a rule in words replaces."""
    words, found = words_of(rule), {}
    if "look" in words:
        found["_roomiest"] = lambda self, choice, designs, index: _hopeful(self, choice, index, words["look"])
    if words.get("first") == 0:
        found["_looks_around"] = _later_looks
    if "tv" in words:
        found["_asking"] = lambda self, *rest: _in_turn(self, int(words["tv"]), *rest)
    return found


def _hopeful(optimizer: Optimizer, choice: Any, index: int, beta: float) -> np.ndarray:
    evidence = optimizer._main.data()
    belief = optimizer._posterior(evidence, read_question(optimizer.state).law, [])
    score = BarycenterUCB(beta, radius_weight=0.0, integrated=True)
    return Optimizer._best(optimizer, replace(belief, score=score), choice, evidence.starts(), index, None)


def _later_looks(optimizer: Optimizer, belief: Any, evidence: Any, pending: int) -> bool:
    first = len(optimizer) + pending == optimizer.settings.initial
    return not first and Optimizer._looks_around(optimizer, belief, evidence, pending)


def _in_turn(optimizer: Optimizer, every: int, *rest: Any) -> Any:
    own = optimizer.method
    if len(optimizer) % every == 0:
        optimizer.method = Method(own.surrogate, UCB(BETA), KDE(samples=256), shrinking_total_variation)
    try:
        return Optimizer._posterior(optimizer, *rest)
    finally:
        optimizer.method = own
