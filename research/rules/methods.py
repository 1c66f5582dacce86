"""The rules as methods, by name: ``research/race.py run edrbo-mean,… --plugin research/rules/methods.py``."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from edrbo import register
from edrbo.acquisition.methods import Method
from edrbo.acquisition.risk import Expectation
from edrbo.acquisition.scores import MeanUCB, Score
from edrbo.bench.learners.learner import Learner, OptimizerLearner, Setup
from edrbo.contexts.distributions import Empirical
from edrbo.records.settings import Purpose
from edrbo.surrogate.ensemble import Surrogate
from edrbo.surrogate.kernels import LogNormal, Priors, ensemble_priors
from rules.hills import HillVisitor, Rule
from rules.models import AskedBy, grid, laplace_draws
from rules.scores import GrowingUCB, ImprovementLessCost, MixtureLogEI, SeekThenAvoid, TailUCB
from rules.top_two import TopTwo

MakeScore = Callable[[int], Score]


def learner(score: MakeScore) -> Callable[[Setup], Learner]:
    """Of a score that knows how many inputs are designs."""

    def make(setup: Setup) -> Learner:
        return OptimizerLearner(setup, Method(Surrogate(), score(setup.d_x), Empirical(), Expectation()))

    return make


@register
def quiet_priors(d: int) -> Priors:
    """Noise around e⁻⁸, within e² of it: from none to the default's."""
    return replace(ensemble_priors(d), noise_variance=LogNormal(-8.0, 2.0))


@register
def less_noise(d: int) -> Priors:
    return replace(ensemble_priors(d), noise_variance=LogNormal(-6.0, 1.5))


@register
def short_quiet_priors(d: int) -> Priors:
    return Priors(lengthscale=LogNormal(math.log(0.5), 0.75), noise_variance=LogNormal(-6.0, 1.5))


@register
def short_priors(d: int) -> Priors:
    return Priors(lengthscale=LogNormal(math.log(0.5), 0.75))


def prior(priors: Callable[[int], Priors]) -> Method:
    return Method(Surrogate(priors=priors), MeanUCB(), Empirical(), Expectation())


def hills(rule: Rule, aim: Purpose = "operate") -> Callable[[Setup], Learner]:
    return lambda setup: HillVisitor(setup, rule, aim)


METHODS = {
    "log-ei": learner(MixtureLogEI),
    "eic": learner(ImprovementLessCost),
    "eic-tenth": learner(lambda d_x: ImprovementLessCost(d_x, horizon=0.1)),
    "eic-tail": learner(lambda d_x: ImprovementLessCost(d_x, least=0.5, most=3.0)),
    "grow": learner(lambda d_x: GrowingUCB()),
    "draws-eic": lambda setup: AskedBy(setup, laplace_draws, ImprovementLessCost(setup.d_x)),
    "beta-1": learner(lambda d_x: MeanUCB(1.0)),
    "tail": learner(lambda d_x: TailUCB()),
    "tail-both": learner(lambda d_x: TailUCB(least=0.5)),
    "seek-avoid": learner(lambda d_x: SeekThenAvoid()),
    "noise-8": prior(quiet_priors),
    "noise-6": prior(less_noise),
    "short": prior(short_priors),
    "short-noise-6": prior(short_quiet_priors),
    "hills-pay": hills(Rule()),
    "hills-fifth": hills(Rule(turn=0.2, least=0.05, pays=False)),
    "hills-third": hills(Rule(turn=1 / 3, pays=False)),
    "hills-identify": hills(Rule(turn=1 / 3, pays=False), "identify"),
    "top-two": lambda setup: TopTwo(setup),
    "top-two-third": lambda setup: TopTwo(setup, 1 / 3),
    "draws": lambda setup: AskedBy(setup, laplace_draws),
    "draws-log-ei": lambda setup: AskedBy(setup, laplace_draws, MixtureLogEI(setup.d_x)),
    "grid": lambda setup: AskedBy(setup, grid((0.6, 1.0, 1.6))),
    "same": lambda setup: AskedBy(setup, lambda model: model),
}
