"""Reads a dump into the cluster's objects, with an account of what could not be used.

The sandbox's import and `upgrade status --dump` both use it. A broken file or item is named and counted, and does not
stop the reading. A dump without a ClusterVersion is an error, unless the reader takes one of Kubernetes alone.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kubekit.api import codec
from kubekit.api.scheme import guess_plural
from kubekit.lang.text import count, printable
from runup.api.clusterversion_json import mapping, mappings, text, texts
from runup.api.config_v1 import ClusterVersion
from runup.api.platform_v1 import LAST_APPLIED
from runup.dump import archive, clusters, dump_time
from runup.dump import dump_objects as objects
from runup.dump.clusterversion_files import Read, with_alerts_below
from runup.dump.completeness import CompleteKinds, complete_kinds
from runup.dump.documents import JSON, identity, object_name
from runup.dump.dump_files import COLLECTED, BadDump, Layout, find
from runup.dump.dump_limits import MAX_ENTRIES, Memory
from runup.dump.dump_objects import Listed
from runup.process.steps import each
from runup.rules.node_events import is_of_node_step
from runup.rules.refused_writes import NOT_CREATED

# Kinds that a cluster has by the thousand and that do not concern an update, or that must not be copied.
SKIPPED_KINDS = frozenset(
    {
        "Event",
        "Secret",
        "EndpointSlice",
        "Endpoints",
        "Lease",
        "ControllerRevision",
        "PodMetrics",
        "NodeMetrics",
    }
)
# What `oc adm inspect` collected in full is read from the ClusterOperators, and which namespaces there are.
PROVING = frozenset({"clusteroperators", "namespaces"})
# What tells one cluster from another.
_OF_A_CLUSTER = frozenset(
    {("config.openshift.io", "ClusterVersion", "", "version"), ("", "Namespace", "", "kube-system")}
)
# Of a resourceVersion, which is a number of 64 bits.
_MOST_DIGITS = 20
_PLURAL = re.compile(r"[a-z][a-z0-9]*")
_UNSTABLE = re.compile(r"/v\d+(alpha|beta)\d+$")
_UNSTABLE_MANIFEST = re.compile(r'"apiVersion"\s*:\s*"[^"]*/v\d+(alpha|beta)')


@dataclass(frozen=True, slots=True, kw_only=True)
class Dump:
    """A dump as read.

    `plurals` has the resource of every (group, kind) in it. `now` is the recorded time of the dump; `evidence` is the
    newest time in its objects, if no time is recorded, and `newest_change` the time before which they cannot have been
    read. `cluster_version_file` is the file that has the ClusterVersion.
    `alerts` is Prometheus' answer in a must-gather, None without one; `alerts_problem`: why it cannot be read.
    """

    name: str
    style: str
    objects: tuple[JSON, ...]
    plurals: dict[tuple[str, str], str]
    collected: CompleteKinds = field(default_factory=CompleteKinds)
    problems: tuple[str, ...] = ()
    skipped: int = 0
    now: datetime | None = None
    evidence: datetime | None = None
    newest_change: datetime | None = None
    cluster_version_file: str = ""
    kubernetes: clusters.KubernetesVersion = field(default_factory=clusters.KubernetesVersion)
    alerts: Any = None
    alerts_problem: str = ""

    def one(self, group: str, kind: str, name: str) -> JSON | None:
        """Returns the cluster-scoped object of that identity, or None."""
        return next((obj for obj in self.objects if identity(obj) == (group, kind, "", name)), None)

    @property
    def has_cluster_version(self) -> bool:
        """Returns whether the cluster has a ClusterVersion; only readers of any Kubernetes get dumps without one."""
        return self.one("config.openshift.io", "ClusterVersion", "version") is not None

    @property
    def cluster_version(self) -> JSON:
        """The ClusterVersion, which every other dump has."""
        version = self.one("config.openshift.io", "ClusterVersion", "version")
        assert version is not None
        return version

    def decoded_cluster_version(self) -> ClusterVersion:
        """Returns the ClusterVersion. Raises BadDump, which names the file, if a field has a wrong type."""
        try:
            return codec.convert(ClusterVersion, self.cluster_version)
        except codec.DecodeError as error:
            text = f"{self.cluster_version_file}: not a ClusterVersion: {error}"
            raise BadDump(text, reason="BadClusterVersion") from error


def read(path: Path, only: Collection[str] = (), *, any_kubernetes: bool = False, packs: bool = False) -> Dump:
    """Reads the dump at `path`, packed or not; raises BadDump.

    `only`, if given, limits the files of a tree to these resources; skipped kinds are read only if it names them. With
    `any_kubernetes`, a dump of a cluster without a ClusterVersion is one, too. With `packs` the items of large lists
    are packed (`large_lists.unpacked`).
    """
    with archive.open_dump(path) as folder:
        return load(find(folder), only, any_kubernetes=any_kubernetes, packs=packs)


def load(
    layout: Layout,
    only: Collection[str] = (),
    *,
    any_kubernetes: bool = False,
    packs: bool = False,
    of_a_part: bool = False,
) -> Dump:
    """Reads every file of `layout`; raises BadDump if no ClusterVersion is among them, or those of several clusters.

    With `of_a_part`, no ClusterVersion is needed: the reader knows that only a part of a cluster was gathered.
    """
    objects_by_identity: dict[tuple[str, str, str, str], JSON] = {}
    versions: dict[tuple[str, str, str, str], int] = {}
    plurals: dict[tuple[str, str], str] = {}
    lists: dict[Path, tuple[Listed, ...]] = {}
    broken: set[Path] = set()
    problems: list[str] = []
    skipped, cluster_version_file = 0, ""
    sightings: list[clusters.Sighting] = []
    memory = Memory(layout.name)
    recorded = dump_time.gathered_at(layout.root) if layout.style == "inspect" else dump_time.collected_at(layout.root)
    evidence = dump_time.Evidence()
    for file in each(layout.files, f"Reading the files of {layout.name}"):
        if only and layout.style == "inspect" and not _resources(file, layout) & {*only, *PROVING}:
            continue
        if any_kubernetes and clusters.is_version_file(file):
            continue
        contents = objects.read(file, layout.style, layout.root, packs=packs)
        lists[file] = contents.lists
        problems += contents.problems
        broken |= {file} if contents.problems else set()
        for raw in contents.objects:
            if recorded is None:
                evidence.add(raw)
            if raw["kind"] in SKIPPED_KINDS and not (guess_plural(raw["kind"]) in only and is_read(raw)):
                skipped += 1
                continue
            if identity(raw) in _OF_A_CLUSTER:
                sightings.append(clusters.Sighting(_path_to_name(file, layout), raw))
            obj, mended_problems = mend_object(raw)
            memory.take(obj, str(file))
            problems += mended_problems
            # Opaque by the API's rules, but in practice a number that grows with every write.
            text = str((raw.get("metadata") or {}).get("resourceVersion") or "")
            key, version = identity(obj), (int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else 0)
            if key in objects_by_identity:
                if obj == objects_by_identity[key]:
                    continue
                version_chosen = "the one read last" if version == versions[key] else "the newer"
                problems.append(f"{object_name(obj)} is given twice; {version_chosen} counts")
                if version < versions[key]:
                    continue
            objects_by_identity[key], versions[key] = obj, version
            if key[:2] == ("config.openshift.io", "ClusterVersion"):
                # A dump that is one file has its name.
                below = file.relative_to(layout.root)
                cluster_version_file = str(below if below.stem == layout.name else Path(layout.name) / below)
            plural = _plural_of(file, layout)
            if plural[:3] == key[1].lower()[:3]:  # a tree also has files that are called after their objects
                plurals.setdefault(key[:2], plural)
    if why := clusters.why_several(layout.name, sightings):
        raise BadDump(why, reason="SeveralClusters")
    for group, kind, _namespace, _name in objects_by_identity:
        plurals.setdefault((group, kind), guess_plural(kind))
    loaded = tuple(objects_by_identity.values())
    dump = Dump(
        name=layout.name,
        style=layout.style,
        objects=loaded,
        plurals=plurals,
        collected=complete_kinds(layout, loaded, lists=lists, plural_of=plurals, broken=broken),
        problems=tuple(map(printable, problems)),
        skipped=skipped,
        now=recorded,
        evidence=evidence.time,
        newest_change=evidence.newest_change,
        cluster_version_file=cluster_version_file,
    )
    if layout.style == "inspect":
        found = with_alerts_below(str(layout.root), Read(cluster={}))
        dump = replace(dump, alerts=found.alerts, alerts_problem=found.problem)
    if dump.has_cluster_version or of_a_part:
        return dump
    return replace(dump, kubernetes=_kubernetes(layout, loaded, broken, problems=problems, expected=any_kubernetes))


def is_read(obj: JSON) -> bool:
    """Returns whether an object of a skipped kind is read by a reader that names the kind.

    It is if it is a Lease, the record of a Helm release, an event about a pod that could not be created or about a step
    of a node's update, or shows that a client writes in an alpha or beta version.
    """
    metadata = mapping(obj, "metadata")
    if obj["kind"] == "Lease":
        return True
    if obj["kind"] == "Event":
        about, reason = mapping(obj, "involvedObject"), text(obj, "reason")
        if reason == NOT_CREATED or is_of_node_step(text(about, "kind"), reason):
            return True
    if obj["kind"] == "Secret":
        return texts(metadata, "labels").get("owner") == "helm"
    versions = [text(entry, "apiVersion") for entry in mappings(metadata, "managedFields")]
    applied = texts(metadata, "annotations").get(LAST_APPLIED, "")
    return any(_UNSTABLE.search(version) for version in versions) or bool(_UNSTABLE_MANIFEST.search(applied))


def _kubernetes(
    layout: Layout, loaded: Sequence[JSON], broken: AbstractSet[Path], *, problems: Sequence[str], expected: bool
) -> clusters.KubernetesVersion:
    """Returns the Kubernetes of a cluster without a ClusterVersion.

    Raises BadDump unless such a cluster is `expected`, and the dump is known to be of one.
    """
    why_not = ""
    if expected:
        version = clusters.version_in(layout, loaded)
        if any("clusterversion" in str(file.relative_to(layout.root)) for file in broken):
            why_not = "; a file in which it may be cannot be read"
        elif sign := clusters.evidence_of_openshift(loaded):
            why_not = f"; it is one of OpenShift ({sign}): add the output of `oc get clusterversion -o yaml`"
        elif not version.version and not any(identity(obj)[:2] == ("", "Namespace") for obj in loaded):
            why_not = ", nor nodes or a version.json (`kubectl version -o json`) that would show which Kubernetes it is"
        else:
            return version
    files = count(len(layout.files), "file")
    text = f"the dump {layout.name} ({files}) has no ClusterVersion 'version', so it does not describe a cluster"
    lines = [f"{text}{why_not}", *(f"  {problem}" for problem in problems[:5])]
    raise BadDump("\n".join(lines), reason="NoClusterVersion")


def time_of_dump(dump: Dump) -> datetime | None:
    """Returns the dump's own time, None if it shows none.

    This is when it was gathered. If that is not recorded, it is the newest time in its objects. With a ClusterVersion,
    as in `oc`, it is at least just after the newest transition, and not before the newest change of another object.
    """
    if dump.now is not None:
        return dump.now
    transition = dump_time.newest_transition(dump.objects)
    if transition is None:
        return dump.evidence
    return max(time for time in (transition, dump.evidence, dump.newest_change) if time is not None)


def time_of_unusable(path: Path, now: datetime) -> datetime:
    """Returns the time of a dump that could not be evaluated, so that its history has it where it belongs.

    This is when it was gathered; if that cannot be read, when its newest file was written, and at most `now`.
    """
    recorded = None
    with suppress(BadDump, OSError, ValueError), archive.open_dump(path) as folder:
        record = next((file.parent for file in folder.glob(f"*/{COLLECTED}")), folder)
        recorded = dump_time.gathered_at(folder) or dump_time.collected_at(folder) or dump_time.collected_at(record)
    if recorded is None:
        files = itertools.islice((path, *path.rglob("*")) if path.is_dir() else (path,), MAX_ENTRIES)
        times = [file.lstat().st_mtime for file in files if file.exists()]
        recorded = datetime.fromtimestamp(max(times), UTC) if times else now
    return min(recorded, now)


def _path_to_name(file: Path, layout: Layout) -> str:
    """Returns the path to name instead of the whole dump, so that only the cluster of `file` is read.

    It is the folder of the file, or the file; of `oc adm inspect`, the root of its tree.
    """
    below = file.relative_to(layout.root)
    tops = [index for index, part in enumerate(below.parts) if part in {"cluster-scoped-resources", "namespaces"}]
    if layout.style == "inspect" and tops:
        below = Path(*below.parts[: tops[0]])
    elif below.parent.parts:
        below = below.parent
    # The dump may be an archive, so the path begins with its name.
    return str(Path(layout.name) / below)


def _resources(file: Path, layout: Layout) -> set[str]:
    """Returns the words of a file's path in a tree that may be the resource that it has."""
    parts = file.relative_to(layout.root).parts
    tops = [index for index, part in enumerate(parts) if part in {"cluster-scoped-resources", "namespaces"}]
    return {file.stem.partition(".")[0], *parts[tops[0] + 1 if tops else 0 :]}


