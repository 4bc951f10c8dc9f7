"""A headless Chromium, spoken to by its DevTools protocol: enough to load a page, ask it, and look at it."""

import asyncio
import base64
import itertools
import json
import shutil
import subprocess

from tornado.httpclient import AsyncHTTPClient
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

    async def load(self, url, width=1440, *, dark=False):
        """Open a page in a window of that width, and wait until it is ready."""
        await self._shape(width, 900, dark)
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self.call(f"{domain}.enable")
        await self.call("Page.navigate", url=url)
        await self.until("document.readyState === 'complete' && document.documentElement.dataset.ready === 'yes'")

    async def until(self, condition):
        """Wait until a condition in JavaScript holds."""
        for _ in range(400):
            if await self.ask(condition):
                return
            await asyncio.sleep(0.05)
        raise AssertionError(f"{condition} does not come true; the page complains of {self.problems}")

    async def _shape(self, width, height, dark):
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 700
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.call("Emulation.setEmulatedMedia", features=[scheme])

    async def mouse(self, kind, x, y, **more):
        await self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    async def screenshot(self, path):
        size = (await self.call("Page.getLayoutMetrics"))["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        shot = await self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(shot["data"]))


class Browser:
    """A running browser; `visit` holds a conversation with a page of its own."""

    def __init__(self, folder):
        command = [
            find_browser(),
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--hide-scrollbars",
            "--remote-debugging-port=0",
            f"--user-data-dir={folder}",
            "about:blank",
        ]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._port = folder / "DevToolsActivePort"

    def end(self):
        self._process.terminate()
        self._process.wait(20)

    def visit(self, conversation):
        return asyncio.run(self._visit(conversation))

    async def _visit(self, conversation):
        for _ in range(400):
            if self._port.exists() and "\n" in self._port.read_text():
                break
            await asyncio.sleep(0.05)
        address = f"http://127.0.0.1:{self._port.read_text().split()[0]}/json/new"
        tab = json.loads((await AsyncHTTPClient().fetch(address, method="PUT", body=b"")).body)
        socket = await websocket_connect(tab["webSocketDebuggerUrl"], max_message_size=1 << 28)
        try:
            return await conversation(Page(socket))
        finally:
            socket.close()
