"""Converts a dump into a scenario: the cluster as it was, plus the releases that it can be checked against.

Only the releases and, if the dump has none, a channel are invented; the preflight's gates are open for the sandbox's
operator only (the scenario's notes say so). Everything else is the dump's, or absent, which is not the same as empty.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from kubekit.lang import version as versions
from kubekit.lang.text import count
from runup.checks.decide.wording import names
from runup.dump.documents import JSON, identity, object_name
from runup.dump.dump_files import BadDump
from runup.dump.dump_time import newest_transition
from runup.dump.load import Dump
from runup.sandbox.scenario.folder import ClusterSpec, Graph, ReleaseSpec, Scenario, Workloads

GATES = ("ClusterUpdatePreflight", "ClusterUpdateAcceptRisks", "UpdateStatus")
_FEATURE_GATE = ("config.openshift.io", "featuregates")
_CLUSTER_VERSION = ("config.openshift.io", "clusterversions")
# Set if the cluster has none: without a channel no version can be found by name.
CHANNEL = "sandbox"
# Kinds that checks list: without them the checks' result is Unknown.
_LISTED = {
    "ClusterOperator": ("config.openshift.io", "clusteroperators"),
    "FeatureGate": _FEATURE_GATE,
    "Infrastructure": ("config.openshift.io", "infrastructures"),
    "MachineConfigPool": ("machineconfiguration.openshift.io", "machineconfigpools"),
    "Network": ("config.openshift.io", "networks"),
    "Node": ("", "nodes"),
    "PodDisruptionBudget": ("policy", "poddisruptionbudgets"),
}
# Computed from catalogs by a separate server, which the sandbox does not have.
_VIEWS = frozenset({"PackageManifest"})
# Maximum number of notes about what could not be read; the others are counted.
MAX_PROBLEMS = 10
# How many of the cluster's available updates are built as releases.
MAX_OFFERED = 5


def scenario_of(dump: Dump, *, base: Path) -> Scenario:
    """Returns the scenario that sets up the dump's cluster. `base` is the folder that all releases share.

    Raises BadDump if the ClusterVersion does not say which version it runs.
    """
    dump.decoded_cluster_version()
    current = current_version(dump.cluster_version)
    targets = target_versions(dump.cluster_version, current)
    spec = dump.cluster_version.get("spec") or {}
    gate = dump.one("config.openshift.io", "FeatureGate", "cluster")
    feature_set = str(((gate or {}).get("spec") or {}).get("featureSet") or "")
    kubernetes = kubernetes_version(dump)
    objects = []
    for obj in dump.objects:
        if obj["kind"] in _VIEWS:
            continue
        # A server writes `managedFields` itself.
        metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
        obj = {**obj, "metadata": metadata}
        if obj["kind"] == "ClusterVersion" and not (obj.get("spec") or {}).get("channel"):
            obj["spec"] = {**(obj.get("spec") or {}), "channel": CHANNEL}
        objects.append(obj)
    return Scenario(
        name=dump.name,
        title=f"Imported from {dump.name}",
        summary=f"{count(len(dump.objects), 'object')} of a {dump.style} dump, at {current}.",
        cluster=ClusterSpec(
            version=current,
            kubernetes=kubernetes,
            feature_set=feature_set,
            gates=enabled_gates(gate, current),
            operator_gates=GATES,
            imported=True,
            channel=spec.get("channel") or CHANNEL,
            image=current_image(dump.cluster_version),
            now=time_of(dump),
        ),
        releases=tuple(
            ReleaseSpec(version=version, kubernetes=_kubernetes_of(version, current, kubernetes))
            for version in (current, *targets)
        ),
        graph=Graph(edges=tuple((current, target) for target in targets)),
        # Pods of a dump show the past; no pod is declared ready that was not ready in the cluster.
        workloads=Workloads(other_images="pending"),
        folders=(base,),
        objects=tuple(objects),
        collected=replace(dump.collected, whole=dump.collected.whole | {_CLUSTER_VERSION}),
        notes=tuple(_notes(dump)),
    )


def current_image(cluster_version: JSON) -> str:
    """Returns the pull spec of the running release from the ClusterVersion, or an empty string."""
    return str(((cluster_version.get("status") or {}).get("desired") or {}).get("image") or "")


def time_of(dump: Dump) -> str:
    """Returns the dump's own time in RFC 3339, at which the cluster's clock starts; empty if it has none.

    If it is not recorded, it is the newest transition, as in `oc`, so that what the update does has the ages of then.
    """
    now = dump.now or newest_transition(dump.objects) or dump.evidence
    return now.strftime("%Y-%m-%dT%H:%M:%S.%fZ") if now else ""


def enabled_gates(gate: JSON | None, version: str) -> tuple[str, ...]:
    """Returns the gates that the dump's FeatureGate enables for this version."""
    for details in ((gate or {}).get("status") or {}).get("featureGates") or ():
        if isinstance(details, dict) and details.get("version") == version:
            gate_names = [gate.get("name") for gate in details.get("enabled") or () if isinstance(gate, dict)]
            return tuple(str(name) for name in gate_names if name)
    return ()


