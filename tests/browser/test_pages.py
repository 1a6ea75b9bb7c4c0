"""The pages to send in a real browser: axe-core finds nothing on a screen, in the dark, on a narrow one, on paper.

Runs where Chromium and npm are; the rules of the markup itself are held everywhere by `tests/cli/render`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from tests.browser import browser
from tests.cli.preflight.render import samples
from tests.cli.rehearse.test_drain_command import a_result
from tests.cli.updatestatus.render.test_html import NOW, USUAL
from tests.console.boards import STEPS

from runup.cli.fleet.render.fleet_page import page as fleet_page
from runup.cli.fleet.render.history_page import page as history_page
from runup.cli.preflight.render.preflight_page import page
from runup.cli.rehearse.drain_page import page as drain_page
from runup.cli.updatestatus.render.status_page import page as status_page
from runup.evaluation.results import ClusterResult
from runup.fleet.decide.matrix import matrix

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240), pytest.mark.xdist_group("browser")]
NAME = "prod-x7k2p (api.prod.example.com)"
FLEET = [
    ClusterResult(name=name, findings=found, tried=samples.WHEN)
    for name, found in (
        (NAME, samples.FOUND),
        ("harbour <b>", samples.FOUND),
        ("lighthouse", samples.CLEAR),
        ("x", samples.FAILED),
    )
]
PAGES = {
    "a preflight with everything": page(samples.FOUND, samples.WHEN, cluster=NAME),
    "a preflight that found nothing": page(samples.CLEAR, samples.WHEN, cluster=NAME),
    "a preflight that could not run": page(samples.FAILED, samples.WHEN),
    "a fleet": fleet_page(matrix([(one.name, one.findings) for one in FLEET]), FLEET, samples.WHEN),
    "an update under way": status_page(USUAL, NOW, cluster=NAME),
    "a status that was never written": status_page(None, NOW),
    "simulated drains": drain_page("Simulated drains", ["They take an hour."], a_result(), ()),
    "a history": history_page(STEPS, "", samples.WHEN, weeks=False, notes=("left out: 1.json",)),
    "a history of a cluster": history_page(STEPS, NAME, samples.WHEN, weeks=False, notes=()),
}
LOOKS = {
    "on a screen": ("", "", 1200),
    "in the dark": ("@media (prefers-color-scheme: dark)", "@media all", 1200),
    "at 200 %": ("", "", 640),
    "on a narrow screen": ("", "", 500),
    "on a phone": ("", "", 390),
    "on paper": ("@media print", "@media all", 800),
}


@pytest.fixture(scope="session")
def axe() -> Path:
    """axe-core; where it cannot be fetched that is tried once."""
    browser.chromium()
    return browser.axe()


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing(name: str, look: str, axe: Path, tmp_path: Path) -> None:
    """Contrast of 4.5 to 1, headings in order, captions, landmarks, what keys reach; and nothing left undecided."""
    old, new, width = LOOKS[look]
    assert old in PAGES[name]
    html = PAGES[name].replace(old, new) if old else PAGES[name]
    found = browser.found_by_axe(axe, html, tmp_path, width=width)
    assert [one for one in found if not _is_of_a_table(one)] == []


def _is_of_a_table(found: dict[str, Any]) -> bool:
    """Returns whether axe-core could not decide about the contrast of a table's cells, or of words in a drawing.

    Cells that reach out of their frame are shown on wider screens; a number of one digit is too short to be sure of it.
    Words in a drawing have the colours of the page, which axe-core evaluates elsewhere.
    """
    undecided = found["kind"] == "incomplete" and found["id"] == "color-contrast"
    known = ("partially obscured", "content is too short", "contains an image node")
    return undecided and all(any(words in why for words in known) for _, why in found["nodes"])


def test_axe_would_find_something(axe: Path, tmp_path: Path) -> None:
    """A colour that is too pale: the evaluate itself works."""
    pale = PAGES["a preflight with everything"].replace("--text: #1b2430", "--text: #b8bcc2")
    assert "color-contrast" in {found["id"] for found in browser.found_by_axe(axe, pale, tmp_path)}


@pytest.mark.parametrize("width", [640, 500, 390, 320])
@pytest.mark.parametrize("name", PAGES)
def test_a_narrow_screen_is_not_moved_sideways(name: str, width: int, tmp_path: Path) -> None:
    """Long names are folded; only tables move, in a separate frame. 320: WCAG 2.2, 1.4.10."""
    browser.chromium()
    assert browser.moved_sideways(PAGES[name], tmp_path, width=width) == 0


def test_a_page_that_is_too_wide_is_noticed(tmp_path: Path) -> None:
    """A block of 600 pixels in 390: the evaluate itself works."""
    wide = PAGES["a preflight with everything"].replace("</body>", '<div style="width: 600px">x</div></body>')
    assert browser.moved_sideways(wide, tmp_path, width=390) > 200


@pytest.mark.parametrize("name", PAGES)
def test_prints_a_legible_pdf(name: str, tmp_path: Path) -> None:
    """The text of a printed page can be read and searched: every heading, and every cell of a table, folded or not."""
    if shutil.which("pdftotext") is None:
        pytest.skip("pdftotext is not installed; it reads the text of a printed page")
    page = tmp_path / "page.html"
    page.write_text(PAGES[name])
    file = tmp_path / "page.pdf"
    browser.run("--no-pdf-header-footer", f"--print-to-pdf={file}", page.as_uri())
    printed = subprocess.run(["pdftotext", "-raw", str(file), "-"], capture_output=True, text=True, check=True).stdout
    # A line may be broken anywhere in a long name.
    folded = re.sub(r"\s+", "", printed)
    texts = re.findall(r"<(?:h1|h2|h3|caption|summary)[^>]*>([^<]+)", PAGES[name])
    texts += re.findall(r'<th scope="row"[^>]*>([^<]+)', PAGES[name])
    assert texts
    # Explanations of risks are left out of print; the fonts of a machine may lack other letters.
    wanted = {text for text in map(unescape, texts) if text.isascii()} - {"What this risk means"}
    assert [text for text in sorted(wanted) if re.sub(r"\s+", "", text) not in folded] == []
