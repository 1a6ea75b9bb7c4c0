"""Finds the documentation pages of risks, beside the sources or packaged with runup."""

from __future__ import annotations

import re
from pathlib import Path

import runup

# Of a checkout, then of an installed package.
_FOLDERS = ("../../docs/checks", "docs/checks")
# A risk's name comes from the command line or a URL: the pattern keeps it from leading out of the folder.
_NAME = re.compile(r"[A-Z][A-Za-z0-9]*")


def find(risk: str) -> str:
    """Returns the Markdown page of `risk`, or an empty string if it has none.

    The risks of one family, such as `MachineConfigPoolPaused-worker`, share a page.
    """
    name = risk.partition("-")[0]
    if not _NAME.fullmatch(name) or name == "README":
        return ""
    for folder in _folders():
        path = folder / f"{name}.md"
        if path.is_file():
            return path.read_text(encoding="utf-8")
    return ""


def names() -> list[str]:
    """Returns the names of all risks and families of risks that have a page, sorted."""
    page_names = {path.stem for folder in _folders() for path in folder.glob("*.md")}
    return sorted(name for name in page_names if _NAME.fullmatch(name) and name != "README")


def _folders() -> list[Path]:
    """Returns the folders that may hold pages: the checkout's `docs/checks`, then the packaged one."""
    return [Path(runup.__file__).parent / folder for folder in _FOLDERS]
