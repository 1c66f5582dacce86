"""An acquisition function that is not score × functional: expected improvement of the mean over contexts."""

from dataclasses import dataclass, replace

import edrbo
from edrbo.acquisition.acquisition import AcquisitionFunction
from edrbo.acquisition.methods import get_method
from edrbo.records.goals import soft_positive


@edrbo.register  # so that a study can store it
@dataclass(frozen=True)
class ExpectedImprovement(AcquisitionFunction):
    def function(self, model, points, goal, seed):  # what is believed of f, and the distribution of the next context
        def improvement(x):  # designs N × d_x → N, differentiable
            mean, sd = (part.mean(0) for part in average.integrated(x, points.weights))
            return soft_positive(mean - best, sd)  # E max(N(mean − best, sd²), 0)

        average, d_c = model.paired_with(points.atoms), points.atoms.shape[1]
        best = average.integrated(model.inputs[:, :-d_c], points.weights)[0].mean(0).max()
        return improvement


METHODS = {"ei": replace(get_method("edrbo-mean"), acquisition=ExpectedImprovement())}
