"""Simulated drains: what is evicted when, what refuses it, what is down, and how long it takes."""

from __future__ import annotations

from dataclasses import replace
from datetime import time
from typing import Any

import pytest
from tests.rehearse.drained import HOST, NOW, ZONE, budget, cluster, node, owner, pod

from kubekit.api import codec
from kubekit.api.core_v1 import Node
from kubekit.api.scheduling import ResourceQuota
from runup.rehearse.decide.drains.drain_result import DrainResult
from runup.rehearse.decide.drains.drained_cluster import DrainedCluster, DrainSettings, Pool, Window
from runup.rehearse.decide.drains.simulation import NO_OWNER, SEVERAL, simulate

APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "web"}}}
        ]
    }
}
A, B, C = node("a"), node("b"), node("c")


def drained(state: DrainedCluster, **settings: Any) -> DrainResult:
    return simulate(state, DrainSettings(**settings), NOW)


def test_nodes_are_drained_one_after_another() -> None:
    """Each node takes as long as its slowest pod and its update, and the next one begins then."""
    result = drained(cluster(A, B, pods=(pod("web-1", "a"), pod("web-2", "b", terminationGracePeriodSeconds=40))))
    # On `b` is also the pod that left `a`: both are evicted there.
    assert [(each.node, each.from_s, each.drained_s, each.back_s, each.evicted) for each in result.nodes] == [
        ("a", 0, 10, 610, 1),
        ("b", 610, 650, 1250, 2),
    ]
    assert result.duration_s == 1250


def test_several_at_once() -> None:
    """A pool with maxUnavailable 2 begins with two nodes, and the third takes the place of the first that is back."""
    result = drained(cluster(A, B, C, pods=(pod("web-1", "a"),), at_once=2))
    assert [(each.node, each.from_s, each.after) for each in result.nodes] == [
        ("b", 0, ""),
        ("a", 0, ""),
        ("c", 600, "b"),
    ]


STUCK = {
    "a budget that never allows an eviction": (
        (pod("web-1", "a"),),
        (budget(maxUnavailable=0),),
        {},
        [("shop/web-1", "maxUnavailable 0: 1 of 1 healthy, 1 demanded", ("shop/web",))],
    ),
    "two budgets over one pod": (
        (pod("web-1", "a"),),
        (budget(maxUnavailable=1), budget("tier", maxUnavailable=1)),
        {},
        [("shop/web-1", SEVERAL, ("shop/web", "shop/tier"))],
    ),
    "no owner, and no force": ((pod("tool", "a", owner=""),), (), {"forces": False}, [("shop/tool", NO_OWNER, ())]),
    "no owner, with force": ((pod("tool", "a", owner=""),), (), {}, []),
    "a share of one replica is the whole of it": (
        (pod("web-1", "a"),),
        (budget(minAvailable="1%"),),
        {},
        [("shop/web-1", "minAvailable 1%: 1 of 1 healthy, 1 demanded", ("shop/web",))],
    ),
    "a budget of two replicas lets one go": ((pod("web-1", "a"), pod("web-2", "b")), (budget(minAvailable=1),), {}, []),
    "not ready, and others are too few": (
        (pod("web-1", "a", ready="False"), pod("web-2", "b", ready="False")),
        (budget(minAvailable=1),),
        {},
        [("shop/web-1", "minAvailable 1: 0 of 2 healthy, 1 demanded", ("shop/web",))],
    ),
    "not ready, and the policy always allows it": (
        (pod("web-1", "a", ready="False"),),
        (budget(minAvailable=1, unhealthyPodEvictionPolicy="AlwaysAllow"),),
        {},
        [],
    ),
    "a share that is no number": (
        (pod("web-1", "a"),),
        (budget(maxUnavailable="banana"),),
        {},
        [
            (
                "shop/web-1",
                "maxUnavailable banana: the disruption controller cannot compute it, and so it allows nothing",
                ("shop/web",),
            )
        ],
    ),
    "a number as text": (
        (pod("web-1", "a"), pod("web-2", "b")),
        (budget(minAvailable="1"),),
        {},
        [
            (
                "shop/web-1",
                "minAvailable 1: the disruption controller cannot compute it, and so it allows nothing",
                ("shop/web",),
            )
        ],
    ),
    "a DaemonSet's pod stays": ((pod("agent", "a", owner="DaemonSet/agent"),), (budget(maxUnavailable=0),), {}, []),
}


