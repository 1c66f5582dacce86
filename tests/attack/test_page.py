"""The attack on the lab page: devices that are locked out, other sites that make it compute, addresses that are none,
and computations that nobody waits for."""

from __future__ import annotations

import io
import json
import logging
import math
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from test_fuzz import tally

pytest.importorskip("fastapi", reason="needs edrbo[web]")

from live import Client, study_server

from edrbo import Optimizer, Space, Study
from edrbo.cancellation import cancellable, checkpoint
from edrbo.errors import StoppedError
from edrbo.lab.tables.csv_export import export_csv
from edrbo.lab.tables.csv_import import plan_table
from edrbo.lab.tables.sheet import make_sheet
from edrbo.lab.tables.spreadsheet import export_xlsx, read_xlsx
from edrbo.lab.web import api
from edrbo.lab.web.jobs import GONE_AFTER, PATIENCE, Threads, Worker
from edrbo.lab.web.security import MOST_AT_ONCE, Allowance, Guesses, Rules
from edrbo.lab.web.server import LogFormatter
from edrbo.lab.web.session import StudySession
from edrbo.records.sanity import newly_doubtful

OLD, NEW = "the-token-before-it", "the-token-of-today"
SPACE = Space({"speed": (1.0, 9.0)}, {"humidity": (0.0, 1.0)})


@pytest.fixture
def study(tmp_path: Path) -> Study:
    study = Study.open(tmp_path / "coating.db", SPACE, initial=4)
    for k in range(6):
        study.tell({"speed": 1.0 + k}, [k / 5], float(k))
    return study


@pytest.fixture
def client(study: Study, tmp_path: Path) -> Iterator[Client]:
    with study_server(tmp_path / "coating.db") as found:
        yield found


# -------------------------------------------------------------------- locked out


def test_a_page_left_open_locks_nobody_out(study: Study, tmp_path: Path) -> None:
    counts = Counter[str]()
    rules = Rules(NEW, None, guesses=Guesses(Allowance(1e-3, 3.0)))
    with study_server(tmp_path / "coating.db", rules) as client:
        for k in range(30):
            for _ in range(10):
                stale = Client(client.port)
                stale.cookies = {"edrbo": OLD}
                answer = stale.get("/s/coating/?part=live")
                assert (answer.status, "older than the server" in answer.text) == (401, True)
            fresh = Client(client.port)
            counts[f"logins with {fresh.get(f'/s/coating/?token={NEW}').status}"] += 1
            assert fresh.get("/s/coating/").status == 200
            if k >= 10:  # somebody does guess, from the same address
                counts["guesses refused"] += Client(client.port, f"guess-{k}").get("/").status == 429
    tally("a page left open", counts)
    assert counts == {"logins with 303": 30, "guesses refused": 18}


def test_every_guess_costs_and_the_same_one_only_once() -> None:
    now = [0.0]
    guesses = Guesses(Allowance(0.1, 3.0, lambda: now[0]))
    assert [guesses.wrong("a", "x") for _ in range(50)] == [True] * 50
    assert [guesses.wrong("a", word) for word in ("y", "z", "v", "w", "x")] == [True, True, False, False, True]
    assert guesses.wait("a") == 10
    assert guesses.wrong("b", "v")
    now[0] = 10.0
    assert (guesses.wait("a"), guesses.wrong("a", "v"), guesses.wrong("a", "w")) == (0, True, False)


# -------------------------------------------------------------------- other sites

