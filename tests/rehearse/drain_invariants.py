"""Random clusters for the simulation of drains, and what must hold in each: a seed and a number name one for good."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

from tests.rehearse.drained import HOST, NOW, ZONE, budget, node, owner, pod

from kubekit.api.core_v1 import Node
from kubekit.api.scheduling import SchedulingPod
from runup.rehearse.decide.drains.cluster_state import PodState, Workload
from runup.rehearse.decide.drains.drained_cluster import DrainedCluster, DrainSettings, Pool
from runup.rehearse.decide.drains.simulation import Simulation
from runup.rehearse.decide.drains.starting_state import StartingState, starting_state

APPS = ("web", "db", "queue", "batch")
MINUTE_S = 60


def random_cluster(random: Random) -> DrainedCluster:
    """A cluster of up to eight nodes in zones, with workloads of every kind of constraint that places pods."""
    nodes = tuple(_nodes(random))
    names = [each.metadata.name for each in nodes]
    cut = random.randrange(len(names) + 1)
    pools = [
        Pool(
            name=name,
            nodes=tuple(members),
            at_once=random.randrange(1, 4),
            paused=random.random() < 0.1,
            surge=random.choice((0, 0, 0, 1)),
            after=("first",) if name == "second" and random.random() < 0.5 else (),
        )
        for name, members in (("first", names[:cut]), ("second", names[cut:]))
    ]
    pods = tuple(each for app in APPS for each in _workload(random, app, names))
    owners = tuple(owner(app, random.randrange(1, 6)) for app in APPS if random.random() < 0.8)
    return DrainedCluster(nodes=nodes, pods=pods, owners=owners, budgets=tuple(_budgets(random)), pools=tuple(pools))


def random_settings(random: Random) -> DrainSettings:
    """Settings of any kind."""
    return DrainSettings(
        forces=random.random() < 0.5,
        drain_timeout_s=random.choice((MINUTE_S, 3600)),
        node_update_s=random.choice((0, 1, 600)),
        max_unavailable=random.choice((None, None, 1, 5)),
        nodes_lost=random.choice((0, 0, 0, 1)),
        uncordons_all=random.random() < 0.5,
    )


def _nodes(random: Random) -> Iterator[Node]:
    for number in range(random.randrange(1, 9)):
        taints = [{"key": "team", "value": "db", "effect": "NoSchedule"}] if random.random() < 0.2 else []
        yield node(
            f"n-{number}",
            zone=random.choice(("", "a", "b", "c")),
            labels={"disk": random.choice(("fast", "slow"))},
            pods=random.choice(("3", "10")),
            cpu=random.choice(("1", "2", "4")),
            ready=random.choice(("True", "True", "True", "True", "False")),
            unschedulable=random.random() < 0.1,
            taints=taints,
        )


def _workload(random: Random, app: str, nodes: list[str]) -> Iterator[SchedulingPod]:
    kind = random.choice(("ReplicaSet", "ReplicaSet", "StatefulSet", "DaemonSet", ""))
    spec = _constraints(random, app)
    cpu, start_s = random.choice(("0", "100m", "900m")), random.choice((0, 20, 500))
    for number in range(random.randrange(5)):
        on = random.choice(("", *nodes, *nodes))
        ready = random.choice(("True", "True", "True", "False"))
        yield pod(
            f"{app}-{number}",
            on=on,
            owner=f"{kind}/{app}" if kind else "",
            labels={"app": app, "tier": random.choice(("front", "back"))},
            cpu=cpu,
            ready=ready,
            start_s=start_s,
            **spec,
        )


def _constraints(random: Random, app: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"priority": random.choice((0, 0, 0, 100, 1000))}
    key, selector = random.choice((ZONE, HOST)), {"matchLabels": {"app": random.choice((app, *APPS))}}
    term = {"topologyKey": key, "labelSelector": selector}
    if random.random() < 0.25:
        spread = {"maxSkew": random.randrange(1, 3), "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
        policy = {"nodeTaintsPolicy": "Honor"} if random.random() < 0.3 else {}
        spec["topologySpreadConstraints"] = [{**spread, **policy, "labelSelector": selector}]
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    if random.random() < 0.2:
        spec.setdefault("affinity", {})["podAntiAffinity"] = {required: [term]}
    if random.random() < 0.15:
        spec.setdefault("affinity", {})["podAffinity"] = {required: [term]}
    if random.random() < 0.15:
        spec["nodeSelector"] = {"disk": random.choice(("fast", "slow"))}
    if random.random() < 0.3:
        spec["tolerations"] = [random.choice(({"key": "team", "operator": "Exists"}, {"operator": "Exists"}))]
    if random.random() < 0.1:
        spec["ports"] = [{"containerPort": 80, "hostPort": random.choice((80, 81)), "protocol": "TCP"}]
    return spec


def _budgets(random: Random) -> Iterator[Any]:
    for number, app in enumerate((*APPS, random.choice(APPS))):
        if random.random() < 0.5:
            rule = random.choice(
                ({"minAvailable": 1}, {"minAvailable": "50%"}, {"maxUnavailable": 1}, {"maxUnavailable": 0})
            )
            yield budget(f"{app}-{number}", app, **rule)


def faults(cluster: DrainedCluster, settings: DrainSettings) -> list[str]:
    """What does not hold of filters, of the number of pods, and of budgets. Raises what the simulation raises."""
    found = list(changed_answers(starting_state(cluster, settings)))
    simulation = Simulation(cluster, settings, NOW)
    before = pods_by_workload(simulation)
    floor = {each: min(each.healthy, each.desired) for each in simulation.state.budgets}
    least = {each: each.healthy for each in floor}

    def look() -> None:
        for each in least:
            least[each] = min(least[each], each.healthy)

    simulation.run(look)
    result = simulation.result()
    found += changed_answers(simulation.state)
    after = pods_by_workload(simulation)
    found += [
        f"{name} had {count} pods and has {after[name]}" for name, count in before.items() if after[name] != count
    ]
    # What is deleted by hand or preempted asks no budget, and a pod that tolerates the cordon goes with its node.
    forced = {blocked.pod for _, blocked in result.stuck} | {each.pod for each in result.preempted}
    if settings.nodes_lost or any(pool.surge for pool in cluster.pools):
        forced |= {pod.key for pod in simulation.state.pods if pod.shape.tolerates_cordon}
    for each, number in least.items():
        covered = {pod.key for pod in simulation.state.pods if each in pod.shape.budgets}
        if number < floor[each] and not covered & forced:
            found.append(f"budget {each} demanded {floor[each]} healthy pods and had {number}")
    return found


def pods_by_workload(simulation: Simulation) -> Counter[str]:
    """How many pods each workload has, on nodes and elsewhere."""
    on_nodes = (pod for node in simulation.state.nodes.values() for pod in node.pods.values())
    counted = Counter[str]()
    for each in (*on_nodes, *simulation.moves.homeless_pods()):
        if each.workload is not None and _is_counted(each, each.workload):
            counted[each.workload.named] += 1
    return counted


def _is_counted(each: PodState, workload: Workload) -> bool:
    """One that ends has its successor already, unless that comes when it is gone; DaemonSets follow their nodes."""
    ends = each.phase == "Terminating" and not (workload.one_by_one or workload.on_node)
    return not ends and not workload.named.startswith("DaemonSet ")


def changed_answers(state: StartingState) -> Iterator[str]:
    """The pods that cannot be taken off their node and put back without another answer of a filter."""
    shapes = {each.shape.id: each.shape for each in state.pods}.values()

    def answers() -> list[tuple[str, ...]]:
        return [state.filters.why_not(shape, node) for shape in shapes for node in state.filters.nodes]

    before = answers()
    for node_room in list(state.filters.nodes):
        for each in list(node_room.pods.values()):
            state.filters.remove(each, node_room)
            state.filters.add(each, node_room)
            if answers() != before:
                yield f"pod {each.key} was taken off {node_room.name} and put back, and a filter answers otherwise"
                before = answers()
