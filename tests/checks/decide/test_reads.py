"""Which kinds a check can read does not depend on what was imported before, and what is kept of what it reads."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest
from tests.factories import node

from kubekit.api import codec
from kubekit.api.core_v1 import Node
from kubekit.api.meta_v1 import Object
from kubekit.api.pod_parts import ListedPod
from kubekit.api.scheme import Resource, resource_of
from runup.checks.catalogue.shared.pods import PODS
from runup.checks.decide.reads import kept_form

SCRIPT = """
from runup.checks.decide import reads
import runup.api
from kubekit.api.scheme import RESOURCES
print(*(resource for resource in RESOURCES.values() if not reads.has_type(resource)))
"""


def test_every_kind_of_the_scheme_is_known_to_whoever_imports_reads_first() -> None:
    """A fresh interpreter: a table made before OpenShift's kinds are added says that no check may read them."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def listed(text: str) -> ListedPod:
    """A pod of one workload, as a list has it, under the name `text`."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "1"}
    metadata = {"name": text, "namespace": "shop", "labels": {"app": "web"}, "ownerReferences": [owner]}
    return codec.convert(ListedPod, {"metadata": metadata, "spec": {"nodeName": "worker-0"}})


@dataclass(frozen=True)
class Twins:
    """Two objects as they are decoded, and the parts of what is kept of them that are one object."""

    resource: Resource
    objects: tuple[Object, Object]
    shared: tuple[str, ...]


MADE = {"labels": {"topology.kubernetes.io/zone": "zone-of-a-rack"}}
TWINS = (
    Twins(
        resource_of(Node),
        (node("worker-0", **MADE), node("worker-1", **MADE)),
        ("status.node_info", "status.conditions.0", "status.allocatable"),
    ),
    Twins(PODS, (listed("web-1"), listed("web-2")), ("metadata.traits", "metadata.owner_references", "spec", "status")),
)


def part_of(obj: Any, path: str) -> Any:
    """The value at a dotted path."""
    for step in path.split("."):
        obj = obj[int(step)] if step.isdigit() else getattr(obj, step)
    return obj


@pytest.mark.parametrize("twins", TWINS, ids=lambda twins: twins.resource.kind)
def test_what_many_objects_have_in_common_is_kept_once(twins: Twins) -> None:
    """Each decoded on its own, as the API server's lists are."""
    keep = kept_form(twins.resource)
    assert keep is not None
    type_ = type(twins.objects[0])
    first, second = (keep(codec.decode(type_, codec.encode(obj))) for obj in twins.objects)
    assert [path for path in twins.shared if part_of(first, path) is not part_of(second, path)] == []


def test_a_node_that_is_kept_equals_the_decoded_one() -> None:
    """Its heartbeat and all."""
    decoded = codec.decode(Node, codec.encode(node(ready="Unknown", kubelet="v1.35.2", labels={"a": "b"})))
    keep = kept_form(resource_of(Node))
    assert keep is not None and keep(decoded) == decoded