@pytest.mark.parametrize(("pods", "budgets", "settings", "expected"), STUCK.values(), ids=STUCK)
def test_what_cannot_be_evicted(pods: Any, budgets: Any, settings: Any, expected: Any) -> None:
    """Pods that a drain of their node never evicts are named with the budgets that refuse it at that moment."""
    state = cluster(A, B, pods=pods, budgets=budgets)
    only_a = replace(state, pools=(Pool(name="worker", nodes=("a",)),))
    result = drained(only_a, **settings)
    assert [(each.pod, each.why, each.by) for _, each in result.stuck] == expected


GRACE = {"a minute": (60, 60), "negative": (-5, 1), "without end": (10**18, 30 * 86400)}


@pytest.mark.parametrize(("seconds", "expected"), GRACE.values(), ids=GRACE)
def test_grace_periods(seconds: int, expected: int) -> None:
    """A pod takes its grace period to end: a negative one is 1 second, and none is longer than 30 days."""
    result = drained(cluster(A, B, pods=(pod("web-1", "a", terminationGracePeriodSeconds=seconds),)))
    assert result.nodes[0].drained_s == expected


def test_budgets_of_a_pool_together() -> None:
    """Two nodes at once share the one disruption that a budget allows: the second waits for the first one's pod."""
    pods = (pod("web-1", "a"), pod("web-2", "b"), pod("web-3", "c"))
    result = drained(cluster(A, B, C, node("d"), pods=pods, budgets=(budget(maxUnavailable=1),), at_once=2))
    held = {each.node: [(one.pod, one.from_s, one.to_s) for one in each.blocked] for each in result.nodes}
    # The pod that makes up for web-1 is ready 20 s after the eviction.
    assert held["b"] == [("shop/web-2", 0, 20)]
    assert result.stuck == ()


READY, DOWN = node("a"), node("a", ready="False")
NEVER_READY = {
    "a policy that always lets them go": (READY, {"minAvailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow"}, []),
    "a budget that waits for one": (READY, {"minAvailable": 1}, [("shop/web-1", None), ("shop/web-2", None)]),
    # They were not ready because of their node, and are 30 s after they came to the other one.
    "a node that was down": (
        DOWN,
        {"minAvailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow"},
        [("shop/web-2", 640)],
    ),
}


@pytest.mark.parametrize(("first", "demand", "expected"), NEVER_READY.values(), ids=NEVER_READY)
def test_pods_that_are_never_ready_are_not_ready_elsewhere(first: Node, demand: Any, expected: Any) -> None:
    """So the next node's drain finds them as the first one's did: real kubelets made nothing ready by moving it."""
    pods = tuple(pod(f"web-{number}", "a", ready="False") for number in (1, 2))
    pools = (Pool(name="first", nodes=("a",)), Pool(name="second", nodes=("b",), after=("first",)))
    result = drained(cluster(first, B, pods=pods, pools=pools, budgets=(budget(**demand),)), drain_timeout_s=60)
    on_b = next(each for each in result.nodes if each.node == "b")
    assert [(each.pod, each.to_s) for each in on_b.blocked] == expected
    said = "1 workload without a ready pod get no ready pod elsewhere either" in result.assumed
    assert said == (first is READY)


