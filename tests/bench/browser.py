"""A real browser for tests: headless Chromium, driven over its debugging protocol."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import shutil
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

from tornado.websocket import WebSocketClientConnection, websocket_connect

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
START_SECONDS = 30


class Page:
    """One page. ``problems`` collects exceptions and console errors."""

    def __init__(self, socket: WebSocketClientConnection) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._events: list[dict[str, Any]] = []
        self.problems: list[str] = []

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        await self._socket.write_message(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = await self._read()
            if message.get("id") == number:
                assert "error" not in message, message
                result: dict[str, Any] = message["result"]
                return result

    async def _read(self) -> dict[str, Any]:
        text = await self._socket.read_message()
        assert text is not None, "the browser has gone"
        message: dict[str, Any] = json.loads(text)
        self._events.append(message)
        kind, parameters = message.get("method"), message.get("params", {})
        if kind == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(parameters["exceptionDetails"]))
        if kind == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning"):
            self.problems.append(json.dumps(parameters["args"]))
        if kind == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.problems.append(parameters["entry"]["text"])
        return message

    async def open(self, url: str, width: int = 1280, height: int = 900) -> None:
        for domain in ("Page", "Runtime", "Log"):
            await self.call(f"{domain}.enable")
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self._events.clear()
        await self.call("Page.navigate", url=url)
        while not any(event.get("method") == "Page.loadEventFired" for event in self._events):
            await self._read()

    async def evaluate(self, expression: str) -> Any:
        answer = await self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    async def screenshot(self, path: Path, whole: bool = True) -> None:
        picture = await self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(picture["data"]))


class Browser:
    """``async with Browser(directory) as page``."""

    def __init__(self, directory: Path) -> None:
        self._profile = directory / "profile"

    async def __aenter__(self) -> Page:
        assert CHROMIUM is not None
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        self._process = subprocess.Popen(
            [CHROMIUM, *options, "--remote-debugging-port=0", f"--user-data-dir={self._profile}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        port_file = self._profile / "DevToolsActivePort"
        for _ in range(START_SECONDS * 20):
            if port_file.exists() and port_file.read_text().strip():
                break
            await asyncio.sleep(0.05)
        port = port_file.read_text().splitlines()[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list") as answer:
            target = next(one for one in json.load(answer) if one["type"] == "page")
        self._socket = await websocket_connect(target["webSocketDebuggerUrl"], max_message_size=2**27)
        return Page(self._socket)

    async def __aexit__(self, *_: object) -> None:
        self._socket.close()
        while await self._socket.read_message() is not None:  # until the browser has closed its end as well
            pass
        self._process.terminate()
        self._process.wait()
