"""A server in a thread of the tests, and a client that behaves like a page of it."""

from __future__ import annotations

import http.client
import json
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from edrbo.lab.web.app import make_app
from edrbo.lab.web.registry import StudyRegistry
from edrbo.lab.web.security import App, Rules
from edrbo.lab.web.server import configured, listen


@contextmanager
def serving(app: App, **more: Any) -> Iterator[int]:
    """The port on which ``app`` is served meanwhile."""
    with listen("127.0.0.1", 0) as bound:
        server = configured(app, **more)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        try:
            yield int(bound.getsockname()[1])
        finally:
            server.should_exit = True
            thread.join(30)
            assert not thread.is_alive()


@contextmanager
def study_server(where: Any, rules: Rules | None = None, **more: Any) -> Iterator[Client]:
    with serving(make_app(StudyRegistry(str(where)), rules or Rules(), **more)) as port:
        yield Client(port)


class Answer:
    def __init__(self, status: int, headers: http.client.HTTPMessage, body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """One browser: it keeps its cookie and sends the value of its page along."""

    def __init__(self, port: int, token: str | None = None) -> None:
        self.port, self.token = port, token
        self.cookies: dict[str, str] = {}
        self.value = ""

    def send(self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            given = dict(headers or {})
            if self.cookies:
                given["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
            if self.token is not None:
                given["Authorization"] = f"Bearer {self.token}"
            connection.request(method, path, body, given)
            response = connection.getresponse()
            for line in response.headers.get_all("Set-Cookie") or []:
                name, _, rest = line.partition("=")
                self.cookies[name] = rest.partition(";")[0]
            return Answer(response.status, response.headers, response.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        """As a page of ours, or a person at a browser, asks."""
        return self.send("GET", path, None, {"Sec-Fetch-Site": "same-origin"} | headers)

    def post(self, path: str, body: Any, **headers: str) -> Answer:
        if not self.value:
            self.value = self.get("/api/v1/session").json["x-edrbo"]
        given = {"Content-Type": "application/json", "X-Edrbo": self.value} | headers
        return self.send("POST", path, json.dumps(body).encode(), given)

    def write(self, operation: str, study: str = "coating", **body: Any) -> Answer:
        body.setdefault("key", new_key())
        return self.post(f"/api/v1/studies/{study}/{operation}", body)

    def wait(self, operation: str, study: str = "coating", **body: Any) -> Any:
        """Ask, and wait for the worker."""
        answer = self.write(operation, study, **body)
        assert answer.status == 202, answer.text
        return self.follow(answer.json["job"], study)

    def follow(self, job: str, study: str = "coating") -> Any:
        """The job once it has ended."""
        address = f"/api/v1/studies/{study}/job?job={job.replace(' ', '%20')}"
        return self.until(address, lambda answer: answer.json["status"] not in ("waiting", "running")).json

    def until_status(self, path: str, status: int) -> Answer:
        """Ask again until the answer has that status."""
        pause = threading.Event()
        while (answer := self.get(path)).status != status:
            pause.wait(0.05)
        return answer

    def until(self, path: str, good: Callable[[Answer], bool]) -> Answer:
        """Read again, as a page does, until it is ``good``."""
        pause = threading.Event()
        while not ((answer := self.get(path)).status < 400 and good(answer)):
            assert answer.status in (200, 202, 204), answer.text
            pause.wait(0.05)
        return answer


def new_key() -> str:
    return uuid.uuid4().hex
