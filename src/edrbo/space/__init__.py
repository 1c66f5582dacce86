"""Names and units in, unit cube out: variables, their coding, and the forms in which users hand over points."""

from edrbo.space.scale import ContextScale
from edrbo.space.space import Column, Space
from edrbo.space.variables import Categorical, Integer, Real, Variable

__all__ = ["Categorical", "Column", "ContextScale", "Integer", "Real", "Space", "Variable"]
