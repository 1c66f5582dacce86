"""``edrbo.Client``: the methods of ``Study`` over the network, each entry stored once whatever the network does."""

from __future__ import annotations

import inspect
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
from live import study_server

import edrbo
from edrbo import Study
from edrbo.client import RemoteStudy, RemoteSuggestion
from edrbo.errors import (
    EdrboError,
    InvalidContextError,
    InvalidDesignError,
    InvalidValueError,
    RecordedAlreadyError,
    StudyError,
    UnavailableError,
    UnknownSuggestionError,
)
from edrbo.lab.web.bodies import New
from edrbo.lab.web.security import Rules
from edrbo.lab.web.tokens import Tokens

CONTEXT = {"humidity": 45.5, "load": 3}
YESTERDAY = time.time() - 86_400
DESIGN = {"speed": 3, "layers": 1, "kind": "plain"}


@pytest.fixture
def port(study: Study, tmp_path: Path) -> Iterator[int]:
    with study_server(tmp_path / "coating.db") as found:
        yield found.port


@pytest.fixture
def remote(port: int) -> RemoteStudy:
    return edrbo.Client(f"http://127.0.0.1:{port}").study("coating")


def test_a_run_as_with_a_study(remote: RemoteStudy, study: Study) -> None:
    suggestion = remote.ask(by="PLC 4")
    assert isinstance(suggestion, RemoteSuggestion)
    assert study.pending[0].design == suggestion.design
    receipt = remote.tell(suggestion, CONTEXT, np.float64(1.75), note="wet")
    assert (receipt.observations, receipt.warnings) == (1, ())
    run = study.state.runs[0]
    assert (run.status, run.value) == ("reported", 1.75)
    assert study.state.history[0].by == "PLC 4"
    remote.undo(receipt.ref)
    assert study.state.runs[0].status == "pending"
    remote.cancel(suggestion, "no material")
    assert study.state.runs[0].status == "cancelled"
    batch = remote.ask(2, context=CONTEXT, fixed={"kind": "plain"})
    assert [(one.id, one.design["kind"]) for one in batch] == [(1, "plain"), (2, "plain")]
    shelf = [DESIGN, {**DESIGN, "speed": 4}]
    (one,) = remote.ask(1, candidates=shelf, forecast=[CONTEXT, {"humidity": 50, "load": 1}])
    assert one.design in shelf
    assert remote.claim() is None  # everything was asked for a moment ago
    later = remote.claim(stale_after=1e-6)
    assert later is not None
    assert later.id == 1
    assert remote.claim(stale_after=600) is None  # it is held now


def test_every_entry_is_the_event_that_a_study_makes(remote: RemoteStudy, study: Study, tmp_path: Path) -> None:
    twin = Study.open(tmp_path / "twin.db", study.space, by="login", initial=5)
    for one in (remote, twin):
        one.tell(DESIGN, None, 5.0, noise_variance=0.25, cost=2.0)
        one.tell_context(0, CONTEXT)
        one.tell(DESIGN, CONTEXT, failed=True, why="blocked")
        one.correct(0, value=6.0, why="read wrongly")
        one.drop(0, "spilled")
        one.restore(0)
        one.note(0, "new batch")
        one.observe_context(
            [CONTEXT, {"humidity": 50, "load": 1}], [1.0, 2.5], note="a dry week", at=YESTERDAY, key="dry-week"
        )
        with suppress(RecordedAlreadyError):  # which a sender over the network need not see
            one.observe_context([CONTEXT], key="dry-week")
        one.tell(DESIGN, contexts=[CONTEXT, {"humidity": 50, "load": 1}], values=[1.0, 2.0], note="two rows")
        one.correct(2, row=1, value=2.5, why="dial")
        one.tell(DESIGN, CONTEXT, 9.0)
        one.undo(note="of another machine")
    parts = ("kind", "value", "why", "note", "row")
    ours, theirs = ([[getattr(e, name, None) for name in parts] for e in one.state.history] for one in (study, twin))
    assert ours == theirs
    assert [event.kind for event in study.state.history].count("seen") == 1  # of one key
    at = next(event.at for event in study.state.history if event.kind == "seen")
    assert at == pytest.approx(YESTERDAY, abs=60)  # the client says how long ago: clocks may differ
    assert study.state.runs[2].series is not None
    with pytest.raises(InvalidValueError):
        remote.tell(DESIGN, contexts=[CONTEXT], values=[1.0, 2.0])
    assert study.state.runs[0].value == twin.state.runs[0].value
    assert len(study.state.log) == len(twin.state.log)


