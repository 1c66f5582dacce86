"""Earlier studies on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from edrbo.lab import Study

Run = Callable[..., Any]
WORDS = ("-d", "speed=10:60 m/min", "-c", "humidity=0:100")


def test_earlier_studies_are_given_shown_and_amended(edrbo: Run, folder: Path) -> None:
    for name in ("line1", "line2"):
        assert edrbo("new", f"{name}.toml", *WORDS).code == 0
        for k in range(5):
            where = ["-s", f"{name}.toml"]
            assert edrbo("tell", *where, "-d", f"speed={20 + 5 * k}", "-c", f"humidity={20 * k}", "-v", k).code == 0
    assert edrbo("new", "line3.toml", *WORDS, "--earlier", "line1.db", "--earlier", "line2.toml").code == 0
    assert 'earlier = ["line1.db", "line2.toml"]' in (folder / "line3.toml").read_text()
    assert "learns from line1 (5 runs), line2 (5 runs)" in edrbo("show", "-s", "line3.toml").out
    assert edrbo("ask", "-s", "line3.toml").code == 0
    ended = edrbo("amend", "-s", "line3.toml", "--earlier", "line2.db", "--yes")
    assert ended.code == 0
    assert 'earlier = ["line2.db"]' in (folder / "line3.toml").read_text()
    earlier = Study.open(folder / "line3.db").settings.earlier
    assert earlier is not None
    assert [len(part) for part in earlier.parts] == [5]
    assert edrbo("amend", "-s", "line3.toml", "--earlier", "none", "--yes").code == 0
    assert Study.open(folder / "line3.db").settings.earlier is None


def test_what_does_not_match_leaves_nothing_behind(edrbo: Run, folder: Path) -> None:
    assert edrbo("new", "line1.toml", *WORDS).code == 0
    assert edrbo("tell", "-d", "speed=20", "-c", "humidity=50", "-v", 1).code == 0
    for more in (["--earlier", "nowhere.db"], ["--earlier", "line1.db", "-d", "dose=1:9"]):
        ended = edrbo("new", "line2.toml", *WORDS, *more)
        assert ended.code != 0
        assert "earlier" in ended.err or "line1" in ended.err
        assert not (folder / "line2.toml").exists()
