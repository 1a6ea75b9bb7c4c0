"""The addresses of Services: EndpointSlices and Endpoints of the pods that a Service selects.

The expected values are those of kube-controller-manager (k8s.io/endpointslice/utils.go, pkg/controller/endpoint).
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.kubesandbox.controllers.conftest import Cluster

from kubekit.api import codec
from kubekit.api.meta_v1 import NamespacedName
from kubekit.api.whole_v1 import WholeEndpoints, WholeEndpointSlice, WholePod, WholeService
from kubekit.kube import calls
from kubekit.kube.cache import Cache
from kubekit.kube.request import Call
from kubesandbox.controllers.endpoints import ENDPOINTS, SERVICES, SLICES, ServiceEndpoints, endpoints_of, slices_of
from kubesandbox.controllers.owned_pods import DEPLOYMENTS, PODS

JSON = dict[str, Any]
KEY = NamespacedName("ns", "web")
HTTP = {"name": "http", "containerPort": 8080}


def service(**spec: Any) -> WholeService:
    """Returns a Service `web`, by default of port 80 to the port `http` of its pods."""
    body = {"selector": {"app": "web"}, "clusterIP": "10.0.0.1", "ports": [{"port": 80, "targetPort": "http"}], **spec}
    metadata = {"name": "web", "namespace": "ns", "uid": "s", "labels": {"team": "a"}}
    return codec.convert(WholeService, {"metadata": metadata, "spec": body})


def pod(name: str = "a", *, ready: bool = True, ip: str = "10.1.0.1", **changes: Any) -> WholePod:
    """Returns a pod that the Service selects; `changes` replace spec, status or metadata."""
    metadata = {"name": name, "namespace": "ns", "uid": f"u-{name}", "labels": {"app": "web"}}
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    body: JSON = {
        "metadata": {**metadata, **changes.get("metadata", {})},
        "spec": {"nodeName": "n", "containers": [{"ports": [HTTP]}], **changes.get("spec", {})},
        "status": {"phase": "Running", "conditions": conditions, "podIPs": [{"ip": ip}], **changes.get("status", {})},
    }
    return codec.convert(WholePod, body)


def target(name: str) -> JSON:
    """Returns the fields that an address has of its pod."""
    return {"targetRef": {"kind": "Pod", "name": name, "namespace": "ns", "uid": f"u-{name}"}, "nodeName": "n"}


LEAVES = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}
PORT = {"name": "", "port": 8080, "protocol": "TCP"}


@pytest.mark.parametrize(
    ("of", "pods", "expected"),
    [
        pytest.param(service(), [pod()], [({}, [PORT])], id="a named port is that of the container"),
        pytest.param(
            service(), [pod(ready=False)], [({"ready": False, "serving": False}, [PORT])], id="a pod that is not ready"
        ),
        pytest.param(
            service(), [pod(**LEAVES)], [({"ready": False, "terminating": True}, [PORT])], id="a pod that is deleted"
        ),
        pytest.param(
            service(publishNotReadyAddresses=True), [pod(ready=False)], [({"serving": False}, [PORT])],
            id="addresses are published before pods are ready",
        ),
        pytest.param(
            service(ports=[{"name": "x", "port": 80, "targetPort": 81, "protocol": "UDP", "appProtocol": "a"}]),
            [pod()],
            [({}, [{"name": "x", "port": 81, "protocol": "UDP", "appProtocol": "a"}])], id="a port by number",
        ),
        pytest.param(service(ports=[{"port": 80, "targetPort": "other"}]), [pod()], [({}, [])], id="no such port"),
        pytest.param(
            service(), [pod(), pod("b", spec={"containers": [{"ports": [{**HTTP, "containerPort": 81}]}]})],
            [({}, [PORT]), ({}, [{**PORT, "port": 81}])], id="pods with different ports have separate slices",
        ),
        pytest.param(
            service(), [pod(spec={"containers": [], "initContainers": [{"restartPolicy": "Always", "ports": [HTTP]}]})],
            [({}, [PORT])], id="a port of a sidecar",
        ),
    ],
)  # fmt: skip
def test_slices_have_the_ready_pods(of: WholeService, pods: list[WholePod], expected: list[tuple[JSON, JSON]]) -> None:
    """One slice for each set of ports, with the conditions of its pods."""
    found = [(slice_["endpoints"][0]["conditions"], slice_["ports"]) for slice_ in slices_of(of, pods)]
    assert found == [({"ready": True, "serving": True, "terminating": False} | some, ports) for some, ports in expected]


def test_a_slice_belongs_to_its_service() -> None:
    """Labels of the Service, of the controller, and an owner; a name that is the same again."""
    (body,) = slices_of(service(), [pod()])
    assert body["metadata"]["labels"] == {
        "team": "a",
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    assert body["metadata"]["ownerReferences"][0]["uid"] == "s"
    assert body["endpoints"][0]["addresses"] == ["10.1.0.1"]
    assert body == next(slices_of(service(), [pod()]))


def test_a_slice_has_a_hundred_endpoints_at_most() -> None:
    """As with the default of --max-endpoints-per-slice."""
    slices = list(slices_of(service(), [pod(f"p{number}") for number in range(201)]))
    assert [len(slice_["endpoints"]) for slice_ in slices] == [100, 100, 1]
    assert len({slice_["metadata"]["name"] for slice_ in slices}) == 3


def test_each_family_has_a_slice() -> None:
    """Without addresses, too."""
    dual = service(ipFamilies=["IPv4", "IPv6"])
    found = {slice_["addressType"]: len(slice_["endpoints"]) for slice_ in slices_of(dual, [pod(ip="fd00::1")])}
    assert found == {"IPv4": 0, "IPv6": 1}


@pytest.mark.parametrize(
    ("of", "pods", "expected"),
    [
        pytest.param(service(), [], [], id="no pod"),
        pytest.param(
            service(), [pod(), pod("b", ready=False)],
            [{"addresses": [{"ip": "10.1.0.1", **target("a")}],
              "notReadyAddresses": [{"ip": "10.1.0.1", **target("b")}],
              "ports": [{"port": 8080, "protocol": "TCP"}]}],
            id="pods that are ready and not",
        ),
        pytest.param(service(), [pod(**LEAVES)], [], id="a pod that is deleted"),
        pytest.param(service(ports=[]), [pod()], [], id="no port"),
        pytest.param(
            service(ports=[], clusterIP="None"), [pod()], [{"addresses": [{"ip": "10.1.0.1", **target("a")}]}],
            id="a headless Service without ports",
        ),
        pytest.param(
            service(), [pod(spec={"hostname": "h", "subdomain": "web"})],
            [{"addresses": [{"ip": "10.1.0.1", **target("a"), "hostname": "h"}],
              "ports": [{"port": 8080, "protocol": "TCP"}]}],
            id="a pod with a hostname",
        ),
    ],
)  # fmt: skip
def test_endpoints_have_the_same_pods(of: WholeService, pods: list[WholePod], expected: list[JSON]) -> None:
    """Grouped by ports."""
    assert endpoints_of(of, pods)["subsets"] == expected


def cache(kind: Any, *objects: Any) -> Cache[Any]:
    """Returns a filled cache."""
    filled: Cache[Any] = Cache(kind)
    filled.replace([codec.convert(kind, one) if isinstance(one, dict) else one for one in objects], "1")
    return filled


def requests(services: list[Any], pods: list[Any], endpoints: list[Any], slices: list[Any]) -> list[tuple[str, str]]:
    """Returns method and path of the calls of one pass."""
    controller = ServiceEndpoints(
        cache(WholeService, *services),
        cache(WholePod, *pods),
        cache(WholeEndpoints, *endpoints),
        cache(WholeEndpointSlice, *slices),
    )
    sent = [step.request for step in controller.calls(KEY) if isinstance(step, Call)]
    return [(request.method, request.path.rpartition("/")[2]) for request in sent]


def test_a_second_pass_writes_nothing() -> None:
    """Only a difference is written; another set of ports replaces the slice."""
    (slice_,), endpoints, name = list(slices_of(service(), [pod()])), endpoints_of(service(), [pod()]), "web"
    slice_name = slice_["metadata"]["name"]
    assert requests([service()], [pod()], [], []) == [("POST", "endpointslices"), ("POST", "endpoints")]
    assert requests([service()], [pod()], [endpoints], [slice_]) == []
    assert requests([service()], [pod(ready=False)], [endpoints], [slice_]) == [("PUT", slice_name), ("PUT", name)]
    moved = pod(spec={"containers": [{"ports": [{**HTTP, "containerPort": 81}]}]})
    found = requests([service()], [moved], [endpoints], [slice_])
    assert found == [("DELETE", slice_name), ("POST", "endpointslices"), ("PUT", name)]
    assert requests([], [], [endpoints], []) == [("DELETE", name)]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(service(selector={}), id="a Service without a selector"),
        pytest.param(service(type="ExternalName"), id="an ExternalName"),
    ],
)
def test_addresses_that_others_write_stay(other: WholeService) -> None:
    """Those of a Service that selects no pods, and those that the controller did not write."""
    foreign = {"metadata": {"name": "web", "namespace": "ns", "uid": "e"}}
    assert requests([other], [pod()], [foreign], []) == []
    assert requests([], [], [foreign], []) == []


@pytest.mark.slow
async def test_a_service_of_a_deployment_has_addresses(cluster_with_node: Cluster) -> None:
    """They appear with its pods, and go with the Service."""
    cluster, labels = cluster_with_node, {"app": "web"}
    container = {"name": "c", "image": "example.com/web:1", "ports": [HTTP]}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    await cluster.create("web", resource=SERVICES, spec={"selector": labels, "ports": [{"port": 80}]})
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    await cluster.create("web", resource=DEPLOYMENTS, spec=spec)

    def has_two(found: JSON | None) -> bool:
        return len(((found or {}).get("subsets") or [{}])[0].get("addresses") or []) == 2

    await cluster.until(has_two, "web", ENDPOINTS)
    selector = "kubernetes.io/service-name=web"
    answer = await cluster.client.send(calls.list_raw(SLICES, cluster.namespace, label_selector=selector))
    pods = await cluster.client.send(calls.list_raw(PODS, cluster.namespace))
    named = {endpoint["targetRef"]["name"] for slice_ in answer.items for endpoint in slice_["endpoints"]}
    assert named == {one["metadata"]["name"] for one in pods.items}
    await cluster.delete("web", resource=SERVICES)
    await cluster.until_gone("web", resource=ENDPOINTS)
    await cluster.until_gone(*(slice_["metadata"]["name"] for slice_ in answer.items), resource=SLICES)
