"""Accounts may open a shell or a port of a pod with the verb `get` alone, and the target requires `create`.

Applies when the update crosses Kubernetes 1.35, and a Role or ClusterRole grants `get` of pods/exec, pods/attach or
pods/portforward by name without `create`, and is bound to somebody to whom no other role that is bound there grants
`create`. A role for all resources (`*`) is for reading and does not count, and neither does any role where every
kube-apiserver has the gate AuthorizePodWebsocketUpgradeCreatePermission set to false, which 1.38 does not allow.

Why it matters: from 1.35 on, a client that opens a WebSocket (kubectl 1.31 and later, dashboards) gets 403 without
`create`.

Remedy: grant `create` of these subresources, too; or set the feature gate AuthorizePodWebsocketUpgradeCreatePermission
to false for the time being, which 1.38 and later do not allow.

Accepting it is right where these accounts should not have that access.

Source of the rule: kubernetes, `pkg/registry/core/pod/rest/subresources.go` (ensureAuthorizedForVerb) and
`pkg/features/kube_features.go` (AuthorizePodWebsocketUpgradeCreatePermission: beta and on in 1.35, locked in 1.38),
#134577.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from kubekit.api.meta_v1 import Object, Wire
from runup.checks.catalogue.control_plane.shared.given_settings import READS, is_gate_set
from runup.checks.catalogue.shared.kubernetes_versions import least_source_minor, target_minor
from runup.checks.writing import Context, Findings, Slim, Snapshot, declared, names, risk, slim_metadata, yield_from_all

NAME = "ExecNeedsCreate"
_FIRST = 35
_SUBRESOURCES = ("exec", "attach", "portforward")
_GROUP = "rbac.authorization.k8s.io"
EXAMPLE = """
update: {from: 1.34.2, to: 1.35.0}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: debuggers}
rules: [{apiGroups: [""], resources: [pods/exec], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: debuggers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: debuggers}
subjects: [{kind: Group, name: developers, apiGroup: rbac.authorization.k8s.io}]
"""


class PolicyRule(Wire, frozen=True):
    """A rule of a role: which verbs it grants on which resources."""

    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()


class GrantedRole(Object, frozen=True):
    """A Role or ClusterRole."""

    rules: tuple[PolicyRule, ...] | None = None


class RoleReference(Wire, frozen=True):
    """The role that a binding grants."""

    kind: str = ""
    name: str = ""


class Subject(Wire, frozen=True):
    """A user, group or account to whom a binding grants a role."""

    kind: str = ""
    name: str = ""
    namespace: str = ""


class Binding(Object, frozen=True):
    """A RoleBinding or ClusterRoleBinding."""

    role_ref: RoleReference = RoleReference()
    subjects: tuple[Subject, ...] | None = None


def _is_about_pods(rule: PolicyRule) -> bool:
    names_them = any(resource.endswith(_SUBRESOURCES) or resource == "*" for resource in rule.resources)
    return names_them and bool({"", "*"} & set(rule.api_groups))


def _slim_role(role: GrantedRole) -> GrantedRole:
    """Returns the role with only its rules about these subresources of pods."""
    rules = tuple(rule for rule in role.rules or () if _is_about_pods(rule))
    return GrantedRole(metadata=slim_metadata(role), rules=rules)


def _read(kind: str, plural: str, *, namespaced: bool) -> Slim:
    is_role = kind.endswith("Role")
    return Slim(
        group=_GROUP,
        version="v1",
        kind=kind,
        plural=plural,
        namespaced=namespaced,
        type=GrantedRole if is_role else Binding,
        keep=_slim_role
        if is_role
        else lambda binding: Binding(
            metadata=slim_metadata(binding), role_ref=binding.role_ref, subjects=binding.subjects
        ),
        changes=(_FIRST,),
    )


CLUSTER_ROLES = _read("ClusterRole", "clusterroles", namespaced=False)
ROLES = _read("Role", "roles", namespaced=True)
CLUSTER_BINDINGS = _read("ClusterRoleBinding", "clusterrolebindings", namespaced=False)
BINDINGS = _read("RoleBinding", "rolebindings", namespaced=True)


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields the findings about roles that only grant `get` for these subresources."""
    target = target_minor(context) or 0
    if least_source_minor(context) < _FIRST <= target and not is_gate_set(
        snapshot, "kube-apiserver", "AuthorizePodWebsocketUpgradeCreatePermission", target, to="false"
    ):
        yield from yield_from_all(
            partial(_of_bindings, snapshot, CLUSTER_BINDINGS), partial(_of_bindings, snapshot, BINDINGS)
        )


def _of_bindings(snapshot: Snapshot, kind: Slim) -> Findings:
    """Yields one finding for each kind of role that the bindings grant to subjects without `create`."""
    roles = {("", role.metadata.name): role for role in snapshot.listed(CLUSTER_ROLES)}
    bindings = snapshot.listed(kind)
    everywhere = _granted(snapshot.listed(CLUSTER_BINDINGS), roles, "create")
    if kind is BINDINGS:
        roles |= {(role.metadata.namespace, role.metadata.name): role for role in snapshot.listed(ROLES)}
    may_get, may_create = _granted(bindings, roles, "get"), _granted(bindings, roles, "create")
    lacking: dict[tuple[str, str], set[str]] = {}
    for (namespace, subject), subresources in may_get.items():
        created = {**everywhere.get(("", subject), {}), **may_create.get((namespace, subject), {})}
        for subresource, role in subresources.items():
            # A rule for everything, or for every subresource of this name, is not about pods.
            if subresource not in created and role is not None:
                lacking.setdefault(role, set()).add(f"pods/{subresource}")
    for of_kind, is_cluster_wide in (("ClusterRole", True), ("Role", False)):
        found = {role: subs for role, subs in lacking.items() if (role[0] == "") is is_cluster_wide}
        if found:
            listing = names([f"{'/'.join(filter(None, role))} ({names(sorted(subs))})" for role, subs in found.items()])
            yield risk(
                f"{NAME}-{of_kind}",
                f"{of_kind} {listing} {'grants' if len(found) == 1 else 'grant'} get alone, and Kubernetes 1.{_FIRST} "
                "asks for create: these commands are refused.",
                [roles[role] for role in found],
                fix="Grant create of these subresources, too, in the same rule.",
                kind=CLUSTER_ROLES if is_cluster_wide else ROLES,
            )


def _granted(
    bindings: Iterable[Binding], roles: Mapping[tuple[str, str], GrantedRole], verb: str
) -> dict[tuple[str, str], dict[str, tuple[str, str] | None]]:
    """Returns by namespace and subject the subresources on which bindings grant the verb, each with the role.

    The role is None if it grants the verb on all resources.
    """
    granted: dict[tuple[str, str], dict[str, tuple[str, str] | None]] = {}
    for binding in bindings:
        namespace = binding.metadata.namespace
        key = (namespace if binding.role_ref.kind == "Role" else "", binding.role_ref.name)
        for rule in (roles[key].rules or ()) if key in roles else ():
            if not {verb, "*"} & set(rule.verbs):
                continue
            for subresource in _SUBRESOURCES:
                is_named = bool({f"pods/{subresource}", f"*/{subresource}"} & set(rule.resources))
                if is_named or "*" in rule.resources:
                    for subject in binding.subjects or ():
                        text = f"{subject.kind}:{subject.namespace}:{subject.name}"
                        of_subject = granted.setdefault((namespace, text), {})
                        if is_named or subresource not in of_subject:
                            of_subject[subresource] = key if is_named else None
    return granted


CHECK = declared(
    run,
    NAME,
    "kube-apiserver",
    reads=(CLUSTER_BINDINGS, CLUSTER_ROLES, BINDINGS, ROLES, *READS),
    rank=242,
    clusters="both",
)
