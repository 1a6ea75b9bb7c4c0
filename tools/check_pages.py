"""Write the pages of the catalogue's checks: `python tools/check_pages.py`. `make docs` and a test say when they are
old.

Only checks that carry a docstring for it have a page of this kind; the others' are written by hand.
"""

from __future__ import annotations

import sys
from pathlib import Path

from runup.checks.catalogue import CHECKS
from runup.checks.decide import check_page

FOLDER = Path(__file__).parents[1] / "docs" / "reference" / "checks"


def pages() -> dict[str, str]:
    """Name of the file -> its text."""
    made = [check for check in CHECKS if check.about]
    return {f"{check.name}.md": check_page.page(check) for check in made} | {
        f"{check.unknown_risk}.md": check_page.unknown_page(check) for check in made
    }


def main() -> int:
    """Write what differs, and name it; name what a check lacks to become a page, which is an error."""
    for name, text in pages().items():
        path = FOLDER / name
        if not path.is_file() or path.read_text() != text:
            path.write_text(text)
            print(path.relative_to(FOLDER.parents[2]))
    lacking = [f"{check.name}: {what}" for check in CHECKS if check.about for what in check_page.problems(check)]
    print(*lacking, sep="\n", end="\n" if lacking else "")
    return 1 if lacking else 0


if __name__ == "__main__":
    sys.exit(main())
