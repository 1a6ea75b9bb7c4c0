"""The cluster has nodes of several architectures and a release for one of them.

Applies when Nodes report more than one architecture and ClusterVersion says that its release is for one. Its
`status.desired.architecture` is Multi or empty, and the message of its condition ReleaseAccepted names the
architecture. Clusters before 4.20 leave the field empty by default, so without the message the result is Unknown there.
A node that reports no architecture is Unknown too, unless the release is for several.

Why it matters: an update keeps the architecture of the release, so nodes of another architecture get images that they
cannot run.

Remedy: migrate to the release for several first: `oc adm upgrade --to-multi-arch`; ClusterVersion then says Multi.

Accepting it means that the other nodes cannot take the update.

Source of the rule: openshift/api, `config/v1` (ClusterVersionArchitecture; api#2024 for the field's age);
cluster-version-operator, `pkg/cvo/sync_worker.go` (the message of ReleaseAccepted); the OpenShift documentation of
clusters with several architectures.
"""

from __future__ import annotations

import re

from kubekit.api.conditions import find
from kubekit.api.core_v1 import Node
from kubekit.lang.version import Version
from runup.api.config_v1 import ClusterVersion
from runup.checks.writing import Context, Findings, Snapshot, count, declared, names, risk, unknown

NAME = "ArchitecturesMixed"
# `Payload loaded version="4.17.30" image="..." architecture="Multi"`
_ARCHITECTURE = re.compile(r'\barchitecture="([^"]+)"')
# The first version whose default clusters have `status.desired.architecture`.
_FIELD_SINCE = (4, 20)
EXAMPLE = """
apiVersion: config.openshift.io/v1
kind: ClusterVersion
metadata: {name: version}
status: {desired: {version: 5.0.0}}
---
apiVersion: v1
kind: Node
metadata: {name: worker-0}
status: {nodeInfo: {architecture: amd64}}
---
apiVersion: v1
kind: Node
metadata: {name: worker-1}
status: {nodeInfo: {architecture: arm64}}
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a risk if nodes have several architectures and the release is for one."""
    nodes = snapshot.all(Node)
    architectures = sorted({arch for node in nodes if (arch := node.status.node_info.architecture)})
    silent = [node for node in nodes if not node.status.node_info.architecture]
    if len(architectures) < 2 and not silent:
        return
    is_multi = _is_release_multi(snapshot.get(ClusterVersion, "version"), context.source)
    if is_multi:
        return
    if len(architectures) < 2:
        yield unknown(
            NAME,
            f"{count(len(silent), 'node')} report no architecture",
            silent,
            fix="See whether the kubelet runs there: `oc describe node NAME`.",
        )
        return
    if is_multi is None:
        yield unknown(
            NAME,
            f"the nodes are of {names(architectures)}, and ClusterVersion does not say which its release is for",
            fix="See whether `oc adm release info` names several architectures (release.openshift.io/architecture).",
        )
        return
    fewest = min(architectures, key=lambda arch: sum(node.status.node_info.architecture == arch for node in nodes))
    yield risk(
        NAME,
        f"The nodes are of {names(architectures)}, and the cluster's release is not one for several architectures, so "
        f"neither is {context.target}.",
        [node for node in nodes if node.status.node_info.architecture == fewest],
        severity="critical",
        fix="Migrate first with `oc adm upgrade --to-multi-arch`; ClusterVersion then says architecture Multi.",
    )


def _is_release_multi(cluster: ClusterVersion | None, source: Version) -> bool | None:
    """Returns whether the cluster's release is for several architectures, None if that is not known."""
    if cluster is None:
        return None
    if cluster.status.desired.architecture == "Multi":
        return True
    accepted = find(cluster.status.conditions, "ReleaseAccepted")
    if accepted is not None and (named := _ARCHITECTURE.search(accepted.message)):
        return named[1] == "Multi"
    return None if (source.major, source.minor) < _FIELD_SINCE else False


CHECK = declared(run, NAME, "cluster-version-operator", reads=(Node, ClusterVersion), rank=390, severity="critical")
