"""Compares evictions and placements with the real eviction API and kube-scheduler, on one seeded cluster.

Some nodes are cordoned, and their pods evicted one after another: is the answer the same? Each pod is then recreated:
are the nodes that could take it the same, or, where there are none, the reasons and the pods that could make way? Which
of several good nodes is chosen is not compared: the real scheduler is given the one that was chosen here.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from tests.rehearse.reference.real_scheduler import Key, SchedulerAnswers
from tests.rehearse.reference.seeded_cluster import SeededCluster

from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.api_errors import ApiError
from kubekit.kube.client_sync import SyncClient
from kubekit.rules.eviction_rules import refusal_of
from runup.rehearse.control.drain_source import read_cluster_objects
from runup.rehearse.decide.drain_inputs import drained_cluster
from runup.rehearse.decide.drains import placement_filters as preemption
from runup.rehearse.decide.drains.cluster_state import RUNNING, PodState
from runup.rehearse.decide.drains.drained_cluster import DrainSettings
from runup.rehearse.decide.drains.starting_state import StartingState, starting_state

JSON = dict[str, Any]
GUARD_S = 90.0
PODS = Resource(group="", version="v1", kind="Pod", plural="pods", namespaced=True)
RESOURCES = {
    "Namespace": Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False),
    "Node": Resource(group="", version="v1", kind="Node", plural="nodes", namespaced=False),
    "CSINode": Resource(group="storage.k8s.io", version="v1", kind="CSINode", plural="csinodes", namespaced=False),
    "StorageClass": Resource(
        group="storage.k8s.io", version="v1", kind="StorageClass", plural="storageclasses", namespaced=False
    ),
    "PriorityClass": Resource(
        group="scheduling.k8s.io", version="v1", kind="PriorityClass", plural="priorityclasses", namespaced=False
    ),
    "RuntimeClass": Resource(
        group="node.k8s.io", version="v1", kind="RuntimeClass", plural="runtimeclasses", namespaced=False
    ),
    "ReplicaSet": Resource(group="apps", version="v1", kind="ReplicaSet", plural="replicasets", namespaced=True),
    "PersistentVolume": Resource(
        group="", version="v1", kind="PersistentVolume", plural="persistentvolumes", namespaced=False
    ),
    "PersistentVolumeClaim": Resource(
        group="", version="v1", kind="PersistentVolumeClaim", plural="persistentvolumeclaims", namespaced=True
    ),
    "PodDisruptionBudget": Resource(
        group="policy", version="v1", kind="PodDisruptionBudget", plural="poddisruptionbudgets", namespaced=True
    ),
    "Pod": PODS,
}
_CORDON = "node.kubernetes.io/unschedulable"


@dataclass
class Agreement:
    """How often both sides said the same, by what was asked; and each case where they did not."""

    asked: Counter[str] = field(default_factory=Counter)
    same: Counter[str] = field(default_factory=Counter)
    different: list[str] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)

    def note(self, what: str, ours: object, theirs: object, about: str) -> None:
        """Counts one comparison."""
        self.asked[what] += 1
        if ours == theirs:
            self.same[what] += 1
        else:
            self.different.append(f"{about}: {what}: here {ours!r}, there {theirs!r}")


class Beside:
    """One seeded cluster, on the real server and in a simulation."""

    def __init__(
        self, client: SyncClient, shown: SchedulerAnswers, seeded: SeededCluster, agreement: Agreement
    ) -> None:
        """Keeps what it needs; `compare` does the rest."""
        self._client, self._told, self._seeded, self._agreement = client, shown, seeded, agreement
        self._templates: dict[Key, JSON] = {}
        self._uids: dict[str, Key] = {}
        self._number = 0

    def compare(self, nodes: int = 6) -> None:
        """Drains some nodes and compares every answer; the cluster is taken away at the end."""
        try:
            self._make()
            state = self._state()
            for name in self._seeded.nodes[:nodes]:
                self._cordon(state, name)
                for pod in sorted(state.nodes[name].pods.values(), key=lambda each: each.key):
                    self._evict(state, pod)
        finally:
            self._clear()

    def _make(self) -> None:
        uids: dict[tuple[str, str], str] = {}
        for kind, obj in self._seeded.objects:
            made = self._client.send(calls.create(RESOURCES[kind], obj))
            if kind == "ReplicaSet":
                uids[made["metadata"]["namespace"], made["metadata"]["name"]] = made["metadata"]["uid"]
            if kind == "Node":
                self._status(RESOURCES[kind], obj, obj["status"])
        for pod in self._seeded.pods:
            for owner in pod["metadata"].get("ownerReferences", ()):
                owner |= {"apiVersion": "apps/v1", "controller": True}
                owner["uid"] = uids[pod["metadata"]["namespace"], owner["name"]]
            key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
            self._templates[key] = pod
            made = self._client.send(calls.create(PODS, pod))
            self._uids[made["metadata"]["uid"]] = key
            self._run(key, ready=self._seeded.ready[key])

    def _status(self, resource: Resource, obj: JSON, status: JSON) -> None:
        metadata = obj["metadata"]
        self._client.send(
            calls.merge_patch(
                resource, metadata["name"], {"status": status}, metadata.get("namespace", ""), subresource="status"
            )
        )

    def _run(self, key: Key, *, ready: bool) -> None:
        condition = {"type": "Ready", "status": "True" if ready else "False"}
        status = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z", "conditions": [condition]}
        self._status(PODS, {"metadata": {"namespace": key[0], "name": key[1]}}, status)

    def _state(self) -> StartingState:
        """Returns the state of a simulation that begins with what the server has."""
        source = read_cluster_objects(self._client)
        assert not source.missing, source.missing
        cluster = drained_cluster(source.objects, source.missing, openshift=False)
        return starting_state(cluster, DrainSettings())

    def _cordon(self, state: StartingState, name: str) -> None:
        # The node controller, which does not run here, puts the taint there.
        node = self._client.send(calls.get_raw(RESOURCES["Node"], name))
        taints = [*(node["spec"].get("taints") or ()), {"key": _CORDON, "effect": "NoSchedule"}]
        spec = {"spec": {"unschedulable": True, "taints": taints}}
        self._client.send(calls.merge_patch(RESOURCES["Node"], name, spec))
        state.nodes[name].cordoned = True
        state.filters.cordons_changed()

    def _evict(self, state: StartingState, pod: PodState) -> None:
        budgets = pod.shape.budgets
        goes = not budgets or refusal_of(budgets[0].current_counts(), ready=pod.ready) is None
        ours = 500 if len(budgets) > 1 else 201 if goes else 429
        self._await_budgets(state)
        self._agreement.note("eviction", ours, theirs := self._eviction(pod), self._about(pod.key))
        self._agreement.kinds[f"eviction answered {theirs}"] += 1
        if theirs != 201 or ours != 201:
            return
        node = pod.node
        assert node is not None
        state.filters.remove(pod, node)
        pod.phase = "Gone"
        if pod.ready:
            for budget in budgets:
                budget.healthy -= 1
        state.pods.remove(pod)
        self._place_again(state, pod)

    def _eviction(self, pod: PodState) -> int:
        namespace, name = pod.shape.namespace, pod.name
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace}}
        try:
            self._client.send(calls.create(PODS, body, name=name, subresource="eviction"))
        except ApiError as error:
            return error.status.code
        return 201

    def _await_budgets(self, state: StartingState) -> None:
        """Waits until the disruption controller has counted what is there."""
        ready = Counter(budget for pod in state.pods if pod.ready for budget in pod.shape.budgets)
        # Of several budgets over a pod the controller looks at one alone, and no such pod is ever evicted.
        alone = {budget for pod in state.pods if len(pod.shape.budgets) == 1 for budget in pod.shape.budgets}
        wanted = {(each.namespace, each.name): ready[each] for each in state.budgets if each in alone}
        deadline = time.monotonic() + GUARD_S
        while True:
            found = self._client.listing_raw(RESOURCES["PodDisruptionBudget"]).items
            late = [
                each["metadata"]["name"]
                for each in found
                if (each["metadata"]["namespace"], each["metadata"]["name"]) in wanted
                and (
                    (status := each.get("status") or {}).get("observedGeneration") != each["metadata"]["generation"]
                    or status.get("currentHealthy", 0)
                    != wanted[each["metadata"]["namespace"], each["metadata"]["name"]]
                    or status.get("disruptedPods")
                )
            ]
            if not late:
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"budgets are not counted: {late}")
            time.sleep(0.02)

    def _place_again(self, state: StartingState, old: PodState) -> None:
        shape, filters = old.shape, state.filters
        self._number += 1
        key = (shape.namespace, f"{old.name}-n{self._number}")
        template = self._templates[old.shape.namespace, old.name]
        self._templates[key] = template
        feasible = frozenset(node.name for node in filters.feasible(shape))
        # Every pod that could make way is reported by its UID there.
        ours = {
            each.node.name: frozenset(f"{pod.shape.namespace}/{pod.name}" for pod in each.victims)
            for each in preemption.candidates(shape, filters, lambda _shape, _node: nullcontext())
        }
        # A pod that waits for a volume which nobody makes holds its place in the scheduler even after it is gone.
        binds = self._gets_volumes(template)
        self._told.choose = lambda _key, nodes: min(nodes & feasible or nodes) if binds else None
        spec = {name: value for name, value in template["spec"].items() if name != "nodeName"}
        metadata = {**template["metadata"], "name": key[1]}
        made = self._client.send(calls.create(PODS, {"metadata": metadata, "spec": spec}))
        self._uids[made["metadata"]["uid"]] = key
        about = self._about(f"{key[0]}/{key[1]}")
        theirs, message = self._answer(key)
        self._agreement.note("feasible or not", bool(feasible), bool(theirs), about)
        self._agreement.note("feasible nodes", sorted(feasible), sorted(theirs), about)
        self._tell_kinds(spec)
        if not theirs:
            self._agreement.note("why not", _sorted(filters.explanation(shape)), _sorted(message), about)
            if "preemption" in message:
                named = {
                    node: frozenset("/".join(self._uids[uid]) for uid in uids)
                    for node, uids in self._told.victims.get(key, {}).items()
                }
                self._agreement.note("pods that could make way", ours, named, about)
        self._settle(state, old, key, placed=bool(theirs) and binds)

    def _settle(self, state: StartingState, old: PodState, key: Key, *, placed: bool) -> None:
        """Puts the pod where the scheduler has put it; one that has no place, or no volume yet, is taken away."""
        if not placed:
            self._client.send(calls.delete(PODS, key[1], key[0], grace_period_s=0))
            return
        self._await_binding(key)
        self._run(key, ready=True)
        node = self._client.send(calls.get_raw(PODS, key[1], key[0]))["spec"]["nodeName"]
        new = PodState(1_000_000 + self._number, key[1], old.shape, old.workload)
        new.phase, new.ready, new.node = RUNNING, True, state.nodes[node]
        state.pods.append(new)
        state.filters.add(new, state.nodes[node])
        for budget in new.shape.budgets:
            budget.healthy += 1

    def _gets_volumes(self, template: JSON) -> bool:
        """Returns whether all volumes of the pod are there: nobody makes one here."""
        names = {each["persistentVolumeClaim"]["claimName"] for each in template["spec"].get("volumes") or ()}
        claims = self._client.listing_raw(RESOURCES["PersistentVolumeClaim"]).items if names else []
        return all(claim["spec"].get("volumeName") for claim in claims if claim["metadata"]["name"] in names)

    def _await_binding(self, key: Key) -> None:
        deadline = time.monotonic() + GUARD_S
        while not self._client.send(calls.get_raw(PODS, key[1], key[0]))["spec"].get("nodeName"):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{key} is not bound")
            time.sleep(0.02)

    def _answer(self, key: Key) -> tuple[frozenset[str], str]:
        """Returns the nodes that the scheduler found for the pod, or its message if it found none."""
        deadline = time.monotonic() + GUARD_S
        while True:
            # Read first: of a pod that is given none of its nodes the scheduler says that it is unschedulable, too.
            status = self._client.send(calls.get_raw(PODS, key[1], key[0])).get("status") or {}
            with self._told.changed:
                if key in self._told.feasible:
                    return self._told.feasible[key], ""
            for condition in status.get("conditions") or ():
                if condition["type"] == "PodScheduled" and condition["status"] == "False":
                    message: str = condition.get("message") or ""
                    if condition.get("reason") in ("Unschedulable", "SchedulingGated"):
                        return frozenset(), message
            if time.monotonic() > deadline:
                raise TimeoutError(f"the scheduler says nothing of {key}")
            time.sleep(0.02)

    def _tell_kinds(self, spec: Mapping[str, Any]) -> None:
        affinity = spec.get("affinity") or {}
        for name in (
            *affinity,
            "topologySpreadConstraints",
            "tolerations",
            "nodeSelector",
            "initContainers",
            "volumes",
        ):
            if name in affinity or spec.get(name):
                self._agreement.kinds[name] += 1
        if any(container.get("ports") for container in spec["containers"]):
            self._agreement.kinds["hostPorts"] += 1

    def _about(self, pod: str) -> str:
        return f"{self._seeded.prefix} pod {pod}"

    def _clear(self) -> None:
        """Takes away what is this cluster's own."""
        for kind in ("Pod", "PodDisruptionBudget", "ReplicaSet", "PersistentVolumeClaim"):
            for obj in self._client.listing_raw(RESOURCES[kind]).items:
                metadata = obj["metadata"]
                self._client.send(
                    calls.merge_patch(RESOURCES[kind], metadata["name"], _NO_FINALIZERS, metadata["namespace"])
                )
                self._delete(kind, metadata["name"], metadata["namespace"])
        for kind in ("PersistentVolume", "CSINode", "Node"):
            for obj in self._client.listing_raw(RESOURCES[kind]).items:
                self._client.send(calls.merge_patch(RESOURCES[kind], obj["metadata"]["name"], _NO_FINALIZERS))
                self._delete(kind, obj["metadata"]["name"], "")

    def _delete(self, kind: str, name: str, namespace: str) -> None:
        self._client.send(calls.delete(RESOURCES[kind], name, namespace, grace_period_s=0))


_NO_FINALIZERS: JSON = {"metadata": {"finalizers": None}}


def _sorted(message: str) -> list[str]:
    """Returns the reasons of the scheduler's message, without what comes after them.

    From 1.34 it names no taints: there they are counted together.
    """
    text = (message.partition(": ")[2] or message).partition(". ")[0].rstrip(".")
    reasons: Counter[str] = Counter()
    for each in text.split(", "):
        number, _, reason = each.partition(" ")
        if not number.isdigit():
            number, reason = "0", each
        reasons[_TAINTS if reason.startswith("node(s) had untolerated taint") else reason] += int(number)
    return sorted(f"{number} {reason}" for reason, number in reasons.items())


_TAINTS = "node(s) had untolerated taints"
