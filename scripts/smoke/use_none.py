"""No extra: ask, tell and recommend work, and every door that needs more says what to install."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import COMMAND, SPACE, run, some_runs

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
refused("study", lambda: edrbo.Study.open("smoke.db", SPACE))
refused("study", lambda: edrbo.EDRBOSampler)
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
