"""The image of some nodes is not made for the target's Kubernetes.

Applies when a node's operating system, as its kubelet reports it, is one whose publisher has no image for the target:
Talos by its own support matrix, Amazon Linux 2 on EKS, which ended with 1.32, Windows Server 2019 and 2022 on AKS, and
Windows builds for which Kubernetes has no images. A release between two that the table has counts as the older one; a
newer one than the table has is Unknown, and so is a node that reports no operating system. It also applies when kubeadm
does not take the kernel: kubeadm 1.33 refuses to update a node with a kernel before 4.19, and later ones warn about
kernels before 5.4. It also applies when an EC2NodeClass of Karpenter selects images of Amazon Linux 2. For a target of
1.35 or later it also applies to an operating system that starts with cgroup v1 by default (RHEL 8 and older with their
derivatives such as Rocky Linux, AlmaLinux and Oracle Linux, Ubuntu 21.04, Debian 10, Fedora 30 and older, Amazon Linux
2): a node does not report which version it runs. An operating system that the table does not have, such as Flatcar or
SLES, is Unknown then. If any kubelet is reported `failCgroupV1: false`, cgroup v1 is a decision, and nothing is
reported for it.

Why it matters: there is no image to update these nodes to; a kubelet of 1.35 and later does not start on cgroup v1.

Remedy: move these nodes to an image of the target first: a separate node group, then drain the old one.

Accepting it is right where `stat -fc %T /sys/fs/cgroup` says cgroup2fs on these nodes, or the image is your own.

Source of the rule: the publishers' pages, and <https://kubernetes.io/docs/concepts/architecture/cgroups/>, as
`data/distributions.yaml` has them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from kubekit.api.core_v1 import Node
from runup.api.platform_v1 import EC2NodeClass
from runup.checks.catalogue.control_plane.shared.given_settings import CONFIG_MAPS, FIELD, FLAG, settings_of_kubelets
from runup.checks.catalogue.shared.kubernetes_versions import target_minor, target_unknown
from runup.checks.catalogue.shared.topology import control_plane_first
from runup.checks.decide.addon_images import version_number
from runup.checks.decide.removal_tables import document
from runup.checks.writing import (
    DEFINITIONS,
    Context,
    Finding,
    Findings,
    Snapshot,
    count,
    declared,
    names,
    names_of,
    risk,
    unknown,
    yield_from_all,
)
from runup.rules.distributions import distribution_of, table

NAME = "NodeImageTooOld"
# The first kubeadm whose update verifies the kernel.
_KERNELS_VERIFIED = 33
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
    if distribution == "EKS":
        yield from yield_from_all(
            partial(_of_nodes, snapshot, nodes, target=target, distribution=distribution),
            partial(_of_node_classes, snapshot, target),
        )
    else:
        yield from _of_nodes(snapshot, nodes, target=target, distribution=distribution)
    if distribution == "kubeadm":
        yield from _of_kernels(nodes, context.source.minor, target)


def _of_nodes(snapshot: Snapshot, nodes: Sequence[Node], *, target: int, distribution: str) -> Findings:
    """Yields the findings of the images that nodes run."""
    listed_names: set[str] = set()
    reported_names: set[str] = set()
    for row in table()["images"]:
        if row.get("only", distribution) != distribution:
            continue
        nodes_by_last: dict[tuple[str, int], list[Node]] = {}
        newer: list[Node] = []
        for node in nodes:
            info = node.status.node_info
            match = re.search(row["kernel"], info.kernel_version) if "kernel" in row else None
            match = re.search(row["osImage"], info.os_image) if "osImage" in row else match
            if match is None or node.metadata.name in reported_names:
                continue
            listed_names.add(node.metadata.name)
            name, last, known = _last_kubernetes(row, match)
            if not known:
                newer.append(node)
            elif target > last:
                nodes_by_last.setdefault((name, last), []).append(node)
        for (name, last), nodes_of_image in nodes_by_last.items():
            reported_names |= {node.metadata.name for node in nodes_of_image}
            yield _image_finding(nodes_of_image, name, last, row)
        if newer:
            why = f"{row['name']} of {names_of(newer)} is newer than the table ({row['source']}, as of {row['date']})"
            yield unknown(NAME, why, newer, fix="See the publisher's page of today.")
    cgroups = table()["cgroups"]
    others = [node for node in nodes if node.metadata.name not in listed_names]
    if others and target > cgroups["last"] and not _is_cgroup_v1_allowed(snapshot):
        yield from _of_cgroups(others, cgroups)
    elif silent := [node for node in others if not node.status.node_info.os_image]:
        why = f"{count(len(silent), 'node')} ({names_of(silent)}) report no operating system"
        yield unknown(NAME, why, silent, fix="See whether the kubelet runs there: `oc describe node NAME`.")


def _of_cgroups(nodes: Sequence[Node], cgroups: Mapping[str, Any]) -> Findings:
    """Yields the findings of operating systems that start with cgroup v1, and of those that the table does not have."""
    by_version: dict[int | None, list[Node]] = {1: [], 2: [], None: []}
    for node in nodes:
        by_version[cgroup_version(node)].append(node)
    if old := by_version[1]:
        name = "an operating system that starts with cgroup v1 by default"
        yield _image_finding(old, name, cgroups["last"], cgroups)
    if unlisted := by_version[None]:
        images = names(sorted({node.status.node_info.os_image or "no operating system" for node in unlisted}))
        yield unknown(
            NAME,
            f"which cgroup version {images} of {count(len(unlisted), 'node')} ({names_of(unlisted)}) starts with is "
            f"not in the table ({cgroups['source']}, as of {cgroups['date']})",
            unlisted,
            fix="`stat -fc %T /sys/fs/cgroup` on these nodes must print cgroup2fs.",
        )


def cgroup_version(node: Node) -> int | None:
    """Returns the cgroup version that the node's operating system starts with by default, or None if it is unknown."""
    info = node.status.node_info
    if info.operating_system == "windows":
        return 2
    for row in table()["cgroups"]["systems"]:
        if match := re.search(row["osImage"], info.os_image):
            return 2 if tuple(map(int, match.groups())) >= tuple(row.get("first", ())) else 1
    return None


