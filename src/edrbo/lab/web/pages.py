"""The screens. They only read; what people enter goes through the API, sent by static/*.js."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from edrbo import __version__
from edrbo.charts import typeset
from edrbo.errors import EdrboError, InvalidValueError
from edrbo.lab.entry import levels_text
from edrbo.lab.tables.csv_import import last_import
from edrbo.lab.web import views
from edrbo.lab.web.jobs import Job
from edrbo.lab.web.session import StudySession, StudySessions
from edrbo.lab.web.setup import PURPOSES, amendments_of, goal_choices, more_settings, setup_of
from edrbo.lab.web.views import shown, shown_of, when
from edrbo.records.descriptions import context_asked_for, describe_aim, describe_spending, notes_of
from edrbo.records.state import State

PATIENCE = 0.3  # seconds a page waits for what may be known already


class Pages:
    def __init__(self, sessions: StudySessions, assets: str) -> None:
        """``assets`` is a mark of what is in scripts and styles."""
        self.sessions = sessions
        self._templates = Environment(
            loader=FileSystemLoader(Path(str(files("edrbo.lab.web") / "templates"))),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            finalize=_typeset,
        )
        self._templates.filters |= {"shown": shown, "shown_of": shown_of, "when": when}
        self._templates.filters |= {"describe_aim": describe_aim, "types": _types, "levels": levels_text}
        self._templates.filters["status"] = views.status_words
        self._templates.globals |= {"edrbo_version": __version__, "assets": assets}

    def render(self, request: Request, name: str, status: int = 200, **values: Any) -> HTMLResponse:
        values.setdefault("session", None)
        values.setdefault("here", "")
        session: StudySession | None = values["session"]
        values["title"] = values.get("title") or ("" if session is None else session.title)
        values["outcome"] = ("Result", "") if session is None else session.outcome
        values["cross_site"] = request.scope["edrbo"]["cross_site"]
        values["several"] = len(self.sessions.places.names()) > 1 or bool(self.sessions.places.problems())
        return HTMLResponse(self._templates.get_template(name).render(**values), status)

    def sorry(self, request: Request, status: int, message: str, hint: str) -> HTMLResponse:
        return self.render(request, "sorry.html", status, message=message, hint=hint)

    def router(self, app: FastAPI) -> APIRouter:
        router = APIRouter(include_in_schema=False)
        self._front(router, app)
        self._runs(router)
        self._inferences(router)
        self._settings(router)
        return router

    # ---------------------------------------------------------------- now

    def _front(self, router: APIRouter, app: FastAPI) -> None:
        @router.get("/")
        def front(request: Request) -> Response:
            names, problems = self.sessions.names(), self.sessions.places.problems()
            if len(names) == 1 and not problems:
                return RedirectResponse(f"/s/{next(iter(names))}/", 303)
            title = self.sessions.places.title
            listed = [self._listed(word, name) for word, name in names.items()]
            return self.render(request, "studies.html", listed=listed, problems=problems, title=title)

        @router.get("/api/v1/docs")
        def docs(request: Request) -> Response:
            return self.render(request, "docs.html", api=app.openapi())

        @router.get("/s/{study}/")
        def now(request: Request, study: str, seen: str = "", part: str = "") -> Response:
            session = self.sessions.get(study)
            if part:
                session.worker.wait(PATIENCE)
            state = session.state
            if part and seen == session.version(state) and not session.worker.open_jobs("ask", "prepare"):
                return Response(status_code=204)
            name = "now_live.html" if part else "now.html"
            return self.render(request, name, here="now", oob=bool(part), **self._now(session, state))

    def _listed(self, word: str, name: str) -> dict[str, Any]:
        """A study in the list of all: how far it is, or why that cannot be said."""
        try:
            session = self.sessions.get(word)
            state = session.state
        except EdrboError as problem:
            return {"word": word, "name": name, "trouble": problem.message, "facts": []}
        return {"word": word, "name": session.title, "trouble": "", "facts": views.glance(state)}

    def _now(self, session: StudySession, state: State) -> dict[str, Any]:
        asked = {event.id: event for event in state.history if event.kind == "asked"}  # type: ignore[attr-defined]
        notes = {event.id: event.note for event in state.history if event.kind == "noted"}  # type: ignore[attr-defined]
        pending = [
            {
                **views.row_of(state, state.runs[key]),
                "asked": asked.get(key),
                "expected": views.expected_of(state, state.runs[key]),
                "known": context_asked_for(state, key),
                "prepared": (notes.get(key) or "").startswith("prepared while") and notes[key],
            }
            for key in state.pending
        ]
        jobs = session.worker.open_jobs("ask", "prepare")
        return {
            "session": session,
            "state": state,
            "version": session.version(state),
            "pending": pending,
            "jobs": jobs,
            "trouble": session.worker.last_failed("ask"),
            "variables": views.variables_of(state.space),
            "latest": views.latest_of(state),
            "glance": [*views.glance(state), *views.change_of(state)],
            "late": sum(run.late for run in state.runs.values()),
            "last_context": views.last_context(state),
            "spent": describe_spending(state),
            "remarks": notes_of(state),
        }

    # ---------------------------------------------------------------- runs

    def _runs(self, router: APIRouter) -> None:
        @router.get("/s/{study}/enter")
        def own(request: Request, study: str) -> Response:
            session = self.sessions.get(study)
            return self.render(request, "enter.html", here="now", **_entry(session, session.state, None, "done"))

        @router.get("/s/{study}/enter/{number}")
        def enter(request: Request, study: str, number: int, kind: str = "done") -> Response:
            session = self.sessions.get(study)
            state = session.state
            if views.the_run(state, number).status != "pending":
                return RedirectResponse(f"/s/{session.word}/run/{number}", 303)
            kind = kind if kind in ("failed", "skip") else "done"
            return self.render(request, "enter.html", here="now", **_entry(session, state, number, kind))

        @router.get("/s/{study}/runs")
        def runs(
            request: Request,
            study: str,
            status: str = "",
            q: str = "",
            sort: str = "",
            down: bool = False,
            first: Annotated[int, Query(ge=0)] = 0,
            seen: str = "",
            part: str = "",
        ) -> Response:
            session = self.sessions.get(study)
            state = session.state
            if part and seen == session.version(state):
                return Response(status_code=204)
            status = status if status in views.STATUSES else ""
            rows = views.searched(state, views.runs_of(state, status), q[:200])
            found = views.sorted_rows(state, rows, sort, down)
            first = min(first, max(len(found) - 1, 0)) // views.WINDOW * views.WINDOW
            rows = found[first : first + views.WINDOW]
            values: dict[str, Any] = {"rows": rows, "first": first, "found": len(found), "window": views.WINDOW}
            values["statuses"] = views.STATUSES
            values |= {"session": session, "state": state, "version": session.version(state), "chosen": status}
            values |= {"q": q[:200], "sort": sort, "down": down, "columns": views.columns_of(state)}
            values["columns"] = views.aligned(values["columns"], found, state.settings.outcome)
            values |= {"marks": views.marks_of(state, rows), "cell": views.cell}
            name = "runs_live.html" if part else "runs.html"
            return self.render(request, name, here="runs", variables=views.variables_of(state.space), **values)

        @router.get("/s/{study}/compare")
        def compare(request: Request, study: str, run: Annotated[list[int], Query()] = []) -> Response:  # noqa: B006
            session = self.sessions.get(study)
            if len(set(run)) != 2:
                raise InvalidValueError("two runs are compared", "choose two of the list")
            lines = views.compared(session.state, run)
            return self.render(request, "compare.html", here="runs", session=session, keys=run, lines=lines)

        @router.get("/s/{study}/run/{number}")
        def run(request: Request, study: str, number: int) -> Response:
            session = self.sessions.get(study)
            state = session.state
            row = views.row_of(state, views.the_run(state, number))
            values: dict[str, Any] = {"row": row, "history": views.history_of(state, number)}
            values |= {"variables": views.variables_of(state.space), "session": session, "state": state}
            return self.render(request, "run.html", here="runs", **values)

    # ---------------------------------------------------------------- what must be thought about

    def _inferences(self, router: APIRouter) -> None:
        @router.get("/s/{study}/answer")
        def answer(request: Request, study: str, part: str = "", seen: str = "") -> Response:
            session = self.sessions.get(study)
            context = views.context_of_query(session.state.space, request.query_params)
            return self._inferred(
                request, "answer", session, lambda who: session.answer(context, who), part, seen, context=context
            )

        @router.get("/s/{study}/charts")
        def charts(request: Request, study: str, part: str = "", seen: str = "") -> Response:
            session = self.sessions.get(study)
            chosen = _pair(session.state, request.query_params)
            return self._inferred(request, "charts", session, session.charts, part, seen, pair=chosen)

        @router.get("/s/{study}/pair")
        def pair(request: Request, study: str, part: str = "", seen: str = "") -> Response:
            session = self.sessions.get(study)
            chosen = _pair(session.state, request.query_params)
            if chosen is None:
                raise InvalidValueError("the map of two variables needs two", "choose two of the study's own")
            return self._inferred(
                request, "pair", session, lambda who: session.pair(chosen, who), "live", seen, pair=chosen
            )

    def _inferred(
        self,
        request: Request,
        here: str,
        session: StudySession,
        begin: Callable[[str], Job],
        part: str,
        seen: str,
        **values: Any,
    ) -> Response:
        """A page about something that is being worked out, or the part of it that waits.

        A part that was ``seen`` stays until what is known has changed and the new one is there; it comes after asks.
        For who followed a link from another site nothing is begun: the page that is then open asks for it.
        """
        state = session.state
        if part and seen and (seen == session.evidence(state) or session.worker.open_jobs("ask", "prepare")):
            return Response(status_code=204)
        asker = request.scope["edrbo"]
        job = begin(asker["who"]) if len(state.reported) and asker["may_compute"] else None
        if job is not None:
            job.ended.wait(PATIENCE)
            if part and seen and job.open:
                return Response(status_code=204)
        query = {name: value for name, value in request.query_params.items() if name not in ("part", "seen")}
        values |= {"session": session, "state": state, "job": job, "query": query, "evidence": session.evidence(state)}
        values |= {"ranges": views.context_ranges(state), "last": views.last_context(state)}
        values["variables"] = views.variables_of(state.space)
        several = state.settings.outcomes
        values["measured"] = (
            [session.outcome] if several is None else [(name, part.unit) for name, part in several.items()]
        )
        name = f"{here}_live.html" if part else f"{here}.html"
        return self.render(request, name, here=here, **values)

    # ---------------------------------------------------------------- settings

    def _settings(self, router: APIRouter) -> None:
        @router.get("/s/{study}/import")
        def tables(request: Request, study: str) -> Response:
            session = self.sessions.get(study)
            settings = session.state.settings
            values: dict[str, Any] = {
                "variables": views.variables_of(settings.space),
                "measured": list(settings.outcomes or [settings.outcome]),
                "brought": last_import(session.state),
            }
            return self.render(request, "import.html", here="import", session=session, **values)

        @router.get("/s/{study}/setup")
        def setup(request: Request, study: str) -> Response:
            session = self.sessions.get(study)
            state = session.state
            values = {**setup_of(state), "trail": amendments_of(state), "session": session, "state": state}
            return self.render(request, "setup.html", here="setup", **values)

        @router.get("/new")
        def new(request: Request) -> Response:
            return self.render(
                request, "new.html", here="new", goals=goal_choices(None), more=more_settings(None), purposes=PURPOSES
            )


def _typeset(value: Any) -> Any:
    """What a template shows; what is HTML already stays."""
    return typeset(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _pair(state: State, query: Mapping[str, str]) -> tuple[str, str] | None:
    """Two variables of an address, as ?x=speed&y=humidity."""
    names = (query.get("x", ""), query.get("y", ""))
    known = (*state.space.design_names, *state.space.context_names)
    return names if names[0] != names[1] and set(names) <= set(known) else None


def _types(schema: Mapping[str, Any]) -> str:
    """What kinds of value a field of the API takes, in words; none is left out."""
    inner = [_types(part) for part in schema.get("anyOf", ())]
    found = [schema["type"]] if "type" in schema else [kind for kinds in inner for kind in kinds.split(" or ")]
    return " or ".join(dict.fromkeys(kind for kind in found if kind not in ("null", ""))) or "object"


def _entry(session: StudySession, state: State, number: int | None, kind: str) -> dict[str, Any]:
    """The form for a result of a suggestion, or of a design of one's own."""
    run = None if number is None else state.runs[number]
    row = None if run is None else views.row_of(state, run)
    return {
        "known": {} if number is None else context_asked_for(state, number),
        "expected": "" if run is None else views.expected_of(state, run),
        "session": session,
        "state": state,
        "row": row,
        "kind": kind,
        "variables": views.variables_of(state.space),
        "last_context": views.last_context(state),
        "costs": describe_spending(state) is not None,
        "controls": any(one.control is not None for one in state.runs.values()),
    }
