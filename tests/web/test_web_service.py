"""What a service needs: health, logs for programs, an OpenAPI that is committed, problems as RFC 9457 has them."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from live import Client, new_key, serving, study_server

from edrbo import Space, Study
from edrbo.lab.web.app import make_app, make_routes
from edrbo.lab.web.registry import StudyRegistry
from edrbo.lab.web.security import Rules
from edrbo.lab.web.server import JsonFormatter, LogFormatter
from edrbo.lab.web.tokens import Tokens

ROOT = Path(__file__).resolve().parents[2]


def test_health_needs_no_token_and_says_nothing_of_a_study(study: Study, tmp_path: Path) -> None:
    with study_server(tmp_path / "coating.db", Rules("a-token-of-the-server", None)) as client:
        answer = client.get("/healthz")
        assert (answer.status, set(answer.json)) == (200, {"status", "version"})
        assert client.get("/api/v1/studies").status == 401
        assert client.send("POST", "/healthz", b"{}", {"Content-Type": "application/json"}).status == 401


def test_health_is_bad_where_the_studies_cannot_be_read(study: Study, tmp_path: Path) -> None:
    with study_server(tmp_path / "coating.db") as client:
        (tmp_path / "coating.db").write_bytes(b"no study at all" * 100)
        assert client.until_status("/healthz", 503).json["status"] == "unavailable"


def test_errors_are_problems(client: Client) -> None:
    for answer in (
        client.write("tell", value="x", design={"speed": 3, "layers": 1, "kind": "plain"}),
        client.write("cancel", id=99),
        client.post("/api/v1/studies/coating/tell", {"key": new_key(), "odd": 1}),
        client.get("/api/v1/studies/missing/show"),
        client.send("POST", "/api/v1/studies/coating/tell", b"{}", {"Content-Type": "application/json"}),
    ):
        assert answer.headers["Content-Type"].startswith("application/problem+json"), answer.text
        assert set(answer.json) == {"type", "title", "status", "detail", "code"}
        assert answer.json["status"] == answer.status
        code = answer.json["code"]
        assert answer.json["type"] == (f"urn:edrbo:error:{code}" if code else "about:blank")


def test_the_openapi_is_committed(tmp_path: Path) -> None:
    """``python scripts/write_openapi.py`` writes it again."""
    assert (
        json.loads((ROOT / "docs" / "openapi.json").read_text()) == make_routes(StudyRegistry(str(tmp_path))).openapi()
    )


def test_logs_for_programs_have_a_line_of_json_a_request(
    study: Study, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = make_app(StudyRegistry(str(tmp_path / "coating.db")), Rules("a-token-of-the-server", None))
    with serving(app) as port, caplog.at_level(logging.INFO, logger="edrbo.lab.web.requests"):
        logging.getLogger("edrbo.lab.web").propagate = True
        Client(port, "a-token-of-the-server").get("/api/v1/studies?token=a-token-of-the-server")
        Client(port, "a-token-of-the-server").get("/api/v1/studies/%0d%0aevil/show")
        pause = threading.Event()
        while sum(record.name.endswith("requests") for record in caplog.records) < 2:
            pause.wait(0.05)  # a refusal hears its sender out before it ends
    lines = [JsonFormatter().format(record) for record in caplog.records if record.name.endswith("requests")]
    found = [json.loads(line) for line in lines]
    first, second = found
    assert (first["method"], first["path"], first["status"]) == ("GET", "/api/v1/studies", 303)
    assert second["status"] == 400
    assert not any("\n" in line or "a-token-of" in line for line in lines)


def test_both_kinds_of_log_keep_to_a_line() -> None:
    record = logging.LogRecord("edrbo", logging.WARNING, "", 0, "first\nsecond \x1b[31m", (), None)
    assert "\n" not in LogFormatter().format(record)
    assert json.loads(JsonFormatter().format(record))["message"] == "first\nsecond \x1b[31m"


def test_a_service_ends_when_it_is_asked_to(study: Study, tmp_path: Path) -> None:
    """SIGTERM, as systemd and containers send it: an end without a traceback."""
    command = [sys.executable, "-c", "from edrbo.lab.cli import main; main()", "serve", str(tmp_path / "coating.db")]
    environment: dict[str, Any] = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [*command, "--port", "0", "--log", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        port = int(address.rstrip("/").rpartition(":")[2])
        client = Client(port)
        assert client.until("/healthz", lambda answer: answer.status == 200).status == 200
        server.send_signal(signal.SIGTERM)
        _, said = server.communicate(timeout=60)
    assert server.returncode in (0, -signal.SIGTERM)
    assert "Traceback" not in said


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl here")
def test_the_curl_examples_of_the_guide_work(tmp_path: Path) -> None:
    """As they stand there, in a shell, one after the other, against a server with a person's token."""
    guide = (ROOT / "docs" / "guides" / "team.md").read_text(encoding="utf-8")
    lines = [line[4:] for line in guide.replace("\\\n", " ").splitlines() if line.startswith("    ")]
    (named,) = (line for line in lines if line.startswith("URL="))
    commands = [line for line in lines if line.startswith("curl ")]
    study = Study.open(tmp_path / "coating.db", Space({"speed": (10, 60)}, {"humidity": (0, 100)}), initial=3)
    token = Tokens(tmp_path / "tokens.json").create("PLC 4", "run")
    with study_server(tmp_path / "coating.db", Rules(None, None, people=Tokens(tmp_path / "tokens.json"))) as client:

        def run(command: str) -> Any:
            text = f"{named}\n{command.replace('curl ', 'curl -sS --fail-with-body ')}"
            text = text.replace("https://lab.example.org", f"http://127.0.0.1:{client.port}")
            environment = {**os.environ, "TOKEN": token}
            done = subprocess.run(["sh", "-euc", text], env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
            return json.loads(done.stdout)

        show, ask, job, told, failed, answer = commands
        assert run(show)["reported"] == 0
        assert run(ask)["job"] == "ask plc4-ask-0001"
        pause = threading.Event()
        while (found := run(job))["status"] != "done":
            pause.wait(0.05)
        assert [one["id"] for one in found["result"]] == [0]
        assert run(told)["stored"]
        assert run(failed)["stored"]
        while (found := run(answer))["status"] != "done":
            pause.wait(0.05)
        assert set(found["result"]["design"]) == {"speed"}
    runs = study.state.runs
    assert (runs[0].value, runs[1].status, runs[1].why) == (1.7, "failed", "no paint")
    assert {event.by for event in study.state.history} == {"PLC 4"}
