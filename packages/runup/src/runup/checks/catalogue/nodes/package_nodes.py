"""Some nodes run package-based Red Hat Enterprise Linux, which the target does not support.

Applies when a Node's osImage is Red Hat Enterprise Linux and not its CoreOS, and the target is 4.19 or later. The image
counts, not the label `node.openshift.io/os_id`: from 4.19 on CoreOS calls itself `rhel`, too. Where a cluster below
4.19 has a Node without osImage, it is Unknown.

Why it matters: nobody updates these nodes: their kubelets stay behind the control plane, and the machine-config
operator of 4.18 refuses the update because of them.

Remedy: add CoreOS nodes in their place, drain and delete these; `oc get nodes -o wide` shows each node's OS-IMAGE.

Accepting it is not supported.

Source of the rule: the release notes of OpenShift 4.19 (removed features, package-based RHEL compute machines), and its
page on preparing to update from 4.18 to a newer version.
"""

from __future__ import annotations

import re
from operator import attrgetter

from kubekit.api.core_v1 import Node
from runup.checks.writing import MINOR, Context, Findings, Snapshot, count, declared, names, names_of, risk, unknown

NAME = "PackageBasedNodes"
GONE_IN = (4, 19)
# `Red Hat Enterprise Linux 8.10 (Ootpa)`; CoreOS says `Red Hat Enterprise Linux CoreOS 418.94...`.
_PACKAGES = re.compile(r"Red Hat Enterprise Linux (Server )?\d.*")
EXAMPLE = """
apiVersion: v1
kind: Node
metadata: {name: worker-rhel-0}
status: {nodeInfo: {osImage: Red Hat Enterprise Linux 8.10 (Ootpa), kubeletVersion: v1.36.1}}
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a risk for nodes of package-based RHEL, and Unknown for nodes that do not report their system."""
    if context.target.minor_version < GONE_IN:
        return
    nodes = sorted(snapshot.all(Node), key=attrgetter("metadata.name"))
    rhel = [node for node in nodes if _PACKAGES.fullmatch(node.status.node_info.os_image)]
    if rhel:
        listing = names([f"{node.metadata.name} ({node.status.node_info.os_image})" for node in rhel])
        yield risk(
            NAME,
            f"{count(len(rhel), 'node')} {'runs' if len(rhel) == 1 else 'run'} a package-based Red Hat Enterprise "
            f"Linux, which {context.target} does not support: {listing}.",
            rhel,
            severity="critical",
            fix="Replace them by CoreOS nodes before the update; `oc get nodes -o wide` shows each node's OS-IMAGE.",
        )
    silent = [node for node in nodes if not node.status.node_info.os_image]
    if silent and context.source.minor_version < GONE_IN:
        yield unknown(
            NAME,
            f"{count(len(silent), 'node')} {'does' if len(silent) == 1 else 'do'} not say which system it is: "
            f"{names_of(silent)}",
            silent,
            fix="See `oc get nodes -o wide`: the kubelet writes OS-IMAGE when it starts.",
        )


CHECK = declared(
    run, NAME, "machine-config", reads=(Node,), rank=560, severity="critical", updates=MINOR, clusters="OpenShift"
)
