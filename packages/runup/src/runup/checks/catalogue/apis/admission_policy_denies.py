"""An admission policy denies requests that the update sends.

Applies when a ValidatingAdmissionPolicy is bound with the action Deny and denies a request of the update
(docs/reference/update-writes.md). Its expressions are evaluated for Deployments, DaemonSets and StatefulSets in the
platform's namespaces as they are now, for the pods of their templates, for the platform's Namespaces and
CustomResourceDefinitions, for the objects of the target's manifests where these are given, for each node that is
cordoned, and for each pod that is evicted or deleted. For other requests, expressions are evaluated that do not depend
on the object. Pods of users were admitted by the policies when they were created; expressions that read these pods are
not evaluated for the pods that replace them. The result is Unknown if a policy matches requests for which it cannot be
evaluated: expressions that read parameters, an authorizer, or fields of objects that this check does not read; and if
the answer depends on which of several accounts sends the request. It is Unknown as well for a bound
MutatingAdmissionPolicy that changes a request of the update, since its mutations are not evaluated. Policies that
OpenShift's own components apply are reported only if they deny a request.

Why it matters: the API server denies the request each time. The operator cannot apply the release, nodes cannot be
drained, or pods cannot be created again, and the update stops.

Remedy: exclude the platform's namespaces and accounts in the policy's matchConstraints or matchConditions, or delete
its bindings for the time of the update: `oc get validatingadmissionpolicybindings` lists them.

Accepting it means that the requests are denied during the update.

Source of the rule: the Kubernetes documentation of ValidatingAdmissionPolicy; apiserver,
`pkg/admission/plugin/policy/validating` and `policy/matching`; clusterlint#180.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kubekit.api.core_v1 import Namespace
from kubekit.api.extension_v1 import AdmissionPolicyBindingSpec
from kubekit.api.meta_v1 import Object
from runup.checks.catalogue.apis.shared.policies import MUTATING, MUTATING_BY_DEFAULT, READS, VALIDATING
from runup.checks.catalogue.shared import kubernetes_versions as kubernetes
from runup.checks.catalogue.shared.platform_workloads import WORKLOADS
from runup.checks.catalogue.shared.pods import PODS
from runup.checks.decide.reads import as_dict
from runup.checks.writing import (
    DEFINITIONS,
    Context,
    Finding,
    Findings,
    Resource,
    Snapshot,
    Unreadable,
    declared,
    names,
    risk,
    unknown,
)

NAME = "AdmissionPolicyDeniesUpdate"
EXAMPLE = """
apiVersion: v1
kind: Node
metadata: {name: worker-0}
status: {nodeInfo: {kubeletVersion: v1.36.4}}
---
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
# Policies that components of OpenShift apply, without an annotation of the release: machine-config-operator,
# `manifests`, and cluster-network-operator, `bindata/network/ovn-kubernetes/common`.
_OF_COMPONENTS = frozenset(
    {
        "custom-machine-config-pool-selector",
        "default-network-annotation",
        "egressip-create-validation",
        "egressip-update-validation",
        "machine-configuration-guards",
        "machineconfigpool-osimagestream-reference-validation",
        "managed-bootimages-cpms-platform-check",
        "managed-bootimages-platform-check",
        "mcn-guards",
        "networkpolicy-prevent-deletion",
        "networkpolicy-prevent-update",
        "user-defined-networks-namespace-label",
    }
)
_OF_RELEASE = "include.release.openshift.io/"
_Versions = tuple[Resource, ...]
# A policy that is in force, and the bindings that put it into force.
_InForce = tuple[Object, list[dict[str, Any]]]


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a risk for each bound policy that denies a request, and an Unknown one for each that may."""
    lacking: Unreadable | None = None
    validating = _in_force(snapshot, VALIDATING, lambda spec: "Deny" in spec.validation_actions)
    mutating: list[_InForce] = []
    try:
        mutating = _in_force(snapshot, MUTATING, lambda _: True)
    except Unreadable as error:
        # Before, a cluster need not have the kind.
        if (kubernetes.source_minor(snapshot, context) or 0) >= MUTATING_BY_DEFAULT:
            lacking = error
    if validating or mutating:
        yield from _findings(snapshot, context, validating, mutating)
    if lacking is not None:
        raise lacking


def _in_force(
    snapshot: Snapshot, kinds: tuple[_Versions, _Versions], is_effective: Callable[[AdmissionPolicyBindingSpec], bool]
) -> list[_InForce]:
    """Returns the policies of a kind that effective bindings refer to, by name. Raises Unreadable."""
    by_policy: dict[str, list[dict[str, Any]]] = {}
    for each in snapshot.list_first_served(kinds[1]):
        if is_effective(each.spec):
            by_policy.setdefault(each.spec.policy_name, []).append(as_dict(each).get("spec", {}))
    policies = sorted(snapshot.list_first_served(kinds[0]), key=lambda each: str(each.metadata.name))
    return [(each, by_policy[each.metadata.name]) for each in policies if each.metadata.name in by_policy]


def _findings(
    snapshot: Snapshot, context: Context, validating: Iterable[_InForce], mutating: Iterable[_InForce]
) -> Iterator[Finding]:
    # Few clusters have such policies, and CEL takes longer to import than all other checks.
    from runup.checks.catalogue.apis.shared.denied_requests import denied_requests
    from runup.checks.catalogue.apis.shared.update_requests import Requests

    lacking: list[Unreadable | None] = []
    requests = Requests(snapshot, context)
    for policy, bindings in validating:
        name = policy.metadata.name
        outcome = denied_requests(as_dict(policy), bindings, requests)
        lacking.append(outcome.lacking)
        if outcome.denied:
            texts = list(dict.fromkeys(outcome.denied.values()))
            yield risk(
                NAME,
                f"ValidatingAdmissionPolicy {name} denies requests of the update: {names(list(outcome.denied))}. "
                f"It says: {names(texts, 2)}.",
                [policy],
                severity="critical",
                fix="Exclude the platform in the policy's matchConstraints, or delete its bindings for the update.",
                kind=VALIDATING[0][0],
            )
        elif outcome.open and not _is_of_platform(policy):
            why = f"ValidatingAdmissionPolicy {name} cannot be evaluated for requests of the update: "
            yield _open_finding(f"{why}{names(list(outcome.open))}", policy, VALIDATING[0][0])
    for policy, bindings in mutating:
        outcome = denied_requests(as_dict(policy), bindings, requests, mutates=True)
        lacking.append(outcome.lacking)
        if outcome.open and not _is_of_platform(policy):
            why = f"MutatingAdmissionPolicy {policy.metadata.name} changes requests of the update, and its mutations "
            why += f"are not evaluated: {names(list(outcome.open))}"
            yield _open_finding(why, policy, MUTATING[0][0])
    if error := next(filter(None, lacking), None):
        raise error


def _is_of_platform(policy: Object) -> bool:
    """Returns whether the release or a component of OpenShift applies the policy."""
    metadata = policy.metadata
    return metadata.name in _OF_COMPONENTS or any(key.startswith(_OF_RELEASE) for key in metadata.annotations)


def _open_finding(why: str, policy: Object, kind: Resource) -> Finding:
    fix = "Compare the policy with the requests in docs/reference/update-writes.md, or exclude the platform from it."
    return unknown(NAME, why, [policy], fix=fix, kind=kind)


CHECK = declared(
    run,
    NAME,
    "kube-apiserver",
    reads=(*READS, *WORKLOADS, Namespace, PODS, DEFINITIONS, *kubernetes.READS),
    rank=221,
    severity="critical",
    clusters="both",
)
