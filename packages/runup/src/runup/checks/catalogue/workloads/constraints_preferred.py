"""SecurityContextConstraints that all users may use take precedence for pods of the platform.

Applies when SecurityContextConstraints would admit the next pods of a workload of the platform before the constraints
that its present pods have: the pods' account may use them, they come first by priority, restrictions or name, and they
admit the pod template. It also applies when constraints are open to all authenticated users or all service accounts and
pods of the platform already run under them; and, if no templates of the platform's workloads are known, when such
constraints have a priority above 0. `restricted`, `restricted-v2` and `restricted-v3` are not reported. Accounts may
use constraints by `users` and `groups` of these, or by a ClusterRoleBinding of the ClusterRole
`system:openshift:scc:NAME`; other roles that allow their use are not evaluated. Pods with the annotation
openshift.io/required-scc are not affected.

Why it matters: of all constraints that a pod may use, admission takes the one with the highest priority that admits the
pod, and applies its settings: a read-only root file system, another user. Running pods keep theirs. The pods that the
update creates fail, and the update stops.

Remedy: set `priority: null`, or limit `users` and `groups` to the accounts that need the constraints; delete the
platform's pods that run under them, one by one. `oc get pods -A -o yaml` shows openshift.io/scc of each.

Accepting it is right where the pods that run under these constraints work after a restart.

Source of the rule: openshift/apiserver-library-go, `pkg/securitycontextconstraints` (sccadmission, sccmatching,
util/sort); okd-project/okd#554, cluster-config-operator#147, cluster-storage-operator#344,
operator-lifecycle-manager#2663.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from kubekit.api.core_v1 import Namespace
from kubekit.api.pod_parts import PlacedPod
from kubekit.lang.text import count
from kubekit.rules.owners import workload_of
from runup.api.platform_v1 import ClusterRoleBinding, SecurityContextConstraints
from runup.checks.catalogue.shared.platform_workloads import WORKLOADS, platform_workloads, pod_of
from runup.checks.catalogue.shared.pods import PODS
from runup.checks.writing import (
    DEFINITIONS,
    Context,
    Finding,
    Findings,
    Slim,
    Snapshot,
    Unreadable,
    declared,
    names,
    names_of,
    risk,
)
from runup.rules.constraints_admission import admission_order, admits
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
REQUIRED = "openshift.io/required-scc"
_ROLE = "system:openshift:scc:"


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields a risk for each of the constraints that take pods of the platform, or would take the next ones."""
    constraints = sorted(snapshot.all_or_none(SecurityContextConstraints), key=admission_order)
    suspects = [each for each in constraints if each.metadata.name not in _OPEN_BY_DEFAULT]
    if not suspects:
        return
    lacking: list[Unreadable] = []
    bindings, pods, templates = list[ClusterRoleBinding](), list[Any](), list[_Template]()
    try:
        pods = [pod for pod in snapshot.listed(PODS) if is_system(pod.metadata.namespace)]
        snapshot.require_all(PODS)
    except Unreadable as error:
        lacking.append(error)
    try:
        bindings = list(snapshot.all(ClusterRoleBinding))
    except Unreadable as error:
        lacking.append(error)
    for resource in WORKLOADS:
        try:
            templates += _templates(snapshot, resource, pods)
        except Unreadable as error:
            lacking.append(error)
    by_name = {each.metadata.name: each for each in constraints}
    for scc in suspects:
        name, priority = scc.metadata.name, scc.priority or 0
        is_open = _is_usable(scc, bindings, _EVERYBODY, "")
        running = [pod for pod in pods if pod.metadata.annotations.scc == name] if is_open else []
        taken = [each for each in templates if _takes(scc, by_name.get(each.current), each, bindings)]
        # Without the templates, constraints that are preferred may take any pod.
        is_preferred = not templates and is_open and priority > 0
        if taken or running or is_preferred:
            yield _finding(scc, taken, running, is_open=is_open, is_preferred=is_preferred)
    if lacking:
        raise lacking[0]


