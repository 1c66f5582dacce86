"""The tables of docs/calibration.md, in Markdown, from what ``calibration.py judge`` wrote."""

from __future__ import annotations

from collections.abc import Callable
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


def off(look: Look) -> float:
    """The error at the recommended design in half-widths of its interval: covered up to 1."""
    low, high = look["interval"]
    return abs(look["truth"] - 0.5 * (low + high)) / (0.5 * (high - low))


def _interval_cells(found: list[tuple[Record, Look]]) -> list[str]:
    errors = np.array([off(look) for _, look in found])
    width = np.mean([(look["interval"][1] - look["interval"][0]) / record["range"] for record, look in found])
    anywhere = np.concatenate([look["random off"] for _, look in found])
    # the factor by which all intervals of the cell may be scaled and still cover 95 %
    narrowest = float(np.quantile(errors, 0.95, method="higher"))
    return [
        _percent(np.mean(errors <= 1)),
        f"{1 / narrowest:.2f}",
        f"{width:.3f}",
        _percent(np.mean(np.abs(anywhere) <= 1)),
        _percent(np.mean([look["outcome inside"] for _, look in found])),
    ]


def _problem_cells(found: list[tuple[Record, Look]]) -> list[str]:
    cells: dict[tuple[float, str], list[bool]] = {}
    for record, look in found:
        n = next(n for n, other in record["looks"].items() if other is look)
        cells.setdefault((record["noise"], n), []).append(off(look) <= 1)
    return [
        _percent(np.mean([off(look) <= 1 for _, look in found])),
        _percent(min(float(np.mean(cell)) for cell in cells.values())),
        _percent(np.mean(np.abs(np.concatenate([look["random off"] for _, look in found])) <= 1)),
        _percent(np.mean([look["regret"] <= look["left to gain"] for _, look in found])),
    ]


def _stopping_cells(found: list[tuple[Record, Look]]) -> list[str]:
    def share(part: Callable[[Look], float]) -> float:
        return float(np.mean([part(look) / record["range"] for record, look in found]))

    cells = [
        _percent(np.mean([look["regret"] <= look["left to gain"] for _, look in found])),
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
