"""Every screen at every size, light and dark: axe-core finds nothing, and whatever can be tapped is large and free."""

from __future__ import annotations

import json
import os
import shutil
import subprocess

import pytest
from chromium import DESK, PHONE, TABLET, Browser, Browsers, home_of, needs_chromium
from live import Client
from selenium.webdriver import ActionChains, Keys

from edrbo import Study

pytestmark = needs_chromium


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
    assert beyond_the_keyboard(page) == []
    page.driver.execute_script("document.getElementById('count').tabIndex = -1")
    assert [words[:7] for words in beyond_the_keyboard(page)] == ["<select"]


# How a page is laid out hangs on the size, its colors on the scheme alone: the check is done for each once.
LOOKS = [(PHONE, "light", True), (TABLET, "dark", True), (DESK, "light", False)]


def test_accessible(axe: str, client: Client, study: Study, browsers: Browsers) -> None:
    for k in range(6):
        study.tell({"speed": 1 + k, "layers": 1, "kind": "plain"}, None if k == 5 else [50 + k, 3], 10.0 + k)
    study.tell({"speed": 2, "layers": 1, "kind": "plain"}, failed=True, why="blocked")
    study.drop(0, "spilled")
    study.ask()
    screens = (
        "",
        "enter/7",
        "enter",
        "runs",
        "run/0",
        "run/5",
        "answer",
        "charts",
        "charts?x=speed&y=load",
        "compare?run=0&run=1",
        "import",
        "setup",
    )
    wrong: dict[str, list[str]] = {}
    page = browsers.open(home_of(client))
    for screen in (*screens, "../../new", "../../api/v1/docs"):
        page.go(screen)
        page.until(lambda: not page.has(".thinking"))
        page.driver.execute_script("document.querySelectorAll('details').forEach((one) => { one.open = true })")
        if unreached := beyond_the_keyboard(page):
            wrong[f"{screen}: not reached by Tab, or not seen to be"] = unreached
        for size, scheme, checks in LOOKS:
            page.look(size, scheme)
            found = violations(page, axe) if checks else {}
            found |= {"targets": page.driver.execute_script(SMALL), "covered": page.driver.execute_script(COVERED)}
            if page.driver.execute_script("return document.documentElement.scrollWidth") > size[0]:
                found["wider than the screen"] = ["yes"]
            wrong |= {f"{screen} {size} {scheme}: {name}": where for name, where in found.items() if where}
    assert wrong == {}


def beyond_the_keyboard(page: Browser) -> list[str]:
    """What can be used on the page and is not come to by pressing Tab, or does not show that it has the focus."""
    count = page.driver.execute_script(USABLE + "window.usable = usable; window.met = new Set(); return usable.length")
    page.driver.execute_script("document.activeElement?.blur(); getSelection().removeAllRanges(); scrollTo(0, 0)")
    for _ in range(count + 5):
        ActionChains(page.driver).send_keys(Keys.TAB).perform()
        page.driver.execute_script(MEET)
    return page.driver.execute_script(
        "return usable.filter((one) => !met.has(one)).map((o) => o.outerHTML.slice(0, 100))"
    )


# Of radio buttons of one name Tab comes to one, and arrows to the others.
USABLE = """const all = "a[href], button, input, select, textarea, summary";
const usable = Array.from(document.querySelectorAll(all))
  .filter((one) => one.checkVisibility() && !one.disabled && !["hidden", "radio"].includes(one.type));"""

MEET = """const one = document.activeElement, look = getComputedStyle(one);
const beside = one.type === "file" ? getComputedStyle(one.closest("label") ?? one) : look;
if ([look, beside].some((it) => it.outlineStyle !== "none" && parseFloat(it.outlineWidth) > 0)) met.add(one)"""

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
