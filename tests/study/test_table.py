"""Export and import: the same, bit for bit; tables of people's own."""

from __future__ import annotations

import csv
import io
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edrbo.errors import ContextBoundsWarning, EdrboError, StudyError
from edrbo.lab import Study
from edrbo.lab.tables.csv_export import export_csv
from edrbo.lab.tables.csv_import import import_file
from edrbo.lab.tables.spreadsheet import export_xlsx
from edrbo.space import Real, Space
from factories import same_state


def export(study: Study, path: Path) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        export_csv(study.state, file)
    return path


def copy_of(study: Study, folder: Path) -> Study:
    other = Study.open(folder / "copy.db", study.space)
    import_file(other, export(study, folder / "table.csv"))
    return other


@pytest.mark.filterwarnings("ignore::edrbo.errors.ImplausibleWarning")
def test_a_round_trip_is_exact(tmp_path: Path, everything: Space) -> None:
    study = Study.open(tmp_path / "study.db", everything)
    rng = np.random.default_rng(1)
    study.observe_context(rng.normal(size=(6_000, 2)).clip(0.0, 1.0))  # summarized
    suggestions = study.ask(4)
    study.tell(suggestions[2], {"status": 1e-300, "{c}": 0.1 + 0.2}, 1 / 3, noise_variance=0.01, cost=0.1 + 0.2)
    study.tell(suggestions[0], None, -1e300)
    study.observe_context(rng.random((3, 2)), weights=[0.0, 1.0, 2.5])
    study.tell(suggestions[1], {"status": 5.0, "{c}": 0.5}, failed=True, cost=1 / 3)
    study.tell_context(suggestions[0], {"status": -7.0, "{c}": 0.25})
    other = copy_of(study, tmp_path)
    one, two = study.state, other.state
    for name in ("x", "c", "y", "noise_variance"):
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
    assert import_file(study, path).counts == {"reported": 2, "context": 2}
    np.testing.assert_array_equal(study.observations.c, [[0.5], [np.nan]])
    assert study.observations.y.tolist() == [1.5, 2.5]
    assert len(study.context_log) == 3


