"""Checks that wait a while before they say anything: at the moment that their page names, and a second off it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.factories import NOW

from runup.checks.catalogue import CHECKS
from runup.checks.decide import check_page
from runup.checks.decide.engine import run_check

SECOND, HOUR, MONTH = timedelta(seconds=1), timedelta(hours=1), timedelta(days=30)
TEN_MINUTES = timedelta(minutes=10)
TODAY = "2026-01-14T08:00:00Z"


@pytest.mark.parametrize(
    ("name", "moment", "applies", "clear"),
    [
        ("NodeUninitialized", "2026-01-10T08:00:00Z", HOUR, HOUR - SECOND),
        ("StuckTerminating", "2026-01-10T12:00:00Z", HOUR, HOUR - SECOND),
        ("CertificateRequestsPending", TODAY, TEN_MINUTES, TEN_MINUTES - SECOND),
        ("VolumeAttachmentStuck", TODAY, TEN_MINUTES, TEN_MINUTES - SECOND),
        ("RemovedAPIStored", "2026-01-13T08:00:00Z", MONTH, MONTH + SECOND),
    ],
    ids=lambda value: value if isinstance(value, str) and not value[0].isdigit() else "",
)
def test_how_long_a_check_waits(name: str, moment: str, applies: timedelta, clear: timedelta) -> None:
    """No second more or less than its page says."""
    (check,) = (each for each in CHECKS if each.name == name)
    assert check.example.count(moment) == 1

    def finds(age: timedelta) -> bool:
        aged = replace(check, example=check.example.replace(moment, f"{NOW - age:%Y-%m-%dT%H:%M:%SZ}"))
        return bool(run_check(aged, *check_page.example(aged)).findings)

    assert (finds(applies), finds(clear)) == (True, False)


def test_how_early_an_end_is_told() -> None:
    """Seven days before the certificate of the example ends, and no second earlier."""
    (check,) = (each for each in CHECKS if each.name == "CertificateAuthorityExpires")
    snapshot, context = check_page.example(check)
    early = datetime(2026, 1, 9, tzinfo=UTC)

    def found(now: datetime) -> list[str]:
        return [finding.message for finding in run_check(check, snapshot, replace(context, now=now)).findings]

    assert found(early - SECOND) == []
    assert "ends at 2026-01-16T00:00:00Z" in found(early)[0]
    assert "ended at 2026-01-16T00:00:00Z" in found(early + timedelta(days=7))[0]
