"""Tables that people paste: what is understood, errors by cell, nothing stored before it is confirmed."""

from __future__ import annotations

import base64
import threading
from pathlib import Path
from typing import Any

import pytest
from live import Client, new_key, study_server

from edrbo import Limit, Maximize, Space, Study
from edrbo.lab.tables.sheet import sheet_of_text
from edrbo.lab.tables.table_row import RowReader, match_columns
from edrbo.lab.web import api, table

GERMAN = "Speed (m/min);LAYERS;kind;humidity;load;value\n2,5;1;plain;40;1,5;3,25\n4;2;glossy;50;2;4\n"


def test_a_german_table(client: Client, study: Study) -> None:
    found = client.write("import", text=GERMAN).json
    assert found["mapping"] == ["speed", "layers", "kind", "humidity", "load", "value"]
    assert (found["errors"], found["counts"], found["ready"]) == ([], {"reported": 2}, True)
    assert len(study) == 0
    assert client.write("import", text=GERMAN, confirm=True, by="Ada").json["words"] == "2 runs"
    assert study.observations.y.tolist() == [3.25, 4.0]
    assert study.state.history[0].by == "Ada"


def test_sent_again_it_is_known(client: Client, study: Study) -> None:
    key = new_key()
    client.write("import", key=key, text=GERMAN, confirm=True)
    again = client.write("import", key=key, text=GERMAN, confirm=True)
    assert (again.status, again.json["stored"]) == (200, True)
    assert client.write("import", text=GERMAN, confirm=True).json["known"] == 2
    assert len(study) == 2


def test_errors_by_cell(client: Client, study: Study) -> None:
    text = GERMAN.replace("glossy", "shiny").replace("3,25", "much").replace("2,5;", "25;")
    found = client.write("import", text=text).json
    assert sorted((error["row"], error["column"]) for error in found["errors"]) == [(0, 0), (0, 5), (1, 2)]
    assert not found["ready"]
    assert client.write("import", text=text, confirm=True).status == 422
    assert len(study) == 0


def test_columns_can_be_mapped(client: Client, study: Study) -> None:
    text = "v\tlayers\tkind\thumidity\tload\tgloss\tcolour\n2\t1\tplain\t40\t1\t3\tred\n"
    found = client.write("import", text=text).json
    assert found["mapping"] == ["+", "layers", "kind", "humidity", "load", "+", "+"]
    assert not found["ready"]
    columns = {"0": "speed", "5": "value"}
    assert client.write("import", text=text, columns=columns).json["counts"] == {"reported": 1}
    assert client.write("import", text=text, columns=columns, confirm=True).status == 200
    assert study.observations.y.tolist() == [3.0]
    twice = client.write("import", text=text, columns={"0": "value", "5": "value"}).json
    assert "both are value" in twice["problem"]


def test_the_name_of_what_is_measured_is_understood(tmp_path: Path) -> None:
    Study.open(tmp_path / "x.db", Space({"speed": (1, 9)}), name="x", outcome="gloss", unit="GU")
    with study_server(tmp_path / "x.db") as client:
        found = client.write("import", "x", text="speed\tGloss (GU)\n2\t90\n").json
        assert (found["mapping"], found["counts"]) == (["speed", "value"], {"reported": 1})
        (error,) = client.write("import", "x", text="speed\tGloss\n2\tx\n").json["errors"]
        assert error["words"] == "'x' is not a number; write a number, as 1.7 or 1,7"
        assert error["place"] == "row 2, column Gloss (cell B2)"


def test_every_outcome_of_a_table_is_stored(tmp_path: Path) -> None:
    outcomes = {"gloss": Maximize(unit="GU"), "roughness": Limit(upper=2.0, unit="um")}
    study = Study.open(tmp_path / "x.db", Space({"speed": (1, 9)}), name="x", outcomes=outcomes)
    text = "Speed\tGloss\troughness\tnoise_variance:roughness\tOperator\tbatch no\n2\t71 GU\t1,5 um\t0.01\tAda\t7\n"
    with study_server(tmp_path / "x.db") as client:
        found = client.write("import", "x", text=text).json
        assert found["mapping"] == ["speed", "value", "roughness", "noise_variance:roughness", "by", "+"]
        assert client.write("import", "x", text=text, confirm=True).status == 200
    (run,) = study.runs
    assert (run.value, run.others, run.others_noise_variance) == (71.0, {"roughness": 1.5}, {"roughness": 0.01})
    assert (study.state.history[0].by, study.state.history[0].note) == ("Ada", "batch no: 7")


