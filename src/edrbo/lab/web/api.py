"""The operations of the command line as JSON. The pages use these and nothing else to write."""

from __future__ import annotations

import io
import re
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, HTTPException, Query, Request, Response

from edrbo.errors import InvalidContextError, InvalidValueError, StudyError
from edrbo.lab.entry import read_amount, read_context, read_control, read_design, read_variances
from edrbo.lab.study import Study
from edrbo.lab.tables.csv_export import export_csv, export_plain
from edrbo.lab.tables.csv_import import last_import, undo_import
from edrbo.lab.web import bodies, views
from edrbo.lab.web.jobs import Job
from edrbo.lab.web.operations import job_view, record, result_of, tell_entry
from edrbo.lab.web.problem import KIND
from edrbo.lab.web.session import StudySession, StudySessions
from edrbo.lab.web.table import preview, take
from edrbo.lab.web.variables import read_amendment, read_new
from edrbo.records.descriptions import plural
from edrbo.records.sanity import entry_doubts, implausible
from edrbo.space import Space

PATIENCE = 1.0  # seconds in which a table is mostly stored
UNNAMED = "unnamed"  # who entered something and did not say who it is
PREFIX = "/api/v1"  # another number when what is written or read means something else
PROBLEM: dict[str, Any] = {"model": bodies.ProblemDetails, "content": {KIND: {}}}
E = TypeVar("E", bound=bodies.Entry)


def api_router(sessions: StudySessions) -> APIRouter:
    api = APIRouter(prefix=PREFIX, responses=dict.fromkeys((401, 403, 404, 422, 429), PROBLEM))
    _reading(api, sessions)
    _reporting(api, sessions)
    _second_thoughts(api, sessions)
    _settings(api, sessions)
    return api


def signed(body: E, request: Request) -> E:
    """An entry that says who enters it: whose token it is, or else who says so. The server's login is nobody's name."""
    return body.model_copy(update={"by": request.scope["edrbo"]["by"] or body.by or UNNAMED})


def _reading(api: APIRouter, sessions: StudySessions) -> None:
    @api.get("/session")
    def session(request: Request) -> dict[str, str]:
        """The value to send as `X-Edrbo` with whatever is written; scripts with a bearer token do not need it."""
        return {"x-edrbo": request.scope["edrbo"]["cross_site"]}

    @api.get("/studies")
    def studies() -> list[dict[str, str]]:
        """The studies of this server."""
        return [{"study": word, "name": name} for word, name in sessions.names().items()]

    @api.get("/studies/{study}/show")
    def show(study: str) -> dict[str, Any]:
        """Settings, pending suggestions, and how much is known."""
        return views.overview(sessions.get(study))

    @api.get("/studies/{study}/runs")
    def runs(study: str, status: str = "") -> list[dict[str, Any]]:
        """Every run, newest first."""
        return views.runs_of(sessions.get(study).state, status)

    @api.get("/studies/{study}/implausible")
    def implausible_runs(study: str) -> list[dict[str, Any]]:
        """Runs that may have been reported wrong, and why."""
        return [{"run": one.run, "reasons": list(one.reasons)} for one in implausible(sessions.get(study).state)]

    @api.get("/studies/{study}/export")
    def export(study: str, plain: bool = False) -> Response:
        """Everything as CSV; importing it gives it back exactly. `?plain=true`: the runs as a table for people."""
        text = io.StringIO()
        session = sessions.get(study)
        (export_plain if plain else export_csv)(session.state, text)
        disposition = f'attachment; filename="{session.word}.csv"'
        return Response(text.getvalue(), media_type="text/csv", headers={"content-disposition": disposition})

    @api.get("/studies/{study}/recommend")
    def recommend(study: str, request: Request, response: Response, goal: str | None = None) -> dict[str, Any]:
        """The design to use; of several main outcomes the front. Thinking takes a while: ask again while `status` is
        waiting or running.

        `?context.humidity=0.4` fixes a context variable; name all of them, or none. `?fixed.speed=3` holds a setting.
        `?goal=cvar:0.1` asks under another goal. It needs `X-Edrbo` or a bearer too.
        """
        who, session = _who_may_compute(request), sessions.get(study)
        space, query = session.state.space, request.query_params
        job = session.answer(views.context_of_query(space, query), who, goal, views.fixed_of_query(space, query))
        return _answered(job, session, response)

    @api.get("/studies/{study}/predict")
    def predict(
        study: str, request: Request, response: Response, goal: str | None = None, outcome: str | None = None
    ) -> dict[str, Any]:
        """What is believed of the design `?design.speed=3&design.layers=2`, on average or, with `context.` as in
        `recommend`, for one context. As there, ask again while `status` is waiting or running."""
        who, session = _who_may_compute(request), sessions.get(study)
        space = session.state.space
        design = views.design_of_query(space, request.query_params)
        job = session.predict(design, views.context_of_query(space, request.query_params), goal, outcome, who)
        return _answered(job, session, response)

    @api.get("/studies/{study}/tradeoff")
    def tradeoff(study: str, request: Request, response: Response, goal: str | None = None) -> dict[str, Any]:
        """Designs between the best on average and the best under a goal. As `recommend`, ask again while `status` is
        waiting or running."""
        who, session = _who_may_compute(request), sessions.get(study)
        return _answered(session.tradeoff(goal, who), session, response)

    @api.get("/studies/{study}/policy")
    def policy(
        study: str, request: Request, response: Response, known: Annotated[list[str] | None, Query()] = None
    ) -> dict[str, Any]:
        """The best design for each context, and what it is worth to know the context before choosing. As `recommend`,
        ask again while `status` is waiting or running.

        `?known=humidity` says what is known before; by default every context variable is.
        """
        who, session = _who_may_compute(request), sessions.get(study)
        return _answered(session.policy(known or [], who), session, response)

    @api.get("/studies/{study}/sensitivity")
    def sensitivity(study: str, request: Request, response: Response, outcome: str | None = None) -> dict[str, Any]:
        """Which variables matter, and what the variance of an outcome comes from. As `recommend`, ask again while
        `status` is waiting or running."""
        who, session = _who_may_compute(request), sessions.get(study)
        return _answered(session.sensitivity(outcome, who), session, response)

    @api.get("/studies/{study}/job")
    def job(study: str, job: str) -> dict[str, Any]:
        """How far a suggestion is."""
        session = sessions.get(study)
        found = session.job(job)
        if found is None:
            raise InvalidValueError("there is no such job", "the server was started again; look at what is pending")
        return job_view(found, session)


