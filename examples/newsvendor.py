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

# The truth, which no optimizer sees: the best order is the quantile of demand at (9 − 5) / 9.
demands = 200 * np.random.default_rng(0).beta(2, 3, 1_000_000)


def earned(order: float) -> float:
    return float(9 * np.minimum(order, demands).mean() - 5 * order)


right = float(np.quantile(demands, 4 / 9))
share = earned(best.design["order"]) / earned(right)
print(f"the best order, {right:.0f}, earns {earned(right):.0f} a day; ours earns {share:.1%} of it")
assert share > 0.97
