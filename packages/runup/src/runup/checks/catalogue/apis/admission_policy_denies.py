"""An admission policy denies requests that the update sends.

Applies when a ValidatingAdmissionPolicy is bound with the action Deny and denies a request of the update
(docs/update-writes.md). Its expressions are evaluated for Deployments and DaemonSets in the platform's namespaces as
they are now, for the pods of their templates, for the platform's Namespaces, for nodes that are cordoned, and for the
eviction of a pod in each namespace. For other requests, expressions are evaluated that do not depend on the object. If
a policy matches requests for which it cannot be evaluated, the result is Unknown: expressions that read parameters, an
authorizer, or objects that this check does not read. MutatingAdmissionPolicies are not evaluated.

Why it matters: the API server denies the request each time. The operator cannot apply the release, nodes cannot be
drained, or pods cannot be created again, and the update stops.

What to do: exclude the platform's namespaces and accounts in the policy's matchConstraints or matchConditions, or
delete its bindings for the time of the update: `oc get validatingadmissionpolicybindings` lists them.

Accepting it means that the requests are denied during the update.

Source of the rule: the Kubernetes documentation of ValidatingAdmissionPolicy; apiserver,
`pkg/admission/plugin/policy/validating` and `policy/matching`; clusterlint#180.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kubekit.api.core_v1 import Namespace, Node
from kubekit.api.meta_v1 import Object
from kubekit.rules import policy_evaluation
from runup.api.clusterversion_json import mapping
from runup.checks.catalogue.apis.shared.update_requests import BINDINGS, POLICIES, WORKLOADS, Requests
from runup.checks.catalogue.shared.pods import PODS
from runup.checks.decide.reads import as_dict
from runup.checks.writing import (
    DEFINITIONS,
    Context,
    Finding,
    Findings,
    Snapshot,
    Unreadable,
    declared,
    names,
    risk,
    unknown,
)
from runup.rules.update_writes import WRITES

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
_OBJECT = re.compile(r"\b(object|oldObject|params|authorizer)\b")


class _Evaluated(NamedTuple):
    """The requests that a policy denies, with its message, and those for which it could not be evaluated."""

    denied: dict[str, str]
    open: list[str]

    def leave_open(self, request: policy_evaluation.Write) -> None:
        """Adds a request for which the policy could not be evaluated."""
        if _words(request) not in self.open:
            self.open.append(_words(request))


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
    requests = Requests(snapshot)
    for name, bindings in sorted(by_policy.items()):
        policy = as_dict(policies[name])
        try:
            outcome = _evaluate(policy, bindings, requests)
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
    fix = "Compare the policy with the requests in docs/update-writes.md, or exclude the platform from it."
    return unknown(NAME, why, [policy], fix=fix, kind=POLICIES)


def _evaluate(policy: JSON, bindings: Sequence[JSON], requests: Requests) -> _Evaluated:
    """Returns which requests of the update the policy denies through one of its bindings."""
    spec = policy.get("spec") or {}
    reads_objects = any(map(_OBJECT.search, _expressions(spec)))
    result = _Evaluated({}, [])
    # Without selectors: for most resources this decides, without the labels of each namespace.
    criteria = spec.get("matchConstraints") or {}
    rules = {key: value for key, value in criteria.items() if not key.endswith("Selector")}
    rows = {(write.group, write.resource): write for write in WRITES}
    try:
        for request in requests.known():
            rows.pop((request.kind.group, _resource(request)), None)
            if _is_matched(spec, bindings, request, requests):
                _evaluate_request(policy, request, requests, result)
        for row in rows.values():
            for request in requests.of_resource(row):
                if not policy_evaluation.matches_criteria(rules, request, None):
                    continue
                if not _is_matched(spec, bindings, request, requests):
                    continue
                if reads_objects:
                    result.leave_open(request)
                else:
                    _evaluate_request(policy, request, requests, result)
                break
    except Unreadable as error:
        result.open.append(str(error))
    return result


def _is_matched(spec: JSON, bindings: Sequence[JSON], request: policy_evaluation.Write, requests: Requests) -> bool:
    """Returns whether the policy's criteria and those of one of its bindings select a request."""
    labels = requests.labels_of(request.namespace)
    return policy_evaluation.matches_criteria(spec.get("matchConstraints") or {}, request, labels) and any(
        policy_evaluation.matches_criteria(binding.get("matchResources") or {}, request, labels) for binding in bindings
    )


def _evaluate_request(policy: JSON, request: policy_evaluation.Write, requests: Requests, result: _Evaluated) -> None:
    """Adds a request to those that the policy denies, or to those for which it cannot be evaluated."""
    spec = policy.get("spec") or {}
    if spec.get("paramKind") or any(map(policy_evaluation.AUTHORIZER.search, _expressions(spec))):
        result.leave_open(request)
        return
    namespace = requests.namespaces().get(request.namespace) if request.namespace else None
    outcome = policy_evaluation.Evaluation(policy, request, None, namespace).outcome()
    for decision in outcome.decisions:
        # Not all fields of the objects are known, so that an error may be ours.
        if decision.denied and "resulted in error" in decision.message:
            result.leave_open(request)
        elif decision.denied:
            result.denied.setdefault(_words(request), decision.message)


def _resource(request: policy_evaluation.Write) -> str:
    return f"{request.kind.plural}/{request.subresource}" if request.subresource else request.kind.plural


def _words(request: policy_evaluation.Write) -> str:
    return f"{request.operation} of {_resource(request)}"


def _expressions(spec: Mapping[str, Any]) -> list[str]:
    """Returns the expressions that decide: of validations, match conditions and variables."""
    lists = (spec.get("validations"), spec.get("matchConditions"), spec.get("variables"))
    return [str(each.get("expression", "")) for listed in lists for each in listed or ()]


CHECK = declared(
    run,
    NAME,
    "kube-apiserver",
    reads=(POLICIES, BINDINGS, *WORKLOADS, Namespace, Node, PODS, DEFINITIONS),
    rank=221,
    severity="critical",
)
