"""Each of the 65 acceptance cases of automatic updates has a test that names its number."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("rollout", "fleet", "ocm", "updaters", "cli/rollout")
FILES = (
    *(file for folder in FOLDERS for file in (ROOT / folder).rglob("test_*.py")),
    ROOT / "contract/test_update_policies.py",
)
# 1 to 64, and 55a.
CASES = {*map(str, range(1, 65)), "55a"}
_NAME = re.compile(r"def test_((?:\d+a?_)+)")
_ROW = re.compile(r'id=f?"(\d+a?)(?:"|: )')


def _named(text: str) -> set[str]:
    """The numbers in the names of tests and of rows."""
    names = {number for name in _NAME.findall(text) for number in name.strip("_").split("_")}
    return names | set(_ROW.findall(text))


def test_each_case_has_a_test() -> None:
    """A test is `test_42_...`, a row of a table has an id such as `42: ...`."""
    found = set().union(*(_named(file.read_text(encoding="utf-8")) for file in FILES))
    assert sorted(CASES - found) == []
    assert sorted(found - CASES) == []
