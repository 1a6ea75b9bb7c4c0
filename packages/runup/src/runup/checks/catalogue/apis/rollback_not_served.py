"""The cluster has objects that the previous minor version does not serve, so a rollback would lose them.

Applies when the target is the minor version before the source, and there is an object of a kind that the target has in
no version, or one whose `managedFields` have an entry of the last 30 days in a version that came after the target. The
manager is named. Entries of the control plane and of kubelets do not count: they are rolled back, too.

Why it matters: after the rollback, objects of a kind that the API server does not have stay in etcd and cannot be
read. The next write of a manager in a version that is not served fails.

Remedy: before the rollback, save objects of such kinds as files or delete them; change the manager to a version that
both minor versions serve.

Accepting it means that these objects cannot be read, and that the writes of these managers fail, until the cluster is
updated again.

Source of the rule: the kinds that each minor version of `k8s.io/api` has, as the table `data/api-lifecycle.yaml` has
them. That what is stored can be read by the minor version before is rule 4b of
<https://kubernetes.io/docs/reference/using-api/deprecation-policy/>.
"""

from __future__ import annotations

from functools import partial

from runup.api.platform_v1 import Managed
from runup.checks.catalogue.apis.removed_api_stored import objects_and_writers
from runup.checks.catalogue.apis.shared import written_versions as evidence
from runup.checks.decide.model import DEFINITIONS, Context, Snapshot
from runup.checks.decide.removal_tables import document, versions_of
from runup.checks.writing import Findings, Slim, count, declared, names_of, risk, unknown, yield_from_all

NAME = "RollbackNotServed"
# The nodes return, too, and before the control plane.
_GO_BACK = evidence.CONTROL_PLANE | {"kubelet"}
EXAMPLE = """
update: {from: 1.36.2, to: 1.35.0}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata:
  name: sidecars
  managedFields:
  - manager: mesh-operator
    operation: Update
    apiVersion: admissionregistration.k8s.io/v1
    time: "2026-01-13T08:00:00Z"
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields the findings of every kind that came after the older target and that the cluster may have."""
    target, source = context.target.minor, context.source.minor
    if source > int(document("api-lifecycle")["last"]):
        yield unknown(
            NAME,
            f"the table of kinds ends before Kubernetes {context.source}",
            fix="Look up what is new in the release's notes, or take a newer runup.",
        )
        return
    concerned: list[tuple[Slim, ...]] = []
    for versions in evidence.KINDS:
        lives = versions_of(versions[0].group, versions[0].kind)
        existing = [version for version, life in lives.items() if (life.introduced or 0) <= source]
        if any(target < (life.introduced or 0) <= source for life in lives.values()) and (
            # An alpha or beta version is served only if the API server is asked to
            # (https://kubernetes.io/docs/reference/using-api/); for its sake nobody is asked for a list that cannot be
            # had.
            not all(map(evidence.is_unstable, existing)) or not evidence.cannot_list(snapshot, versions)
        ):
            concerned.append(versions)
    yield from yield_from_all(*(partial(_findings_of_kind, snapshot, context, versions) for versions in concerned))


def _findings_of_kind(snapshot: Snapshot, context: Context, versions: tuple[Slim, ...]) -> Findings:
    """Yields the findings about objects of one kind that the older version does not serve."""
    readable, target = versions[0], context.target.minor
    lives = versions_of(readable.group, readable.kind)
    later = {version for version, life in lives.items() if (life.introduced or 0) > target}
    served = {
        version
        for version, life in lives.items()
        if version not in later and (life.removed is None or life.removed > target)
    }
    objects: tuple[Managed, ...] = snapshot.list_first_served(versions)
    minor = f"{context.target.major}.{target}"
    if objects and not served:
        yield risk(
            f"{NAME}-{readable.kind}",
            f"{count(len(objects), readable.kind)} ({names_of(objects)}) would be out of reach: "
            f"Kubernetes {minor} does not have this kind.",
            objects,
            fix=f"Keep what is needed of `kubectl get {readable.name} -A -o yaml`, and "
            "delete these before the way back.",
            kind=readable,
        )
        return
    # Who wrote a field in the newer version lately will write it again, and fail after the way back.
    newer = {f"{readable.group}/{version}" for version in later}
    if writes := evidence.recent_writes(objects, newer, _GO_BACK, context.now):
        about, who = objects_and_writers(writes)
        best = f"{readable.group}/{min(served, key=lambda version: ('alpha' in version, 'beta' in version, version))}"
        note = f" {minor} serves it only if its API server has --runtime-config for it."
        yield risk(
            f"{NAME}-{readable.kind}",
            f"{count(len(about), readable.kind)} ({names_of(about)}) {'is' if len(about) == 1 else 'are'} written in a "
            f"version that Kubernetes {minor} does not serve. Who writes: {who}.",
            about,
            fix=f"Change what these managers apply to {best}, and apply it once."
            f"{note if all(map(evidence.is_unstable, served)) else ''}",
            kind=readable,
        )


CHECK = declared(
    run,
    NAME,
    "kube-apiserver",
    reads=(*evidence.ALL, DEFINITIONS),
    rank=241,
    clusters="Kubernetes",
    applies_to=lambda context: context.target < context.source,
    updates="the way back to the minor version before",
)
