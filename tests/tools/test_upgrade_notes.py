"""The page of urgent upgrade notes names checks that exist, and has each note of the changelogs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.kubernetes_tables import VERSIONS, Unavailable, download

from runup.checks.catalogue import CHECKS

PAGE = Path(__file__).parents[2] / "docs/reference/upgrade-notes.md"
_ROW = re.compile(
    r"\| 1\.(\d+) \| \[#(\d+)\]\(https://github\.com/kubernetes/kubernetes/pull/(\d+)\): [^|]+ \| ([^|]+) \|"
)
_SECTION = re.compile(r"^## Urgent Upgrade Notes.*?\n(.*?)(?=^##? )", re.MULTILINE | re.DOTALL)
_PULL = re.compile(r"\(\[#(\d+)\]\(https://github\.com/kubernetes/kubernetes/pull/\d+\)")
FIRST, LAST_RELEASED = 24, 37


def rows() -> Iterator[tuple[int, int, str]]:
    """Yields the minor version, the pull request and the last column of each row."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| 1.")]
    for line in lines:
        match = _ROW.fullmatch(line)
        assert match is not None, line
        assert match[2] == match[3], line
        yield int(match[1]), int(match[2]), match[4]


def test_each_note_has_a_check_that_exists_or_a_reason() -> None:
    """A name without a check, and a row without either, is an error of the page."""
    names = {check.name for check in CHECKS}
    for minor, pull, answer in rows():
        named = re.findall(r"\[(\w+)\]\(checks/(\w+)\.md\)", answer)
        assert all(text == file for text, file in named)
        assert {text for text, _ in named} <= names, (minor, pull)
        assert named or re.match(r"(none|not checked yet): \w", answer), (minor, pull)


def test_no_note_occurs_twice() -> None:
    """A pull request may have a note in one version alone."""
    pulls = [pull for _, pull, _ in rows()]
    assert len(set(pulls)) == len(pulls)
    assert {minor for minor, _, _ in rows()} >= {*range(FIRST, LAST_RELEASED + 1)} - {30}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_page_has_each_note_of_the_changelogs() -> None:
    """Those of the release and of its prereleases, where the modules can be downloaded."""
    expected: dict[int, set[int]] = {}
    for version in VERSIONS:
        minor = int(version.partition(".")[0])
        if minor < FIRST:
            continue
        try:
            module = download(f"k8s.io/kubernetes@v1.{version}")
        except Unavailable as error:
            if os.environ.get("RUNUP_E2E") == "required":
                raise
            pytest.skip(str(error))
        text = (module / "CHANGELOG" / f"CHANGELOG-1.{minor}.md").read_text()
        expected[minor] = {int(pull) for section in _SECTION.findall(text) for pull in _PULL.findall(section)}
    found: dict[int, set[int]] = {minor: set() for minor in expected}
    for minor, pull, _ in rows():
        found[minor].add(pull)
    assert found == expected
