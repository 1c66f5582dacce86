"""optuna-dashboard opens our study files as they are."""

from __future__ import annotations

import io
import json
import warnings
from pathlib import Path
from typing import Any

import pytest

from edrbo.space import Space
from edrbo.study import Study


def get(application: Any, path: str) -> Any:
    """What a browser gets from a WSGI application."""
    status = []
    environment = {
        "REQUEST_METHOD": "GET",
        "PATH_INFO": path,
        "QUERY_STRING": "",
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(),
        "wsgi.errors": io.StringIO(),
    }
    body = b"".join(application(environment, lambda line, headers, problem=None: status.append(line)))
    assert status[0].startswith("200"), (status, body)
    return json.loads(body)


def test_optuna_dashboard_opens_the_same_study(tmp_path: Path, line: Space) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the dashboard's own imports
        dashboard = pytest.importorskip("optuna_dashboard")
    where = tmp_path / "coating.db"
    study = Study.open(where, line)
    for value in (1.0, 2.0):
        study.tell(study.ask(), [0.25], value)
    pending = study.ask()
    study.observe_context([[0.5]])
    application = dashboard.wsgi(str(where))
    (summary,) = get(application, "/api/studies")["study_summaries"]
    assert summary["study_name"] == "coating"
    trials = get(application, f"/api/studies/{summary['study_id']}")["trials"]
    assert [trial["state"] for trial in trials] == ["Complete", "Complete", "Running"]
    assert [trial["values"] for trial in trials[:2]] == [[1.0], [2.0]]
    assert float(trials[2]["params"][0]["param_internal_value"]) == pending["speed"]
    assert any("0.25" in attribute["value"] for attribute in trials[0]["user_attrs"])
