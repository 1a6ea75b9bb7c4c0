"""The documentation site keeps its old addresses, which alerts, reports and releases contain."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from runup.checks import risk_pages
from runup.report import documentation

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# The pages of the site while all of them were directly in docs/.
FLAT = """
air-gapped any-kubernetes applying backup cli compatibility console corpus-preflight drains first-minutes fleets
forecast gates install kernel-modules kubekit kubesandbox limits metrics operator preflight-design
preflight-in-cluster python-api real-cluster rehearsal releases releasing runbooks sandbox sandbox-api
sandbox-differences security sizing troubleshooting uninstall update-status update-status-hypershift update-writes
upgrade upstream-behaviour what-it-looks-like checks/README checks/writing-checks spec/conditions spec/preflight-v1
spec/updatestatus-v1alpha1
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of one page, with the redirects of ours."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "index.md").write_text("# Only page\n")
    command = [sys.executable, "-m", "sphinx", "-q", "-c", str(DOCS), "-d", str(folder / "trees"), str(folder)]
    subprocess.run([*command, str(folder / "html")], check=True, timeout=120)
    return folder / "html"


def page_behind(site: Path, address: str) -> Path:
    """Returns the source of the page to which a browser is sent from `address`, a path below the site."""
    text = (site / address).read_text()
    (target,) = re.findall(r'content="0; url=([^"]+)"', text)
    path = (site / address).parent.joinpath(target.partition("#")[0]).resolve()
    return DOCS / path.relative_to(site.resolve()).with_suffix(".md")


@pytest.mark.parametrize("name", FLAT.split())
@pytest.mark.parametrize("ending", [".html", "/index.html"])
def test_a_moved_page_is_found_at_its_old_address(site: Path, name: str, ending: str) -> None:
    """Servers look for `/NAME` in one of two files."""
    assert page_behind(site, f"{name}{ending}").is_file()


def test_every_risk_has_a_page_at_its_url(site: Path) -> None:
    """The URL is the one that reports and ClusterVersion contain."""
    for name in risk_pages.names():
        page = urlsplit(documentation.page(name)).path[1:]
        for address in (f"{page}.html", f"{page}/index.html"):
            behind = page_behind(site, address)
            assert name in behind.read_text(), address


def test_every_runbook_of_an_alert_has_its_section(site: Path) -> None:
    """A redirect keeps the anchor, which the target must have."""
    alerts = "\n".join(path.read_text() for path in ROOT.glob("deploy/**/*.yaml"))
    urls = set(re.findall(rf"runbook_url: {re.escape(documentation.BUILT_IN)}/(\S+)", alerts))
    assert len(urls) > 20
    for url in sorted(urls):
        page, _, anchor = url.partition("#")
        headings = re.findall(r"^#+ (.+)$", page_behind(site, f"{page}/index.html").read_text(), re.MULTILINE)
        assert anchor in {heading.lower() for heading in headings}, url
