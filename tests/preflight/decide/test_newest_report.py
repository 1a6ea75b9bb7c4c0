"""The newest report as it travels to a hub: small enough, readable by people, and never with a risk less."""

from __future__ import annotations

import json
import random
from base64 import b64decode
from typing import Any

import pytest
from msgspec.structs import replace
from tests.factories import NOW

from runup.preflight.decide import newest_report
from runup.report.report import (
    FORMAT,
    MAX_CHECKS,
    MAX_RISKS,
    Report,
    ReportedCheck,
    ReportedResource,
    ReportedRisk,
)

SMALL = Report(
    format=FORMAT, source_version="5.0.0", target_version="5.1.0", execution_status="completed", observed_time=NOW
)


def risk(number: int, applies: Any = "True", text: str = "It is so.") -> ReportedRisk:
    """A risk with a separate name."""
    return ReportedRisk(name=f"Risk{number}", applies=applies, message=text)


def noise(seed: int, length: int) -> str:
    """Text that cannot be packed well."""
    return "".join(random.Random(seed).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=length))


@pytest.mark.parametrize(
    ("report", "said"),
    [
        pytest.param(SMALL, "5.1.0: 0 risks apply, 0 unknown, observed 2026-01-14T10:00:00Z", id="nothing"),
        pytest.param(
            replace(SMALL, risks=(risk(1), risk(2, "Unknown"), risk(3, "Unknown")), observed_time=None),
            "5.1.0: 1 risk applies, 2 unknown",
            id="some",
        ),
        pytest.param(
            replace(SMALL, execution_status="failed", message="no\nroute"),
            "5.1.0: not evaluated: no",
            id="not evaluated",
        ),
    ],
)
def test_the_summary(report: Report, said: str) -> None:
    """One line for anybody who looks at the ConfigMap or the work."""
    summary = newest_report.with_report(report)["data"]["summary"]
    assert summary.startswith(said)
    assert "\n" not in summary


def test_a_large_report_loses_details_and_no_risk() -> None:
    """As much as a target may report, with texts that hardly pack."""
    resources = tuple(ReportedResource(kind="Pod", name=noise(each, 60)) for each in range(20))
    risks = tuple(replace(risk(each, text=noise(each, 2000)), resources=resources) for each in range(MAX_RISKS))
    checks = tuple(ReportedCheck(name=noise(each, 60), result="Clear") for each in range(MAX_CHECKS))
    large = replace(SMALL, risks=risks, checks=checks)
    value = newest_report.with_report(large)["binaryData"]["report"]
    assert len(b64decode(value)) <= newest_report.MAX_BYTES
    found = newest_report.unpack(value)
    assert [(each.name, each.applies) for each in found.risks] == [(each.name, each.applies) for each in risks]
    assert len(json.dumps(value)) < 150 * 1024


def test_a_small_report_loses_nothing() -> None:
    """Objects and remedies travel, too."""
    full = replace(
        SMALL, risks=(replace(risk(1), resources=(ReportedResource(kind="Node", name="n"),), remediation="Do it."),)
    )
    assert newest_report.unpack(newest_report.with_report(full)["binaryData"]["report"]) == full
