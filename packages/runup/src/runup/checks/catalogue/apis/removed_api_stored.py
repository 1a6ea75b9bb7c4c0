"""Clients write objects in a version of a built-in API that the target does not serve.

Applies when an object shows that a client writes it in a version that is removed between the Kubernetes of the cluster
and that of the target. How severe that is depends on the evidence, which each finding names: an entry in
`managedFields` of the last 30 days is critical; a manifest in such a version that `kubectl apply` or Argo CD applied
last (annotation `kubectl.kubernetes.io/last-applied-configuration`) is a warning; an older entry, or one without a
time, is for information. A newer write of the same manager in a version that stays cancels its older ones. Entries of
the control plane itself do not count: the target writes its own. Objects of a kind that cluster and target serve in no
common version are a warning, regardless of their manager. Where no object of a kind has `managedFields`, which kubectl
hides by default, the check is Unknown. Where the target's Kubernetes is newer than the table of removed versions, an
entry in an alpha or beta version that the table does not have is Unknown.

Why it matters: the next write of that manager fails: an operator or a pipeline fails. The objects stay readable in the
versions that the target serves. Objects of a kind without such a version cannot be read after the update.

Remedy: change what the manager applies to a version that the target serves, and apply it once; `kubectl get KIND NAME
-o yaml --show-managed-fields` shows the entry changed. Keep and delete objects that the target cannot read.

Accepting it means that the manager's next write may fail.

Source of the rule: the lifecycle that Kubernetes' own types declare (`k8s.io/api`, APILifecycleRemoved; the API server
uses it: apiserver, `pkg/server/deleted_kinds.go`), as the table `data/removed-apis.yaml` has it: 1.28 and 1.30 remove
nothing. The annotation: <https://kubernetes.io/docs/tasks/manage-kubernetes-objects/declarative-config/>."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from itertools import chain

from runup.api.platform_v1 import Managed
from runup.checks.catalogue.apis.shared import written_versions as evidence
from runup.checks.catalogue.shared import kubernetes_versions as kubernetes
from runup.checks.decide.model import DEFINITIONS, Context, Snapshot
from runup.checks.decide.reads import crosses
from runup.checks.decide.removal_tables import removal_of, table
from runup.checks.writing import (
    Finding,
    Findings,
    Slim,
    count,
    declared,
    full_name,
    names,
    names_of,
    risk,
    unknown,
    yield_from_all,
)
from runup.report.report import Severity

NAME = "RemovedAPIStored"
# What follows the kind in the names of findings by weaker evidence.
_SUFFIXES: dict[Severity, str] = {"critical": "", "warning": "-LastApplied", "info": "-Earlier"}
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
    hidden: list[Slim] = []
    kinds = [kind for kind in evidence.KINDS if crosses(kind[0], source, target)]
    yield from yield_from_all(
        *(partial(_findings_of_kind, snapshot, context, (source, target), kind=kind, hidden=hidden) for kind in kinds),
        partial(_hidden_finding, hidden),
    )


def _hidden_finding(hidden: Sequence[Slim]) -> Findings:
    """Yields one Unknown finding for all kinds whose objects have no managed fields."""
    if hidden:
        yield unknown(
            NAME,
            f"managed fields, which say who writes in which version, are missing from every "
            f"{names([read.kind for read in hidden])}",
            fix="Collect them with `kubectl get KIND -A -o yaml --show-managed-fields`, or with `runup dump collect`.",
        )


def _findings_of_kind(
    snapshot: Snapshot, context: Context, minors: tuple[int, int], *, kind: tuple[Slim, ...], hidden: list[Slim]
) -> Findings:
    """Yields the findings about one kind, and adds it to the hidden ones if its objects do not show who writes."""
    (source, target), readable = minors, kind[0]
    gone = evidence.ended(readable, source, target)
    beyond = not table("removed-apis").knows(target)
    at_stake = {read.version for read in kind} if beyond else gone
    # For the sake of an alpha version nobody is asked for a list that cannot be had.
    if not (gone or beyond) or (
        all("alpha" in version for version in at_stake) and evidence.cannot_list(snapshot, kind)
    ):
        return
    objects: tuple[Managed, ...] = snapshot.list_first_served(kind)
    if gone and objects and not evidence.stays(kind, source, target):
        yield _out_of_reach(objects, readable, gone, context)
        return
    writes = list(chain.from_iterable(evidence.writes_of(obj, gone, evidence.CONTROL_PLANE) for obj in objects))
    for severity, suffix in _SUFFIXES.items():
        if weighed := [write for write in writes if write.severity(context.now) == severity]:
            about, who = objects_and_writers(weighed)
            yield risk(
                f"{NAME}-{readable.kind}{suffix}",
                f"{count(len(about), readable.kind)} ({names_of(about)}) {'is' if len(about) == 1 else 'are'} "
                f"written in a version that {_not_served(readable, gone, context)}. Who writes: {who}.",
                about,
                fix="Change what these managers apply, and apply it once; `kubectl get -o yaml --show-managed-fields` "
                "shows it.",
                severity=severity,
                kind=readable,
            )
    # Only alpha and beta versions are ever removed within a major version
    # (https://kubernetes.io/docs/reference/using-api/deprecation-policy/).
    early = {
        entry.api_version
        for obj in objects
        for entry in obj.metadata.managed_fields
        if beyond and entry.api_version not in gone and evidence.is_unstable(entry.api_version)
    }
    if unclear := evidence.recent_writes(objects, early, evidence.CONTROL_PLANE, context.now):
        about, who = objects_and_writers(unclear)
        yield unknown(
            NAME,
            f"the table of removed versions ends before Kubernetes {context.target_kubernetes}, and "
            f"{readable.kind} {names_of(about)} is written by {who}",
            about,
            fix="Look the version up in the Kubernetes deprecation guide; move to one that is neither alpha nor beta.",
            kind=readable,
        )
    if gone and objects and not any(obj.metadata.managed_fields for obj in objects):
        hidden.append(readable)


def _out_of_reach(objects: Sequence[Managed], readable: Slim, gone: Collection[str], context: Context) -> Finding:
    """Returns the finding about objects that the target serves in no version in which the cluster serves them."""
    return risk(
        f"{NAME}-{readable.kind}-OutOfReach",
        f"{count(len(objects), readable.kind)} ({names_of(objects)}) would be out of reach: the cluster serves "
        f"{'it' if len(objects) == 1 else 'them'} in {names(sorted(gone))} alone, which "
        f"{_not_served(readable, gone, context)}.",
        objects,
        fix=f"Keep what is needed of `kubectl get {readable.name} -A -o yaml`, and delete these before the update.",
        kind=readable,
    )


def _not_served(readable: Slim, gone: Collection[str], context: Context) -> str:
    """Returns `1.37.0 does not serve`, or that this is planned if no released version of Kubernetes removes it."""
    parts = [version.rpartition("/") for version in gone]
    removals = [removal_of(group, version, readable.kind) or 0 for group, _, version in parts]
    is_planned = not table("removed-apis").knows(min(removals, default=0))
    return f"{kubernetes.target_in_words(context)} {'is planned not to serve' if is_planned else 'does not serve'}"


def objects_and_writers(writes: Sequence[evidence.Write]) -> tuple[list[Managed], str]:
    """Returns the written objects, each once, and in words who writes them in which version."""
    objects = {full_name(write.obj): write.obj for write in writes}
    return list(objects.values()), names(sorted({write.text for write in writes}))


CHECK = declared(
    run,
    NAME,
    "kube-apiserver",
    reads=(*evidence.ALL, *kubernetes.READS, DEFINITIONS),
    rank=240,
    severity="critical",
    clusters="both",
)
