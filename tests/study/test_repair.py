"""Damaged study files: what is set aside, what is said of it by line, and the copy that has everything else."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from edrbo.cli import make_app
from edrbo.errors import StudyError, UnreadableRecordWarning
from edrbo.records.state import same_state
from edrbo.space import Space
from edrbo.study import Study
from edrbo.study.journal import read_line, write_line
from edrbo.study.repair import examine, repair

SPACE = Space(design={"speed": (1.0, 9.0)}, context={"humidity": (0.0, 1.0)})
CREATE_STUDY, STUDY_ATTRIBUTE, CREATE_TRIAL, PARAM, STATE, USER_ATTRIBUTE, TRIAL_ATTRIBUTE = 0, 3, 4, 5, 6, 8, 9


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """The lines of a study with suggestions, a design of one's own, contexts and something pending."""
    where = tmp_path_factory.mktemp("whole") / "study.db"
    study = Study.open(where, SPACE, initial=100)
    for value in range(3):
        study.tell(study.ask(), [0.5], float(value))
    study.tell({"speed": 2.0}, [0.125], 9.0)
    study.observe_context([[0.25], [0.75]])
    study.ask()
    return where.read_bytes().split(b"\n")[:-1]


def write(path: Path, lines: list[bytes]) -> Path:
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def numbers_of(lines: list[bytes], code: int) -> list[int]:
    return [index for index, line in enumerate(lines) if json.loads(line)["op_code"] == code]


def summary(study: Study) -> dict[str, Any]:
    values = {key: float(study.observations.y[row]) for key, row in study.state.told.items()}
    contexts = {key: study.state.runs[key].context for key in values}
    known = {key: None if context is None else context.tolist() for key, context in contexts.items()}
    return {"values": values, "contexts": known, "pending": list(study.state.pending), "seen": len(study.context_log)}


WHOLE = {
    "values": {0: 0.0, 1: 1.0, 2: 2.0, 3: 9.0},
    "contexts": {0: [0.5], 1: [0.5], 2: [0.5], 3: [0.125]},
    "pending": [4],
    "seen": 6,
}


def test_a_sound_file_has_nothing_to_repair(tmp_path: Path, lines: list[bytes]) -> None:
    where = write(tmp_path / "study.db", lines)
    assert examine(where).found == ()
    assert repair(where)[1] is None
    assert summary(Study.open(where)) == WHOLE
    assert [path.name for path in tmp_path.iterdir()] == ["study.db"]


