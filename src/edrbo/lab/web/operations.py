"""What the API and the agents' server do with a study: one entry at a time, under the sender's key."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from edrbo.errors import InvalidDesignError
from edrbo.lab.entry import read_amount, read_context, read_control, read_design, read_result, read_variances
from edrbo.lab.study import Study
from edrbo.lab.web import bodies
from edrbo.lab.web.jobs import Job
from edrbo.lab.web.problem import problem_body
from edrbo.lab.web.session import StudySession
from edrbo.records import events as e
from edrbo.records.descriptions import entry_words
from edrbo.records.sanity import doubts_about, narrow_with
from edrbo.records.settings import Settings
from edrbo.records.state import State

Write = Callable[[Study, dict[str, Any]], Any]


def record(session: StudySession, body: bodies.Entry, write: Write) -> dict[str, Any]:
    """Write under the sender's key; the answer names the event, so that it can be undone."""
    stamp = {"by": body.by or None, "at": time.time() - body.waited, "key": body.key, "note": body.note or None}
    event, new = session.once(body.key, lambda: write(session.study, stamp))
    if isinstance(event, e.Reported | e.Failed | e.Cancelled):
        session.prepare()
    state = session.study.state_now  # read a moment ago, with this event in it
    return {
        "ref": event.ref,
        "stored": True,
        "again": not new,
        "words": entry_words(state, event),
        "warnings": warnings_of(state, event),
        "observations": len(state.reported),
    }


def warnings_of(state: State, event: e.Event) -> list[str]:
    """What the methods of Python would warn of: it is stored, and may not be what was meant."""
    found: list[str] = []
    if (
        isinstance(event, e.Reported | e.Failed | e.Corrected)
        and event.x is not None
        and state.space.region is not None
    ):
        broken = state.space.region.broken(state.runs[event.id].x)
        found += [f"what was set breaks {constraint.describe()}; it is kept as it was run" for constraint in broken]
    if isinstance(event, e.Reported | e.ContextReported | e.Corrected):
        found += doubts_about(state, event.id)
    if isinstance(event, e.Reported | e.ContextReported):
        found += narrow_with(state, event.id)
    return found


def job_view(job: Job, session: StudySession) -> dict[str, Any]:
    done = session.progress_of(job)
    return {
        **({} if done is None else {"done": done[0], "of": done[1]}),
        "job": job.key,
        "status": job.status,
        "words": job.words,
        "seconds": round(job.elapsed(), 1),
        "usual": round(job.usual, 1),
        "result": job.result if job.kind in ("ask", "import") else None,
        "problem": problem_body(422, job.error, job.hint, job.problem.code if job.problem else "")
        if job.error
        else None,
    }


def tell_entry(session: StudySession, body: bodies.Tell) -> dict[str, Any]:
    """Report an outcome, or that there was none."""

    def write(book: Study, stamp: dict[str, Any]) -> None:
        design = read_design(book.space_now, body.design or {})
        if body.id is None and not design:
            raise InvalidDesignError("what was tried is not clear", "give the number of a suggestion, or what was set")
        book.tell(
            design if body.id is None else body.id,
            read_context(book.space_now, body.context),
            result_of(book.settings, body),
            **_rows(book.settings, body),
            control=read_control(book.settings, body.control),
            cost=read_amount(body.cost, "the cost"),
            failed=body.failed,
            design=design if design and body.id is not None else None,
            why=body.why or None,
            **stamp,
        )

    return record(session, body, write)


def result_of(settings: Settings, body: bodies.Tell | bodies.Correct | bodies.Check | bodies.ReportedRow) -> Any:
    """One result, or several by name."""
    return read_result(settings, body.outcomes or body.value)


def _rows(settings: Settings, body: bodies.Tell) -> dict[str, Any]:
    """The noise of one result, or several rows as ``tell`` takes them."""
    if body.rows is None:
        return {"noise_variance": read_variances(settings, body.noise_variance)}
    noise_variances, space = [read_variances(settings, row.noise_variance) for row in body.rows], settings.space
    return {
        "contexts": [read_context(space, row.context) or {} for row in body.rows] if space.d_c else None,
        "values": [result_of(settings, row) for row in body.rows],
        "noise_variance": noise_variances
        if any(noise_variance is not None for noise_variance in noise_variances)
        else None,
    }