def test_an_answer_has_the_numbers_and_the_facts(remote: RemoteStudy, study: Study) -> None:
    rng = np.random.default_rng(3)
    for _ in range(8):
        context = {"humidity": rng.uniform(0, 100), "load": rng.normal(3, 1)}
        study.tell({**DESIGN, "speed": rng.uniform(1, 9)}, context, rng.normal())
    found = remote.recommend()
    here = study.recommend()
    assert found.design == here.design
    assert found.record["value"] == pytest.approx(here.value)
    assert found.facts[0][0]
    assert remote.recommend(context=CONTEXT, fixed={"kind": "plain"}).design["kind"] == "plain"
    assert remote.implausible() == [(one.run, one.reasons) for one in study.implausible()]
    assert remote.show()["reported"] == 8
    assert [run["id"] for run in remote.runs()] == list(range(7, -1, -1))
    assert remote.runs("pending") == []
    assert remote.export().splitlines()[0].startswith("status,id")


def test_every_question_has_the_answer_of_the_study(remote: RemoteStudy, study: Study) -> None:
    rng = np.random.default_rng(3)
    for _ in range(8):
        context = {"humidity": rng.uniform(0, 100), "load": rng.normal(3, 1)}
        study.tell({**DESIGN, "speed": rng.uniform(1, 9)}, context, rng.normal())
    (waiting,) = study.ask(1)
    assert [(one.id, one.design) for one in remote.pending] == [(waiting.id, waiting.design)]
    assert remote.recommend(goal="cvar:0.2").design == study.recommend(goal="cvar:0.2").design
    here = study.predict(DESIGN, context=CONTEXT, goal="cvar:0.2")
    there = remote.predict(DESIGN, context=CONTEXT, goal="cvar:0.2")
    assert there == pytest.approx({name: part[0] for name, part in vars(here).items()})
    known = study.policy(known="humidity")
    found = remote.policy(known="humidity")
    assert found.record["worth"] == pytest.approx(known.worth)
    assert found.record["known"] == ["humidity"]
    assert len(found.rows) == len(known.rows)
    assert len(found.heads) == len(found.rows[0])
    matters = remote.sensitivity()
    assert set(matters.record["variables"]) == {*study.space.design_names, *study.space.context_names}
    assert matters.facts
    assert remote.tradeoff("cvar:0.2")["designs"] == study.tradeoff("cvar:0.2").designs
    remote.amend({"goal": "cvar:0.2"}, by="Ada", note="the bad days count")
    assert study.state.settings.goal.to_text() == "cvar:0.2"
    with pytest.raises(InvalidValueError):
        remote.front()
    with pytest.raises(InvalidDesignError):
        remote.predict({"speed": 3})


def test_a_front(tmp_path: Path) -> None:
    wanted = {"gloss": edrbo.Maximize(), "heat": edrbo.Minimize()}
    study = Study.open(tmp_path / "paint.db", edrbo.Space({"x": (0, 1)}, {"c": (0, 1)}), outcomes=wanted)
    for k in range(6):
        study.tell({"x": k / 5}, {"c": 0.1 * k}, {"gloss": k * (6 - k) / 9, "heat": float(k)})
    with study_server(tmp_path / "paint.db") as found:
        remote = edrbo.Client(f"http://127.0.0.1:{found.port}").study("paint")
        front = remote.front()
        with pytest.raises(InvalidValueError):
            remote.recommend()
    here = study.front()
    assert [point["design"] for point in front.record["points"]] == [point.design for point in here.points]
    assert len(front.rows) == len(here.points)


def test_a_study_that_is_made_twice_is_one(port: int, study: Study) -> None:
    """As when the answer to the first request is lost."""
    client = edrbo.Client(f"http://127.0.0.1:{port}")
    variables = [{"name": "x", "low": 0, "high": 1}]
    made = client.new("oven", variables)
    assert client.new("oven", variables).word == made.word
    with pytest.raises(StudyError):
        client.new("oven", [{"name": "x", "low": 0, "high": 2}])
    made.ask()
    with pytest.raises(StudyError):
        client.new("oven", variables)


def test_a_new_study_takes_what_the_address_takes() -> None:
    taken = inspect.signature(edrbo.Client.new).parameters
    assert {*taken} - {"self"} == {*New.model_fields} - {"by", "at", "note", "key"}
    for name, field in New.model_fields.items():
        if name in taken and not field.is_required() and field.default_factory is None:
            assert taken[name].default == field.default