def _finding(
    scc: SecurityContextConstraints,
    taken: Sequence[_Template],
    running: Sequence[PlacedPod],
    *,
    is_open: bool,
    is_preferred: bool,
) -> Finding:
    name = scc.metadata.name
    parts = ["are open to everybody"] if is_open else []
    if is_preferred:
        parts.append("preferred for new pods of the platform")
    if taken:
        workloads = [f"{each.name}{f' (now {each.current})' if each.current else ''}" for each in taken]
        parts.append(
            f"would admit the next pods of {count(len(taken), 'workload')} of the platform: {names(workloads)}"
        )
    already = f" Already under them: {count(len(running), 'pod')} ({names_of(running)})." if running else ""
    return risk(
        f"{NAME}-{name}",
        f"SecurityContextConstraints {name} (priority {scc.priority or 0}) {', and '.join(parts)}.{already}",
        [scc],
        fix=f"Limit users and groups to the accounts that need them, or remove the priority: `oc edit scc {name}`.",
    )


class _Template(NamedTuple):
    """The pods of a workload of the platform: its name, their form, and the constraints of those that run."""

    name: str
    pod: dict[str, Any]
    namespace: dict[str, str]
    current: str

    @property
    def account(self) -> tuple[str, str]:
        """The namespace and the name of the ServiceAccount of the pods."""
        return self.pod["metadata"]["namespace"], str(self.pod["spec"].get("serviceAccountName") or "default")


def _templates(snapshot: Snapshot, resource: Slim, pods: Iterable[PlacedPod]) -> list[_Template]:
    """Returns the pods of the platform's workloads of a kind."""
    current: dict[tuple[str, str, str], str] = {}
    for pod in pods:
        if (made_by := workload_of(pod.metadata.owner_references)) and pod.metadata.annotations.scc:
            kind, name = made_by
            current[kind, pod.metadata.namespace, name] = pod.metadata.annotations.scc
    annotations = {each.metadata.name: dict(each.metadata.annotations) for each in snapshot.all(Namespace)}
    found = []
    for workload in platform_workloads(snapshot, resource):
        namespace, name = workload["metadata"]["namespace"], str(workload["metadata"].get("name"))
        scc = current.get((resource.kind, namespace, name), "")
        found.append(_Template(f"{namespace}/{name}", pod_of(workload), annotations.get(namespace, {}), scc))
    return found


def _takes(
    scc: SecurityContextConstraints,
    current: SecurityContextConstraints | None,
    template: _Template,
    bindings: Iterable[ClusterRoleBinding],
) -> bool:
    """Returns whether the constraints would admit the next pod of a workload before those of its present pods."""
    namespace, account = template.account
    # Without present pods, or their constraints, the platform's own have no priority.
    is_first = (scc.priority or 0) > 0 if current is None else admission_order(scc) < admission_order(current)
    groups = _EVERYBODY | {f"system:serviceaccounts:{namespace}"}
    return (
        scc is not current
        and is_first
        and REQUIRED not in template.pod["metadata"].get("annotations", {})
        and _is_usable(scc, bindings, groups, f"system:serviceaccount:{namespace}:{account}")
        and admits(scc, template.pod, template.namespace)
    )


def _is_usable(
    scc: SecurityContextConstraints, bindings: Iterable[ClusterRoleBinding], groups: frozenset[str], user: str
) -> bool:
    """Returns whether a user or one of the groups may use the constraints, by themselves or by their ClusterRole."""
    if groups & {*scc.groups} or user in scc.users:
        return True
    return any(
        (subject.kind == "Group" and subject.name in groups)
        or (subject.kind == "ServiceAccount" and f"system:serviceaccount:{subject.namespace}:{subject.name}" == user)
        for binding in bindings
        if binding.role_ref.name == f"{_ROLE}{scc.metadata.name}"
        for subject in binding.subjects
    )


CHECK = declared(
    run,
    NAME,
    "kube-apiserver",
    reads=(SecurityContextConstraints, PODS, ClusterRoleBinding, Namespace, *WORKLOADS, DEFINITIONS),
    rank=621,
)
