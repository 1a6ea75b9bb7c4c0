"""Reads from an API server's metrics which API versions were requested, and evaluates them for a target.

The metric has no user and no time: it says only that a version was requested since the server started
(k8s.io/apiserver, pkg/endpoints/metrics: apiserver_requested_deprecated_apis).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kubekit.api.scheme import Resource
from runup.checks.decide.cluster_kinds import KUBERNETES
from runup.checks.decide.model import Check, Context, Finding, Snapshot
from runup.checks.decide.wording import could_not_tell_finding

METRIC = "apiserver_requested_deprecated_apis"
NAME = "RemovedAPIRequested"
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_MINOR = re.compile(r"1\.(\d+)")


@dataclass(frozen=True, slots=True)
class RequestedVersion:
    """A deprecated version that was requested; `removed` is the minor version that removes it, or None."""

    group: str
    version: str
    resource: str
    removed: int | None

    @property
    def name(self) -> str:
        """The version as APIRequestCounts are named: `flowschemas.v1beta3.flowcontrol.apiserver.k8s.io`."""
        return f"{self.resource}.{self.version}.{self.group}".rstrip(".")


def requested_versions(metrics: str) -> tuple[RequestedVersion, ...]:
    """Returns the versions in the text of `/metrics`, by name."""
    found_versions = set()
    for line in metrics.splitlines():
        if not line.startswith(f"{METRIC}{{"):
            continue
        try:
            was_requested = float(line.rpartition("}")[2].split()[0]) > 0
        except (IndexError, ValueError):
            continue
        if was_requested:
            labels = dict(_LABEL.findall(line))
            removed = _MINOR.fullmatch(labels.get("removed_release", ""))
            group, version, resource = (labels.get(label, "") for label in ("group", "version", "resource"))
            found_versions.add(RequestedVersion(group, version, resource, int(removed[1]) if removed else None))
    return tuple(sorted(found_versions, key=lambda version: version.name))


def metrics_check(requested: Iterable[RequestedVersion], problem: str = "") -> Check:
    """Returns the check of the requested versions; `problem` says why they are unknown."""
    versions = tuple(requested)

    def run(_snapshot: Snapshot, context: Context) -> Iterator[Finding]:
        """Yields a finding for each requested version that the target does not serve any more."""
        target = context.target.minor
        for version in versions:
            if version.removed is not None and version.removed <= target:
                yield Finding(
                    name=f"{NAME}-{version.name}",
                    message=f"{version.name} was asked for since the API server started and is removed in Kubernetes "
                    f"1.{version.removed}. Who asked, its metrics do not say.",
                    reason=NAME,
                    severity="critical",
                    remediation="Find the clients in the audit log (annotation k8s.io/removed-release), and move "
                    "them to a version that is served.",
                )
        if problem:
            yield could_not_tell_finding(
                NAME, problem, "Give the right to get the path /metrics, or leave out --api-metrics."
            )

    reads: tuple[Resource, ...] = ()
    return Check(
        name=NAME,
        component="kube-apiserver",
        reads=reads,
        run=run,
        unknown_risk=f"{NAME}Unknown",
        severity="critical",
        clusters=KUBERNETES,
    )
