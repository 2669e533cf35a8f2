"""A real Chromium, spoken to over two pipes in its DevTools protocol: nothing to install for it.

with Browser() as browser:
    page = browser.open(path, width=1280)
    page.run("document.title")
    page.press("ArrowRight");  page.click("#ratio");  page.shot(png)
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

PROGRAM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--mute-audio",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-extensions", "--disable-dev-shm-usage", "--hide-scrollbars",
    "--remote-debugging-pipe",
)  # fmt: skip
PATIENCE = 40.0
KEYS = {
    "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Enter": 13, "Tab": 9,
    "Home": 36, "End": 35,
}  # fmt: skip


class Browser:
    """One process, and the pages that are open in it."""

    def __enter__(self) -> Browser:
        assert PROGRAM is not None, "There is no Chromium on this machine."
        self.profile = tempfile.mkdtemp(prefix="headcount-chromium-")
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        command = [PROGRAM, *FLAGS, f"--user-data-dir={self.profile}", "about:blank"]
        # Chromium reads from its third file and writes to its fourth.
        shell = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self.process = subprocess.Popen(
            ["bash", "-c", shell, "chromium", *command],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self.reads, self.writes = ours_in, ours_out
        self.waiting, self.number = b"", 0
        self.events: list[dict[str, Any]] = []
        return self

    def __exit__(self, *failure: object) -> None:
        try:
            self.send("Browser.close")
            self.process.wait(10)
        except (OSError, AssertionError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.reads)
        os.close(self.writes)
        shutil.rmtree(self.profile, ignore_errors=True)

    def send(self, method: str, session: str | None = None, **given: Any) -> dict[str, Any]:
        """One command, and its answer; what happens meanwhile is kept in `events`."""
        self.number += 1
        asked: dict[str, Any] = {"id": self.number, "method": method, "params": given}
        if session:
            asked["sessionId"] = session
        os.write(self.writes, json.dumps(asked).encode() + b"\0")
        end = time.monotonic() + PATIENCE
        while True:
            said = self._next(end)
            if said.get("id") == self.number:
                assert "error" not in said, (method, said)
                return said["result"]
            self.events.append(said)

    def _next(self, end: float) -> dict[str, Any]:
        while b"\0" not in self.waiting:
            ready, _, _ = select.select([self.reads], [], [], max(0.0, end - time.monotonic()))
            assert ready, "Chromium does not answer."
            more = os.read(self.reads, 1 << 20)
            assert more, "Chromium ended."
            self.waiting += more
        first, _, self.waiting = self.waiting.partition(b"\0")
        return json.loads(first)

    def open(self, path: Path, *, width: int = 1280, height: int = 900, dark: bool = False,
             calm: bool = False) -> Page:  # fmt: skip
        """A file in a new page."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Runtime", "Network", "Log"):
            page.send(f"{domain}.enable")
        page.view(width, height, dark=dark, calm=calm)
        page.send("Page.navigate", url=path.resolve().as_uri())
        page.wait(
            "document.readyState === 'complete' && document.querySelector('#page > *') !== null"
        )
        return page


class Page:
    """One page, used as a person would."""

    def __init__(self, browser: Browser, session: str) -> None:
        self.browser, self.session = browser, session

    def send(self, method: str, **given: Any) -> dict[str, Any]:
        """A command to this page."""
        return self.browser.send(method, self.session, **given)

    def view(
        self, width: int, height: int = 900, *, dark: bool = False, calm: bool = False
    ) -> None:
        """The size of its window, and what the reader prefers."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 700)  # fmt: skip
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if calm else "no-preference"},
        ]
        self.send("Emulation.setEmulatedMedia", features=features)

    def run(self, code: str) -> Any:
        """The value of an expression; a promise is waited for."""
        answer = self.send(
            "Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, condition: str) -> None:
        """Until an expression is true."""
        end = time.monotonic() + PATIENCE
        while not self.run(condition):
            assert time.monotonic() < end, f"never became true: {condition}"
            time.sleep(0.02)

    def texts(self, selector: str) -> list[str]:
        """What the elements show."""
        return self.run(
            f"[...document.querySelectorAll({json.dumps(selector)})].map((each) => each.innerText)"
        )

    def text(self, selector: str) -> str:
        """What the one element shows."""
        (found,) = self.texts(selector)
        return found

    def click(self, selector: str, x: float | None = None, y: float | None = None) -> None:
        """Press where the first such element is: its middle, or so far from its corner."""
        place = json.dumps(selector)
        self.run(f"document.querySelector({place}).scrollIntoView("
                 "{ block: 'center', behavior: 'instant' })")  # fmt: skip
        self.settle()
        left, top, wide, high = self.run(
            f"(() => {{ const box = document.querySelector({place}).getBoundingClientRect();"
            "return [box.left, box.top, box.width, box.height]; })()"
        )
        spot = {
            "x": left + (wide / 2 if x is None else x),
            "y": top + (high / 2 if y is None else y),
        }
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **spot)

    def settle(self) -> None:
        """Until what was asked for is drawn."""
        frames = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        for _ in range(3):
            self.run(frames)

    def press(self, key: str, times: int = 1) -> None:
        """A key, as if it was typed."""
        code = KEYS.get(key, ord(key[0].upper()))
        for _ in range(times):
            for kind in ("keyDown", "keyUp"):
                more = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
                self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                          windowsVirtualKeyCode=code, **more)  # fmt: skip

    def choose(self, selector: str, value: str) -> None:
        """An option of a select, as a person would leave it."""
        self.run(
            f"(() => {{ const box = document.querySelector({json.dumps(selector)});"
            f"box.value = {json.dumps(value)}; if (box.value !== {json.dumps(value)}) throw 'none';"
            "box.dispatchEvent(new Event('change')); })()"
        )

    def complaints(self) -> list[str]:
        """Errors and warnings of the console, and exceptions."""
        self.run("1")
        found = []
        for event in self.browser.events:
            said = event.get("params", {})
            if event.get("sessionId") != self.session:
                continue
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(json.dumps(said["exceptionDetails"])[:600])
            if event.get("method") == "Runtime.consoleAPICalled" and said["type"] in (
                "error",
                "warning",
            ):
                found.append(json.dumps(said["args"])[:600])
            if event.get("method") == "Log.entryAdded" and said["entry"]["level"] in (
                "error",
                "warning",
            ):
                found.append(json.dumps(said["entry"])[:600])
        return found

    def requests(self) -> list[str]:
        """Everything that was asked for but the file itself and what is inside of it."""
        self.run("1")
        return [
            event["params"]["request"]["url"]
            for event in self.browser.events
            if event.get("sessionId") == self.session
            and event.get("method") == "Network.requestWillBeSent"
            and not event["params"]["request"]["url"].startswith(("file:", "data:", "blob:"))
        ]

    def shot(self, path: Path, *, whole: bool = True) -> None:
        """What it looks like, as PNG."""
        found = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))

    def close(self) -> None:
        """Close it."""
        self.send("Page.close")
