"""The time at which a dump is evaluated: recorded, shown by its objects, or unknown."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.factories import node_json, pod_json

from runup.evaluation.dumps import evaluate_dump
from runup.evaluation.request import RequestedUpdate

JSON = dict[str, Any]
TODAY = datetime(2026, 11, 30, tzinfo=UTC)
# Deleted, with 30 s to end, on the day before the heartbeat.
STUCK = pod_json("late", namespace="shop")
STUCK["metadata"]["deletionTimestamp"] = "2025-10-24T07:00:00Z"
HEARTBEAT = "2025-10-25T07:00:00Z"


def node(**fields: Any) -> JSON:
    """A node whose kubelet reported at that time."""
    made = node_json(kubelet="v1.34.2")
    for condition in made["status"]["conditions"]:
        condition |= {"lastTransitionTime": "2025-01-01T00:00:00Z", **fields}
    return made


def write(folder: Path, *objects: JSON) -> Path:
    """A dump of lists as `kubectl get -o json` prints them."""
    folder.mkdir()
    lists: dict[str, list[JSON]] = {"nodes": [], "pods": [], "events": [], "leases": [], "namespaces": [NAMESPACE]}
    for each in objects:
        lists[f"{each['kind'].lower()}s"].append(each)
    for name, items in lists.items():
        (folder / f"{name}.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return folder


NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
LEASE = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a", "namespace": "kube-system"}}
EVENT = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "a", "namespace": "shop"}}


@pytest.mark.parametrize(
    ("objects", "moment"),
    [
        pytest.param((node(lastHeartbeatTime=HEARTBEAT),), HEARTBEAT, id="a heartbeat"),
        pytest.param(
            (node(), {**LEASE, "spec": {"renewTime": "2025-10-25T07:00:00.123456Z"}}), HEARTBEAT, id="a Lease"
        ),
        pytest.param((node(), {**EVENT, "lastTimestamp": HEARTBEAT}), HEARTBEAT, id="an Event"),
        pytest.param((node(), {**EVENT, "series": {"lastObservedTime": HEARTBEAT}}), HEARTBEAT, id="a series"),
        pytest.param(
            ({**node(), "metadata": {"name": "n", "managedFields": [{"time": HEARTBEAT}]}},), HEARTBEAT, id="a write"
        ),
        pytest.param(
            (node(lastHeartbeatTime=HEARTBEAT), {**EVENT, "lastTimestamp": "2024-01-01T00:00:00Z"}),
            HEARTBEAT,
            id="the newest of several",
        ),
    ],
)
def test_a_dump_is_evaluated_at_the_newest_time_in_it(tmp_path: Path, objects: tuple[JSON, ...], moment: str) -> None:
    dump = write(tmp_path / "dump", *objects, STUCK)
    evaluated = evaluate_dump(dump, RequestedUpdate(target="1.35.0"), TODAY)
    assert evaluated.report is not None
    assert evaluated.report.started_time.strftime("%Y-%m-%dT%H:%M:%SZ") == moment
    assert any(moment in note for note in evaluated.notes)
    assert "StuckTerminating" in {risk.name for risk in evaluated.report.risks}


def test_a_change_does_not_date_a_plain_cluster(tmp_path: Path) -> None:
    """Heartbeats count. Other changes count only with a ClusterVersion, whose newest transition is the least."""
    changed = {**node(lastTransitionTime="2026-11-24T07:00:00Z"), "metadata": {"name": "changed"}}
    dump = write(tmp_path / "dump", node(lastHeartbeatTime=HEARTBEAT), changed)
    evaluated = evaluate_dump(dump, RequestedUpdate(target="1.35.0"), TODAY)
    assert evaluated.report is not None
    assert evaluated.report.started_time.strftime("%Y-%m-%dT%H:%M:%SZ") == HEARTBEAT


def test_without_a_time_what_depends_on_it_is_unknown(tmp_path: Path) -> None:
    """The pod is late at every time after its deletion, and nothing shows that the dump is from after it."""
    pressed = node_json("b", kubelet="v1.34.2", conditions={"DiskPressure": "True"})
    evaluated = evaluate_dump(write(tmp_path / "dump", node(), pressed, STUCK), RequestedUpdate(target="1.35.0"), TODAY)
    assert evaluated.report is not None
    applies = {risk.name: risk.applies for risk in evaluated.report.risks}
    assert applies["StuckTerminatingUnknown"] == "Unknown"
    assert "StuckTerminating" not in applies
    assert applies["NodePressure"] == "True"
    assert "The dump shows no time, so checks that depend on the time are unknown." in evaluated.notes


def test_names_the_field_of_a_cluster_version_that_cannot_be_decoded(tmp_path: Path) -> None:
    """`spec` is an object (config.openshift.io/v1). The cluster has a problem, and failed when it was tried."""
    identity = {"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "metadata": {"name": "version"}}
    dump = write(tmp_path / "dump", node())
    listed = {"apiVersion": "v1", "kind": "List", "items": [{**identity, "spec": 7}]}
    (dump / "clusterversions.json").write_text(json.dumps(listed))
    evaluated = evaluate_dump(dump, RequestedUpdate(target="4.19.10"), TODAY)
    assert (evaluated.report, evaluated.failed_at) == (None, TODAY)
    assert all(part in evaluated.problem for part in ("clusterversions.json", "ClusterVersion", "$.spec"))
