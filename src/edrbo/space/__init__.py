"""Names and units in, unit cube out: variables, their coding, and the forms in which users hand over points."""

from edrbo.space.context_scale import ContextScale
from edrbo.space.expressions import Constraint
from edrbo.space.feasible_region import Region
from edrbo.space.space import Space
from edrbo.space.variables import Categorical, Column, Integer, Real, Variable

__all__ = ["Categorical", "Column", "Constraint", "ContextScale", "Integer", "Real", "Region", "Space", "Variable"]
