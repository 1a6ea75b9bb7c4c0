"""Draws pages in a real browser if one is installed: headless Chromium and axe-core, which npm fetches once.

Neither comes with Python, and Chromium is large, so tests that need them are skipped with the missing program's name.
The input is a page as text, the output what axe-core finds in it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from html import unescape
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
)
LIMIT_S = 240
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
# Rules of WCAG 2.2 to level AA and what axe-core calls best practice: order of headings, captions, landmarks.
AXE = """axe.run(document).then(
  found => ["violations", "incomplete"].flatMap(kind => found[kind].map(rule => ({kind, id: rule.id, nodes:
    rule.nodes.map(node => [node.target.join(" "), node.failureSummary])}))),
  error => [{kind: "error", id: String(error), nodes: []}]
)"""
SIDEWAYS = (
    """Promise.resolve([innerWidth, document.documentElement.scrollWidth - document.documentElement.clientWidth])"""
)
# A window of Chromium is never narrower than 500 pixels, whatever it is asked for; a frame in it is.
FRAME = """<!doctype html><html lang="en"><head><title>frame</title></head><body>
<iframe title="page" src="PAGE" style="border: 0; width: WIDTHpx; height: 1000px"></iframe>
<script>addEventListener("message", event => {
  const told = document.createElement("pre"); told.id = "answer"; told.textContent = event.data;
  document.body.append(told);
});</script></body></html>"""


def chromium() -> str:
    """Where Chromium is; skips where it is not."""
    found = next((path for name in CHROMIUM if (path := shutil.which(name))), "")
    if not found:
        pytest.skip("chromium is not installed; with it and npm the pages are looked at in a browser")
    return found


def axe() -> Path:
    """axe-core as the lock next to this file pins it, fetched once; skips where that cannot be."""
    lock = (HERE / "package-lock.json").read_bytes()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "runup" / "browser"
    folder = cache / hashlib.sha256(lock).hexdigest()[:16]
    script = folder / "node_modules" / "axe-core" / "axe.min.js"
    if not script.is_file():
        _fetch(cache, folder)
    return script


def _fetch(cache: Path, folder: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed, which fetches axe-core")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as made:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, made)
        command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1"]
        try:
            subprocess.run(command, cwd=made, capture_output=True, text=True, check=True, timeout=LIMIT_S)
        except subprocess.SubprocessError as error:
            pytest.skip(f"axe-core could not be fetched: {error}")
        # Another process may have been faster; both have the same.
        if not folder.exists():
            shutil.copytree(made, f"{made}.whole")
            try:
                Path(f"{made}.whole").rename(folder)
            except OSError:
                shutil.rmtree(f"{made}.whole")


def run(*words: str) -> str:
    """Run Chromium with a separate profile; what it printed."""
    with tempfile.TemporaryDirectory(prefix="runup-browser-") as profile:
        command = [chromium(), *FLAGS, f"--user-data-dir={profile}", *words]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=LIMIT_S).stdout


def found_by_axe(script: Path, page: str, folder: Path, *, width: int = 1200) -> list[dict[str, Any]]:
    """What axe-core (`script`) says about `page`, drawn `width` pixels wide: faults, and what it could not decide."""
    found: list[dict[str, Any]] = _asked(
        page, folder, question=AXE, library=f'<script src="{script.as_uri()}"></script>', width=width
    )
    return found


def moved_sideways(page: str, folder: Path, *, width: int) -> int:
    """By how many pixels `page` is wider than the `width` pixels it is drawn in."""
    inner, wider = _asked(page, folder, question=SIDEWAYS, library="", width=width)
    assert inner == width
    return int(wider)


def asked(page: str, folder: Path, question: str, *, width: int) -> Any:
    """The answer of a promise, `question`, in the window of `page`, drawn `width` pixels wide."""
    return _asked(page, folder, question=question, library="", width=width)


def _asked(page: str, folder: Path, question: str, library: str, width: int) -> Any:
    """The answer of a promise, `question`, in the page's own window."""
    # The page forbids every script, so the copy that is looked at has to do without that.
    copy = POLICY.sub("", page)
    assert copy != page
    file = folder / "page.html"
    answer = f"{question}.then(found => parent.postMessage(JSON.stringify(found), '*'))"
    begin = f"addEventListener('load', () => {answer})"
    file.write_text(copy.replace("</body>", f"{library}<script>{begin}</script></body>"))
    frame = folder / "frame.html"
    frame.write_text(FRAME.replace("PAGE", file.as_uri()).replace("WIDTH", str(width)))
    drawn = run("--virtual-time-budget=30000", f"--window-size={max(width, 800)},1000", "--dump-dom", frame.as_uri())
    shown = re.search(r'<pre id="answer">(.*?)</pre>', drawn, re.DOTALL)
    assert shown is not None, "the page did not answer"
    return json.loads(unescape(shown[1]))
