"""Finds the documentation pages of risks, in a checkout or packaged with runup.

All risks of checks without a result share the page `unknown.md`, which has a section for each.
"""

from __future__ import annotations

import re

from runup.packaged_files import packaged_files

_FOLDER = "docs/reference/checks"
# A risk's name comes from the command line or a URL: the pattern keeps it from leading out of the folder.
_NAME = re.compile(r"[A-Z][A-Za-z0-9]*")
_SECTION = re.compile(r"^### (?P<name>[A-Z][A-Za-z0-9]*)\n\n(?P<text>.*?)\n*(?=^#|\Z)", re.MULTILINE | re.DOTALL)


def find(risk: str) -> str:
    """Returns the Markdown page of `risk`, or an empty string if it has none.

    The risks of one family, such as `MachineConfigPoolPaused-worker`, share a page.
    """
    name = risk.partition("-")[0]
    if not _NAME.fullmatch(name) or name == "README":
        return ""
    return _read(f"{name}.md") or _page_of_unknown(name)


def names() -> list[str]:
    """Returns the names of all risks and families of risks that have a page or a section, sorted."""
    page_names = [path.stem for path in packaged_files(_FOLDER, "*.md")]
    sections = [section["name"] for section in _SECTION.finditer(_read("unknown.md"))]
    return sorted({*sections, *(name for name in page_names if _NAME.fullmatch(name) and name != "README")})


def _page_of_unknown(name: str) -> str:
    """Returns the section of `name` and what `unknown.md` says about all such risks, or an empty string."""
    page = _read("unknown.md")
    text = next((section["text"] for section in _SECTION.finditer(page) if section["name"] == name), "")
    general = page.partition("\n\n")[2].partition("\n## ")[0].strip()
    return f"# {name}\n\n{text}\n\n{general}\n" if text else ""


def _read(file: str) -> str:
    """Returns the text of a page, or an empty string if it is missing."""
    pages = packaged_files(_FOLDER, file)
    return pages[0].read_text(encoding="utf-8") if pages else ""
