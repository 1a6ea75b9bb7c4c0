"""The container runtime of some nodes is too old for the target's kubelet.

Applies when a Node runs containerd below the version that the target's Kubernetes asks for, or Docker with a kubelet of
before 1.24, whose dockershim later ones do not have (one of 1.24 and later runs Docker by cri-dockerd). A Node that
reports no runtime or no version of its containerd is Unknown, and so is each of them for a target that is newer than
the table. CRI-O comes with the release and is not evaluated, nor is the containerd that the Windows Machine Config
Operator brings together with its kubelet (annotation `windowsmachineconfig.openshift.io/version`).

Why it matters: the kubelet does not start with a runtime whose API it does not speak.

Remedy: update the runtime of these nodes first; `oc get nodes -o wide` shows its version.

Accepting it means that these nodes may not come back.

Source of the rule: the Kubernetes blog of the minor versions, as the table `data/minimums.yaml` has it.
"""

from __future__ import annotations

import re

from kubekit.api.core_v1 import Node
from kubekit.lang.version import leading_numbers
from runup.checks.catalogue.shared.kubernetes_versions import target_minor, target_unknown
from runup.checks.catalogue.shared.topology import control_plane_first
from runup.checks.decide.removal_tables import document
from runup.checks.writing import Context, Findings, Snapshot, count, declared, names, names_of, risk, unknown

NAME = "ContainerRuntimeTooOld"
# Set by openshift/windows-machine-config-operator (pkg/metadata: VersionAnnotation) on the nodes that it configures.
WINDOWS_OPERATOR = "windowsmachineconfig.openshift.io/version"
_PREFIX = "containerd://"
_CONTAINERD = re.compile(_PREFIX + r"v?(\d+)\.(\d+)\.(\d+).*")
_DOCKER = "docker://"
Number = tuple[int, ...]
EXAMPLE = """
apiVersion: v1
kind: Node
metadata: {name: worker-0}
status: {nodeInfo: {containerRuntimeVersion: "containerd://1.7.27", kubeletVersion: v1.36.1}}
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a risk for nodes whose container runtime is too old for the target."""
    nodes = [
        node
        for node in control_plane_first(snapshot.all(Node))
        if node.status.node_info.container_runtime_version.startswith((_PREFIX, _DOCKER))
        and WINDOWS_OPERATOR not in node.metadata.annotations
    ]
    target = target_minor(context)
    if target is None and nodes:
        yield target_unknown(NAME, nodes)
        return
    ended = int(document("minimums")["dockershim"][0]["kubernetes"].partition(".")[2])
    by_shim = [
        node
        for node in nodes
        if _is_docker(node)
        and (kubelet := leading_numbers(node.status.node_info.kubelet_version))
        and (1, 0) <= kubelet[:2] < (1, ended)
    ]
    if by_shim and (target or 0) >= ended:
        yield risk(
            f"{NAME}-docker",
            f"{count(len(by_shim), 'node')} ({names_of(by_shim)}) {'runs' if len(by_shim) == 1 else 'run'} containers "
            f"with Docker by the kubelet's dockershim, which Kubernetes 1.{ended} removed.",
            by_shim,
            severity="critical",
            fix="Move these nodes to containerd, CRI-O or cri-dockerd first; `oc get nodes -o wide` shows the runtime.",
        )
    # Nothing is older than the empty number.
    table = document("minimums")
    minimums = [
        row["atLeast"] for row in table["containerd"] if int(row["kubernetes"].partition(".")[2]) <= (target or 0)
    ]
    least: Number = max((tuple(map(int, version.split("."))) for version in minimums), default=())
    silent = [
        node
        for node in control_plane_first(snapshot.all(Node))
        if not node.status.node_info.container_runtime_version and WINDOWS_OPERATOR not in node.metadata.annotations
    ]
    if least and silent:
        why = f"{count(len(silent), 'node')} ({names_of(silent)}) report no container runtime"
        yield unknown(NAME, why, silent, fix="See whether the kubelet runs there: `oc describe node NAME`.")
    of_containerd = [node for node in nodes if not _is_docker(node)]
    old = [node for node in of_containerd if (version := _containerd_version(node)) and version < least]
    if old:
        listing = names([f"{node.metadata.name} ({node.status.node_info.container_runtime_version})" for node in old])
        yield risk(
            NAME,
            f"The container runtime of {count(len(old), 'node')} is older than containerd "
            f"{'.'.join(map(str, least))}, which Kubernetes {context.target_kubernetes} asks for: {listing}.",
            old,
            severity="critical",
            fix="Update the runtime of these nodes first; `oc get nodes -o wide` shows its version.",
        )
    is_beyond = (target or 0) > table["last"]
    if unclear := [node for node in of_containerd if node not in old and (is_beyond or not _containerd_version(node))]:
        yield unknown(
            NAME,
            f"the table ends with Kubernetes 1.{table['last']} (as of {table['date']})"
            if is_beyond
            else f"{names_of(unclear)} {'does' if len(unclear) == 1 else 'do'} not report the version of containerd",
            unclear,
            fix="See which containerd the target's changelog asks for."
            if is_beyond
            else "See `containerd --version` on these nodes.",
        )


def _is_docker(node: Node) -> bool:
    return node.status.node_info.container_runtime_version.startswith(_DOCKER)


def _containerd_version(node: Node) -> Number | None:
    match = _CONTAINERD.fullmatch(node.status.node_info.container_runtime_version)
    return tuple(map(int, match.groups())) if match else None


CHECK = declared(run, NAME, "machine-config", reads=(Node,), rank=360, severity="critical")
