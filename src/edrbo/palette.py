"""The colors of every picture and page: those of Okabe and Ito, safe for color-blind readers.

Their yellow is darkened, since it cannot be seen on white.
"""

from __future__ import annotations

VERMILION = "#D55E00"
BLUE = "#0072B2"
GREEN = "#009E73"
PURPLE = "#CC79A7"
ORANGE = "#E69F00"
SKY = "#56B4E9"
BLACK = "#000000"
OLIVE = "#B8AB00"
OKABE_ITO = (VERMILION, BLUE, GREEN, PURPLE, ORANGE, SKY, BLACK, OLIVE)

GRAY = "#555555"  # what is not the point: truths, bounds, laws
GRID = "#E6E6E6"
COLOR_MAP = "cividis"
