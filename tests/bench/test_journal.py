"""The journal survives what kills its writer, and never takes one replicate for another."""

from __future__ import annotations

import json
import multiprocessing
import resource
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edrbo.bench.run import journal as journal_module
from edrbo.bench.run.journal import (
    Failure,
    Journal,
    is_finished,
    journal_path,
    journal_paths,
    reachable_modules,
    read_journal,
)
from edrbo.bench.run.replicate import Evaluation, Replicate, ReplicateResult, ReplicateSettings

REPLICATE = Replicate("newsvendor", "random", 1, ReplicateSettings(4, initial=2))
EVALUATIONS = [Evaluation(t, (0.1 + t / 7,), (1 / 3,), -t / 3, 0.1**t, 1e-3) for t in range(4)]
RESULT = ReplicateResult((0.1,), 0.25, {"spread": 0.5}, 1.5)


def write(
    directory: Path, entries: list[Evaluation | ReplicateResult | Failure], replicate: Replicate = REPLICATE
) -> Path:
    with Journal(directory, replicate) as journal:
        for entry in entries:
            journal.add(entry)
    return journal_path(directory, replicate)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    record = read_journal(write(tmp_path, [*EVALUATIONS, RESULT]))
    assert record is not None
    assert record.evaluations == EVALUATIONS
    assert record.result == RESULT
    assert record.failure is None
    assert record.header["hash"] == REPLICATE.settings_hash()
    assert {"edrbo", "code", "torch"} <= record.header["versions"].keys()
    assert record.header["machine"]["cores"] >= 1
    assert is_finished(REPLICATE, tmp_path)
    assert journal_paths(tmp_path) == [journal_path(tmp_path, REPLICATE)]


def test_a_journal_cut_anywhere_is_a_beginning_of_itself(tmp_path: Path) -> None:
    path = write(tmp_path, [*EVALUATIONS, RESULT])
    content = path.read_bytes()

    @given(st.integers(0, len(content)), st.sampled_from([b"", b"\0\0\0", b'{"kind": "eval', b"\n", b"[1]\n"]))
    def check(end: int, tail: bytes) -> None:
        cut = tmp_path / "cut.jsonl"
        cut.write_bytes(content[:end] + tail)
        record = read_journal(cut)
        whole = content[:end].count(b"\n")
        if whole == 0:
            # A header without its line end is torn, unless the tail ends it.
            assert record is None or record.evaluations == []
        else:
            assert record is not None
            found = len(record.evaluations)
            assert record.evaluations == EVALUATIONS[:found]
            assert min(4, whole - 1) <= found <= min(4, whole)
            assert content.startswith(content[: record.size])
            assert record.size <= end + len(tail)

    check()


def test_going_on_cuts_the_torn_line_and_keeps_the_rest(tmp_path: Path) -> None:
    path = write(tmp_path, EVALUATIONS[:2])
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"kind": "evaluation", "t": 2, "x": [0.3')
    with Journal(tmp_path, REPLICATE) as journal:
        assert journal.past == EVALUATIONS[:2]
        assert path.read_bytes() == whole
        journal.add(EVALUATIONS[2])
    record = read_journal(path)
    assert record is not None
    assert record.evaluations == EVALUATIONS[:3]


def test_a_line_out_of_order_ends_the_reading(tmp_path: Path) -> None:
    record = read_journal(write(tmp_path, [EVALUATIONS[0], EVALUATIONS[2], EVALUATIONS[1]]))
    assert record is not None
    assert record.evaluations == EVALUATIONS[:1]


def test_a_failure_is_read_and_its_replicate_tried_again(tmp_path: Path) -> None:
    failure = Failure("ValueError: no", "Traceback …")
    record = read_journal(write(tmp_path, [EVALUATIONS[0], failure]))
    assert record is not None
    assert record.failure == failure
    assert not is_finished(REPLICATE, tmp_path)
    with Journal(tmp_path, REPLICATE) as journal:
        assert journal.past == EVALUATIONS[:1]
    again = read_journal(journal_path(tmp_path, REPLICATE))
    assert again is not None
    assert again.failure is None


def test_changed_settings_never_read_as_done(tmp_path: Path) -> None:
    path = write(tmp_path, [*EVALUATIONS, RESULT])
    old = path.read_bytes()
    other = replace(REPLICATE, settings=ReplicateSettings(4, initial=3))
    assert is_finished(REPLICATE, tmp_path)
    assert not is_finished(other, tmp_path)
    with Journal(tmp_path, other) as journal:
        assert journal.past == []
    assert not is_finished(REPLICATE, tmp_path)
    (aside,) = (tmp_path / "superseded").iterdir()
    assert aside.read_bytes() == old
    assert journal_paths(tmp_path) == [path]


def test_half_a_replicate_begins_again_under_other_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, EVALUATIONS[:2])
    monkeypatch.setattr(journal_module, "versions", lambda: {"edrbo": "another"})
    with Journal(tmp_path, REPLICATE) as journal:
        assert journal.past == []


def test_the_code_that_counts_is_what_a_replicate_can_reach() -> None:
    found = reachable_modules("edrbo.bench.run.replicate")
    assert {
        "edrbo.optimizer.optimizer",
        "edrbo.surrogate.fit",
        "edrbo.bench.learners.optuna_samplers",
        "edrbo.bench.problems.synthetic",
    } <= found.keys()
    assert (
        not {"edrbo.bench.analysis.table", "edrbo.bench.run.execute", "edrbo.bench.analysis.report", "edrbo.lab.cli"}
        & found.keys()
    )


def test_values_json_cannot_hold_are_refused(tmp_path: Path) -> None:
    with Journal(tmp_path, REPLICATE) as journal, pytest.raises(ValueError, match="JSON"):
        journal.add(replace(EVALUATIONS[0], y=float("nan")))


def _fill(directory: Path, limit: int) -> None:
    """Write evaluations until the file may grow no more, as on a full disk."""
    with Journal(directory, REPLICATE) as journal:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        try:
            for one in EVALUATIONS:
                journal.add(one)
        except OSError:
            raise SystemExit(7) from None


def test_a_full_disk_tears_one_line_and_loses_nothing_else(tmp_path: Path) -> None:
    header = len(json.dumps(read_header(tmp_path / "probe"))) + 1
    line = len(write(tmp_path / "probe", EVALUATIONS[:1]).read_bytes()) - header
    process = multiprocessing.get_context("spawn").Process(target=_fill, args=(tmp_path, header + 2 * line + 30))
    process.start()
    process.join()
    assert process.exitcode == 7
    path = journal_path(tmp_path, REPLICATE)
    assert not path.read_bytes().endswith(b"\n")
    with Journal(tmp_path, REPLICATE) as journal:
        kept = len(journal.past)
        assert journal.past == EVALUATIONS[:kept]
        assert kept >= 1
        for one in EVALUATIONS[kept:]:
            journal.add(one)
    record = read_journal(path)
    assert record is not None
    assert record.evaluations == EVALUATIONS


def read_header(directory: Path) -> dict[str, object]:
    path = write(directory, [])
    content: dict[str, object] = json.loads(path.read_bytes())
    return content
