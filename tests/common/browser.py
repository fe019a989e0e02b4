"""A headless browser for tests that look at pages: Chromium, driven through a pair of pipes by its debugging protocol.

    with browser.Browser() as b:
        b.open(path, width=390, dark=True)
        b.evaluate("document.title")
"""
import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find():
    """The browser's program, or None; SINTER_BROWSER names another."""
    return next((p for p in map(shutil.which, (os.environ.get("SINTER_BROWSER", ""), *NAMES)) if p), None)


class Browser:
    def __init__(self, timeout=60):
        self.timeout, self.last, self.unread = timeout, 0, b""
        self.profile = tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True)
        theirs, self.out = os.pipe()  # descriptors 3 and 4 of the browser: it reads commands and writes answers
        self.into, answers = os.pipe()
        start = 'exec 3<&"$1" 4>&"$2"; shift 2; exec "$@"'
        self.child = subprocess.Popen(
            ["bash", "-c", start, "-", str(theirs), str(answers), find(), "--headless", "--no-sandbox", "--disable-gpu",
             "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking", f"--user-data-dir={self.profile.name}",
             "--remote-debugging-pipe", "about:blank"],
            pass_fds=(theirs, answers), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(theirs)
        os.close(answers)
        pages = [t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page"]
        target = pages[0]["targetId"] if pages else self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.out)
        os.close(self.into)
        self.child.kill()
        self.child.wait()
        self.profile.cleanup()

    def call(self, method, session=None, **parameters):
        """The result of one command."""
        self.last += 1
        command = {"id": self.last, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        os.write(self.out, json.dumps(command).encode() + b"\0")
        end = time.monotonic() + self.timeout
        while True:
            while b"\0" in self.unread:
                message, self.unread = self.unread.split(b"\0", 1)
                answer = json.loads(message)
                if answer.get("id") == self.last:
                    if "error" in answer:
                        raise RuntimeError(f"{method}: {answer['error']}")
                    return answer["result"]
            if not select.select([self.into], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError(f"{method}: no answer in {self.timeout} s")
            piece = os.read(self.into, 1 << 20)
            if not piece:
                raise RuntimeError(f"{method}: the browser ended")
            self.unread += piece

    def evaluate(self, script):
        """The value of an expression in the page."""
        result = self.call("Runtime.evaluate", self.session, expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"])
        return result["result"].get("value")

    def open(self, path, width, height=900, dark=False):
        """Shows a file in a window of this size, a phone's below 600 pixels."""
        self.call("Emulation.setDeviceMetricsOverride", self.session, width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", self.session,
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        url = pathlib.Path(path).resolve().as_uri()
        self.call("Page.navigate", self.session, url=url)
        end = time.monotonic() + self.timeout
        while self.evaluate("[location.href, document.readyState]") != [url, "complete"]:
            if time.monotonic() > end:
                raise TimeoutError(f"{path} is not complete after {self.timeout} s")
            time.sleep(0.02)

    def picture(self, path, width, height=None):
        """Writes the whole page (or its first `height` pixels) as PNG, for people to look at."""
        height = height or self.evaluate("document.documentElement.scrollHeight")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        data = self.call("Page.captureScreenshot", self.session, format="png", captureBeyondViewport=True, clip=clip)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
