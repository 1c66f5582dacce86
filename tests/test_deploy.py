"""The files of ``deploy/``: the compose file by its schema, and every command in them, run without containers."""

from __future__ import annotations

import configparser
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from edrbo import Client, Space, Study
from edrbo.lab.web.tokens import Tokens

DEPLOY = Path(__file__).resolve().parents[1] / "deploy"
TEAM = DEPLOY.parent / "docs" / "guides" / "team.md"
EDRBO = str(Path(sys.executable).with_name("edrbo"))


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return found


def test_the_compose_file_is_one(compose: dict[str, Any]) -> None:
    models = pytest.importorskip("compose_spec.models")
    models.ComposeSpecification.model_validate(compose)
    services = compose["services"]
    for service in services.values():
        for name in service.get("depends_on", []):
            assert name in services
        for mount in service.get("volumes", []):
            source = mount.split(":")[0]
            assert (DEPLOY / source).exists() if source.startswith(".") else source in compose["volumes"]
    asked = {
        line.split("=")[0] for line in (DEPLOY / "example.env").read_text().splitlines() if line[:1] not in ("", "#")
    }
    text = (DEPLOY / "compose.yaml").read_text()
    wanted = {part.split(":?")[0] for part in text.split("${")[1:]}
    assert wanted == asked


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@contextmanager
def running(words: list[str], environment: dict[str, str], folder: Path) -> Iterator[tuple[int, list[str]]]:
    """The service of ``words`` on a port of its own; its log, complete once it has ended."""
    port, log = free_port(), list[str]()
    with (folder / "log").open("w+") as file:
        command = [EDRBO, *words, "--port", str(port)]
        server = subprocess.Popen(command, env={**os.environ, **environment}, stdout=file, stderr=file)
        try:
            client = Client(f"http://127.0.0.1:{port}", "x" * 20)
            pause = threading.Event()
            while not client.healthy():
                assert server.poll() is None, (folder / "log").read_text()
                pause.wait(0.1)
            yield port, log
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(60)
            log += (folder / "log").read_text().splitlines()


def test_the_service_of_the_compose_file_serves(
    compose: dict[str, Any], postgresql_server: str, tmp_path: Path
) -> None:
    sys.path.insert(0, str(Path(__file__).parent / "web"))
    from load import new_database

    service = compose["services"]["edrbo"]
    url, tokens = new_database(postgresql_server), Tokens(tmp_path / "tokens.json")
    places = {"postgresql://edrbo@database/edrbo": url, "/tokens/tokens.json": str(tokens.path)}
    words = [places.get(word, word) for word in service["command"]]
    assert str(tokens.path) in words
    environment = {
        **service["environment"],
        "EDRBO_PUBLIC_URL": "https://lab.example.org",
        "EDRBO_TOKENS": str(tokens.path),
        "EDRBO_PROXY": "127.0.0.1",
    }
    environment.pop("PGPASSWORD")
    made = subprocess.run(
        [EDRBO, "token", "create", "Ada", "--role", "setup", "--json", "--tokens", str(tokens.path)],
        capture_output=True,
        text=True,
        check=True,
    )
    token = json.loads(made.stdout)["token"]
    with running(words, environment, tmp_path) as (port, log):
        client = Client(f"http://127.0.0.1:{port}", token)
        study = client.new("coating", [{"name": "speed", "low": 1, "high": 9}], context=[{"name": "humidity"}])
        study.tell({"speed": 3}, {"humidity": 40}, 1.7)
        check = health_words()
        subprocess.run([sys.executable, *[word.replace("8017", str(port)) for word in check[1:]]], check=True)
        assert Study.open(url, name="coating").state.history[0].by == "Ada"
        back_up(compose, url, tmp_path, new_database(postgresql_server))
    requests = [json.loads(line) for line in log if line.startswith("{")]
    assert {"POST"} <= {one.get("method") for one in requests}
    assert any(one.get("by") == "Ada" for one in requests)
    assert token not in "\n".join(log)


