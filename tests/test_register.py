"""A method with a part of one's own is stored by a study and opened again, once the part is registered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

import edrbo
from edrbo import errors
from edrbo.acquisition import methods
from edrbo.acquisition.methods import METHODS, get_method
from edrbo.acquisition.scores import Score
from edrbo.errors import EdrboWarning, InvalidValueError, NotStorableError
from edrbo.surrogate.ensemble import barycenter

SPACE = edrbo.Space({"x": (0, 1)}, {"c": (0, 1)})


@dataclass(frozen=True)
class Squared(Score):
    """μ̄ + weight · σ̄²."""

    weight: float = 1.0

    def __call__(self, mean: Tensor, sd: Tensor, weights: Tensor | None = None) -> Tensor:
        center, spread = barycenter(mean, sd, weights)
        return center + self.weight * spread.square()


METHOD = replace(METHODS["edrbo"], score=Squared(2.0))


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    methods.PARTS.pop("Squared", None)


def test_a_study_with_a_score_of_ones_own(tmp_path: Path) -> None:
    with pytest.raises(NotStorableError):
        edrbo.Study.open(tmp_path / "before.db", SPACE, method=METHOD)
    assert edrbo.register(Squared) is Squared
    assert edrbo.register(Squared) is Squared  # a module may be loaded again
    study = edrbo.Study.open(tmp_path / "study.db", SPACE, method=METHOD, initial=2)
    for c in (0.2, 0.6, 0.9):
        study.tell(study.ask(), {"c": c}, c)
    again = edrbo.Study.open(tmp_path / "study.db")
    assert get_method(again.settings.method) == METHOD
    expected = edrbo.Optimizer.of(study.state).ask().design
    assert again.ask().design == expected


def test_what_cannot_be_registered() -> None:
    class Plain(Score):
        def __call__(self, mean: Tensor, sd: Tensor, weights: Tensor | None = None) -> Tensor:
            return torch.zeros(mean.shape[-1])

    @dataclass(frozen=True)
    class UCB(Plain):
        """Called as one of the package."""

    for part in (Plain, UCB):
        with pytest.raises(InvalidValueError):
            edrbo.register(part)


def test_all_warnings_have_one_base() -> None:
    kinds = [kind for name, kind in vars(errors).items() if name.endswith("Warning")]
    assert len(kinds) > 4
    assert all(issubclass(kind, EdrboWarning) for kind in kinds)
