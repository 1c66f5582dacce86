"""Contexts with levels on the command line and in TOML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from edrbo.lab import Study
from edrbo.space import Categorical, Integer, Real

Run = Any


def test_levels_are_made_reported_shown_and_amended(edrbo: Run, folder: Path) -> None:
    words = ["shift=day,night", "pallets=1:8:int", "size=small<medium<large", "humidity=0:100 %"]
    made = edrbo("new", "press.toml", "-d", "speed=10:60", *(part for word in words for part in ("-c", word)))
    assert made.code == 0, made.err
    space = Study.open(folder / "press.db").space
    assert space.context == {
        "shift": Categorical(["day", "night"]),
        "pallets": Integer(1, 8),
        "size": Categorical(["small", "medium", "large"], ordered=True),
        "humidity": Real(0, 100, unit="%"),
    }
    met = ["shift=Night", "pallets=4", "size=large", "humidity=40"]
    reported = edrbo("tell", "--design", "speed=30", "-v", 5, *(part for word in met for part in ("-c", word)))
    assert reported.code == 0, reported.err
    wrong = edrbo("tell", "--design", "speed=30", "-v", 5, *(p for w in ["shift=nigt", *met[1:]] for p in ("-c", w)))
    assert wrong.code != 0
    assert "did you mean 'night'" in wrong.err
    shown = edrbo("show", "--json").json
    assert shown["runs"][0]["context"] == {"shift": "night", "pallets": 4, "size": "large", "humidity": 40.0}
    assert "shift night" in edrbo("show", 0).out
    assert edrbo("edit", 0, "-c", "shift=day", "--yes").code == 0
    assert edrbo("amend", "--level", "shift=late", "--yes").code == 0
    assert edrbo("amend", "-c", "crew=a,b", "--was", "crew=b", "--yes").code == 0
    run = edrbo("show", "--json").json["runs"][0]
    assert run["context"] == {"shift": "day", "pallets": 4, "size": "large", "humidity": 40.0, "crew": "b"}


def test_rows_of_a_run_and_parts_of_a_context(edrbo: Run, folder: Path) -> None:
    words = ["-d", "speed=10:60", "-c", "humidity=0:100", "-c", "shift=day,night"]
    assert edrbo("new", "press.toml", *words).code == 0
    (folder / "hour.csv").write_text("humidity,shift,value,noise_variance\n40,day,1.5,\n41,,1.75,0.1\n")
    reported = edrbo("tell", "-d", "speed=30", "--rows", "hour.csv")
    assert reported.code == 0, reported.err
    assert "in 2 rows gave value 1.625 on average" in reported.out
    assert edrbo("tell", "-d", "speed=30", "--rows", "hour.csv", "-v", 3).code != 0
    (run,) = edrbo("show", "--json").json["runs"]
    assert run["rows"] == [
        {"context": {"humidity": 40.0, "shift": "day"}, "value": 1.5, "noise_variance": None},
        {"context": {"humidity": 41.0}, "value": 1.75, "noise_variance": 0.1},
    ]
    assert edrbo("edit", 0, "--row", 1, "-v", 2, "-c", "shift=night", "--yes").code == 0
    assert edrbo("show", "--json").json["runs"][0]["rows"][1]["context"] == {"humidity": 41.0, "shift": "night"}
    assert edrbo("tell", "-d", "speed=20", "-v", 2, "-c", "humidity=50").code == 0
    assert "what is not known yet" in edrbo("show", 1).out
    assert edrbo("context", "tell", 1, "shift=day").code == 0
    assert "what is not known yet" not in edrbo("show", 1).out.splitlines()[0]
    (folder / "empty.csv").write_text("humidity,shift,value\n,,2\n")
    wrong = edrbo("tell", "-d", "speed=30", "--rows", "empty.csv")
    assert wrong.code != 0
    assert "nothing of the context" in wrong.err