def current_version(cluster_version: JSON) -> str:
    """Returns the version that the cluster runs or updates to: `status.desired`, else the newest history entry.

    Raises BadDump if it does not exist.
    """
    status = cluster_version.get("status") or {}
    candidates = [
        (status.get("desired") or {}).get("version"),
        *(e.get("version") for e in status.get("history") or ()),
    ]
    version = next((text for text in candidates if text and versions.parse(text)), None)
    if version is None:
        message = "the dump's ClusterVersion names no version in status.desired or status.history"
        raise BadDump(f"{message}; without it nothing can be checked", reason="NoCurrentVersion")
    return str(version)


def target_versions(cluster_version: JSON, current: str) -> list[str]:
    """Returns the next minor release, and up to five of the available updates, newest first."""
    now = versions.Version(current)
    offered = [
        entry["version"]
        for entry in (cluster_version.get("status") or {}).get("availableUpdates") or ()
        if entry.get("version") and versions.parse(entry["version"])
    ]
    newest = sorted({v for v in offered if v != current}, key=versions.Version, reverse=True)[:MAX_OFFERED]
    following = f"{now.major}.{now.minor + 1}.0"
    return [following, *(version for version in newest if version != following)]


def kubernetes_version(dump: Dump) -> str:
    """Returns the version that the kube-apiserver operator reports, else the newest kubelet's, else an empty string."""
    operator = dump.one("config.openshift.io", "ClusterOperator", "kube-apiserver") or {}
    for entry in (operator.get("status") or {}).get("versions") or ():
        if entry.get("name") == "kube-apiserver" and versions.parse(entry.get("version", "")):
            return str(entry["version"])
    kubelets = [
        str(((obj.get("status") or {}).get("nodeInfo") or {}).get("kubeletVersion", "")).removeprefix("v")
        for obj in dump.objects
        if identity(obj)[:2] == ("", "Node")
    ]
    parsed = sorted((version for text in kubelets if (version := versions.parse(text))), reverse=True)
    return f"{parsed[0].major}.{parsed[0].minor}.{parsed[0].patch}" if parsed else ""


def _kubernetes_of(version: str, current: str, kubernetes: str) -> str:
    """Returns the Kubernetes version of a release: 4.y has 1.(y+13); otherwise each minor adds one minor."""
    running, release, base = versions.Version(current), versions.Version(version), versions.parse(kubernetes)
    if base is not None and version == current:
        return kubernetes
    if release.major == 4:
        return f"1.{release.minor + 13}.0"
    if base is None or running.major != release.major:
        return ""
    return f"{base.major}.{base.minor + release.minor - running.minor}.0"


def _objects_without_owner(objects: Collection[JSON]) -> list[str]:
    """Returns the names of the objects whose references to owners all lead to no object of the dump."""
    present = {str(obj["metadata"].get("uid")) for obj in objects}
    without_owner = []
    for obj in objects:
        references = obj["metadata"].get("ownerReferences")
        owners = [owner for owner in references if isinstance(owner, dict)] if isinstance(references, list) else []
        if owners and not any(str(owner.get("uid")) in present for owner in owners):
            without_owner.append(object_name(obj))
    return without_owner


def _notes(dump: Dump) -> list[str]:
    """Returns the notes for the user about an imported dump: the settings, and the missing kinds."""
    notes = [
        f"the gates {names(GATES)} are open for the sandbox's operator, whatever the cluster's own feature set "
        "says; what checks read of that is the dump's"
    ]
    if not (dump.cluster_version.get("spec") or {}).get("channel"):
        notes.append(f"the dump's ClusterVersion has no channel: {CHANNEL} was set, so that versions can be found")
    if now := time_of(dump):
        notes.append(f"the cluster's time starts at {now[:19]}Z, the dump's own, and runs on from there")
    absent = [
        kind
        for kind, resource in _LISTED.items()
        if not (resource in dump.collected.whole or resource in dump.collected.partly)
    ]
    if absent:
        notes.append(f"the dump has no {', '.join(absent)}: what depends on them is unknown")
    partly = [kind for kind, resource in _LISTED.items() if resource in dump.collected.partly]
    if partly:
        notes.append(f"of {', '.join(partly)} the dump has only a part: that there is nothing else is not known")
    if without_owner := _objects_without_owner(dump.objects):
        notes.append(
            f"the dump does not have the owners of {count(len(without_owner), 'object')} ({names(without_owner)}); "
            "the sandbox keeps them"
        )
    if dump.skipped:
        notes.append(f"left out: {count(dump.skipped, 'object')} of kinds that say nothing about an update")
    notes += dump.problems[:MAX_PROBLEMS]
    if more := len(dump.problems) - MAX_PROBLEMS:
        notes += [f"{more} more such lines were left out"] if more > 0 else []
    return notes
