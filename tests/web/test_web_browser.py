"""A study by clicking, in real Chromium."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import DESK, PHONE, TABLET, Browser, Browsers, needs_chromium
from live import Client, study_server
from process import process
from selenium.webdriver.common.keys import Keys

from edrbo import Space, Study

pytestmark = needs_chromium

RUNS = 15


def truth(speed: float, humidity: float) -> float:
    return 10 - (speed - 5) ** 2 - 0.01 * (humidity - 50)


@pytest.fixture(scope="session")
def all_browsers() -> Iterator[Browsers]:
    found = Browsers()
    yield found
    found.quit()


@pytest.fixture
def browsers(all_browsers: Browsers) -> Iterator[Browsers]:
    yield all_browsers
    all_browsers.clean()


@pytest.fixture
def size() -> tuple[int, int]:
    return PHONE


@pytest.fixture
def page(client: Client, browsers: Browsers, size: tuple[int, int]) -> Browser:
    return browsers.open(home_of(client), size)


on_a_tablet = pytest.mark.parametrize("size", [TABLET], ids=["tablet"])
at_a_desk = pytest.mark.parametrize("size", [DESK], ids=["desk"])


def home_of(client: Client) -> str:
    return f"http://127.0.0.1:{client.port}/s/coating/"


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
        enter(page, k, f"{truth(speed, 40 + k):.3f}".replace(".", ","), str(40 + k))
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
    assert [run.status for run in study.state.runs.values()] == ["told", "failed", "cancelled"]


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
    assert "red" in page.find("#value").get_attribute("class")
    page.click("#store")
    assert "Is the result right?" in page.text(".form-said")
    assert len(study) == 6
    page.click("#sure")
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
    two.find(".is-told")
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


def test_a_new_study_by_keyboard_alone(tmp_path: Path, space: Space, browsers: Browsers) -> None:
    Study.open(tmp_path / "one.db", space)
    with study_server(tmp_path) as client:
        page = browsers.open(f"http://127.0.0.1:{client.port}/", DESK)
        page.go("new")
        page.find("#study-name").click()
        keys = page.driver.switch_to
        words = [
            "Kiln",
            *[Keys.TAB] * 6,  # what is measured, its unit, what is good, the goal, what else it can be
            "heat",
            Keys.TAB,
            Keys.TAB,
            Keys.TAB,
            "10",
            Keys.TAB,
            "20,5",
            Keys.ENTER,
        ]
        for word in words:
            keys.active_element.send_keys(word)
        page.until(lambda: "/s/kiln/" in page.driver.current_url)
    assert Study.open(tmp_path / "kiln.db").space.design["heat"].upper == 20.5


def test_reading_works_without_javascript(client: Client, study: Study, browsers: Browsers) -> None:
    study.tell({"speed": 2, "layers": 1, "kind": "plain"}, [50, 3], 8.25)
    page = browsers.open(home_of(client), PHONE)
    page.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    page.go()
    page.click("nav a:nth-child(2)")
    assert "8.25" in page.find(".data").get_attribute("textContent")


# -------------------------------------------------------------------- for everybody


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """axe-core, for the tests alone: from npm's registry."""
    if shutil.which("npm") is None:
        pytest.skip("axe-core needs npm")
    folder = tmp_path_factory.mktemp("axe")
    words = ["npm", "pack", "axe-core@4.14.0", "--silent"]
    try:
        made = subprocess.run(words, cwd=folder, capture_output=True, timeout=120, env={**os.environ}, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip("npm's registry does not answer")
    if made.returncode:
        pytest.skip("axe-core cannot be had from npm's registry")
    shutil.unpack_archive(next(folder.glob("*.tgz")), folder)
    return (folder / "package" / "axe.min.js").read_text()


def violations(page: Browser, axe: str) -> dict[str, list[str]]:
    if not page.driver.execute_script("return Boolean(window.axe)"):
        page.driver.execute_cdp_cmd("Runtime.evaluate", {"expression": axe})
    words = "{resultTypes: ['violations'], preload: false}"  # there are no files of other sites to fetch
    run = f"axe.run({words}).then((r) => arguments[0](JSON.stringify(r.violations)))"
    found = json.loads(page.driver.execute_async_script(run))
    return {violation["id"]: [node["html"][:120] for node in violation["nodes"]][:3] for violation in found}


def test_the_check_of_accessibility_finds_what_is_wrong(axe: str, client: Client, browsers: Browsers) -> None:
    page = browsers.open(home_of(client), PHONE)
    page.go()
    page.driver.execute_script("document.getElementById('count').labels[0].remove()")
    assert list(violations(page, axe)) == ["select-name"]


# How a page is laid out hangs on the size, its colors on the scheme alone: the check is done for each once.
LOOKS = [(PHONE, "light", True), (TABLET, "dark", True), (DESK, "light", False)]


def test_accessible(axe: str, client: Client, study: Study, browsers: Browsers) -> None:
    for k in range(6):
        study.tell({"speed": 1 + k, "layers": 1, "kind": "plain"}, None if k == 5 else [50 + k, 3], 10.0 + k)
    study.tell({"speed": 2, "layers": 1, "kind": "plain"}, failed=True, why="blocked")
    study.drop(0, "spilled")
    study.ask()
    screens = ("", "enter/7", "enter", "runs", "run/0", "run/5", "answer", "charts", "import", "setup")
    wrong: dict[str, list[str]] = {}
    page = browsers.open(home_of(client))
    for screen in (*screens, "../../new", "../../api/docs"):
        page.go(screen)
        page.until(lambda: not page.has(".thinking"))
        page.driver.execute_script("document.querySelectorAll('details').forEach((one) => { one.open = true })")
        for size, scheme, checks in LOOKS:
            page.look(size, scheme)
            found = violations(page, axe) if checks else {}
            found |= {"targets": page.driver.execute_script(SMALL), "covered": page.driver.execute_script(COVERED)}
            if page.driver.execute_script("return document.documentElement.scrollWidth") > size[0]:
                found["wider than the screen"] = ["yes"]
            wrong |= {f"{screen} {size} {scheme}: {name}": where for name, where in found.items() if where}
    assert wrong == {}


SMALL = """return Array.from(document.querySelectorAll("main button, main .button, main input, main select, nav a"))
  .filter((one) => one.offsetParent && !["checkbox", "hidden", "file"].includes(one.type))
  .filter((one) => one.getBoundingClientRect().height < 47.5).map((one) => one.outerHTML.slice(0, 100))"""

# What a finger would meet in the middle of each thing that can be tapped.
COVERED = """const all = "main button, main a, main input, main select, summary, nav a";
return Array.from(document.querySelectorAll(all))
  .filter((one) => one.offsetParent && one.type !== "file" && !one.disabled)
  .filter((one) => {
    one.scrollIntoView({block: "center", behavior: "instant"});
    const box = one.getClientRects()[0];
    const met = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
    return !met || !(one.contains(met) || met.closest("label")?.contains(one));
  }).map((one) => one.outerHTML.slice(0, 100))"""
