"""Security middleware: everything that is refused is refused here, before a route sees it.

form        addresses and names of hosts that are none are refused, and redirects lead to addresses of our own alone
host        the name in the request must be one of ours: no other site may be made to point here (DNS rebinding)
cross-site  what another site makes a browser send is refused before it costs anything; only links may be followed here,
            and nothing is computed for them
token       needed unless the server listens on this machine alone; in a cookie that scripts cannot read, or as a
            bearer. The right one always gets in; wrong ones are counted, each once, and who gives too many waits.
            That of a person says what they may do, and signs what they enter
writes      must come from our own pages, and carry a value that only these can read, bound to the browser's cookie;
            so must, or be sent by one of our pages, what makes the server compute
size, time  bodies are limited in bytes and in seconds, requests in number; an address also in secrets it may guess.
            What is computed for a request ends when its time is up, or when its asker is gone
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import json
import math
import re
import secrets
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode

from edrbo.cancellation import cancellable
from edrbo.errors import StoppedError
from edrbo.lab.web.problem import problem_body
from edrbo.lab.web.tokens import Person, Role, Tokens

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

SAFE = ("GET", "HEAD")
LARGEST_BODY = 64 * 1024
LARGEST_IMPORT = 4 * 1024 * 1024
SECONDS_FOR_BODY = 20.0
SECONDS_FOR_ANSWER = 120.0  # of computing; what may take longer is a job
SECONDS_FOR_GOODBYE = 1.0
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


HOST = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
OUR_PATH = re.compile(r"/(?:[A-Za-z0-9_-]+/?)*")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ufffd]")  # the last stands for what is not UTF-8
LONGEST_PATH = 2000
HEALTH = "/healthz"  # for whoever watches the server: no token, nothing of a study
MOST_AT_ONCE = 30  # requests of one session; scripts of one machine may be one


OWNER = Person("", "setup", 0.0, "")  # who has the server's own token, or needs none
SETTING_UP = re.compile(r"/api/v1/(?:new|studies/[^/]+/amend)")


class Refused(Exception):
    """A request that is not let in; ``wait`` is how many seconds to wait before the next try."""

    def __init__(self, status: int, message: str, hint: str = "", wait: int = 0) -> None:
        super().__init__(message)
        self.status, self.message, self.hint, self.wait = status, message, hint, wait


@dataclass
class Rules:
    """``token`` None, and no ``people``: whoever reaches the server may use it. ``hosts`` None: it has any name.
    ``secure``: browsers reach it by HTTPS."""

    token: str | None = None
    hosts: frozenset[str] | None = frozenset({"localhost", "127.0.0.1", "[::1]"})
    cookie: str = "edrbo"
    people: Tokens | None = None
    secure: bool = False
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    reads: Allowance = field(default_factory=lambda: Allowance(200.0, 600.0))
    writes: Allowance = field(default_factory=lambda: Allowance(60.0, 300.0))
    guesses: Guesses = field(default_factory=lambda: Guesses(Allowance(0.1, 10.0)))  # wrong tokens
    body_seconds: float = SECONDS_FOR_BODY
    answer_seconds: float = SECONDS_FOR_ANSWER

    def cross_site(self, session: str) -> str:
        """The value that our own pages send along with what they write."""
        return hmac.new(self.secret, f"cross-site {session}".encode(), hashlib.sha256).hexdigest()

    @property
    def free(self) -> bool:
        """Whether nobody needs a token."""
        return self.token is None and self.people is None

    def holder(self, given: str) -> Person | None:
        """Whom a token lets in; that of the server itself stands for nobody in particular, who may do everything."""
        if self.token is not None and hmac.compare_digest(self.token.encode(), given.encode()):
            return OWNER
        return None if self.people is None else self.people.find(given)


class SecurityMiddleware:
    """An ASGI application around another."""

    def __init__(self, app: App, rules: Rules) -> None:
        self._app, self._rules = app, rules
        self._busy: Counter[str] = Counter()  # requests that are being answered, by who asked

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # no websockets here: the connection is closed
        cookies: list[str] = []
        send = _with_headers(send, cookies)
        try:
            headers = _headers(scope)
            given = _cookies(headers.get("cookie", ""))
            self._check_site(scope, headers)
            session = given.get(f"{self._rules.cookie}-session", "")
            if not 16 <= len(session) <= 64:
                session = secrets.token_urlsafe(24)
                cookies.append(self._session_cookie(session))
            if scope["path"] == HEALTH and scope["method"] in SAFE:
                person, landing = None, None
            else:
                person, landing = self._let_in(scope, headers, given)
            if landing is not None:
                await _redirect(send, landing[0], self._token_cookie(landing[1]))
                return
            if scope["method"] not in SAFE:
                self._check_write(headers, session)
                _check_role(person or OWNER, "setup" if SETTING_UP.fullmatch(scope["path"]) else "run")
            scope["edrbo"] = {
                "by": person.name if person is not None else "",
                "cross_site": self._rules.cross_site(session),
                "may_compute": self._may_compute(scope, headers, session),
                "who": f"{client_of(scope)} {given.get(f'{self._rules.cookie}-session', '')}",
            }
            limit = LARGEST_IMPORT if scope["path"].endswith("/import") else LARGEST_BODY
            body = await self._read(receive, headers, limit)
            with self._one_more(scope["edrbo"]["who"]):
                await self._answer(scope, body, receive, send)
        except Refused as problem:
            await refuse(scope, receive, send, problem)

    # ---------------------------------------------------------------- who

    def _check_site(self, scope: Scope, headers: dict[str, str]) -> None:
        """That the request is for us, and no other site's doing."""
        hosts = self._rules.hosts
        if hosts is not None and _name(headers["host"]) not in hosts:
            raise Refused(403, "this server has another name", "use the address that `edrbo serve` printed")
        if headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
            return
        followed = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        if scope["method"] not in SAFE or not followed or scope["path"].startswith("/api/"):
            raise Refused(403, "this came from another site")

    def _let_in(
        self, scope: Scope, headers: dict[str, str], cookies: dict[str, str]
    ) -> tuple[Person | None, tuple[str, str] | None]:
        """Refuse, or say who is there, and where to go instead with which cookie, now that the token is known."""
        rules, who = self._rules, client_of(scope)
        query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        shown = query.pop("token", "") if scope["method"] in SAFE else ""
        given = [shown, headers.get("authorization", "").removeprefix("Bearer "), cookies.get(rules.cookie, "")]
        free = rules.free or scope["path"].startswith("/static/")
        person = next((found for token in given if token and (found := rules.holder(token)) is not None), None)
        known = free or person is not None
        # Who is in has an allowance apart from those who knock at the same address.
        allowance = rules.reads if scope["method"] in SAFE else rules.writes
        account = f"{who} in" if known else who
        if not allowance.take(account):
            raise Refused(429, "too many requests", "wait a few seconds", allowance.wait(account))
        if not free and shown and rules.holder(shown) is not None:
            return person, (_landing(scope["path"], query), shown)
        if known:
            return person, None
        if not all(rules.guesses.wrong(who, token) for token in given if token):
            wait = rules.guesses.wait(who)
            hint = f"try again in {wait} seconds; the address that `edrbo serve` printed works at once"
            raise Refused(429, "too many wrong tokens came from here", hint, wait)
        if any(given):
            hint = "open the address that `edrbo serve` printed last"
            raise Refused(401, "this page, or its address, is older than the server", hint)
        raise Refused(401, "a token is needed to see this page", "open the address that `edrbo serve` printed")

    def _may_compute(self, scope: Scope, headers: dict[str, str], session: str) -> bool:
        """Whether one of our pages or a person is behind a request, and no other site."""
        return (
            scope["method"] not in SAFE
            or headers.get("sec-fetch-site") in ("none", "same-origin")
            or self._is_ours(headers, session)
        )

    def _is_ours(self, headers: dict[str, str], session: str) -> bool:
        """Whether it carries what no other site can make a browser send."""
        rules = self._rules
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        if bearer and rules.holder(bearer) is not None:
            return True
        return hmac.compare_digest(headers.get("x-edrbo", "").encode(), rules.cross_site(session).encode())

    def _check_write(self, headers: dict[str, str], session: str) -> None:
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != headers["host"]:
            raise Refused(403, "this came from another site")
        if headers.get("content-type", "").split(";")[0].strip() != "application/json":
            raise Refused(415, "this is not JSON", "send application/json")
        if not self._is_ours(headers, session):
            raise Refused(403, "the page is older than the server", "load it again")

    # ---------------------------------------------------------------- how much

    @contextmanager
    def _one_more(self, who: str) -> Iterator[None]:
        """One of the requests that are answered side by side; the server has threads for 40 in all."""
        if self._busy[who] >= MOST_AT_ONCE:
            raise Refused(429, "too many requests at once", "wait for an answer", 1)
        self._busy[who] += 1
        try:
            yield
        finally:
            self._busy[who] -= 1
            if not self._busy[who]:
                del self._busy[who]

    async def _answer(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        """What the application computes in the request's own thread is stopped at its next checkpoint, if that is no
        longer wanted; nothing of it is stored then."""
        gone, end = asyncio.Event(), time.monotonic() + self._rules.answer_seconds

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            gone.set()

        def reason_to_stop() -> StoppedError | None:
            if gone.is_set():
                return StoppedError("nobody waits for this any more")
            if time.monotonic() > end:
                hint = "send less at once, or try again when the server has less to do"
                return StoppedError(f"this took longer than {self._rules.answer_seconds:g} seconds", hint)
            return None

        watching = asyncio.create_task(watch())
        try:
            with cancellable(reason_to_stop):
                await self._app(scope, _replay(body, gone), send)
        finally:
            watching.cancel()

    async def _read(self, receive: Receive, headers: dict[str, str], limit: int) -> bytes:
        too_large = Refused(413, "this is too large", f"at most {limit // 1024} kB can be sent")
        length = headers.get("content-length", "0")
        if not re.fullmatch("[0-9]{1,15}", length) or int(length) > limit:
            raise too_large
        parts, size = [], 0
        try:
            async with asyncio.timeout(self._rules.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refused(400, "the connection was closed")
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > limit:
                        raise too_large
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError:
            raise Refused(408, "this took too long to arrive", "try again") from None

    # ---------------------------------------------------------------- cookies

    def _session_cookie(self, value: str) -> str:
        return f"{self._rules.cookie}-session={value}; {self._secure}Path=/; HttpOnly; SameSite=Lax; Max-Age=31536000"

    def _token_cookie(self, token: str) -> str:
        return f"{self._rules.cookie}={token}; {self._secure}Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000"

    @property
    def _secure(self) -> str:
        return "Secure; " if self._rules.secure else ""


def _check_role(person: Person, role: Role) -> None:
    if not person.may(role):
        done = "make or change studies" if role == "setup" else "enter anything"
        raise Refused(403, f"{person.name} may not {done}", f"ask for a token with the role {role}")


def client_of(scope: Scope) -> str:
    """Who is counted as one: an address, or the network of one that has billions."""
    address = str((scope.get("client") or ("?",))[0])
    try:
        number = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(number, ipaddress.IPv6Address):
        network = ipaddress.ip_network((number, 64), strict=False)
        return str(number.ipv4_mapped or network)
    return address


def _headers(scope: Scope) -> dict[str, str]:
    """The headers of a request that is well formed."""
    names = [name for name, _ in scope["headers"]]
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    if names.count(b"host") != 1 or not HOST.fullmatch(headers["host"]):
        raise Refused(400, "the request does not say for which server it is")
    if CONTROL.search(scope["path"]) or len(scope["path"]) > LONGEST_PATH or not scope["path"].startswith("/"):
        raise Refused(400, "this is not an address")
    return headers


def _landing(path: str, query: Mapping[str, str]) -> str:
    """Where to go after the token: a path of our own, never another site."""
    return (path if OUR_PATH.fullmatch(path) else "/") + (f"?{urlencode(query)}" if query else "")


def _name(host: str) -> str:
    """A host without its port."""
    return host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host


def _cookies(text: str) -> dict[str, str]:
    jar = SimpleCookie()
    try:
        jar.load(text)
    except CookieError:
        return {}
    return {name: part.value for name, part in jar.items()}


def _replay(body: bytes, gone: asyncio.Event) -> Receive:
    """What was read already, and after it that the asker is gone."""
    sent = False

    async def again() -> Message:
        nonlocal sent
        if sent:
            await gone.wait()
            return {"type": "http.disconnect"}
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _with_headers(send: Send, cookies: list[str]) -> Send:
    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            known = [(name, value) for name, value in message.get("headers", ()) if name.decode() not in HEADERS]
            known += [(name.encode(), value.encode()) for name, value in HEADERS.items()]
            if not any(name == b"cache-control" for name, _ in known):
                known.append((b"cache-control", b"no-store"))
            known += [(b"set-cookie", cookie.encode("latin-1")) for cookie in cookies]
            message = {**message, "headers": known}
        await send(message)

    return wrapped


async def _redirect(send: Send, where: str, cookie: str) -> None:
    headers = [(b"location", where.encode("ascii")), (b"set-cookie", cookie.encode("latin-1"))]
    await send({"type": "http.response.start", "status": 303, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


async def refuse(scope: Scope, receive: Receive, send: Send, problem: Refused) -> None:
    """Say no: in JSON to programs, in words to people."""
    if scope["path"].startswith("/api/"):
        content = problem_body(problem.status, problem.message, problem.hint)
        text, kind = json.dumps(content), "application/problem+json"
    else:
        text, kind = f"{problem.message}\n{problem.hint}\n", "text/plain; charset=utf-8"
    body = text.encode()
    headers = [
        (b"content-type", kind.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    headers += [(b"retry-after", str(problem.wait).encode())] if problem.wait else []
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": True})
    with suppress(TimeoutError):  # who closes on a sender takes the answer out of its hands: hear it out for a moment
        async with asyncio.timeout(SECONDS_FOR_GOODBYE):
            more = True
            while more:
                message = await receive()
                more = message["type"] == "http.request" and bool(message.get("more_body", False))
    await send({"type": "http.response.body", "body": b""})


ADDRESSES = 4096  # remembered at once; who is forgotten begins anew


class Allowance:
    """Every address may do ``burst`` things at once and ``per_second`` in the long run."""

    def __init__(self, per_second: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = per_second, burst, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def wait(self, who: str) -> int:
        """Seconds until ``who`` may do one more."""
        with self._lock:
            missing = 1.0 - self._now(who)
        return 0 if missing <= 0.0 else min(3600, math.ceil(missing / self._rate)) if self._rate else 3600

    def take(self, who: str) -> bool:
        """Whether ``who`` may do one more; if so it is taken."""
        with self._lock:
            left = self._now(who)
            self._left[who] = (max(0.0, left - 1.0) if left >= 1.0 else left, self._clock())
            self._left.move_to_end(who)
            if len(self._left) > ADDRESSES:
                self._left.popitem(last=False)
            return left >= 1.0

    def _now(self, who: str) -> float:
        left, at = self._left.get(who, (self._burst, self._clock()))
        return min(self._burst, left + self._rate * (self._clock() - at))


class Guesses:
    """Wrong secrets that an address has given. The same one again is no guess: a page that was left open sends its own
    for ever, and learns nothing by it."""

    def __init__(self, allowance: Allowance) -> None:
        self._allowance = allowance
        self._key = secrets.token_bytes(32)
        self._known: OrderedDict[tuple[str, bytes], None] = OrderedDict()
        self._lock = threading.Lock()

    def wrong(self, who: str, secret: str) -> bool:
        """Count a wrong secret; False if it was one too many."""
        mark = (who, hashlib.blake2b(secret.encode(), key=self._key, digest_size=16).digest())
        with self._lock:
            if mark in self._known:
                self._known.move_to_end(mark)
                return True
            if not self._allowance.take(who):
                return False
            self._known[mark] = None
            if len(self._known) > ADDRESSES:
                self._known.popitem(last=False)
            return True

    def wait(self, who: str) -> int:
        return self._allowance.wait(who)
