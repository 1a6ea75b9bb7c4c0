"""One answer per rule: checks, UpdateStatus, simulated drains and the sandbox's server agree on every fact."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.checks.catalogue.asking import findings
from tests.clocks import Leaping
from tests.factories import context, pod_json, snapshot
from tests.rehearse import drained
from tests.updatestatus.decide import builders as b

from kubekit.api import codec
from kubekit.api.core_v1 import Node, Pod
from kubekit.api.scheduling import SchedulingPod
from kubekit.api.scheme import Resource
from kubekit.api.workloads_v1 import PodDisruptionBudget
from kubekit.kube import calls
from kubekit.kube.api_errors import ApiError
from kubekit.kube.client import Client
from kubekit.kube.config import load
from kubekit.rules.node_rules import is_ready, takes_pods
from kubesandbox.apiserver.server import ApiServer
from runup.checks.catalogue import CHECKS as CHECKS_OF_ALL
from runup.checks.decide.cluster_kinds import ClusterKind
from runup.checks.decide.engine import run_check
from runup.rehearse.decide.drain_inputs import drained_cluster
from runup.rehearse.decide.drains.drained_cluster import DrainedCluster, DrainSettings, Pool
from runup.rehearse.decide.drains.simulation import simulate
from runup.rules.machine_config import allowed_unavailable, availability, nodes_by_pool, pools_of_node
from runup.updatestatus.decide.assess import assess
from runup.updatestatus.decide.nodes import Target, assess_pools
from runup.updatestatus.decide.read_status import report_of_status

JSON = dict[str, Any]
PODS = Resource(group="", version="v1", kind="Pod", plural="pods", namespaced=True)
BUDGETS = Resource(
    group="policy", version="v1", kind="PodDisruptionBudget", plural="poddisruptionbudgets", namespaced=True
)
CHECKS = ("NodeDrainRefused", "PodDisruptionBudgetBlocksDrain", "PodDisruptionBudgetPods")
WEB = {"matchLabels": {"app": "web"}}
DAEMON_SET = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "web", "uid": "1"}
REPLICA_SET = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1", "controller": True}
ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, kw_only=True)
class Eviction:
    """Pod `web-1` on a node that is drained, one more pod of its workload elsewhere, and its budgets' specs.

    `refused`: the API server refuses its eviction. `stays`: a drain does not evict the pod. `silent` are users that
    rightly do not report it: a simulation computes budgets again, and a check does not report what passes.
    """

    refused: bool
    budgets: tuple[JSON, ...] = ({"maxUnavailable": 0, "selector": WEB},)
    desired: int = 2
    ready: bool = True
    other_ready: bool = True
    phase: str = "Running"
    owner: JSON | None = None
    annotations: JSON | None = None
    generation: int = 1
    stays: bool = False
    silent: tuple[str, ...] = ()

    def pods(self) -> list[JSON]:
        """Returns the pod on node `a` and its sibling on node `b`."""
        return [
            self._pod("web-1", "a", self.phase, ready=self.ready),
            self._pod("web-2", "b", "Running", ready=self.other_ready),
        ]

    def _pod(self, name: str, node: str, phase: str, *, ready: bool) -> JSON:
        metadata = {"ownerReferences": [self.owner or REPLICA_SET], "annotations": self.annotations or {}}
        condition = {"type": "Ready", "status": "True" if ready else "False"}
        return pod_json(name, on=node, phase=phase, metadata=metadata, status={"conditions": [condition]})

    def pdbs(self) -> list[JSON]:
        """Returns the budgets, with the status that the disruption controller writes."""
        healthy = self.ready + self.other_ready
        status = {
            "observedGeneration": 1,
            "currentHealthy": healthy,
            "desiredHealthy": self.desired,
            "disruptionsAllowed": max(0, healthy - self.desired),
        }
        return [
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": f"web-{number}", "namespace": "shop", "generation": self.generation},
                "spec": spec,
                "status": {**status, "expectedPods": 2 if "selector" in spec else 0},
            }
            for number, spec in enumerate(self.budgets)
        ]


ONE = {"maxUnavailable": 1, "selector": WEB}
ALWAYS = {"maxUnavailable": 0, "selector": WEB, "unhealthyPodEvictionPolicy": "AlwaysAllow"}
EVICTIONS = {
    "no disruption is allowed": Eviction(refused=True),
    "one disruption is allowed": Eviction(refused=False, budgets=(ONE,), desired=1),
    "no budget": Eviction(refused=False, budgets=()),
    "a budget without a selector": Eviction(refused=False, budgets=({"maxUnavailable": 0},)),
    "an empty selector": Eviction(refused=True, budgets=({"maxUnavailable": 0, "selector": {}},)),
    "two budgets": Eviction(refused=True, budgets=(ONE, ONE), desired=1),
    "an outdated status": Eviction(refused=True, budgets=(ONE,), desired=1, generation=2, silent=("ahead",)),
    "not ready, the others suffice": Eviction(refused=False, budgets=(ONE,), desired=1, ready=False),
    "not ready, none is": Eviction(refused=True, budgets=(ONE,), desired=1, ready=False, other_ready=False),
    "not ready, and always allowed": Eviction(refused=False, budgets=(ALWAYS,), ready=False, other_ready=False),
    # The check of budgets asks about the other pod as well, whose eviction is refused.
    "pending": Eviction(refused=False, phase="Pending", ready=False, silent=("before",)),
    "ended": Eviction(refused=False, phase="Failed", ready=False, silent=("before",)),
    "of a DaemonSet": Eviction(refused=True, owner={**DAEMON_SET, "controller": True}, stays=True),
    "owned, but not controlled by a DaemonSet": Eviction(refused=True, owner=DAEMON_SET),
    "a static pod": Eviction(
        refused=True,
        owner={"apiVersion": "v1", "kind": "Node", "name": "a", "uid": "1", "controller": True},
        annotations={"kubernetes.io/config.mirror": "x"},
        stays=True,
    ),
}
CASES = pytest.mark.parametrize("case", EVICTIONS.values(), ids=EVICTIONS.keys())


@CASES
def test_checks_report_pods_that_cannot_be_evicted(case: Eviction) -> None:
    """Before the update."""
    if "before" in case.silent:
        return
    kubernetes = replace(context("1.34.2", "1.35.0", "1.35.0"), cluster=ClusterKind.KUBERNETES)
    nodes = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}} for name in "ab"]
    found = [found for name in CHECKS for found in findings(name, *nodes, *case.pods(), *case.pdbs(), to=kubernetes)]
    assert bool(found) == (case.refused and not case.stays)


@CASES
def test_update_status_reports_pods_that_cannot_be_evicted(case: Eviction) -> None:
    """During the update."""
    drain = {"desired": "new", "state": "Working", "desiredDrain": "drain-new", "lastAppliedDrain": "uncordon-old"}
    cluster = b.snapshot(
        nodes=(b.node("a", **drain),),
        machine_config_pools=(b.pool("worker"),),
        draining_pods=tuple(codec.convert(Pod, pod) for pod in case.pods()),
        pod_disruption_budgets=tuple(codec.convert(PodDisruptionBudget, pdb) for pdb in case.pdbs()),
    )
    found = [row.check for row in report_of_status(assess(cluster, None, b.NOW)).health]
    assert found == ["DrainBlocked"] * (case.refused and not case.stays)


@CASES
def test_simulated_drains_block_on_pods_that_cannot_be_evicted(case: Eviction) -> None:
    """Ahead of the update."""
    if "ahead" in case.silent:
        return
    cluster = DrainedCluster(
        nodes=(drained.node("a"), drained.node("b")),
        pods=tuple(codec.convert(SchedulingPod, pod) for pod in case.pods()),
        budgets=tuple(codec.convert(PodDisruptionBudget, pdb) for pdb in case.pdbs()),
        pools=(Pool(name="worker", nodes=("a",)),),
    )
    [node] = simulate(cluster, DrainSettings(), drained.NOW).nodes
    assert bool(node.blocked) == (case.refused and not case.stays)
    assert node.evicted == (not case.stays and not case.refused and case.phase not in ENDED)


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    """A client of a sandbox's server."""
    async with ApiServer(data=tmp_path / "data") as server, Client(load(str(server.kubeconfig))) as connected:
        yield connected


