"""What the search finds under constraints, with failures and with choices, beside what another version of it finds.

    OMP_NUM_THREADS=1 PYTHONPATH=/other/src python benchmarks/feature_quality.py --out other.json
    OMP_NUM_THREADS=1 python benchmarks/feature_quality.py --against other.json

The states are those of `feature_speed.py`. Both designs are compared by this version's acquisition, less what the risk
of failing costs, as a share of its range over 256 designs: above zero means that this version's is better.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
import torch
from feature_speed import ROWS, made

from edrbo import Optimizer
from edrbo.acquisition.objective import Objective
from edrbo.optimizer.candidates import read_candidates

STATES = 8


def objective(optimizer: Optimizer) -> Objective:
    """What the next design maximizes."""
    data = optimizer._main.data()
    posterior = optimizer._posterior(data, (None, None), [])
    return posterior.feasible(posterior.acquisition().approximations())[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--against", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    theirs = json.loads(options.against.read_text()) if options.against else {}
    found: dict[str, list[dict[str, object]]] = {}
    for features in (row for row in ROWS if not {"earlier", "tolerance"} & {*row}):
        name, gaps = " + ".join(features) or "plain", []
        for seed in range(STATES):
            optimizer = made(features, seed)
            exact, space = objective(optimizer), optimizer.space
            ours = optimizer.ask().design
            found.setdefault(name, []).append(ours)
            if not theirs:
                continue
            both = torch.from_numpy(space.encode_designs([ours, theirs[name][seed]]))
            random = torch.from_numpy(
                read_candidates(space).admit(np.random.default_rng(seed).random((256, space.d_x)))
            )
            with torch.no_grad():
                near = exact.near(both)
                mine, other = near(both).tolist()
                values = near(random)
            gaps.append((mine - other) / float(values.max() - values.min()))
        if theirs:
            print(f"{name:<36}{np.mean(gaps):>9.4f} mean{min(gaps):>9.4f} least{max(gaps):>9.4f} largest", flush=True)
    if options.out:
        options.out.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
