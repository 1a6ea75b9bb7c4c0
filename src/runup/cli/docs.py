"""The page of the documentation for a risk, where it is at hand: beside the sources, or packaged with runup."""

from __future__ import annotations

from pathlib import Path

import runup

_FOLDERS = ("../../docs/checks", "docs/checks")


def page(risk: str) -> str:
    """The Markdown page of `risk` (a family such as `MachineConfigPoolPaused-worker` shares one), or nothing."""
    here = Path(runup.__file__).parent
    for name in dict.fromkeys((risk, risk.partition("-")[0])):
        # A risk's name comes from the command line here, and must not lead out of the folder.
        if "/" in name or name.startswith("."):
            continue
        for folder in _FOLDERS:
            path = here / folder / f"{name}.md"
            if path.is_file():
                return path.read_text()
    return ""
