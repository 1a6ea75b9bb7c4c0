"""How the documentation site is built: `make docs`. Every page is Markdown that also reads well where it lies."""

import re
from pathlib import Path

project = "runup"
extensions = ["myst_parser", "sphinx_reredirects"]
# Dead links between pages, and links to headings that are not there, end the build (`-W`).
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
html_theme = "furo"
html_title = "runup"
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False

# Folder -> pages that were directly in docs/ before. Alerts, releases and old links contain their addresses.
_MOVED = {
    "tutorial": "first-minutes",
    "how-to": "air-gapped any-kubernetes backup console drains fleets forecast gates install kernel-modules "
    "kubesandbox preflight-in-cluster rehearsal releases runbooks sandbox troubleshooting uninstall update-status "
    "update-status-hypershift update-status-kubernetes upgrade",
    "reference": "cli compatibility kubekit metrics operator python-api sandbox-api sandbox-differences sizing "
    "update-writes what-it-looks-like spec/conditions spec/preflight-v1 spec/updatestatus-v1alpha1",
    "explanation": "applying corpus-preflight limits preflight-design security",
    "contributing": "real-cluster releasing",
}
_OLD = {page: f"{folder}/{page}.html" for folder, pages in _MOVED.items() for page in pages.split()} | {
    "upstream-behaviour": "reference/upstream.html",
    "checks/writing-checks": "how-to/writing-checks.html",
}
# The URL of a risk is /checks/NAME below the site (`runup.report.documentation`).
_CHECKS = Path(__file__).parent / "reference" / "checks"
_OLD |= {f"checks/{path.stem}": f"reference/checks/{path.stem}.html" for path in _CHECKS.glob("*.md")}
_UNKNOWN = re.findall(r"^### (\w+)$", (_CHECKS / "unknown.md").read_text(encoding="utf-8"), re.MULTILINE)
_OLD |= {f"checks/{name}": f"reference/checks/unknown.html#{name.lower()}" for name in _UNKNOWN}
# `/checks/NAME` is found by servers that add `.html`, and by servers that look for `index.html` in a folder. Targets
# are relative, because a site may be below a path.
_SOURCES = ((f"{old}{end}", new) for old, new in _OLD.items() for end in ("", "/index"))
redirects = {source: f"{'../' * source.count('/')}{new}" for source, new in _SOURCES}
