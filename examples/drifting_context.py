"""A context that drifts: forget the old, and use a forecast for tomorrow.

The load of a plant rises through the season. A law of all contexts ever seen lags behind; with a half-life it follows,
and a forecast is better still.
"""

import numpy as np

import edrbo
from edrbo.report.diagnostics import context_shift

rng = np.random.default_rng(3)
space = edrbo.Space(design={"setting": (0, 10)}, context={"load": (0, 10)})


def run(forgetting: float | None) -> edrbo.Optimizer:
    optimizer = edrbo.Optimizer(space, "erbo", seed=3, forgetting=forgetting)
    for day in range(30):
        suggestion = optimizer.ask()
        load = 2 + 0.2 * day + 0.5 * rng.random()  # from 2 to 8
        optimizer.tell(suggestion, {"load": load}, -((suggestion["setting"] - load) ** 2))
    return optimizer


remembers, forgets = run(None), run(forgetting=5)
tomorrow = 8.0 + 0.5 * rng.random((20, 1))
settings = {
    "all contexts count the same": remembers.recommend().design["setting"],
    "a context counts half after 5": forgets.recommend().design["setting"],
    "with a forecast for tomorrow": remembers.recommend(forecast=tomorrow).design["setting"],
}
for words, setting in settings.items():
    print(f"{words}: setting {setting:.2f}")

loads = remembers.context_log.weighted(1, None)[0]
print(context_shift(loads[:20], loads[20:], np.array([10.0]), ("load",)).words())

errors = [abs(setting - 8.25) for setting in settings.values()]
assert errors[0] > errors[1] > errors[2]
