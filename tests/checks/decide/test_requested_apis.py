"""Reads requested API versions from an API server's metrics."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.factories import context

from runup.checks.decide.cluster_kinds import ClusterKind
from runup.checks.decide.engine import run_check
from runup.checks.decide.model import Snapshot
from runup.checks.decide.requested_apis import metrics_check, requested_versions


def line(version: str, removed: str, value: str = "1", resource: str = "flowschemas") -> str:
    """A line as the server writes it."""
    group = "flowcontrol.apiserver.k8s.io"
    labels = f'group="{group}",removed_release="{removed}",resource="{resource}",subresource="",version="{version}"'
    return f"apiserver_requested_deprecated_apis{{{labels}}} {value}"


METRICS = "\n".join(
    [
        "# HELP apiserver_requested_deprecated_apis [STABLE] Gauge of deprecated APIs that have been requested",
        "# TYPE apiserver_requested_deprecated_apis gauge",
        line("v1beta3", "1.32"),
        line("v1beta2", "1.29", "0"),
        line("v1beta4", ""),
        line("v1", "1.33", "1", "others"),
        'apiserver_request_total{code="200"} 7',
        "apiserver_requested_deprecated_apis{",
    ]
)


@pytest.mark.parametrize(
    ("target", "names"),
    [
        ("1.31.0", []),
        ("1.32.0", ["RemovedAPIRequested-flowschemas.v1beta3.flowcontrol.apiserver.k8s.io"]),
        (
            "1.33.0",
            [
                "RemovedAPIRequested-flowschemas.v1beta3.flowcontrol.apiserver.k8s.io",
                "RemovedAPIRequested-others.v1.flowcontrol.apiserver.k8s.io",
            ],
        ),
    ],
)
def test_what_was_asked_for(target: str, names: list[str]) -> None:
    """Up to the target; what was not asked for, and what nobody removes, is nothing."""
    update = replace(context("1.30.0", target, target), cluster=ClusterKind.KUBERNETES)
    outcome = run_check(metrics_check(requested_versions(METRICS)), Snapshot(), update)
    assert sorted(finding.name for finding in outcome.findings) == names


def test_what_is_not_known() -> None:
    """A refusal is not an empty answer."""
    update = replace(context("1.30.0", "1.31.0", "1.31.0"), cluster=ClusterKind.KUBERNETES)
    outcome = run_check(metrics_check((), "forbidden"), Snapshot(), update)
    assert (outcome.result, [finding.name for finding in outcome.findings]) == (
        "Unknown",
        ["RemovedAPIRequestedUnknown"],
    )


def test_no_metrics() -> None:
    """A server that was asked for nothing that is deprecated has no such line."""
    assert requested_versions("") == ()