def test_a_pod_without_a_place_holds_up_the_next_node() -> None:
    """With a pod on each node and one allowed away, what left the first node comes back when that is back."""
    pods = tuple(pod(f"web-{name}", name, affinity=APART) for name in "ab")
    result = drained(cluster(A, B, pods=pods, budgets=(budget(maxUnavailable=1),)))
    (late,) = [each for each in result.unplaced if each.to_s != each.from_s and each.from_s == 0]
    assert (late.workload, late.from_s, late.to_s) == ("ReplicaSet shop/web", 0, 610)
    assert late.why == (
        "0/2 nodes are available: 1 node(s) didn't match pod anti-affinity rules, 1 node(s) were unschedulable."
    )
    # Node b begins at 610 s; its pod may go when the other one is ready, 20 s later.
    assert [(each.pod, each.from_s, each.to_s) for each in result.nodes[1].blocked] == [("shop/web-b", 610, 630)]


def test_without_a_place_at_the_end() -> None:
    """A pod that no node takes is reported with the scheduler's words once all nodes are back."""
    state = cluster(A, B, pods=(pod("web-1", "a", nodeSelector={"disk": "fast"}),))
    assert [(each.workload, each.why) for each in drained(state).homeless] == [
        ("ReplicaSet shop/web", "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.")
    ]


OUTAGES = {
    "a ReplicaSet makes the next pod at once": ("ReplicaSet/web", 20),
    "a StatefulSet makes it when the last one has ended": ("StatefulSet/web", 30),
}


@pytest.mark.parametrize(("maker", "expected"), OUTAGES.values(), ids=OUTAGES)
def test_how_long_a_single_replica_is_down(maker: str, expected: int) -> None:
    """It is down for as long as its pods took to start before, after its grace period where that comes first."""
    state = replace(cluster(A, B, pods=(pod("web-0", "a", owner=maker),)), pools=(Pool(name="worker", nodes=("a",)),))
    assert [each.seconds for each in drained(state).outages] == [expected]


def test_a_deployment_is_named() -> None:
    """A ReplicaSet's pods are reported by their Deployment."""
    state = cluster(A, B, pods=(pod("web-1", "a"),), owners=(owner("web", 1, above="shopfront"),))
    assert {each.workload for each in drained(state).outages} == {"Deployment shop/shopfront"}


def _next(name: str, on: str, cpu: str, **spec: Any) -> Any:
    maker = name.rpartition("-")[0]
    return pod(name, on, owner=f"StatefulSet/{maker}", labels={"app": maker}, cpu=cpu, **spec)


# `b` has 4 cores; `a` is drained, and a StatefulSet's next pod is made when its last one has ended, after 10 s or 12 s.
RACES = {
    "one of two that end at once": ((_next("a-0", "a", "3"), _next("b-0", "a", "2")), {"b": ("a",)}),
    "one that ends a little later": (
        (_next("b-0", "a", "3", terminationGracePeriodSeconds=12), _next("c-0", "a", "2")),
        {"b": ("c",)},
    ),
    "one that ends much later": (
        (_next("b-0", "a", "3", terminationGracePeriodSeconds=13), _next("c-0", "a", "2")),
        {"b": ()},
    ),
    "one that fits beside neither of two": (
        (_next("a-0", "a", "2"), _next("b-0", "a", "2"), _next("c-0", "a", "2")),
        {"c": ("a", "b")},
    ),
    "two of one workload": ((_next("a-0", "a", "3"), _next("a-1", "a", "3")), {"a": ()}),
    "one that fits nowhere at all": ((_next("a-0", "a", "3"), _next("b-0", "a", "5")), {"b": ()}),
    "one that waits for room of before": ((_next("a-0", "b", "3"), _next("b-0", "a", "2")), {"b": ()}),
    "one that others may go beside": (
        (_next("a-0", "a", "1"), _next("b-0", "a", "2"), _next("c-0", "a", "2")),
        {"c": ("a", "b")},
    ),
    "one that several have taken the room of": (
        (_next("a-0", "a", "1900m"), _next("b-0", "a", "1900m"), _next("c-0", "a", "3")),
        {"c": ("a", "b")},
    ),
    "one that has to go to the other node": (
        (_next("a-0", "a", "3"), _next("b-0", "a", "2", nodeSelector={HOST: "a"})),
        {"b": ()},
    ),
}


