# SPDX-License-Identifier: MIT
"""A headless Chromium, controlled by its own protocol over two pipes, without another program and without an open port.

    with Browser(width=1200) as browser:
        browser.open(pathlib.Path("page.html"))
        browser.evaluate("1 + 1")
"""
import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time

CHROMIUM = shutil.which("chromium")
TIMEOUT_S = 120  # for each answer: a machine that is busy with other tests needs long


def skip_without():
    """Ends the program as a skipped test if there is no Chromium."""
    if not CHROMIUM:
        print("skipped: there is no chromium, which scripts/install-deps --test installs")
        sys.exit(77)


class BrowserError(AssertionError):
    """The page has thrown an exception, or the browser does not answer."""


class Browser:
    def __init__(self, width=1200, height=900, dark=False):
        self.size, self.dark, self.number, self.events, self.buffer = (width, height), dark, 0, [], b""

    def __enter__(self):
        self.home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self.output = os.pipe()
        self.input, from_browser = os.pipe()
        # The browser expects the protocol at descriptors 3 and 4. The pipes may have these numbers now, so move them
        # first.
        moved = [os.dup2(end, 200 + i) for i, end in enumerate((to_browser, from_browser))]
        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars",
                   "--force-color-profile=srgb", f"--window-size={self.size[0]},{self.size[1]}", f"--user-data-dir={self.home.name}",
                   "--remote-debugging-pipe", "about:blank"]
        shell = ["bash", "-c", 'exec "$@" 3<&200 4>&201', "bash", *command]
        self.process = subprocess.Popen(shell, pass_fds=moved, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        for end in (to_browser, from_browser, *moved):
            os.close(end)
        self.session = None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Performance"):
            self.ask(f"{domain}.enable")
        self.look(*self.size, self.dark)
        return self

    def __exit__(self, *_):
        try:
            self.session = None
            self.ask("Browser.close")
        except (BrowserError, OSError):
            self.process.kill()
        self.process.wait()
        os.close(self.input)
        os.close(self.output)
        self.home.cleanup()

    def receive(self, until):
        while b"\0" not in self.buffer:
            if not select.select([self.input], [], [], max(0, until - time.monotonic()))[0]:
                raise BrowserError(f"no answer in {TIMEOUT_S} s")
            read = os.read(self.input, 1 << 20)
            if not read:
                raise BrowserError("the browser has ended")
            self.buffer += read
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def ask(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.output, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + TIMEOUT_S
        while (answer := self.receive(until)).get("id") != self.number:
            self.events.append(answer)
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error']}")
        return answer["result"]

    def look(self, width, height, dark=False, media=""):
        """Sets the size of the window and the colours that the user prefers; media: "print" for paper."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.ask("Emulation.setEmulatedMedia", media=media,
                 features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, page, fragment=""):
        """Opens the page, and waits until it has shown its first step or a warning."""
        self.ask("Page.navigate", url="about:blank")
        self.ask("Page.navigate", url=f"file://{page}{fragment}")
        self.evaluate("replay.loaded", wait=True)

    def evaluate(self, expression, wait=False):
        """The value of an expression. wait: repeats it until it does not throw, because a new page may not be loaded
        yet."""
        until = time.monotonic() + TIMEOUT_S
        while True:
            answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
            if "exceptionDetails" not in answer:
                break
            if not wait or time.monotonic() > until:
                raise BrowserError(f"{expression}: {answer['exceptionDetails']['exception'].get('description')}")
            time.sleep(0.02)
        self.raise_exceptions()
        return answer["result"].get("value")

    def raise_exceptions(self):
        for event in self.events:
            if event.get("method") == "Runtime.exceptionThrown":
                raise BrowserError(event["params"]["exceptionDetails"]["exception"].get("description"))

    def press(self, key, code=None):
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=code or key, text=key if len(key) == 1 and kind == "keyDown" else "")

    def screenshot(self, path, whole=False):
        answer = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole,
                          **({"clip": {**self.page_size(), "x": 0, "y": 0, "scale": 1}} if whole else {}))
        with open(path, "wb") as file:
            file.write(base64.b64decode(answer["data"]))

    def page_size(self):
        size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        return {"width": size["width"], "height": size["height"]}

    def metrics(self):
        """The browser's own measurements: {name: number}."""
        return {metric["name"]: metric["value"] for metric in self.ask("Performance.getMetrics")["metrics"]}
