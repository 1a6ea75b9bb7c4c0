"""Somebody writes objects in a version of a built-in API that the target does not serve.

Applies when an object's `managedFields` have an entry of the last 30 days in a version that is removed between the
Kubernetes of the cluster and that of the target. The manager is named. Older entries, and the annotation
`last-applied-configuration`, are no evidence: both outlive the client that wrote them. What the control plane itself
wrote does not count: it is of the target when the target is there. Where the target's Kubernetes is newer than the
table of removed versions, an entry in an alpha or beta version that the table does not have is Unknown.

Why it matters: the next write of that manager fails: an operator stands still, a pipeline breaks. The objects
themselves stay readable in the versions that are left.

What to do: change what the manager applies to the version that the objects are shown in, and apply it once;
`oc get KIND NAME -o yaml --show-managed-fields` shows the entry gone or changed.

Accepting it means that the manager's next write may fail.

Source of the rule: the lifecycle that Kubernetes' own types declare (`k8s.io/api`, APILifecycleRemoved; the API server
goes by it: apiserver, `pkg/server/deleted_kinds.go`), as the table `data/removed-apis.yaml` has it: 1.28 and 1.30
remove nothing.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from datetime import timedelta

from runup.api.platform_v1 import Managed, ManagedFieldsEntry
from runup.checks.catalogue.shared import kubernetes_versions as kubernetes
from runup.checks.decide.model import DEFINITIONS, Context, Snapshot, Unreadable
from runup.checks.decide.removal_tables import removed_versions, table
from runup.checks.writing import Findings, Resource, Slim, count, declared, full_name, names, names_of, risk, unknown

NAME = "RemovedAPIStored"
ACTIVE_WITHIN = timedelta(days=30)
Write = tuple[Managed, ManagedFieldsEntry]
FLOW = "flowcontrol.apiserver.k8s.io"
ADMISSION = "admissionregistration.k8s.io"
NETWORKING, STORAGE, RESOURCE = "networking.k8s.io", "storage.k8s.io", "resource.k8s.io"


def metadata_reads(
    group: str, versions: tuple[str, ...], kind: str, plural: str, *, namespaced: bool = False
) -> tuple[Slim, ...]:
    """Returns the reads of a kind, preferred version first: an older API server does not have the newest."""
    return tuple(
        Slim(group=group, version=version, kind=kind, plural=plural, namespaced=namespaced, type=Managed)
        for version in versions
    )


_V1, _TO_V1 = ("v1",), ("v1", "v1beta1")
_DEVICES = ("v1", "v1beta2", "v1beta1")
# What the table has of 1.26 and later, and somebody else than the control plane writes.
KINDS: tuple[tuple[Slim, ...], ...] = (
    metadata_reads("autoscaling", ("v2",), "HorizontalPodAutoscaler", "horizontalpodautoscalers", namespaced=True),
    metadata_reads(FLOW, ("v1", "v1beta3"), "FlowSchema", "flowschemas"),
    metadata_reads(FLOW, ("v1", "v1beta3"), "PriorityLevelConfiguration", "prioritylevelconfigurations"),
    metadata_reads(ADMISSION, _TO_V1, "ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
    metadata_reads(ADMISSION, _TO_V1, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
    metadata_reads(ADMISSION, _TO_V1, "MutatingAdmissionPolicy", "mutatingadmissionpolicies"),
    metadata_reads(ADMISSION, _TO_V1, "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings"),
    metadata_reads(STORAGE, _V1, "CSIStorageCapacity", "csistoragecapacities", namespaced=True),
    metadata_reads(STORAGE, _TO_V1, "VolumeAttributesClass", "volumeattributesclasses"),
    metadata_reads(NETWORKING, _TO_V1, "IPAddress", "ipaddresses"),
    metadata_reads(NETWORKING, _TO_V1, "ServiceCIDR", "servicecidrs"),
    metadata_reads(RESOURCE, _DEVICES, "DeviceClass", "deviceclasses"),
    metadata_reads(RESOURCE, _DEVICES, "ResourceClaim", "resourceclaims", namespaced=True),
    metadata_reads(RESOURCE, _DEVICES, "ResourceClaimTemplate", "resourceclaimtemplates", namespaced=True),
    metadata_reads(RESOURCE, _DEVICES, "ResourceSlice", "resourceslices"),
    metadata_reads("certificates.k8s.io", _TO_V1, "ClusterTrustBundle", "clustertrustbundles"),
    metadata_reads("storagemigration.k8s.io", _TO_V1, "StorageVersionMigration", "storageversionmigrations"),
)
# Managers that are the control plane itself, which is of the target when the target is there: the names are those of
# its programs, and of the parts of kube-apiserver that write FlowSchemas (apiserver, pkg/util/flowcontrol).
CONTROL_PLANE = frozenset(
    {"kube-apiserver", "kube-controller-manager", "kube-scheduler", "cluster-policy-controller"}
    | {f"api-priority-and-fairness-config-{part}-v1" for part in ("consumer", "producer")}
)
EXAMPLE = """
apiVersion: v1
kind: Node
metadata: {name: worker-0, labels: {node-role.kubernetes.io/worker: ""}}
status: {nodeInfo: {kubeletVersion: v1.31.4}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata:
  name: shop
  managedFields:
  - manager: shop-operator
    operation: Update
    apiVersion: flowcontrol.apiserver.k8s.io/v1beta3
    time: "2026-01-13T08:00:00Z"
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields the findings of every kind that loses a version between the cluster's Kubernetes and the target's."""
    source, target = kubernetes.source_minor(snapshot, context), kubernetes.target_minor(context)
    if source is None or target is None:
        yield kubernetes.versions_unknown(NAME, target)
        return
    removed = removed_versions(source, target)
    beyond = not table("removed-apis").knows(target)
    for versions in KINDS:
        readable = versions[0]
        gone = {version for group, version, kind in removed if (group, kind) == (readable.group, readable.kind)}
        # The API server serves no alpha version unless it is told to by --runtime-config; for its sake nobody is asked
        # for a list that cannot be had (https://kubernetes.io/docs/reference/using-api/#api-versioning).
        only_alpha = bool(gone) and not beyond and all("alpha" in version for version in gone)
        if not (gone or beyond) or (only_alpha and cannot_list(snapshot, versions)):
            continue
        writes = recent_writes(snapshot.list_first_served(versions), CONTROL_PLANE, context)
        removed_writes, unclear = [], []
        for obj, entry in writes:
            group, _, version = entry.api_version.rpartition("/")
            if (group, version, readable.kind) in removed:
                removed_writes.append((obj, entry))
            # Only alpha and beta versions are ever removed within a major version
            # (https://kubernetes.io/docs/reference/using-api/deprecation-policy/).
            elif beyond and group == readable.group and ("alpha" in version or "beta" in version):
                unclear.append((obj, entry))
        if removed_writes:
            objects, who = objects_and_writers(removed_writes)
            yield risk(
                f"{NAME}-{readable.kind}",
                f"{count(len(objects), readable.kind)} ({names_of(objects)}) {'is' if len(objects) == 1 else 'are'} "
                f"written in a version that {kubernetes.target_in_words(context)} does not serve. Who writes: {who}.",
                objects,
                fix="Change what these managers apply, and apply it once; `oc get -o yaml --show-managed-fields` shows "
                "it.",
                kind=readable,
            )
        if unclear:
            objects, who = objects_and_writers(unclear)
            yield unknown(
                NAME,
                f"the table of removed versions ends before Kubernetes {context.target_kubernetes}, and "
                f"{readable.kind} {names_of(objects)} is written by {who}",
                objects,
                fix="Look the version up in the Kubernetes deprecation guide; move to one that is neither alpha nor "
                "beta.",
                kind=readable,
            )


def cannot_list(snapshot: Snapshot, versions: tuple[Slim, ...]) -> bool:
    """Returns whether the kind can be listed in none of its versions."""
    try:
        snapshot.list_first_served(versions)
    except Unreadable:
        return True
    return False


def recent_writes(objects: Iterable[Managed], but_of: Container[str], context: Context) -> list[Write]:
    """Returns the writes of the last days to the objects, without those of the managers `but_of`."""
    return [
        (obj, entry)
        for obj in objects
        for entry in obj.metadata.managed_fields
        if entry.time is not None and context.now - entry.time <= ACTIVE_WITHIN and entry.manager not in but_of
    ]


def objects_and_writers(writes: Sequence[Write]) -> tuple[list[Managed], str]:
    """Returns the written objects, each once, and in words who writes them in which version."""
    objects = {full_name(obj): obj for obj, _ in writes}
    return list(objects.values()), names(sorted({f"{entry.manager} in {entry.api_version}" for _, entry in writes}))


_ALL: tuple[Resource, ...] = tuple(version for versions in KINDS for version in versions)
CHECK = declared(run, NAME, "kube-apiserver", reads=(*_ALL, *kubernetes.READS, DEFINITIONS), rank=240, clusters="both")
