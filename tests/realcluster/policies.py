"""A stand-in for a network policy engine: iptables' rules on each node, from the NetworkPolicies that there are.

It is our own reading of https://kubernetes.io/docs/concepts/services-networking/network-policies/, for what ours use:
selectors of pods and namespaces, ports and ranges of ports; addresses are evaluated after kube-proxy has translated a
Service's. A node's own connections to its pods are never refused, as the API says about kubelets.
"""

from __future__ import annotations

import shlex
import threading
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Self

from tests.realcluster.cluster import RealCluster
from tests.realcluster.kube import Kube

from kubekit.api import codec
from kubekit.api.meta_v1 import LabelSelector
from kubekit.kube.api_errors import KubeError

JSON = dict[str, Any]
_CHAIN = "RUNUP-POLICIES"
_LOOK_S = 0.5
_DIRECTIONS = (("Ingress", "ingress", "from", "-d", "-s"), ("Egress", "egress", "to", "-s", "-d"))


class PolicyEngine:
    """`with PolicyEngine(cluster)`: policies count, those that come later, too; afterwards none does."""

    def __init__(self, cluster: RealCluster) -> None:
        self._cluster = cluster
        self._kube = Kube(cluster.kubeconfig)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._applied: dict[str, list[str]] = {}
        self.refused_pods: frozenset[str] = frozenset()
        """The addresses of the pods that a policy selects, once the rules are in force."""

    def __enter__(self) -> Self:
        for node in self._cluster.nodes.values():
            node.run("iptables", "-N", _CHAIN)
            node.run("iptables", "-I", "FORWARD", "-j", _CHAIN)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(60)
        for node in self._cluster.nodes.values():
            node.run("iptables", "-D", "FORWARD", "-j", _CHAIN)
            node.run("iptables", "-F", _CHAIN)
            node.run("iptables", "-X", _CHAIN)
        self._kube.close()

    def _follow(self) -> None:
        while not self._stop.wait(_LOOK_S):
            try:
                policies = self._kube.listed("networking.k8s.io/v1", "NetworkPolicy")
                pods, namespaces = self._kube.listed("v1", "Pod"), self._kube.listed("v1", "Namespace")
            except KubeError:
                continue
            for name, node in self._cluster.nodes.items():
                wanted = list(rules(policies, pods, namespaces, name))
                if wanted != self._applied.get(name):
                    text = "\n".join(["*filter", f":{_CHAIN} - [0:0]", *wanted, "COMMIT", ""])
                    node.run("sh", "-c", f"printf %s {shlex.quote(text)} | iptables-restore --noflush")
                    self._applied[name] = wanted
            self.refused_pods = frozenset(_address(pod) for pod in pods if _selecting(policies, pod))


def rules(policies: Sequence[JSON], pods: Sequence[JSON], namespaces: Sequence[JSON], node: str) -> Iterator[str]:
    """Yields the lines of iptables-restore for the pods of a node that a policy selects."""
    yield f"-A {_CHAIN} -m conntrack --ctstate ESTABLISHED,RELATED -j RETURN"
    labels = {each["metadata"]["name"]: each["metadata"].get("labels", {}) for each in namespaces}
    for pod in pods:
        if pod["spec"].get("nodeName") != node or pod["spec"].get("hostNetwork") or not _address(pod):
            continue
        for kind, field, peers, own, other in _DIRECTIONS:
            selecting = [each for each in _selecting(policies, pod) if kind in each["spec"]["policyTypes"]]
            if not selecting:
                continue
            chain = f"RP-{kind[0]}-{_address(pod)}"
            yield f":{chain} - [0:0]"
            yield f"-A {_CHAIN} {own} {_address(pod)} -j {chain}"
            for policy in selecting:
                for rule in policy["spec"].get(field) or ():
                    for where in _peers(rule.get(peers), policy, pods, labels):
                        for port in _ports(rule.get("ports")):
                            address = f"{other} {where} " if where else ""
                            yield f"-A {chain} {address}{port}-j RETURN"
            yield f"-A {chain} -j REJECT"


def _selecting(policies: Sequence[JSON], pod: JSON) -> list[JSON]:
    return [
        each
        for each in policies
        if each["metadata"]["namespace"] == pod["metadata"]["namespace"]
        and _selects(each["spec"].get("podSelector") or {}, pod["metadata"].get("labels", {}))
    ]


def _selects(selector: JSON, labels: JSON) -> bool:
    return codec.convert(LabelSelector, selector).matches(labels)


def _peers(peers: Sequence[JSON] | None, policy: JSON, pods: Sequence[JSON], labels: JSON) -> Iterator[str]:
    """Yields the addresses that a rule is about; one empty text for all."""
    if not peers:
        yield ""
    for peer in peers or ():
        assert "ipBlock" not in peer, "none of our policies has one"
        for pod in pods:
            namespace = pod["metadata"]["namespace"]
            there = (
                _selects(peer["namespaceSelector"], labels.get(namespace, {}))
                if "namespaceSelector" in peer
                else namespace == policy["metadata"]["namespace"]
            )
            if there and _address(pod) and _selects(peer.get("podSelector") or {}, pod["metadata"].get("labels", {})):
                yield _address(pod)


def _ports(ports: Sequence[JSON] | None) -> Iterator[str]:
    if not ports:
        yield ""
    for each in ports or ():
        last = f":{each['endPort']}" if "endPort" in each else ""
        yield f"-p {each.get('protocol', 'TCP').lower()} --dport {each['port']}{last} "


def _address(pod: JSON) -> str:
    return str(pod.get("status", {}).get("podIP") or "")
