"""Order stock before demand is known, by ask and tell.

Every morning the shop orders newspapers at 5 each; whatever sells before the evening brings 9. Demand is seen only
after the order. Which order earns most on average, and what does it earn?
"""

import numpy as np

import edrbo

rng = np.random.default_rng(7)
space = edrbo.Space(design={"order": (0, 200)}, context={"demand": (0, 200)})
optimizer = edrbo.Optimizer(space, seed=7)

for _ in range(25):
    suggestion = optimizer.ask()
    demand = 200 * rng.beta(2, 3)  # the world chooses after us
    profit = 9 * min(suggestion["order"], demand) - 5 * suggestion["order"]
    optimizer.tell(suggestion, {"demand": demand}, profit)

best = optimizer.recommend()
low, high = best.interval
print(f"order {best.design['order']:.0f}: expect {best.expected:.0f} a day (95 % sure: {low:.0f} to {high:.0f})")
print(f"if demand shifts by 10 % of its range in the worst way: {best.worst_case:.0f}")

# The best order is the quantile of demand at (9 − 5) / 9: here it is 69.
assert 50 < best.design["order"] < 95
