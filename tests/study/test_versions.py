"""Studies of other versions of edrbo: old ones are read for ever, newer ones are refused with a hint."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from edrbo.errors import StudyError
from edrbo.records.settings import Settings
from edrbo.space import Space
from edrbo.study import Study
from edrbo.study.journal import write_line

OLD = Path(__file__).with_name("written-by-0.1.0.db")  # never write this file anew


def test_a_study_written_by_0_1_0(tmp_path: Path) -> None:
    where = tmp_path / "study.db"
    shutil.copy(OLD, where)
    study = Study.open(where)
    assert study.name == "coating"
    assert study.settings == Settings(
        Space({"speed": (1.0, 9.0), "kind": ["a", "b"]}, {"humidity": (0.0, 1.0)}), "ucb", "minimize", 5, 20.0, 3
    )
    np.testing.assert_array_equal(study.observations.y, [3.5, 1.25, -2.0])
    np.testing.assert_array_equal(study.observations.c, [[0.25], [0.5], [0.75]])
    assert len(study.state.failed) == 1
    assert len(study.pending) == 1
    assert len(study.context_log) == 5
    study.tell(study.pending[0], [0.1], 0.0)
    study.ask()
    assert len(Study.open(where)) == 4


def test_settings_that_older_versions_did_not_have(line: Space) -> None:
    assert Settings.from_dict({"format": 1, "space": line.to_dict()}) == Settings(line)
    assert Settings.from_dict({"format": 0, "space": line.to_dict(), "method": "ucb"}).method == "ucb"


def test_a_newer_study_is_refused(tmp_path: Path, line: Space) -> None:
    where = tmp_path / "study.db"
    Study.open(where, line)
    text = where.read_text()
    assert '"format":1' in text
    newer = [json.loads(row.replace('"format":1', '"format":2')) for row in text.splitlines()]
    for log in newer:  # written anew, with checksums that are right
        del log["sum"]
        log.get("system_attr", {}).get("edrbo:settings", {}).pop("sum", None)
    where.write_bytes(b"".join(write_line(log) + b"\n" for log in newer))
    with pytest.raises(StudyError, match="format 2") as caught:
        Study.open(where)
    assert caught.value.hint == "upgrade edrbo to open it"


@pytest.mark.parametrize("record", [None, {}, {"format": 1}, {"format": 1, "space": 3}, {"format": "x"}, []])
def test_settings_that_cannot_be_read(record: object) -> None:
    with pytest.raises((StudyError, ValueError), match=r"cannot be read|no usable"):
        Settings.from_dict(record)


def test_an_optuna_study_that_is_not_ours(tmp_path: Path, line: Space) -> None:
    where = tmp_path / "study.db"
    record = {"op_code": 0, "worker_id": "other", "study_name": "plain", "directions": [1]}
    where.write_text(json.dumps(record) + "\n")
    with pytest.raises(StudyError, match="not made by edrbo"):
        Study.open(where)
    assert Study.open(where, line).settings == Settings(line)


@pytest.mark.parametrize("module", ["edrbo.study", "edrbo.optuna"])
def test_without_optuna_there_is_a_hint(module: str) -> None:
    code = f"import sys; sys.modules['optuna'] = None; import {module}"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "MissingExtraError" in done.stderr
    assert "pip install 'edrbo[study]'" in done.stderr
