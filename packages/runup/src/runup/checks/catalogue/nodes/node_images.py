"""The image of some nodes is not made for the target's Kubernetes.

Applies when a node's operating system, as its kubelet reports it, is one whose publisher has no image for the target:
Talos by its own support matrix, and Amazon Linux 2 on EKS, which ended with 1.32. For a target of 1.35 or later it also
applies to an operating system that starts with cgroup v1 by default (RHEL 8, CentOS 7, Ubuntu 20.04, Debian 10, Amazon
Linux 2): a node does not report which version it runs.

Why it matters: there is no image to update these nodes to; a kubelet of 1.35 and later does not start on cgroup v1.

What to do: move these nodes to an image of the target first: a node group of its own, then drain the old one.

Accepting it is right where `stat -fc %T /sys/fs/cgroup` says cgroup2fs on these nodes, or the image is your own.

Source of the rule: the publishers' pages, and <https://kubernetes.io/docs/concepts/architecture/cgroups/>, as
`data/distributions.yaml` has them.
"""

from __future__ import annotations

import re

from kubekit.api.core_v1 import Node
from runup.checks.catalogue.shared.kubernetes_versions import target_minor, target_unknown
from runup.checks.catalogue.shared.topology import control_plane_first
from runup.checks.writing import Context, Findings, Snapshot, count, declared, names, names_of, risk
from runup.rules.distributions import distribution_of, table

NAME = "NodeImageTooOld"
EXAMPLE = """
apiVersion: v1
kind: Node
metadata: {name: ip-10-0-1-7.ec2.internal, labels: {eks.amazonaws.com/nodegroup: web}}
status: {nodeInfo: {kubeletVersion: v1.32.9-eks-113cf36, osImage: Amazon Linux 2}}
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a risk for each operating system image that its vendor does not publish for the target."""
    nodes = control_plane_first(snapshot.all(Node))
    if not nodes:
        return
    target = target_minor(context)
    if target is None:
        yield target_unknown(NAME)
        return
    distribution = distribution_of(nodes).name
    reported_names: set[str] = set()
    for row in table()["images"]:
        pattern = re.compile(row["osImage"])
        nodes_of_image = [
            node
            for node in nodes
            if pattern.search(node.status.node_info.os_image) and node.metadata.name not in reported_names
        ]
        if nodes_of_image and target > row["last"] and row.get("only", distribution) == distribution:
            reported_names |= {node.metadata.name for node in nodes_of_image}
            images = sorted({node.status.node_info.os_image for node in nodes_of_image})
            node_names = names_of(nodes_of_image)
            runs = "runs" if len(nodes_of_image) == 1 else "run"
            yield risk(
                NAME,
                f"{count(len(nodes_of_image), 'node')} ({node_names}) {runs} {names(images)}: "
                f"{row['name']} is for Kubernetes up to 1.{row['last']} ({row['source']}, as of {row['date']}).",
                nodes_of_image,
                fix="Move these nodes to an image of the target first; `oc get nodes -o wide` shows which they run.",
            )


CHECK = declared(run, NAME, "nodes", reads=(Node,), rank=365, clusters="Kubernetes")
