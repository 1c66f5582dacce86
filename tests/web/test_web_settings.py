"""Every setting of Python can be given on the page and in TOML."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from live import study_server

from edrbo import EarlierStudy, Limit, Maximize, Space, Study
from edrbo.errors import EdrboError
from edrbo.lab.config import read_toml
from edrbo.lab.entry import read_outcome_words, read_setting
from edrbo.records.settings import Settings

GIVEN = {  # as they are typed on the page, and what they come to
    "title": ("Line 2", "Line 2"),
    "outcome_range": ("0 : 99,5", (0.0, 99.5)),
    "method": ("erbo", "erbo"),
    "initial": ("7", 7),
    "evaluations": ("40", 40),
    "seed": ("17", 17),
    "least_success": ("90 %", 0.9),
    "outliers": ("keep", "keep"),
    "context_half_life": ("12,5", 12.5),
    "drift": ("learned", "learned"),
    "noise_model": ("constant", "constant"),
}
TOP = {"direction": "minimize", "goal": "cvar:0.2", "aim": "identify", "outcome": "haze", "unit": "%"}
TOP |= {"context_distribution": "humidity = norm(55, 12)", "cost": "5 + speed"}
VARIABLES = {
    "design": [{"name": "speed", "low": "1", "high": "9"}],
    "context": [{"name": "humidity", "low": "0", "high": "100"}],
}


def test_every_setting_can_be_given_on_the_page_and_stands_in_toml(tmp_path: Path) -> None:
    with study_server(tmp_path) as client:
        body = {"name": "line", **VARIABLES, **TOP, "settings": {name: text for name, (text, _) in GIVEN.items()}}
        assert client.post("/api/v1/new", body).status == 200
        form, setup = client.get("/new").text, client.get("/s/line/setup").text
    names = {choice.name for choice in Settings.choices()}
    assert names == {*GIVEN, *TOP, "outcomes", "earlier"}  # what is read from files is not entered on a page
    for page, elsewhere in (
        (form, {*TOP, "outcomes"}),
        (setup, {"goal", "aim", "context_distribution", "cost", "outcomes"}),
    ):
        offered = set(re.findall(r'name="(?:settings\.)?(\w+)"', page))
        assert {*GIVEN, *elsewhere} <= offered
    assert {"unit", "direction"} <= set(re.findall(r'name="settings\.(\w+)"', setup))
    settings = read_toml(tmp_path / "line.toml").settings
    space = Space({"speed": (1, 9)}, {"humidity": (0, 100)})
    assert settings == Settings(space, **TOP, **{name: value for name, (_, value) in GIVEN.items()})


def test_earlier_studies_are_shown_and_said_where_they_are_set(tmp_path: Path) -> None:
    first = EarlierStudy("line 1", [{"speed": 2.0}, {"speed": 5.0}], [1.0, 3.0])
    Study.open(tmp_path / "x.db", Space({"speed": (1, 9)}), name="x", earlier=[first])
    with study_server(tmp_path / "x.db") as client:
        page = client.get("/s/x/setup").text
        assert "line 1 (2 runs)" in page
        assert "edrbo new --earlier" in page
        refused = client.write("amend", "x", settings={"earlier": "/etc/passwd"}, note="slip")
        assert refused.status == 422
        assert "not entered here" in refused.text


def test_settings_are_changed_and_ended(tmp_path: Path) -> None:
    study = Study.open(
        tmp_path / "x.db", Space({"speed": (1, 9)}), name="x", context_half_life=5.0, unit="GU", outcome="gloss"
    )
    with study_server(tmp_path / "x.db") as client:
        more = {"context_half_life": "none", "evaluations": "30", "least_success": "75 %", "method": "edrbo-mean"}
        assert client.write("amend", "x", settings=more, note="why").status == 200
        outcomes = ["gloss=maximize", "roughness <= 2,5 um"]
        assert client.write("amend", "x", outcomes=outcomes, note="measured too").status == 200
        page = client.get("/s/x/setup").text
        row = page.partition('value="roughness"')[2]
        assert [words for words in ('value="um"', 'value="upper" selected', 'value="2.5"') if words in row] == [
            'value="um"',
            'value="upper" selected',
            'value="2.5"',
        ]
        for wrong in ({"evaluation": "3"}, {"initial": "many"}, {"initial": "2.5"}, {"seed": ""}):
            assert client.write("amend", "x", settings=wrong, note="slip").status == 422
    changed = study.state.settings
    assert (changed.context_half_life, changed.evaluations, changed.least_success) == (None, 30, 0.75)
    assert (
        changed.outcomes
        == Settings(
            changed.space, outcomes={"gloss": Maximize(unit="GU"), "roughness": Limit(upper=2.5, unit="um")}
        ).outcomes
    )


@pytest.mark.parametrize(
    ("word", "aim"),
    [
        ("roughness<=2.2", Limit(upper=2.2)),
        ("roughness ≥ 2,2 um", Limit(lower=2.2, unit="um")),
        ("roughness=limit,upper=2,2,probability=80 %", Limit(upper=2.2, probability=0.8)),
        ("roughness=limit,upper=2", Limit(upper=2.0)),
    ],
)
def test_a_limit_in_words(word: str, aim: Limit) -> None:
    assert read_outcome_words([word]) == {"roughness": aim}


@pytest.mark.parametrize("word", ["roughness <= two", "roughness <= 1,234", "roughness"])
def test_a_limit_that_is_not_understood(word: str) -> None:
    with pytest.raises(EdrboError):
        read_outcome_words([word])


def test_settings_in_words() -> None:
    assert [read_setting(name, text) for name, (text, _) in GIVEN.items()] == [value for _, value in GIVEN.values()]
