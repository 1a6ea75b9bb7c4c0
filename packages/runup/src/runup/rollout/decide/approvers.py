"""Decides who may give the approvals that a run lacks, from the cluster's ClusterRoles and their bindings. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from runup.api.update_policy_v1alpha1 import GROUP, RunGate, UpdateRun

JSON = dict[str, Any]
# The subjects that may approve a run, or why they are not known.
Approvers = tuple[str, ...] | str
# The right that the admission policy of deploy/update-policy/05_approvals.yaml requires.
VERB, RESOURCE = "approve", "updateruns"
_OF_APPROVALS = ("ApprovalMissing", "ApprovalEnded", "ApproverUnverified")


def missing_approvals(run: UpdateRun) -> tuple[RunGate, ...]:
    """Returns the gates of a run that wait for an approval."""
    return tuple(gate for gate in run.status.gates if gate.state != "Open" and gate.reason in _OF_APPROVALS)


def approvers_of(run: str, roles: Iterable[JSON], bindings: Sequence[JSON]) -> tuple[str, ...]:
    """Returns the subjects that have the verb `approve` on UpdateRun `run`, such as `Group cab`, sorted.

    UpdateRuns are cluster-scoped, so only ClusterRoleBindings grant it. A role whose rules are not listed grants
    nothing here.
    """
    granting = {str(_name(role)) for role in roles if any(_grants(rule, run) for rule in role.get("rules") or ())}
    subjects = (
        subject
        for binding in bindings
        if (binding.get("roleRef") or {}).get("name") in granting
        for subject in binding.get("subjects") or ()
    )
    return tuple(sorted({_subject_text(subject) for subject in subjects}))


def _name(obj: JSON) -> str:
    return str((obj.get("metadata") or {}).get("name", ""))


def _grants(rule: JSON, run: str) -> bool:
    names = rule.get("resourceNames") or ()
    # https://kubernetes.io/docs/reference/access-authn-authz/rbac/#referring-to-resources: "*" is every value.
    wanted = (("apiGroups", GROUP), ("resources", RESOURCE), ("verbs", VERB))
    return (not names or run in names) and all({"*", value} & set(rule.get(field) or ()) for field, value in wanted)


def _subject_text(subject: JSON) -> str:
    namespace = f"{subject['namespace']}/" if subject.get("namespace") else ""
    return f"{subject.get('kind', '')} {namespace}{subject.get('name', '')}"
