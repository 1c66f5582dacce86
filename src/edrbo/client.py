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
from typing import Any, overload
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

    def new(
        self,
        name: str,
        design: Sequence[Mapping[str, Any]],
        *,
        context: Sequence[Mapping[str, Any]] = (),
        constraints: Sequence[str] = (),
        direction: str = "maximize",
        goal: str = "",
        aim: str = "operate",
        outcome: str = "",
        unit: str = "",
        context_distribution: str = "",
        cost: str = "",
        outcomes: Sequence[str] = (),
        settings: Mapping[str, Any] | None = None,
    ) -> RemoteStudy:
        """Make a study; the fields are those of ``POST /api/v1/new``.

        Args:
            name: of the study.
            design: a dict for each variable: name, kind, low, high, …
            context: the same for each context variable.
            constraints: what designs satisfy, as "x1 + x2 <= 1".
            direction: "maximize" or "minimize".
            goal: what best means, as "cvar:0.1".
            aim: "operate" if every run counts, "identify" if only the design in the end does.
            outcome: what is measured, as "gloss".
            unit: the unit of what is measured.
            context_distribution: the distribution of contexts, if you know it, as "humidity = norm(55, 12)".
            cost: what a run costs, as "1 + 9 * x".
            outcomes: of several, what each is for: "gloss=maximize", "roughness <= 2 um".
            settings: the other settings by name: method, seed, initial, …
        """
        body = {field: value for field, value in locals().items() if field != "self"}
        body |= {"design": [dict(one) for one in design], "context": [dict(one) for one in context]}
        body |= {"constraints": list(constraints), "outcomes": list(outcomes), "settings": dict(settings or {})}
        return RemoteStudy(self, str(self._post("/new", body)["study"]))

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

    @overload
    def ask(
        self,
        n: None = None,
        *,
        forecast: Sequence[Values] | None = None,
        context: Values | None = None,
        fixed: Values | None = None,
        candidates: Sequence[Values] | None = None,
        repeat: bool | None = None,
        by: str | None = None,
        patience: float = 600.0,
    ) -> RemoteSuggestion: ...
    @overload
    def ask(
        self,
        n: int,
        *,
        forecast: Sequence[Values] | None = None,
        context: Values | None = None,
        fixed: Values | None = None,
        candidates: Sequence[Values] | None = None,
        repeat: bool | None = None,
        by: str | None = None,
        patience: float = 600.0,
    ) -> list[RemoteSuggestion]: ...
    def ask(
        self,
        n: int | None = None,
        *,
        forecast: Sequence[Values] | None = None,
        context: Values | None = None,
        fixed: Values | None = None,
        candidates: Sequence[Values] | None = None,
        repeat: bool | None = None,
        by: str | None = None,
        patience: float = 600.0,
    ) -> RemoteSuggestion | list[RemoteSuggestion]:
        """The next design, or a list of ``n``; pending until somebody tells it.

        Args:
            n: how many; None: one, which is not in a list.
            forecast: contexts to expect, in place of the distribution that is estimated.
            context: the context that will be met, or some of it.
            fixed: variables that are held, values by name.
            candidates: the only designs to choose from.
            repeat: whether a candidate may be suggested that was reported already; by default as it makes sense.
            by: who asks; a token of a person says it by itself.
            patience: seconds to wait until they are worked out.
        """
        body: dict[str, Any] = {
            "count": 1 if n is None else n,
            "context": _plain(context),
            "fixed": _plain(fixed),
            "by": by,
        }
        body |= {"forecast": _plain_rows(forecast), "candidates": _plain_rows(candidates), "repeat": repeat}
        found = self._suggestions("ask", body, patience)
        return found[0] if n is None else found

    def claim(self, *, stale_after: float = 60.0, patience: float = 60.0) -> RemoteSuggestion | None:
        """A suggestion that waits for its outcome and that nobody seems to evaluate, to be evaluated here; None if
        there is none. Nobody else gets it for the next ``stale_after`` seconds.

        Args:
            stale_after: seconds since it was handed out, or since its worker gave a sign of life.
            patience: seconds to wait for the server.
        """
        found = self._suggestions("claim", {"stale_after": stale_after}, patience)
        return found[0] if found else None

    def tell(
        self,
        suggestion: RemoteSuggestion | int | Values,
        context: Values | None = None,
        value: float | Mapping[str, float] | None = None,
        *,
        contexts: Sequence[Values] | None = None,
        values: Sequence[float | Mapping[str, float]] | None = None,
        control: float | None = None,
        noise_variance: float | Mapping[str, float] | None = None,
        cost: float | None = None,
        failed: bool = False,
        design: Values | None = None,
        why: str | None = None,
        note: str | None = None,
        by: str | None = None,
        at: float | None = None,
        key: str | None = None,
    ) -> Receipt:
        """Report an outcome.

        Args:
            suggestion: of ``ask``, the number of its run, or a design of one's own.
            context: what was met, by name; None if it is not known yet.
            value: the outcome, or several by name.
            contexts: of several rows of one run, in place of ``context``.
            values: of several rows of one run, in place of ``value``.
            control: what a reference run gave in the same context; the value counts relative to it.
            noise_variance: known variance of the measurement.
            cost: what the run cost.
            failed: that there was none.
            design: what was really set, if it was not what was suggested.
            why: the reason of a failure.
            note: words to keep with the record.
            by: who reports; a token of a person says it by itself.
            at: when, in seconds since 1970; by default now.
            key: the sender's own name for the record, 8 to 80 letters and digits: sent twice, it is stored once.
        """
        body: dict[str, Any] = {"context": _plain(context), "failed": failed, "why": why}
        if isinstance(suggestion, Mapping):
            body["design"] = _plain(suggestion)
        else:
            body |= {"id": _number(suggestion), "design": _plain(design)}
        body |= _result(value)
        body |= {"noise_variance": _plain_value(noise_variance), "cost": cost, "control": control}
        if values is not None:
            met = [None] * len(values) if contexts is None else contexts
            if len(met) != len(values):
                hint = "give a value for each context"
                raise InvalidValueError(f"there are {len(met)} contexts and {len(values)} values", hint)
            rows = [{"context": _plain(c), **_result(v)} for c, v in zip(met, values, strict=True)]
            body["rows"] = [{name: part for name, part in row.items() if part is not None} for row in rows]
        return self._enter("tell", body, note, by, at, key)

    def cancel(
        self,
        suggestion: RemoteSuggestion | int,
        why: str | None = None,
        *,
        note: str | None = None,
        by: str | None = None,
        at: float | None = None,
        key: str | None = None,
    ) -> Receipt:
        """A suggestion that will not be run.

        Args:
            suggestion: it, or its number.
            why: the reason.
            note: words to keep with the record.
            by: who says so.
            at: when, in seconds since 1970; by default now.
            key: the sender's own name for the record, 8 to 80 letters and digits: sent twice, it is stored once.
        """
        return self._enter("cancel", {"id": _number(suggestion), "why": why}, note, by, at, key)

    def tell_context(
        self,
        suggestion: RemoteSuggestion | int,
        context: Values,
        *,
        note: str | None = None,
        by: str | None = None,
        at: float | None = None,
        key: str | None = None,
    ) -> Receipt:
        """The context of an outcome that was reported without one.

        Args:
            suggestion: it, or the number of its run.
            context: what was met, by name.
            note: words to keep with the record.
            by: who says so.
            at: when, in seconds since 1970; by default now.
            key: the sender's own name for the record, 8 to 80 letters and digits: sent twice, it is stored once.
        """
        body = {"id": _number(suggestion), "context": _plain(context)}
        return self._enter("context-tell", body, note, by, at, key)

    def observe_context(
        self,
        samples: Values | Sequence[Values],
        weights: Sequence[float] | None = None,
        *,
        note: str | None = None,
        by: str | None = None,
        at: float | None = None,
        key: str | None = None,
    ) -> Receipt:
        """Contexts that were seen without an outcome.

        Args:
            samples: one or more, by name.
            weights: what each of them counts, by default one.
            note: words to keep with the record.
            by: who saw them.
            at: when, in seconds since 1970; by default now.
            key: the sender's own name for the record, 8 to 80 letters and digits: sent twice, it is stored once.
        """
        rows = [samples] if isinstance(samples, Mapping) else samples
        body = {"rows": _plain_rows(rows), "weights": None if weights is None else [float(part) for part in weights]}
        return self._enter("context-add", body, note, by, at, key)

    def correct(
        self,
        run: RemoteSuggestion | int,
        *,
        value: float | Mapping[str, float] | None = None,
        context: Values | None = None,
        control: float | None = None,
        noise_variance: float | Mapping[str, float] | None = None,
        cost: float | None = None,
        design: Values | None = None,
        row: int | None = None,
        why: str | None = None,
        note: str | None = None,
        by: str | None = None,
        at: float | None = None,
        key: str | None = None,
    ) -> Receipt:
        """What was reported of a run was wrong; the history keeps both.

        Args:
            run: its number.
            value: the right outcome, or several by name.
            context: the right context.
            control: what the reference run really gave.
            noise_variance: the right variance.
            cost: the right cost.
            design: what was really set.
            row: of a run of several rows, the one that was wrong.
            why: the reason.
            note: words to keep with the record.
            by: who corrects.
            at: when, in seconds since 1970; by default now.
            key: the sender's own name for the record, 8 to 80 letters and digits: sent twice, it is stored once.
        """
        body: dict[str, Any] = {"id": _number(run), "context": _plain(context), "design": _plain(design)}
        body |= {**_result(value), "row": row, "cost": cost, "why": why}
        body |= {"control": control, "noise_variance": _plain_value(noise_variance)}
        return self._enter("correct", body, note, by, at, key)

    def drop(
        self,
        run: RemoteSuggestion | int,
        why: str | None = None,
        *,
        note: str | None = None,
        by: str | None = None,
        at: float | None = None,
        key: str | None = None,
    ) -> Receipt:
        """Leave a run out: it stays on record, and nothing is learned from it.

        Args:
            run: its number.
            why: the reason.
            note: words to keep with the record.
            by: who says so.
            at: when, in seconds since 1970; by default now.
            key: the sender's own name for the record, 8 to 80 letters and digits: sent twice, it is stored once.
        """
        return self._enter("drop", {"id": _number(run), "why": why}, note, by, at, key)

    def restore(
        self,
        run: RemoteSuggestion | int,
        *,
        note: str | None = None,
        by: str | None = None,
        at: float | None = None,
        key: str | None = None,
    ) -> Receipt:
        """Learn again from a run that was left out.

        Args:
            run: its number.
            note: words to keep with the record.
            by: who says so.
            at: when, in seconds since 1970; by default now.
            key: the sender's own name for the record, 8 to 80 letters and digits: sent twice, it is stored once.
        """
        return self._enter("restore", {"id": _number(run)}, note, by, at, key)

    def note(
        self,
        run: RemoteSuggestion | int,
        text: str,
        *,
        by: str | None = None,
        at: float | None = None,
        key: str | None = None,
    ) -> Receipt:
        """Words about a run.

        Args:
            run: its number.
            text: what there is to say.
            by: who says it.
            at: when, in seconds since 1970; by default now.
            key: the sender's own name for the record, 8 to 80 letters and digits: sent twice, it is stored once.
        """
        return self._enter("note", {"id": _number(run)}, text, by, at, key)

    def undo(
        self,
        ref: str | None = None,
        *,
        note: str | None = None,
        by: str | None = None,
        at: float | None = None,
        key: str | None = None,
    ) -> Receipt:
        """Take back the last entry, or another one.

        Args:
            ref: of a ``Receipt``.
            note: words to keep with the record.
            by: who says so.
            at: when, in seconds since 1970; by default now.
            key: the sender's own name for the record, 8 to 80 letters and digits: sent twice, it is stored once.
        """
        return self._enter("undo", {"ref": ref}, note, by, at, key)

    def amend(
        self,
        settings: Mapping[str, Any],
        *,
        note: str | None = None,
        by: str | None = None,
        at: float | None = None,
        key: str | None = None,
    ) -> Receipt:
        """Change settings; what was before stays on record.

        Args:
            settings: those of ``POST /api/v1/studies/NAME/amend`` by name: design, context, goal, settings, …
            note: words to keep with the record.
            by: who changes them.
            at: when, in seconds since 1970; by default now.
            key: the sender's own name for the record, 8 to 80 letters and digits: sent twice, it is stored once.
        """
        return self._enter("amend", settings, note, by, at, key)

    def recommend(
        self,
        *,
        goal: str | None = None,
        context: Values | None = None,
        fixed: Values | None = None,
        patience: float = 180.0,
    ) -> RemoteRecommendation:
        """The design to use.

        Args:
            goal: another goal than the study's own, as "cvar:0.1".
            context: for this context alone; all context variables by name.
            fixed: variables that are held, values by name.
            patience: seconds to wait until it is worked out.
        """
        query = {**_named("context", context), **_named("fixed", fixed), **_given(goal=goal)}
        found = self._answer("recommend", patience, **query)
        if "front" in found:
            raise InvalidValueError("this study has several main outcomes", "ask for its front()")
        facts = tuple((str(label), str(value), str(about)) for label, value, about in found["facts"])
        return RemoteRecommendation(found["design"], found["record"], facts)

    def front(
        self, *, context: Values | None = None, fixed: Values | None = None, patience: float = 180.0
    ) -> RemoteAnswer:
        """Designs of which none is better than another in all main outcomes.

        Args:
            context: for this context alone; all context variables by name.
            fixed: variables that are held, values by name.
            patience: seconds to wait until it is worked out.
        """
        found = self._answer("recommend", patience, **_named("context", context), **_named("fixed", fixed))
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
        query = {**_named("design", design), **_named("context", context), **_given(goal=goal, outcome=outcome)}
        return dict(self._answer("predict", patience, **query)["record"])

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

    def implausible(self) -> list[tuple[int, tuple[str, ...]]]:
        """Runs reported that look wrong beside the others or beside what was expected of them: number and reasons."""
        return [(int(one["run"]), tuple(map(str, one["reasons"]))) for one in self._read("implausible")]

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

    def _suggestions(self, operation: str, body: Mapping[str, Any], patience: float) -> list[RemoteSuggestion]:
        job = self._follow(self._write(operation, {"key": _key(), **body}), patience)
        return [RemoteSuggestion(one["id"], one["design"], one["cost"]) for one in job["result"]]

    def _enter(
        self,
        operation: str,
        body: Mapping[str, Any],
        note: str | None,
        by: str | None,
        at: float | None,
        key: str | None,
    ) -> Receipt:
        waited = None if at is None else max(0.0, time.time() - at)
        stamp = {"key": key or _key(), "note": note, "by": by, "waited": waited}
        found = self._write(operation, {**body, **stamp})
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


def _plain_rows(rows: Sequence[Values] | None) -> list[dict[str, Value] | None] | None:
    return None if rows is None else [_plain(row) for row in rows]


def _result(value: Any) -> dict[str, Any]:
    """One outcome, or several by name."""
    return {"outcomes" if isinstance(value, Mapping) else "value": _plain_value(value)}


def _plain_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return _plain(value)
    return value.item() if hasattr(value, "item") else value


def _given(**parts: str | None) -> dict[str, Value]:
    return {name: part for name, part in parts.items() if part is not None}


def _named(role: str, values: Values | None) -> dict[str, Value]:
    """As a query has them: ``context.humidity=40``."""
    return {f"{role}.{name}": value for name, value in (_plain(values) or {}).items()}


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
