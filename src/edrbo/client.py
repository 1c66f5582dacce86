"""A study on a server (``edrbo serve``), used from another machine as if it were here.

    client = edrbo.Client("http://lab.example.org:8017", token="edrbo_…")
    study = client.study("coating")
    suggestion = study.ask()
    study.tell(suggestion, {"humidity": 40}, 1.7)

The methods are those of ``Study``. Only Python's own library is needed. What is written carries a key: when the network
fails half-way it is sent again, and stored once.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from edrbo import errors
from edrbo.errors import EdrboError, InvalidValueError, StoppedError, StudyError, UnavailableError, UnknownStudyError

Value = float | int | str | bool
Values = Mapping[str, Value]

TRIES = 4  # of a request, when the network or the server fails
PAUSE = 0.2  # seconds before the second try; each later one waits twice as long
LOOK = 0.25  # seconds between looks at a job


@dataclass(frozen=True)
class RemoteSuggestion:
    """A design to try; ``tell`` takes it.

    Args:
        id: number of the run.
        design: what to set, by name.
        cost: what it is expected to cost, if costs are known of.
    """

    id: int
    design: dict[str, Value]
    cost: float | None = None


@dataclass(frozen=True)
class Receipt:
    """That an entry is stored.

    Args:
        ref: of the event; ``undo`` takes it.
        words: what was stored, for people.
        warnings: what is odd about it: numbers that look mistyped, a constraint that was broken.
        observations: outcomes that the study has now.
    """

    ref: str
    words: str
    warnings: tuple[str, ...]
    observations: int


@dataclass(frozen=True)
class RemoteRecommendation:
    """The design to use.

    Args:
        design: what to set, by name.
        record: every number of ``Recommendation``, by its name there.
        facts: label, value and explanation, as terminal, page and report show them.
    """

    design: dict[str, Value]
    record: dict[str, Any]
    facts: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class RemoteAnswer:
    """A front, a policy, or what matters.

    Args:
        record: every number, by its name in ``ParetoFront``, ``Policy`` or ``Sensitivity``.
        facts: what it says in sentences.
        heads: of the table, as terminal and page show it.
        rows: of the table, as texts.
    """

    record: dict[str, Any]
    facts: tuple[str, ...]
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Client:
    """A server that runs ``edrbo serve``."""

    def __init__(self, url: str, token: str | None = None, *, timeout: float = 30.0) -> None:
        """
        Args:
            url: its address, such as ``https://lab.example.org``.
            token: of ``edrbo token create``, or the server's own; none where the server needs none.
            timeout: seconds to wait for an answer to one request.
        """
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidValueError(f"{url!r} is not the address of a server", "write http://127.0.0.1:8017")
        self.url = f"{parts.scheme}://{parts.netloc}"
        self._token, self._timeout = token, timeout
        self._opener = build_opener(_NoRedirect())
        self._proof: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    def studies(self) -> dict[str, str]:
        """The studies of this server: what stands for each in addresses, and its name."""
        return {str(one["study"]): str(one["name"]) for one in self._get("/studies")}

    def study(self, name: str) -> RemoteStudy:
        """One of them.

        Args:
            name: its name, or what stands for it in addresses.
        """
        known = self.studies()
        word = name if name in known else next((word for word, one in known.items() if one == name), None)
        if word is None:
            there = ", ".join(map(repr, known.values())) or "none"
            raise UnknownStudyError(f"there is no study {name!r} on {self.url}", f"studies there: {there}")
        return RemoteStudy(self, word)

    def new(self, name: str, design: Sequence[Mapping[str, Any]], **settings: Any) -> RemoteStudy:
        """Make a study; the fields are those of ``POST /api/v1/new``.

        Args:
            name: of the study.
            design: a dict for each variable: name, kind, low, high, …
            settings: context, direction, goal and the others that the address takes.
        """
        word = self._post("/new", {"name": name, "design": [dict(one) for one in design], **settings})["study"]
        return RemoteStudy(self, str(word))

    def healthy(self) -> bool:
        """Whether the server answers and can read its studies."""
        try:
            answer, _ = self._open("GET", "/healthz", None, {})
            return bool(answer["status"] == "ok")
        except EdrboError:
            return False

    # ---------------------------------------------------------------- requests

    def _get(self, path: str, **query: Value | Sequence[str]) -> Any:
        return self._send("GET", f"/api/v1{path}{f'?{urlencode(query, doseq=True)}' if query else ''}", None)

    def _post(self, path: str, body: Mapping[str, Any]) -> Any:
        return self._send("POST", f"/api/v1{path}", json.dumps(body).encode())

    def _send(self, method: str, path: str, body: bytes | None) -> Any:
        """Tried again when the network fails or the server cannot now; a key makes that safe."""
        pause = PAUSE
        for left in reversed(range(TRIES)):
            try:
                return self._once(method, path, body)
            except UnavailableError:
                if not left:
                    raise
            time.sleep(pause)
            pause *= 2
        raise AssertionError

    def _once(self, method: str, path: str, body: bytes | None) -> Any:
        answer, _ = self._open(method, path, body, self._credentials())
        return answer

    def _open(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[Any, str]:
        """What the server answers, and its cookie."""
        given = {"Accept": "application/json", **headers}
        if body is not None:
            given["Content-Type"] = "application/json"
        try:
            request = Request(f"{self.url}{path}", body, given, method=method)
            with self._opener.open(request, timeout=self._timeout) as response:
                content, found = response.read(), response.headers
        except HTTPError as problem:
            raise _error(problem) from None
        except (URLError, OSError, HTTPException) as problem:
            reason = getattr(problem, "reason", None) or problem
            raise UnavailableError(f"{self.url} does not answer: {reason}", "is the server running?") from None
        answer = json.loads(content) if found.get_content_type().endswith("json") else content.decode()
        return answer, found.get("Set-Cookie", "").partition(";")[0]

    def _credentials(self) -> dict[str, str]:
        """The bearer token; where none is needed, what a page of the server would send."""
        if self._token is not None:
            return {"Authorization": f"Bearer {self._token}"}
        if not self._proof:
            answer, cookie = self._open("GET", "/api/v1/session", None, {})
            self._proof = {"X-Edrbo": str(answer["x-edrbo"]), "Cookie": cookie}
        return self._proof


class RemoteStudy:
    """A study of a server, with the methods of ``Study``."""

    def __init__(self, client: Client, word: str) -> None:
        """
        Args:
            client: the server.
            word: what stands for the study in addresses.
        """
        self.client, self.word = client, word

    def __repr__(self) -> str:
        return f"RemoteStudy({self.client.url!r}, {self.word!r})"

    def ask(
        self,
        count: int = 1,
        *,
        context: Values | None = None,
        by: str | None = None,
        patience: float = 600.0,
    ) -> RemoteSuggestion | list[RemoteSuggestion]:
        """A design to try, or a list of ``count`` of them; they are pending from then on.

        Args:
            count: how many.
            context: what is known of the context they will meet.
            by: who asks; a token of a person says it by itself.
            patience: seconds to wait until they are worked out.
        """
        body = {"key": _key(), "count": count, "context": _plain(context), "by": by}
        job = self._follow(self._write("ask", body), patience)
        found = [RemoteSuggestion(one["id"], one["design"], one["cost"]) for one in job["result"]]
        return found[0] if count == 1 else found

    def tell(
        self,
        suggestion: RemoteSuggestion | int | Values,
        context: Values | None = None,
        value: float | Mapping[str, float] | None = None,
        *,
        failed: bool = False,
        design: Values | None = None,
        control: float | None = None,
        noise_variance: float | Mapping[str, float] | None = None,
        cost: float | None = None,
        why: str | None = None,
        note: str | None = None,
        by: str | None = None,
    ) -> Receipt:
        """Report an outcome.

        Args:
            suggestion: of ``ask``, the number of its run, or a design of one's own.
            context: what was met, by name; None if it is not known yet.
            value: the outcome, or several by name.
            failed: that there was none.
            design: what was really set, if it was not what was suggested.
            control: what a reference run gave in the same context; the value counts relative to it.
            noise_variance: known variance of the measurement.
            cost: what the run cost.
            why: the reason of a failure.
            note: words to keep with it.
            by: who reports; a token of a person says it by itself.
        """
        body: dict[str, Any] = {"context": _plain(context), "failed": failed, "why": why, "note": note, "by": by}
        if isinstance(suggestion, Mapping):
            body["design"] = _plain(suggestion)
        else:
            body["id"] = _number(suggestion)
            body["design"] = _plain(design)
        body["outcomes" if isinstance(value, Mapping) else "value"] = _plain_value(value)
        body |= {"noise_variance": _plain_value(noise_variance), "cost": cost, "control": control}
        return self._enter("tell", body)

    def cancel(self, suggestion: RemoteSuggestion | int, why: str | None = None, *, by: str | None = None) -> Receipt:
        """A suggestion that will not be run.

        Args:
            suggestion: it, or its number.
            why: the reason.
            by: who says so.
        """
        return self._enter("cancel", {"id": _number(suggestion), "why": why, "by": by})

    def tell_context(self, run: RemoteSuggestion | int, context: Values, *, by: str | None = None) -> Receipt:
        """The context of an outcome that was reported without one.

        Args:
            run: its number.
            context: what was met, by name.
            by: who says so.
        """
        return self._enter("context-tell", {"id": _number(run), "context": _plain(context), "by": by})

    def observe_context(self, rows: Sequence[Values], *, by: str | None = None) -> Receipt:
        """Contexts that were seen without an outcome.

        Args:
            rows: one or more, by name.
            by: who saw them.
        """
        return self._enter("context-add", {"rows": [_plain(row) for row in rows], "by": by})

    def correct(
        self,
        run: RemoteSuggestion | int,
        *,
        value: float | Mapping[str, float] | None = None,
        context: Values | None = None,
        design: Values | None = None,
        control: float | None = None,
        noise_variance: float | None = None,
        cost: float | None = None,
        why: str | None = None,
        by: str | None = None,
    ) -> Receipt:
        """What was reported of a run was wrong; the history keeps both.

        Args:
            run: its number.
            value: the right outcome, or several by name.
            context: the right context.
            design: what was really set.
            control: what the reference run really gave.
            noise_variance: the right variance.
            cost: the right cost.
            why: the reason.
            by: who corrects.
        """
        body: dict[str, Any] = {"id": _number(run), "context": _plain(context), "design": _plain(design)}
        body["outcomes" if isinstance(value, Mapping) else "value"] = _plain_value(value)
        body |= {"control": control, "noise_variance": noise_variance, "cost": cost}
        return self._enter("correct", {**body, "why": why, "by": by})

    def drop(self, run: RemoteSuggestion | int, why: str | None = None, *, by: str | None = None) -> Receipt:
        """Leave a run out: it stays on record, and nothing is learned from it.

        Args:
            run: its number.
            why: the reason.
            by: who says so.
        """
        return self._enter("drop", {"id": _number(run), "why": why, "by": by})

    def restore(self, run: RemoteSuggestion | int, *, by: str | None = None) -> Receipt:
        """Learn again from a run that was left out.

        Args:
            run: its number.
            by: who says so.
        """
        return self._enter("restore", {"id": _number(run), "by": by})

    def note(self, run: RemoteSuggestion | int, words: str, *, by: str | None = None) -> Receipt:
        """Words about a run.

        Args:
            run: its number.
            words: what there is to say.
            by: who says it.
        """
        return self._enter("note", {"id": _number(run), "note": words, "by": by})

    def undo(self, ref: str | None = None, *, by: str | None = None) -> Receipt:
        """Take back the last entry, or another one.

        Args:
            ref: of a ``Receipt``.
            by: who says so.
        """
        return self._enter("undo", {"ref": ref, "by": by})

    def amend(self, *, by: str | None = None, note: str | None = None, **settings: Any) -> Receipt:
        """Change settings; what was before stays on record.

        Args:
            by: who changes them.
            note: words to keep with the record.
            settings: those of ``POST /api/v1/studies/NAME/amend``: design, context, goal, settings, …
        """
        return self._enter("amend", {"by": by, "note": note, **settings})

    def recommend(
        self, *, context: Values | None = None, goal: str | None = None, patience: float = 180.0
    ) -> RemoteRecommendation:
        """The design to use.

        Args:
            context: for this context alone; all context variables by name.
            goal: another goal than the study's own, as "cvar:0.1".
            patience: seconds to wait until it is worked out.
        """
        found = self._answer("recommend", patience, **_context_query(context), **_given(goal=goal))
        if "front" in found:
            raise InvalidValueError("this study has several main outcomes", "ask for its front()")
        facts = tuple((str(label), str(value), str(about)) for label, value, about in found["facts"])
        return RemoteRecommendation(found["design"], found["record"], facts)

    def front(self, *, context: Values | None = None, patience: float = 180.0) -> RemoteAnswer:
        """Designs of which none is better than another in all main outcomes.

        Args:
            context: for this context alone; all context variables by name.
            patience: seconds to wait until it is worked out.
        """
        found = self._answer("recommend", patience, **_context_query(context))
        if "front" not in found:
            raise InvalidValueError("this study has one main outcome", "ask for its recommend()")
        front = found["front"]
        return _remote_answer({**front, "record": found["record"], "facts": [front["volume"], *found["doubts"]]})

    def predict(
        self,
        design: Values,
        *,
        context: Values | None = None,
        goal: str | None = None,
        outcome: str | None = None,
        patience: float = 180.0,
    ) -> dict[str, float | None]:
        """What is believed of a design: the numbers of ``Prediction`` by name; None for what is not finite.

        Args:
            design: its values by name.
            context: for this context alone; all context variables by name.
            goal: another goal than the study's own, as "cvar:0.1".
            outcome: one of several, the main one by default.
            patience: seconds to wait until it is worked out.
        """
        query = {f"design.{name}": value for name, value in (_plain(design) or {}).items()}
        more = {**_context_query(context), **_given(goal=goal, outcome=outcome)}
        return dict(self._answer("predict", patience, **query, **more)["record"])

    def policy(self, *, known: str | Sequence[str] | None = None, patience: float = 180.0) -> RemoteAnswer:
        """The best design for each context, and what it is worth to know the context before choosing.

        Args:
            known: the context variables that are known before the design is chosen; by default all.
            patience: seconds to wait until it is worked out.
        """
        names = [known] if isinstance(known, str) else list(known or [])
        return _remote_answer(self._answer("policy", patience, known=names))

    def sensitivity(self, *, outcome: str | None = None, patience: float = 180.0) -> RemoteAnswer:
        """What matters: how much each variable does, and what the variance of an outcome comes from.

        Args:
            outcome: one of several, the main one by default.
            patience: seconds to wait until it is worked out.
        """
        return _remote_answer(self._answer("sensitivity", patience, **_given(outcome=outcome)))

    def tradeoff(self, goal: str | None = None, *, patience: float = 180.0) -> dict[str, Any]:
        """Designs between the best on average and the best under a goal: the parts of ``Tradeoff`` by name.

        Args:
            goal: the goal, by default the study's own, or the mean of the worst 10 % of contexts.
            patience: seconds to wait until it is worked out.
        """
        return dict(self._answer("tradeoff", patience, **_given(goal=goal))["record"])

    @property
    def pending(self) -> list[RemoteSuggestion]:
        """Suggestions that wait for their results."""
        found = reversed(self.runs("pending"))
        return [RemoteSuggestion(run["id"], run["design"], run.get("cost")) for run in found]

    def show(self) -> dict[str, Any]:
        """Settings, pending suggestions, and how much is known."""
        return dict(self._read("show"))

    def runs(self, status: str = "") -> list[dict[str, Any]]:
        """Every run, newest first.

        Args:
            status: only those that are reported, pending, failed, cancelled, dropped or late.
        """
        return list(self._read("runs", **({"status": status} if status else {})))

    def export(self) -> str:
        """Everything as CSV, which ``edrbo import`` gives back exactly."""
        return str(self._read("export"))

    # ---------------------------------------------------------------- requests

    def _answer(self, operation: str, patience: float, **query: Value | Sequence[str]) -> Any:
        """What is worked out, once it is."""
        until = time.monotonic() + patience
        while (answer := self._read(operation, **query))["status"] in ("waiting", "running"):
            self._wait(until)
        return _done(answer)

    def _read(self, operation: str, **query: Value | Sequence[str]) -> Any:
        return self.client._get(f"/studies/{quote(self.word)}/{operation}", **query)

    def _write(self, operation: str, body: Mapping[str, Any]) -> Any:
        sent = {name: part for name, part in body.items() if part is not None}
        return self.client._post(f"/studies/{quote(self.word)}/{operation}", sent)

    def _enter(self, operation: str, body: Mapping[str, Any]) -> Receipt:
        found = self._write(operation, {"key": _key(), **body})
        return Receipt(found["ref"], found["words"], tuple(found["warnings"]), found["observations"])

    def _follow(self, job: Any, patience: float) -> Any:
        until = time.monotonic() + patience
        while job["status"] in ("waiting", "running"):
            self._wait(until)
            job = self._read("job", job=job["job"])
        _done(job)
        return job

    def _wait(self, until: float) -> None:
        if time.monotonic() > until:
            raise StoppedError("the server has not worked it out in time", "raise patience, and ask again")
        time.sleep(LOOK)


class _NoRedirect(HTTPRedirectHandler):
    """A token goes to the server that was named, and to no other."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