def _image_finding(nodes: Sequence[Node], name: str, last: int, row: Mapping[str, Any]) -> Finding:
    """Returns the risk of nodes whose operating system is for Kubernetes up to 1.`last`."""
    images = sorted({node.status.node_info.os_image for node in nodes})
    return risk(
        NAME,
        f"{count(len(nodes), 'node')} ({names_of(nodes)}) {'runs' if len(nodes) == 1 else 'run'} {names(images)}: "
        f"{name} is for Kubernetes up to 1.{last} ({row['source']}, as of {row['date']}).",
        nodes,
        fix="Move these nodes to an image of the target first; `oc get nodes -o wide` shows which they run.",
    )


def _of_kernels(nodes: Sequence[Node], source: int, target: int) -> Findings:
    """Yields the findings of nodes with a Linux kernel that a kubeadm on the way to the target does not take."""
    on_linux = [node for node in nodes if node.status.node_info.operating_system != "windows"]
    kernels = {node.metadata.name: version_number(node.status.node_info.kernel_version) for node in on_linux}
    for row in document("minimums")["kernel"]:
        minor, least = int(row["kubernetes"].partition(".")[2]), tuple(map(int, row["atLeast"].split(".")))
        old = [node for node in on_linux if (kernel := kernels[node.metadata.name]) and kernel < least]
        is_refusal = row["effect"] == "refuses"
        if not old or target < minor or (is_refusal and source >= minor):
            continue
        versions = names(sorted({node.status.node_info.kernel_version for node in old}))
        yield risk(
            f"{NAME}-Kernel",
            f"{count(len(old), 'node')} ({names_of(old)}) {'has' if len(old) == 1 else 'have'} kernel {versions}: "
            f"kubeadm {row['kubernetes']} {'refuses' if is_refusal else 'and later warn about'} kernels "
            f"before {row['atLeast']} ({row['source']}).",
            old,
            severity="warning" if is_refusal else "info",
            fix="Update the operating system of these nodes first, or give kubeadm "
            "`--ignore-preflight-errors=SystemVerification`.",
        )
        break
    if target < _KERNELS_VERIFIED:
        return
    if unclear := [node for node in on_linux if not kernels[node.metadata.name]]:
        why = f"{names_of(unclear)} {'does' if len(unclear) == 1 else 'do'} not report the kernel"
        yield unknown(NAME, why, unclear, fix="See `uname -r` on these nodes.")


def _of_node_classes(snapshot: Snapshot, target: int) -> Findings:
    """Yields a risk for the Karpenter classes with images that EKS no longer publishes."""
    row = next(row for row in table()["images"] if row.get("alias"))
    classes = [
        each
        for each in snapshot.all_or_none(EC2NodeClass)
        if any(term.alias.partition("@")[0].lower() == row["alias"] for term in each.spec.ami_selector_terms)
        or (each.spec.ami_family.lower() == row["alias"] and not any(t.alias for t in each.spec.ami_selector_terms))
    ]
    if classes and target > row["last"]:
        named, take = names_of(classes), "takes" if len(classes) == 1 else "take"
        yield risk(
            NAME,
            f"{count(len(classes), 'EC2NodeClass')} of Karpenter ({named}) {take} images of "
            f"{row['name']}, which is for Kubernetes up to 1.{row['last']} ({row['source']}, as of {row['date']}): "
            "Karpenter makes no node of them.",
            classes,
            fix="Select other images in spec.amiSelectorTerms first, such as `alias: al2023@latest`.",
        )


def _last_kubernetes(row: Mapping[str, Any], match: re.Match[str]) -> tuple[str, int, bool]:
    """Returns the name of an image, the last minor version of Kubernetes for it, and whether the table reaches it."""
    if "releases" not in row:
        return row["name"], row["last"], True
    releases = {tuple(map(int, str(release).split("."))): last for release, last in row["releases"].items()}
    release = tuple(map(int, match.groups()))
    # A release between two that are listed counts as the older one, and one before all of them as the first.
    listed = max((each for each in releases if each <= release), default=min(releases))
    return f"{row['name']} {'.'.join(map(str, release))}", releases[listed], release <= max(releases)


def _is_cgroup_v1_allowed(snapshot: Snapshot) -> bool:
    """Returns whether any kubelet is asked to start on cgroup v1; the configuration of the others may be in files."""
    names = ((FIELD, "failCgroupV1"), (FLAG, "fail-cgroupv1"))
    return any((each.setting, each.name) in names and each.value == "false" for each in settings_of_kubelets(snapshot))


CHECK = declared(
    run, NAME, "nodes", reads=(Node, CONFIG_MAPS, EC2NodeClass, DEFINITIONS), rank=365, clusters="Kubernetes"
)