@pytest.mark.parametrize(("pods", "expected"), RACES.values(), ids=RACES)
def test_who_waits_may_be_a_race(pods: Any, expected: Any) -> None:
    """Real nodes end pods of two workloads within a second, in either order: whose next pod comes second waits.

    What got its room long before, or has no room anyway, is no rival.
    """
    state = replace(cluster(A, B, pods=pods), pools=(Pool(name="worker", nodes=("a",)),))
    rivals = {each.workload: each.rivals for each in drained(state).unplaced}
    named = {name: tuple(f"StatefulSet shop/{each}" for each in others) for name, others in expected.items()}
    assert rivals == {f"StatefulSet shop/{name}": others for name, others in named.items()}


def test_who_of_two_that_wait_gets_room_is_a_race() -> None:
    """A port of the node is free when that is back: the scheduler tries both again, whichever began to wait first.

    Two pods with the same host port have two nodes to themselves, the third waits from the beginning (seed 4 of
    `python -m bench real_drains`).
    """
    ports = {"ports": [{"containerPort": 80, "hostPort": 18080}]}

    def with_port(name: str, on: str = "", **spec: Any) -> Any:
        maker, containers = name.partition("-")[0], [{"name": "app", "image": "app:1", **ports}]
        return pod(name, on, owner=f"ReplicaSet/{maker}", labels={"app": maker}, containers=containers, **spec)

    pods = (with_port("apple-1", "a"), with_port("birch-1", "b"), with_port("birch-2"))
    state = replace(cluster(A, B, pods=pods), pools=(Pool(name="worker", nodes=("a",)),))
    waits = {(each.workload, each.to_s is None): each.rivals for each in drained(state).unplaced}
    assert waits == {("ReplicaSet shop/birch", False): (), ("ReplicaSet shop/apple", True): ("ReplicaSet shop/birch",)}
    important = replace(state, pods=(*pods[:2], with_port("birch-2", priority=5, preemptionPolicy="Never")))
    assert [each.rivals for each in drained(important).unplaced if each.to_s is None] == [()]


def test_why_each_pod_waits_is_of_its_own_beginning() -> None:
    """The next pod of a workload of which one waits already sees the nodes as they are then, one of them cordoned.

    Seed 5 of `python -m bench real_drains`: three pods of which no two may share one of two nodes.
    """
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "web"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    pods = tuple(pod(f"web-{number}", on, affinity=apart) for number, on in enumerate(("a", "b", "")))
    state = replace(cluster(A, B, pods=pods), pools=(Pool(name="worker", nodes=("a",)),))
    assert {each.why for each in drained(state).unplaced if each.before} == {
        "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules."
    }
    later = replace(state, pools=(Pool(name="worker", nodes=("a", "b")),))
    began = [each.why for each in drained(later).unplaced if not each.before and each.to_s is not None]
    assert began == [
        "0/2 nodes are available: 1 node(s) didn't match pod anti-affinity rules, 1 node(s) were unschedulable."
    ]


def test_the_more_important_wins_every_race() -> None:
    """It gets the room if it comes second, too: by preemption."""
    pods = (_next("a-0", "a", "3", priority=5), _next("b-0", "a", "2"))
    state = replace(cluster(A, B, pods=pods), pools=(Pool(name="worker", nodes=("a",)),))
    assert [(each.workload, each.rivals) for each in drained(state).unplaced] == [("StatefulSet shop/b", ())]


def test_preemption() -> None:
    """A pod of higher priority makes lesser ones end where there is no other room."""
    pods = (pod("lesser", "b", cpu="3", owner="ReplicaSet/batch"), pod("web-1", "a", cpu="3", priority=1000))
    result = drained(cluster(A, B, pods=pods))
    assert next((each.pod, each.by, each.node, each.at_s) for each in result.preempted) == (
        "shop/lesser",
        "ReplicaSet shop/web",
        "b",
        0,
    )