SITES = ("cross-site", "same-site")
WAYS = {
    "image": {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
    "frame": {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
    "script": {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"},
    "link": {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"},
    "an old browser's image": {},
}
ANSWERS = (
    "/s/coating/answer",
    "/s/coating/charts",
    "/s/coating/answer?context.humidity=0.{k}",
    "/api/v1/studies/coating/recommend",
)


def test_other_sites_make_nothing_compute(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = Counter[str]()
    begun: list[str] = []
    put = Threads.put
    monkeypatch.setattr(
        Threads, "put", lambda threads, job, *rest: (begun.append(job.kind), put(threads, job, *rest))[1]
    )
    for k in range(10):
        for site in SITES:
            for way, headers in WAYS.items():
                for path in ANSWERS:
                    stranger = Client(client.port)
                    sent = headers | ({"Sec-Fetch-Site": site} if headers else {})
                    answer = stranger.send("GET", path.format(k=k), None, sent)
                    shown = way in ("link", "an old browser's image") and not path.startswith("/api/")
                    assert answer.status == (200 if shown else 403), (way, path)
                    counts[f"{answer.status} for a {way}"] += 1
    assert begun == []
    tally("other sites", counts)
    assert client.until("/s/coating/answer?part=live", lambda found: "Set this" in found.text)
    assert begun == ["answer"]


def test_a_link_from_elsewhere_opens_a_page_that_asks_by_itself(client: Client) -> None:
    link = {"Sec-Fetch-Site": "cross-site", **WAYS["link"]}
    page = client.send("GET", "/s/coating/answer", None, link)
    assert "Working out" in page.text
    assert 'hx-get="/s/coating/answer?part=live' in page.text
    old = client.send(
        "GET", "/s/coating/answer?part=live", None, {"X-Edrbo": client.get("/api/v1/session").json["x-edrbo"]}
    )
    assert "Nothing can be said" not in old.text


# -------------------------------------------------------------------- addresses

MALFORMED = {
    "/%E2%82%AC?token=" + NEW: 303,
    "//evil.example/?token=" + NEW: 303,
    "/%2F%2Fevil.example/?token=" + NEW: 303,
    "/%5Cevil.example/?token=" + NEW: 303,
    "/%09/evil.example/?token=" + NEW: 400,
    "/a%0d%0aSet-Cookie:x=y?token=" + NEW: 400,
    "/a%0aERROR: forged": 400,
    "/%00": 400,
    "/%ff%fe": 400,
    "/" + "a" * 5000: 400,
    "/s/%1b%5b31m/": 400,
}


def raw(port: int, text: str) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=60) as wire:
        wire.sendall(text.encode("latin-1"))
        return wire.makefile("rb").read(400)


def test_addresses_that_are_none(study: Study, tmp_path: Path) -> None:
    counts = Counter[str]()
    with study_server(tmp_path / "coating.db", Rules(NEW, None)) as client:
        for path, status in MALFORMED.items():
            text = path.replace(" ", "%20")
            answer = Client(client.port).get(text)
            assert answer.status == status, path
            if status == 303:
                assert answer.headers["Location"] == "/"
            counts[str(answer.status)] += 1
        hosts = [
            "Host: a b",
            "Host: [::1",
            "Host: a/b",
            "Host:",
            "Host: a\r\nHost: b",
            "X: y",
            "Host: \xe9",
            "Host: a:b",
        ]
        for host in hosts:
            for version in ("1.1", "1.0"):
                line = raw(client.port, f"GET /?token={NEW} HTTP/{version}\r\n{host}\r\nConnection: close\r\n\r\n")
                assert line.split()[1] == b"400", (host, version, line)
                counts["400"] += 1
        for origin in ("http://[", "null", "//", "http://a\\b"):
            known = Client(client.port, NEW)
            assert known.post("/api/v1/new", {}, Origin=origin).status == 403
    tally("addresses that are none", counts)


def test_nothing_of_a_request_reaches_the_log_unescaped(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = "x\nERROR: forged\r\x1b[31m\u2028\u202e"

    def broken(*_: object) -> None:
        raise RuntimeError(hostile)

    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(LogFormatter())
    monkeypatch.setattr("edrbo.lab.web.views.overview", broken)
    logger = logging.getLogger("uvicorn")
    try:
        with study_server(tmp_path / "coating.db") as client:
            logger.addHandler(handler)
            assert client.get("/api/v1/studies/coating/show").status == 500
        logging.getLogger("uvicorn.error").warning("asked for %s", hostile)  # the server has ended, and said all
    finally:
        logger.removeHandler(handler)
    lines = out.getvalue().splitlines()
    assert any("RuntimeError" in line for line in lines)
    assert lines[-1].startswith("WARNING: asked for x\\nERROR: forged")
    assert not any(line.startswith("ERROR: forged") for line in lines)
    assert all(line.isprintable() for line in lines)


# -------------------------------------------------------------------- computations


def test_one_session_cannot_hold_all_threads_that_answer(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, inside = threading.Event(), threading.Semaphore(0)

    def waits(*_: object) -> dict[str, int]:
        inside.release()
        assert gate.wait(60)
        return {}

    monkeypatch.setattr("edrbo.lab.web.views.overview", waits)
    with study_server(tmp_path / "coating.db") as greedy:
        greedy.get("/")
        answers: list[int] = []
        asks = [
            threading.Thread(target=lambda: answers.append(greedy.get("/api/v1/studies/coating/show").status))
            for _ in range(60)
        ]
        for one in asks:
            one.start()
        try:
            for _ in range(MOST_AT_ONCE):
                assert inside.acquire(timeout=60)
            assert Client(greedy.port).get("/s/coating/").status == 200
        finally:
            gate.set()
            for one in asks:
                one.join()
    tally("requests at once", Counter(map(str, answers)))
    assert answers.count(200) >= MOST_AT_ONCE
    assert answers.count(200) + answers.count(429) == 60


def held(threads: Threads, who: str, count: int, gate: threading.Event) -> list[Worker]:
    workers = [Worker(threads) for _ in range(count)]
    for k, worker in enumerate(workers):
        worker.submit(f"{who} {k}", "answer", "x", gate.wait, who)
    return workers


def test_one_session_cannot_hold_all_threads() -> None:
    threads, gate = Threads(3), threading.Event()
    try:
        held(threads, "greedy", 15, gate)
        job = Worker(threads).submit("one", "ask", "x", lambda: 1, "modest")
        assert job.ended.wait(60)
        assert job.result == 1
    finally:
        gate.set()


def test_askers_take_turns_on_one_study() -> None:
    threads, gate, order = Threads(2), threading.Event(), []
    worker = Worker(threads)
    worker.submit("gate", "ask", "x", gate.wait, "x")
    jobs = [worker.submit(f"a{k}", "answer", "x", lambda k=k: order.append(f"a{k}"), "a") for k in range(6)]
    jobs += [worker.submit("b0", "answer", "x", lambda: order.append("b0"), "b")]
    jobs += [worker.submit("a-ask", "ask", "x", lambda: order.append("a-ask"), "a")]
    gate.set()
    assert all(job.ended.wait(60) for job in jobs)
    assert set(order[:2]) == {"a-ask", "b0"}


def slow(gate: threading.Event) -> Callable[[], None]:
    """A search that does not end."""

    def do() -> None:
        optimizer = Optimizer(SPACE, "ucb", initial=3)
        for k in range(8):
            optimizer.tell({"speed": 1.0 + k}, [k / 7], float(k % 3))
        gate.set()
        while True:
            optimizer.recommend()
            optimizer.tell({"speed": 5.0}, [0.5], 1.0)

    return do


@pytest.mark.parametrize("kind", [kind for kind, seconds in GONE_AFTER.items() if seconds < math.inf])
def test_a_computation_ends_when_its_asker_is_gone(kind: str) -> None:
    worker, gate = Worker(Threads(2)), threading.Event()
    job = worker.submit("one", kind, "this", slow(gate), "a")
    assert gate.wait(60)
    assert worker.open_jobs(kind) == [job]
    job.seen -= GONE_AFTER[kind] - 1
    assert worker.open_jobs(kind) == [job]  # somebody looks on
    assert not job.ended.wait(0.1)
    job.seen -= GONE_AFTER[kind] + 1
    assert job.ended.wait(60)
    assert (job.status, job.error) == ("failed", "nobody waited for this")
    again = worker.submit("one", kind, "this", lambda: 7, "a")  # somebody asks again
    assert again.ended.wait(60)
    assert again.result == 7


def test_computations_end_with_the_server(caplog: pytest.LogCaptureFixture) -> None:
    threads, gate = Threads(2), threading.Event()
    worker, other = Worker(threads), Worker(threads)
    job = worker.submit("one", "ask", "this", slow(gate), "a")
    broken = other.submit("two", "ask", "that", lambda: gate.wait(60) and job.ended.wait(60) and 1 / 0, "b")
    assert gate.wait(60)
    threads.stop()
    assert job.ended.wait(60)
    assert job.error == "the server was stopped"
    assert broken.ended.wait(60)
    assert caplog.records == []  # what a process does that is about to end is no news
    assert worker.submit("three", "ask", "more", lambda: 1, "a").ended.wait(60)
    assert worker.get("three").error == "the server was stopped"


def test_a_server_that_ends_stops_what_it_computes(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, over = threading.Event(), threading.Event()
    monkeypatch.setattr(StudySession, "inference", wanted(gate, over))
    with study_server(tmp_path / "coating.db") as client:
        client.get("/")
        client.write("ask")
        assert gate.wait(60)
    assert over.wait(60)


def test_a_computation_has_a_time_limit() -> None:
    worker, gate = Worker(Threads(2)), threading.Event()
    job = worker.submit("ask 1", "ask", "the next suggestion", slow(gate), "a")
    assert gate.wait(60)
    assert job.begun is not None
    job.begun -= PATIENCE["ask"] + 1
    assert job.ended.wait(60)
    assert job.error == "the next suggestion took longer than 600 seconds"
    assert worker.submit("ask 1", "ask", "the next suggestion", lambda: 7, "a") is job


def wanted(gone: threading.Event, over: threading.Event) -> Callable[..., None]:
    """Something that is computed in the thread of a request, until nobody wants it."""

    def compute(*given: object, **more: object) -> None:
        gone.set()  # the asker may leave now
        try:
            while True:
                checkpoint()
        finally:
            over.set()

    return compute


def test_what_a_request_itself_computes_ends_when_its_asker_is_gone(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, over = threading.Event(), threading.Event()
    monkeypatch.setattr(api, "preview", wanted(gone, over))
    value = client.get("/api/v1/session").json["x-edrbo"]
    body = json.dumps({"key": "a-key-of-mine", "text": "speed\tvalue\n1\t2\n"}).encode()
    head = (
        f"POST /api/v1/studies/coating/import HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\nX-Edrbo: {value}\r\n"
        f"Cookie: {'; '.join(f'{name}={value}' for name, value in client.cookies.items())}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", client.port)) as asker:
        asker.sendall(head.encode() + body)
        assert gone.wait(60)
        assert not over.wait(0.1)
    assert over.wait(60)


def test_what_a_request_itself_computes_has_a_time_limit(study: Study, tmp_path: Path) -> None:
    with study_server(tmp_path / "coating.db", Rules(answer_seconds=0.0)) as client:
        client.get("/")
        answer = client.post("/api/v1/studies/coating/import", {"key": "a-key-of-mine", "text": "speed\tvalue\n1\t2\n"})
        assert (answer.status, answer.json["title"]) == (503, "this took longer than 0 seconds")
        assert client.get("/s/coating/").status == 200  # where nothing is computed, nothing is stopped


def test_long_loops_can_be_stopped(study: Study, tmp_path: Path) -> None:
    with (tmp_path / "t.xlsx").open("wb") as file:
        export_xlsx(study.state, file)
    sheet = make_sheet("t", read_xlsx(tmp_path / "t.xlsx"), None)
    loops: dict[str, Callable[[], object]] = {
        "reading Excel": lambda: read_xlsx(tmp_path / "t.xlsx"),
        "reading a table": lambda: plan_table(study.state, sheet),
        "checking": lambda: list(newly_doubtful(study.state, study.state, [0])),
        "writing a table": lambda: export_csv(study.state, io.StringIO()),
    }
    for name, loop in loops.items():
        with pytest.raises(StoppedError), cancellable(lambda name=name: StoppedError(name)):
            loop()


def test_nothing_is_recorded_of_what_was_stopped() -> None:
    optimizer = Optimizer(SPACE, "erbo", initial=3)
    for k in range(6):
        optimizer.tell({"speed": 1.0 + k}, [k / 7], float(k % 3))
    twin, before = Optimizer.from_json(optimizer.to_json()), len(optimizer.state.history)
    counted = Counter[str]()
    for number in range(0, 40, 4):
        left = iter(range(number))
        with pytest.raises(StoppedError), cancellable(lambda left=left: stop_when(next(left, None))):
            optimizer.ask()
        counted["stopped"] += 1
        assert len(optimizer.state.history) == before
    assert optimizer.ask().design == twin.ask().design
    tally("computations", counted)


def stop_when(left: int | None) -> StoppedError | None:
    return StoppedError("enough") if left is None else None
