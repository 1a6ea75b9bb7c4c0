"""Exports the names for writing a check in Python and its tests. Public: docs/reference/python-api.md."""

from __future__ import annotations

from kubekit.api.scheme import Resource, resource_of
from kubekit.lang.version import Version
from runup.checks.decide.engine import CheckOutcome, run_check
from runup.checks.decide.model import Applies, Check, Context, Finding, Snapshot, Unreadable
from runup.checks.decide.snapshots import snapshot_of
from runup.report.report import CheckResult, ReportedResource, Severity

__all__ = [
    "Applies",
    "Check",
    "CheckOutcome",
    "CheckResult",
    "Context",
    "Finding",
    "ReportedResource",
    "Resource",
    "Severity",
    "Snapshot",
    "Unreadable",
    "Version",
    "resource_of",
    "run_check",
    "snapshot_of",
]
