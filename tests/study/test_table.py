"""Export and import: the same, bit for bit; tables of people's own."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edrbo.errors import ContextBoundsWarning, StudyError
from edrbo.records.state import same_state
from edrbo.space import Space
from edrbo.study import Study
from edrbo.study.csv_file import export_csv
from edrbo.study.csv_import import import_csv


def export(study: Study, path: Path) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        export_csv(study.state, file)
    return path


def copy_of(study: Study, folder: Path) -> Study:
    other = Study.open(folder / "copy.db", study.space)
    import_csv(other, export(study, folder / "table.csv"))
    return other


def test_a_round_trip_is_exact(tmp_path: Path, everything: Space) -> None:
    study = Study.open(tmp_path / "study.db", everything)
    rng = np.random.default_rng(1)
    study.observe_context(rng.normal(size=(6_000, 2)).clip(0.0, 1.0))  # summarized
    suggestions = study.ask(4)
    study.tell(suggestions[2], {"status": 1e-300, "{c}": 0.1 + 0.2}, 1 / 3, noise=0.01)
    study.tell(suggestions[0], None, -1e300)
    study.observe_context(rng.random((3, 2)), weights=[0.0, 1.0, 2.5])
    study.tell(suggestions[1], {"status": 5.0, "{c}": 0.5}, failed=True)
    study.tell_context(suggestions[0], {"status": -7.0, "{c}": 0.25})
    other = copy_of(study, tmp_path)
    one, two = study.state, other.state
    for name in ("x", "c", "y", "noise"):
        np.testing.assert_array_equal(getattr(one.observations, name), getattr(two.observations, name))
    np.testing.assert_array_equal(list(one.failed.values()), list(two.failed.values()))
    np.testing.assert_array_equal(list(one.pending.values()), list(two.pending.values()))
    for mine, theirs in zip(one.log.batches, two.log.batches, strict=True):
        np.testing.assert_array_equal(mine.rows, theirs.rows)
        np.testing.assert_array_equal(mine.weights, theirs.weights)
        assert (mine.count, mine.summary) == (theirs.count, theirs.summary)
    assert len(other.context_log) == 6_000 + 6
    export(other, tmp_path / "again.csv")
    assert _without_tokens(tmp_path / "again.csv") == _without_tokens(tmp_path / "table.csv")


def _without_tokens(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return [{key: text for key, text in row.items() if key not in ("id", "batch")} for row in csv.DictReader(file)]


@given(
    st.lists(
        st.tuples(
            st.floats(1.0, 9.0),
            st.floats(0.0, 1.0, allow_subnormal=False),
            st.floats(allow_nan=False, allow_infinity=False),
        ),
        min_size=1,
        max_size=4,
    )
)
@settings(max_examples=15, deadline=None)
def test_any_numbers_survive(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[float, float, float]]) -> None:
    folder = tmp_path_factory.mktemp("round")
    study = Study.open(folder / "study.db", Space(design={"speed": (1.0, 9.0)}, context={"humidity": (0.0, 1.0)}))
    for speed, humidity, value in rows:
        study.tell({"speed": speed}, [humidity], value)
    assert same_state(copy_of(study, folder).state, study.state)


def test_a_table_of_ones_own(tmp_path: Path, line: Space) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("humidity,speed,value\n0.5,3,1.5\n,4,2.5\n0.25,,\n0.75,,\n", encoding="utf-8-sig")
    study = Study.open(tmp_path / "study.db", line)
    assert import_csv(study, path).counts == {"told": 2, "context": 2}
    np.testing.assert_array_equal(study.observations.c, [[0.5], [np.nan]])
    assert study.observations.y.tolist() == [1.5, 2.5]
    assert len(study.context_log) == 3


def test_an_edited_design_wins_over_its_code(tmp_path: Path, line: Space) -> None:
    study = Study.open(tmp_path / "study.db", line)
    study.tell({"speed": 3.0}, [0.5], 1.0)
    path = export(study, tmp_path / "table.csv")
    path.write_text(path.read_text().replace(",3.0,", ",5.0,"))
    other = Study.open(tmp_path / "other.db", line)
    import_csv(other, path)
    assert other.observations.x.tolist() == line.encode_designs({"speed": 5.0}).tolist()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("speed,humidity,wind,value\n3,0.5,1,1\n", "'wind' is no variable"),
        ("speed,humidity,value\n3,0.5,1\n3,half,1\n", "line 3: a cell is not a number"),
        ("speed,humidity,value\n3,0.5,nan\n", "line 2: .*not finite"),
        ("speed,humidity,value\n11,0.5,1\n", "line 2: .*outside its bounds"),
        ("speed,humidity\n3,0.5\n", "line 2: a design without a value"),
        ("status,speed,value\ntold,3,\n", "line 2: a cell is missing"),
        ("status,id,humidity\nlate,7,0.5\n", "late row names '7'"),
    ],
)
def test_tables_that_cannot_be_used(tmp_path: Path, line: Space, text: str, message: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    study = Study.open(tmp_path / "study.db", line)
    with pytest.raises(StudyError, match=message):
        import_csv(study, path)
    assert study.state.next_id == 0


def test_files_that_are_no_tables(tmp_path: Path, line: Space) -> None:
    study = Study.open(tmp_path / "study.db", line)
    with pytest.raises(StudyError, match="No such file"):
        import_csv(study, tmp_path / "missing.csv")
    path = tmp_path / "binary.csv"
    path.write_bytes(b"\xff\xfe\x00speed")
    with pytest.raises(StudyError, match="not a CSV file"):
        import_csv(study, path)


def test_contexts_outside_their_bounds_are_kept_with_a_warning(tmp_path: Path, line: Space) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("speed,humidity,value\n3,1.5,1\n")
    study = Study.open(tmp_path / "study.db", line)
    with pytest.warns(ContextBoundsWarning):
        import_csv(study, path)
    assert study.observations.c.tolist() == [[1.5]]


def test_exports_of_an_empty_study(tmp_path: Path, line: Space) -> None:
    file = io.StringIO()
    assert export_csv(Study.open(tmp_path / "study.db", line).state, file) == 0
    assert file.getvalue() == "status,id,speed,humidity,value,noise,weight,batch,count,coded,why,note,by,at\n"