@CASES
async def test_the_sandbox_refuses_evictions_as_kubernetes_does(case: Eviction, client: Client) -> None:
    """In the sandbox."""
    shop = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    await client.send(
        calls.create(Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False), shop)
    )
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "shop"}}
    await client.send(
        calls.create(
            Resource(group="", version="v1", kind="ServiceAccount", plural="serviceaccounts", namespaced=True), account
        )
    )
    pod = case.pods()[0]
    await client.send(calls.create(PODS, pod))
    await client.send(calls.merge_patch(PODS, "web-1", {"status": pod["status"]}, "shop", subresource="status"))
    for pdb in case.pdbs():
        status = {**pdb["status"], "observedGeneration": 2 - case.generation}
        await client.send(calls.create(BUDGETS, pdb))
        patch = calls.merge_patch(BUDGETS, pdb["metadata"]["name"], {"status": status}, "shop", subresource="status")
        await client.send(patch)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web-1", "namespace": "shop"}}
    async with Client(client.config, clock=Leaping()) as patient:
        try:
            await patient.send(calls.create(PODS, eviction, name="web-1", subresource="eviction"))
            refused = False
        except ApiError:
            refused = True
    assert refused == case.refused


CORDONED = {"unschedulable": True}
NODES = {
    "ready": (drained.node("a"), True),
    "not ready": (drained.node("a", ready="False"), False),
    "unknown": (drained.node("a", ready="Unknown"), False),
    "cordoned": (drained.node("a", **CORDONED), True),
}