def _plural_of(file: Path, layout: Layout) -> str:
    """Returns the plural in the path of a tree of `oc adm inspect`, or an empty string.

    The paths are `.../<group>/<plural>/<name>.yaml`, or `.../<group>/<plural>.yaml` for a list.
    """
    if layout.style != "inspect" or file.parent == layout.root:
        return ""
    parts = file.parts
    root = max(index for index, part in enumerate(parts) if part in {"cluster-scoped-resources", "namespaces"})
    below = parts[root + 1 :] if parts[root] == "cluster-scoped-resources" else parts[root + 2 :]
    candidate = below[1] if len(below) == 3 else Path(below[-1]).stem if len(below) == 2 else ""
    return candidate if _PLURAL.fullmatch(candidate) else ""


# Fields that belong to the server that stored the object.
_DROPPED_METADATA = ("resourceVersion", "selfLink")
# Removed versions, with the version that replaced them and has the same fields (Kubernetes' deprecation guide).
NEWER = {
    ("policy/v1beta1", "PodDisruptionBudget"): "policy/v1",
    ("batch/v1beta1", "CronJob"): "batch/v1",
    ("apps/v1beta1", "Deployment"): "apps/v1",
    ("apps/v1beta2", "Deployment"): "apps/v1",
    ("extensions/v1beta1", "Deployment"): "apps/v1",
    ("apps/v1beta2", "DaemonSet"): "apps/v1",
    ("extensions/v1beta1", "DaemonSet"): "apps/v1",
    ("apps/v1beta2", "ReplicaSet"): "apps/v1",
    ("extensions/v1beta1", "ReplicaSet"): "apps/v1",
    ("apps/v1beta1", "StatefulSet"): "apps/v1",
    ("apps/v1beta2", "StatefulSet"): "apps/v1",
    ("rbac.authorization.k8s.io/v1beta1", "ClusterRole"): "rbac.authorization.k8s.io/v1",
    ("rbac.authorization.k8s.io/v1beta1", "ClusterRoleBinding"): "rbac.authorization.k8s.io/v1",
    ("rbac.authorization.k8s.io/v1beta1", "Role"): "rbac.authorization.k8s.io/v1",
    ("rbac.authorization.k8s.io/v1beta1", "RoleBinding"): "rbac.authorization.k8s.io/v1",
    ("storage.k8s.io/v1beta1", "StorageClass"): "storage.k8s.io/v1",
    ("scheduling.k8s.io/v1beta1", "PriorityClass"): "scheduling.k8s.io/v1",
    ("storage.k8s.io/v1beta1", "CSINode"): "storage.k8s.io/v1",
    ("storage.k8s.io/v1beta1", "VolumeAttachment"): "storage.k8s.io/v1",
    ("apiregistration.k8s.io/v1beta1", "APIService"): "apiregistration.k8s.io/v1",
    ("admissionregistration.k8s.io/v1beta1", "ValidatingAdmissionPolicy"): "admissionregistration.k8s.io/v1",
    ("admissionregistration.k8s.io/v1beta1", "ValidatingAdmissionPolicyBinding"): "admissionregistration.k8s.io/v1",
    ("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition"): "",  # it has different fields
}