def test_pods_preempt_with_the_room_that_is_kept_for_others_in_mind() -> None:
    """Node b has room for the second pod, but only until the first has its place: the same pod makes room for both."""
    pods = (
        pod("batch-0", "b", cpu="2", owner="ReplicaSet/batch", labels={"app": "batch"}),
        pod("web-1", "a", cpu="3", priority=1000),
        pod("zoo-1", "a", cpu="1", priority=500, owner="ReplicaSet/zoo", labels={"app": "zoo"}),
    )
    result = drained(replace(cluster(A, B, pods=pods), pools=(Pool(name="worker", nodes=("a",)),)))
    assert [(each.pod, each.by) for each in result.preempted] == [("shop/batch-0", "ReplicaSet shop/web")]
    assert {each.workload for each in result.unplaced} == {
        "ReplicaSet shop/web",
        "ReplicaSet shop/zoo",
        "ReplicaSet shop/batch",
    }


def test_room_that_is_made_for_a_pod_is_kept_for_it() -> None:
    """The next pod of a StatefulSet, made when the one that made way is gone, does not take the room back."""
    pods = (
        pod("batch-0", "b", cpu="3", owner="StatefulSet/batch", labels={"app": "batch"}),
        pod("web-1", "a", cpu="3", priority=1000),
    )
    state = replace(cluster(A, B, pods=pods), pools=(Pool(name="worker", nodes=("a",)),))
    result = drained(state)
    assert [(each.pod, each.by, each.at_s) for each in result.preempted] == [("shop/batch-0", "ReplicaSet shop/web", 0)]
    waits = {each.workload: (each.from_s, each.to_s) for each in result.unplaced}
    # Node a is back after its own ten seconds and the ten minutes of an update.
    assert waits == {"ReplicaSet shop/web": (0, 10), "StatefulSet shop/batch": (10, 610)}
    # kube-scheduler counts the pod for which the room is kept as if it were on the node.
    why = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable."
    assert {each.why for each in result.unplaced} == {why}


def test_a_quota_delays_the_next_pod() -> None:
    """Where a quota has room for one pod, the next one is made when the last has ended."""
    quota = codec.convert(
        ResourceQuota, {"metadata": {"name": "few", "namespace": "shop"}, "spec": {"hard": {"pods": "1"}}}
    )
    state = replace(
        cluster(A, B, pods=(pod("web-1", "a"),), quotas=(quota,)), pools=(Pool(name="worker", nodes=("a",)),)
    )
    result = drained(state)
    assert [(each.from_s, each.to_s, each.why) for each in result.unplaced] == [(0, 10, "a quota had no room for it")]
    assert [each.seconds for each in result.outages] == [30]


def test_the_guard_of_a_node_comes_back_with_it() -> None:
    """OpenShift makes the pod that guards a node of the control plane again on that node."""
    guard = pod("etcd-guard-a", "a", owner="", labels={"app": "guard"})
    at_home = codec.convert(
        type(guard),
        codec.to_dict(guard) | {"metadata": codec.to_dict(guard)["metadata"] | {"namespace": "openshift-etcd"}},
    )
    result = drained(cluster(A, B, pods=(at_home,)))
    assert (result.nodes[0].lost, result.homeless, result.outages) == ((), (), ())


POOLS = {
    "a paused pool": (replace(Pool(name="worker", nodes=("a", "b")), paused=True), {}, (True, "", [])),
    "another limit": (Pool(name="worker", nodes=("a", "b")), {"max_unavailable": 2}, (False, "", [0, 0])),
    "more at once than there are nodes": (
        Pool(name="worker", nodes=("a", "b"), at_once=10**25),
        {},
        (False, "", [0, 0]),
    ),
    "a window": (
        Pool(name="worker", nodes=("a", "b")),
        {"window": Window(time(22), time(6))},
        # It is 10:00: twelve hours until it opens.
        (False, "", [43200, 43800]),
    ),
    "nodes that do not come back": (Pool(name="worker", nodes=("a", "b")), {"nodes_lost": 1}, (False, "", [0, 0])),
    "new nodes first": (Pool(name="worker", nodes=("a", "b"), surge=1), {}, (False, "", [0, 600])),
}


