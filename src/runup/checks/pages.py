"""The pages of the documentation about risks, where they are at hand: beside the sources, or packaged with runup."""

from __future__ import annotations

import re
from pathlib import Path

import runup

_FOLDERS = ("../../docs/checks", "docs/checks")
# A risk's name comes from the command line or an address here, and must not lead out of the folder.
_NAME = re.compile(r"[A-Z][A-Za-z0-9]*")


def find(risk: str) -> str:
    """The Markdown page of `risk` (a family such as `MachineConfigPoolPaused-worker` shares one), or nothing."""
    name = risk.partition("-")[0]
    if not _NAME.fullmatch(name) or name == "README":
        return ""
    for folder in _folders():
        path = folder / f"{name}.md"
        if path.is_file():
            return path.read_text(encoding="utf-8")
    return ""


def names() -> list[str]:
    """Every risk, or family of risks, that has a page."""
    found = {path.stem for folder in _folders() for path in folder.glob("*.md")}
    return sorted(name for name in found if _NAME.fullmatch(name) and name != "README")


def _folders() -> list[Path]:
    return [Path(runup.__file__).parent / folder for folder in _FOLDERS]
