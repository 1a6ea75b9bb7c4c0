"""Nodes of several architectures, and a release for one of them.

Applies when Nodes report more than one architecture and ClusterVersion does not say that its release is for several
(`status.desired.architecture` Multi).

Why it matters: an update stays with the architecture that it has: nodes of another get images that they cannot run.

What to do: migrate to the release for several first: `oc adm upgrade --to-multi-arch`; ClusterVersion then says Multi.

Accepting it means that the other nodes cannot take the update.

Source of the rule: openshift/api, `config/v1` (ClusterVersionArchitecture), and the OpenShift documentation of clusters
with several architectures.
"""

from __future__ import annotations

from kubekit.api.core_v1 import Node
from runup.api.config_v1 import ClusterVersion
from runup.checks.writing import Context, Findings, Snapshot, declared, names, risk

NAME = "ArchitecturesMixed"
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
    if len(architectures) < 2:
        return
    cluster = snapshot.get(ClusterVersion, "version")
    if cluster is not None and cluster.status.desired.architecture == "Multi":
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


CHECK = declared(run, NAME, "cluster-version-operator", reads=(Node, ClusterVersion), rank=390, severity="critical")
