"""A setting that is best on average over conditions that nobody sets."""

import random

import optuna
import optunahub

EDRBOSampler = optunahub.load_module(package="samplers/edrbo").EDRBOSampler


def objective(trial: optuna.Trial) -> float:
    speed = trial.suggest_float("speed", 0, 1)
    humidity = random.random()  # the world chooses it, after speed was set
    trial.set_user_attr("context", {"humidity": humidity})
    return -((speed - 0.2 - 0.4 * humidity) ** 2)


if __name__ == "__main__":
    random.seed(0)
    sampler = EDRBOSampler(context={"humidity": (0, 1)}, seed=0)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(objective, n_trials=20)
    print(sampler.recommend(study))  # best on average, about 0.4; study.best_trial is the luckiest
