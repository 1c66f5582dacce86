"""Laws of the next context as weighted atoms."""

from edrbo.context.laws import KDE, Box, ContextHistory, ContextPoints, Empirical, Given, Grid, Law

__all__ = ["KDE", "Box", "ContextHistory", "ContextPoints", "Empirical", "Given", "Grid", "Law"]
