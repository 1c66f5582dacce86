"""Which of two peaks is recommended when what is set is not what comes out, with the tolerance said and not said.

    python research/tolerances.py --out research/results/tolerances.csv    # three problems, seeds 0–9

Each problem has a narrow peak that is higher and a broad one that is better under the tolerance. Both optimizers are
told what really came out; one of them knows the tolerance. Regret is that of what is recommended, under the tolerance
and the distribution of contexts, by quadrature. Rows are written as they come; what the file holds is not run again.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import edrbo

EVALUATIONS = 40
NOISE = 0.02
CONTEXTS = (np.arange(9) + 0.5) / 9
NORMAL, NORMAL_WEIGHTS = np.polynomial.hermite_e.hermegauss(41)
UNIFORM, UNIFORM_WEIGHTS = np.polynomial.legendre.leggauss(41)
Outcome = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def peak(x: np.ndarray, at: np.ndarray | float, width: float) -> np.ndarray:
    return np.exp(-(((x - at) / width) ** 2))


@dataclass(frozen=True)
class Problem:
    """``outcome(x, z, c)``: ``x`` has the tolerance, ``z`` is a second design or zero, ``c`` a context or zero."""

    outcome: Outcome
    tolerance: float | str
    uniform: bool
    reach: float
    second: bool = False
    context: bool = False

    def expected(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Under the tolerance and the distribution of contexts, at designs (n)."""
        nodes, weights = (UNIFORM, UNIFORM_WEIGHTS) if self.uniform else (NORMAL, NORMAL_WEIGHTS)
        out = np.clip(x[:, None] + self.reach * nodes, 0, 1)
        contexts = CONTEXTS if self.context else np.zeros(1)
        values = self.outcome(out[..., None], z[:, None, None], contexts)
        return values.mean(-1) @ (weights / weights.sum())

    def best(self) -> tuple[float, float]:
        """The best value, and the best design."""
        x = np.linspace(0, 1, 501)
        z = np.linspace(0, 1, 51) if self.second else np.zeros(1)
        grid = np.stack(np.meshgrid(x, z, indexing="ij"), -1).reshape(-1, 2)
        values = self.expected(*grid.T)
        return float(values.max()), float(grid[values.argmax(), 0])


def line(x: np.ndarray, z: np.ndarray, c: np.ndarray) -> np.ndarray:
    return peak(x, 0.25, 0.25) + 1.4 * peak(x, 0.75, 0.06) + 0 * (z + c)


def line_by_context(x: np.ndarray, z: np.ndarray, c: np.ndarray) -> np.ndarray:
    return peak(x, 0.2 + 0.15 * c, 0.25) + 1.5 * peak(x, 0.8, 0.06) + 0.2 * c + 0 * z


def plane(x: np.ndarray, z: np.ndarray, c: np.ndarray) -> np.ndarray:
    broad = peak(x, 0.3, 0.2) * peak(z, 0.6, 0.4)
    return broad + 1.35 * peak(x, 0.8, 0.05) * peak(z, 0.4, 0.4) + 0.2 * c * (1 - z)


PROBLEMS = {
    "line": Problem(line, 0.07, uniform=False, reach=0.07),
    "line by context": Problem(line_by_context, 0.07, uniform=False, reach=0.07, context=True),
    "plane by context": Problem(plane, "±0.1", uniform=True, reach=0.1, second=True, context=True),
}


def run(problem: Problem, seed: int, told: bool) -> dict[str, float]:
    draw = np.random.default_rng([38, seed])
    x = edrbo.Real(0, 1, tolerance=problem.tolerance) if told else edrbo.Real(0, 1)
    design = {"x": x, "z": edrbo.Real(0, 1)} if problem.second else {"x": x}
    optimizer = edrbo.Optimizer(edrbo.Space(design, {"c": (0, 1)} if problem.context else None), seed=seed)
    for _ in range(EVALUATIONS):
        suggestion, c = optimizer.ask(), float(draw.random())
        off = draw.uniform(-1, 1) if problem.uniform else draw.standard_normal()
        out = float(np.clip(suggestion["x"] + problem.reach * off, 0, 1))
        z = float(suggestion["z"]) if problem.second else 0.0
        value = float(problem.outcome(*(np.array(part) for part in (out, z, c if problem.context else 0.0))))
        context = {"c": c} if problem.context else None
        optimizer.tell(suggestion, context, value + NOISE * draw.standard_normal(), design={"x": out})
    answer = optimizer.recommend()
    at = np.array([answer.design["x"]]), np.array([answer.design.get("z", 0.0)])
    best, place = problem.best()
    regret = best - float(problem.expected(*at)[0])
    return {"x": float(at[0][0]), "z": float(at[1][0]), "regret": regret, "broad": float(abs(at[0][0] - place) < 0.2)}


def known(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def summary(rows: list[dict[str, str]]) -> str:
    lines = []
    for name in PROBLEMS:
        parts = []
        regrets = {}
        for told in ("yes", "no"):
            own = [row for row in rows if row["problem"] == name and row["tolerance told"] == told]
            regrets[told] = float(np.mean([float(row["regret"]) for row in own])) if own else float("nan")
            parts.append(f"{sum(float(row['broad']) for row in own):.0f} of {len(own)} broad")
        share = regrets["yes"] / regrets["no"]
        lines.append(
            f"{name}: told {parts[0]}, mean regret {regrets['yes']:.4f}; not told {parts[1]}, {regrets['no']:.4f}; "
            f"share {share:.3f}"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    rows = known(options.out)
    done = {(row["problem"], row["tolerance told"], int(row["seed"])) for row in rows}
    for seed in range(options.seeds):
        for name, problem in PROBLEMS.items():
            for told in ("yes", "no"):
                if (name, told, seed) in done:
                    continue
                found = run(problem, seed, told == "yes")
                row = {"problem": name, "tolerance told": told, "seed": str(seed)}
                row |= {key: f"{value:.6g}" for key, value in found.items()}
                new = not options.out.exists()
                with options.out.open("a", newline="", encoding="utf-8") as file:
                    writer = csv.DictWriter(file, list(row), lineterminator="\n")
                    if new:
                        writer.writeheader()
                    writer.writerow(row)
                rows.append(row)
    print(summary(rows))


if __name__ == "__main__":
    main()
