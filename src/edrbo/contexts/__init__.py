"""Distributions of the next context as weighted atoms."""

from edrbo.contexts.distributions import (
    KDE,
    Box,
    ContextDistribution,
    ContextHistory,
    ContextPoints,
    Empirical,
    Given,
    Grid,
)

__all__ = ["KDE", "Box", "ContextDistribution", "ContextHistory", "ContextPoints", "Empirical", "Given", "Grid"]
