"""A headless Chromium, spoken to by its DevTools protocol: enough to load a page, ask it, and look at it."""

import asyncio
import base64
import itertools
import json
import shutil
import subprocess

from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def find_browser():
    return next(filter(None, map(shutil.which, NAMES)), None)


class Page:
    """One page; `problems` are what its console and the loading of it complained of."""

    def __init__(self, socket):
        self._socket = socket
        self._numbers = itertools.count(1)
        self.problems = []
        self.requests = []

    async def call(self, method, **params):
        number = next(self._numbers)
        await self._socket.write_message(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            message = json.loads(await asyncio.wait_for(self._socket.read_message(), 30))
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]
            self._note(message.get("method"), message.get("params", {}))

    def _note(self, event, params):
        if event == "Runtime.exceptionThrown":
            self.problems.append(params["exceptionDetails"])
        elif event == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.problems.append([each.get("value", each.get("description")) for each in params["args"]])
        elif event == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.problems.append(params["entry"])
        elif event == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    async def ask(self, expression):
        """Return what JavaScript gives, waited for where it is a promise."""
        result = await self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    async def load(self, url):
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self.call(f"{domain}.enable")
        await self.call("Page.navigate", url=url)
        for _ in range(200):
            if await self.ask("document.readyState === 'complete' && document.documentElement.dataset.ready === 'yes'"):
                return
            await asyncio.sleep(0.05)
        raise AssertionError(f"The page is not ready: {self.problems}")

    async def shape(self, width, height, *, dark=False):
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 700
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.call("Emulation.setEmulatedMedia", features=[scheme])

    async def screenshot(self, path):
        size = (await self.call("Page.getLayoutMetrics"))["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        shot = await self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(shot["data"]))


async def visit(folder, conversation):
    """Start a browser, hold a conversation with one page of it, and end it."""
    command = [
        find_browser(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
        "--hide-scrollbars", "--remote-debugging-port=0", f"--user-data-dir={folder}", "about:blank",
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        port = folder / "DevToolsActivePort"
        for _ in range(400):
            if port.exists() and "\n" in port.read_text():
                break
            await asyncio.sleep(0.05)
        number = port.read_text().split()[0]
        socket = await websocket_connect(await _first_page(number), max_message_size=1 << 28)
        return await conversation(Page(socket))
    finally:
        process.terminate()
        process.wait(20)


async def _first_page(port):
    from tornado.httpclient import AsyncHTTPClient

    answer = await AsyncHTTPClient().fetch(HTTPRequest(f"http://127.0.0.1:{port}/json/list"))
    return next(t["webSocketDebuggerUrl"] for t in json.loads(answer.body) if t["type"] == "page")
