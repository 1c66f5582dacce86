# %% [markdown]
# # The newsvendor
#
# The paper's smallest problem. In the morning we order x newspapers at 5 each; the demand c shows itself during the
# day; what is sold brings 9 and what is left goes back at 1. Orders and demands are shares of the largest order there
# can be. Which order earns most on average over all days, when nobody tells us how the demand is distributed?

# %%
import numpy as np

import edrbo

rng = np.random.default_rng(1)


def demand():
    """One day's: a Burr distribution with shapes 2 and 20, as in the paper, of which the optimizer knows nothing."""
    return min(float(np.sqrt((1 - rng.random()) ** (-1 / 20) - 1)), 1.0)


def profit(order, sold):
    return 9 * min(order, sold) + max(0.0, order - sold) - 5 * order


# %% [markdown]
# ## Thirty days
#
# Each day: ask for an order, let the day happen, tell what came of it.

# %%
space = edrbo.Space(design={"order": (0, 1)}, context={"demand": (0, 1)})
optimizer = edrbo.Optimizer(space, seed=1)
for _ in range(30):
    suggestion = optimizer.ask()
    today = demand()
    optimizer.tell(suggestion, {"demand": today}, profit(suggestion["order"], today))

answer = optimizer.recommend()
low, high = answer.interval
print(f"order {answer.design['order']:.3f}")
print(f"{answer.expected:.3f} a day, with 95 % between {low:.3f} and {high:.3f}")

# %% [markdown]
# ## What it believes
#
# The expected profit along the order, with its band, and the days that were reported.

# %%
figure = edrbo.plot.slices(optimizer)
figure

# %% [markdown]
# ## How near is that to the best?
#
# Here the truth is known. An order a little larger earns 8 · P(c > x) − 4 more, so the best order is the median of the
# demand, and what any order earns on average is an integral.

# %%
grid = np.linspace(0, 1, 20_001)


def truth(order):
    """8 E min(order, c) − 4 order, where E min(order, c) is the area under P(c > t) up to the order."""
    inside = grid <= order
    return 8 * float(np.trapezoid((1 + grid[inside] ** 2) ** -20.0, grid[inside])) - 4 * order


best = float(np.sqrt(2 ** (1 / 20) - 1))
ours = truth(answer.design["order"])
print(f"the best order, {best:.3f}, earns {truth(best):.3f}")
print(f"ours earns {ours:.3f}, {ours / truth(best):.1%} of it")
assert ours > 0.95 * truth(best)
