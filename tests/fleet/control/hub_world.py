"""A hub on the sandbox's API server, without its engine: a test writes what the engine and the agents would write."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from tests.documents import document
from tests.fleet.decide.fleet_updates import IMAGE
from tests.servers import CRD, api_server, eventually

from kubekit.api.conditions import find
from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls, config
from kubekit.kube.api_errors import NotFound
from kubekit.kube.client import Client
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import SystemClock
from runup.api.fleet_update_v1alpha1 import FleetUpdate
from runup.api.hub_v1 import ManagedCluster, ManifestWork
from runup.fleet.control.hub_controller import FleetController
from runup.fleet.control.hub_fleets import DECISIONS, FLEETS, MANAGERS, PLACEMENT_LABEL, read_hub
from runup.fleet.decide.hub_update.engine_objects import PLACEMENT, REPLICA_SET
from runup.fleet.decide.hub_update.observation import GATE, HubInputs

JSON = dict[str, Any]
FOLDER = Path(__file__).parents[3] / "deploy" / "fleet-update"
NAMESPACE = "runup-fleet"
NAMESPACES = Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False)
CLUSTERS, WORKS = resource_of(ManagedCluster), resource_of(ManifestWork)
ENGINE = (PLACEMENT, REPLICA_SET, DECISIONS, MANAGERS, CLUSTERS, WORKS)


def definition(resource: Resource) -> JSON:
    """A definition of a kind of Open Cluster Management that keeps every field."""
    keeps = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": keeps, "status": keeps}}
    version = {"name": resource.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {
        "group": resource.group,
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "names": {"kind": resource.kind, "plural": resource.plural},
        "versions": [{**version, "subresources": {"status": {}}}],
    }
    metadata = {"name": f"{resource.plural}.{resource.group}"}
    identity = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return {**identity, "metadata": metadata, "spec": spec}


class HubWorld:
    """The hub of a test."""

    def __init__(self, client: SyncClient, kubeconfig: Path) -> None:
        self.client = client
        self.kubeconfig = kubeconfig

    def put(self, resource: Resource, name: str, namespace: str = "", **fields: Any) -> JSON:
        """Creates or changes an object with its status."""
        metadata = {"name": name, **fields.pop("metadata", {}), **({"namespace": namespace} if namespace else {})}
        status = fields.pop("status", None)
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **fields}
        stored = self.client.send(calls.apply(resource, body, field_manager="tests", force=True))
        if status is not None:
            stored = self.client.send(calls.replace(resource, {**stored, "status": status}, subresource="status"))
        return stored

    def begin(self, *names: str, gate: str = "Enable", **spec: Any) -> None:
        """A hub with these clusters, which Placement `canary` chooses, and a FleetUpdate for them."""
        for resource in (FLEETS, *ENGINE):
            for each in self.client.send(calls.list_raw(resource)).items:
                metadata = each["metadata"]
                self.client.send(calls.delete(resource, metadata["name"], metadata.get("namespace", "")))
        gates = {"workConfiguration": {"featureGates": [{"feature": GATE, "mode": gate}]}}
        self.put(MANAGERS, "cluster-manager", spec=gates)
        for name in names:
            self.client.send(calls.apply(NAMESPACES, {"metadata": {"name": name}}, field_manager="tests"))
            available = {"type": "ManagedClusterConditionAvailable", "status": "True", "reason": "x", "message": ""}
            available["lastTransitionTime"] = "2026-01-01T00:00:00Z"
            self.put(CLUSTERS, name, spec={"hubAcceptsClient": True}, status={"conditions": [available]})
        self.put(PLACEMENT, "canary", NAMESPACE, spec={"clusterSets": ["all"]})
        decisions = {"decisions": [{"clusterName": name, "reason": ""} for name in names]}
        labels = {"labels": {PLACEMENT_LABEL: "canary"}}
        self.put(DECISIONS, "canary-decision-1", NAMESPACE, metadata=labels, status=decisions)
        wanted = {"target": {"version": "5.1.0", "image": IMAGE}, **spec}
        body = {"apiVersion": FLEETS.api_version, "kind": FLEETS.kind, "spec": wanted}
        metadata = {"name": "five-one", "namespace": NAMESPACE}
        self.client.send(calls.create(FLEETS, {**body, "metadata": metadata}))

    def passes(self, number: int = 1, later: timedelta = timedelta()) -> None:
        """Makes passes of a new controller, on a hub whose time is later."""

        def read() -> HubInputs:
            inputs = read_hub(self.client, NAMESPACE)
            return replace(inputs, now=inputs.now + later)

        async def make() -> None:
            async with Client(self.client.config) as client:
                controller = FleetController(client, SystemClock(), read)
                for _ in range(number):
                    await controller.make_pass()

        asyncio.run(make())

    def fleet(self) -> FleetUpdate:
        """The FleetUpdate as it is stored."""
        [found] = self.client.list_all(FleetUpdate, NAMESPACE)[0]
        return found

    def condition(self, type_: str) -> tuple[str, str]:
        """Status and reason of a condition of the FleetUpdate."""
        found = find(self.fleet().status.conditions, type_)
        assert found is not None
        return found.status, found.reason

    def sets(self) -> dict[str, JSON]:
        """The replica sets by the last part of their names: runs, t1."""
        found = self.client.send(calls.list_raw(REPLICA_SET, NAMESPACE)).items
        return {each["metadata"]["name"].rpartition("-")[2]: each for each in found}

    def permit(self) -> str:
        """The end of the permit that the engine brings to the clusters."""
        template = self.sets()["runs"]["spec"]["manifestWorkTemplate"]
        return str(template["workload"]["manifests"][0]["spec"]["permitUntil"])

    def report(self, cluster: str, part: str, conditions: dict[str, str] | None = None, **values: str) -> None:
        """The engine has made a work of a set, and the agent reports these values."""
        of = self.sets()[part]
        spec = {"workload": of["spec"]["manifestWorkTemplate"]["workload"]}
        metadata = {"labels": of["metadata"]["labels"]}
        stored = self.put(WORKS, of["metadata"]["name"], cluster, metadata=metadata, spec=spec)
        generation = stored["metadata"]["generation"]
        stated = {"Applied": "True", **(conditions or {})}
        rest = {"reason": "x", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        feedback = [
            {"name": name, "fieldValue": {"type": "Boolean", "boolean": True}}
            if value == "true"
            else {"name": name, "fieldValue": {"type": "String", "string": value}}
            for name, value in values.items()
        ]
        status = {
            "conditions": [
                {"type": type_, "status": state, "observedGeneration": generation, **rest}
                for type_, state in stated.items()
            ],
            "resourceStatus": {
                "manifests": [{"resourceMeta": {}, "conditions": [], "statusFeedback": {"values": feedback}}]
            },
        }
        self.client.send(calls.replace(WORKS, {**stored, "status": status}, subresource="status"))

    def run(self, cluster: str, step: str, outcome: str = "NotYet", gates: str = "NoTurn") -> None:
        """The agent reports the run of a cluster."""
        begun = (
            {"started": "2026-01-01T00:00:00Z", "gated": "true"} if step in ("ControlPlane", "Done", "Failed") else {}
        )
        self.report(cluster, "runs", step=step, outcome=outcome, gates=gates, image=IMAGE, failure="x", **begun)


@contextmanager
def hub_world(folder: Path) -> Iterator[HubWorld]:
    """A server that serves every kind that the controller reads."""
    with api_server(folder) as kubeconfig, SyncClient(config.load(str(kubeconfig))) as client:
        for body in [definition(each) for each in ENGINE]:
            client.send(calls.create(CRD, body))
        client.send(calls.create(CRD, document(FOLDER / "01_fleetupdates.crd.yaml")))
        client.send(calls.apply(NAMESPACES, {"metadata": {"name": NAMESPACE}}, field_manager="tests"))
        eventually(lambda: _are_served(client), "the kinds are served")
        yield HubWorld(client, kubeconfig)


def _are_served(client: SyncClient) -> bool:
    try:
        return all(client.send(calls.list_raw(each)) is not None for each in (*ENGINE, FLEETS))
    except NotFound:
        return False