@pytest.mark.parametrize(("pool", "settings", "expected"), POOLS.values(), ids=POOLS)
def test_pools(pool: Pool, settings: Any, expected: Any) -> None:
    """A pool is drained by its limit, its window and its surge, or not at all if it is paused."""
    (timeline,) = drained(replace(cluster(A, B), pools=(pool,)), **settings).pools
    assert (timeline.paused, timeline.held, [each.from_s for each in timeline.nodes]) == expected


def test_a_node_that_is_not_ready_takes_the_place_of_another() -> None:
    """The machine-config operator drains no other node while as many as it may are unavailable."""
    result = drained(cluster(A, node("b", ready="False")))
    assert (result.pools[0].held, result.nodes) == (
        "b not ready, and at most 1 of its nodes may be unavailable",
        (),
    )


def test_pools_one_after_another() -> None:
    """A group waits for those that it comes after; the critical path leads through both."""
    pools = (Pool(name="control-plane", nodes=("a",)), Pool(name="workers", nodes=("b",), after=("control-plane",)))
    # Node b has no room for the pod of a.
    result = drained(replace(cluster(A, node("b", cpu="50m"), C, pods=(pod("web-1", "a"),)), pools=pools))
    assert [(step.from_s, step.to_s, step.what) for step in result.path] == [
        (0, 10, "drain of a"),
        (10, 610, "update of a"),
        (610, 1210, "update of b"),
    ]


def test_what_is_missing_is_unknown() -> None:
    """Without budgets nothing is known about what they refuse; a kind that would change nothing is not told."""
    state = cluster(A, pods=(pod("web-1", "a"),), missing={"PodDisruptionBudget": "forbidden", "CSINode": "forbidden"})
    assert drained(state).unknown == ("which evictions are refused: PodDisruptionBudget: forbidden",)


@pytest.mark.parametrize(
    ("key", "zones", "hint"),
    [
        (
            ZONE,
            ("x", "y", "y"),
            "topology.kubernetes.io/zone x has no other node than a, and its topology spread counts it with 0 pods.",
        ),
        (ZONE, ("x", "x", "y"), ""),
    ],
)
def test_names_a_zone_of_one_node(key: str, zones: tuple[str, ...], hint: str) -> None:
    """While its node is drained, such a zone still counts as the one with the fewest pods."""
    selector = {"matchLabels": {"app": "web"}}
    hard = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    names = ("a", "b", "c")
    pods = tuple(pod(f"web-{name}", on=name, labels={"app": "web"}, topologySpreadConstraints=[hard]) for name in names)
    nodes = (node(name, zone=zone) for name, zone in zip(names, zones, strict=True))
    found = simulate(cluster(*nodes, pods=pods), DrainSettings(), NOW)
    first = next((each for each in found.unplaced if each.from_s == 0), None)
    assert (first.hint if first else "") == hint


def test_zones_of_spread() -> None:
    """A constraint of spread over zones leaves only the nodes of the emptier zone."""
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    nodes = (node("a", zone="x"), node("b", zone="x"), node("c", zone="y", cpu="100m"))
    pods = (
        pod("web-1", "a", topologySpreadConstraints=[constraint]),
        pod("web-2", "b", topologySpreadConstraints=[constraint]),
        pod("web-3", "c", topologySpreadConstraints=[constraint]),
    )
    # While a is away: one pod in each zone, so b may have another; and when c is away its pod has no place, since
    # zone y still counts as one without pods, and its only node is cordoned.
    result = drained(cluster(*nodes, pods=pods))
    late = [each for each in result.unplaced if each.to_s != each.from_s]
    assert [(each.moved_from, each.to_s) for each in late] == [(("c",), result.nodes[2].back_s)]