@pytest.mark.parametrize(("node", "ready"), NODES.values(), ids=NODES.keys())
def test_users_agree_which_nodes_are_ready_and_take_pods(node: Node, ready: bool) -> None:
    """Before the update, during it, and ahead of it."""
    names = {found.name for found in objects_findings("NodeHealth", node)}
    assert names == ({"NodeNotReady"} if not ready else {"NodeCordoned"} if node.spec.unschedulable else set())
    troubles, _ = availability(node, b.pool("worker"))
    reasons = {trouble.reason for trouble in troubles}
    assert ("Not ready" in reasons, "Node is marked unschedulable" in reasons) == (not ready, node.spec.unschedulable)
    cluster = DrainedCluster(nodes=(node, drained.node("b")), pools=(Pool(name="worker", nodes=("b", "a")),))
    timeline = simulate(cluster, DrainSettings(), drained.NOW).pools[0]
    # A node that is not ready costs the pool's only place, and is drained first.
    assert bool(timeline.held) == (not ready)
    assert (takes_pods(node), is_ready(node)) == (ready and not node.spec.unschedulable, ready)


POOLS = (b.pool("worker"), b.pool("infra"), b.pool("gpu"), b.pool("master"))
ROLE = "node-role.kubernetes.io/"
MEMBERS = {
    "worker": (("worker",), {}, "worker", "worker"),
    "a custom pool before worker": (("worker", "infra"), {}, "infra", "infra"),
    "master before a custom pool": (("master", "infra"), {}, "master", "master"),
    "in no pool": ((), {}, "", None),
    # oc shows a node of several custom pools under the first; the machine-config operator updates it in none.
    "in two custom pools": (("worker", "gpu", "infra"), {}, "", "infra"),
    "of Windows": (("worker",), {"kubernetes.io/os": "windows"}, "", "worker"),
}


@pytest.mark.parametrize(("roles", "labels", "updating", "shown"), MEMBERS.values(), ids=MEMBERS.keys())
def test_users_agree_which_pool_updates_a_node(
    roles: tuple[str, ...], labels: dict[str, str], updating: str, shown: str | None
) -> None:
    """The check, drains and UpdateStatus."""
    node = b.node("a", labels={**{ROLE + role: "" for role in roles}, **labels})
    pools = pools_of_node(node.metadata.labels, POOLS)
    assert (pools.updating, nodes_by_pool((node,), (pools,))) == (updating, {updating: [node]})
    cluster = drained_cluster({"Node": (node,), "MachineConfigPool": POOLS}, {}, openshift=True)
    assert [pool.name for pool in cluster.pools] == ([updating] if updating else [])
    states = assess_pools(POOLS, (node,), {}, Target(b.NEW))
    assert [state.name for state in states if state.nodes] == ([shown] if shown else [])


@pytest.mark.parametrize(("limit", "at_once"), [(None, 1), (2, 2), ("50%", 2), ("10%", 1), ("x", 1)])
def test_users_agree_how_many_nodes_may_be_unavailable(limit: int | str | None, at_once: int) -> None:
    """The check of the control plane's limit, and drains."""
    pool = b.pool("master")
    pool = replace(
        pool,
        spec=replace(pool.spec, max_unavailable=limit),
        status=replace(pool.status, machine_count=4),
    )
    nodes = tuple(b.node(name, labels={ROLE + "master": ""}) for name in "abcd")
    [drained_pool] = drained_cluster({"Node": nodes, "MachineConfigPool": (pool,)}, {}, openshift=True).pools
    assert (allowed_unavailable(pool), drained_pool.at_once) == (at_once, at_once)
    assert bool(objects_findings("MaxUnavailableUnsafe", pool)) == (at_once > 1)


def objects_findings(name: str, *objects: Any) -> list[Any]:
    """Returns what a check finds among these objects."""
    [check] = [check for check in CHECKS_OF_ALL if check.name == name]
    return list(run_check(check, snapshot(*objects), context()).findings)