def _key() -> str:
    return uuid.uuid4().hex


def _number(run: RemoteSuggestion | int) -> int:
    return run.id if isinstance(run, RemoteSuggestion) else run


def _plain(values: Values | None) -> dict[str, Value] | None:
    """In JSON types: NumPy's numbers become Python's."""
    return None if values is None else {str(name): _plain_value(value) for name, value in values.items()}


def _plain_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return _plain(value)
    return value.item() if hasattr(value, "item") else value


def _given(**parts: str | None) -> dict[str, Value]:
    return {name: part for name, part in parts.items() if part is not None}


def _context_query(context: Values | None) -> dict[str, Value]:
    return {f"context.{name}": value for name, value in (_plain(context) or {}).items()}


def _remote_answer(found: Mapping[str, Any]) -> RemoteAnswer:
    rows = tuple(tuple(map(str, row)) for row in found["rows"])
    return RemoteAnswer(found["record"], tuple(map(str, found["facts"])), tuple(map(str, found["heads"])), rows)


def _done(job: Mapping[str, Any]) -> Any:
    """The result of a job that has ended."""
    if job["status"] == "failed":
        raise _of_problem(job["problem"])
    return job["result"]


def _error(problem: HTTPError) -> EdrboError:
    """Ours, of the class it has in Python; ``UnavailableError`` for what may go well the next time."""
    try:
        found = _of_problem(json.loads(problem.read()))
    except (ValueError, KeyError, TypeError, OSError):
        found = StudyError(f"the server answered {problem.code}")
    if problem.code in (429, 502, 503, 504):
        return UnavailableError(found.message, found.hint)
    return found


def _of_problem(body: Mapping[str, Any]) -> EdrboError:
    classes = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, EdrboError)]
    kind = next((kind for kind in classes if kind("").code == body["code"]), StudyError)
    return kind(str(body["title"]), str(body["detail"]) or None)
