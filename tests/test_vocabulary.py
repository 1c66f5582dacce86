"""Words that were retired stay out of code, tests and docs: the field has others (docs/notation.md). A name means one
thing."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
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
    "laws?": "(context) distribution",
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
    "docs/how.md": {"law"},  # of total variance
    "src/edrbo/bench/problems/bbob/__init__.py": {"bent"},  # the name of a function
    "src/edrbo/bench/problems/synthetic.py": {"bends"},  # a barrel does
    "src/edrbo/contexts/uncertainty.py": {"laws"},  # of a stream of random numbers: another would draw others
    "src/edrbo/optimizer/outcome_model.py": {"law"},  # of a stream of random numbers
    "tests/web/test_web_front.py": {"law"},  # that it is gone
}
ANY = re.compile("|".join(rf"(?<![a-z])(?:{words})(?![a-z])" for words in RETIRED), flags=re.IGNORECASE)
# Names of classes, functions, arguments and attributes; as words of a sentence they are free.
RETIRED_NAMES = {
    *("Adviser", "Apart", "Belief", "Choices", "Desk", "Evidence", "Expecting", "Expects", "Guard", "Hit", "Joint"),
    *("Knowledge", "Law", "Places", "Question", "Reach", "Repeats", "Room", "Thinker", "Wishes", "Within"),
    *("aim_words", "apart_from", "best_apart", "condense", "costly_kept", "foretell", "forgetting", "front_words"),
    *(
        "guard",
        "hopeful",
        "law",
        "looks_around",
        "single_score",
        "shared_score",
        "sober",
        "telling_rows",
        "ten_more_runs",
    ),
    *("told", "unbend"),
}
# Constants say what they bound.
RETIRED_CONSTANTS = {"CLOSE", "ENOUGH", "FAR", "FEW", "MANY", "MOST", "NEAR", "SAME", "SMALL", "TINY"}
# The same thing for another library has the same name there.
ADAPTERS = ("integrations/", "lab/web/bodies.py")


def texts() -> list[Path]:
    folders = [path for name in ("src", "docs", "tests") for path in sorted((ROOT / name).rglob("*"))]
    kept = [path for path in folders if path.suffix in (".py", ".md", ".html", ".js") and "htmx" not in path.name]
    own = Path(__file__).resolve()
    return [*(path for path in kept if path.resolve() != own), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]


def retired() -> list[str]:
    """File, line and word."""
    found = []
    for path in texts():
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for match in ANY.finditer(line):
                place = path.relative_to(ROOT).as_posix()
                if match.group().lower() in ALLOWED.get(place, ()):
                    continue
                if "results/" not in place:
                    found.append(f"{place}:{number}: {match.group()}: {line.strip()[:100]}")
    return found


@cache
def modules() -> list[tuple[str, ast.Module]]:
    package = ROOT / "src" / "edrbo"
    found = sorted(package.rglob("*.py"))
    return [(path.relative_to(package).as_posix(), ast.parse(path.read_text(encoding="utf-8"))) for path in found]


def names_in(tree: ast.AST) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Name):
            found.add(node.id)
    return found


def test_retired_words_stay_out() -> None:
    assert retired() == []


def test_retired_names_stay_out() -> None:
    found = [f"{place}: {name}" for place, tree in modules() for name in names_in(tree) & RETIRED_NAMES]
    assert found == []


def test_constants_say_what_they_bound() -> None:
    found = [f"{place}: {name}" for place, tree in modules() for name in names_in(tree) & RETIRED_CONSTANTS]
    assert found == []


def test_a_name_is_one_class() -> None:
    """Private ones are of their module alone."""
    names = Counter(
        node.name
        for place, tree in modules()
        if not place.startswith(ADAPTERS)
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_a_retired_word_is_found() -> None:
    assert [match.group() for match in ANY.finditer("The thinker's ladder, dear to_dear clear endear foretold")] == [
        *("thinker", "ladder", "dear", "dear", "foretold")
    ]
