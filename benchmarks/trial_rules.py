"""The rules for asking that benchmarks/trials.py compares: what each is, docs/why.md says in words."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from trial_models import LAWS, SURROGATES

from edrbo import Optimizer
from edrbo.acquisition.score import UCB, BarycenterUCB
from edrbo.context.laws import sobol_points
from edrbo.optimizer.belief import Belief
from edrbo.optimizer.trust import earned_trust
from edrbo.streams import in_turn, stream_seed
from edrbo.surrogate.exact_gp import ExactGP

INITIAL = 5

Rule = Callable[[Optimizer, Belief], Belief | np.ndarray]


def by(score: BarycenterUCB) -> Rule:
    return lambda optimizer, belief: replace(belief, score=score)


def plain(beta: float) -> Rule:
    """Without the radius."""
    return by(BarycenterUCB(beta, radius_weight=0.0))


def mean(beta: float, radius_weight: float = 0.0) -> Rule:
    """Optimism about the expectation itself."""
    return by(BarycenterUCB(beta, radius_weight=radius_weight, integrated=True))


def farthest(optimizer: Optimizer, belief: Belief) -> np.ndarray:
    """The design of 2,048 farthest from all tried ones, whatever the model says."""
    tried = optimizer.observations.x
    points = sobol_points(tried.shape[1], 2048, stream_seed(optimizer.settings.seed, "far", len(tried))).numpy()
    return points[np.square(points[:, None] - tried).sum(-1).min(1).argmax()]


def sometimes(explore: Rule, otherwise: Rule, growth: float) -> Rule:
    """``explore`` at 8 evaluations, and each time they have grown by ``growth``."""
    steps = {int(8 * growth**k) for k in range(20)}
    return lambda optimizer, belief: (explore if len(optimizer) in steps else otherwise)(optimizer, belief)


def at(numbers: tuple[int, ...], explore: Rule, otherwise: Rule) -> Rule:
    """``explore`` at these numbers of evaluations."""
    return lambda optimizer, belief: (explore if len(optimizer) in numbers else otherwise)(optimizer, belief)


def hole(optimizer: Optimizer, belief: Belief) -> np.ndarray:
    """The design of 2,048 with most room around it, walls included: a wall counts as tried at half its distance."""
    tried = optimizer.observations.x
    points = sobol_points(tried.shape[1], 2048, stream_seed(optimizer.settings.seed, "far", len(tried))).numpy()
    room = np.sqrt(np.square(points[:, None] - tried).sum(-1).min(1))
    wall = 2.0 * np.minimum(points, 1.0 - points).min(1)
    return points[np.minimum(room, wall).argmax()]


def rough(beta: float, factor: float) -> Rule:
    """Optimism about the mean of a model whose lengthscales are ``factor`` times as long."""

    def rule(optimizer: Optimizer, belief: Belief) -> Belief:
        gp = belief.model.gp
        hyper = replace(gp.hyper, lengthscale=factor * gp.hyper.lengthscale)
        rougher = ExactGP.condition(gp.kernels, hyper, gp.x, gp.y, gp.noise.mean(0))
        score = BarycenterUCB(beta, radius_weight=0.0, integrated=True)
        return replace(belief, model=replace(belief.model, gp=rougher), score=score)

    return rule


def every(explore: Rule, otherwise: Rule, period: int) -> Rule:
    """``explore`` in every so manieth step."""
    return lambda optimizer, belief: (otherwise if len(optimizer) % period else explore)(optimizer, belief)


def falling(first: float, last: float, over: float) -> Rule:
    """Optimism about the mean that falls from ``first`` to ``last`` as evaluations grow."""

    def rule(optimizer: Optimizer, belief: Belief) -> Belief:
        beta = last + (first - last) * math.exp(-(len(optimizer) - INITIAL) / over)
        return mean(beta)(optimizer, belief)  # type: ignore[return-value]

    return rule


def thrifty(explore: Rule, otherwise: Rule, share: float, first: int = 0) -> Rule:
    """``explore`` whenever all such steps together have cost less than ``share`` of the regret so far, as the model
    reckons it today; without that of the ``first`` designs."""

    def rule(optimizer: Optimizer, belief: Belief) -> Belief | np.ndarray:
        explored = optimizer.__dict__.setdefault("explored", set())
        x = torch.from_numpy(optimizer.observations.x)
        with torch.no_grad():
            worth = mean(0.0)(optimizer, belief).acquisition()(x)  # type: ignore[union-attr]
        regret = (worth.max() - worth).numpy()
        chosen = np.isin(np.arange(len(x)), list(explored))
        spent, paid = regret[chosen].sum(), regret[first:].sum()
        if spent + regret[:INITIAL].mean() > share * paid:
            return otherwise(optimizer, belief)
        explored.add(len(optimizer))
        return explore(optimizer, belief)

    return rule


@dataclass(frozen=True)
class Boldest(UCB):
    """max over the experts of μ_m + β σ_m."""

    def __call__(self, mean, sd, weights=None):  # type: ignore[no-untyped-def]
        return (mean + self.beta * sd).amax(-2)

    def value_and_slopes(self, mean, sd, weights=None):  # type: ignore[no-untyped-def]
        value, at = (mean + self.beta * sd).max(0, keepdim=True)
        share = torch.zeros_like(mean).scatter_(0, at, 1.0)
        return value[0], share, self.beta * share


def trusted(beta: float, power: float = 1.0) -> Rule:
    """Optimism about the mean, larger by what the model's own errors ask for."""

    def rule(optimizer: Optimizer, belief: Belief) -> Belief:
        return mean(beta * earned_trust(belief.model).inflation ** power)(optimizer, belief)  # type: ignore[return-value]

    return rule