NOT_REMOTE = {
    *(
        "open",
        "open_with",
        "described",
        "close",
        "record_all",
        "where",
        "name",
        "by",
        "optimizer",
    ),  # of the place itself
    *(
        "state",
        "state_now",
        "settings",
        "space",
        "space_now",
        "observations",
        "context_log",
        "spending",
    ),  # show(), runs()
    *(
        "to_frame",
        "optimize",
        "process_change",
    ),  # runs() for a frame; claim, ask and tell in a loop; in recommend().record
}
NOT_REMOTE_ARGUMENTS = {
    "ask": set[str](),
    "amend": {"defaults"},  # "before" of a variable
    "recommend": {"radius", "forecast", "candidates"},
    "front": {"reference", "forecast", "candidates"},
    "policy": {"contexts", "goal", "forecast", "fixed", "candidates"},
    "predict": {"designs", "forecast"},  # one design
    "sensitivity": {"forecast"},
    "tradeoff": {"forecast"},
}


def test_it_has_the_methods_of_a_study() -> None:
    own = {name for name in dir(Study) if not name.startswith("_")}
    assert own - NOT_REMOTE <= {name for name in dir(RemoteStudy) if not name.startswith("_")}
    assert own & NOT_REMOTE >= NOT_REMOTE - {"name", "by"}  # none that is gone
    for name in own - NOT_REMOTE - {"pending", "runs"}:
        here, there = (set(inspect.signature(getattr(kind, name)).parameters) for kind in (Study, RemoteStudy))
        assert here - there == NOT_REMOTE_ARGUMENTS.get(name, set()), name


def test_errors_are_those_of_python(remote: RemoteStudy, port: int) -> None:
    for error, wrong in {
        InvalidDesignError: lambda: remote.tell({"speed": 3}, None, 1.0),
        InvalidContextError: lambda: remote.tell(DESIGN, {"humidty": 3}, 1.0),
        UnknownSuggestionError: lambda: remote.cancel(7),
    }.items():
        with pytest.raises(error) as caught:
            wrong()
        assert caught.value.hint
    with pytest.raises(StudyError):
        edrbo.Client(f"http://127.0.0.1:{port}").study("missing")
    with pytest.raises(InvalidValueError):
        edrbo.Client("127.0.0.1:8017")


def test_a_token_is_sent_and_its_name_signs(study: Study, tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "tokens.json")
    token = tokens.create("PLC 4", "run")
    with study_server(tmp_path / "coating.db", Rules(None, None, people=tokens)) as found:
        url = f"http://127.0.0.1:{found.port}"
        edrbo.Client(url, token).study("coating").tell(DESIGN, None, 1.0, by="somebody else")
        assert study.state.history[-1].by == "PLC 4"
        assert edrbo.Client(url).healthy()
        with pytest.raises(EdrboError):
            edrbo.Client(url).studies()
        with pytest.raises(EdrboError):
            edrbo.Client(url, token).new("other", [{"name": "x", "low": 0, "high": 1}])


@contextmanager
def broken_network(port: int, failures: int) -> Iterator[tuple[int, list[bytes]]]:
    """A way to the server that takes the first ``failures`` POSTs there and loses their answers."""
    lost: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.05)
        ended = threading.Event()

        def carry() -> None:
            while not ended.is_set():
                try:
                    near, _ = listener.accept()
                except TimeoutError:
                    continue
                with near, socket.create_connection(("127.0.0.1", port)) as far:
                    asked = _message(near)
                    far.sendall(asked.replace(b"HTTP/1.1\r\n", b"HTTP/1.1\r\nConnection: close\r\n", 1))
                    answer = b""
                    while part := far.recv(65536):
                        answer += part
                    if asked.startswith(b"POST") and len(lost) < failures:
                        lost.append(answer)
                        continue
                    near.sendall(answer)

        thread = threading.Thread(target=carry)
        thread.start()
        try:
            yield int(listener.getsockname()[1]), lost
        finally:
            ended.set()
            thread.join()


def _message(connection: socket.socket) -> bytes:
    """A whole request."""
    found = b""
    while b"\r\n\r\n" not in found:
        found += connection.recv(65536)
    head, _, body = found.partition(b"\r\n\r\n")
    lengths = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    length = int(lengths[0].partition(b":")[2]) if lengths else 0
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def test_an_answer_that_is_lost_leaves_one_entry(port: int, study: Study) -> None:
    with broken_network(port, failures=2) as (way, lost):
        remote = edrbo.Client(f"http://127.0.0.1:{way}").study("coating")
        receipt = remote.tell(DESIGN, CONTEXT, 1.75)
    assert [b'"stored":true' in answer for answer in lost] == [True, True]  # it had been stored the first time
    assert receipt.observations == 1
    assert len(study.state.history) == 1


def test_a_server_that_is_away_is_said_after_a_few_tries() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    client = edrbo.Client(f"http://127.0.0.1:{port}", "a-token-of-somebody")
    assert not client.healthy()
    with pytest.raises(UnavailableError):
        client.studies()
