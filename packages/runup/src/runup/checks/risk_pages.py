"""Finds the documentation pages of risks, beside the sources or packaged with runup."""

from __future__ import annotations

import re

from runup.packaged_files import packaged_files

# A risk's name comes from the command line or a URL: the pattern keeps it from leading out of the folder.
_NAME = re.compile(r"[A-Z][A-Za-z0-9]*")


def find(risk: str) -> str:
    """Returns the Markdown page of `risk`, or an empty string if it has none.

    The risks of one family, such as `MachineConfigPoolPaused-worker`, share a page.
    """
    name = risk.partition("-")[0]
    if not _NAME.fullmatch(name) or name == "README":
        return ""
    pages = packaged_files("docs/reference/checks", f"{name}.md")
    return pages[0].read_text(encoding="utf-8") if pages else ""


def names() -> list[str]:
    """Returns the names of all risks and families of risks that have a page, sorted."""
    page_names = [path.stem for path in packaged_files("docs/reference/checks", "*.md")]
    return sorted(name for name in page_names if _NAME.fullmatch(name) and name != "README")