def test_who_serves_may_write_to_its_volumes(compose: dict[str, Any]) -> None:
    """A volume belongs to whom its folder in the image belongs to, or to root if there is none."""
    text = (DEPLOY / "Containerfile").read_text().replace("\\\n", " ")
    (owned,) = (part.split()[2:] for part in text.split("&&") if part.split()[:2] == ["chown", "edrbo"])
    owned = owned[: owned.index("USER")] if "USER" in owned else owned
    assert {mount.split(":")[1] for mount in compose["services"]["edrbo"]["volumes"]} <= set(owned)
    copied = [line.split()[1] for line in text.splitlines() if line.startswith("COPY")]
    kept = [line[1:] for line in (DEPLOY.parent / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    assert {source.split("/")[0] for source in copied} == set(kept)


def health_words() -> list[str]:
    """The health check of the image, as a list."""
    text = (DEPLOY / "Containerfile").read_text().replace("\\\n", " ")
    line = next(line for line in text.splitlines() if line.startswith("HEALTHCHECK"))
    words: list[str] = json.loads(line.partition("CMD ")[2])
    assert words[0] == "python"
    return words


def programs_for(url: str) -> Path:
    """Where the programs are that belong to the server at ``url``; those of another version do not work with it."""
    import psycopg2

    with closing(psycopg2.connect(url)) as connection:
        major = connection.server_version // 10000
    bundled = Path(sys.prefix).glob("lib/python*/site-packages/*/pginstall*/bin/pg_dump")
    known = [shutil.which("pg_dump"), *map(str, bundled)]
    for program in filter(None, known):
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
        if f" {major}." in said:
            return Path(program).parent
    pytest.skip(f"no pg_dump of PostgreSQL {major} here")


def back_up(compose: dict[str, Any], url: str, folder: Path, empty: str) -> None:
    """The backup's command, once, and the dump read again by PostgreSQL, into the database ``empty``."""
    from psycopg2.extensions import parse_dsn

    programs = programs_for(url)
    service = compose["services"]["backup"]
    assert service["command"] == ["sh", "/backup.sh"]
    backups = folder / "backups"
    backups.mkdir()
    parts = parse_dsn(url)
    names = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "dbname": "PGDATABASE", "password": "PGPASSWORD"}
    environment = {names[name]: str(value) for name, value in parts.items() if name in names}
    environment |= {"BACKUPS": str(backups), "PATH": f"{programs}:{os.environ['PATH']}"}
    subprocess.run(["sh", str(DEPLOY / "backup.sh"), "once"], env={**os.environ, **environment}, check=True)
    (dump,) = backups.iterdir()
    listed = subprocess.run([programs / "pg_restore", "--list", dump], capture_output=True, text=True, check=True)
    assert "edrbo_events" in listed.stdout
    # And back, as the guide has it.
    command = next(line for line in TEAM.read_text().splitlines() if "pg_restore" in line).split("'")[1]
    command = command.replace("/backups/edrbo-DATE.dump", str(dump)).replace("--dbname edrbo", f"--dbname {empty}")
    subprocess.run(["sh", "-c", command], env={**os.environ, **environment}, check=True)
    before, after = (repr(Study.open(where, name="coating").state.history) for where in (url, empty))
    assert before == after


def unit(name: str) -> configparser.ConfigParser:
    found = configparser.ConfigParser(strict=False, interpolation=None)
    found.optionxform = str  # type: ignore[assignment,method-assign]
    found.read(DEPLOY / name)
    return found


def test_the_systemd_service_serves(tmp_path: Path) -> None:
    words = shlex.split(unit("edrbo.service")["Service"]["ExecStart"])
    assert words[0] == "/opt/edrbo/bin/edrbo"
    (tmp_path / "studies").mkdir()
    Study.open(tmp_path / "studies" / "coating.db", Space({"speed": (1, 9)}), name="coating")
    words = [word.replace("/var/lib/edrbo", str(tmp_path)) for word in words[1:]]
    token = Tokens(tmp_path / "tokens.json").create("Ada", "run")
    with running(words, {}, tmp_path) as (port, _):
        client = Client(f"http://127.0.0.1:{port}", token)
        client.study("coating").tell({"speed": 3}, None, 1.7)
        words = shlex.split(unit("edrbo-backup.service")["Service"]["ExecStart"].replace("%%", "%"))
        script = words[2].replace("/var/lib/edrbo", str(tmp_path)).replace("/opt/edrbo/bin/edrbo", EDRBO)
        subprocess.run(["sh", "-c", script], check=True, capture_output=True)
    (copy,) = (tmp_path / "backups").glob("coating-*.db")
    assert Study.open(copy, name="coating").state.history[0].by == "Ada"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here")
@pytest.mark.parametrize("name", ["edrbo.service", "edrbo-backup.service", "edrbo-backup.timer"])
def test_systemd_reads_the_units(name: str, tmp_path: Path) -> None:
    for path in DEPLOY.glob("edrbo*"):
        text = path.read_text().replace("/opt/edrbo/bin/edrbo", EDRBO)
        (tmp_path / path.name).write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / name)], capture_output=True, text=True, check=False
    )
    assert not [line for line in done.stderr.splitlines() if name in line], done.stderr


def test_the_proxies_lead_to_the_service() -> None:
    assert "reverse_proxy edrbo:8017" in (DEPLOY / "Caddyfile").read_text()
    assert "proxy_pass http://127.0.0.1:8017;" in (DEPLOY / "nginx.conf").read_text()
    assert "EXPOSE 8017" in (DEPLOY / "Containerfile").read_text()


@pytest.mark.skipif(shutil.which("caddy") is None, reason="no Caddy here")
def test_caddy_reads_its_file() -> None:
    command = ["caddy", "validate", "--adapter", "caddyfile", "--config", str(DEPLOY / "Caddyfile")]
    environment = {**os.environ, "EDRBO_HOST": "lab.example.org"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(None in (shutil.which("nginx"), shutil.which("openssl")), reason="no nginx here")
def test_nginx_reads_its_file(tmp_path: Path) -> None:
    key, certificate = tmp_path / "lab.example.org.key", tmp_path / "lab.example.org.pem"
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    words += ["-subj", "/CN=lab.example.org", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(words, capture_output=True, check=True)
    site = (DEPLOY / "nginx.conf").read_text().replace("/etc/ssl/", f"{tmp_path}/")
    whole = f"pid {tmp_path}/pid;\nevents {{}}\nhttp {{\n{site}\n}}\n"
    (tmp_path / "whole.conf").write_text(whole)
    command = ["nginx", "-t", "-c", str(tmp_path / "whole.conf"), "-g", f"error_log {tmp_path}/errors;"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
