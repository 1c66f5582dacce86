# %% [markdown]
# # A coating line, end to end
#
# We set the speed of the line and the heat of the oven; the humidity of the day is what it is; gloss comes out. Faster
# is better until the coat shows streaks or leaves the oven wet, and on a humid day that is sooner. Some runs spoil
# altogether. The study is kept in a file, as one would for weeks of work.

# %%
import tempfile
from pathlib import Path

import numpy as np

import edrbo

rng = np.random.default_rng(4)
HUMIDITIES = np.clip(np.random.default_rng(0).normal(55, 12, 365), 5, 95)  # last year's


def gloss(speed, heat, humidity):
    """In place of a day's work."""
    dryness = (heat - 120) / 60 - (speed - 20) / 40 - (humidity - 50) / 60
    streaks = 0.012 * (speed - 20) ** 2
    return 60 + 0.5 * speed - streaks - 25 * (dryness - 0.1) ** 2 - 0.004 * (heat - 140) ** 2


def spoiled(speed, heat):
    return heat > 175 and speed < 20  # it burns


# %% [markdown]
# ## The study
#
# Variables with units; the weather of last year, which costs nothing and tells the distribution of the contexts.

# %%
space = edrbo.Space(
    design={"speed": edrbo.Real(10, 60, unit="m/min"), "heat": edrbo.Real(100, 190, unit="°C")},
    context={"humidity": edrbo.Real(0, 100, unit="%")},
)
folder = tempfile.TemporaryDirectory()
file = Path(folder.name) / "coating.db"
study = edrbo.Study.open(str(file), space, seed=4)
study.observe_context([[float(humidity)] for humidity in HUMIDITIES])

# %% [markdown]
# ## Forty days
#
# A run that spoiled is reported as failed: there is no gloss to tell, and the optimizer learns to keep away.

# %%
for _ in range(40):
    suggestion = study.ask()
    speed, heat = suggestion["speed"], suggestion["heat"]
    humidity = float(rng.choice(HUMIDITIES))
    if spoiled(speed, heat):
        study.tell(suggestion, {"humidity": humidity}, failed=True)
    else:
        study.tell(suggestion, {"humidity": humidity}, gloss(speed, heat, humidity) + rng.normal(0, 0.3))

# %% [markdown]
# ## Tomorrow, in another process
#
# Space, settings and every run are in the file.

# %%
study = edrbo.Study.open(str(file))
answer = study.recommend()
low, high = answer.interval
print({name: round(value, 1) for name, value in answer.design.items()})
print(f"{answer.expected:.1f} on average over the weathers, with 95 % between {low:.1f} and {high:.1f}")

# %%
figure = edrbo.plot.surface(study)
figure

# %% [markdown]
# A humid day is announced: what to set when its humidity is known.

# %%
humid = study.recommend(context={"humidity": 80})
print({name: round(value, 1) for name, value in humid.design.items()}, f"{humid.expected:.1f}")

# %% [markdown]
# ## How near is that to the best?
#
# Here the truth is known: the mean over last year's days, on a fine grid of settings. With the seeds 1, 2 and 4 the
# study ended 0.0, 0.4 and 0.5 short of the best gloss, 73.4; this is the last of them. After twenty days it was 2.9
# short: it had kept to a fast line and a hot oven.

# %%
speeds, heats = np.meshgrid(np.linspace(10, 60, 101), np.linspace(100, 190, 91))


def mean(speed, heat):
    return gloss(np.asarray(speed)[..., None], np.asarray(heat)[..., None], HUMIDITIES).mean(axis=-1)


truth = np.where((heats > 175) & (speeds < 20), -np.inf, mean(speeds, heats))
top = np.unravel_index(np.argmax(truth), truth.shape)
ours = float(mean(answer.design["speed"], answer.design["heat"]))
print(f"best: speed {speeds[top]:.1f}, heat {heats[top]:.0f}, gloss {truth[top]:.2f}; ours {ours:.2f}")
assert truth[top] - ours < 1.0
folder.cleanup()
