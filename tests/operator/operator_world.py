"""A managing operator on the sandbox's API server, in this process, with the outside world played by the test.

Outside are: the update service (an HTTP server), the store of signatures (a folder), the node (the test itself writes
reports and statuses of pods). The operator and the API server are the real ones.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.clocks import Hurried
from tests.documents import document
from tests.operator.deployment_controller import deployment_controller

import runup.sandbox
from kubekit.api.conditions import find
from kubekit.api.scheme import Resource, resource_of
from kubekit.api.workloads_v1 import Deployment
from kubekit.kube import calls, config
from kubekit.kube.api_errors import NotFound
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.config import ClusterConfig
from kubekit.oci.signatures import generate_key
from kubesandbox.apiserver.server import ApiServer
from runup.api.config_v1 import ClusterVersion
from runup.applying.control.loading import ReleaseLoader
from runup.operator.manager import Manager, Options
from runup.preflight.decide import preflight_deployment
from runup.preflight.decide.preflight_deployment import PodSettings
from runup.report.report import FORMAT, Report, ReportedCheck, ReportedRisk, encode

NAMESPACE = "openshift-cluster-version-operator"
CRDS = Resource(
    group="apiextensions.k8s.io",
    version="v1",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    namespaced=False,
)
NAMESPACES = Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False)
CONFIG_MAPS = Resource(group="", version="v1", kind="ConfigMap", plural="configmaps", namespaced=True)
VERSION_RESOURCE = resource_of(ClusterVersion)
DEADLINE_S = 90.0
OWN = "registry.example/release@sha256:" + "5" * 64
TARGET = "registry.example/release@sha256:" + "52" * 32
OFFERED = "registry.example/release@sha256:" + "53" * 32
UNSIGNED = "registry.example/release@sha256:" + "51" * 32
GRAPH = {
    "nodes": [
        {"version": "5.0.0", "payload": OWN},
        {"version": "5.1.0", "payload": UNSIGNED},
        {"version": "5.2.0", "payload": TARGET},
        {"version": "5.0.3", "payload": OFFERED},
    ],
    "edges": [[0, 1], [1, 2], [0, 3]],
    "conditionalEdges": [],
}


def any_crd(kind: str, plural: str) -> dict[str, Any]:
    """A definition in the group config.openshift.io that takes whatever it is given."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.config.openshift.io"},
        "spec": {"group": "config.openshift.io", "scope": "Cluster", "names": names, "versions": [version]},
    }


def payload(folder: Path) -> Path:
    """The running release's files, with the keys and the store by which it verifies others."""
    key = generate_key()
    store = folder / "signatures"
    for image in (TARGET, OFFERED):
        signed = image.rpartition("@")[2]
        place = store / signed.replace(":", "=")
        place.mkdir(parents=True)
        (place / "signature-1").write_bytes(key.sign(signed, "registry.example/release"))
    (folder / "signing.key").write_bytes(key.secret)
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "verification",
            "namespace": "openshift-config-managed",
            "annotations": {
                "release.openshift.io/verification-config-map": "",
                "include.release.openshift.io/self-managed-high-availability": "true",
            },
        },
        "data": {"verifier-public-key-test": key.public.decode(), "store-test": store.as_uri()},
    }
    manifests = folder / "release-manifests"
    manifests.mkdir(parents=True)
    (folder / "manifests").mkdir()
    metadata = {"kind": "cincinnati-metadata-v0", "version": "5.0.0"}
    (manifests / "release-metadata").write_text(json.dumps(metadata))
    references = {
        "kind": "ImageStream",
        "apiVersion": "image.openshift.io/v1",
        "metadata": {"name": "5.0.0"},
        "spec": {"tags": []},
    }
    (manifests / "image-references").write_text(json.dumps(references))
    (folder / "manifests" / "0000_00_verification.yaml").write_text(yaml.safe_dump(config_map))
    return folder


