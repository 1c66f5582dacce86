"""The colors of every picture and page: those of Okabe and Ito, safe for color-blind readers.

Their yellow is darkened, since it cannot be seen on white.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VERMILION = "#D55E00"
BLUE = "#0072B2"
GREEN = "#009E73"
PURPLE = "#CC79A7"
ORANGE = "#E69F00"
SKY = "#56B4E9"
BLACK = "#000000"
OLIVE = "#B8AB00"
OKABE_ITO = (VERMILION, BLUE, GREEN, PURPLE, ORANGE, SKY, BLACK, OLIVE)

GRAY = "#555555"  # what is not the point: truths, bounds, distributions
EITHER = "#848484"  # ink of pictures that stand on light and on dark pages: 3.7 to 1 on both
GRID = "#E6E6E6"
COLOR_MAP = "cividis"
CIVIDIS = (  # the same map in ten steps, for pages
    *("#00224E", "#123570", "#3B496C", "#575D6D", "#707173"),
    *("#8A8678", "#A59C74", "#C3B369", "#E1CC55", "#FEE838"),
)
# as charts name them
NAMED = {"blue": BLUE, "orange": VERMILION, "green": GREEN, "grey": GRAY, "purple": PURPLE, "white": "#FFFFFF"}


def shade(share: float) -> str:
    """The color of the map at ``share`` of the way from its dark end to its bright one."""
    at = min(max(share, 0.0), 1.0) * (len(CIVIDIS) - 1)
    k = min(int(at), len(CIVIDIS) - 2)
    one, other = (tuple(int(color[i : i + 2], 16) for i in (1, 3, 5)) for color in CIVIDIS[k : k + 2])
    mixed = (round(a + (at - k) * (b - a)) for a, b in zip(one, other, strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)


@dataclass(frozen=True)
class Theme:
    """Light or dark. Of the eight colors only black cannot be seen on a dark page: it becomes ``ink``."""

    paper: str
    ink: str
    soft: str
    grid: str


LIGHT = Theme("#FFFFFF", BLACK, GRAY, GRID)
DARK = Theme("#12161C", "#E8ECF1", "#A5AFBB", "#2F3742")


# What is stored is the same whenever it is drawn, and has fonts that journals take (Type 3 is what they refuse).
STORED: dict[Any, Any] = {"pdf.fonttype": 42, "ps.fonttype": 42, "svg.hashsalt": "edrbo"}
NO_DATE: dict[str, dict[str, None]] = {
    "pdf": {"CreationDate": None},
    "svg": {"Date": None},
    "svgz": {"Date": None},
}


@cache
def notebook_figure() -> type[Figure]:
    """A figure that a notebook shows at once; a plain one is shown only after pyplot has made another. It is saved with
    TrueType fonts and without a date."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    class Picture(Figure):
        def savefig(self, fname: Any, *, transparent: bool | None = None, **choices: Any) -> None:
            ending = Path(fname).suffix[1:] if isinstance(fname, str | Path) else ""
            kind = str(choices.get("format") or ending).lower()
            if kind in NO_DATE:
                choices["metadata"] = {**NO_DATE[kind], **(choices.get("metadata") or {})}
            with rc_context(STORED):
                super().savefig(fname, transparent=transparent, **choices)

        def _repr_png_(self) -> bytes:
            png = BytesIO()
            self.savefig(png, format="png")
            return png.getvalue()

    return Picture
