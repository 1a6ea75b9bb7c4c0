"""Which nodes take a pod, next to what kube-scheduler writes into a pod's condition when they do not."""

from __future__ import annotations

from typing import Any

import pytest
from tests.rehearse.drained import HOST, NOW, ZONE, cluster, node, pod

from kubekit.api import codec
from kubekit.api.core_v1 import Node
from kubekit.api.scheduling import CsiNode, PersistentVolumeClaim, SchedulingPod, SchedulingVolumeObject, StorageClass
from runup.rehearse.decide.drains.drained_cluster import DrainedCluster, DrainSettings
from runup.rehearse.decide.drains.simulation import simulate

JSON = dict[str, Any]


def term(key: str = HOST, app: str = "db") -> JSON:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}


def required(*terms: JSON) -> JSON:
    return {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}


def selecting(*expressions: JSON) -> JSON:
    return {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(expressions)}}
    }


def expression(key: str, operator: str, *values: str) -> JSON:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def named(*names: str) -> JSON:
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": list(names)}]}


def spread(key: str = ZONE, **more: Any) -> JSON:
    selector = {"matchLabels": {"app": "web"}}
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector, **more}


def claiming(name: str) -> list[JSON]:
    return [{"persistentVolumeClaim": {"claimName": name}}]


PLAIN = node("n")
DB = pod("db", "n", owner="StatefulSet/db", labels={"app": "db"})
KEPT_APART = pod(
    "db", "n", owner="StatefulSet/db", labels={"app": "db"}, affinity={"podAntiAffinity": required(term(app="web"))}
)