def test_what_tell_would_ask_about_is_shown(client: Client, study: Study) -> None:
    rows = "".join(f"2;1;plain;{humidity};1;3\n" for humidity in (41, 55, 62, 48, 83, 70, 66, 59, 52, "0,52"))
    found = client.write("import", text=f"speed;layers;kind;humidity;load;value\n{rows}").json
    (doubt,) = found["doubts"]
    assert doubt["line"] == 11
    assert "as a share of one would be; did you mean 52?" in doubt["words"]
    assert found["ready"]


def test_an_excel_file(client: Client, study: Study, tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["Speed", "layers", "kind", "humidity", "load", "value"])
    book.active.append([2.5, 1, "plain", 40, 1.5, 3.25])
    book.save(tmp_path / "t.xlsx")
    whole = base64.b64encode((tmp_path / "t.xlsx").read_bytes()).decode()
    assert client.write("import", workbook=whole).json["counts"] == {"reported": 1}
    assert client.write("import", workbook=whole, confirm=True).status == 200
    assert study.observations.y.tolist() == [3.25]
    for broken in (whole[:-40], "!", "UEsDBA=="):
        answer = client.write("import", workbook=broken)
        assert answer.status == 422
        assert "/" not in answer.json["error"]


@pytest.mark.parametrize("text", ["", "speed", "speed\n", "\x00", "a,b\n1,2"])
def test_what_is_no_table(client: Client, study: Study, text: str) -> None:
    answer = client.write("import", text=text, confirm=True)
    assert answer.status == 422
    assert answer.json["error"]
    assert len(study) == 0


def test_a_long_table_is_stored_while_others_enter(
    client: Client, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request ends, the job says how far it is, and an entry waits for neither."""
    begun, go_on = threading.Event(), threading.Event()
    plan_table = table.plan_table

    def slowly(*given: Any, progress: Any = None, **more: Any) -> Any:
        def reported(done: int, of: int) -> None:
            progress(done, of)
            begun.set()
            assert go_on.wait(60)

        return plan_table(*given, progress=reported, **more)

    monkeypatch.setattr(api, "PATIENCE", 0.0)
    monkeypatch.setattr(table, "plan_table", slowly)
    answer = client.write("import", text=GERMAN, confirm=True)
    assert answer.status == 202
    assert begun.wait(60)
    job = client.get(f"/api/studies/coating/job?job={answer.json['job'].replace(' ', '%20')}").json
    assert (job["status"], job["done"], job["of"]) == ("running", 1, 2)
    design = {"speed": "3", "layers": "2", "kind": "plain"}
    assert client.write("tell", design=design, value="7,5").status == 200
    go_on.set()
    done = client.follow(answer.json["job"])
    assert done["result"]["words"] == "2 runs"
    assert sorted(study.observations.y.tolist()) == [3.25, 4.0, 7.5]


def test_reading_a_table_takes_a_time_that_grows_with_its_columns_and_no_more() -> None:
    """Four times the columns: a reader that looks at all of them for every cell would look sixteen times as often."""

    class Counted(dict[str, Any]):
        looks = 0

        def __contains__(self, key: object) -> bool:
            Counted.looks += 1
            return super().__contains__(key)

        def items(self) -> Any:
            Counted.looks += len(self)
            return super().items()

        def __iter__(self) -> Any:
            Counted.looks += len(self)
            return super().__iter__()

    looks = []
    for columns in (10, 40):
        names = [f"x{k}" for k in range(columns)]
        space = Space({name: (0, 1) for name in names})
        sheet = sheet_of_text(
            "t", ",".join([*names, "value"]) + "\n" + (",".join(["0.5"] * columns + ["1"]) + "\n") * 8
        )
        reader = RowReader(sheet, match_columns(sheet, None, space), space)
        reader._design = Counted(reader._design)
        Counted.looks = 0
        rows = [reader.parse(row) for row in sheet.rows]
        assert len(rows) == 8
        looks.append(Counted.looks)
    assert looks[1] <= 4 * looks[0]
