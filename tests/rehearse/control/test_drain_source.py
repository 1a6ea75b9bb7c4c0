"""What a simulated drain is reported of a cluster: every kind, and by name what it is unknown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.servers import Server

from kubekit.api.core_v1 import Event
from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls, config
from kubekit.kube.client_sync import SyncClient
from runup.rehearse.control.drain_source import OPENSHIFT, read_cluster_objects, read_dump_objects
from runup.rehearse.decide.drain_inputs import KINDS

NODES = Resource(group="", version="v1", kind="Node", plural="nodes", namespaced=False)
NAMES = {kind.resource.kind for kind in KINDS}


@pytest.fixture
def node(server: Server) -> Iterator[str]:
    """The name of a node that is there."""
    server.client.send(calls.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "drained"}}))
    yield "drained"
    server.client.send(calls.delete(NODES, "drained"))


def test_a_cluster_without_cluster_version_has_no_pools(server: Server, node: str) -> None:
    """That is no kind that is missing: nobody lists it."""
    server.remove_cluster_version()
    source = read_cluster_objects(server.client)
    assert (source.openshift, source.notes) == (False, ())
    assert OPENSHIFT not in source.missing
    assert set(source.objects) == NAMES - {OPENSHIFT}
    assert node in {each.metadata.name for each in source.objects["Node"]}


def test_pools_that_a_cluster_should_have_are_missing(server: Server, node: str) -> None:
    """Without them nobody knows how many nodes may be away at once; all else is read."""
    server.set_cluster_version()
    source = read_cluster_objects(server.client)
    assert source.openshift
    assert OPENSHIFT in source.missing
    assert set(source.objects) == NAMES - {OPENSHIFT}
    assert node in {each.metadata.name for each in source.objects["Node"]}


def test_whoever_may_read_nothing_is_told_every_kind(server: Server) -> None:
    """Those of OpenShift, too: whether the cluster is one is unknown. Nothing is taken for empty.

    Of a ClusterVersion a drain needs nothing.
    """
    nobody = replace(config.load(str(server.kubeconfig)), headers=(("Impersonate-User", "nobody"),))
    with SyncClient(nobody) as client:
        source = read_cluster_objects(client)
    assert source.openshift
    assert set(source.missing) == NAMES
    assert all(source.missing.values())
    assert "forbidden" in source.why_no_version
    assert source.objects == {}


def _node_event(reason: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"drained.{reason.lower()}", "namespace": "default"},
        "involvedObject": {"kind": "Node", "name": "drained"},
        "reason": reason,
        "lastTimestamp": "2026-11-21T06:10:00Z",
    }


def test_reads_the_events_of_steps_of_nodes(server: Server, node: str) -> None:
    """Other events are left out; a user who may not list events gets the reason."""
    resource = resource_of(Event)
    reasons = ("Cordon", "RegisteredNode")
    for reason in reasons:
        server.client.send(calls.create(resource, _node_event(reason)))
    try:
        source = read_cluster_objects(server.client, with_events=True)
        assert [event.reason for event in source.node_events] == ["Cordon"]
        assert source.why_no_events == ""
    finally:
        for reason in reasons:
            server.client.send(calls.delete(resource, f"{node}.{reason.lower()}", "default"))
    nobody = replace(config.load(str(server.kubeconfig)), headers=(("Impersonate-User", "nobody"),))
    with SyncClient(nobody) as client:
        assert "forbidden" in read_cluster_objects(client, with_events=True).why_no_events


def test_reads_the_events_of_a_dump(tmp_path: Path) -> None:
    """Those about steps of nodes; of a list that may be a part, others may be missing."""
    objects = (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}},
        _node_event("Reboot"),
        _node_event("RegisteredNode"),
    )
    (tmp_path / "objects.yaml").write_text("\n---\n".join(json.dumps(obj) for obj in objects))
    source = read_dump_objects(tmp_path, with_status=True)
    assert [event.reason for event in source.node_events] == ["Reboot"]
    assert source.why_no_events.startswith("the dump has only a part of the events")


def test_a_dump_with_objects_that_cannot_be_read(tmp_path: Path) -> None:
    """They are named with their kind, of which the others are there; so is a ClusterVersion."""
    objects = (
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "whole"}},
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "broken"}, "spec": 7},
        {"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "metadata": {"name": "version"}, "spec": 7},
    )
    (tmp_path / "objects.yaml").write_text("\n---\n".join(json.dumps(obj) for obj in objects))
    source = read_dump_objects(tmp_path)
    assert [each.metadata.name for each in source.objects["Node"]] == ["whole"]
    assert source.missing["Node"].startswith("broken cannot be read: ")
    assert (source.openshift, source.cluster_version) == (True, None)
    assert source.why_no_version.startswith("it cannot be read: ")
