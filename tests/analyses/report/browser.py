"""A page in headless Chromium, driven over the DevTools protocol through a pipe: no driver, no port, no network."""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--remote-debugging-pipe",
)  # fmt: skip
#: Seconds for an answer to come, on a machine that is busy with other tests.
PATIENCE = 120


def find_chromium() -> str | None:
    """The path of a Chromium or Chrome; None if there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One Chromium with one page.

    Attributes:
        complaints: what the console said since :meth:`open`: warnings and errors of scripts and of the page itself.
        requests: every URL that the page asked for since :meth:`open`, its own and data URIs aside.
    """

    def __init__(self, executable: str, profile: Path) -> None:
        # Chromium reads commands from descriptor 3 and answers on 4.
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()
        shell = f'exec "$@" 3<&{commands} 4>&{answers}'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "chromium", executable, *OPTIONS, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(commands, answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self._buffer, self._last, self._session = b"", 0, None
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._loaded: set[str] = set()
        (target,) = (t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)

    def close(self) -> None:
        """End the browser."""
        self.call("Browser.close")
        os.close(self._commands)
        os.close(self._answers)
        self._process.wait(timeout=PATIENCE)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A command of the protocol, and its answer.

        Raises:
            RuntimeError: the browser refused it.
            TimeoutError: no answer came.
        """
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def open(self, page: Path, fragment: str = "", width: int = 1280, height: int = 900) -> None:
        """Load a file from the start, and wait until all of it is there."""
        self._navigate("about:blank")  # a change of the fragment alone would load nothing
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)
        self.complaints, self.requests = [], []
        self._navigate(page.as_uri() + fragment)
        self.evaluate("Promise.all([...document.images].map((image) => image.decode().catch(() => null)))")

    def _navigate(self, url: str) -> None:
        """Go to a URL, and wait until it is loaded."""
        load = self.call("Page.navigate", url=url)["loaderId"]
        while load not in self._loaded:
            self._read()

    def evaluate(self, expression: str) -> Any:
        """The value of an expression of JavaScript in the page; a promise is waited for.

        Raises:
            RuntimeError: the expression threw.
        """
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"]["exception"]["description"])
        return found["result"].get("value")

    def pdf(self) -> bytes:
        """The page as it is printed."""
        return base64.b64decode(self.call("Page.printToPDF", preferCSSPageSize=True)["data"])

    def _read(self) -> dict[str, Any]:
        """The next message; events are noted on the way."""
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            if not select.select([self._answers], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError(f"Chromium did not answer for {PATIENCE} seconds")
            received = os.read(self._answers, 1 << 20)
            if not received:
                raise RuntimeError("Chromium ended")
            self._buffer += received
        text, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(text)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, event: str | None, values: dict[str, Any]) -> None:
        if event == "Page.lifecycleEvent" and values["name"] == "load":
            self._loaded.add(values["loaderId"])
        elif event == "Runtime.exceptionThrown":
            self.complaints.append(values["exceptionDetails"]["exception"]["description"])
        elif event == "Runtime.consoleAPICalled" and values["type"] in ("error", "warning", "assert"):
            self.complaints.append(" ".join(str(a.get("value", a.get("description"))) for a in values["args"]))
        elif event == "Log.entryAdded" and values["entry"]["level"] in ("error", "warning"):
            self.complaints.append(values["entry"]["text"])
        elif event == "Network.requestWillBeSent" and not values["request"]["url"].startswith(("data:", "about:")):
            self.requests.append(values["request"]["url"])