# The machine-config operator adds a condition for each attempt, so that types repeat, and the last one counts.
_WITH_HISTORY = frozenset({"ContainerRuntimeConfig", "KubeletConfig"})


def mend_object(obj: JSON) -> tuple[JSON, tuple[str, ...]]:
    """Returns the corrected object, and a message for each problem, which names the object."""
    obj = replace_old_version(obj)
    metadata = {key: value for key, value in obj["metadata"].items() if key not in _DROPPED_METADATA}
    if not metadata.get("namespace"):
        metadata.pop("namespace", None)
    obj = {**obj, "metadata": metadata}
    status = obj.get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    if not isinstance(status, dict) or not isinstance(conditions, list) or obj["kind"] in _WITH_HISTORY:
        return obj, ()
    about = object_name(obj)
    # Each type of condition is kept once, the one that changed last.
    by_type: dict[str, JSON] = {}
    problems: list[str] = []
    for row in conditions:
        type_ = row.get("type") if isinstance(row, dict) else None
        if not isinstance(type_, str) or not type_:
            problems.append(f"{about}: a condition without a type was left out")
            continue
        before = by_type.get(type_)
        if before is not None:
            problems.append(f"{about}: condition {type_} is given twice; the one that changed last counts")
        if before is None or str(row.get("lastTransitionTime")) >= str(before.get("lastTransitionTime")):
            by_type[type_] = row
    return (
        ({**obj, "status": {**status, "conditions": list(by_type.values())}}, tuple(problems))
        if problems
        else (obj, ())
    )


def replace_old_version(obj: JSON) -> JSON:
    """Returns the object in the API version that replaced its own."""
    version = NEWER.get((obj["apiVersion"], obj["kind"]))
    if not version:
        return obj
    selector = mapping(obj, "spec").get("selector") if obj["kind"] == "PodDisruptionBudget" else None
    if isinstance(selector, dict) and not (selector.get("matchLabels") or selector.get("matchExpressions")):
        # v1beta1's empty selector selects nothing, v1's selects everything (Kubernetes' deprecation guide, 1.25).
        obj = {**obj, "spec": {key: value for key, value in obj["spec"].items() if key != "selector"}}
    return {**obj, "apiVersion": version}