@pytest.mark.parametrize("how", ["garbage", "cut"])
def test_an_unreadable_line_is_an_error_and_its_repair_loses_that_line_alone(
    tmp_path: Path, lines: list[bytes], how: str
) -> None:
    """Every line in turn. What is lost is what that line said; the numbers of all other runs stay."""
    for index, line in enumerate(lines):
        folder = tmp_path / str(index)
        folder.mkdir()
        bad = b"\xff\x00 not JSON" if how == "garbage" else line[: len(line) // 2]
        where = write(folder / "study.db", [*lines[:index], bad, *lines[index + 1 :]])
        with pytest.raises(StudyError, match=rf"line {index + 1}|first line") as caught:
            Study.open(where)
        assert "edrbo repair" in str(caught.value.hint)
        before = where.read_bytes()
        done, copy = repair(where)
        assert copy == folder / "study.repaired.db"
        assert where.read_bytes() == before
        assert done.found[0].line == index + 1
        log = json.loads(line)
        settings = log["op_code"] == STUDY_ATTRIBUTE and "edrbo:settings" in log["system_attr"]
        again = Study.open(copy, SPACE, initial=100) if settings else Study.open(copy)
        assert again.problems == ()
        found = summary(again)
        lost = lost_by(log)
        assert {key: value for key, value in found["values"].items() if key not in lost} == {
            key: value for key, value in WHOLE["values"].items() if key not in lost
        }
        if (
            log["op_code"] in (CREATE_STUDY, PARAM, USER_ATTRIBUTE)
            or settings
            or (log["op_code"] == CREATE_TRIAL and not lost)
        ):
            assert found == WHOLE
        assert again.ask().id == 5


def lost_by(log: dict[str, Any]) -> set[int]:
    """The runs of which a line says something that no other line does."""
    if log["op_code"] in (TRIAL_ATTRIBUTE, STATE):
        return {log["trial_id"]}
    if log["op_code"] == CREATE_TRIAL and log["params"]:
        return {3}  # a design of one's own, with its outcome
    return set()


def test_a_changed_line_is_set_aside_with_a_warning(tmp_path: Path, lines: list[bytes]) -> None:
    """A flipped bit leaves JSON behind that says something else; the line is not believed, and the study opens."""
    index = numbers_of(lines, STATE)[1]
    where = write(
        tmp_path / "study.db", [*lines[:index], lines[index].replace(b"[1.0]", b"[1.5]"), *lines[index + 1 :]]
    )
    with pytest.warns(UnreadableRecordWarning, match=f"line {index + 1}: its checksum is wrong"):
        study = Study.open(where)
    assert 1 in study.state.pending
    study.tell(1, [0.5], 1.0)
    assert study.state.runs[1].value == 1.0


def test_a_changed_value_is_never_believed_without_line_checksums(tmp_path: Path, lines: list[bytes]) -> None:
    """As in a database, where lines do not exist: the claim says another value than the trial."""
    index = numbers_of(lines, STATE)[1]
    log = json.loads(lines[index])
    bad = write_line({key: value for key, value in log.items() if key != "sum"} | {"values": [1.5]})
    where = write(tmp_path / "study.db", [*lines[:index], bad, *lines[index + 1 :]])
    with pytest.warns(UnreadableRecordWarning, match="another value than the trial"):
        study = Study.open(where)
    assert 1.5 not in study.observations.y
    study.tell(1, [0.5], 1.0)
    with pytest.warns(UnreadableRecordWarning):
        assert summary(Study.open(where))["values"] == WHOLE["values"]


def test_lines_of_other_programs_are_believed(lines: list[bytes]) -> None:
    for number, line in enumerate(lines, start=1):
        log = json.loads(line)
        assert read_line(line, number).why is None
        del log["sum"]
        assert read_line(json.dumps(log).encode(), number).why is None
        assert read_line(write_line(log), number).log == json.loads(line)


def test_every_changed_byte_of_a_line_is_seen(lines: list[bytes]) -> None:
    line = lines[numbers_of(lines, TRIAL_ATTRIBUTE)[0]]
    body = line.index(b',"sum":"', line.index(b'"}},"'))
    for index in range(body):
        for bit in range(8):
            changed = line[:index] + bytes([line[index] ^ 1 << bit]) + line[index + 1 :]
            assert read_line(changed, 1).why is not None


def command(name: str, where: Path | str, *words: str) -> Result:
    return CliRunner().invoke(make_app([name]), [name, "--study", str(where), *words])


def test_the_commands(tmp_path: Path, lines: list[bytes]) -> None:
    where = write(tmp_path / "study.db", [*lines[:-1], b"{", lines[-1]])
    checked = command("check", where)
    assert checked.exit_code == 1
    assert f"line {len(lines)}: it is not JSON" in checked.output
    repaired = command("repair", where, "--json")
    assert repaired.exit_code == 0, repaired.output
    copy = Path(json.loads(repaired.output)["file"])
    assert summary(Study.open(copy)) == WHOLE
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    (note,) = (tmp_path / "study.db.damaged").read_text().splitlines()
    assert json.loads(note) == {"line": len(lines), "why": "it is not JSON", "text": "{"}
    assert command("check", copy).exit_code == 0
    again = command("repair", where)
    assert again.exit_code != 0  # it never overwrites
    assert "exists already" in str(again.exception) + again.output


def test_check_of_a_database(line: Space, postgresql: str) -> None:
    study = Study.open(postgresql, line, name="checked")
    study.tell(study.ask(), [0.5], 1.0)
    study.ledger.storage.set_study_system_attr(study.ledger.study_id, "edrbo:event:bad", {"clock": 1, "event": 3})
    found = command("check", postgresql)
    assert found.exit_code == 1
    assert "edrbo:event:bad" in found.output
    refused = command("repair", postgresql)
    assert refused.exit_code != 0


def test_a_file_that_is_damaged_or_truncated_while_it_is_open(tmp_path: Path, lines: list[bytes]) -> None:
    where = write(tmp_path / "study.db", lines)
    study = Study.open(where)
    before = study.state
    write(where, [*lines, b"garbage", lines[-1]])
    with pytest.raises(StudyError, match=f"line {len(lines) + 1} of .* cannot be read"):
        study.ask()
    write(where, lines[:-3])
    with pytest.raises(StudyError, match="has become shorter"):
        study.ask()
    write(where, lines)
    assert same_state(study.state, before)


def test_lines_that_optuna_cannot_apply(tmp_path: Path, lines: list[bytes]) -> None:
    bad = write_line({"op_code": 77, "worker_id": "", "study_id": 0})
    where = write(tmp_path / "study.db", [*lines[:5], bad, *lines[5:]])
    with pytest.raises(StudyError, match="damaged"):
        Study.open(where)
    done, copy = repair(where)
    assert [str(finding) for finding in done.found] == ["line 6: it cannot be applied"]
    assert copy is not None
    assert summary(Study.open(copy)) == WHOLE
