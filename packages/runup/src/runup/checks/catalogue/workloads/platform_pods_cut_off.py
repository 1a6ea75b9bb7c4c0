"""Network policies cut off a webhook, an aggregated API, or an operator of the platform.

Applies when network policies select the ready pods behind a webhook that an update calls (failurePolicy Fail), or
behind an aggregated API, and no rule of these policies admits the API servers, which are on the network of their nodes:
a rule admits them if it has no peers, an address block, or a namespaceSelector that matches the namespace
openshift-host-network. It also applies when policies select the pods of a Deployment of the platform whose name ends in
`operator`, and none of them has a rule for outgoing traffic. Ports of rules are not evaluated. Pods with the network of
their node are not affected.

Why it matters: the API server reaches neither the webhook nor the aggregated API, and refuses the requests of the
update; an operator that does not reach the API server applies nothing.

Remedy: add a policy that allows the traffic: from the API server to the port of the pods, or from the operator to the
API server. Or delete the policy that denies it: `oc get networkpolicies -n NAMESPACE` lists them.

Accepting it means that the update cannot reach these pods.

Source of the rule: the Kubernetes documentation of network policies (policies that select a pod add up; one without
rules denies); the OpenShift documentation of network policies (traffic of host-network pods).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from kubekit.api.extension_v1 import APIService, ServiceReference
from kubekit.api.meta_v1 import LabelSelector, Object, Wire
from runup.api.clusterversion_json import mapping, texts
from runup.checks.catalogue.apis.shared import webhook_backends, webhooks
from runup.checks.catalogue.shared.platform_workloads import WORKLOADS, platform_workloads, pod_of
from runup.checks.writing import Context, Finding, Findings, Slim, Snapshot, declared, names, risk, yield_from_all

NAME = "PlatformPodsCutOff"
EXAMPLE = """
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: deny-all, namespace: openshift-dns-operator}
spec: {podSelector: {}, policyTypes: [Ingress, Egress]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: dns-operator, namespace: openshift-dns-operator}
spec: {template: {spec: {containers: [{name: dns-operator}]}}}
"""
_INGRESS, _EGRESS = "Ingress", "Egress"
# The labels of the namespace that represents the network of nodes.
_HOST_NETWORK = {
    "kubernetes.io/metadata.name": "openshift-host-network",
    "network.openshift.io/policy-group": "ingress",
    "policy-group.network.openshift.io/host-network": "",
    "policy-group.network.openshift.io/ingress": "",
}


class Peer(Wire, frozen=True):
    """Senders of traffic: an address block, or pods; without a namespaceSelector pods of the same namespace."""

    ip_block: dict[str, Any] | None = None
    namespace_selector: LabelSelector | None = None

    @property
    def is_host(self) -> bool:
        """Reports whether the API servers may be among the senders."""
        selector = self.namespace_selector
        return self.ip_block is not None or (selector is not None and selector.matches(_HOST_NETWORK))


class IngressRule(Wire, frozen=True):
    """Traffic that pods receive; without peers from everywhere."""

    peers: tuple[Peer, ...] = msgspec.field(default=(), name="from")


class NetworkPolicySpec(Wire, frozen=True, kw_only=True):
    """`spec` of a NetworkPolicy."""

    pod_selector: LabelSelector = LabelSelector()
    policy_types: tuple[str, ...] = ()
    ingress: tuple[IngressRule, ...] = ()
    egress: tuple[dict[str, Any], ...] = ()


class NetworkPolicy(Object, frozen=True, kw_only=True):
    """The traffic that pods of a namespace may receive and send."""

    spec: NetworkPolicySpec = NetworkPolicySpec()


POLICIES = Slim(
    group="networking.k8s.io",
    version="v1",
    kind="NetworkPolicy",
    plural="networkpolicies",
    namespaced=True,
    type=NetworkPolicy,
)


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields a risk for each webhook, aggregated API and operator that network policies cut off."""
    policies: dict[str, list[NetworkPolicy]] = {}
    for policy in snapshot.listed(POLICIES):
        policies.setdefault(policy.metadata.namespace, []).append(policy)
    if policies:
        yield from yield_from_all(
            lambda: _backends_cut_off(snapshot, policies), lambda: _operators_cut_off(snapshot, policies)
        )