# The node, what runs on it, the pod that waits, and what keeps it from the node (empty: nothing).
ONE_NODE: dict[str, tuple[Node, tuple[SchedulingPod, ...], JSON, str]] = {
    "room": (PLAIN, (), {"cpu": "4"}, ""),
    "too little cpu": (PLAIN, (), {"cpu": "4001m"}, "Insufficient cpu"),
    "cpu that others have": (PLAIN, (DB,), {"cpu": "3901m"}, "Insufficient cpu"),
    "no place for one more pod": (node("n", pods="1"), (DB,), {}, "Too many pods"),
    "two shortages": (
        node("n", pods="1"),
        (DB,),
        {"cpu": "8"},
        "Insufficient cpu, 1 Too many pods",
    ),
    "an init container needs more than what runs": (
        PLAIN,
        (),
        {"initContainers": [{"resources": {"requests": {"cpu": "5"}}}]},
        "Insufficient cpu",
    ),
    "a sidecar runs beside the others": (
        PLAIN,
        (),
        {"cpu": "3", "initContainers": [{"restartPolicy": "Always", "resources": {"requests": {"cpu": "1100m"}}}]},
        "Insufficient cpu",
    ),
    "overhead of the runtime class": (PLAIN, (), {"cpu": "4", "overhead": {"cpu": "1m"}}, "Insufficient cpu"),
    "a device that the node has not": (
        PLAIN,
        (),
        {"initContainers": [{"resources": {"requests": {"example.com/gpu": "1"}}}]},
        "Insufficient example.com/gpu",
    ),
    "a cordon": (node("n", unschedulable=True), (), {}, "node(s) were unschedulable"),
    "a cordon that is tolerated": (
        node("n", unschedulable=True),
        (),
        {"tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]},
        "",
    ),
    "a taint": (
        node("n", taints=[{"key": "team", "value": "db", "effect": "NoSchedule"}]),
        (),
        {},
        "node(s) had untolerated taint {team: db}",
    ),
    "a taint of another value": (
        node("n", taints=[{"key": "team", "value": "db", "effect": "NoExecute"}]),
        (),
        {"tolerations": [{"key": "team", "operator": "Equal", "value": "web"}]},
        "node(s) had untolerated taint {team: db}",
    ),
    "a taint that is only a preference": (
        node("n", taints=[{"key": "team", "value": "db", "effect": "PreferNoSchedule"}]),
        (),
        {},
        "",
    ),
    "a taint that is tolerated with every other": (
        node("n", taints=[{"key": "team", "value": "db", "effect": "NoExecute"}]),
        (),
        {"tolerations": [{"operator": "Exists"}]},
        "",
    ),
    "a selector": (PLAIN, (), {"nodeSelector": {"disk": "fast"}}, "node(s) didn't match Pod's node affinity/selector"),
    "one of two terms": (
        node("n", labels={"gen": "4"}),
        (),
        {"affinity": selecting(expression("disk", "Exists"), expression("gen", "Gt", "3"))},
        "",
    ),
    "a number that is not greater": (
        node("n", labels={"gen": "3"}),
        (),
        {"affinity": selecting(expression("gen", "Gt", "3"))},
        "node(s) didn't match Pod's node affinity/selector",
    ),
    "another node by its name, and a cordon": (
        node("n", unschedulable=True),
        (),
        {"affinity": selecting(named("m"), named("o"))},
        "node(s) didn't satisfy plugin(s) [NodeAffinity]",
    ),
    "another node by its name, or a label": (
        PLAIN,
        (),
        {"affinity": selecting(named("m"), expression("gen", "Exists"))},
        "node(s) didn't match Pod's node affinity/selector",
    ),
    "the node by its name, which is cordoned": (
        node("n", unschedulable=True),
        (),
        {"affinity": selecting(named("m", "n"))},
        "node(s) were unschedulable",
    ),
    "not in, without the label": (PLAIN, (), {"affinity": selecting(expression("gen", "NotIn", "3"))}, ""),
    "a host port that is taken": (
        PLAIN,
        (pod("db", "n", owner="StatefulSet/db", labels={"app": "db"}, ports=[{"hostPort": 80}]),),
        {"ports": [{"hostPort": 80, "hostIP": "10.0.0.1"}]},
        "node(s) didn't have free ports for the requested pod ports",
    ),
    "a host port of another address": (
        PLAIN,
        (pod("db", "n", owner="StatefulSet/db", labels={"app": "db"}, ports=[{"hostPort": 80, "hostIP": "10.0.0.2"}]),),
        {"ports": [{"hostPort": 80, "hostIP": "10.0.0.1"}]},
        "",
    ),
    "a host port of another protocol": (
        PLAIN,
        (pod("db", "n", owner="StatefulSet/db", labels={"app": "db"}, ports=[{"hostPort": 53, "protocol": "UDP"}]),),
        {"ports": [{"hostPort": 53}]},
        "",
    ),
    "beside others": (PLAIN, (DB,), {"affinity": {"podAffinity": required(term())}}, ""),
    "beside others that are not there": (
        PLAIN,
        (),
        {"affinity": {"podAffinity": required(term())}},
        "node(s) didn't match pod affinity rules",
    ),
    "beside its own kind, as the first": (PLAIN, (), {"affinity": {"podAffinity": required(term(app="web"))}}, ""),
    "beside others, in a zone that the node has not": (
        PLAIN,
        (DB,),
        {"affinity": {"podAffinity": required(term(ZONE))}},
        "node(s) didn't match pod affinity rules",
    ),
    "apart from others": (
        PLAIN,
        (DB,),
        {"affinity": {"podAntiAffinity": required(term())}},
        "node(s) didn't match pod anti-affinity rules",
    ),
    "apart from others of another namespace": (
        PLAIN,
        (DB,),
        {"affinity": {"podAntiAffinity": required(term() | {"namespaces": ["bank"]})}},
        "",
    ),
    "apart from others of all namespaces": (
        PLAIN,
        (DB,),
        {"affinity": {"podAntiAffinity": required(term() | {"namespaceSelector": {}})}},
        "node(s) didn't match pod anti-affinity rules",
    ),
    "others want to be apart": (PLAIN, (KEPT_APART,), {}, "node(s) didn't satisfy existing pods anti-affinity rules"),
    "spread over a label that the node has not": (
        PLAIN,
        (),
        {"topologySpreadConstraints": [spread()]},
        "node(s) didn't match pod topology spread constraints (missing required label)",
    ),
    "the first of a spread": (node("n", zone="x"), (), {"topologySpreadConstraints": [spread()]}, ""),
    "fewer zones than minDomains": (
        node("n", zone="x"),
        (pod("web-0", "n"),),
        {"topologySpreadConstraints": [spread(minDomains=2)]},
        "node(s) didn't match pod topology spread constraints",
    ),
    "spread that is only a wish": (
        PLAIN,
        (),
        {"topologySpreadConstraints": [spread(whenUnsatisfiable="ScheduleAnyway")]},
        "",
    ),
    "a gate": (PLAIN, (), {"schedulingGates": [{"name": "example.com/quota"}]}, "scheduling is gated"),
    "a claim that is not there": (
        PLAIN,
        (),
        {"volumes": claiming("data")},
        'persistentvolumeclaim "data" not found',
    ),
}


def unplaced_reason(state: DrainedCluster) -> str:
    """Returns what is reported of the one pod that waits, empty if it has a place; nothing is drained."""
    found = [each.why for each in simulate(state, DrainSettings(), NOW).unplaced]
    assert len(found) <= 1
    return found[0].removeprefix("0/1 nodes are available: ") if found else ""


def of_one_node(expected: str) -> str:
    """Returns the end of the scheduler's sentence about one node; some reasons are of no node."""
    if not expected or expected.startswith(("scheduling", "persistentvolumeclaim", "pod has")):
        return expected
    return f"1 {expected}."


@pytest.mark.parametrize(("one", "running", "spec", "expected"), ONE_NODE.values(), ids=ONE_NODE)
def test_whether_a_node_takes_a_pod(one: Node, running: tuple[SchedulingPod, ...], spec: JSON, expected: str) -> None:
    """The first filter that refuses the pod says why, in kube-scheduler's words."""
    state = cluster(one, pods=(*running, pod("web-1", **spec)), pools=())
    assert unplaced_reason(state) == of_one_node(expected)


def _claim(name: str, **spec: Any) -> PersistentVolumeClaim:
    return codec.convert(PersistentVolumeClaim, {"metadata": {"name": name, "namespace": "shop"}, "spec": spec})


def _volume(name: str, zone: str = "", labels: JSON | None = None) -> SchedulingVolumeObject:
    terms = [expression(ZONE, "In", zone)]
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}} if zone else {}
    spec = {"csi": {"driver": "csi.example.com", "volumeHandle": name}, **affinity}
    return codec.convert(SchedulingVolumeObject, {"metadata": {"name": name, "labels": labels or {}}, "spec": spec})


