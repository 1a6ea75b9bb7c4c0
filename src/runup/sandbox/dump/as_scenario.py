"""A dump in, a scenario out: the cluster as it was, plus the releases that it could be asked about.

Invented are only the releases, and where the dump has none a FeatureGate with the preflight's gates open and a channel
(the scenario's notes say so). Everything else is the dump's, or absent.
"""

from __future__ import annotations

from pathlib import Path

from runup.domain import version as versions
from runup.sandbox.dump.layout import BadDump
from runup.sandbox.dump.load import Dump, guess_plural
from runup.sandbox.scenario.folder import ClusterSpec, Graph, ReleaseSpec, Scenario, Workloads
from runup.sandbox.scenario.manifests import JSON, identity

GATES = ("ClusterUpdatePreflight", "ClusterUpdateAcceptRisks", "UpdateStatus")
# Set where a cluster has none: without a channel no version can be found by name.
CHANNEL = "sandbox"
# Kinds that checks list: an empty list of them looks like nothing to worry about.
_LISTED = ("ClusterOperator", "MachineConfigPool", "Node", "PodDisruptionBudget")
_TIMED = {("config.openshift.io", "ClusterVersion"), ("config.openshift.io", "ClusterOperator")}
# How many of the versions that the cluster was offered are made as releases.
MAX_OFFERED = 5


def scenario_of(dump: Dump, *, base: Path) -> Scenario:
    """The scenario that sets up the dump's cluster. `base` is the folder with what all releases share.

    Raises BadDump where the ClusterVersion does not say which version it runs.
    """
    current = current_version(dump.cluster_version)
    targets = target_versions(dump.cluster_version, current)
    spec = dump.cluster_version.get("spec") or {}
    gate = dump.one("config.openshift.io", "FeatureGate", "cluster")
    feature_set = ((gate or {}).get("spec") or {}).get("featureSet") or ""
    kubernetes = kubernetes_version(dump)
    return Scenario(
        name=dump.name,
        title=f"Imported from {dump.name}",
        summary=f"{len(dump.objects)} objects of a {dump.style} dump, at {current}.",
        cluster=ClusterSpec(
            version=current,
            kubernetes=kubernetes,
            feature_set=feature_set,
            gates=() if gate else GATES,
            channel=spec.get("channel") or CHANNEL,
            image=current_image(dump.cluster_version),
            now=last_moment(dump),
        ),
        releases=tuple(
            ReleaseSpec(version=version, kubernetes=_kubernetes_of(version, current, kubernetes))
            for version in (current, *targets)
        ),
        graph=Graph(edges=tuple((current, target) for target in targets)),
        # Pods of a dump show what was; nothing new is declared ready that the cluster did not have.
        workloads=Workloads(other_images="pending"),
        folders=(base,),
        objects=tuple(_with_channel(obj) for obj in dump.objects),
        notes=tuple(_notes(dump, gate)),
    )


def current_image(cluster_version: JSON) -> str:
    """The pull spec by which the ClusterVersion knows the release that it runs, if it says one."""
    return str(((cluster_version.get("status") or {}).get("desired") or {}).get("image") or "")


def last_moment(dump: Dump) -> str:
    """The newest transition time of ClusterVersion's and the ClusterOperators' conditions and a moment more.

    It is what `oc` takes for "now" in its own examples, to the microsecond; empty where there is no such time.
    """
    times = [
        condition.get("lastTransitionTime") or ""
        for obj in dump.objects
        if identity(obj)[:2] in _TIMED
        for condition in (obj.get("status") or {}).get("conditions") or ()
    ]
    newest = max(times, default="")
    return f"{newest.removesuffix('Z')}.000368Z" if newest.endswith("Z") else ""


def _with_channel(obj: JSON) -> JSON:
    if obj["kind"] != "ClusterVersion" or (obj.get("spec") or {}).get("channel"):
        return obj
    return {**obj, "spec": {**(obj.get("spec") or {}), "channel": CHANNEL}}


def current_version(cluster_version: JSON) -> str:
    """The version that the cluster runs or is on the way to: `status.desired`, else the newest history entry."""
    status = cluster_version.get("status") or {}
    candidates = [
        (status.get("desired") or {}).get("version"),
        *(e.get("version") for e in status.get("history") or ()),
    ]
    found = next((text for text in candidates if text and versions.parse(text)), None)
    if found is None:
        message = "the dump's ClusterVersion names no version in status.desired or status.history"
        raise BadDump(f"{message}; without it nothing can be checked", reason="NoCurrentVersion")
    return str(found)


def target_versions(cluster_version: JSON, current: str) -> list[str]:
    """The next minor release, and up to five of the updates that the cluster was offered, newest first."""
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
    """What the kube-apiserver operator reports, else the newest kubelet's version, else nothing."""
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


def missing_resources(dump: Dump, known: set[tuple[str, str]]) -> list[tuple[str, str, str, str, bool]]:
    """(group, version, kind, plural, namespaced) of the custom kinds that nobody serves yet.

    Kinds of core and of Kubernetes' own groups are not among them: a CRD cannot add those.
    """
    found: dict[tuple[str, str], tuple[str, str, str, str, bool]] = {}
    for obj in dump.objects:
        group, kind, namespace, _name = identity(obj)
        if (group, kind) in known or (group, kind) in found or "." not in group or group.endswith(".k8s.io"):
            continue
        version = obj["apiVersion"].rpartition("/")[2]
        plural = dump.plurals.get((group, kind)) or guess_plural(kind)
        found[group, kind] = (group, version, kind, plural, bool(namespace))
    return list(found.values())


def _kubernetes_of(version: str, current: str, kubernetes: str) -> str:
    """The Kubernetes that a release ships: 4.y has 1.(y+13); of others the next minor has the next minor's."""
    here, there, base = versions.Version(current), versions.Version(version), versions.parse(kubernetes)
    steps = there.minor - here.minor
    if base is not None and here.major == there.major and steps == 0 and version == current:
        return kubernetes
    if there.major == 4:
        return f"1.{there.minor + 13}.0"
    return f"{base.major}.{base.minor + steps}.0" if base is not None and here.major == there.major else ""


def _notes(dump: Dump, gate: JSON | None) -> list[str]:
    notes = []
    if gate is None:
        notes.append(
            f"the dump has no FeatureGate: one of the default feature set with {' and '.join(GATES)} open was made; "
            "whether the cluster's own feature set forbids updates is not known"
        )
    if not (dump.cluster_version.get("spec") or {}).get("channel"):
        notes.append(f"the dump's ClusterVersion has no channel: {CHANNEL} was set, so that versions can be found")
    if now := last_moment(dump):
        notes.append(f"the update status controller takes it to be {now[:19]}Z, the newest time in the dump")
    absent = (kind for kind in ("Infrastructure", "Network") if not dump.one("config.openshift.io", kind, "cluster"))
    notes.extend(f"the dump has no {kind}: what depends on it is unknown" for kind in absent)
    notes.extend(
        f"the dump has no {kind}: checks find none, which does not mean that the cluster had none"
        for kind in _LISTED
        if not any(identity(obj)[1] == kind for obj in dump.objects)
    )
    if dump.skipped:
        notes.append(f"{dump.skipped} objects of kinds that say nothing about an update were left out")
    notes += [f"not readable, left out: {problem.message}" for problem in dump.problems]
    return notes
