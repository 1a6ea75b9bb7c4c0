"""Somebody writes objects in a version of a built-in API that the target does not serve.

Applies when an object's `managedFields` have an entry of the last 30 days in a version that is removed between the
Kubernetes of the cluster and that of the target. The manager is named. Older entries, and the annotation
`last-applied-configuration`, are no evidence: both outlive the client that wrote them. Where the target's Kubernetes is
newer than the table of removed versions, an entry in an alpha or beta version is Unknown.

Why it matters the next write of that manager fails: an operator stands still, a pipeline breaks. The objects themselves
stay readable in the versions that are left.

What to do change what the manager applies to the version that the objects are shown in, and apply it once;
`oc get KIND NAME -o yaml --show-managed-fields` shows the entry gone or changed.

Accepting it means that the manager's next write may fail.

Source of the rule the Kubernetes deprecation guide, as the table `data/removed-apis.yaml` has it: 1.28, 1.30 and 1.31
remove nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta

from kubekit.api.scheme import Resource
from runup.api.platform_v1 import Managed, ManagedFieldsEntry
from runup.checks.catalogue.declaring import declared, named, risk, unsure
from runup.checks.catalogue.shared.kubernetes import READS, source_minor, target_minor
from runup.checks.catalogue.shared.presence import DEFINITIONS, listed_any
from runup.checks.decide.model import Context, Finding, Snapshot
from runup.checks.decide.reads import Slim
from runup.checks.decide.removal_tables import removed_versions, table
from runup.checks.decide.wording import count, names

NAME = "RemovedAPIStored"
ACTIVE = timedelta(days=30)
FLOW = "flowcontrol.apiserver.k8s.io"
ADMISSION = "admissionregistration.k8s.io"


def _managed(group: str, version: str, kind: str, plural: str, *, namespaced: bool = False) -> Slim:
    """Returns the read of a kind of which only the metadata with its managed fields is kept."""
    return Slim(group, version, kind, plural, namespaced, type=Managed)


# For each kind the versions by which it is listed, preferred first: an older API server does not have the newest.
KINDS: tuple[tuple[Slim, ...], ...] = (
    (_managed("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", namespaced=True),),
    tuple(_managed(FLOW, version, "FlowSchema", "flowschemas") for version in ("v1", "v1beta3")),
    tuple(
        _managed(FLOW, version, "PriorityLevelConfiguration", "prioritylevelconfigurations")
        for version in ("v1", "v1beta3")
    ),
    (_managed(ADMISSION, "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies"),),
    (_managed(ADMISSION, "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),),
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


def _run(snapshot: Snapshot, context: Context) -> Iterator[Finding]:
    source, target = source_minor(snapshot), target_minor(context)
    if source is None or target is None:
        whose = "the target ships" if target is None else "the cluster runs"
        yield unsure(
            NAME,
            f"which Kubernetes {whose} is not known",
            fix="See `oc get clusteroperator kube-apiserver -o yaml`, or ask the publisher of the release.",
        )
        return
    removed = removed_versions(source, target)
    for versions in KINDS:
        kind = versions[0].kind
        beyond = not table("removed-apis").knows(target)
        if any((versions[0].group, kind) == (group, name) for group, _, name in removed) or beyond:
            yield from _judge(snapshot, context, versions, removed, beyond=beyond)


def _judge(
    snapshot: Snapshot,
    context: Context,
    versions: tuple[Slim, ...],
    removed: Mapping[tuple[str, str, str], int],
    *,
    beyond: bool,
) -> Iterator[Finding]:
    read = versions[0]
    gone: list[tuple[Managed, ManagedFieldsEntry]] = []
    unclear: list[tuple[Managed, ManagedFieldsEntry]] = []
    for obj in listed_any(snapshot, versions):
        for entry in obj.metadata.managed_fields:
            if entry.time is None or context.now - entry.time > ACTIVE:
                continue
            group, _, version = entry.api_version.rpartition("/")
            if (group, version, read.kind) in removed:
                gone.append((obj, entry))
            # Only alpha and beta versions are ever removed within a major version
            # (https://kubernetes.io/docs/reference/using-api/deprecation-policy/).
            elif beyond and group == read.group and ("alpha" in version or "beta" in version):
                unclear.append((obj, entry))
    if gone:
        objects = list({named(obj): obj for obj, _ in gone}.values())
        who = sorted({f"{entry.manager} in {entry.api_version}" for _, entry in gone})
        yield risk(
            f"{NAME}-{read.kind}",
            f"{count(len(objects), read.kind)} ({names([named(obj) for obj in objects])}) "
            f"{'is' if len(objects) == 1 else 'are'} written in a version that {context.target} (Kubernetes "
            f"{context.target_kubernetes}) does not serve. Who writes: {names(who)}.",
            objects,
            fix="Change what these managers apply, and apply it once; `oc get -o yaml --show-managed-fields` shows it.",
            kind=read,
        )
    if unclear:
        objects = list({named(obj): obj for obj, _ in unclear}.values())
        who = sorted({f"{entry.manager} in {entry.api_version}" for _, entry in unclear})
        yield unsure(
            NAME,
            f"the table of removed versions ends before Kubernetes {context.target_kubernetes}, and {read.kind} "
            f"{names([named(obj) for obj in objects])} is written by {names(who)}",
            objects,
            fix="Look the version up in the Kubernetes deprecation guide; move to one that is neither alpha nor beta.",
            kind=read,
        )


_ALL: tuple[Resource, ...] = tuple(version for versions in KINDS for version in versions)
CHECK = declared(__doc__, NAME, "kube-apiserver", (*_ALL, *READS, DEFINITIONS), _run, rank=240, example=EXAMPLE)
