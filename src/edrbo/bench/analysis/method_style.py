"""One color and one line style per method, the same in every figure and page.

The palette has eight colors; a ninth method takes a color again with dashes, and so on.
"""

from __future__ import annotations

from collections.abc import Sequence

from edrbo.bench.analysis.results import base_name
from edrbo.palette import BLACK, LIGHT, OKABE_ITO, Theme

DASHES = ("", "6 3", "2 2")  # as SVG writes them
# The order decides the colors; it never changes, so that a method looks the same whatever it is compared with. The
# default, the method of the paper and the warped one share a color.
FIXED = (
    *("edrbo-mean", "erbo", "wdrbo", "sbo-kde", "drbo-kde", "drbo-mmd", "ucb", "drbo-mmd-minmax"),
    *("edrbo", "random", "stableopt", "tpe", "optuna-gp", "lognei", "edrbo-integrated", "edrbo-published"),
    *("edrbo-warped", "expectation-nei", "edrbo-identify"),
)


def style(method: str, methods: Sequence[str], theme: Theme = LIGHT) -> tuple[str, str]:
    """Color and dashes of a method; ``methods`` are all that are shown, to place those of a plugin. Published runs
    share the color of the method."""
    name = base_name(method)
    others = sorted({base_name(other) for other in methods} - set(FIXED))
    place = FIXED.index(name) if name in FIXED else len(FIXED) + others.index(name)
    dashes = "1 3" if name != method else DASHES[place // len(OKABE_ITO) % len(DASHES)]
    color = OKABE_ITO[place % len(OKABE_ITO)]
    return theme.ink if color == BLACK else color, dashes
