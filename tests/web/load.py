"""A server under load and under fire. As a program: twenty devices for a minute, and twenty kills, with numbers.

python tests/web/load.py
"""

from __future__ import annotations

import http.client
import json
import random
import statistics
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
            self._wire.request("POST", "/api/studies/load/tell", json.dumps(body), headers)
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


def new_study(folder: Path) -> Study:
    return Study.open(folder / "load.db", Space({"x": (0, 1)}, {"c": (0, 10)}))


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


def under_fire(server: Process, kills: int, seed: int) -> tuple[list[str], int]:
    """Kill the server at random moments while results are entered; gives the keys that were confirmed, and how often
    an entry had to be sent again."""
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
        wanted = len(confirmed) + chance.randrange(1, 20)
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


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        study = new_study(Path(folder))
        with process(Path(folder) / "load.db", *WORDS) as server:
            load = devices(server.port, count=20, posts=100, pause=0.5)
        ordered = sorted(load.seconds)
        print(f"{len(ordered)} posts of 20 devices: {len(load.wrong)} errors, {len(study)} stored;", end=" ")
        print(f"median {statistics.median(ordered):.3f} s, 95 % below {ordered[int(0.95 * len(ordered))]:.3f} s")
    with tempfile.TemporaryDirectory() as folder:
        study = new_study(Path(folder))
        with process(Path(folder) / "load.db", *WORDS) as server:
            confirmed, again = under_fire(server, kills=20, seed=0)
        keys = stored_keys(study)
        lost, twice = sum(key not in keys for key in confirmed), sum(count > 1 for count in keys.values())
        print(f"20 kills: {len(confirmed)} confirmed, {again} sent again, {lost} lost, {twice} stored twice")


if __name__ == "__main__":
    main()
