"""The attack on the page uses the server and the client of the tests of the page."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "web"))
