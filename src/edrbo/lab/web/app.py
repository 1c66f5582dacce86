"""The application: API, pages and assets behind the guard."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from edrbo import __version__
from edrbo.errors import (
    ConstraintWarning,
    ContextBoundsWarning,
    EdrboError,
    ImplausibleWarning,
    NarrowContextsWarning,
    NetworkFileWarning,
    NoScaleWarning,
    StoppedError,
    UnavailableError,
    UnknownStudyError,
    UnknownSuggestionError,
)
from edrbo.lab.web.api import api_router
from edrbo.lab.web.pages import Pages
from edrbo.lab.web.problem import KIND, problem_body
from edrbo.lab.web.registry import StudyRegistry
from edrbo.lab.web.security import HEALTH, App, Rules, Scope, SecurityMiddleware
from edrbo.lab.web.session import StudySessions

ABOUT = """The operations of `edrbo` on the command line, under the same names. What is written carries a `key` of the
sender's own choice: sent again, it is stored once. Send `Authorization: Bearer TOKEN`, or `X-Edrbo` (from
`/api/v1/session`, with its cookie), with every POST, and with `recommend`. Errors are `application/problem+json`."""

WARNINGS = (
    ConstraintWarning,
    ContextBoundsWarning,
    ImplausibleWarning,
    NarrowContextsWarning,
    NetworkFileWarning,
    NoScaleWarning,
)


class Assets(StaticFiles):
    """Scripts and styles. Pages name them with a ``mark`` of what is in them, so browsers may keep them."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory=directory, packages=[("edrbo.charts", "static")])  # those of charts are the report's
        folders = [directory, Path(str(files("edrbo.charts") / "static"))]
        everything = b"".join(path.read_bytes() for folder in folders for path in sorted(folder.iterdir()))
        self.mark = f"{zlib.crc32(everything):x}"

    def file_response(self, full_path: Any, stat_result: Any, scope: Scope, status_code: int = 200) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        known = scope["query_string"] == f"v={self.mark}".encode()
        response.headers["cache-control"] = "max-age=31536000, immutable" if known else "no-cache"
        return response


def make_app(places: StudyRegistry, rules: Rules, *, prepares: bool = False) -> App:
    """Everything that `edrbo serve` answers."""
    return SecurityMiddleware(make_routes(places, prepares=prepares), rules)


def make_routes(places: StudyRegistry, *, prepares: bool = False) -> FastAPI:
    """What is behind the guard."""
    sessions = StudySessions(places, prepares=prepares)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        # They are for who enters a result, not for a log. The filter is the process's: threads have none of their own.
        for kind in WARNINGS:
            warnings.simplefilter("ignore", kind)
        yield
        sessions.stop()

    app = FastAPI(
        title="edrbo",
        version=__version__,
        description=ABOUT,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # theirs loads its parts from elsewhere; ours is a page like the others
        redoc_url=None,
        lifespan=lifespan,
    )
    assets = Assets(directory=Path(str(files("edrbo.lab.web") / "static")))
    pages = Pages(sessions, assets.mark)
    app.include_router(api_router(sessions))

    @app.get(HEALTH, include_in_schema=False)
    def health() -> Response:
        """For whoever watches the server."""
        well = sessions.reachable()
        return JSONResponse({"status": "ok" if well else "unavailable", "version": __version__}, 200 if well else 503)

    app.include_router(pages.router(app))
    app.mount("/static", assets, name="static")
    _errors(app, pages)
    return app


def _errors(app: FastAPI, pages: Pages) -> None:
    def answer(request: Request, status: int, message: str, hint: str, code: str = "") -> Response:
        if request.url.path.startswith("/api/"):
            return JSONResponse(problem_body(status, message, hint, code), status, media_type=KIND)
        return pages.sorry(request, status, message, hint)

    @app.exception_handler(EdrboError)
    def known(request: Request, problem: EdrboError) -> Response:
        status = 409 if isinstance(problem, UnknownSuggestionError) else 422
        if isinstance(problem, UnknownStudyError) or (
            request.method == "GET" and isinstance(problem, UnknownSuggestionError)
        ):
            status = 404
        if isinstance(problem, UnavailableError | StoppedError):
            status = 503  # a page keeps what it could not send, and tries again
        return answer(request, status, problem.message, problem.hint or "", problem.code)

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, problem: RequestValidationError) -> Response:
        first = problem.errors()[0]
        if first["loc"][-1] == "design" and first["type"] == "too_short":
            return answer(request, 422, "there is no setting yet", "add at least one setting")
        where = ".".join(str(part) for part in first["loc"] if part not in ("body", "query", "path"))
        return answer(request, 422, f"{where or 'the request'}: {first['msg']}"[:300], "")

    @app.exception_handler(HTTPException)
    def http(request: Request, problem: HTTPException) -> Response:
        return answer(request, problem.status_code, str(problem.detail), "")

    @app.exception_handler(Exception)
    def unknown(request: Request, problem: Exception) -> Response:
        return answer(request, 500, "something went wrong on the server", "its log says what")
