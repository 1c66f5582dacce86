"""Nothing that was confirmed is lost, nothing is stored twice. `python tests/web/load.py` is the long version."""

from __future__ import annotations

import html
import re
import threading
from pathlib import Path

import pytest
from live import Client, new_key, study_server
from load import WORDS, devices, new_study, stored_keys, under_fire
from process import process

from edrbo import Study
from edrbo.errors import EdrboError
from edrbo.lab.files import is_url
from edrbo.lab.maintenance import problems_of
from edrbo.lab.web.jobs import MOST_WAITING, Threads, Worker


def test_twenty_devices_at_once(tmp_path: Path) -> None:
    study = new_study(tmp_path / "load.db")
    with process(tmp_path / "load.db", *WORDS) as server:
        load = devices(server.port, count=20, posts=5)
    assert load.wrong == []
    assert len(study) == 100
    assert max(stored_keys(study).values()) == 1


@pytest.fixture(params=["file", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(request.getfixturevalue("postgresql") if request.param == "postgresql" else tmp_path / "load.db")


def test_killed_while_results_are_entered(place: str) -> None:
    study = new_study(place)
    with process(place, *WORDS) as server:
        confirmed, _ = under_fire(server, kills=2 if is_url(place) else 4, seed=1, most=5)
    keys = stored_keys(study)
    assert [key for key in confirmed if key not in keys] == []
    assert max(keys.values()) == 1
    assert len(keys) - len(confirmed) in (0, 1)  # the last may have been stored and not confirmed
    assert problems_of(place) == []


def test_open_pages_see_at_once_what_others_store(place: str) -> None:
    """Pages look every second; whoever looks sees all that was stored before, so three seconds are enough."""
    study = new_study(place)
    with study_server(place) as one, study_server(place) as two:
        for screen in ("", "runs"):
            page = one.get(f"/s/load/{screen}").text
            ((address, every),) = re.findall(r'id="live" hx-get="([^"]*)" hx-trigger="every (\d+)s"', page)
            assert int(every) == 1
            look = html.unescape(address)
            assert one.get(look).status == 204
            study.tell({"x": 0.5}, {"c": 1.0}, 8.125)  # the command line
            assert "8.125" in one.get(look).text
            assert two.write("tell", "load", value=9.375, design={"x": 0.5}, context={"c": 1}).status == 200
            assert "9.375" in one.get(look).text


def test_one_key_from_many_threads_is_one_entry(client: Client, study: Study) -> None:
    key, seen = new_key(), []

    def post() -> None:
        mine = Client(client.port)
        body = {"key": key, "value": 1, "design": {"speed": 3, "layers": 1, "kind": "plain"}}
        seen.append(mine.write("tell", **body).json["again"])

    threads = [threading.Thread(target=post) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == [False] + [True] * 11
    assert len(study) == 1


def test_the_page_stays_alive_while_a_suggestion_is_worked_out(client: Client, study: Study) -> None:
    for k in range(6):
        study.tell({"speed": 1 + k, "layers": 1, "kind": "plain"}, [50 + k, 3], 10.0 + k)
    job = client.write("ask").json
    reported = client.write("tell", value=1, design={"speed": 3, "layers": 1, "kind": "plain"})
    assert reported.status == 200
    assert job["status"] in ("waiting", "running")
    assert client.follow(job["job"])["status"] == "done"
    assert len(study.pending) == 1


def test_a_worker_survives_what_goes_wrong() -> None:
    worker = Worker(Threads())

    def broken() -> None:
        raise RuntimeError("secret-word")

    def refused() -> None:
        raise EdrboError("cannot be", "try this")

    gate = threading.Event()
    first = worker.submit("gate", "ask", "x", gate.wait)
    jobs = [worker.submit("a", "ask", "x", broken), worker.submit("b", "ask", "x", refused)]
    last = worker.submit("c", "ask", "x", lambda: 7)
    assert worker.submit("c", "ask", "x", lambda: 8) is last
    assert len(worker.open_jobs("ask")) == 4
    gate.set()
    for job in (first, *jobs, last):
        assert job.ended.wait(60)
    assert [job.status for job in (*jobs, last)] == ["failed", "failed", "done"]
    assert "secret-word" not in jobs[0].error + jobs[0].hint
    assert (jobs[1].error, jobs[1].hint, last.result) == ("cannot be", "try this", 7)


def test_a_worker_takes_only_so_much() -> None:
    worker, gate = Worker(Threads()), threading.Event()
    try:
        for k in range(MOST_WAITING):
            worker.submit(str(k), "ask", "x", gate.wait)
        with pytest.raises(EdrboError):
            worker.submit("one more", "ask", "x", gate.wait)
    finally:
        gate.set()
