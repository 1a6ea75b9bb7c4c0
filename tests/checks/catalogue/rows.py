"""Rows of the tables of checks: a cluster, an update, and what a check must say."""

from __future__ import annotations

from typing import NamedTuple

from tests.factories import context, snapshot

from kubekit.api.meta_v1 import Object
from runup.checks.decide.engine import run_check
from runup.checks.decide.model import Check, Context
from runup.report.report import NAME

PATCH = context("5.0.0", "5.0.7", "1.36.4")
MINOR = context("5.0.0", "5.1.0", "1.37.0")
SKIP = context()
FORBIDDEN = 'clusterrole rule needed: {apiGroups: [""], resources: [x], verbs: [get, list, watch]}'


class Row(NamedTuple):
    """A cluster, an update, and the risks expected: `Name` where it applies, `Name?` where it is unknown."""

    id: str
    check: Check
    objects: tuple[Object, ...]
    risks: tuple[str, ...] = ()
    context: Context = SKIP
    unreadable: tuple[type[Object], ...] = ()


def evaluate(row: Row) -> None:
    """Run the row's check, and compare."""
    outcome = run_check(
        row.check, snapshot(*row.objects, unreadable=dict.fromkeys(row.unreadable, FORBIDDEN)), row.context
    )
    found = tuple(finding.name + ("" if finding.applies.value == "True" else "?") for finding in outcome.findings)
    assert row.risks == found
    for finding in outcome.findings:
        assert NAME.fullmatch(finding.name)
        assert finding.message.endswith(".")
        assert len(finding.remediation.splitlines()) == 1
