"""What the real cases have in common: a simulator that others wrote, a distribution of contexts, and what people do
today."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import edrbo

Design = Mapping[str, Any]
Context = tuple[float, ...]


@dataclass(frozen=True)
class Case:
    """``outcome(design, context, rng)`` is one experiment, None if it failed. ``context_distribution`` (N × d_c) are
    the contexts that the design will live with, all equally likely; the truth about a design is its ``mean`` over them.
    ``archive`` says that this table is known before the first experiment, as a weather record is."""

    name: str
    space: edrbo.Space
    direction: str
    outcome: Callable[[Design, Context, np.random.Generator], float | None]
    context_distribution: np.ndarray
    mean: Callable[[Design], float]
    usual: Design  # what a textbook or the maker's manual says
    archive: bool = False

    @property
    def sign(self) -> float:
        return 1.0 if self.direction == "maximize" else -1.0

    def draw(self, rng: np.random.Generator) -> Context:
        return tuple(map(float, self.context_distribution[rng.integers(len(self.context_distribution))]))


def run(case: Case, method: str, evaluations: int, seed: int) -> Design:
    """The design that ``method`` recommends after so many experiments; the contexts are the same for every method."""
    contexts, noise = np.random.default_rng([seed, 1]), np.random.default_rng([seed, 2])
    if method == "random":
        return _random(case, evaluations, seed, contexts, noise)
    choices: dict[str, Any] = {"direction": case.direction, "seed": seed, "method": method}
    if method == "edrbo-identify":  # the default, reported that only the design in the end counts
        choices |= {"method": "edrbo-mean", "aim": "identify", "evaluations": evaluations}
    optimizer = edrbo.Optimizer(case.space, **choices)
    if case.archive and method != "ucb":  # which knows of no contexts
        optimizer.observe_context(case.context_distribution.tolist())
    for _ in range(evaluations):
        suggestion, context = optimizer.ask(), case.draw(contexts)
        value = case.outcome(suggestion.design, context, noise)
        optimizer.tell(suggestion, context, value, failed=value is None)
    return optimizer.recommend().design


def _random(
    case: Case, evaluations: int, seed: int, contexts: np.random.Generator, noise: np.random.Generator
) -> Design:
    """Random designs, and of these the one that did best on its day."""
    rows = np.random.default_rng([seed, 3]).uniform(size=(evaluations, case.space.d_x))
    designs = case.space.decode_designs(rows)
    outcomes = [case.outcome(design, case.draw(contexts), noise) for design in designs]
    scores = [-np.inf if value is None else case.sign * value for value in outcomes]
    return designs[int(np.argmax(scores))]


def best(case: Case, starts: Sequence[Design], steps: int, seed: int = 0) -> tuple[Design, float]:
    """The best design there is, as far as a random search that closes in on the best so far finds it."""
    rng = np.random.default_rng(seed)
    found = [(case.sign * case.mean(design), design) for design in starts]
    top, design = max(found, key=lambda pair: pair[0])
    center = case.space.encode_designs(design)[0]
    for step in range(steps):
        width = 0.3 * 0.02 ** (step / steps)
        row = np.clip(center + width * rng.normal(size=center.shape), 0.0, 1.0)
        (tried,) = case.space.decode_designs(row[None])
        if (value := case.sign * case.mean(tried)) > top:
            top, design, center = value, tried, case.space.encode_designs(tried)[0]
    return design, case.sign * top