def test_an_edited_design_wins_over_its_code(tmp_path: Path, line: Space) -> None:
    study = Study.open(tmp_path / "study.db", line)
    study.tell({"speed": 3.0}, [0.5], 1.0)
    path = export(study, tmp_path / "table.csv")
    path.write_text(path.read_text().replace(",3.0,", ",5.0,"))
    other = Study.open(tmp_path / "other.db", line)
    import_file(other, path)
    assert other.observations.x.tolist() == line.encode_designs({"speed": 5.0}).tolist()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "speed,humidity,value\n3,0.5,1\n3,half,1\n",
            r"bad.csv, row 3, column humidity \(cell B3\): 'half' is not a number",
        ),
        ("speed,humidity,value\n3,0.5,nan\n", r"row 2, column value \(cell C2\): 'nan' is not a finite number"),
        ('speed,humidity,value\n3,0.5,"1,234"\n', "can be read in two ways"),
        ("speed,humidity,value\n11,0.5,1\n", "row 2, column speed .*no value of speed, which is 1 to 9"),
        ("speed,humidity,value,noise_variance\n3,0.5,1,1\n4,0.5,1,-1\n", "row 3: the noise variance is -1"),
        ("speed,humidity,value,noise_variance\n3,0.5,1,inf\n", "row 2, column noise_variance .*not a finite number"),
        ("humidity,weight\n0.5,nan\n", "row 2, column weight .*not a finite number"),
        ("humidity,weight\n0.5,-1\n", "row 2: "),
        ("speed,humidity\n3,0.5\n", "row 2: no column is called value"),
        ("status,speed,value\ntold,3,\n", "row 2: a cell is missing"),
        ("status,speed,value\nperhaps,3,1\n", "'perhaps' is no status"),
        ("speed,value,at\n3,1,yesterday\n", "'yesterday' is not a date"),
        ("speed,value,at\n3,1,04/05/2026\n", "day and month"),
        ("speed,Speed,value\n3,3,1\n", "both are|two columns"),
        ("speed,speed,value\n3,3,1\n", "two columns"),
        ("speed,,value\n3,3,1\n", "column B has no name"),
        ("speed,value\n3,1,7\n", "'7' stands in no column"),
        ('speed,value\n"3,1\n', "not a CSV file"),
        ("", "is empty"),
        ("status,id,humidity\nlate,7,0.5\n", "late row names '7'"),
    ],
)
def test_tables_that_cannot_be_used(tmp_path: Path, line: Space, text: str, message: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    study = Study.open(tmp_path / "study.db", line)
    with pytest.raises(EdrboError, match=message):
        import_file(study, path)
    assert study.state.next_id == 0


def test_files_that_are_no_tables(tmp_path: Path, line: Space) -> None:
    study = Study.open(tmp_path / "study.db", line)
    with pytest.raises(StudyError):
        import_file(study, tmp_path / "missing.csv")
    path = tmp_path / "binary.csv"
    path.write_bytes(b"PK\x00\x01speed")
    with pytest.raises(StudyError):
        import_file(study, path)


def test_contexts_outside_their_bounds_are_kept_with_a_warning(tmp_path: Path, line: Space) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("speed,humidity,value\n3,1.5,1\n")
    study = Study.open(tmp_path / "study.db", line)
    with pytest.warns(ContextBoundsWarning):
        import_file(study, path)
    assert study.observations.c.tolist() == [[1.5]]


def test_exports_of_an_empty_study(tmp_path: Path, line: Space) -> None:
    file = io.StringIO()
    assert export_csv(Study.open(tmp_path / "study.db", line).state, file) == 0
    assert file.getvalue() == "status,id,speed,humidity,value,noise_variance,weight,batch,count,coded,why,note,by,at\n"


# -------------------------------------------------------------------- what spreadsheets give

WORDS = (
    "Speed (m/min)|HUMIDITY|Value|Operator|Date|Line speed ok?|remark\n3,5|55%|1,25|Ana|14.03.2026 15:30|yes|a bubble\n"
)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("separator", [";", "\t"])
@pytest.mark.parametrize("end", ["", ";;"])
def test_what_excel_gives(tmp_path: Path, encoding: str, separator: str, end: str) -> None:
    text = "".join(f"{row}{end}\r\n" for row in WORDS.splitlines())
    path = tmp_path / "excel.csv"
    path.write_bytes(text.replace("|", separator).replace(";", separator).replace("Ana", "Añä").encode(encoding))
    space = Space(design={"speed": (1.0, 9.0)}, context={"humidity": (0.0, 1.0)})
    study = Study.open(tmp_path / "study.db", space)
    plan = import_file(study, path)
    assert plan.noted == ("Line speed ok?",)
    (run,) = study.runs
    assert space.decode_designs(run.x)[0] == {"speed": pytest.approx(3.5)}
    assert (run.context.tolist(), run.value) == ([0.55], 1.25)
    reported = study.state.history[-1]
    assert (reported.by, reported.note) == ("Añä", "a bubble; Line speed ok?: yes")
    assert datetime.fromtimestamp(reported.at) == datetime(2026, 3, 14, 15, 30)


def test_per_cent_of_a_scale_to_a_hundred(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("speed,humidity,value\n3,55%,1\n4,60 %,1\n")
    study = Study.open(tmp_path / "s.db", Space({"speed": (1, 9)}, {"humidity": Real(0, 100, unit="%")}))
    import_file(study, path)
    assert study.observations.c.tolist() == [[55.0], [60.0]]


def test_a_filled_in_pending_row_completes_its_suggestion(tmp_path: Path, line: Space) -> None:
    study = Study.open(tmp_path / "study.db", line)
    suggestion = study.ask()
    path = export(study, tmp_path / "table.csv")
    header, row = path.read_text().splitlines()
    cells = dict(zip(header.split(","), row.split(","), strict=True)) | {"value": "2.5", "humidity": "0.5"}
    path.write_text(header + "\n" + ",".join(cells.values()) + "\n")
    assert import_file(study, path).counts == {"reported": 1}
    assert not study.pending
    (run,) = study.runs
    assert (run.id, run.value) == (suggestion.id, 2.5)


def test_importing_again_adds_nothing(tmp_path: Path, line: Space) -> None:
    study = Study.open(tmp_path / "study.db", line)
    study.observe_context([[0.1], [0.2]])
    one, two, three = study.ask(3)
    study.tell(one, None, 1.0)
    study.tell(two, [0.5], failed=True)
    study.cancel(three, "no time")
    study.ask()
    study.tell({"speed": 2.0}, [0.25], 1.5)
    study.tell({"speed": 2.0}, [0.25], 1.5)  # a repetition
    study.tell_context(one, [0.75])
    study.correct(4, value=1.75)
    study.drop(5, "smeared")
    before = study.state
    path = export(study, tmp_path / "table.csv")
    plan = import_file(study, path)
    assert (plan.events, plan.counts) == ((), {})
    assert plan.known == len(path.read_text().splitlines()) - 1
    assert same_state(study.state, before)
    other = Study.open(tmp_path / "other.db", line)
    import_file(other, path)
    assert import_file(other, path).events == ()
    assert [run.status for run in other.runs].count("cancelled") == 1
    more = import_file(other, path, again=True)
    assert more.known == 0
    assert len(other.runs) == 2 * len(study.runs)


def test_a_repetition_is_new(tmp_path: Path, line: Space) -> None:
    path = tmp_path / "t.csv"
    path.write_text("speed,humidity,value\n3,0.5,1\n3,0.5,1\n")
    study = Study.open(tmp_path / "s.db", line)
    assert import_file(study, path).counts == {"reported": 2}
    path.write_text("speed,humidity,value\n3,0.5,1\n3,0.5,1\n3,0.5,1\n")
    plan = import_file(study, path)
    assert (plan.counts, plan.known) == ({"reported": 1}, 2)


def test_everything_comes_back_also_who_when_and_why(tmp_path: Path, line: Space) -> None:
    study = Study.open(tmp_path / "study.db", line, by="Ana")
    first = study.ask(4)
    study.tell(first[0], [0.5], 1.0, note='a, "b"', at=1_700_000_000.25)
    study.tell(first[1], failed=True, why="tore")
    study.cancel(first[2], "no time")
    study.drop(first[1].id, "a fault of the machine")
    other = copy_of(study, tmp_path)
    assert [run.why for run in other.runs] == [None, "a fault of the machine", "no time", None]
    again = export(other, tmp_path / "again.csv")
    assert again.read_text() == (tmp_path / "table.csv").read_text()


# -------------------------------------------------------------------- .xlsx


def test_excel_files_come_back_exactly(tmp_path: Path, everything: Space) -> None:
    study = Study.open(tmp_path / "study.db", everything)
    suggestions = study.ask(3)
    study.tell(suggestions[0], {"status": 1e-300, "{c}": 0.1 + 0.2}, 1 / 3, noise_variance=0.01, note="=1+1")
    study.tell(suggestions[1], failed=True, why="tore")
    study.observe_context([[1.0, 0.5], [2.0, 0.25]])
    path = tmp_path / "table.xlsx"
    with path.open("wb") as file:
        assert export_xlsx(study.state, file) == 5
    other = Study.open(tmp_path / "other.db", everything)
    import_file(other, path)
    assert _without_tokens(export(other, tmp_path / "b.csv")) == _without_tokens(export(study, tmp_path / "a.csv"))
    assert import_file(other, path).events == ()


def test_an_excel_file_by_hand(tmp_path: Path, line: Space) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["Speed", "Humidity", "Value", "Date"])
    sheet.append([3, 0.5, 1.25, datetime(2026, 3, 14, 15, 30)])
    sheet.append([4.5, None, 2, None])
    book.save(tmp_path / "t.xlsx")
    study = Study.open(tmp_path / "s.db", line)
    assert import_file(study, tmp_path / "t.xlsx").counts == {"reported": 2}
    assert study.observations.y.tolist() == [1.25, 2.0]
    assert datetime.fromtimestamp(study.state.history[0].at) == datetime(2026, 3, 14, 15, 30)
    (tmp_path / "no.xlsx").write_bytes(b"speed,value")
    with pytest.raises(StudyError):
        import_file(study, tmp_path / "no.xlsx")


def test_cells_shown_as_percent_are_percent(tmp_path: Path) -> None:
    """0.52 that the spreadsheet shows as 52 % is 52 of a variable in %, 0.52 of a share, and nothing in m/min."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["speed", "share", "humidity", "value"])
    for humidity in (0.52, 0.07, 1.0):
        sheet.append([3, 0.3, humidity, 1.25])
        for cell, form in zip(sheet[sheet.max_row][:3], ("General", "0.0%", "0%"), strict=True):
            cell.number_format = form
    book.save(tmp_path / "t.xlsx")
    space = Space({"speed": Real(1, 9, unit="m/min"), "share": (0, 1)}, {"humidity": Real(0, 100, unit="%")})
    study = Study.open(tmp_path / "s.db", space)
    import_file(study, tmp_path / "t.xlsx")
    assert study.observations.c.tolist() == [[52.0], [7.0], [100.0]]
    assert space.decode_designs(study.observations.x)[0]["share"] == 0.3
    sheet["A2"].number_format = "0%"
    book.save(tmp_path / "u.xlsx")
    with pytest.raises(EdrboError, match=r"speed.*'300%'.*m/min"):
        import_file(study, tmp_path / "u.xlsx")
