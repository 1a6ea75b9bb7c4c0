"""What is kept of a cluster, and which changes tell somebody."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace
from tests import factories

from kubekit.api.core_v1 import Node, Taint
from kubekit.api.meta_v1 import Object, ObjectMeta
from runup.api.config_v1 import ClusterVersion, ClusterVersionStatus, Release
from runup.api.machineconfig_v1 import MachineConfig
from runup.rules.machine_config import STATE
from runup.updatestatus.control.caches import (
    Caches,
    trim_machine_config,
    trim_node,
    trim_version,
)
from runup.updatestatus.decide.nodes import RELEASE_VERSION


def of_version(node: Node, version: str, **changes: Any) -> Node:
    """The node with another resourceVersion and changed metadata."""
    return replace(node, metadata=replace(node.metadata, resource_version=version, **changes))


def test_of_a_node_only_what_counts_is_kept() -> None:
    """All labels, the annotations of the daemon, five conditions, whether pods may come, and since when not."""
    node = factories.node(annotations={STATE: "Done", "k8s.ovn.org/node-subnets": "x" * 4096}, unschedulable=True)
    conditions = (*node.status.conditions, factories.condition("FrequentKubeletRestart", "False"))
    taints = (Taint(key="gpu"), Taint(key="node.kubernetes.io/unschedulable", time_added=datetime.now(UTC)))
    node = replace(node, spec=replace(node.spec, taints=taints))
    kept = trim_node(replace(node, status=replace(node.status, conditions=conditions)))
    assert kept.metadata.annotations == {STATE: "Done"}
    assert kept.metadata.labels == node.metadata.labels
    assert [condition.type for condition in kept.status.conditions] == ["Ready"]
    assert (kept.spec.unschedulable, kept.spec.taints) == (True, taints[1:])
    assert kept.status.node_info.kubelet_version == ""


def test_equal_texts_of_many_nodes_are_kept_once() -> None:
    """The second node's label is the first one's object."""
    first, second = (trim_node(factories.node(name, annotations={STATE: "".join(["Do", "ne"])})) for name in "ab")
    assert first.metadata.annotations[STATE] is second.metadata.annotations[STATE]
    assert first.status.conditions[0].message is sys.intern("kubelet is posting ready status")


def test_of_a_machine_config_the_release_is_kept() -> None:
    """Its annotation, if it has one."""
    metadata = ObjectMeta(name="rendered", annotations={RELEASE_VERSION: "5.0.0", "other": "x"}, labels={"a": "b"})
    kept = trim_machine_config(MachineConfig(metadata=metadata))
    assert (kept.metadata.annotations, kept.metadata.labels) == ({RELEASE_VERSION: "5.0.0"}, {})


def test_updates_on_offer_are_not_kept() -> None:
    """They change often and say nothing about the one under way."""
    offered = ClusterVersionStatus(desired=Release(version="5.0.0"), available_updates=(Release(version="5.1.0"),))
    kept = trim_version(ClusterVersion(status=offered))
    assert kept.status.available_updates is None
    assert kept.status.desired.version == "5.0.0"


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        pytest.param({}, 0, id="a heartbeat"),
        pytest.param({"annotations": {STATE: "Done", "k8s.ovn.org/x": "y"}}, 0, id="another component's annotation"),
        pytest.param({"annotations": {STATE: "Working"}}, 1, id="the daemon's annotation"),
        pytest.param({"labels": {"node-role.kubernetes.io/infra": ""}}, 1, id="a label that pools may select"),
    ],
)
def test_only_changes_that_count_are_told(changes: dict[str, Any], shown: int) -> None:
    """5,000 kubelets report every few minutes: their heartbeats must not lead to evaluations."""
    caches = Caches()
    node = factories.node(annotations={STATE: "Done"}, metadata={"resourceVersion": "1"})
    caches.nodes.replace([], "1")
    caches.nodes.put(node)
    heard: list[int] = []
    caches.on_change(lambda: heard.append(1))
    heard.clear()
    caches.nodes.put(of_version(node, "2", **changes))
    assert len(heard) == shown
    kept = caches.nodes.all()[0]
    assert kept.metadata.resource_version == "2"


def test_a_kind_that_appears_or_goes_is_told() -> None:
    """Deleted objects and kinds that become unreadable change what can be said."""
    caches = Caches()
    caches.nodes.replace([factories.node()], "1")
    heard: list[int] = []
    caches.on_change(lambda: heard.append(1))
    heard.clear()
    caches.nodes.remove(factories.node())
    assert (len(heard), len(caches.nodes.all())) == (1, 0)
    caches.nodes.fail("not allowed")
    assert len(heard) == 2
    caches.nodes.recover()
    assert len(heard) == 3


def test_what_is_waited_for_is_named_until_all_is_known() -> None:
    """A kind that cannot be read is known to be so, and does not hold up the others."""
    caches = Caches()
    left = [*caches.all()]
    while left:
        assert caches.waiting() in {cache.kind.__name__ for cache in left}
        cache = left.pop()
        if cache.kind is MachineConfig:
            cache.fail("the server has no API machineconfigs")
        else:
            cache.replace([], "1")
        assert caches.waiting() != cache.kind.__name__ or cache.kind in {other.kind for other in left}
    assert caches.waiting() == ""


def test_metadata_alone_fills_the_cache_of_machine_configs() -> None:
    """They are followed as PartialObjectMetadata, of the type Object."""
    caches = Caches()
    caches.configs.put(Object(metadata=ObjectMeta(name="m", annotations={RELEASE_VERSION: "5.0.0"})))  # type: ignore[arg-type]
    assert isinstance(caches.configs.all()[0], MachineConfig)
