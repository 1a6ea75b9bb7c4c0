"""SecurityContextConstraints that everybody may use are preferred for the platform's pods.

Applies when SecurityContextConstraints that OpenShift does not have, or `anyuid`, `privileged` and the like, are open
to all authenticated users or all service accounts, and either have a priority above 0, or pods of the platform already
run under them. Constraints are open by their own `users` and `groups`, or by a ClusterRoleBinding of the ClusterRole
`system:openshift:scc:NAME`; other ClusterRoles that allow their use are not evaluated. Pods that name their constraints
by the annotation openshift.io/required-scc are not affected, but this check does not read that annotation.

Why it matters: of all constraints that a pod may use, admission takes the one with the highest priority that admits
the pod, and applies its settings: a read-only root file system, another user. Running pods keep theirs. The pods that
the update creates fail, and the update stops.

What to do: set `priority: null`, or limit `users` and `groups` to the accounts that need the constraints; delete the
platform's pods that run under them, one by one. `oc get pods -A -o yaml` shows openshift.io/scc of each.

Accepting it is right where the pods that run under these constraints work after a restart.

Source of the rule: openshift/apiserver-library-go, `pkg/securitycontextconstraints/sccmatching` (priority first);
okd-project/okd#554, cluster-config-operator#147, cluster-storage-operator#344, operator-lifecycle-manager#2663.
"""

from __future__ import annotations

from typing import Any

from kubekit.lang.text import count
from runup.api.platform_v1 import ClusterRoleBinding, SecurityContextConstraints
from runup.checks.catalogue.shared.pods import PODS
from runup.checks.writing import (
    DEFINITIONS,
    Context,
    Findings,
    Snapshot,
    Unreadable,
    declared,
    names_of,
    risk,
)
from runup.rules.platform_namespaces import is_system

NAME = "SecurityContextConstraintsPreferred"
EXAMPLE = """
apiVersion: security.openshift.io/v1
kind: SecurityContextConstraints
metadata: {name: backup-vendor}
priority: 20
groups: ["system:authenticated"]
"""
_EVERYBODY = frozenset({"system:authenticated", "system:serviceaccounts", "system:unauthenticated"})
# Open to all authenticated users in every cluster, and the constraints that most pods of the platform have.
_OPEN_BY_DEFAULT = frozenset({"restricted", "restricted-v2", "restricted-v3"})
_ROLE = "system:openshift:scc:"


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields a risk for each of the constraints that are open and preferred, or already used by the platform."""
    constraints = sorted(snapshot.all_or_none(SecurityContextConstraints), key=lambda each: each.metadata.name)
    suspects = [each for each in constraints if each.metadata.name not in _OPEN_BY_DEFAULT]
    if not suspects:
        return
    lacking: Unreadable | None = None
    bound, pods = frozenset[str](), list[Any]()
    try:
        pods = [pod for pod in snapshot.listed(PODS) if is_system(pod.metadata.namespace)]
        snapshot.require_all(PODS)
    except Unreadable as error:
        lacking = error
    try:
        bound = _bound_to_everybody(snapshot)
    except Unreadable as error:
        lacking = lacking or error
    for scc in suspects:
        name = scc.metadata.name
        if not (_EVERYBODY & {*scc.groups} or name in bound):
            continue
        running = [pod for pod in pods if pod.metadata.annotations.scc == name]
        priority = scc.priority or 0
        if priority <= 0 and not running:
            continue
        already = f" Already under them: {count(len(running), 'pod')} ({names_of(running)})." if running else ""
        yield risk(
            f"{NAME}-{name}",
            f"SecurityContextConstraints {name} (priority {priority}) are open to everybody"
            f"{', and preferred for new pods of the platform' if priority > 0 else ''}.{already}",
            [scc],
            fix=f"Limit users and groups to the accounts that need them, or remove the priority: `oc edit scc {name}`.",
        )
    if lacking is not None:
        raise lacking


def _bound_to_everybody(snapshot: Snapshot) -> frozenset[str]:
    """Returns the names of the constraints whose ClusterRole is bound to everybody. Raises Unreadable."""
    return frozenset(
        binding.role_ref.name.removeprefix(_ROLE)
        for binding in snapshot.all(ClusterRoleBinding)
        if binding.role_ref.name.startswith(_ROLE)
        and any(subject.kind == "Group" and subject.name in _EVERYBODY for subject in binding.subjects)
    )


CHECK = declared(
    run,
    NAME,
    "kube-apiserver",
    reads=(SecurityContextConstraints, PODS, ClusterRoleBinding, DEFINITIONS),
    rank=621,
)
