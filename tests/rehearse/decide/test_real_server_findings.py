"""The findings of a real API server: names that every report takes, and the versions that it represents."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from runup.rehearse.decide.rehearsal_findings import report_of
from runup.rehearse.decide.rehearsal_outcome import (
    Action,
    CopyAccount,
    FieldChange,
    ObjectChange,
    RealServerOutcome,
    Rehearsal,
    Weight,
    WriteRefused,
)
from runup.release.decide.manifest import Identity
from runup.report.report import MAX_NAME, NAME

NOW = datetime(2026, 1, 14, 10, tzinfo=UTC)
# As long as a group may be: a DNS subdomain.
LONG_GROUP = ".".join(["a" * 62] * 4)


def risk_names(server: RealServerOutcome) -> list[str]:
    """The names of the risks that the report of a rehearsal with this server has."""
    rehearsal = Rehearsal(
        account=CopyAccount(source="a dump", objects=1),
        source="1.33.0",
        target="1.34.0",
        kubernetes=True,
        server=server,
    )
    return [risk.name for risk in report_of(rehearsal, now=NOW, engine_version="1.0.0").risks]


KINDS = {
    "an ordinary kind": (Identity("example.org", "Widget", "shop", "a"), "Widget.example.org"),
    "the core group": (Identity("", "ConfigMap", "shop", "a"), "ConfigMap"),
    "the longest group": (Identity(LONG_GROUP, "Widget", "shop", "a"), "Widget.aaa"),
    "a kind that is no name": (Identity("example.org", "My_Widget", "shop", "a"), "My-Widget.example.org"),
    "a kind with another alphabet's letters": (Identity("example.org", "Größe", "shop", "a"), "Gr--e.example.org"),
}


@pytest.mark.parametrize(("identity", "tail"), KINDS.values(), ids=KINDS)
def test_names_of_risks(identity: Identity, tail: str) -> None:
    """Whatever the kind is called, a report can have the risk."""
    field = FieldChange(path="spec.size", before=1, after=2, weight=Weight.OTHER)
    refused = WriteRefused(identity, "spec.size: Required value")
    change = ObjectChange(identity=identity, action=Action.UPDATE, fields=(field,))
    found = risk_names(
        RealServerOutcome(
            version="1.34.4", wanted="1.34", objects=1, tried=1, refused=(refused,), read_changes=(change,)
        )
    )
    for name, start in zip(sorted(found), ("RehearsalReadsOtherwise-", "RehearsalStoredRefused-"), strict=True):
        assert name.startswith(start + tail)
        assert NAME.fullmatch(name)
        assert len(name) <= MAX_NAME


VERSIONS = {
    "with a patch version": ("1.34.0", []),
    "without one": ("1.34", []),
    "of a distribution": ("v1.34.2+k3s1", []),
    "another minor version": ("1.35", ["RehearsalServerDiffers"]),
    "not known": ("", ["RehearsalServerDiffers"]),
    "no version": ("newest", ["RehearsalServerDiffers"]),
}


@pytest.mark.parametrize(("wanted", "expected"), VERSIONS.values(), ids=VERSIONS)
def test_the_version_of_the_server(wanted: str, expected: list[str]) -> None:
    """A server of the target's minor version represents it; of any other it is reported."""
    assert risk_names(RealServerOutcome(version="1.34.4", wanted=wanted)) == expected