def drawn_beta(least: float, more: float) -> Rule:
    """``least`` and an exponential draw of mean ``more``, evenly spread over the steps."""

    def rule(optimizer: Optimizer, belief: Belief) -> Belief:
        u = in_turn(len(optimizer))
        return mean(least - more * math.log1p(-u))(optimizer, belief)  # type: ignore[return-value]

    return rule


def near_best(optimizer: Optimizer, belief: Belief, within: float = 0.1) -> int:
    """How many of the designs tried are within a share of the lengthscales of the one that the model likes best."""
    x = torch.from_numpy(optimizer.observations.x)
    with torch.no_grad():
        worth = mean(0.0)(optimizer, belief).acquisition()(x)  # type: ignore[union-attr]
    lengthscale = belief.model.gp.hyper.lengthscale[:, : x.shape[1]].log().mean(0).exp()
    away = ((x - x[worth.argmax()]) / lengthscale).square().sum(-1).sqrt()
    return int((away < within).sum())


def restless(beta: float, patience: float, most: float = 6.0) -> Rule:
    """Optimism about the mean that grows with the number of evaluations spent near the best design."""

    def rule(optimizer: Optimizer, belief: Belief) -> Belief:
        grown = math.sqrt(1.0 + near_best(optimizer, belief) / patience)
        return mean(min(most, beta * grown))(optimizer, belief)  # type: ignore[return-value]

    return rule


def restless_log(beta: float, more: float, patience: float) -> Rule:
    def rule(optimizer: Optimizer, belief: Belief) -> Belief:
        grown = more * math.log2(1.0 + near_best(optimizer, belief) / patience)
        return mean(beta + grown)(optimizer, belief)  # type: ignore[return-value]

    return rule


def rough_contexts(beta: float, factor: float) -> Rule:
    """Optimism about the mean of a model whose lengthscales in the contexts are ``factor`` times as long."""

    def rule(optimizer: Optimizer, belief: Belief) -> Belief:
        gp, d_x = belief.model.gp, optimizer.observations.x.shape[1]
        lengthscale = gp.hyper.lengthscale.clone()
        lengthscale[:, d_x:] *= factor
        rougher = ExactGP.condition(
            gp.kernels, replace(gp.hyper, lengthscale=lengthscale), gp.x, gp.y, gp.noise.mean(0)
        )
        score = BarycenterUCB(beta, radius_weight=0.0, integrated=True)
        return replace(belief, model=replace(belief.model, gp=rougher), score=score)

    return rule