def _answered(job: Job, session: StudySession, response: Response) -> dict[str, Any]:
    """An answer, or how far it is."""
    response.status_code = 202 if job.open else 200
    return {**job_view(job, session), "result": job.result}


def _who_may_compute(request: Request) -> str:
    """Who asks; 403 for pages of others, which may not make the server compute."""
    asker = request.scope["edrbo"]
    if not asker["may_compute"]:
        raise HTTPException(403, "send X-Edrbo, from /api/v1/session, or a bearer token: this makes the server compute")
    return str(asker["who"])


def _reporting(api: APIRouter, sessions: StudySessions) -> None:
    @api.post("/studies/{study}/ask", status_code=202)
    def ask(study: str, body: bodies.Ask, request: Request) -> dict[str, Any]:
        """Think about what to try next; it is pending as soon as it is known. Follow it with `job`."""
        session = sessions.get(study)
        space = session.state.space
        wanted: dict[str, Any] = {"context": read_context(space, body.context), "repeat": body.repeat}
        if body.forecast:
            wanted["forecast"] = _read_forecast(space, body.forecast)
        if body.fixed:
            wanted["fixed"] = read_design(space, body.fixed)
        if body.candidates:
            wanted["candidates"] = [read_design(space, one) for one in body.candidates]
        job = session.ask(body.key, body.count, wanted, signed(body, request).by, request.scope["edrbo"]["who"])
        return job_view(job, session)

    @api.post("/studies/{study}/claim", status_code=202)
    def claim(study: str, body: bodies.Claim, request: Request) -> dict[str, Any]:
        """A suggestion that waits for its result and that nobody seems to evaluate, to be evaluated by the sender; a
        list of one, or of none. Follow it with `job`."""
        session = sessions.get(study)
        return job_view(session.claim(body.key, body.stale_after, request.scope["edrbo"]["who"]), session)

    @api.post("/studies/{study}/tell")
    def tell(study: str, body: bodies.Tell, request: Request) -> dict[str, Any]:
        """Report an outcome, or that there was none."""

        return tell_entry(sessions.get(study), signed(body, request))

    @api.post("/studies/{study}/check")
    def check(study: str, body: bodies.Check) -> dict[str, list[str]]:
        """What looks mistyped in an entry that is about to be sent; sent all the same, it is stored as it is."""
        state = sessions.get(study).state
        value, context = result_of(state.settings, body), read_context(state.space, body.context)
        asks: dict[str, Any] = {"own": bool(body.design), "control": read_control(state.settings, body.control)}
        return {"doubts": entry_doubts(state, body.id, value, context, **asks)}

    @api.post("/studies/{study}/context-tell")
    def context_tell(study: str, body: bodies.ContextTell, request: Request) -> dict[str, Any]:
        """The context of an outcome that was reported without one."""
        return record(
            sessions.get(study),
            signed(body, request),
            lambda book, stamp: book.tell_context(body.id, read_context(book.space_now, body.context), **stamp),
        )

    @api.post("/studies/{study}/context-add")
    def context_add(study: str, body: bodies.ContextAdd, request: Request) -> dict[str, Any]:
        """Contexts that were seen without an outcome."""
        rows = [read_context(sessions.get(study).state.space, row) for row in body.rows]
        return record(
            sessions.get(study),
            signed(body, request),
            lambda book, stamp: book.observe_context(rows, body.weights, **stamp),
        )

    @api.post("/studies/{study}/import")
    def import_table(study: str, body: bodies.Import, request: Request, response: Response) -> dict[str, Any]:
        """A table: how it is understood, with errors by cell; stored if it is confirmed and has none. One that takes
        longer is a job to be followed."""
        session = sessions.get(study)
        body = signed(body, request)
        if not body.confirm:
            return preview(session.state, body).view()
        job = take(session, body, request.scope["edrbo"]["who"])
        job.ended.wait(PATIENCE)
        if job.status == "failed":
            raise job.problem or StudyError(job.error, job.hint)
        if not job.open:
            return dict(job.result)
        response.status_code = 202
        return job_view(job, session)