def _backends_cut_off(snapshot: Snapshot, policies: Mapping[str, Sequence[NetworkPolicy]]) -> Iterator[Finding]:
    callers: dict[tuple[str, str], list[str]] = {}
    for what, reference in _services(snapshot):
        callers.setdefault((reference.namespace, reference.name), []).append(what)
    for (namespace, name), whats in callers.items():
        if namespace not in policies:
            continue
        reference = ServiceReference(namespace=namespace, name=name)
        # Policies do not apply to pods with the network of their node.
        pods = [
            pod
            for pod in webhook_backends.ready_backends(snapshot, reference)
            if "host namespaces" not in str(pod.demands.violations)
        ]
        denying = [_denying(policies[namespace], pod.metadata.labels, _INGRESS) for pod in pods]
        if denying and all(denying):
            yield _finding(f"the Service of {names(whats)} receives no traffic of API servers", name, denying[0])


def _services(snapshot: Snapshot) -> Iterator[tuple[str, ServiceReference]]:
    """Yields the Services that the API server calls during an update, with what they are for. Raises Unreadable."""

    def of_webhooks() -> Iterator[tuple[str, ServiceReference]]:
        for configuration, webhook in webhooks.webhooks(snapshot):
            service = webhook.client_config.service
            if service is not None and webhook.failure_policy == "Fail" and webhooks.writes_of(webhook):
                kind = type(configuration).__name__
                yield f"webhook {webhook.name} of {kind} {configuration.metadata.name}", service

    def of_apis() -> Iterator[tuple[str, ServiceReference]]:
        for each in snapshot.all(APIService):
            if each.spec.service is not None:
                yield f"aggregated API {each.metadata.name}", each.spec.service

    yield from yield_from_all(of_webhooks, of_apis)


def _operators_cut_off(snapshot: Snapshot, policies: Mapping[str, Sequence[NetworkPolicy]]) -> Iterator[Finding]:
    for workload in platform_workloads(snapshot, WORKLOADS[0]):
        namespace, name = workload["metadata"]["namespace"], str(workload["metadata"].get("name"))
        pod = pod_of(workload)
        if name.endswith("operator") and namespace in policies and not mapping(pod, "spec").get("hostNetwork"):
            denying = _denying(policies[namespace], texts(mapping(pod, "metadata"), "labels"), _EGRESS)
            if denying:
                yield _finding(f"operator {namespace}/{name} sends no traffic", name, denying)


def _denying(policies: Iterable[NetworkPolicy], labels: Mapping[str, str], direction: str) -> list[NetworkPolicy]:
    """Returns the policies that deny a pod traffic of API servers, or all that it sends; none if one allows it."""
    selecting = [
        policy
        for policy in policies
        if policy.spec.pod_selector.matches(dict(labels)) and direction in _directions(policy.spec)
    ]
    if direction == _EGRESS:
        return [] if any(policy.spec.egress for policy in selecting) else selecting
    rules = [rule for policy in selecting for rule in policy.spec.ingress]
    return [] if any(not rule.peers or any(peer.is_host for peer in rule.peers) for rule in rules) else selecting


def _directions(spec: NetworkPolicySpec) -> tuple[str, ...]:
    """Returns the directions of a policy; without any it is for incoming traffic, and for outgoing if it has rules."""
    return spec.policy_types or ((_INGRESS, _EGRESS) if spec.egress else (_INGRESS,))


def _finding(what: str, name: str, policies: Sequence[NetworkPolicy]) -> Finding:
    namespace = policies[0].metadata.namespace
    listing = names([policy.metadata.name for policy in policies])
    return risk(
        f"{NAME}-{namespace}-{name}",
        f"{what[0].upper()}{what[1:]}: network policies of {namespace} deny it ({listing}).",
        policies,
        severity="critical",
        fix=f"Add a policy that allows the traffic, or delete those: `oc get networkpolicies -n {namespace}`.",
        kind=POLICIES,
    )


CHECK = declared(
    run,
    NAME,
    "cluster-network-operator",
    reads=(POLICIES, *webhooks.READS, *webhook_backends.READS, APIService, WORKLOADS[0]),
    rank=624,
    severity="critical",
    clusters="OpenShift",
)
