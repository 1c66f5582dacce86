"""Words that were retired stay out of the code and the docs: the field has others (docs/notation.md)."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# word of old → what is said instead
RETIRED = {
    "adviser": "constrained recommendation",
    "bent|unbend|bends?": "warped, unwarp",
    "boldest|hopeful": "optimistic",
    "condensed": "sparse",
    "dear": "expensive",
    "doors?|house": "interfaces, code base",
    "foretold|foretelling|foretell": "predicted",
    "hope": "optimism",
    "ladders?|rungs?": "approximations, coarse to exact",
    "left_to_gain|ten_more_runs|untried": "optimality_gap, expected_improvement_10, is_extrapolation",
    "pays? (?:less |more )?regret|(?:is|are) level with": "has lower (the same) cumulative regret",
    "sober": "posterior mean",
    "stand-ins?": "approximation",
    "telling rows?|telling_rows": "inducing points",
    "thinkers?": "outcome model",
    "wishes": "options of a request",
    "wrong hills?": "local optimum",
}
# Where a word means itself.
ALLOWED: dict[str, set[str]] = {
    "src/edrbo/bench/problems/bbob/__init__.py": {"bent"},  # the name of a function
    "src/edrbo/bench/problems/synthetic.py": {"bends"},  # a barrel does
}
ANY = re.compile("|".join(rf"(?<![a-z])(?:{words})(?![a-z])" for words in RETIRED), flags=re.IGNORECASE)


def texts() -> list[Path]:
    folders = [path for name in ("src", "docs") for path in sorted((ROOT / name).rglob("*"))]
    kept = [path for path in folders if path.suffix in (".py", ".md", ".html", ".js") and "htmx" not in path.name]
    return [*kept, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]


def retired() -> list[str]:
    """File, line and word."""
    found = []
    for path in texts():
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for match in ANY.finditer(line):
                place = path.relative_to(ROOT).as_posix()
                if match.group() in ALLOWED.get(place, ()):
                    continue
                if "results/" not in place:
                    found.append(f"{place}:{number}: {match.group()}: {line.strip()[:100]}")
    return found


def test_retired_words_stay_out() -> None:
    assert retired() == []


def test_a_retired_word_is_found() -> None:
    assert [match.group() for match in ANY.finditer("The thinker's ladder, dear to_dear clear endear foretold")] == [
        *("thinker", "ladder", "dear", "dear", "foretold")
    ]
