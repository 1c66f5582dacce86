"""A study by clicking, in real Chromium."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from chromium import DESK, PHONE, TABLET, Browser, Browsers, home_of, needs_chromium
from live import Client, study_server
from process import process
from selenium.webdriver.common.keys import Keys

from edrbo import Space, Study

pytestmark = needs_chromium

RUNS = 15


def truth(speed: float, humidity: float) -> float:
    return 10 - (speed - 5) ** 2 - 0.01 * (humidity - 50)


@pytest.fixture
def size() -> tuple[int, int]:
    return PHONE


@pytest.fixture
def page(client: Client, browsers: Browsers, size: tuple[int, int]) -> Browser:
    return browsers.open(home_of(client), size)


on_a_tablet = pytest.mark.parametrize("size", [TABLET], ids=["tablet"])
at_a_desk = pytest.mark.parametrize("size", [DESK], ids=["session"])


def enter(page: Browser, number: int, value: str, humidity: str) -> None:
    page.click(f"#done-{number}")
    page.type("#value", value)
    page.type("#c1", humidity)
    page.type("#c2", "3")
    page.click("#store")
    page.find("#undo")  # it was stored


@pytest.mark.parametrize("initial", [RUNS - 2])  # the last two are worked out by a model
def test_a_whole_study(page: Browser, study: Study) -> None:
    """Handed on from the phone to the tablet to the desk, five runs each."""
    page.go()
    page.click("#who")
    page.type("#name-field", "Ada")
    page.click("#name-dialog .main")
    for k in range(RUNS):
        page.look((PHONE, TABLET, DESK)[k * 3 // RUNS], ("light", "dark")[k % 2])
        page.click("#ask")
        page.find(f"#done-{k}")
        speed = study.state.space.decode_designs(study.state.runs[k].x)[0]["speed"]
        enter(page, k, f"{truth(speed, 40 + k):.4f}".replace(".", ","), str(40 + k))
    assert len(study) == RUNS
    for k, run in study.state.runs.items():
        speed = study.space.decode_designs(run.x)[0]["speed"]
        assert run.value == pytest.approx(truth(speed, 40 + k), abs=1e-3)
        assert run.context is not None
        assert run.context.tolist() == [40.0 + k, 3.0]
    assert {event.by for event in study.state.history} == {"Ada"}
    page.go("answer")
    page.find(".answer .facts")
    page.go("charts")
    page.find(".charts svg")
    assert page.errors() == []


def test_undo_corrections_and_exclusions(page: Browser, study: Study) -> None:
    study.ask(3)
    page.go()
    enter(page, 0, "5", "50")
    page.click("#undo")
    page.find("#done-0")
    assert study.state.runs[0].status == "pending"
    enter(page, 0, "6", "50")
    page.go("run/0")
    page.click("details:nth-of-type(1) summary")
    page.type("#fix-value", "7,5")
    page.type("#fix-why", "misread")
    page.click("#correct")
    page.until(lambda: "7.5" in page.text("h1"))
    page.click("details:nth-of-type(2) summary")
    page.type("#drop-why", "spilled")
    page.click("#drop")
    page.click("#restore")
    page.until(lambda: page.has("#drop"))
    run = study.state.runs[0]
    assert (run.value, run.dropped) == (7.5, False)
    page.go()
    page.click("#failed-1")
    page.type("#why", "blocked")
    page.click("#unmeasured")
    page.click("#store")
    page.click("#skip-2")
    page.click("#store")
    page.find(".empty")  # Now, with nothing to run
    assert [run.status for run in study.state.runs.values()] == ["reported", "failed", "cancelled"]


@on_a_tablet
def test_what_is_odd_is_questioned(page: Browser, study: Study) -> None:
    for k in range(6):
        study.tell({"speed": 1 + k, "layers": 1, "kind": "plain"}, [50, 3], 10.0 + k)
    study.ask()
    page.go("enter/6")
    page.type("#c1", "155")
    page.type("#c2", "3")
    page.type("#value", "1e6")
    assert "amber" in page.find("#c1").get_attribute("class")
    page.click("#store")
    assert "Is this right?" in page.text(".form-said")
    assert "humidity is 155, outside 0 to 100" in page.text(".doubts")
    assert len(study) == 6
    page.click(".sure")
    page.click("#store")
    page.find("#undo")
    assert study.state.runs[6].value == 1e6


@pytest.mark.parametrize("space", [Space({"speed": (1, 9)}, {"shift": ["day", "night"]})], ids=["choices"])
def test_a_condition_that_is_a_choice(page: Browser, study: Study) -> None:
    study.tell({"speed": 2}, {"shift": "night"}, 3.0)
    page.go("enter")
    page.type("#value", "4")
    page.type("#d1", "5")
    page.click("#store")
    assert "Fill in every condition" in page.text(".form-said")
    page.click("[data-fill=c1]")
    assert "red" not in page.find("#c1").get_attribute("class").split()
    page.click("#store")
    page.find("#undo")
    assert study.state.runs[1].context is not None
    assert study.space.name_contexts(study.state.runs[1].context[None]) == [{"shift": "night"}]


@at_a_desk
def test_a_double_tap_stores_once(page: Browser, study: Study) -> None:
    page.go("enter")
    for field, text in (("d1", "3"), ("d2", "2"), ("c1", "50"), ("c2", "3"), ("value", "4")):
        page.type(f"#{field}", text)
    page.find("#d3").send_keys("glossy")
    page.driver.execute_script("const b = document.getElementById('store'); b.click(); b.click(); b.click()")
    page.find("#undo")
    assert len(study) == 1


def test_two_browsers_and_the_command_line_see_each_other(client: Client, study: Study, browsers: Browsers) -> None:
    one, two = browsers.open(home_of(client), PHONE), browsers.open(home_of(client), TABLET)
    one.go()
    two.go("runs")
    one.click("#ask")
    two.find(".is-pending")
    one.find("#done-0")
    enter(one, 0, "5", "50")
    two.find(".is-reported")
    study.tell({"speed": 2, "layers": 1, "kind": "plain"}, [50, 3], 8.25)  # from the command line
    two.until(lambda: "8.25" in two.text(".data"))
    one.until(lambda: "8.25" in one.text("#latest"))


def test_an_entry_survives_a_server_that_is_away(study: Study, tmp_path: Path, browsers: Browsers) -> None:
    study.ask(2)
    with process(tmp_path / "coating.db") as server:
        page = browsers.open(f"http://127.0.0.1:{server.port}/s/coating/", PHONE)
        page.go("enter/0")
        page.type("#value", "5,5")
        page.type("#c1", "50")
        page.type("#c2", "3")
        server.kill()
        page.click("#store")
        page.until(lambda: "Kept on this device" in page.text("#waiting"))
        assert len(study) == 0
        server.start()
        page.until(lambda: "Sent now" in page.text("#said"))
        assert study.state.runs[0].value == 5.5
        assert not page.find("#waiting").is_displayed()
        page.go()
        enter(page, 1, "6", "50")  # the page of a server that was started again
    assert len(study) == 2


@at_a_desk
def test_a_table_is_looked_at_before_it_is_stored(page: Browser, study: Study) -> None:
    page.go("import")
    text = "speed;layers;kind;humidity;load;Gloss\\n2,5;1;plain;40;1;3,5\\n3;2;glossy;50;2;x"
    page.driver.execute_script(f"document.getElementById('table').value = '{text}'")
    page.click("#preview")
    page.find("#preview-table th:nth-child(6) select").send_keys("value")
    page.find("td.wrong")
    assert not page.find("#confirm").is_enabled()
    page.driver.execute_script(f"document.getElementById('table').value = '{text.replace('x', '4,5')}'")
    page.click("#preview")
    page.until(lambda: page.find("#confirm").is_enabled())
    assert len(study) == 0
    page.click("#confirm")
    page.find("#said span")
    assert study.observations.y.tolist() == [3.5, 4.5]


def test_a_new_study_and_its_first_run_by_keyboard_alone(tmp_path: Path, space: Space, browsers: Browsers) -> None:
    Study.open(tmp_path / "one.db", space)
    with study_server(tmp_path) as client:
        page = browsers.open(f"http://127.0.0.1:{client.port}/", DESK)
        page.go("new")
        page.find("#study-name").click()
        keys = page.driver.switch_to
        keys.active_element.send_keys("Kiln")
        for name, word in (("design1-name", "heat"), ("design1-low", "10"), ("design1-high", "20,5")):
            walk(page, name).send_keys(word)
        keys.active_element.send_keys(Keys.ENTER)
        page.until(lambda: "/s/kiln/" in page.driver.current_url)
        press(page, "ask")
        page.find("#done-0")
        press(page, "done-0")
        page.find("#value")
        walk(page, "value").send_keys("4,5")
        press(page, "store")
        page.find("#undo")
        page.go("s/kiln/import")
        walk(page, "file")
        assert page.driver.execute_script(FOCUSED, page.find("label[for=file]")) == "solid"
    study = Study.open(tmp_path / "kiln.db")
    assert study.space.design["heat"].upper == 20.5
    assert study.observations.y.tolist() == [4.5]


FOCUSED = "return getComputedStyle(arguments[0]).outlineStyle"


def walk(page: Browser, name: str) -> Any:
    """By the Tab key to the element of that name, which it must reach."""
    keys = page.driver.switch_to
    for _ in range(60):
        if keys.active_element.get_attribute("id") == name:
            return keys.active_element
        keys.active_element.send_keys(Keys.TAB)
    raise AssertionError(f"the keyboard does not reach {name}")


def press(page: Browser, name: str) -> None:
    walk(page, name).send_keys(Keys.ENTER)


def test_reading_works_without_javascript(client: Client, study: Study, browsers: Browsers) -> None:
    study.tell({"speed": 2, "layers": 1, "kind": "plain"}, [50, 3], 8.25)
    page = browsers.open(home_of(client), PHONE)
    page.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    page.go()
    page.click("nav a:nth-child(2)")
    assert "8.25" in page.find(".data").get_attribute("textContent")
