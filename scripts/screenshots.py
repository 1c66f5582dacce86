"""Pictures of the lab page, of a demonstration study: `python scripts/screenshots.py [FOLDER] [--all]`.

By default the two that the README and docs/lab-page.md show, in docs/pictures; with --all every screen at 390 × 844,
820 × 1180 and 1400 × 900, light and dark, and as printed, to be looked at by people. Needs chromium and chromedriver.
"""

from __future__ import annotations

import argparse
import base64
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

SIZES = {"phone": (390, 844), "tablet": (820, 1180), "desk": (1400, 900)}
SCREENS = ("", "enter/14", "enter/14?kind=failed", "runs", "run/3", "run/13", "answer", "charts", "import", "setup")
OTHERS = ("/new", "/api/v1/docs")
TABLE = """speed\ttemperature\tlayers\tnozzle\tHumidity (%)\tviscosity\tvalue
30\t120\t2\tslot\t51,5\t4,1\t88,2
31\thot\t2\troll\t48\t4\t90"""


def driver() -> Any:
    options = webdriver.ChromeOptions()
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage"):
        options.add_argument(word)
    return webdriver.Chrome(options=options, service=webdriver.ChromeService("/usr/bin/chromedriver"))


def shoot(browser: Any, path: Path, size: tuple[int, int], whole: bool) -> None:
    """``whole`` takes the page to its end instead of one screen of it."""
    height = size[1]
    if whole:
        height = max(height, int(browser.execute_script("return document.documentElement.scrollHeight")))
    clip = {"x": 0, "y": 0, "width": size[0], "height": height, "scale": 1}
    found = browser.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True})
    path.write_bytes(base64.b64decode(found["data"]))
    print(path)


def look(browser: Any, size: tuple[int, int], scheme: str, medium: str = "") -> None:
    width, height = size
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 800}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": medium, "features": features})


def visit(browser: Any, address: str) -> None:
    browser.get(address)
    thinking = lambda b: not b.find_elements(By.CSS_SELECTOR, ".thinking")  # noqa: E731
    WebDriverWait(browser, 120).until(thinking)


def everything(browser: Any, home: str, folder: Path) -> None:
    root = home.split("/s/")[0]
    for scheme in ("light", "dark"):
        for title, size in SIZES.items():
            look(browser, size, scheme)
            for screen in (*(home + word for word in SCREENS), *(root + word for word in OTHERS)):
                visit(browser, screen)
                if screen.endswith("import"):
                    browser.execute_script("document.getElementById('table').value = arguments[0]", TABLE)
                    browser.find_element(By.ID, "preview").click()
                    WebDriverWait(browser, 20).until(lambda b: b.find_element(By.ID, "preview-table").text)
                name = screen.removeprefix(home).removeprefix(root).strip("/") or "now"
                safe = "".join(c if c.isalnum() else "-" for c in name)
                shoot(browser, folder / f"{safe}-{title}-{scheme}.png", size, whole=True)
    look(browser, (794, 1123), "light", "print")
    for screen in ("answer", "runs"):
        visit(browser, home + screen)
        shoot(browser, folder / f"{screen}-print.png", (794, 1123), whole=True)


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("folder", nargs="?", type=Path, default=Path("docs/pictures"))
    words.add_argument("--all", action="store_true")
    words.add_argument("--url", help="a server that runs already")
    given = words.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    server = None
    home = given.url
    if home is None:
        start = "from edrbo.lab.cli import main; main()"
        server = subprocess.Popen([sys.executable, "-c", start, "serve", "--demo", "--port", "8391"])
        home = "http://127.0.0.1:8391/"
    browser = driver()
    try:
        for _ in range(240):
            try:
                browser.get(home)
                break
            except Exception:
                time.sleep(0.5)
        home = browser.current_url
        if given.all:
            everything(browser, home, given.folder)
            return
        look(browser, SIZES["phone"], "light")
        visit(browser, home)
        shoot(browser, given.folder / "lab-page-now.png", SIZES["phone"], whole=False)
        look(browser, (1200, 860), "light")
        visit(browser, home + "answer")
        shoot(browser, given.folder / "lab-page-answer.png", (1200, 860), whole=False)
    finally:
        browser.quit()
        if server is not None:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
