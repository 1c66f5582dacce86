"""The goals: what "best" means when the context varies. c ~ P, the distribution of the contexts.

    Expected()                E f(x, c)                                        the paper; production on average
    CVaR(0.1)                 mean of f over the worst 10 % of contexts        bad days cost most
    Quantile(0.1)             the value reached in 90 % of contexts            guarantees, service levels
    WorstCase()               the worst f over the context box                 safety
    Robust(0.1)               the worst mean over all distributions near P              tomorrow's contexts differ
    MeanSd(1)                 E f − k · sd f                                   robust parameter design
    Reach(5), Within(3, 5)    P(f ≥ 5), P(3 ≤ f ≤ 5)                           yield: the share within specification
    Hit(50)                   E (f − 50)², the smaller the better              Taguchi's loss

With "minimize" each is mirrored: the worst contexts are those with the largest f, Reach is P(f ≤ spec), MeanSd adds the
deviation. Within and Hit do not depend on the direction.
"""

from edrbo.records.goals.arithmetic import Direction, sign_of
from edrbo.records.goals.base import Goal, Utility, as_goal, goal_from_dict, goal_names, parse_goal, register_goal
from edrbo.records.goals.risk_measures import CVaR, Distance, Expected, MeanSd, Quantile, Robust, WorstCase
from edrbo.records.goals.specification import ProbabilityBetterThan, ProbabilityWithin, TargetLoss

__all__ = [
    "CVaR",
    "Direction",
    "Distance",
    "Expected",
    "Goal",
    "MeanSd",
    "ProbabilityBetterThan",
    "ProbabilityWithin",
    "Quantile",
    "Robust",
    "TargetLoss",
    "Utility",
    "WorstCase",
    "as_goal",
    "goal_from_dict",
    "goal_names",
    "parse_goal",
    "register_goal",
    "sign_of",
]
