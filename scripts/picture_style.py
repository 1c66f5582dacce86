"""One style for the pictures of the documentation: transparent, with gray words, for light and for dark pages."""

from __future__ import annotations

import matplotlib

from edrbo.palette import EITHER


def take_style() -> None:
    """Set matplotlib's defaults for all pictures that are drawn afterwards."""
    matplotlib.rcParams.update(
        {
            **{f"{part}.color": EITHER for part in ("text", "xtick", "ytick")},
            **{
                "axes.edgecolor": EITHER,
                "axes.labelcolor": EITHER,
                "axes.facecolor": "none",
                "figure.facecolor": "none",
            },
            **{"axes.spines.top": False, "axes.spines.right": False, "font.size": 10, "savefig.dpi": 150},
            **{"legend.fontsize": 8.5, "legend.framealpha": 0.0, "axes.titlesize": 11, "lines.linewidth": 1.8},
        }
    )
