"""Where nobody has looked: how much room there is around a design, whatever a model says of it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from edrbo.acquisition.objective import Objective

WALL = 2.0  # a wall counts as tried at so many times its distance: corners have room, but are seldom good


@dataclass(frozen=True, eq=False)
class Room(Objective):
    """The distance of a design from the nearest of ``tried`` (n × d_x), or from a wall if that is nearer.

    Only numbers have walls (``walled``, d_x); without any, designs that were tried alone count.
    """

    tried: Tensor
    walled: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        """Of designs ``x`` (N × d_x), N numbers; differentiable but where two designs are equally near."""
        apart = (x.unsqueeze(-2) - self.tried).square().sum(-1).amin(-1)
        free = x[:, self.walled]
        if free.shape[1]:
            apart = torch.minimum(apart, WALL**2 * torch.minimum(free, 1.0 - free).square().amin(-1))
        return apart.clamp_min(1e-300).sqrt()
