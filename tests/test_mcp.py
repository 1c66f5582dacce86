"""The server for agents, with the official client: over standard input and output, and in this process."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")

import anyio
from mcp import Client, StdioServerParameters, stdio_client
from mcp_types import CallToolResult

from edrbo import Limit, Maximize, Space, Study
from edrbo.errors import InvalidValueError, StudyError
from edrbo.integrations.mcp import READING, WRITING, make_server
from edrbo.lab.cli import serve as command
from edrbo.lab.web.registry import StudyRegistry

pytestmark = pytest.mark.filterwarnings("ignore::edrbo.errors.EdrboWarning")  # as in the process of the server
CONTEXT = {"humidity": 45, "load": "2,5"}


@pytest.fixture
def study(tmp_path: Path) -> Study:
    found = Study.open(
        tmp_path / "coating.db", Space({"speed": (1, 9)}, {"humidity": (0, 100), "load": None}), by="Ada", initial=3
    )
    for speed, value in ((2, 1.5), (4, 2.5), (8, 0.5)):
        found.tell({"speed": speed}, {"humidity": 40.0 + speed, "load": 3.0}, value)
    return found


@pytest.fixture
def call(study: Study, tmp_path: Path) -> Callable[..., Any]:
    """A tool of a server that writes, in this process: its answer, or what its error says."""

    def called(tool: str, **arguments: Any) -> Any:
        server = make_server(StudyRegistry(str(tmp_path)), "Grace", writes=True)

        async def talk() -> CallToolResult:
            async with Client(server) as client:
                return await client.call_tool(tool, arguments)

        return content(anyio.run(talk))

    return called


def content(result: CallToolResult) -> Any:
    found = result.structured_content
    if result.is_error:
        assert found is None or set(found) == {"error", "hint", "code"}
        return found or result.content[0].text  # type: ignore[union-attr]
    assert found is not None
    return found.get("result", found)


def over_stdio(words: list[str], calls: list[tuple[str, dict[str, Any]]]) -> tuple[list[str], list[CallToolResult]]:
    """The tools that a process of ``edrbo mcp`` names, and what it answers."""
    program = [sys.executable, "-c", "from edrbo.lab.cli import main; main()", "mcp", *words]
    server = StdioServerParameters(command=program[0], args=program[1:], env={**os.environ, "OMP_NUM_THREADS": "1"})

    async def talk() -> tuple[list[str], list[CallToolResult]]:
        async with Client(stdio_client(server)) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            return names, [await client.call_tool(name, arguments) for name, arguments in calls]

    return anyio.run(talk)


# -------------------------------------------------------------------- over standard input and output


def test_it_only_reads_if_nothing_else_is_said(study: Study, tmp_path: Path) -> None:
    before = study.state.history
    names, (listed, shown, runs, refused) = over_stdio(
        [str(tmp_path)],
        [
            ("list_studies", {}),
            ("show", {"study": "coating"}),
            ("runs", {"study": "coating"}),
            ("tell", {"study": "coating", "design": {"speed": 3}, "value": 2.0}),
        ],
    )
    assert names == list(READING)
    assert content(listed) == [{"study": "coating", "name": "coating"}]
    assert content(shown)["reported"] == 3
    assert [run["value"] for run in content(runs)] == [0.5, 2.5, 1.5]
    assert refused.is_error
    assert study.state.history == before


def test_from_ask_to_tell(study: Study, tmp_path: Path) -> None:
    names, (asked, reported, recommended) = over_stdio(
        [str(tmp_path / "coating.db"), "--write", "--by", "Grace"],
        [
            ("ask", {"study": "coating"}),
            ("tell", {"study": "coating", "id": 3, "value": "1,25", "context": CONTEXT, "note": "wet"}),
            ("recommend", {"study": "coating"}),
        ],
    )
    assert names == [*READING, *WRITING]
    (suggestion,) = content(asked)
    run = study.state.runs[3]
    assert (suggestion["id"], suggestion["design"]) == (3, study.space.decode_designs(run.x)[0])
    assert content(reported)["stored"]
    assert (run.value, run.context.tolist() if run.context is not None else None) == (1.25, [45.0, 2.5])
    asked_event, report_event = study.state.history[3:]
    assert (asked_event.by, report_event.by, report_event.note) == ("Grace (agent)", "Grace (agent)", "wet")
    answer = content(recommended)
    assert answer["observations"] == 4
    assert answer["record"]["design"] == study.recommend().design


def test_what_cannot_be_served_ends_it_with_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StudyError):
        command.mcp(str(tmp_path / "nothing.db"))
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"edrbo\[mcp\]"):
        command.mcp(str(tmp_path))


# -------------------------------------------------------------------- what it answers


def test_it_answers_as_the_study_does(call: Callable[..., Any], study: Study) -> None:
    assert call("recommend", study="coating", context={"humidity": 45, "load": 2.5})["design"] == (
        study.recommend(context={"humidity": 45.0, "load": 2.5}).design
    )
    first, second = call("ask", study="coating", count=2, context={"humidity": "50"})
    assert [first["id"], second["id"]] == [one.id for one in study.pending] == [3, 4]
    assert [run["id"] for run in call("runs", study="coating", status="pending")] == [4, 3]


def test_the_policy_and_what_matters(call: Callable[..., Any], study: Study) -> None:
    for k in range(5):
        study.tell({"speed": 1.5 + k}, {"humidity": 30.0 + 7 * k, "load": 3.0 - 0.2 * k}, 2.0 - 0.1 * (k - 2) ** 2)
    known = call("policy", study="coating", known=["humidity"])
    assert known["record"]["worth"] == pytest.approx(study.policy(known="humidity").worth)
    assert len(known["rows"][0]) == len(known["heads"])
    assert call("policy", study="coating", known=["wind"])["code"] == "invalid-context"
    matters = call("what_matters", study="coating")
    assert set(matters["record"]["variables"]) == {"speed", "humidity", "load"}
    assert matters["record"] == json.loads(json.dumps(study.sensitivity().to_dict()))
    assert call("what_matters", study="coating", outcome="gloss")["code"]


def test_failures_and_designs_of_ones_own(call: Callable[..., Any], study: Study) -> None:
    call("tell", study="coating", design={"speed": "2,5"}, failed=True, why="blocked")
    call("tell", study="coating", design={"speed": 9}, value=1, cost=3, context={"humidity": 10, "load": 1})
    failed, own = list(study.state.runs.values())[3:]
    assert (failed.status, failed.why, failed.x.tolist()) == ("failed", "blocked", [(2.5 - 1) / 8])
    assert (own.status, own.value, own.cost, own.known) == ("reported", 1.0, 3.0, True)


def test_under_one_key_an_entry_is_stored_once(call: Callable[..., Any], study: Study) -> None:
    sent = {"study": "coating", "design": {"speed": 3}, "value": 2.0, "context": CONTEXT, "key": "run-of-monday"}
    assert [call("tell", **sent)["again"] for _ in range(2)] == [False, True]
    assert len(study.state.reported) == 4


def test_what_may_be_a_slip_is_said(call: Callable[..., Any]) -> None:
    answer = call("tell", study="coating", design={"speed": 3}, value=2.0, context={"humidity": 450, "load": 3})
    assert answer["stored"]
    assert any("humidity" in warning for warning in answer["warnings"])


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("show", {"study": "secrets"}, "unknown-study"),
        ("show", {"study": "../coating"}, "unknown-study"),
        ("show", {"study": "/etc/passwd"}, "unknown-study"),
        ("runs", {"study": "coating", "status": "lost"}, "invalid-value"),
        ("tell", {"study": "coating", "value": 1.0}, "invalid-design"),
        ("tell", {"study": "coating", "id": 77, "value": 1.0}, "unknown-suggestion"),
        ("tell", {"study": "coating", "design": {"sped": 3}, "value": 1.0}, "invalid-design"),
        ("tell", {"study": "coating", "design": {"speed": 3}, "value": "high"}, "invalid-value"),
        ("ask", {"study": "coating", "context": {"rain": 1}}, "invalid-context"),
        ("recommend", {"study": "coating", "context": {"humidity": 1}}, "invalid-context"),
    ],
)
def test_errors_have_the_codes_of_every_interface(
    call: Callable[..., Any], study: Study, tool: str, arguments: dict[str, Any], code: str
) -> None:
    found = call(tool, **arguments)
    assert found["code"] == code
    assert found["hint"]
    assert len(study.state.history) == 3


@pytest.mark.parametrize(
    "arguments", [{"study": "coating", "count": 21}, {"study": 3}, {"study": "coating", "key": "x"}]
)
def test_what_no_call_can_be_is_refused_with_its_name(
    call: Callable[..., Any], study: Study, arguments: dict[str, Any]
) -> None:
    assert f"{list(arguments)[-1]}\n" in call("ask", **arguments)
    assert len(study.state.history) == 3


def test_a_study_outside_of_the_folder_is_out_of_reach(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    Study.open(outside / "other.db", Space({"x": (0, 1)}))
    (inside / "other.toml").write_text('storage = "../outside/other.db"\n[design]\nx = [0, 1]\n')
    (inside / "link.db").symlink_to(outside / "other.db")
    places = StudyRegistry(str(inside))

    async def talk() -> CallToolResult:
        async with Client(make_server(places, "Grace", writes=True)) as client:
            return await client.call_tool("list_studies", {})

    assert content(anyio.run(talk)) == []
    assert set(places.problems()) == {"other.toml", "link.db"}


def test_several_outcomes(tmp_path: Path, call: Callable[..., Any]) -> None:
    wanted = {"gloss": Maximize(), "heat": Limit(upper=3.0)}
    other = Study.open(tmp_path / "paint.db", Space({"x": (0, 1)}, {"c": (0, 1)}), outcomes=wanted)
    call("tell", study="paint", design={"x": 0.5}, outcomes={"gloss": 1, "heat": "2,5"}, context={"c": 0.5})
    (run,) = other.state.runs.values()
    assert (run.value, dict(run.others)) == (1.0, {"heat": 2.5})


def test_who_signs_must_have_a_name(tmp_path: Path, study: Study) -> None:
    for name in ("", "a" * 81, "Ada\x1b[31m"):
        with pytest.raises(InvalidValueError):
            make_server(StudyRegistry(str(tmp_path)), name)


def test_every_tool_says_what_it_is_for(tmp_path: Path, study: Study) -> None:
    server = make_server(StudyRegistry(str(tmp_path)), "Grace", writes=True)

    async def talk() -> list[Any]:
        async with Client(server) as client:
            return (await client.list_tools()).tools

    tools = anyio.run(talk)
    assert [tool.name for tool in tools] == [*READING, *WRITING]
    for tool in tools:
        assert len(tool.description) > 40
        assert tool.annotations.read_only_hint == (tool.name in READING)
        assert json.dumps(tool.input_schema)
