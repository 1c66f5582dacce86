"""Words of the command line that many benchmarks take, as types for ``argparse``: which problems, which seeds."""

from __future__ import annotations

from edrbo.bench import problems

EVERYTHING = (*problems.names(), *problems.further_names())  # those of the paper and those drawn later


def problem_names(word: str) -> list[str]:
    """``all``, or names with commas between them."""
    return list(EVERYTHING) if word == "all" else word.split(",")


def seed_range(word: str) -> range:
    """``0:10`` is 0 to 9."""
    first, last = map(int, word.split(":"))
    return range(first, last)
