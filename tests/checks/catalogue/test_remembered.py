"""What checks remember of the last snapshot (`catalogue.shared.of_last`) never shows: they always say the same again.

A small cluster lives through seeded random changes, and comes out of its caches as the target's process has it: what
did not change is the same object as before. The same clusters made of other objects, each after a cluster that has
nothing in common with it, say what is right.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.factories import PODS, context, node, pdb, pod, pool, snapshot

from kubekit.api import codec
from kubekit.api.core_v1 import Node, NodeStatus
from kubekit.api.meta_v1 import Object
from kubekit.api.pod_parts import PlacedPod, PodDemands, PodOwner
from kubekit.api.scheme import Resource, resource_of
from kubekit.api.workloads_v1 import PodDisruptionBudget
from kubekit.kube.cache import Cache
from runup.api.machineconfig_v1 import MachineConfigPool
from runup.checks.catalogue import CHECKS
from runup.checks.catalogue.shared.result_cache import cache_groups, cached_grouping
from runup.checks.decide.engine import CheckOutcome, evaluate
from runup.checks.decide.model import Snapshot

STEPS = 25
KINDS: dict[Resource, type[Object]] = {
    PODS: PlacedPod,
    resource_of(Node): Node,
    resource_of(MachineConfigPool): MachineConfigPool,
    resource_of(PodDisruptionBudget): PodDisruptionBudget,
}
Caches = dict[Resource, Cache[Any]]


def some_node(rand: random.Random) -> Node:
    """A node in any state."""
    role = rand.choice(("worker", "worker", "infra", "master", "nobody"))
    made = node(
        f"n{rand.randrange(12):02}",
        ready=rand.choice(("True", "True", "True", "False", None)),
        kubelet=rand.choice(("v1.36.0", "v1.36.0", "v1.34.1", "")),
        unschedulable=rand.random() < 0.2,
        role=role,
        labels=rand.choice(({}, {}, {"node-role.kubernetes.io/gpu": ""}, {"kubernetes.io/os": "windows"})),
    )
    has = {"cpu": rand.choice(("4", "3500m")), "memory": rand.choice(("16Gi", "8Gi"))}
    status = replace(made.status, allocatable=has if rand.random() < 0.995 else {})
    assert isinstance(status, NodeStatus)
    return replace(made, status=status)


def some_pod(rand: random.Random) -> PlacedPod:
    """A pod in any state, on any node, of one that is not there too."""
    made = pod(
        f"p{rand.randrange(40):02}",
        rand.choice(("shop", "bank", "openshift-dns")),
        phase=rand.choice(("Running", "Running", "Running", "Pending", "Succeeded")),
        on=rand.choice(("", *(f"n{number:02}" for number in range(12)))),
        owner=rand.choice(("ReplicaSet", "ReplicaSet", "DaemonSet")),
        deleted=rand.random() < 0.1,
        labels={"app": rand.choice(("web", "db"))},
    )
    waiting = rand.choice(("", "", "", "main: CrashLoopBackOff"))
    owners = (PodOwner(kind=made.metadata.owner_references[0].kind, name=rand.choice("ab")),)
    spec = replace(made.spec, termination_grace_period_seconds=rand.choice((30, 30, 7200)))
    metadata = replace(made.metadata, owner_references=rand.choice((owners, owners, ())))
    demands = PodDemands(cpu_milli=rand.randrange(4000), memory_bytes=rand.randrange(8 << 30))
    return replace(made, spec=spec, metadata=metadata, demands=demands, status=replace(made.status, waiting=waiting))


def some_pool(rand: random.Random) -> MachineConfigPool:
    """A pool, of a role that nobody may have."""
    return pool(rand.choice(("master", "worker", "infra", "gpu")), paused=rand.random() < 0.3)


def some_budget(rand: random.Random) -> PodDisruptionBudget:
    """A budget that may share its pods with another."""
    healthy = rand.choice((0, 3))
    return pdb(
        f"b{rand.randrange(4)}",
        rand.choice(("shop", "bank")),
        selects={"app": rand.choice(("web", "db"))},
        current_healthy=healthy,
        disruptions_allowed=int(healthy > 0),
    )


SOME: dict[Resource, Callable[[random.Random], Object]] = {
    PODS: some_pod,
    resource_of(Node): some_node,
    resource_of(MachineConfigPool): some_pool,
    resource_of(PodDisruptionBudget): some_budget,
}


def lived_through(rand: random.Random) -> list[Snapshot]:
    """The cluster after each change; lists are recreated only where something of their kind changed."""
    caches: Caches = {resource: Cache(kind) for resource, kind in KINDS.items()}
    for resource, number in ((PODS, 60), (resource_of(Node), 12), (resource_of(MachineConfigPool), 6)):
        for _ in range(number):
            caches[resource].put(SOME[resource](rand))
    lists = {resource: tuple(cache.all()) for resource, cache in caches.items()}
    found = []
    for _ in range(STEPS):
        changed = rand.choice((PODS, PODS, *KINDS))
        cache = caches[changed]
        if len(cache) and rand.random() < 0.3:
            cache.remove(rand.choice(cache.all()))
        else:
            cache.put(SOME[changed](rand))
        lists = {**lists, changed: tuple(cache.all())}
        found.append(around(lists))
    return found


def around(lists: dict[Resource, tuple[Any, ...]]) -> Snapshot:
    """These lists, and a cluster in which there is nothing else."""
    empty = snapshot()
    return Snapshot(objects={**empty.objects, **lists})


def anew(seen: Snapshot) -> Snapshot:
    """The same cluster, of other objects."""
    lists = {
        resource: tuple(codec.decode(kind, codec.encode(obj)) for obj in seen.objects[resource])
        for resource, kind in KINDS.items()
    }
    return around(lists)


def stranger() -> Snapshot:
    """A cluster that leaves nothing remembered of another."""
    nodes = (
        replace(node(f"s{number}"), status=NodeStatus(allocatable={"cpu": "1", "memory": "1"})) for number in (0, 1)
    )
    return snapshot(*nodes, pool("strange"), pod("s", "strange", on="s0"), pdb("s", "strange"), pdb("t", "strange"))


def outcomes_of(seen: Snapshot) -> tuple[CheckOutcome, ...]:
    """What all checks say."""
    return evaluate(CHECKS, seen, context())


@pytest.mark.parametrize("seed", range(4), ids=lambda seed: f"seed {seed}")
def test_what_is_remembered_of_the_last_snapshot_does_not_show(seed: int) -> None:
    """Check by check, change by change."""
    history = lived_through(random.Random(seed))
    said = [outcomes_of(seen) for seen in history]
    assert len({str([outcome.findings for outcome in outcomes]) for outcomes in said}) > STEPS / 4, "it hardly changes"
    for seen, outcomes in zip(history, said, strict=True):
        outcomes_of(stranger())
        assert outcomes == outcomes_of(anew(seen))


class Item:
    """Something with two keys, equal to nothing else."""

    def __init__(self, word: str) -> None:
        self.first, self.second = word


WORDS = st.sampled_from(("ax", "ay", "bx", "by", "cz"))
EDITS = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 3), st.lists(WORDS, max_size=3)), min_size=1, max_size=6)


@given(words=st.lists(WORDS, max_size=12), edits=EDITS)
def test_groups_follow_a_list(words: list[str], edits: list[tuple[float, int, list[str]]]) -> None:
    """After each change every item is in its groups, and a group of which nothing came or went is the one before."""
    of_both = cached_grouping(attrgetter("first"), attrgetter("second"))
    items = tuple(map(Item, words))
    before = of_both(items)
    for place, gone, come in edits:
        at = round(place * len(items))
        changed = (*items[:at], *map(Item, come), *items[at + gone :])
        found = of_both(changed)
        for groups, old, name in zip(found, before, ("first", "second"), strict=True):
            keys = {getattr(item, name) for item in changed}
            assert {key: set(group) for key, group in groups.items()} == {
                key: {item for item in changed if getattr(item, name) == key} for key in keys
            }
            assert sum(map(len, groups.values())) == len(changed)
            touched = {getattr(item, name) for item in set(items) ^ set(changed)}
            assert all(groups[key] is old[key] for key in keys - touched)
        assert of_both(changed) is found
        items, before = changed, found


def test_the_group_of_an_item_that_changed_alone_is_made_again() -> None:
    """Made of the three that are there first, then of the one that changed."""
    made: list[list[str]] = []

    @cache_groups
    def joined(group: list[Item]) -> str:
        made.append([item.second for item in group])
        return "".join(made[-1])

    by_first = cached_grouping(attrgetter("first"))
    items = tuple(map(Item, ("ax", "by", "cz")))
    assert joined(by_first(items)[0]) == {"a": "x", "b": "y", "c": "z"}
    made.clear()
    items = (items[0], Item("bz"), items[2])
    assert joined(by_first(items)[0]) == {"a": "x", "b": "z", "c": "z"}
    assert made == [["z"]]
    assert joined(by_first(items[1:])[0]) == {"b": "z", "c": "z"}
    assert made == [["z"]]