def _class(mode: str, provisioner: str = "csi.example.com", **more: Any) -> StorageClass:
    raw = {"metadata": {"name": "fast"}, "volumeBindingMode": mode, "provisioner": provisioner, **more}
    return codec.convert(StorageClass, raw)


LATE = "WaitForFirstConsumer"
NONE_ATTACHED = codec.convert(
    CsiNode,
    {"metadata": {"name": "n"}, "spec": {"drivers": [{"name": "csi.example.com", "allocatable": {"count": 0}}]}},
)
ONLY_Y = [{"matchLabelExpressions": [{"key": ZONE, "values": ["y"]}]}]
VOLUMES: dict[str, tuple[JSON, str]] = {
    "a volume in the node's zone": (
        {"claims": (_claim("data", volumeName="v"),), "volumes": (_volume("v", "x"),)},
        "",
    ),
    "a volume in another zone": (
        {"claims": (_claim("data", volumeName="v"),), "volumes": (_volume("v", "y"),)},
        "node(s) didn't match PersistentVolume's node affinity",
    ),
    "a volume whose label names another zone": (
        {"claims": (_claim("data", volumeName="v"),), "volumes": (_volume("v", labels={ZONE: "y"}),)},
        "node(s) had no available volume zone",
    ),
    "a volume of several zones by the old label": (
        {
            "claims": (_claim("data", volumeName="v"),),
            "volumes": (_volume("v", labels={"failure-domain.beta.kubernetes.io/zone": "y__x"}),),
        },
        "",
    ),
    "a claim that is not bound in time": (
        {"claims": (_claim("data", storageClassName="fast"),), "classes": (_class("Immediate"),)},
        "pod has unbound immediate PersistentVolumeClaims",
    ),
    "a claim whose volume is made late": (
        {"claims": (_claim("data", storageClassName="fast"),), "classes": (_class(LATE),)},
        "",
    ),
    "a claim whose volume is made in another zone": (
        {"claims": (_claim("data", storageClassName="fast"),), "classes": (_class(LATE, allowedTopologies=ONLY_Y),)},
        "node(s) didn't find available persistent volumes to bind",
    ),
    "nobody makes a volume, and none is free": (
        {
            "claims": (_claim("data", storageClassName="fast"),),
            "classes": (_class(LATE, "kubernetes.io/no-provisioner"),),
        },
        "node(s) didn't find available persistent volumes to bind",
    ),
    "more volumes than the driver attaches, one of them still to be made": (
        {
            "claims": (_claim("data", storageClassName="fast"),),
            "classes": (_class(LATE),),
            "csi_nodes": (NONE_ATTACHED,),
        },
        "node(s) exceed max volume count",
    ),
    "more volumes than the driver attaches": (
        {
            "claims": (_claim("data", volumeName="v"),),
            "volumes": (_volume("v"),),
            "csi_nodes": (NONE_ATTACHED,),
        },
        "node(s) exceed max volume count",
    ),
}


@pytest.mark.parametrize(("fields", "expected"), VOLUMES.values(), ids=VOLUMES)
def test_where_volumes_let_a_pod_be(fields: JSON, expected: str) -> None:
    """Node affinity and zones of volumes, classes and limits of drivers keep a pod from a node."""
    state = cluster(node("n", zone="x"), pods=(pod("web-1", volumes=claiming("data")),), pools=(), **fields)
    assert unplaced_reason(state) == of_one_node(expected)


def test_one_pod_at_a_time() -> None:
    """A claim of ReadWriteOncePod keeps a second pod from every node."""
    claims = (_claim("data", volumeName="v", accessModes=["ReadWriteOncePod"]),)
    pods = (pod("web-0", "n", volumes=claiming("data")), pod("web-1", volumes=claiming("data")))
    state = cluster(PLAIN, pods=pods, pools=(), claims=claims, volumes=(_volume("v"),))
    assert unplaced_reason(state) == of_one_node(
        "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
    )
