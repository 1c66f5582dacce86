"""How hard the maximizer searches: one budget for all methods."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Budget:
    """How hard to search."""

    screened: int = 768  # quasi-random designs scored on the lowest rung
    near: int = 64  # of them drawn around the best given start
    kept: int = 40  # of them scored again
    starts: int = 5  # local searches
    expensive_kept: int = 28  # and of objectives that are expensive
    expensive_starts: int = 4
    iterations: int = 15  # L-BFGS iterations of each
    line_search: int = 5  # evaluations of one line search at most,
    last_line_search: int = 3  # and once the hill is known: what fails then is a kink
    finalists: int = 3  # ends on different hills that go on with the objective itself,
    grid_finalists: int = 2  # and of one that looks all over the context box
    tolerance: float = 1e-4  # of the objective's spread, at which a climb ends,
    first_tolerance: float = 1e-3  # and the first one on a stand-in
    patience: int | None = None  # evaluations in a row that may bring less than that before a climb ends as well,
    expensive_patience: int = 3  # and the first one on the stand-in of an expensive objective
    apart: float = 0.0  # from a better one, at which a climb ends as well
    probes: int = 12  # points of one round of direct search, and
    probe_rounds: int = 10  # rounds of it (objectives with kinks only)
    exchange_rounds: int = 4  # rounds of level exchange (mixed spaces only),
    level_moves: int = 16  # exchanges of one level in a round, and
    exchange_starts: int = 2  # designs that differ in one level and climb
    settling_rounds: int = 4  # moves from the end to designs that can be set (regions only)


BUDGET = Budget()
