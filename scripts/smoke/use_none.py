"""No extra: Python, studies in files and the command line work; what needs more says what to install."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import COMMAND, SPACE, a_study, run, some_runs, values

import edrbo
from edrbo.bench.run.dask_cluster import connect
from edrbo.errors import MissingExtraError


def refused(extra: str, door: Callable[[], Any]) -> None:
    try:
        door()
    except MissingExtraError as problem:
        assert f"edrbo[{extra}]" in str(problem.hint), problem.hint
    else:
        raise SystemExit(f"the door of {extra} opened without it")


optimizer = some_runs()
study = edrbo.Study.open("smoke.db", SPACE, seed=0)
study.tell(study.ask(), {"c": 0.5}, 1.0)
assert len(edrbo.Study.open("smoke.db")) == 1
file = a_study()
assert values(file) == [1 / 3, 1e-300, 2.5]
run("ask", "--study", str(file))
run("recommend", "--study", str(file))
run("report", "--study", str(file), "--out", "report.html")
assert "<svg" in Path("report.html").read_text(encoding="utf-8")
refused("optuna", lambda: edrbo.EDRBOSampler)
refused("postgresql", lambda: edrbo.Study.open("postgresql://somebody@127.0.0.1:9/nowhere", SPACE))
refused("botorch", lambda: edrbo.Ensemble)
refused("pandas", optimizer.to_frame)
refused("dask", lambda: connect("tcp://127.0.0.1:9").__enter__())
served = subprocess.run([COMMAND, "serve", "x.toml"], check=False, capture_output=True, text=True)
assert served.returncode == 2, served
assert "edrbo[web]" in served.stderr, served.stderr

assert run("--version").strip() == edrbo.__version__
assert "newsvendor" in run("bench", "problems")
run("demo", "--evaluations", "6")
assert Path("edrbo-demo.png").read_bytes().startswith(b"\x89PNG")
