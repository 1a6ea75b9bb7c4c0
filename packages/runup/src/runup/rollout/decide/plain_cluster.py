"""Describes a cluster without a ClusterVersion by one, so that its runs have the same steps as those of OpenShift.

The version of the API server and those of the kubelets show whether an update is in progress or complete. A version of
Kubernetes has no release image. `release_of` names it by a pull spec with the digest of the version, so that approvals
and reports are bound to the version as they are bound to an image (docs/decisions/0130).
"""

from __future__ import annotations

import hashlib
import string
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal

import msgspec
from msgspec.structs import replace

from kubekit.api.core_v1 import Node
from kubekit.api.meta_v1 import ObjectMeta
from kubekit.lang.version import without_v
from kubekit.rules.version_skew import is_minor, version_of, without_build
from runup.api.config_v1 import ClusterVersion, ClusterVersionSpec, ClusterVersionStatus, Release, Update, UpdateHistory
from runup.api.update_policy_v1alpha1 import Candidate
from runup.preflight.decide.stored_reports import History
from runup.report.report import Report

# A cluster without a ClusterVersion does not record when its version was installed.
_NO_TIME = datetime(1970, 1, 1, tzinfo=UTC)


class PlainCluster(msgspec.Struct, frozen=True, kw_only=True):
    """The version of the API server, the version of each kubelet, and the UID of namespace kube-system."""

    server: str
    kubelets: tuple[str, ...] = ()
    uid: str = ""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """The request that an updater's object holds: `is_ours` if a run of this controller wrote the run's version.

    `other` is the version that replaced it; `resource_version` is that of the object.
    """

    is_ours: bool = False
    other: str = ""
    resource_version: str = ""


def plain_cluster(server: str, nodes: Sequence[Node], uid: str = "") -> PlainCluster:
    """Returns the versions of a cluster."""
    kubelets = tuple(sorted({node.status.node_info.kubelet_version for node in nodes}))
    return PlainCluster(server=server, kubelets=kubelets, uid=uid)


def release_of(version: str) -> Candidate:
    """Returns a version of Kubernetes as a release: its pull spec has the SHA-256 of the version as the digest."""
    digest = hashlib.sha256(without_v(version).encode()).hexdigest()
    return Candidate(version=version, image=f"kubernetes@sha256:{digest}")


def is_at(running: str, target: str) -> bool:
    """Reports whether a component runs the target. A target without a build is every build of that version."""
    found, wanted = without_v(running), without_v(target)
    return bool(found) and (found == wanted or without_build(found) == wanted)


def cluster_version_of(
    plain: PlainCluster, target: str = "", request: Request | None = None, *, begun: bool = False
) -> ClusterVersion:
    """Returns the ClusterVersion that describes the cluster as a run to `target` sees it.

    Its history is Completed if all components run the target, and Partial if one of them does. `begun`: the run has
    begun; if nothing runs the target and our request was replaced, the history shows an update to what replaced it.
    """
    request = request or Request()
    running = _entry("Completed", without_v(plain.server), release_of(plain.server).image)
    versions = (plain.server, *plain.kubelets)
    arrived = [is_at(version, target) for version in versions] if target else []
    history: tuple[UpdateHistory, ...] = (running,)
    if arrived and any(arrived):
        state: Literal["Completed", "Partial"] = "Completed" if all(arrived) else "Partial"
        history = (_entry(state, target, release_of(target).image), running)
    elif begun and request.other:
        history = (_entry("Partial", request.other, request.other), running)
    wanted = release_of(target) if target else None
    asked = Update(version=wanted.version, image=wanted.image) if wanted is not None and request.is_ours else None
    return ClusterVersion(
        metadata=ObjectMeta(name="version", resource_version=request.resource_version),
        spec=ClusterVersionSpec(cluster_id=plain.uid, desired_update=asked),
        status=ClusterVersionStatus(
            desired=Release(version=running.version, image=running.image),
            history=history,
        ),
    )


def _entry(state: Literal["Completed", "Partial"], version: str, image: str) -> UpdateHistory:
    return UpdateHistory(state=state, version=version, image=image, started_time=_NO_TIME)


def reports_for(history: History, plain: PlainCluster, target: str) -> History:
    """Returns the reports about an update from the running version to `target`, as reports about its release.

    A preflight of a minor version counts for all its patch releases, because the checks compare minor versions. A
    report about another cluster kind, source or target is left out.
    """
    release, source = release_of(target), without_v(plain.server)
    reports = tuple(
        replace(report, source_version=source, target_version=target, target_image=release.image)
        for report in history.reports
        if _is_about(report, plain.server, target)
    )
    return History(reports=reports)


def _is_about(report: Report, running: str, target: str) -> bool:
    reported, wanted, source = version_of(report.target_version), version_of(target), version_of(running)
    if report.cluster_kind != "Kubernetes" or reported is None or wanted is None or source is None:
        return False
    is_same = reported == wanted
    is_first_of_minor = reported.patch == 0 and reported.minor == wanted.minor and wanted.minor > source.minor
    return version_of(report.source_version) == source and (is_same or is_first_of_minor)


def minors_between(running: str, target: str) -> int:
    """Returns how many minor versions `target` is ahead; 0 if one of them is not known."""
    first, last = version_of(running), version_of(target)
    return last.minor - first.minor if first is not None and last is not None else 0


def is_version(text: str) -> bool:
    """Reports whether `text` is a whole version of Kubernetes, such as v1.36.2+k3s1, and nothing else."""
    allowed = set(f"{string.ascii_letters}{string.digits}.+-_")
    version = version_of(text)
    is_whole = version is not None and version.major == 1 and not is_minor(text)
    return is_whole and len(text) <= 64 and set(text) <= allowed
