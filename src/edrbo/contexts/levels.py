"""Discrete contexts: choices, whole numbers. No distribution and no worst case puts mass between levels."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.space.context_scale import ContextScale


@dataclass(frozen=True, eq=False)
class Levels:
    """What coded contexts can be, as ``scale`` codes them. A choice without order has a column for each level."""

    scale: ContextScale

    @classmethod
    def of(cls, scale: ContextScale) -> Levels | None:
        """None if all variables are real."""
        return cls(scale) if any(scale.whole) else None

    @property
    def discrete(self) -> NDArray[np.bool_]:
        """The columns that hold levels."""
        return self.scale.discrete

    @cached_property
    def unordered(self) -> Tensor:
        """The columns of choices that have no order: there is no way from one to the next."""
        widths = [block.stop - block.start for block in self.scale.blocks]
        return torch.from_numpy(np.repeat(np.array(self.scale.choices) > 0, widths))

    def snap(self, coded: Tensor) -> Tensor:
        """The nearest contexts (... × d_c) that can be met."""
        flat = coded.reshape(-1, coded.shape[-1]).numpy()
        return torch.from_numpy(self.scale.snap(flat)).reshape(coded.shape)

    def at(self, lower: Tensor, upper: Tensor, unit: Tensor) -> Tensor:
        """Points of the unit cube, a coordinate for each variable (n × k), as contexts of a box (n × d_c).

        Of a choice without order the box holds the levels whose column reaches up to one.
        """
        found = lower.new_zeros(len(unit), self.scale.width)
        for k, block in enumerate(self.scale.blocks):
            if self.scale.choices[k]:
                held = torch.nonzero(upper[block] > 0.5).flatten()
                place = (unit[:, k] * len(held)).long().clamp_max(len(held) - 1)
                found[torch.arange(len(unit)), block.start + held[place]] = 1.0
            else:
                found[:, block] = (lower[block] + (upper[block] - lower[block]) * unit[:, k : k + 1]).to(found.dtype)
        return self.snap(found)

    def corners(self, upper: Tensor, most: int) -> Tensor | None:
        """Unit points (n × k) of all corners of a box, that is ends or choices; None if more than ``most``."""
        sides = []
        for k, block in enumerate(self.scale.blocks):
            held = int((upper[block] > 0.5).sum())
            sides.append([(i + 0.5) / held for i in range(held)] if self.scale.choices[k] else [0.0, 1.0])
        if np.prod([float(len(side)) for side in sides]) > most:
            return None
        return torch.tensor(list(itertools.product(*sides)), dtype=upper.dtype)

    def neighbors(self, contexts: Tensor) -> Tensor:
        """Contexts (k × d_c) one level from one of ``contexts`` (n × d_c): another choice, one more or one less."""
        raw = self.scale.decode(contexts.numpy())
        found = []
        for k in np.flatnonzero(self.scale.whole):
            count, own = self.scale.choices[k], raw[:, k]
            others = [(own + step) % count for step in range(1, count)] if count else [own - 1, own + 1]
            found += [np.where(np.arange(raw.shape[1]) == k, other[:, None], raw) for other in others]
        moved = self.snap(torch.from_numpy(self.scale.encode(np.concatenate(found))))
        return torch.from_numpy(np.unique(moved.numpy(), axis=0))

    def grid(self, lower: Tensor, upper: Tensor, size: int) -> list[Tensor]:
        """For each variable its coded levels or points (n_k × width), such that about ``size`` are in all of them."""
        numeric = sum(count == 0 for count in self.scale.choices)
        combinations = float(np.prod([count or 1 for count in self.scale.choices]))
        count = max(2, round((size / combinations) ** (1.0 / max(numeric, 1))))
        axes = []
        for k, block in enumerate(self.scale.blocks):
            number = self.scale.choices[k] or count
            unit = torch.full((number, len(self.scale.blocks)), 0.5, dtype=lower.dtype)
            unit[:, k] = torch.linspace(0.0, 1.0, number, dtype=lower.dtype)
            if self.scale.choices[k]:
                axes.append(torch.eye(number, dtype=lower.dtype))
            else:
                axes.append(torch.unique(self.at(lower, upper, unit)[:, block], dim=0))
        return axes
