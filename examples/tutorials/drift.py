# %% [markdown]
# # Drift and forecasts
#
# The load of a plant rises through the season, and the best setting with it. How well a setting does for a load never
# changes; the loads do. Three ways of meeting that: count all loads the same, forget old ones, or use a forecast.

# %%
import numpy as np
from matplotlib import pyplot

import edrbo

DAYS = 30
space = edrbo.Space(design={"setting": (0, 10)}, context={"load": (0, 10)})


def loads(day, count, rng):
    """From about 2 to about 8, a little noisy."""
    return 2 + 0.2 * day + 0.5 * rng.random((count, 1))


def season(context_half_life=None, forecasts=False):
    """The setting recommended for the day after the last."""
    rng = np.random.default_rng(3)
    optimizer = edrbo.Optimizer(space, "erbo", seed=3, context_half_life=context_half_life)
    for day in range(DAYS):
        suggestion = optimizer.ask(forecast=loads(day, 20, rng)) if forecasts else optimizer.ask()
        load = float(loads(day, 1, rng)[0, 0])
        optimizer.tell(suggestion, {"load": load}, -((suggestion["setting"] - load) ** 2))
    answer = optimizer.recommend(forecast=loads(DAYS, 20, rng) if forecasts else None)
    return answer.design["setting"], optimizer


# %% [markdown]
# ## Three seasons
#
# The method is `erbo`, which goes on exploring at the edge of what is known; the default is more cautious just there.
# With `context_half_life=5` a load counts half after five later ones. A forecast is a sample of what tomorrow may
# bring, given to `ask` and to `recommend`.

# %%
lagging, _ = season()
following, _ = season(context_half_life=5)
foreseeing, optimizer = season(forecasts=True)
best = 2 + 0.2 * DAYS + 0.25  # tomorrow's mean load
print(f"all loads the same: {lagging:.2f}; forgetting: {following:.2f}")
print(f"with forecasts: {foreseeing:.2f}; best: {best}")

# %% [markdown]
# The settings that were tried with forecasts, day by day, and the loads that came.

# %%
figure, axes = pyplot.subplots(figsize=(6, 3.4), layout="constrained")
days = np.arange(DAYS)
axes.plot(days, optimizer.observations.c[:, 0], "o", label="load")
axes.plot(days, 10 * optimizer.observations.x[:, 0], "-", label="setting tried")  # coded from 0 to 1
axes.axhline(best, color="gray", ls="--", label="best for tomorrow")
axes.set(xlabel="day")
axes.legend()
pyplot.close(figure)  # else a notebook shows it twice
figure

# %% [markdown]
# ## How near is that to the best?
#
# A distribution of all loads lags half a season behind and forgetting some days; the forecast is there.

# %%
print(f"short of the best by {best - lagging:.2f}, {best - following:.2f} and {abs(best - foreseeing):.2f}")
assert abs(foreseeing - best) < 0.1
assert best - following < best - lagging
