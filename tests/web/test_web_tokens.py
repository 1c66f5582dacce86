"""Tokens of persons: roles, names, revocation, and a file that is no use to who reads it."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from live import Client, new_key, serving, study_server

from edrbo import Space, Study
from edrbo.errors import InvalidValueError, StudyError
from edrbo.lab.web.app import make_app
from edrbo.lab.web.registry import StudyRegistry
from edrbo.lab.web.security import Rules
from edrbo.lab.web.server import rules_for
from edrbo.lab.web.tokens import ROLES, Role, Tokens

NEW = {"name": "other", "design": [{"name": "x", "low": 0, "high": 1}]}
TELL = {"value": 2, "design": {"speed": 3, "layers": 1, "kind": "plain"}}


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    return Tokens(tmp_path / "private" / "tokens.json")


@pytest.fixture
def port(study: Study, tmp_path: Path, tokens: Tokens) -> Iterator[int]:
    with study_server(tmp_path / "coating.db", Rules(None, None, people=tokens)) as found:
        yield found.port


def test_nobody_comes_in_without_one(port: int) -> None:
    assert Client(port).get("/api/v1/studies").status == 401
    assert Client(port, "edrbo_of-nobody-at-all").get("/api/v1/studies").status == 401


@pytest.mark.parametrize("role", ROLES)
def test_a_role_may_do_what_those_before_it_may(port: int, tokens: Tokens, study: Study, role: Role) -> None:
    client = Client(port, tokens.create("Ada", role))
    assert client.get("/api/v1/studies/coating/show").status == 200
    rank = ROLES.index(role)
    answer = client.write("tell", **TELL)
    assert answer.status == (200 if rank >= 1 else 403)
    amended = client.write("amend", settings={"seed": "7"})
    assert amended.status == (200 if rank >= 2 else 403)
    if rank < 2:
        assert amended.json["title"] == "Ada may not make or change studies"
        assert client.post("/api/v1/new", NEW).status == 403
    assert len(study.state.history) == rank


def test_the_name_comes_from_the_token(port: int, tokens: Tokens, study: Study) -> None:
    client = Client(port, tokens.create("Ada", "run"))
    assert client.write("tell", by="somebody else", **TELL).status == 200
    job = client.wait("ask", by="somebody else")
    assert job["status"] == "done"
    table = "speed,layers,kind,humidity,load,value\n2,1,plain,40,1,3\n"
    stored = client.write("import", text=table, confirm=True, by="somebody else")
    assert stored.status == 200, stored.text
    assert [event.by for event in study.state.history] == ["Ada", "Ada", "Ada"]


def test_a_browser_keeps_the_persons_token(port: int, tokens: Tokens, study: Study) -> None:
    token = tokens.create("Ada", "run")
    browser = Client(port)
    answer = browser.get(f"/s/coating/?token={token}")
    assert (answer.status, answer.headers["Location"]) == (303, "/s/coating/")
    assert browser.get("/s/coating/").status == 200
    assert browser.write("tell", **TELL).status == 200
    assert study.state.history[-1].by == "Ada"
    assert not any("Secure" in line for line in answer.headers.get_all("Set-Cookie"))


def test_who_is_revoked_is_out_at_once_and_others_stay(port: int, tokens: Tokens) -> None:
    ada, grace = Client(port, tokens.create("Ada", "run")), Client(port, tokens.create("Grace", "read"))
    assert (ada.get("/api/v1/studies").status, grace.get("/api/v1/studies").status) == (200, 200)
    Tokens(tokens.path).revoke("Ada")  # as another process does
    assert (ada.get("/api/v1/studies").status, grace.get("/api/v1/studies").status) == (401, 200)


def test_the_file_holds_no_token_and_is_the_owners_alone(tokens: Tokens) -> None:
    token = tokens.create("Ada", "setup")
    text = tokens.path.read_text()
    assert token not in text
    assert token.removeprefix("edrbo_") not in text
    assert stat.S_IMODE(os.stat(tokens.path).st_mode) == 0o600
    (row,) = json.loads(text)["tokens"]
    assert Tokens(tokens.path).find(token) is not None
    assert Tokens(tokens.path).find(row["digest"]) is None
    assert Tokens(tokens.path).find(f"edrbo_{row['digest']}") is None


def test_what_cannot_be_is_refused(tokens: Tokens) -> None:
    tokens.create("Ada", "run")
    with pytest.raises(StudyError):
        tokens.create("Ada", "read")
    with pytest.raises(StudyError):
        tokens.revoke("Grace")
    for name in ("", " Ada", "A\n", "x" * 61, "<b>"):
        with pytest.raises(InvalidValueError):
            tokens.create(name, "read")
    tokens.path.write_text('{"tokens": [{"name": "Eve", "role": "root", "created": 1, "digest": "0"}]}')
    with pytest.raises(StudyError):
        tokens.people()


def test_wrong_ones_are_counted_as_before(port: int) -> None:
    statuses = [Client(port, f"edrbo_{new_key()}").get("/api/v1/studies").status for _ in range(12)]
    assert statuses[:10] == [401] * 10
    assert statuses[-1] == 429


def test_behind_a_proxy_a_token_is_needed_and_its_name_is_ours() -> None:
    rules = rules_for("127.0.0.1", 8017, None, public_url="https://lab.example.org")
    assert rules.token is not None
    assert rules.secure
    assert rules.hosts is not None
    assert "lab.example.org" in rules.hosts
    assert "elsewhere.example" not in rules.hosts
    for bad in ("lab.example.org", "ftp://lab.example.org", "https://lab.example.org/path", "https://"):
        with pytest.raises(InvalidValueError):
            rules_for("127.0.0.1", 8017, None, public_url=bad)


def test_a_proxy_says_who_the_client_is_and_nobody_else(study: Study, tmp_path: Path) -> None:
    """Ten wrong tokens of one client do not keep another one out, who comes through the same proxy."""
    rules = rules_for("127.0.0.1", 8017, "the-token-of-the-server", public_url="https://lab.example.org")
    app = make_app(StudyRegistry(str(tmp_path / "coating.db")), rules)

    def knock(port: int, client: str, token: str) -> int:
        headers = {"Host": "lab.example.org", "X-Forwarded-For": client, "X-Forwarded-Proto": "https"}
        return Client(port, token).send("GET", "/api/v1/studies", None, headers).status

    with serving(app, proxy="127.0.0.1") as port:
        assert [knock(port, "198.51.100.7", f"wrong-token-{k}") for k in range(11)][-1] == 429
        assert knock(port, "198.51.100.8", "another-wrong-token") == 401
        assert knock(port, "198.51.100.7", "the-token-of-the-server") == 200
    with serving(app, proxy="192.0.2.1") as port:  # who connects is not the proxy: its word counts for nothing
        assert [knock(port, f"198.51.100.{k}", f"wrong-{k}-token") for k in range(20, 31)][-1] == 429


def test_a_space_of_its_own(tmp_path: Path, tokens: Tokens) -> None:
    """A study is made over the API by who may set up."""
    Study.open(tmp_path / "lab.db", Space({"x": (0, 1)}), name="first")
    with study_server(tmp_path / "lab.db", Rules(None, None, people=tokens)) as found:
        made = Client(found.port, tokens.create("Ada", "setup")).post("/api/v1/new", NEW)
        assert made.status == 200, made.text
        assert found.port
