"""What mypy --strict sees of the installed package. A wrong use that it does not flag is an unused "type: ignore"."""

from __future__ import annotations

from typing import Any, assert_type

import edrbo

space = edrbo.Space({"x": (0, 1), "layers": edrbo.Integer(1, 4)}, {"c": (0, 1)})
optimizer = edrbo.Optimizer(space, seed=1, goal=edrbo.CVaR(0.1))
suggestion = optimizer.ask()
optimizer.tell(suggestion, {"c": 0.5}, 1.0)
answer = optimizer.recommend()


def sales(design: dict[str, Any]) -> tuple[dict[str, float], float]:
    return {"c": 0.5}, float(design["x"])


assert_type(suggestion, edrbo.Suggestion)
assert_type(optimizer.ask(3), list[edrbo.Suggestion])
assert_type(answer, edrbo.Recommendation)
assert_type(answer.design, dict[str, Any])
assert_type(answer.expected, float)
assert_type(answer.interval, tuple[float, float])
assert_type(optimizer.to_json(), str)
assert_type(edrbo.maximize(sales, space, evaluations=8), edrbo.Result)
assert_type(edrbo.Optimizer.from_json("{}"), edrbo.Optimizer)

edrbo.Optimizer(3)  # type: ignore[arg-type]
edrbo.Optimizer(space, seed="one")  # type: ignore[arg-type]
optimizer.recomend()  # type: ignore[attr-defined]
edrbo.maximize(sales, space)  # type: ignore[call-arg]
wrong: int = answer.design  # type: ignore[assignment]
