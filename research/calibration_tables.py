"""The tables of docs/calibration.md, in Markdown, from what ``calibration.py judge`` wrote."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np

Record = dict[str, Any]
Look = dict[str, Any]


def print_tables(records: list[Record]) -> None:
    cells: dict[tuple[float, int], list[tuple[Record, Look]]] = {}
    by_problem: dict[str, list[tuple[Record, Look]]] = {}
    for record in records:
        for n, look in record["looks"].items():
            cells.setdefault((record["noise"], int(n)), []).append((record, look))
            by_problem.setdefault(record["problem"], []).append((record, look))
    print(f"{len(records)} runs\n")
    _print(
        ("noise", "outcomes", "runs", "covered", "narrowest", "width", "random covered", "outcome inside"),
        [
            [f"{noise:.0%}", str(n), str(len(found)), *_interval_cells(found)]
            for (noise, n), found in sorted(cells.items())
        ],
    )
    _print(
        ("problem", "covered", "least cell", "random covered", "bound holds"),
        [[name, *_problem_cells(found)] for name, found in by_problem.items()],
    )
    _print(
        (
            "noise",
            "outcomes",
            "bound holds",
            "bound",
            "regret",
            "within 1 %",
            "true",
            "within 5 %",
            "true",
            "ten more",
            "true",
        ),
        [[f"{noise:.0%}", str(n), *_stopping_cells(found)] for (noise, n), found in sorted(cells.items())],
    )
    _print(("bar", "found", "met"), _bars(list(cells.values()), list(by_problem.values())))


def _bars(cells: list[list[tuple[Record, Look]]], by_problem: list[list[tuple[Record, Look]]]) -> list[list[str]]:
    covered, random, narrowest = ([part(found) for found in cells] for part in (_covered, _random, _narrowest))
    least = min(map(_covered, by_problem))
    bound = _bound(list(chain.from_iterable(cells)))
    words = f"{_percent(min(covered))} to {_percent(max(covered))}"
    bars = [
        ("covered in each cell: 90 to 99 %", words, min(covered) >= 0.9 and max(covered) <= 0.99),
        ("covered for each problem: at least 80 %", _percent(least), least >= 0.8),
        ("random designs covered in each cell: at least 85 %", _percent(min(random)), min(random) >= 0.85),
        ("width over the narrowest in each cell: at most 1.5", f"{max(narrowest):.2f}", max(narrowest) <= 1.5),
        ("bound on what is left to gain holds: at least 90 %", _percent(bound), bound >= 0.9),
    ]
    return [[bar, found, "yes" if met else "no"] for bar, found, met in bars]


def _covered(found: list[tuple[Record, Look]]) -> float:
    return float(np.mean([off(look) <= 1 for _, look in found]))


def _random(found: list[tuple[Record, Look]]) -> float:
    return float(np.mean(np.abs(np.concatenate([look["random off"] for _, look in found])) <= 1))


def _narrowest(found: list[tuple[Record, Look]]) -> float:
    """Mean width over the width that a rescaling of all intervals by one factor would need to cover 95 %."""
    return 1.0 / float(np.quantile([off(look) for _, look in found], 0.95, method="higher"))


def _bound(found: list[tuple[Record, Look]]) -> float:
    return float(np.mean([look["regret"] <= look["left to gain"] for _, look in found]))


def off(look: Look) -> float:
    """The error at the recommended design in half-widths of its interval: covered up to 1."""
    low, high = look["interval"]
    return abs(look["truth"] - 0.5 * (low + high)) / (0.5 * (high - low))


def _interval_cells(found: list[tuple[Record, Look]]) -> list[str]:
    width = np.mean([(look["interval"][1] - look["interval"][0]) / record["range"] for record, look in found])
    return [
        _percent(_covered(found)),
        f"{_narrowest(found):.2f}",
        f"{width:.3f}",
        _percent(_random(found)),
        _percent(np.mean([look["outcome inside"] for _, look in found])),
    ]


def _problem_cells(found: list[tuple[Record, Look]]) -> list[str]:
    cells: dict[tuple[float, str], list[bool]] = {}
    for record, look in found:
        n = next(n for n, other in record["looks"].items() if other is look)
        cells.setdefault((record["noise"], n), []).append(off(look) <= 1)
    return [
        _percent(_covered(found)),
        _percent(min(float(np.mean(cell)) for cell in cells.values())),
        _percent(_random(found)),
        _percent(_bound(found)),
    ]


def _stopping_cells(found: list[tuple[Record, Look]]) -> list[str]:
    def share(part: Callable[[Look], float]) -> float:
        return float(np.mean([part(look) / record["range"] for record, look in found]))

    cells = [
        _percent(_bound(found)),
        f"{share(lambda look: look['left to gain']):.3f}",
        f"{share(lambda look: look['regret']):.3f}",
    ]
    for i, delta in enumerate((0.01, 0.05)):
        cells.append(_percent(np.mean([look["within"][i] for _, look in found])))
        cells.append(_percent(np.mean([look["regret"] <= delta * record["range"] for record, look in found])))
    cells.append(f"{share(lambda look: look['ten more']):.4f}")
    known = [one for one in found if "regret later" in one[1]]
    gained = [(look["regret"] - look["regret later"]) / record["range"] for record, look in known]
    return [*cells, f"{np.mean(gained):.4f}" if gained else "–"]


def _percent(share: Any) -> str:
    return f"{100 * float(share):.1f} %"


def _print(headings: tuple[str, ...], rows: list[list[str]]) -> None:
    print("| " + " | ".join(headings) + " |")
    print("|" + "|".join(["---"] + ["---:"] * (len(headings) - 1)) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()
