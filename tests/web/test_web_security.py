"""Each line of what the page promises about security."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
from live import Client, new_key, study_server

from edrbo import Space, Study
from edrbo.errors import EdrboError
from edrbo.lab.web.registry import StudyRegistry, word_of
from edrbo.lab.web.security import LARGEST_BODY, LARGEST_IMPORT, Allowance, Guesses, Rules
from edrbo.lab.web.server import addresses, is_loopback, listen, rules_for

TOKEN = "a-token-of-our-own"
HOSTILE = "<script>alert(1)</script>\"'&{{7*7}}‮"
TELL = {"value": 1, "design": {"speed": 3, "layers": 1, "kind": "plain"}}
WRITE = "/api/v1/studies/coating/tell"


@pytest.fixture
def guarded(study: Study, tmp_path: Path):  # type: ignore[no-untyped-def]
    with study_server(tmp_path / "coating.db", Rules(TOKEN, None)) as client:
        yield client


# -------------------------------------------------------------------- token


def test_any_address_but_loopback_needs_a_token() -> None:
    assert rules_for("127.0.0.1", 1, None).token is None
    assert rules_for("0.0.0.0", 1, None).token != rules_for("0.0.0.0", 1, None).token
    assert len(rules_for("192.168.1.4", 1, None).token or "") >= 20
    assert rules_for("127.0.0.1", 1, TOKEN).token == TOKEN
    assert is_loopback("::1")
    assert not is_loopback("example.org")
    assert addresses("192.168.1.4", 80, TOKEN) == [f"http://192.168.1.4:80/?token={TOKEN}"]
    for bad in ("short", "with space in it", "semi;colon-and-more"):
        with pytest.raises(EdrboError, match="token"):
            rules_for("0.0.0.0", 1, bad)


@pytest.mark.parametrize(
    "path", ["/", "/s/coating/", "/api/v1/studies", "/api/v1/session", "/api/v1/openapi.json", "/api/v1/docs"]
)
def test_without_the_token_nothing_is_shown(guarded: Client, path: str) -> None:
    for client in (guarded, Client(guarded.port, "a-token-of-another")):
        answer = client.get(path)
        assert answer.status == 401
        assert "coating" not in answer.text
    guarded.value = "x"
    assert guarded.write("tell", **TELL).status == 401


def test_the_address_with_the_token_lets_a_browser_in(guarded: Client, study: Study) -> None:
    answer = guarded.get(f"/s/coating/?token={TOKEN}&part=x")
    assert (answer.status, answer.headers["Location"]) == (303, "/s/coating/?part=x")
    cookie = [line for line in answer.headers.get_all("Set-Cookie") if TOKEN in line]
    assert len(cookie) == 1
    assert {"HttpOnly", "SameSite=Strict"} <= set(cookie[0].split("; "))
    assert guarded.get("/s/coating/").status == 200
    assert guarded.write("tell", **TELL).status == 200


def test_a_script_may_use_the_token_as_a_bearer(guarded: Client, study: Study) -> None:
    script = Client(guarded.port, TOKEN)
    body = json.dumps({**TELL, "key": new_key()}).encode()
    assert script.send("POST", WRITE, body, {"Content-Type": "application/json"}).status == 200
    assert len(study) == 1


def test_who_guesses_tokens_waits(study: Study, tmp_path: Path) -> None:
    rules = Rules(TOKEN, None, guesses=Guesses(Allowance(0.01, 5.0)))
    with study_server(tmp_path / "coating.db", rules) as client:
        for k in range(5):
            assert Client(client.port, f"guess-number-{k}").get("/").status == 401
        refused = Client(client.port, "guess-number-6").get("/")
        assert refused.status == 429
        assert 1 <= int(refused.headers["Retry-After"]) <= 100
        assert f"in {refused.headers['Retry-After']} seconds" in refused.text
        assert Client(client.port, TOKEN).get("/s/coating/").status == 200


# -------------------------------------------------------------------- other sites


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"X-Edrbo": ""},
        {"X-Edrbo": "0" * 64},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example"},
    ],
)
def test_other_sites_cannot_write(client: Client, study: Study, headers: dict[str, str]) -> None:
    assert client.post(WRITE, {**TELL, "key": new_key()}, **headers).status in (403, 415)
    assert len(study) == 0
    assert client.post(WRITE, {**TELL, "key": new_key()}).status == 200


def test_the_value_of_one_browser_is_no_use_to_another(client: Client, study: Study) -> None:
    value = client.get("/api/v1/session").json["x-edrbo"]
    other = Client(client.port)
    other.get("/")
    assert other.post(WRITE, {**TELL, "key": new_key()}, **{"X-Edrbo": value}).status == 403


def test_other_sites_cannot_read(client: Client) -> None:
    assert client.send("GET", "/s/coating/", None, {"Host": "evil.example"}).status == 403
    answer = client.send("GET", "/api/v1/studies", None, {"Origin": "http://evil.example"})
    assert "Access-Control-Allow-Origin" not in answer.headers
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"


@pytest.mark.parametrize("path", ["/s/coating/", "/static/page.js", "/api/v1/studies", "/nowhere", "/s/nowhere/"])
def test_every_answer_carries_the_policy(client: Client, path: str) -> None:
    answer = client.get(path)
    policy = answer.headers["Content-Security-Policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_no_page_has_a_script_or_style_of_its_own(client: Client, study: Study) -> None:
    study.tell(TELL["design"], [1, 2], 1.0)
    study.ask()
    for path in ("", "enter", "enter/1", "runs", "run/0", "answer", "charts", "import", "setup"):
        page = client.get(f"/s/coating/{path}").text
        assert "<script>" not in page
        assert " style=" not in page
        assert " onclick" not in page
        assert "//cdn" not in page


# -------------------------------------------------------------------- size, number and time


@pytest.mark.parametrize(("path", "size"), [(WRITE, LARGEST_BODY), ("/api/v1/studies/coating/import", LARGEST_IMPORT)])
def test_huge_bodies_are_refused(client: Client, path: str, size: int) -> None:
    client.post(path, {})
    headers = {"Content-Type": "application/json", "X-Edrbo": client.value, "Content-Length": str(size + 1)}
    assert client.send("POST", path, None, headers).status == 413


def test_a_body_without_end_is_cut_off(client: Client) -> None:
    client.get("/api/v1/session")
    with socket.create_connection(("127.0.0.1", client.port), timeout=60) as wire:
        head = f"POST {WRITE} HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n"
        value = client.get("/api/v1/session").json["x-edrbo"]
        cookie = "; ".join(f"{name}={part}" for name, part in client.cookies.items())
        head += f"Content-Type: application/json\r\nX-Edrbo: {value}\r\nCookie: {cookie}\r\n\r\n"
        wire.sendall(head.encode())
        chunk = b"4000\r\n" + b"x" * 0x4000 + b"\r\n"
        for _ in range(LARGEST_BODY // 0x4000 + 1):
            wire.sendall(chunk)
        assert b"413" in wire.recv(200)


def test_too_many_requests(study: Study, tmp_path: Path) -> None:
    rules = Rules(reads=Allowance(0.0, 3.0), writes=Allowance(0.0, 2.0))
    with study_server(tmp_path / "coating.db", rules) as client:
        written = [client.write("tell", **TELL).status for _ in range(3)]
        assert written == [200, 200, 429]
        assert [client.get("/api/v1/studies").status for _ in range(3)] == [200, 200, 429]


def test_an_allowance_comes_back_with_time() -> None:
    now = [0.0]
    allowance = Allowance(2.0, 3.0, lambda: now[0])
    assert [allowance.take("a") for _ in range(4)] == [True, True, True, False]
    assert allowance.take("b")
    now[0] = 0.5
    assert [allowance.take("a") for _ in range(2)] == [True, False]
    now[0] = 1e6
    assert [allowance.take("a") for _ in range(4)] == [True, True, True, False]


# -------------------------------------------------------------------- paths, names, passwords


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static//etc/passwd",
        "/s/..%2f..%2fetc%2fpasswd/",
        "/s/coating.db/",
        "/api/v1/studies/..%2fother.db/export",
        "/api/v1/studies/%2Fetc%2Fpasswd/show",
        "/api/v1/studies/coating%00/show",
    ],
)
def test_no_path_from_the_request_reaches_the_disk(client: Client, tmp_path: Path, space: Space, path: str) -> None:
    Study.open(tmp_path.parent / f"{tmp_path.name}-other.db", space)
    answer = client.get(path)
    assert answer.status == (400 if "%00" in path else 404)
    assert "root:" not in answer.text
    assert "import" not in answer.text.split("<main")[-1].split("</main")[0]


@pytest.mark.parametrize("name", ["../../x", "/etc/passwd", "..", "", "a\x00b", "C:\\x", HOSTILE, "名前"])
def test_a_name_becomes_a_harmless_word(name: str) -> None:
    assert set(word_of(name)) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert word_of(name)


def test_hostile_names_and_values_are_text(tmp_path: Path) -> None:
    space = Space({HOSTILE: (0, 1), "k": [HOSTILE, "b"]}, {HOSTILE + "c": None})
    study = Study.open(tmp_path / "x.db", space, name=HOSTILE, by=HOSTILE)
    study.tell({HOSTILE: 0.5, "k": HOSTILE}, [1.0], 1.0, note=HOSTILE)
    study.ask()
    study.tell({HOSTILE: 0.4, "k": "b"}, failed=True, why=HOSTILE)
    with study_server(tmp_path / "x.db") as client:
        (found,) = client.get("/api/v1/studies").json
        home = f"/s/{found['study']}/"
        answer, charts = (
            client.until(home + path, lambda found: "Working out" not in found.text).text
            for path in ("answer", "charts")
        )
        pages = [client.get(home + path).text for path in ("", "enter", "enter/1", "runs", "run/0", "import", "setup")]
        for page in (*pages, answer, charts, client.get(f"{home}run/99").text):
            assert "<script>alert" not in page
            assert "7*7" in page or "49" not in page.split("<title>")[1].split("</title>")[0]
        assert "&lt;script&gt;alert" in pages[0]
        csv = client.get(f"/api/v1/studies/{found['study']}/export")
        assert csv.headers["Content-Disposition"] == f'attachment; filename="{found["study"]}.csv"'


def test_passwords_are_never_shown() -> None:
    with pytest.raises(EdrboError) as problem:
        StudyRegistry("postgresql://me:secret-word@127.0.0.1:1/lab?connect_timeout=1")
    assert "secret-word" not in str(problem.value)


def test_errors_of_ours_say_nothing_of_our_insides(study: Study, tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    def broken(*_: object) -> None:
        raise RuntimeError("secret-word")

    monkeypatch.setattr("edrbo.lab.web.views.overview", broken)
    with study_server(tmp_path / "coating.db") as client:
        answer = client.get("/api/v1/studies/coating/show")
    assert answer.status == 500
    assert "secret-word" not in answer.text


def test_a_port_that_is_taken_is_said() -> None:
    with listen("127.0.0.1", 0) as bound, pytest.raises(EdrboError):
        listen("127.0.0.1", bound.getsockname()[1])
