"""A context that drifts: forget the old, and use a forecast for tomorrow.

The load of a plant rises through the season, and the best setting with it. A distribution of all contexts ever seen
lags behind; with a half-life it follows; with a forecast, in asking as well as in answering, it is there already. The
method is ``erbo``, which goes on exploring at the edge of what is known. The default is a little behind; ``edrbo``, the
method of the paper, is far behind: it subtracts the experts' disagreement, which is large just there.
"""

import numpy as np

import edrbo
from edrbo.lab.report.diagnostics import context_shift

DAYS = 30
BEST = 8.25  # the mean load on the day after the last, and so the best setting for it
space = edrbo.Space(design={"setting": (0, 10)}, context={"load": (0, 10)})


def loads(day: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """From about 2 to about 8, a little noisy."""
    return 2 + 0.2 * day + 0.5 * rng.random((count, 1))


def run(
    method: str = "erbo", *, context_half_life: float | None = None, forecasts: bool = False
) -> tuple[edrbo.Optimizer, float]:
    rng = np.random.default_rng(3)
    optimizer = edrbo.Optimizer(space, method, seed=3, context_half_life=context_half_life)
    for day in range(DAYS):
        suggestion = optimizer.ask(forecast=loads(day, 20, rng)) if forecasts else optimizer.ask()
        load = float(loads(day, 1, rng)[0, 0])
        optimizer.tell(suggestion, {"load": load}, -((suggestion["setting"] - load) ** 2))
    tomorrow = loads(DAYS, 20, rng) if forecasts else None
    return optimizer, optimizer.recommend(forecast=tomorrow).design["setting"]


remembers, lagging = run()
_, following = run(context_half_life=5)
_, foreseeing = run(forecasts=True)
_, default = run("edrbo-mean", forecasts=True)
_, paper = run("edrbo", forecasts=True)
for words, setting in (
    ("all contexts count the same", lagging),
    ("a context counts half after 5", following),
    ("with a forecast for every day", foreseeing),
    ("the same by the default method", default),
    ("the same by that of the paper", paper),
):
    print(f"{words}: setting {setting:.2f}, where {BEST} is best for tomorrow")

seen = remembers.context_log.weighted(1, None)[0]
print(context_shift(seen[:20], seen[20:], np.array([10.0]), ("load",)).describe())

assert abs(lagging - 5.15) < 0.3  # the mean of all loads so far
assert abs(following - 6.7) < 0.3  # their mean with weights that halve every five days
assert abs(foreseeing - BEST) < 0.1
assert abs(default - 7.9) < 0.3
assert abs(paper - 6.9) < 0.5