def _second_thoughts(api: APIRouter, sessions: StudySessions) -> None:
    @api.post("/studies/{study}/correct")
    def correct(study: str, body: bodies.Correct, request: Request) -> dict[str, Any]:
        """Something of a run was other than was reported; the history keeps what was reported."""

        def write(book: Study, stamp: dict[str, Any]) -> None:
            book.correct(
                body.id,
                value=result_of(book.settings, body),
                noise_variance=read_variances(book.settings, body.noise_variance),
                context=read_context(book.space_now, body.context),
                control=read_control(book.settings, body.control),
                cost=read_amount(body.cost, "the cost"),
                design=read_design(book.space_now, body.design) if body.design else None,
                row=body.row,
                why=body.why or None,
                **stamp,
            )

        return record(sessions.get(study), signed(body, request), write)

    @api.post("/studies/{study}/drop")
    def drop(study: str, body: bodies.OfRun, request: Request) -> dict[str, Any]:
        """Leave a run out: it stays on record, and nothing is learned from it."""
        return record(
            sessions.get(study),
            signed(body, request),
            lambda book, stamp: book.drop(body.id, body.why or None, **stamp),
        )

    @api.post("/studies/{study}/restore")
    def restore(study: str, body: bodies.OfRun, request: Request) -> dict[str, Any]:
        """Learn from a run again."""
        return record(sessions.get(study), signed(body, request), lambda book, stamp: book.restore(body.id, **stamp))

    @api.post("/studies/{study}/cancel")
    def cancel(study: str, body: bodies.OfRun, request: Request) -> dict[str, Any]:
        """A suggestion that will not be run; it says nothing about its design."""
        return record(
            sessions.get(study),
            signed(body, request),
            lambda book, stamp: book.cancel(body.id, body.why or None, **stamp),
        )

    @api.post("/studies/{study}/note")
    def note(study: str, body: bodies.Note, request: Request) -> dict[str, Any]:
        """Words about a run, or about the study."""

        def write(book: Study, stamp: dict[str, Any]) -> None:
            text = stamp.pop("note")
            book.note(body.id, text or "", **stamp)

        return record(sessions.get(study), signed(body, request), write)

    @api.post("/studies/{study}/undo")
    def undo(study: str, body: bodies.Undo, request: Request) -> dict[str, Any]:
        """Take back the last entry, or the one that `ref` names; with `table` all of the table that came last."""
        if body.table:
            count = len(last_import(sessions.get(study).state))
            receipt = record(sessions.get(study), signed(body, request), _undo_table)
            return {**receipt, "words": f"{plural(count, 'row')} of the last table"}
        return record(sessions.get(study), signed(body, request), lambda book, stamp: book.undo(body.ref, **stamp))


def _undo_table(book: Study, stamp: dict[str, Any]) -> None:
    undo_import(book, note=stamp["note"], by=stamp["by"], key=stamp["key"])


def _settings(api: APIRouter, sessions: StudySessions) -> None:
    @api.post("/new")
    def new(body: bodies.New) -> dict[str, str]:
        """Make a study in the place that is served."""
        return {"study": sessions.places.create(body.name, read_new(body)), "name": body.name}

    @api.post("/studies/{study}/amend")
    def amend(study: str, body: bodies.Amend, request: Request) -> dict[str, Any]:
        """Change bounds, levels, variables or the goal; what was before stays on record."""

        def write(book: Study, stamp: dict[str, Any]) -> None:
            settings = read_amendment(body, book.state)
            if not settings:
                raise InvalidValueError("nothing is changed", "change something first")
            book.amend(settings, **stamp)

        return record(sessions.get(study), signed(body, request), write)


def _read_forecast(space: Space, given: str | list[bodies.Values]) -> list[dict[str, Any]] | None:
    """Contexts by name, or a line each: cells with tabs or semicolons between, or spaces where no cell has any."""
    if not isinstance(given, str):
        return [read_context(space, row) or {} for row in given]
    lines = [line for line in given.splitlines() if line.strip()]
    if not lines:
        return None
    rows = [re.split(r"\s*[;\t]\s*" if re.search(r"[;\t]", line) else r"\s+", line.strip()) for line in lines]
    if any(len(row) != space.d_c for row in rows):
        names = ", ".join(space.context_names)
        raise InvalidContextError("a line of the forecast is not understood", f"a line holds {names}, with ; between")
    return [read_context(space, dict(zip(space.context_names, row, strict=True))) or {} for row in rows]
