"""RuntimeClasses on each server: what they may be, and what they add to a pod."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest
from tests.contract.api import JSON, TABLE, Api

CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
OVERHEAD = {"cpu": "250m", "memory": "64Mi"}
Make = Callable[..., JSON]


@pytest.fixture
def make(api: Api) -> Iterator[Make]:
    """Makes RuntimeClasses, which are gone when the test ends."""
    names: list[str] = []

    def made(**fields: object) -> JSON:
        name = f"r-{uuid.uuid4().hex[:8]}"
        names.append(name)
        found: JSON = api.post(CLASSES, {"metadata": {"name": name}, "handler": "runc", **fields}).ok()
        return found

    yield made
    for name in names:
        api.delete(f"{CLASSES}/{name}")


def pod_of_class(name: str, **spec: object) -> JSON:
    """A pod of that class."""
    containers = [{"name": "c", "image": "i"}]
    return {"metadata": {"name": "p"}, "spec": {"containers": containers, "runtimeClassName": name, **spec}}


def test_a_class_keeps_its_handler(api: Api, make: Make) -> None:
    """A label of DNS, for ever; what kubectl prints of it."""
    path = f"{CLASSES}/{make()['metadata']['name']}"
    changed = api.merge(path, {"handler": "crun"})
    assert (changed.code, 'handler: Invalid value: "crun": field is immutable' in changed.message) == (422, True)
    for handler, why in (("no.label", "must not contain dots"), ("No", "a lowercase RFC 1123 label must consist of")):
        bad = api.post(CLASSES, {"metadata": {"name": "r"}, "handler": handler})
        assert (bad.code, f'handler: Invalid value: "{handler}": {why}' in bad.message) == (422, True)
    table = api.get(path, accept=TABLE).ok()
    assert [each["name"] for each in table["columnDefinitions"]] == ["Name", "Handler", "Age"]
    assert table["rows"][0]["cells"][1] == "runc"


def test_what_a_class_adds_to_a_pod(api: Api, namespace: str, make: Make) -> None:
    """Its overhead, its node selector next to the pod's, its tolerations."""
    toleration = {"key": "gpu", "operator": "Exists"}
    scheduling = {"nodeSelector": {"kind": "fast"}, "tolerations": [toleration]}
    name = make(overhead={"podFixed": OVERHEAD}, scheduling=scheduling)["metadata"]["name"]
    made = api.post(f"/api/v1/namespaces/{namespace}/pods", pod_of_class(name, nodeSelector={"zone": "a"})).ok()
    assert made["spec"]["overhead"] == OVERHEAD
    assert made["spec"]["nodeSelector"] == {"zone": "a", "kind": "fast"}
    assert toleration in made["spec"]["tolerations"]


REFUSED = {
    "a class that is not there": (
        {},
        {"runtimeClassName": "nowhere"},
        'pod rejected: RuntimeClass "nowhere" not found',
    ),
    "another overhead": (
        {"overhead": {"podFixed": OVERHEAD}},
        {"overhead": {"cpu": "1"}},
        "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
    ),
    "an overhead that the class has not": (
        {},
        {"overhead": {"cpu": "1"}},
        "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
    ),
    "another node": (
        {"scheduling": {"nodeSelector": {"kind": "fast"}}},
        {"nodeSelector": {"kind": "slow"}},
        "conflict: runtimeClass.scheduling.nodeSelector[kind] = fast; pod.spec.nodeSelector[kind] = slow",
    ),
}


@pytest.mark.parametrize(("fields", "spec", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_which_pods_are_refused(api: Api, namespace: str, make: Make, fields: JSON, spec: JSON, why: str) -> None:
    """With 403, in the plugin's words."""
    name = make(**fields)["metadata"]["name"]
    refused = api.post(f"/api/v1/namespaces/{namespace}/pods", pod_of_class(name, **spec))
    assert refused.failure == (403, "Forbidden", f'pods "p" is forbidden: {why}')
