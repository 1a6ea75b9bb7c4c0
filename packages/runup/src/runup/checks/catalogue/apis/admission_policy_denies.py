"""An admission policy denies requests that the update sends.

Applies when a ValidatingAdmissionPolicy is bound with the action Deny and denies a request of the update
(docs/reference/update-writes.md). Its expressions are evaluated for Deployments and DaemonSets in the platform's
namespaces as they are now, for the pods of their templates, for the platform's Namespaces, for nodes that are cordoned,
and for the eviction of a pod in each namespace. For other requests, expressions are evaluated that do not depend on the
object. If a policy matches requests for which it cannot be evaluated, the result is Unknown: expressions that read
parameters, an authorizer, or objects that this check does not read. MutatingAdmissionPolicies are not evaluated.

Why it matters: the API server denies the request each time. The operator cannot apply the release, nodes cannot be
drained, or pods cannot be created again, and the update stops.

What to do: exclude the platform's namespaces and accounts in the policy's matchConstraints or matchConditions, or
delete its bindings for the time of the update: `oc get validatingadmissionpolicybindings` lists them.

Accepting it means that the requests are denied during the update.

Source of the rule: the Kubernetes documentation of ValidatingAdmissionPolicy; apiserver,
`pkg/admission/plugin/policy/validating` and `policy/matching`; clusterlint#180.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubekit.api.core_v1 import Namespace, Node
from kubekit.api.extension_v1 import ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding
from kubekit.api.meta_v1 import Object
from runup.api.clusterversion_json import mapping
from runup.checks.catalogue.shared.pods import PODS
from runup.checks.decide.reads import as_dict, shape
from runup.checks.writing import (
    DEFINITIONS,
    Context,
    Finding,
    Findings,
    Resource,
    Slim,
    Snapshot,
    declared,
    names,
    resource_of,
    risk,
    unknown,
)
from runup.rules.platform_namespaces import is_system

NAME = "AdmissionPolicyDeniesUpdate"
EXAMPLE = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: freeze}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [daemonsets, deployments]}
  validations: [{expression: "false", message: change freeze until Monday}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: freeze}
spec: {policyName: freeze, validationActions: [Deny]}
"""
JSON = dict[str, Any]


def _whole(resource: Resource) -> Slim:
    """Returns the read of a kind that keeps `spec`, of workloads only in the platform's namespaces."""
    return Slim(
        group=resource.group,
        version=resource.version,
        kind=resource.kind,
        plural=resource.plural,
        namespaced=resource.namespaced,
        type=shape(("spec",)),
        keep=_without_users,
    )


def _without_users(obj: Any) -> Any:
    namespace = obj.metadata.namespace
    return obj if not namespace or is_system(namespace) else Object(metadata=obj.metadata)


POLICIES = _whole(resource_of(ValidatingAdmissionPolicy))
BINDINGS = _whole(resource_of(ValidatingAdmissionPolicyBinding))
WORKLOADS = tuple(
    _whole(Resource(group="apps", version="v1", kind=kind, plural=plural, namespaced=True))
    for kind, plural in (("Deployment", "deployments"), ("DaemonSet", "daemonsets"))
)


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields a risk for each bound policy that denies a request, and an Unknown one for each that may."""
    policies = {each.metadata.name: each for each in snapshot.listed_or_none(POLICIES)}
    by_policy: dict[str, list[JSON]] = {}
    for each in snapshot.listed_or_none(BINDINGS):
        spec = mapping(as_dict(each), "spec")
        actions, policy_name = spec.get("validationActions"), str(spec.get("policyName"))
        if isinstance(actions, list) and "Deny" in actions and policy_name in policies:
            by_policy.setdefault(policy_name, []).append(spec)
    if not by_policy:
        return
    # Few clusters have such policies, and CEL takes longer to import than all other checks.
    from runup.checks.catalogue.apis.shared.denied_requests import Requests, denied_requests

    requests = Requests(snapshot, WORKLOADS)
    for name, bindings in sorted(by_policy.items()):
        policy = as_dict(policies[name])
        try:
            outcome = denied_requests(policy, bindings, requests)
        except (AttributeError, KeyError, TypeError):
            # Policies are read as JSON, since they have many fields: one of another type shows where it is used.
            why = f"ValidatingAdmissionPolicy {name}, or a binding of it, has a field of a wrong type"
            yield unknown(NAME, why, [policies[name]], fix="Correct the policy and its bindings.", kind=POLICIES)
            continue
        if outcome.denied:
            texts = list(dict.fromkeys(outcome.denied.values()))
            yield risk(
                NAME,
                f"ValidatingAdmissionPolicy {name} denies requests of the update: {names(list(outcome.denied))}. "
                f"It says: {names(texts, 2)}.",
                [policies[name]],
                severity="critical",
                fix="Exclude the platform in the policy's matchConstraints, or delete its bindings for the update.",
                kind=POLICIES,
            )
        elif outcome.open:
            yield _open_finding(name, outcome.open, policies[name])


def _open_finding(name: str, requests: Sequence[str], policy: Object) -> Finding:
    why = f"ValidatingAdmissionPolicy {name} cannot be evaluated for requests of the update: {names(list(requests))}"
    fix = "Compare the policy with the requests in docs/reference/update-writes.md, or exclude the platform from it."
    return unknown(NAME, why, [policy], fix=fix, kind=POLICIES)


CHECK = declared(
    run,
    NAME,
    "kube-apiserver",
    reads=(POLICIES, BINDINGS, *WORKLOADS, Namespace, Node, PODS, DEFINITIONS),
    rank=221,
    severity="critical",
)
