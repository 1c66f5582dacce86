"""The objective protocol of the maximizer, and its approximations from coarse to exact.

An ``Objective`` says besides its value and gradient how it wants to be searched. Whoever puts one objective around
others forwards all of that: ``ObjectiveWrapper`` around one, ``Combined`` of several outcomes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self, TypeVar

import torch
from torch import Tensor


class Objective(ABC):
    """A function of designs whose largest value is looked for."""

    @abstractmethod
    def __call__(self, x: Tensor) -> Tensor:
        """Values (N) at designs ``x`` (N × d_x)."""

    def value_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Values (N) and gradients (N × d_x); by autograd, unless an objective knows better."""
        x = x.detach().requires_grad_()
        value = self(x)
        (gradient,) = torch.autograd.grad(value.sum(), x)
        return value.detach(), gradient

    @property
    def expensive(self) -> bool:
        """Whether it costs much more to compute than the approximation below it."""
        return False

    @property
    def needs_context_grid(self) -> bool:
        """Whether it is computed all over the context box: then fewer searches end with it."""
        return False

    @property
    def multimodal(self) -> bool:
        """Whether hills of nearly one height are usual, which approximations confuse: more searches end with it."""
        return False

    def near(self, x: Tensor) -> Objective:
        """The same with the contexts alone that matter at designs ``x`` (k × d_x)."""
        return self


class Acquisition(Protocol):
    """What is to be maximized: approximations, coarse to exact, and whether the gradient has jumps."""

    @property
    def has_kinks(self) -> bool: ...

    def approximations(self) -> Sequence[Objective]: ...


@dataclass(frozen=True, eq=False)
class FunctionObjective(Objective):
    """Any function that autograd can differentiate."""

    function: Callable[[Tensor], Tensor]

    def __call__(self, x: Tensor) -> Tensor:
        return self.function(x)


Made = TypeVar("Made", bound=Objective)
Given = Objective | Callable[[Tensor], Tensor]


def as_objectives(approximations: Sequence[Given]) -> list[Objective]:
    """Approximations, or plain functions; those that are one and the same stay so."""
    made = {id(one): one if isinstance(one, Objective) else FunctionObjective(one) for one in approximations}
    return [made[id(one)] for one in approximations]


def wrap(approximations: Sequence[Objective], make: Callable[[Objective], Objective]) -> list[Objective]:
    """Every approximation wrapped; those that are one and the same stay so."""
    return combine([approximations], lambda one: make(*one))


def combine(approximationss: Sequence[Sequence[Objective]], make: Callable[[Sequence[Objective]], Made]) -> list[Made]:
    """Approximations of several objectives, which are equally many, made one level by level; those that are one and
    the same in all stay so."""
    made: dict[tuple[int, ...], Made] = {}
    found = []
    for level in zip(*approximationss, strict=True):
        key = tuple(map(id, level))
        if key not in made:
            made[key] = make(level)
        found.append(made[key])
    return found


@dataclass(frozen=True, eq=False)
class ObjectiveWrapper(Objective):
    """An objective around ``objective``, that is searched as it wants to be."""

    objective: Objective

    @property
    def expensive(self) -> bool:
        return self.objective.expensive

    @property
    def needs_context_grid(self) -> bool:
        return self.objective.needs_context_grid

    @property
    def multimodal(self) -> bool:
        return self.objective.multimodal

    def near(self, x: Tensor) -> Self:
        near = self.objective.near(x)
        return self if near is self.objective else replace(self, objective=near)


Terms = tuple[tuple[float, Objective], ...]  # weights or costs, and what they belong to


@dataclass(frozen=True, eq=False)
class Combined(Objective):
    """An objective of several outcomes: weighted ``terms``, that are searched as the most demanding of them."""

    terms: Terms

    @property
    def parts(self) -> tuple[Objective, ...]:
        """All that is computed."""
        return tuple(objective for _, objective in self.terms)

    @property
    def expensive(self) -> bool:
        return any(part.expensive for part in self.parts)

    @property
    def needs_context_grid(self) -> bool:
        return any(part.needs_context_grid for part in self.parts)

    @property
    def multimodal(self) -> bool:
        return any(part.multimodal for part in self.parts)

    def near(self, x: Tensor) -> Self:
        terms = tuple((weight, objective.near(x)) for weight, objective in self.terms)
        same = all(new is old for (_, new), (_, old) in zip(terms, self.terms, strict=True))
        return self if same else replace(self, terms=terms)