class Cluster:
    """What a test does to the cluster, and asks of it."""

    def __init__(self, client: Client, reports: Path) -> None:
        self.client = client
        self.reports = reports
        self.kubeconfig = Path()

    async def version(self) -> ClusterVersion:
        """ClusterVersion as stored."""
        return await self.client.send(calls.get(ClusterVersion, "version"))

    async def ask(self, desired: dict[str, Any] | None) -> None:
        """Replace spec.desiredUpdate."""
        patch = [{"op": "add", "path": "/spec/desiredUpdate", "value": desired}]
        if desired is None:
            patch = [{"op": "remove", "path": "/spec/desiredUpdate"}]  # type: ignore[dict-item]
        await self.client.send(calls.json_patch(VERSION_RESOURCE, "version", patch))

    async def patch_spec(self, spec: dict[str, Any]) -> None:
        """Change something of the spec."""
        await self.client.send(calls.merge_patch(VERSION_RESOURCE, "version", {"spec": spec}))

    async def until(self, holds: Callable[[ClusterVersion], bool]) -> ClusterVersion:
        """ClusterVersion as soon as `holds` does; fails after a deadline with the last one seen."""
        last = await self.version()
        try:
            async with asyncio.timeout(DEADLINE_S):
                while not holds(last):
                    await asyncio.sleep(0.02)
                    last = await self.version()
        except TimeoutError:
            raise AssertionError(f"never came about; last: {last.status}") from None
        return last

    async def condition(self, type_: str, status: str, reason: str = "") -> ClusterVersion:
        """ClusterVersion once that condition stands."""

        def holds(version: ClusterVersion) -> bool:
            found = find(version.status.conditions, type_)
            return found is not None and found.status == status and reason in ("", found.reason)

        return await self.until(holds)

    async def deployment(self) -> Deployment | None:
        """The preflight's Deployment, if there is one."""
        try:
            return await self.client.send(calls.get(Deployment, preflight_deployment.NAME, NAMESPACE))
        except NotFound:
            return None

    async def started(self, target: str) -> str:
        """The ID of the preflight of `target` once its Deployment is there."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                found = await self.deployment()
                if found is not None and found.metadata.labels[preflight_deployment.TARGET_LABEL] == target:
                    return found.metadata.annotations[preflight_deployment.ID_ANNOTATION]
                await asyncio.sleep(0.02)

    async def gone(self) -> None:
        """Wait until there is no Deployment."""
        async with asyncio.timeout(DEADLINE_S):
            while await self.deployment() is not None:  # noqa: ASYNC110 -- asked of the API server, as a person would
                await asyncio.sleep(0.02)

    async def until_created(self, resource: Resource, obj: dict[str, Any]) -> None:
        """Create an object of a kind that was defined just now."""
        await _create(self.client, resource, obj, None)

    def report(self, preflight_id: str, *risks: str, **changes: Any) -> None:
        """Write a report as a target does: next to, then renamed."""
        fields: dict[str, Any] = {
            "format": FORMAT,
            "preflight_id": preflight_id,
            "source_version": "5.0.0",
            "target_version": "5.2.0",
            "target_image": TARGET,
            "execution_status": "completed",
            "checks": (ReportedCheck(name="Check", result="Applies" if risks else "Clear"),),
            "risks": tuple(ReportedRisk(name=name, message=f"{name}.", url="https://example.com/") for name in risks),
        }
        self.write(preflight_id, encode(Report(**fields | changes)))

    def write(self, preflight_id: str, data: bytes) -> None:
        """Put `data` where the report belongs."""
        folder = self.reports / preflight_id
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "new").write_bytes(data)
        (folder / "new").rename(folder / "report.json")


@asynccontextmanager
async def cluster(
    tmp_path: Path, *, times: float = 1, unobserved: Sequence[str] = ()
) -> AsyncGenerator[tuple[Cluster, Callable[..., Manager]], None]:
    """A cluster at 5.0.0 with both gates open, and what makes a managing operator for it (keywords change
    options; `through` is another way to the same API server), whose clock goes `times` as fast as the machine's.
    Of the Deployments in `unobserved` the test writes the status."""
    async with ApiServer(tmp_path / "apiserver") as server, update_service() as service:
        loaded = config.load(str(server.kubeconfig))
        async with Client(loaded) as client, deployment_controller(client, unobserved):
            await _install(client, str(service.make_url("/graph")))
            reports = tmp_path / "reports"
            reports.mkdir()
            options = Options(
                release_image=OWN,
                applies=False,
                pod_settings=PodSettings(namespace=NAMESPACE, node_name="node-1"),
                payload=payload(tmp_path / "payload"),
                report_folder=reports,
            )
            world = Cluster(client, reports)
            world.kubeconfig = server.kubeconfig

            def make(
                *,
                through: ClusterConfig | None = None,
                clock: Clock | None = None,
                payloads: ReleaseLoader | None = None,
                **changes: Any,
            ) -> Manager:
                changed = replace(options, **changes)
                return Manager(through or loaded, changed, clock=clock or Hurried(times), payloads=payloads)

            yield world, make


@asynccontextmanager
async def running(manager: Manager) -> AsyncGenerator[Manager, None]:
    """`manager` at work; ended in order."""
    task = asyncio.create_task(manager.run())
    try:
        yield manager
    finally:
        manager.stop()
        await task


@asynccontextmanager
async def update_service() -> AsyncGenerator[TestServer, None]:
    """An update service that knows one graph."""

    async def answer(_request: web.Request) -> web.Response:
        return web.json_response(GRAPH)

    app = web.Application()
    app.router.add_get("/graph", answer)
    server = TestServer(app)
    await server.start_server()
    try:
        yield server
    finally:
        await server.close()


async def _install(client: Client, upstream: str) -> None:
    crd = Path(runup.sandbox.__path__[0]) / "crds" / "0000_00_cluster-version-operator_01_clusterversions.crd.yaml"
    for obj in (
        document(crd),
        any_crd("ClusterOperator", "clusteroperators"),
        any_crd("FeatureGate", "featuregates"),
        any_crd("Infrastructure", "infrastructures"),
    ):
        await client.send(calls.create(CRDS, obj))
    for name in (NAMESPACE, "openshift-config-managed", "openshift-config"):
        await client.send(calls.create(NAMESPACES, {"metadata": {"name": name}}))
    for name, namespace in (("admin-gates", "openshift-config-managed"), ("admin-acks", "openshift-config")):
        await client.send(calls.create(CONFIG_MAPS, {"metadata": {"name": name, "namespace": namespace}}))
    gates = [{"name": name} for name in ("ClusterUpdatePreflight", "ClusterUpdateAcceptRisks")]
    status = {"featureGates": [{"version": "5.0.0", "enabled": gates, "disabled": []}]}
    await _create(
        client,
        Resource(
            group="config.openshift.io", version="v1", kind="FeatureGate", plural="featuregates", namespaced=False
        ),
        {
            "apiVersion": "config.openshift.io/v1",
            "kind": "FeatureGate",
            "metadata": {"name": "cluster"},
            "spec": {},
        },
        status,
    )
    await _create(
        client,
        VERSION_RESOURCE,
        {
            "apiVersion": "config.openshift.io/v1",
            "kind": "ClusterVersion",
            "metadata": {"name": "version"},
            "spec": {
                "clusterID": "6f1c1a4e-1b5a-4f0e-9d5e-0f2b9f6f7a11",
                "channel": "stable-5.2",
                "upstream": upstream,
            },
        },
        None,
    )


async def _create(client: Client, resource: Resource, obj: dict[str, Any], status: dict[str, Any] | None) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while True:
            try:
                await client.send(calls.create(resource, obj))
                break
            except NotFound:  # the definition is not established yet
                await asyncio.sleep(0.02)
    if status is not None:
        name = obj["metadata"]["name"]
        await client.send(calls.merge_patch(resource, name, {"status": status}, subresource="status"))
