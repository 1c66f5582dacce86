"""Nothing is unpickled, no password is printed, files are private, names are only names."""

from __future__ import annotations

import ast
import pickle
import stat
from pathlib import Path

import pytest
import torch  # noqa: F401 - in time: as it is imported, what it brings takes pickle apart

import edrbo
from edrbo.errors import StudyError
from edrbo.lab import Study
from edrbo.lab.files import describe
from edrbo.space import Space

SOURCE = Path(edrbo.__file__).parent


def test_nothing_is_unpickled(tmp_path: Path, line: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def forbidden(*arguments: object, **options: object) -> None:
        calls.append(arguments)  # seen below even if somebody catches the error
        raise AssertionError("something was unpickled")

    monkeypatch.setattr(pickle, "loads", forbidden)
    monkeypatch.setattr(pickle, "load", forbidden)
    monkeypatch.setattr(pickle, "Unpickler", forbidden)
    where = tmp_path / "study.db"
    study = Study.open(where, line, method="ucb", initial=2)
    for _ in range(3):
        study.tell(study.ask(), [0.5], 1.0)
    study.observe_context([[0.5]])
    assert Study.open(where).recommend().observations == 3
    assert calls == []


def test_no_module_of_studies_imports_pickle_or_a_shell() -> None:
    files = [*(SOURCE / "lab").rglob("*.py"), *(SOURCE / "records").rglob("*.py")]
    assert len(files) > 10
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert not {alias.name for alias in node.names} & {"pickle", "marshal", "shelve"}, path
            if isinstance(node, ast.ImportFrom):
                assert node.module not in ("pickle", "marshal", "shelve"), path
            if isinstance(node, ast.keyword) and node.arg == "shell":
                raise AssertionError(f"{path} names a shell")
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("os.system", "os.popen", "eval", "exec"):
                raise AssertionError(f"{path} calls {ast.unparse(node.func)}")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hunter2@127.0.0.1:1/nowhere",
        "postgresql://127.0.0.1:1/nowhere?user=me&password=hunter2",
        "postgresql+psycopg2://me:hunter2@127.0.0.1:1/nowhere?sslpassword=hunter2",
        "mysql://me:hunter2@host/database",
        "postgresql://me:hunter2@[bad/x",
        "postgresql://me:x@hunter2@127.0.0.1:1/nowhere",
        "postgresql://me:hunter2/more@127.0.0.1:1/nowhere",
        "postgresql://me:a:b@hunter2?x@127.0.0.1:1/nowhere",
    ],
)
def test_passwords_are_never_printed(url: str, line: Space) -> None:
    assert "hunter2" not in describe(url)
    with pytest.raises(StudyError) as caught:
        Study.open(url, line)
    problem: BaseException | None = caught.value
    assert "hunter2" not in str(problem)
    assert "hunter2" not in repr(problem)
    assert (
        problem.__suppress_context__ or problem.__context__ is None
    )  # so that no traceback shows the driver's words either


def test_a_password_in_a_url_gets_a_hint() -> None:
    with pytest.raises(StudyError) as caught:
        Study.open("postgresql://me:hunter2@127.0.0.1:1/nowhere")
    assert "~/.pgpass" in str(caught.value.hint)


def test_a_study_shows_no_password(line: Space, postgresql: str) -> None:
    url = postgresql.replace("postgres:@", "postgres:hunter2@")
    assert "hunter2" in url
    study = Study.open(url, line, name="secret")
    assert "hunter2" not in repr(study)


def test_files_are_private(tmp_path: Path, line: Space) -> None:
    where = tmp_path / "study.db"
    study = Study.open(where, line)
    study.ask()
    assert {path.name for path in tmp_path.iterdir()} == {"study.db", "study.db-wal", "study.db-shm"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}
    study.close()
    assert [path.name for path in tmp_path.iterdir()] == ["study.db"]


def test_names_are_only_names(tmp_path: Path, everything: Space) -> None:
    """Paths, markup and escape codes in names of variables and studies do nothing."""
    study = Study.open(tmp_path / "study.db", everything, name="../../outside/<b>\x1b[31m")
    study.tell(study.ask(), {"status": 1.0, "{c}": 0.5}, 1.0)
    again = Study.open(tmp_path / "study.db")
    assert again.name == "../../outside/<b>\x1b[31m"
    assert len(again) == 1
    study.close()
    again.close()
    assert [path.name for path in tmp_path.iterdir()] == ["study.db"]
