"""Reports of targets that are older or newer than the operator which reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runup.report import report
from runup.report.report import BadReport, read

GOLDEN = Path(__file__).parents[2] / "golden" / "reports"
FILES = sorted(GOLDEN.rglob("*.json"))
# What a later release may add: members of any type, in every object of the report.
NEWER: tuple[Any, ...] = ("text", 7, True, None, [], {"a": {"b": [1]}}, [{"name": "X"}])


def _with_more(value: Any, added: Any) -> Any:
    """`value` with a member that nobody knows in each of its objects."""
    if isinstance(value, dict):
        return {**{name: _with_more(member, added) for name, member in value.items()}, "addedLater": added}
    return [_with_more(member, added) for member in value] if isinstance(value, list) else value


@pytest.mark.parametrize("added", NEWER, ids=lambda added: type(added).__name__)
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_newer_targets_report_says_the_same(path: Path, added: Any) -> None:
    """Members are only ever added (docs/reference/spec/preflight-v1.md): an operator ignores unknown ones."""
    document = json.loads(path.read_text())
    assert read(json.dumps(_with_more(document, added)).encode()) == read(path.read_bytes())


@pytest.mark.parametrize("format", ["preflight-v2-json", "preflight-v1", ""])
def test_another_format_is_refused_by_its_name(format: str) -> None:  # noqa: A002  as the member is called
    """What it means is not guessed."""
    newer = {"format": format, "targetVersion": "5.2.0", "executionStatus": "completed"}
    with pytest.raises(BadReport) as refused:
        read(json.dumps(newer).encode())
    assert refused.value.reason == "UnknownFormat"
    assert report.FORMAT in str(refused.value)
