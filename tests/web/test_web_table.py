"""Tables that people paste: what is understood, errors by cell, nothing stored before it is confirmed."""

from __future__ import annotations

from pathlib import Path

import pytest
from live import Client, new_key, study_server

from edrbo import Space, Study

GERMAN = "Speed (m/min);LAYERS;kind;humidity;load;value\n2,5;1;plain;40;1,5;3,25\n4;2;glossy;50;2;4\n"


def test_a_german_table(client: Client, study: Study) -> None:
    found = client.write("import", text=GERMAN).json
    assert found["mapping"] == ["speed", "layers", "kind", "humidity", "load", "value"]
    assert (found["errors"], found["counts"], found["ready"]) == ([], {"told": 2}, True)
    assert len(study) == 0
    assert client.write("import", text=GERMAN, confirm=True, by="Ada").json["words"] == "2 told"
    assert study.observations.y.tolist() == [3.25, 4.0]
    assert study.state.history[0].by == "Ada"


def test_sent_again_it_is_known(client: Client, study: Study) -> None:
    key = new_key()
    client.write("import", key=key, text=GERMAN, confirm=True)
    again = client.write("import", key=key, text=GERMAN, confirm=True)
    assert (again.status, again.json["known"]) == (200, 2)
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
    assert found["mapping"] == ["-", "layers", "kind", "humidity", "load", "-", "-"]
    assert not found["ready"]
    columns = {"0": "speed", "5": "value"}
    assert client.write("import", text=text, columns=columns).json["counts"] == {"told": 1}
    assert client.write("import", text=text, columns=columns, confirm=True).status == 200
    assert study.observations.y.tolist() == [3.0]
    twice = client.write("import", text=text, columns={"0": "value", "5": "value"}).json
    assert "two columns" in twice["problem"]


def test_the_name_of_what_is_measured_is_understood(tmp_path: Path) -> None:
    Study.open(tmp_path / "x.db", Space({"speed": (1, 9)}), name="x", outcome="gloss", unit="GU")
    with study_server(tmp_path / "x.db") as client:
        found = client.write("import", "x", text="speed\tGloss (GU)\n2\t90\n").json
        assert (found["mapping"], found["counts"]) == (["speed", "value"], {"told": 1})
        (error,) = client.write("import", "x", text="speed\tGloss\n2\tx\n").json["errors"]
        assert error["words"] == "value is 'x'; give a number, as 1.7 or 1,7"


@pytest.mark.parametrize("text", ["", "speed", "speed\n", "\x00", "a,b\n1,2"])
def test_what_is_no_table(client: Client, study: Study, text: str) -> None:
    answer = client.write("import", text=text, confirm=True)
    assert answer.status == 422
    assert answer.json["error"]
    assert len(study) == 0
