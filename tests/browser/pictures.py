"""`python -m tests.browser.pictures [FOLDER]`: writes the pictures of the console in `docs/pictures`.

With FOLDER, each page is also written there at 1440, 768 and 390 pixels, light and dark, to be looked at.

Starts a sandbox of the scenario skip-level, serves it as a fleet with two dumps of `examples`, and goes through the
pages in Chromium, driven by chromedriver. The update that the pictures show is started from the console.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.browser.browser import FLAGS
from tests.servers import eventually

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"
WIDTH, PHONE = 1000, 390
WIDTHS = (1440, 768, PHONE)
CLUSTERS = f"""
clusters:
- {{name: harbour, context: sandbox, labels: {{env: production}}}}
- {{name: lighthouse, dump: {ROOT / "examples" / "rehearsal" / "cluster"}, labels: {{env: production}}}}
- {{name: orchard, dump: {ROOT / "examples" / "plain-kubernetes"}, labels: {{env: test}}}}
"""


class Browser:
    """Chromium, by the commands of https://www.w3.org/TR/webdriver2/ and what Chromium adds to them."""

    def __init__(self, driver: str, profile: Path) -> None:
        self._driver = driver
        options = {"args": [*FLAGS, f"--user-data-dir={profile}"]}
        asked = {"capabilities": {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": options}}}
        self._session = f"/session/{self._ask('POST', '/session', asked)['sessionId']}"

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._driver}{path}", data, method=method)
        with urllib.request.urlopen(request, timeout=240) as answer:
            return json.loads(answer.read())["value"]

    def _extra(self, command: str, **params: Any) -> Any:
        return self._ask("POST", f"{self._session}/goog/cdp/execute", {"cmd": command, "params": params})

    def open(self, url: str) -> str:
        """Goes to a page; its text."""
        self._ask("POST", f"{self._session}/url", {"url": url})
        return self.run("return document.body.innerText")

    def run(self, script: str) -> str:
        """Returns the result of a script."""
        return str(self._ask("POST", f"{self._session}/execute/sync", {"script": script, "args": []}))

    def look(self, *, width: int = WIDTH, height: int, dark: bool = False) -> None:
        """Sets the size of what is seen, and light or dark."""
        self._extra(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width == PHONE
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._extra("Emulation.setEmulatedMedia", features=[scheme])

    def picture(self, name: str, *, width: int = WIDTH, height: int, dark: bool = False) -> None:
        """Writes a picture of the upper part of the page."""
        self._write(PICTURES / f"console-{name}.png", width=width, height=height, dark=dark)

    def looks(self, name: str, folder: Path | None) -> None:
        """Writes the whole page at each width, light and dark, into `folder`, if there is one."""
        for width in WIDTHS if folder else ():
            for dark in (False, True):
                self.look(width=width, height=900, dark=dark)
                height = min(int(self.run("return document.documentElement.scrollHeight")), 4000)
                assert folder is not None
                file = folder / f"{name}-{width}-{'dark' if dark else 'light'}.png"
                self._write(file, width=width, height=height, dark=dark)

    def _write(self, file: Path, *, width: int, height: int, dark: bool) -> None:
        self.look(width=width, height=height, dark=dark)
        taken = self._extra("Page.captureScreenshot", format="png")["data"]
        file.write_bytes(base64.b64decode(taken))

    def close(self) -> None:
        """Ends it."""
        self._ask("DELETE", self._session)


@contextmanager
def _started(*command: str, says: str, environment: Mapping[str, str] | None = None) -> Iterator[list[str]]:
    """Runs a program; yields what it says, once that has `says` in it."""
    lines: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                lines.append(line)
                if says in line:
                    break
            yield lines
        finally:
            process.terminate()
            process.wait(60)


def _take(browser: Browser, entered: str, folder: Path | None) -> None:
    """Goes through the pages as somebody does who updates a cluster."""
    url = entered.partition("/enter")[0]
    browser.open(entered)
    eventually(lambda: "Not evaluated yet" not in browser.open(f"{url}/"), "every cluster is judged")
    browser.picture("fleet", height=820)
    browser.looks("fleet", folder)
    browser.open(f"{url}/clusters/harbour")
    browser.picture("preflight", height=900)
    browser.picture("phone", width=PHONE, height=844, dark=True)
    browser.looks("preflight", folder)
    browser.open(f"{url}/clusters/harbour/graph")
    browser.picture("way", height=700)
    browser.looks("way", folder)
    browser.open(f"{url}/history")
    browser.looks("history", folder)
    forecast = f"{url}/clusters/harbour/forecast"
    eventually(lambda: "Not computed yet" not in browser.open(forecast), "the forecast is computed")
    browser.picture("forecast", height=760)
    browser.looks("forecast", folder)
    browser.open(f"{url}/clusters/harbour/start?to=5.0.3")
    browser.picture("start", height=680)
    browser.run("document.querySelector('main form').requestSubmit()")
    eventually(lambda: "Done." in browser.run("return document.body.innerText"), "the update is asked for")
    update = f"{url}/clusters/harbour/update"
    eventually(lambda: re.search(r"Updating|Progressing", browser.open(update)), "the update has begun")
    eventually(lambda: "In all " in browser.run("return document.body.innerText"), "the forecast is computed")
    browser.picture("update", height=760)
    browser.looks("update", folder)


def main() -> int:
    """Writes the pictures; 1 where a program is missing."""
    lacking = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    if lacking:
        sys.stderr.write(f"error: {' and '.join(lacking)} must be installed\n")
        return 1
    PICTURES.mkdir(exist_ok=True)
    looks = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    if looks is not None:
        looks.mkdir(parents=True, exist_ok=True)
    runup = [sys.executable, "-m", "runup"]
    with ExitStack() as ending:
        folder = Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="runup-pictures-")))
        data = ["--data", str(folder / "sandbox")]
        ending.callback(subprocess.run, [*runup, "sandbox", "stop", *data], check=False, stdout=subprocess.DEVNULL)
        subprocess.run([*runup, "sandbox", "start", "--scenario", "skip-level", *data], check=True)
        (folder / "clusters.yaml").write_text(CLUSTERS)
        kubeconfig = str(folder / "sandbox" / "admin.kubeconfig")
        asked = [*runup, "upgrade", "--kubeconfig", kubeconfig]
        eventually(lambda: "5.0.3" in subprocess.check_output(asked, text=True), "updates are offered")
        # By the environment, so that the commands on the pages have no folder of this machine.
        environment = {**os.environ, "KUBECONFIG": kubeconfig}
        inventory = ["--inventory", str(folder / "clusters.yaml")]
        store = ["--store", str(folder / "reports")]
        subprocess.run([*runup, "fleet", "preflight", *inventory, *store], check=False, env=environment)
        serve = [*runup, "serve", *inventory, *store, "--listen", "127.0.0.1:0"]
        says = "to change clusters, open "
        shown = ending.enter_context(_started(*serve, "--allow-actions", says=says, environment=environment))
        driven = ending.enter_context(_started("chromedriver", "--port=0", says="started successfully on port"))
        port = re.search(r"on port (\d+)", driven[-1])
        assert port is not None
        browser = Browser(f"http://127.0.0.1:{port[1]}", folder / "profile")
        ending.callback(browser.close)
        _take(browser, shown[-1].removeprefix(says).strip(), looks)
    for file in sorted(PICTURES.glob("console-*.png")):
        print(f"wrote {file.name}, {file.stat().st_size // 1024} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