RULES: dict[str, Rule] = {
    "mean-1.5 + hole at 6-8-10": at((6, 8, 10), hole, mean(1.5)),
    "mean-1.5 + hole at squares": at(tuple(k * k for k in range(3, 15)), hole, mean(1.5)),
    "mean-1.5 + wide within a half after": thrifty(mean(3.0), mean(1.5), 0.5, INITIAL),
    "restless-1.5/8": restless(1.5, 8.0),
    "restless-1.5/20": restless(1.5, 20.0),
    "restless-1.25/8": restless(1.25, 8.0),
    "restless-log-1.5+0.5/8": restless_log(1.5, 0.5, 8.0),
    "rough contexts 0.5 mean-1.5": rough_contexts(1.5, 0.5),
    "rough contexts 0.7 mean-1.25": rough_contexts(1.25, 0.7),
    "trusted-1.5": trusted(1.5),
    "trusted-1.25": trusted(1.25),
    "drawn beta 0.75 + 0.75": drawn_beta(0.75, 0.75),
    "drawn beta 0 + 1.5": drawn_beta(0.0, 1.5),
    "drawn beta 1 + 0.5": drawn_beta(1.0, 0.5),
    **{f"{name}:mean-{beta}": mean(beta) for name in (*SURROGATES, *LAWS) for beta in (1, 1.25, 1.5, 2)},
    "base": by(BarycenterUCB()),
    "radius-1": by(BarycenterUCB(1.0)),
    "half-radius-1": by(BarycenterUCB(1.0, radius_weight=0.5)),
    "plain-1": plain(1.0),
    "plain-1.5": plain(1.5),
    "mean-1": mean(1.0),
    "mean-1.25": mean(1.25),
    "mean-1.5": mean(1.5),
    "mean-2": mean(2.0),
    "mean-1.5-half-radius": mean(1.5, 0.7),
    "radius-1, wide at doublings": sometimes(plain(3.0), by(BarycenterUCB(1.0)), 2.0),
    "radius-1, wide at half doublings": sometimes(plain(3.0), by(BarycenterUCB(1.0)), math.sqrt(2.0)),
    "radius-1, wider at half doublings": sometimes(plain(4.0), by(BarycenterUCB(1.0)), math.sqrt(2.0)),
    "radius-1, farthest at half doublings": sometimes(farthest, by(BarycenterUCB(1.0)), math.sqrt(2.0)),
    "plain-1, wide at doublings": sometimes(plain(2.0), plain(1.0), 2.0),
    "mean-1 + radius added": mean(1.0, -0.7),
    "mean-1.5 + radius added": mean(1.5, -0.7),
    "boldest-1": by(Boldest(1.0, integrated=True)),
    "boldest-1.5": by(Boldest(1.5, integrated=True)),
    "mean-2.5 to 1": falling(2.5, 1.0, 25.0),
    "mean-3 to 1.25": falling(3.0, 1.25, 15.0),
    "mean-1.5 + hole at doublings": sometimes(hole, mean(1.5), 2.0),
    "mean-1.5 + rough at doublings": sometimes(rough(2.0, 0.4), mean(1.5), 2.0),
    "mean-1.5 + hole within a fifth": thrifty(hole, mean(1.5), 0.2),
    "mean-1.5 + rough within a fifth": thrifty(rough(2.0, 0.4), mean(1.5), 0.2),
    "mean-1.5 + hole within a quarter after": thrifty(hole, mean(1.5), 0.25, INITIAL),
    "mean-1.5 + hole within a half after": thrifty(hole, mean(1.5), 0.5, INITIAL),
    "mean-1.5 + hole within a third": thrifty(hole, mean(1.5), 0.333),
    "mean-2 + hole within a fifth": thrifty(hole, mean(2.0), 0.2),
    "mean-1.5 + rough within a half after": thrifty(rough(2.0, 0.4), mean(1.5), 0.5, INITIAL),
    "rough half mean-1": rough(1.0, 0.5),
    "mean-1.5 + hole every fourth": every(hole, mean(1.5), 4),
    "mean-1.5 + rough every fourth": every(rough(2.0, 0.4), mean(1.5), 4),
    "identify": mean(1.5),
    "identify-2": mean(1.5),
    "identify-4": mean(1.5),
    "warped-mean-1": mean(1.0),
    "warped-mean-1.25": mean(1.25),
    "warped-mean-1.5": mean(1.5),
    "warped-plain-1": plain(1.0),
    "mean-2.5": mean(2.5),
    "mean-3": mean(3.0),
}
