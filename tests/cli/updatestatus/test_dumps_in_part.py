"""`upgrade status --dump` of a dump that lacks kinds: each is reported of where it would have said something."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.factories import condition_json

from kubekit.api import codec
from runup.api.config_v1 import ClusterOperator, ClusterVersion
from runup.updatestatus.control.status_files import dump, newest_transition
from runup.updatestatus.control.status_reading import StatusReading, parse_moment

JSON = dict[str, Any]
SINCE = "2026-01-14T09:30:00Z"
REAL_NOW = datetime(2026, 1, 15, tzinfo=UTC)


def _object(kind: str, name: str, group: str = "config.openshift.io/v1", **more: Any) -> JSON:
    metadata = {"name": name, **more.pop("metadata", {})}
    return {"apiVersion": group, "kind": kind, "metadata": metadata, **more}


def _version(progressing: str) -> JSON:
    done = {"version": "5.0.0", "image": "i", "state": "Completed", "verified": True}
    status = {
        "desired": {"version": "5.0.0", "image": "i"},
        "history": [{**done, "startedTime": SINCE, "completionTime": SINCE}],
        "conditions": [condition_json("Progressing", progressing), condition_json("Failing", "False")],
    }
    return _object("ClusterVersion", "version", spec={"clusterID": "the-id"}, status=status)


def _pool_with(name: str, updated: int) -> JSON:
    return _object(
        "MachineConfigPool",
        name,
        "machineconfiguration.openshift.io/v1",
        spec={"nodeSelector": {"matchLabels": {"x": name}}},
        status={"machineCount": 3, "updatedMachineCount": updated},
    )


def _draining_node(name: str, desired: str, applied: str) -> JSON:
    names = ("machineconfiguration.openshift.io/desiredDrain", "machineconfiguration.openshift.io/lastAppliedDrain")
    return _object("Node", name, "v1", metadata={"annotations": dict(zip(names, (desired, applied), strict=True))})


OTHERS_NODE = _object("Node", "n", "config.openshift.io/v1")
MACHINE_CONFIG = _object(
    "ClusterOperator",
    "machine-config",
    status={"conditions": [condition_json("Available", "True"), condition_json("Degraded", "False")]},
)
ETCD = {**MACHINE_CONFIG, "metadata": {"name": "etcd"}}
QUIET = _draining_node("quiet", "uncordon-1", "uncordon-1")
DRAINED = _draining_node("drained", "drain-1", "drain-1")
DRAINING = _draining_node("draining", "drain-1", "uncordon-1")
CONFIGURATION = _object("MachineConfig", "rendered-a", "machineconfiguration.openshift.io/v1")
POD = _object("Pod", "p", "v1", metadata={"namespace": "shop"}, spec={"nodeName": "draining"}, status={})
BUDGET = _object("PodDisruptionBudget", "b", "policy/v1", metadata={"namespace": "shop"}, spec={}, status={})
DEPLOYMENT = _object(
    "Deployment", "machine-config-operator", "apps/v1", metadata={"namespace": "m"}, spec={}, status={}
)
OTHER_DEPLOYMENT = {**DEPLOYMENT, "metadata": {"name": "console", "namespace": "c"}}

PENDING = "Pending Pods"
BUDGETS = "PodDisruptionBudgets"
ON_NODES = "Pods of nodes that are being drained"
OPERATOR = "The Deployment machine-config-operator"
NODES = "Nodes"


def _found(folder: Path, *objects: JSON) -> StatusReading:
    (folder / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return dump(str(folder), REAL_NOW, None)


def _strings(value: Any, key: str) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(text := value.get(key), str):
            yield text
        for each in value.values():
            yield from _strings(each, key)
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each, key)


def _missing(found: StatusReading) -> set[str]:
    """What the report says could not be read."""
    summaries = _strings(codec.decode(dict, codec.encode(found.obj)), "summary")
    return {text.partition(" could not be read")[0] for text in summaries if " could not be read" in text}


MOVING = _version("True")
STILL = _version("False")
ROWS: dict[str, tuple[tuple[JSON, ...], set[str]]] = {
    "nothing moves": ((STILL, _pool_with("worker", 3), QUIET), set()),
    "the control plane moves": ((MOVING, _pool_with("worker", 3), QUIET), {PENDING, OPERATOR}),
    "a pool moves": ((STILL, _pool_with("worker", 2), QUIET), {PENDING, OPERATOR}),
    "the second of two pools moves": ((STILL, _pool_with("a", 3), _pool_with("b", 0), QUIET), {PENDING, OPERATOR}),
    "a pool has more updated machines than machines": ((STILL, _pool_with("worker", 4), QUIET), set()),
    "pods are there, the Deployment is another": (
        (MOVING, _pool_with("worker", 3), QUIET, POD, OTHER_DEPLOYMENT),
        {OPERATOR},
    ),
    "pods and the Deployment are there": ((MOVING, _pool_with("worker", 3), QUIET, POD, DEPLOYMENT), set()),
    "a node is drained": ((STILL, _pool_with("worker", 3), DRAINED), set()),
    "a node is being drained": ((STILL, _pool_with("worker", 3), QUIET, DRAINING), {ON_NODES, BUDGETS}),
    "a node is being drained, and pods are there": ((STILL, _pool_with("worker", 3), DRAINING, POD), {BUDGETS}),
    "a node is being drained, and budgets are there": ((STILL, _pool_with("worker", 3), DRAINING, BUDGET), {ON_NODES}),
    "the only node is another group's": ((STILL, _pool_with("worker", 3), OTHERS_NODE), {NODES}),
}


@pytest.mark.parametrize("name", ROWS)
def test_what_a_dump_lacks(name: str, tmp_path: Path) -> None:
    """The gap is reported only while the missing kind matters."""
    objects, missing = ROWS[name]
    assert _missing(_found(tmp_path, *objects, MACHINE_CONFIG, CONFIGURATION)) == missing


def test_a_cluster_without_a_machine_config_operator_misses_no_deployment(tmp_path: Path) -> None:
    """Its ClusterOperator would be among the others."""
    assert _missing(_found(tmp_path, MOVING, ETCD, _pool_with("worker", 3), QUIET, CONFIGURATION)) == {PENDING}


def test_a_report_that_was_never_written_is_none(tmp_path: Path) -> None:
    """The objects are asked instead."""
    begun = _object("UpdateStatus", "cluster", "update.openshift.io/v1alpha1")
    found = _found(tmp_path, begun, MOVING, ETCD, _pool_with("worker", 3), QUIET, CONFIGURATION)
    assert _missing(found) == {PENDING}
    assert found.now_ns == parse_moment(f"{SINCE[:-1]}.000368Z")


INFRASTRUCTURE = _object(
    "Infrastructure",
    "cluster",
    status={"infrastructureName": "harbour-x7k", "apiServerURL": "https://api.harbour.example:6443"},
)


@pytest.mark.parametrize(
    ("more", "name"),
    [
        pytest.param((), "the-id", id="its ID"),
        pytest.param((INFRASTRUCTURE,), "harbour-x7k (api.harbour.example)", id="its infrastructure"),
    ],
)
def test_what_the_cluster_is_called(tmp_path: Path, more: tuple[JSON, ...], name: str) -> None:
    """Uses the best report in the dump, whichever informer wrote it."""
    objects = (STILL, ETCD, _pool_with("worker", 3), QUIET, *more)
    assert _found(tmp_path, *objects).cluster == name
    written = _object("UpdateStatus", "cluster", "update.openshift.io/v1alpha1", status={"conditions": []})
    found = _found(tmp_path, *objects, written)
    assert (found.cluster, [each["type"] for each in found.obj["status"]["conditions"]]) == (name, ["Current"])


def test_the_time_of_objects_that_have_none() -> None:
    """The beginning of time: nothing is older than it."""
    assert newest_transition(()) == 0
    assert newest_transition([ClusterVersion()]) == 0


def test_the_time_of_objects_is_their_newest_transition() -> None:
    """Of any condition of any of them."""
    times = (("2026-01-01T00:00:00Z", "2026-01-03T00:00:01Z"), ("2026-01-02T00:00:00Z",))
    found = []
    for each in times:
        conditions = [
            {**condition_json(f"T{number}", "True"), "lastTransitionTime": t} for number, t in enumerate(each)
        ]
        found.append(codec.convert(ClusterOperator, {"status": {"conditions": conditions}}))
    assert newest_transition(found) == parse_moment("2026-01-03T00:00:01Z")


def test_a_kind_of_which_the_dump_has_a_part_is_told_with_its_reason(tmp_path: Path) -> None:
    """A list that was cut off may lack the one node that matters."""
    nodes = {"apiVersion": "v1", "kind": "NodeList", "metadata": {"continue": "x"}, "items": [QUIET]}
    (tmp_path / "nodes.json").write_text(json.dumps(nodes))
    found = _found(tmp_path, _version("True"), ETCD, MACHINE_CONFIG, _pool_with("worker", 1))
    why = "the dump has only a part of the nodes: whether there were others is not known"
    shown = json.dumps(found.obj)
    assert "Nodes are known in part, so part of the status is unknown" in shown
    assert why in shown


def test_an_event_of_a_dump_shows_who_refuses_writes(tmp_path: Path) -> None:
    """Other events, of which a cluster has thousands, are skipped."""
    refused = _object(
        "Event",
        "e",
        "v1",
        metadata={"namespace": "openshift-dns"},
        involvedObject={"kind": "ReplicaSet", "namespace": "openshift-dns", "name": "dns-5f"},
        reason="FailedCreate",
        message='Error creating: admission webhook "v.example.com" denied the request: no',
        firstTimestamp=SINCE,
        lastTimestamp=SINCE,
    )
    objects = (MOVING, _pool_with("worker", 3), QUIET, POD, DEPLOYMENT, MACHINE_CONFIG, CONFIGURATION, refused)
    found = _found(tmp_path, *objects, {**refused, "metadata": {"name": "f"}, "reason": "Pulled"})
    summaries = list(_strings(codec.decode(dict, codec.encode(found.obj)), "summary"))
    assert any("webhook v.example.com denies requests (ReplicaSet openshift-dns/dns-5f)" in text for text in summaries)
