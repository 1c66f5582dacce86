"""A study in a database, if one is given as EDRBO_SMOKE_POSTGRESQL; a server that is not there is named."""

from __future__ import annotations

import os

from common import SPACE

import edrbo
from edrbo.errors import UnavailableError

try:
    edrbo.Study.open("postgresql://somebody:secret@127.0.0.1:9/nowhere", SPACE)
except UnavailableError as problem:
    assert "OperationalError" in str(problem), problem  # the driver's own: it was loaded and has tried
    assert "secret" not in str(problem), problem
else:
    raise SystemExit("a study was opened in a database that is not there")

if url := os.environ.get("EDRBO_SMOKE_POSTGRESQL"):
    study = edrbo.Study.open(url, SPACE, name="smoke", seed=0)
    study.tell(study.ask(), {"c": 0.5}, 1.0)
    assert len(edrbo.Study.open(url, name="smoke")) == len(study) >= 1
else:
    print("no database was given: only the error of one that is not there was seen")
