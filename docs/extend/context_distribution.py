"""A context distribution: the last contexts alone."""

from dataclasses import dataclass

import edrbo
from edrbo.acquisition.risk import Expectation
from edrbo.acquisition.scores import MeanUCB
from edrbo.contexts import ContextDistribution


@edrbo.register  # so that a study can store it
@dataclass(frozen=True)
class Latest(ContextDistribution):
    count: int = 20

    def atoms(self, history, seed):  # contexts (m × d_c, coded), their weights, and how far off they are
        if len(history.contexts) == 0:
            return *history.uniform(self.count, seed), 0.0
        contexts = history.contexts[-self.count :]
        return contexts, contexts.new_full((len(contexts),), 1 / len(contexts)), 0.0


METHODS = {"latest": edrbo.Method(edrbo.Surrogate(), MeanUCB(), Latest(), Expectation())}
