"""Real Chromium, at the size of a phone or of a desk."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import pytest
from live import Client

pytest.importorskip("selenium", reason="needs selenium")

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException, TimeoutException, WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
needs_chromium = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver")

PHONE, TABLET, DESK = (390, 844), (820, 1180), (1400, 900)
PATIENCE = 90


class Browser:
    def __init__(self, driver: Any, home: str) -> None:
        self.driver, self.home = driver, home

    def go(self, path: str = "") -> None:
        self.driver.get(self.home + path)

    def look(self, size: tuple[int, int], scheme: str) -> None:
        metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size[0] < 800}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def until(self, what: Callable[[], Any]) -> Any:
        """Wait for ``what`` to be true; pages change under our hands meanwhile.

        As long as a page says that something is being worked out it is: on a busy machine that takes its time, which
        has a limit of its own on the server. Patience is for what follows.
        """
        wait = WebDriverWait(self.driver, PATIENCE, 0.05, [StaleElementReferenceException, WebDriverException])
        while True:
            try:
                return wait.until(lambda _: what())
            except TimeoutException:
                if not self.has(".thinking"):
                    raise

    def find(self, css: str) -> Any:
        return self.until(lambda: self.driver.find_element(By.CSS_SELECTOR, css))

    def has(self, css: str) -> bool:
        return bool(self.driver.find_elements(By.CSS_SELECTOR, css))

    def click(self, css: str) -> None:
        def once() -> bool:
            element = self.driver.find_element(By.CSS_SELECTOR, css)
            self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
            element.click()
            return True

        self.until(once)

    def type(self, css: str, text: str) -> None:
        field = self.find(css)
        field.clear()
        field.send_keys(text)

    def text(self, css: str) -> str:
        return str(self.until(lambda: self.driver.find_element(By.CSS_SELECTOR, css).text))

    def errors(self) -> list[str]:
        """What the browser complained of, but for a server that does not answer."""
        found = [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]
        return [line for line in found if "net::ERR" not in line]


class Browsers:
    """Chromium takes a second to start, so those of one test are used by the next, as good as new."""

    def __init__(self) -> None:
        self._drivers: list[Any] = []
        self._used = 0

    def open(self, home: str, size: tuple[int, int] = DESK, scheme: str = "light") -> Browser:
        """One more device."""
        if self._used == len(self._drivers):
            self._drivers.append(_start())
        driver = self._drivers[self._used]
        self._used += 1
        page = Browser(driver, home)
        page.look(size, scheme)
        return page

    def clean(self) -> None:
        """Leave every page, and forget what it kept."""
        for driver in self._drivers[: self._used]:
            driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
            origin = "/".join(driver.current_url.split("/")[:3])
            driver.get("about:blank")
            driver.execute_cdp_cmd("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
            driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
            driver.get_log("browser")
        self._used = 0

    def quit(self) -> None:
        for driver in self._drivers:
            driver.quit()


def _start() -> Any:
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_script_timeout(PATIENCE)  # axe looks at every element, twenty times as long on a busy machine
    return driver


def home_of(client: Client) -> str:
    """Where the study of the tests begins."""
    return f"http://127.0.0.1:{client.port}/s/coating/"
