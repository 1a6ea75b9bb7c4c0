"""Who writes objects in a version that the target does not serve: of several entries those that count."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runup.checks.catalogue import CHECKS
from runup.checks.decide import check_page

(CHECK,) = (check for check in CHECKS if check.name == "RemovedAPIStored")
HEAD = CHECK.example.partition("  managedFields:")[0]
GROUP = "flowcontrol.apiserver.k8s.io"


def entry(manager: str, version: str = "v1beta3", time: str = "2026-01-13T08:00:00Z") -> str:
    """An entry of managedFields."""
    told = f', time: "{time}"' if time else ""
    return f"  - {{manager: {manager}, operation: Update, apiVersion: {GROUP}/{version}{told}}}\n"


@pytest.mark.parametrize(
    ("entries", "who"),
    [
        pytest.param([entry("a")], f"a in {GROUP}/v1beta3", id="one"),
        pytest.param([entry("a", time="")], "", id="nobody knows when"),
        pytest.param([entry("a", time="2020-01-01T00:00:00Z")], "", id="long ago"),
        pytest.param([entry("a", "v1")], "", id="in a version that stays"),
        pytest.param([entry("a", time=""), entry("b")], f"b in {GROUP}/v1beta3", id="after one of no time"),
        pytest.param(
            [entry("a", time="2020-01-01T00:00:00Z"), entry("b")], f"b in {GROUP}/v1beta3", id="after one of long ago"
        ),
        pytest.param([entry("a", "v1"), entry("b")], f"b in {GROUP}/v1beta3", id="after one in a version that stays"),
        pytest.param(
            [entry("b"), entry("a"), entry("b")], f"a in {GROUP}/v1beta3 and b in {GROUP}/v1beta3", id="two, each once"
        ),
    ],
)
def test_who_writes_what_is_not_served_any_more(entries: list[str], who: str) -> None:
    """Lately, and in such a version."""
    told = check_page.messages(replace(CHECK, example=f"{HEAD}  managedFields:\n{''.join(entries)}"))
    assert [text.partition("Who writes: ")[2] for text in told] == ([f"{who}."] if who else [])
