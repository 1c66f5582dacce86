"""In real Chromium: charts that speak and lead to runs, runs that are compared, forms that show what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from chromium import DESK, PHONE, Browser, Browsers, home_of, needs_chromium
from live import Client, study_server
from process import process
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By

from edrbo import Space, Study

pytestmark = needs_chromium


@pytest.fixture
def known(study: Study) -> Study:
    for k in range(6):
        study.tell({"speed": 1.5 + k, "layers": 1, "kind": "plain"}, [50 + k, 3], 10.0 + k)
    return study


def dots(page: Browser) -> list[object]:
    page.find(".charts .dot[data-run]")
    visible = ".charts figure:first-child > svg:not([style]) .dot[data-run]"
    return [one for one in page.driver.find_elements(By.CSS_SELECTOR, visible) if one.is_displayed()]


def test_a_chart_says_its_numbers_and_opens_the_run(client: Client, known: Study, browsers: Browsers) -> None:
    page = browsers.open(home_of(client), DESK)
    page.go("charts")
    dot = dots(page)[2]
    page.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", dot)

    def hovered() -> str:  # again, should anything have moved meanwhile
        ActionChains(page.driver).move_to_element(dots(page)[2]).perform()
        return str(page.driver.find_element(By.ID, "tip").text)

    assert "run 2: value 12" in page.until(hovered)
    assert "humidity 52" in page.text("#tip")
    ActionChains(page.driver).click(dot).perform()
    page.until(lambda: page.driver.current_url.endswith("/run/2"))
    assert page.errors() == []


def test_a_tap_shows_the_numbers_with_a_way_to_the_run(client: Client, known: Study, browsers: Browsers) -> None:
    page = browsers.open(home_of(client), PHONE)
    page.go("charts")
    dot = dots(page)[3]
    page.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", dot)
    tap = """const box = arguments[0].getBoundingClientRect();
      arguments[0].dispatchEvent(new PointerEvent("click", {bubbles: true, pointerType: "touch",
        clientX: box.x + box.width / 2, clientY: box.y + box.height / 2}))"""
    page.driver.execute_script(tap, dot)
    assert "run 3: value 13" in page.text("#tip")
    page.click("#tip a")
    page.until(lambda: page.driver.current_url.endswith("/run/3"))


def test_a_chart_is_enlarged_and_brought_closer(client: Client, known: Study, browsers: Browsers) -> None:
    page = browsers.open(home_of(client), DESK)
    page.go("charts")
    page.click(".charts figure .enlarge")
    page.find("dialog.zoomed[open]")
    box = "dialog.zoomed .chart > svg.broad"
    whole = page.find(box).get_dom_attribute("viewBox").split()
    page.click("dialog.zoomed [aria-label='Zoom in']")
    closer = page.find(box).get_dom_attribute("viewBox").split()
    assert float(closer[2]) == pytest.approx(float(whole[2]) / 1.5)
    svg = page.find(box)
    ActionChains(page.driver).move_to_element(svg).click_and_hold().move_by_offset(-60, 0).release().perform()
    assert float(page.find(box).get_dom_attribute("viewBox").split()[0]) > float(closer[0])
    for _ in range(3):
        page.click("dialog.zoomed [aria-label='Zoom out']")
    assert page.find(box).get_dom_attribute("viewBox").split() == whole
    page.click("dialog.zoomed [aria-label='Close']")
    page.until(lambda: not page.has("dialog.zoomed"))
    assert page.errors() == []


def test_the_report_leads_from_a_dot_to_its_row(known: Study, tmp_path: Path, browsers: Browsers) -> None:
    from edrbo.lab.report import report_page

    path = tmp_path / "report.html"
    path.write_text(report_page(known), encoding="utf-8")
    page = browsers.open(path.as_uri(), DESK)
    page.go()
    dot = dots(page)[1]
    page.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", dot)
    ActionChains(page.driver).move_to_element(dot).click().perform()
    page.until(lambda: page.driver.current_url.endswith("#run-1"))
    assert page.find("#run-1 td").text == "1"
    assert page.errors() == []


def test_two_runs_are_chosen_and_compared(client: Client, known: Study, browsers: Browsers) -> None:
    page = browsers.open(home_of(client), DESK)
    page.go("runs")
    assert not page.find("#compare").is_enabled()
    for key in (0, 2, 4):  # the third takes the first away
        page.click(f"input[name=run][value='{key}']")
    assert not page.find("input[name=run][value='0']").is_selected()
    known.note(1, "new roll")  # the list comes again and keeps the ticks
    page.until(lambda: "new roll" in page.text(".runs"))
    assert page.find("input[name=run][value='2']").is_selected()
    page.click("#compare")
    page.until(lambda: "Runs 4 and 2" in page.text("h1"))
    page.go("runs")
    page.click("tr[data-href$='/run/3'] td:nth-child(3)")
    page.until(lambda: page.driver.current_url.endswith("/run/3"))


def test_a_form_marks_the_field_that_is_wrong(tmp_path: Path, space: Space, browsers: Browsers) -> None:
    Study.open(tmp_path / "one.db", space)
    with study_server(tmp_path) as client:
        page = browsers.open(f"http://127.0.0.1:{client.port}/", DESK)
        page.go("new")
        page.type("#study-name", "Kiln")
        page.click("#make")
        page.until(lambda: "Add at least one setting" in page.text(".form-said"))
        assert page.driver.switch_to.active_element.get_attribute("id") == "design1-name"
        page.type("#design1-name", "heat")
        page.type("#design1-low", "60")
        page.type("#design1-high", "10")
        page.click("#make")
        page.find("#design1-low.marked")
        assert page.driver.switch_to.active_element.get_attribute("id") == "design1-low"
        assert page.find("#design1-low").get_attribute("aria-invalid") == "true"
        page.type("#design1-low", "5")
        page.find("#goal-kind").send_keys("the average of the worst")
        number = page.find("[data-goal-of=cvar] input")
        assert number.is_displayed()
        number.clear()
        number.send_keys("20")
        page.click("#make")
        page.until(lambda: "/s/kiln/" in page.driver.current_url)
        page.go("s/kiln/setup")
        page.type("#amend-note", "nothing is changed")
        page.click("#amend")
        page.until(lambda: "nothing is changed" in page.text(".form-said"))
    assert Study.open(tmp_path / "kiln.db").settings.goal.to_text() == "cvar:0.2"


def test_what_was_probably_meant_is_one_tap_away(client: Client, known: Study, browsers: Browsers) -> None:
    known.ask()
    page = browsers.open(home_of(client), PHONE)
    page.go("enter/6")
    page.type("#value", "14")
    page.type("#c1", "0,53")
    page.type("#c2", "3")
    page.click("#store")
    page.click(".doubts button")
    assert page.find("#c1").get_attribute("value") == "53"
    page.until(lambda: not page.find(".ask-again").is_displayed())
    page.click("#store")
    page.find("#undo")
    assert known.state.runs[6].context is not None
    assert known.state.runs[6].context[0] == 53.0


def test_a_form_that_waited_is_left_when_its_entry_was_sent(study: Study, tmp_path: Path, browsers: Browsers) -> None:
    study.ask()
    with process(tmp_path / "coating.db") as server:
        page = browsers.open(f"http://127.0.0.1:{server.port}/s/coating/", PHONE)
        page.go("enter/0")
        page.type("#value", "5,5")
        page.type("#c1", "50")
        page.type("#c2", "3")
        server.kill()
        page.click("#store")
        page.until(lambda: "kept on this device" in page.text(".form-said"))
        server.start()
        page.until(lambda: page.driver.current_url.endswith("/s/coating/"))
        assert "Sent now" in page.text("#said")
    assert study.state.runs[0].value == 5.5


@pytest.mark.parametrize("initial", [1])
def test_a_second_tap_asks_for_nothing_more(client: Client, known: Study, browsers: Browsers) -> None:
    page = browsers.open(home_of(client), DESK)
    page.go()
    page.driver.execute_script("const b = document.getElementById('ask'); b.click(); b.click()")
    page.until(lambda: not page.find("#ask").is_enabled() or page.has("#done-6"))
    page.driver.execute_script("document.getElementById('ask').click()")
    page.find("#done-6")
    page.until(lambda: page.find("#ask").is_enabled())
    assert list(known.state.pending) == [6]
