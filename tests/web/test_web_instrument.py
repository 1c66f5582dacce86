"""What makes the page an instrument: notes, tables taken back, limits with their needs, ranges, names, plain tables."""

from __future__ import annotations

import pytest
from live import Client

from edrbo import Limit, Maximize, Study
from edrbo.lab.web.setup import outcome_rows
from edrbo.records.outcomes import Outcomes
from edrbo.records.settings import Settings
from edrbo.space import Space

API = "/api/v1/studies/coating"
TABLE = "speed\tlayers\tkind\thumidity\tload\tvalue\n"


def rows(count: int) -> str:
    return TABLE + "".join(f"{1 + 0.2 * k}\t1\tplain\t50\t3\t{10 + k}\n" for k in range(count))


def test_a_table_is_taken_back_in_one_go(client: Client, study: Study) -> None:
    study.tell({"speed": 2, "layers": 1, "kind": "plain"}, [50, 3], 1.0)
    assert "Take all of it back" not in client.get("/s/coating/import").text
    assert client.write("import", **{"text": rows(12), "confirm": True, "by": "Kim"}).json["stored"]
    page = client.get("/s/coating/import").text
    assert "It brought 12 rows, entered by Kim" in page
    told = client.write("undo", **{"table": True, "key": "undo-the-table"}).json
    assert told["words"] == "12 rows of the last table"
    assert client.write("undo", **{"table": True, "key": "undo-the-table"}).json["again"]  # a double tap
    assert len(study.state.reported) == 1
    assert client.write("undo", **{"table": True}).status == 422


def test_a_note_on_the_study_stands_on_the_first_screen(client: Client, study: Study) -> None:
    assert client.write("note", **{"note": "another roll <b>", "by": "Kim"}).status == 200
    assert "another roll &lt;b&gt;" in client.get("/s/coating/").text
    client.write("undo", **{})
    assert "another roll" not in client.get("/s/coating/").text


def test_an_entry_is_never_signed_with_the_login_of_the_server(client: Client, study: Study) -> None:
    design = {"speed": 2, "layers": 1, "kind": "plain"}
    client.write("tell", **{"design": design, "context": {"humidity": 50, "load": 3}, "value": 1})
    client.write("tell", **{"design": design, "context": {"humidity": 50, "load": 3}, "value": 2, "by": "Kim"})
    assert [event.by for event in study.state.history] == ["unnamed", "Kim"]


def test_a_range_is_narrowed_and_a_level_retired_on_the_page(client: Client, study: Study) -> None:
    for speed, kind in ((2, "plain"), (8, "glossy")):
        study.tell({"speed": speed, "layers": 1, "kind": kind}, [50, 3], 1.0)
    space = study.space
    study.amend({"space": Space({**space.design, "kind": ["plain", "glossy", "matt"]}, space.context).to_dict()})
    body = [
        {"name": "speed", "low": "3", "high": "7"},
        {"name": "layers", "kind": "integer", "low": "1", "high": "4"},
        {"name": "kind", "kind": "categorical", "choices": "plain, matt"},
    ]
    told = client.write("amend", **{"design": body, "note": "worn"})
    assert told.status == 200, told.text
    assert "3 to 7; runs may lie from 1 to 9" in told.json["words"]
    assert study.state.space.design["speed"].limits() == (1.0, 9.0)
    page = client.get("/s/coating/setup").text
    assert 'value="3"' in page
    assert "plain or matt; glossy no longer suggested" in page
    assert "speed &gt;= 3" not in page  # it stands with the range
    assert client.write("amend", **{"design": body, "note": "again"}).status == 422  # nothing changes
    body[0] |= {"low": "1", "high": "9"}
    assert client.write("amend", **{"design": body, "note": "mended"}).status == 200
    assert [one.text for one in study.state.space.constraints] == ["kind != glossy"]


def test_the_download_is_for_people_and_the_export_for_programs(client: Client, study: Study) -> None:
    study.tell({"speed": 2, "layers": 1, "kind": "plain"}, [50, 3], 1.0)
    assert f"{API}/export?plain=true" in client.get("/s/coating/runs").text
    assert client.get(f"{API}/export?plain=true").text.startswith("run,speed,layers,kind,humidity,load,value,status")
    assert client.get(f"{API}/export").text.startswith("status,id,")


def test_a_limit_has_fields_and_says_what_it_needs(client: Client, study: Study) -> None:
    study.tell({"speed": 2, "layers": 1, "kind": "plain"}, [50, 3], 1.0)
    told = client.write("amend", **{"outcomes": ["value=maximize,unit=GU", "haze=limit,upper=2,probability=0.9"]})
    assert told.status == 200, told.text
    page = client.get("/s/coating/setup").text
    assert "22 conditions must be known, even if none breaks it; there are 1." in page
    assert 'data-of="share" inputmode="decimal" autocomplete="off" value="90"' in page


@pytest.mark.parametrize(
    ("part", "row"),
    [
        (Limit(upper=2.5, unit="um"), ("upper", "2.5", "95")),
        (Limit(lower=0.1, probability=0.8), ("lower", "0.1", "80")),
        (Limit(lower=0.1, upper=2.0), None),
        (Limit(upper=2.0, confidence=0.99), None),
    ],
)
def test_what_no_field_can_say_stays_a_text(part: Limit, row: tuple[str, str, str] | None) -> None:
    wanted = Outcomes((("gloss", Maximize(unit="GU")), ("haze", part)))
    found = outcome_rows(Settings(Space({"x": (0, 1)}), outcomes=wanted))
    assert (None if found is None else tuple(found[1][name] for name in ("purpose", "number", "share"))) == row
