"""Programs of ``research/`` import one another by their names alone, as where they are run."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "research"))
