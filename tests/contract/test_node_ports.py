"""Node ports on each server: given to a Service that needs them, each once, and kept."""

from __future__ import annotations

from tests.contract.api import JSON, Api


def service(name: str, type_: str = "NodePort", *protocols: str) -> JSON:
    """A Service with a port for each protocol."""
    ports = [{"name": protocol.lower(), "port": 53, "protocol": protocol} for protocol in protocols or ("TCP",)]
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"type": type_, "ports": ports}}


def test_ports_are_allocated_once_and_kept(api: Api, namespace: str) -> None:
    """A NodePort and a LoadBalancer get ports of the range; an update that leaves them out keeps them."""
    path = f"/api/v1/namespaces/{namespace}/services"
    made = [api.post(path, service(name, type_)).ok() for name, type_ in (("a", "NodePort"), ("b", "LoadBalancer"))]
    ports = [each["spec"]["ports"][0]["nodePort"] for each in made]
    assert len(set(ports)) == 2
    assert all(30000 <= port <= 32767 for port in ports)
    assert api.put(f"{path}/a", service("a")).ok()["spec"]["ports"][0]["nodePort"] == ports[0]
    assert "nodePort" not in api.put(f"{path}/a", service("a", "ClusterIP")).ok()["spec"]["ports"][0]
    assert "nodePort" not in api.post(path, service("c", "ClusterIP")).ok()["spec"]["ports"][0]


def test_two_protocols_of_one_port_share_a_node_port(api: Api, namespace: str) -> None:
    """DNS by TCP and UDP has one port of the nodes."""
    path = f"/api/v1/namespaces/{namespace}/services"
    first, second = api.post(path, service("a", "NodePort", "TCP", "UDP")).ok()["spec"]["ports"]
    assert first["nodePort"] == second["nodePort"]
