"""What the API server accepts as an UpdateStatus: upstream's cases for its CRD, and our additions."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.updatestatus.decide import builders as b
from tests.updatestatus.decide.hosted import hosted_objects as h
from tests.updatestatus.decide.test_assessment import SCHEMA, schema

from kubekit.api import codec
from runup.updatestatus.decide.assess import assess
from runup.updatestatus.decide.read_status import parts_of

JSON = dict[str, Any]
AT = "2026-01-01T00:00:00Z"
CLUSTER_VERSION = {"group": "config.openshift.io", "resource": "clusterversions", "name": "version"}
POOL = {"group": "machineconfiguration.openshift.io", "resource": "machineconfigpools", "name": "worker"}
UPDATING = {"type": "Updating", "status": "True", "reason": "Progressing", "lastTransitionTime": AT}


def insight(type_: str, member: str, content: JSON, uid: str = "x") -> JSON:
    """One insight."""
    return {"uid": uid, "acquiredAt": AT, "type": type_, member: content}


CV: JSON = {
    "resource": CLUSTER_VERSION,
    "assessment": "Progressing",
    "completion": 3,
    "startedAt": AT,
    "versions": {"previous": {"version": "4.14.0"}, "target": {"version": "4.14.1"}},
    "conditions": [UPDATING],
}
HEALTH: JSON = {
    "scope": {"type": "ControlPlane", "resources": [CLUSTER_VERSION]},
    "impact": {"level": "Warning", "type": "Update Stalled", "summary": "s"},
    "remediation": {"reference": "https://example.com"},
}
SAMPLES: dict[str, JSON] = {
    "ClusterVersion": insight("ClusterVersion", "clusterVersion", CV),
    "ClusterOperator": insight(
        "ClusterOperator",
        "clusterOperator",
        {"name": "etcd", "resource": {"group": "config.openshift.io", "resource": "clusteroperators", "name": "etcd"}},
    ),
    "MachineConfigPool": insight(
        "MachineConfigPool",
        "machineConfigPool",
        {
            "name": "worker",
            "resource": POOL,
            "scopeType": "WorkerPool",
            "assessment": "Pending",
            "completion": 0,
            "summaries": [{"type": "Total", "count": 3}],
        },
    ),
    "Node": insight(
        "Node",
        "node",
        {
            "name": "n",
            "resource": {"resource": "nodes", "name": "n"},
            "poolResource": POOL,
            "scopeType": "WorkerPool",
            "estToComplete": "10m0s",
        },
    ),
    "Health": insight("Health", "health", HEALTH),
}


def faults(status: JSON | None, **changes: Any) -> list[str]:
    """What the server says to an object with this status."""
    obj: JSON = {
        "apiVersion": "update.openshift.io/v1alpha1",
        "kind": "UpdateStatus",
        "metadata": {"name": "cluster"},
        "spec": {},
        **changes,
    }
    if status is not None:
        obj["status"] = status
    return [str(error) for error in SCHEMA.validate(SCHEMA.prune(obj)[0])]


def control_plane(*insights: JSON) -> JSON:
    """A status with these insights of the control plane."""
    return {"controlPlane": {"resource": CLUSTER_VERSION, "informers": [{"name": "usc", "insights": list(insights)}]}}


def workers(*insights: JSON, **changes: Any) -> JSON:
    """A status with these insights of a pool."""
    pool = {"name": "worker", "resource": POOL, "informers": [{"name": "usc", "insights": list(insights)}], **changes}
    return {"workerPools": [pool]}


def test_an_empty_object_is_one() -> None:
    """Without status, and without spec it is none."""
    assert faults(None) == []
    assert faults({}) == []
    assert faults(None, spec=None) != []


def test_there_is_one_only() -> None:
    """By its name."""
    assert any("must be named cluster" in fault for fault in faults(None, metadata={"name": "other"}))


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
def test_each_insight_is_accepted_where_it_belongs(sample: JSON) -> None:
    """The control plane has all types, pools three."""
    assert faults(control_plane(sample)) == []
    in_pools = sample["type"] in ("MachineConfigPool", "Node", "Health")
    assert (faults(workers(sample)) == []) is in_pools


@pytest.mark.parametrize("type_", SAMPLES)
def test_the_type_names_the_member(type_: str) -> None:
    """Neither another member nor none."""
    sample = copy.deepcopy(SAMPLES["Health" if type_ != "Health" else "Node"])
    sample["type"] = type_
    assert any("must be set if and only if type is" in fault for fault in faults(control_plane(sample)))
    bare = {key: SAMPLES[type_][key] for key in ("uid", "acquiredAt", "type")}
    assert any(f"if and only if type is {type_}" in fault for fault in faults(control_plane(bare)))


INSTALLATION = [{"key": "Installation"}]


@pytest.mark.parametrize(
    ("previous", "target", "fault"),
    [
        pytest.param({"version": "<none>", "metadata": INSTALLATION}, {"version": "4.14.1"}, "", id="an installation"),
        pytest.param({"version": "4.14.0", "metadata": [{"key": "Partial"}]}, {"version": "4.14.1"}, "", id="partial"),
        pytest.param({"version": "<none>"}, {"version": "4.14.1"}, "iff marked with", id="none without a mark"),
        pytest.param(
            {"version": "4.14.0", "metadata": INSTALLATION}, {"version": "4.14.1"}, "iff marked with", id="a mark only"
        ),
        pytest.param({"version": "4.14.0"}, {"version": "<none>"}, "target version must not be", id="no target"),
        pytest.param(
            {"version": "4.14.0"},
            {"version": "4.14.1", "metadata": INSTALLATION},
            "target version must not be",
            id="a marked target",
        ),
    ],
)
def test_versions_of_an_installation(previous: JSON, target: JSON, fault: str) -> None:
    """Previous is none if and only if it is marked."""
    sample = insight("ClusterVersion", "clusterVersion", {**CV, "versions": {"previous": previous, "target": target}})
    found = faults(control_plane(sample))
    assert [fault in each for each in found] == ([True] if fault else [])


def _set(path: str, value: Any) -> Callable[[JSON], None]:
    def change(status: JSON) -> None:
        *parents, last = path.split(".")
        found: Any = status
        for name in parents:
            found = found[int(name)] if name.isdigit() else found[name]
        found[last] = value

    return change


INSIGHT = "controlPlane.informers.0.insights.0"


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        pytest.param(
            _set("controlPlane.resource.resource", "nodes"), "must be a clusterversions", id="another resource"
        ),
        pytest.param(
            _set(
                "controlPlane.poolResource", {"group": "hypershift.openshift.io", "resource": "nodepools", "name": "x"}
            ),
            "must be a machineconfigpools",
            id="a control plane in a node pool",
        ),
        pytest.param(_set(f"{INSIGHT}.uid", "Upper"), "uid", id="a uid in capitals"),
        pytest.param(_set(f"{INSIGHT}.uid", "a" * 64), "uid", id="a long uid"),
        pytest.param(_set(f"{INSIGHT}.health.impact.level", "Fatal"), "level", id="an unknown level"),
        pytest.param(_set(f"{INSIGHT}.health.impact.type", "Doom"), "type", id="an unknown impact"),
        pytest.param(_set(f"{INSIGHT}.health.impact.summary", ""), "summary", id="no summary"),
        pytest.param(_set(f"{INSIGHT}.acquiredAt", "now"), "acquiredAt", id="no time"),
        pytest.param(_set(f"{INSIGHT}.health.scope.resources", [CLUSTER_VERSION] * 17), "resources", id="17 objects"),
    ],
)
def test_what_is_refused(change: Callable[[JSON], None], fault: str) -> None:
    """With the place of the fault."""
    status = control_plane(copy.deepcopy(SAMPLES["Health"]))
    status["controlPlane"]["resource"] = dict(CLUSTER_VERSION)
    assert faults(status) == []
    change(status)
    found = faults(status)
    assert found
    assert fault in " ".join(found)


def test_pools() -> None:
    """A pool is one of machine configs, of a hosted cluster, or a group of nodes, and has the name of its resource."""
    assert faults(workers()) == []
    node_pool = {"group": "hypershift.openshift.io", "resource": "nodepools", "name": "worker", "namespace": "clusters"}
    assert faults(workers(resource=node_pool)) == []
    for group, resource in (("cluster.x-k8s.io", "machinedeployments"), ("karpenter.sh", "nodepools")):
        assert faults(workers(resource={"group": group, "resource": resource, "name": "worker"})) == []
    assert faults(workers(resource={"resource": "nodes", "name": "worker"})) == []
    [fault] = faults(workers(resource={**POOL, "resource": "machinesets"}))
    assert "must be a machineconfigpools.machineconfiguration.openshift.io, nodepools" in fault
    [fault] = faults(workers(name="other"))
    assert "workerPools .name must match .resource.name" in fault


def test_a_hosted_control_plane() -> None:
    """Its resource is a HostedCluster."""
    hosted = {"group": "hypershift.openshift.io", "resource": "hostedclusters", "name": "x", "namespace": "clusters"}
    assert faults({"controlPlane": {"resource": hosted}}) == []


def test_lists_are_keyed() -> None:
    """Two insights of one uid are one too many."""
    assert any("Duplicate value" in fault for fault in faults(control_plane(SAMPLES["Health"], SAMPLES["Node"])))


@pytest.mark.parametrize(
    ("status", "limit"),
    [
        pytest.param(lambda n: control_plane(*[{**SAMPLES["Health"], "uid": f"u{i}"} for i in range(n)]), 128, id="cp"),
        pytest.param(lambda n: workers(*[{**SAMPLES["Health"], "uid": f"u{i}"} for i in range(n)]), 1024, id="pool"),
        pytest.param(
            lambda n: {
                "workerPools": [{"name": f"p{i}", "resource": {**POOL, "name": f"p{i}"}} for i in range(n)],
            },
            32,
            id="pools",
        ),
    ],
)
def test_the_most_that_is_accepted(status: Callable[[int], JSON], limit: int) -> None:
    """And one more is refused."""
    assert faults(status(limit)) == []
    assert faults(status(limit + 1)) != []


@pytest.mark.parametrize("how", ["Replace", "InPlace"])
def test_the_status_of_a_hosted_cluster_fits_its_definition(how: str) -> None:
    """Every field of its insights is in the definition, and no rule is broken."""
    given = h.snapshot(pools=(h.pool(h.updating(), how=how),), operators=(b.operator("dns", h.NEW),))
    status = codec.to_dict(assess(given, None, h.NOW, watched=False))
    document = {
        "apiVersion": "update.openshift.io/v1alpha1",
        "kind": "HostedClusterUpdateStatus",
        "metadata": {"name": "prod", "namespace": "clusters"},
        "spec": {},
        "status": json.loads(json.dumps(status)),
    }
    definition = schema("hostedclusterupdatestatuses")
    pruned, unknown = definition.prune(document)
    assert (definition.validate(pruned), unknown) == ([], ())
    types = {
        insight.type
        for part in parts_of(assess(given, None, h.NOW, watched=False))
        for informer in part.informers
        for insight in informer.insights
    }
    assert types >= {"HostedCluster", "ClusterOperator", "NodePool", "Machine"}
