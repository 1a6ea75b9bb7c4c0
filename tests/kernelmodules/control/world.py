"""A cluster with kernel modules, on the sandbox's API server in this process, and a registry with their images."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.documents import document
from tests.kubekit.oci.layered import elf
from tests.kubekit.oci.registries import LISTED, writing

from kubekit.api.core_v1 import ConfigMap, Namespace
from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls, config
from kubekit.kube.api_errors import NotFound
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock, SystemClock
from kubekit.kube.config import ClusterConfig
from kubekit.kube.request import Call
from kubekit.oci.images import Execution
from kubekit.oci.layout import Layout
from kubekit.oci.reference import parse
from kubekit.oci.registry import RegistryClient
from kubesandbox.apiserver.server import ApiServer
from runup.api.kmm_v1beta1 import Module
from runup.api.kmm_v1beta2 import PreflightValidation, PreflightValidationOCP, PreflightValidationStatus
from runup.kernelmodules.control.process import Options, Process
from runup.kernelmodules.decide.build_jobs import JOBS, Builder
from runup.release.control.image_build import build_image, layer_of

JSON = dict[str, Any]
KERNEL = "5.14.0-427.50.1.el9_4.x86_64"
DEADLINE_S = 90.0
DEPLOYED = Path(__file__).parents[3] / "deploy" / "kernel-module-preflight"
CRDS = Resource(
    group="apiextensions.k8s.io",
    version="v1",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    namespaced=False,
)
MODULES, VALIDATIONS = resource_of(Module), resource_of(PreflightValidation)
OCPS, CONFIG_MAPS = resource_of(PreflightValidationOCP), resource_of(ConfigMap)
NAMESPACES = resource_of(Namespace)
OPTIONS = Options(builder=Builder(image="builder:1", sign_image="signer:1"), leader_elect=False)


def push(folder: Path, host: str, name: str, files: Mapping[str, bytes]) -> str:
    """An image with `files` in the registry at `host`; its pull spec. The sandbox's registry uses tags alone."""
    image = f"{host}/{name}"
    built = build_image(
        folder / name.replace("/", "_").replace(":", "_"), [layer_of(files)], tag="x", config=Execution()
    )
    RegistryClient(writing(host)).push(Layout(built.layout), built.digest, parse(image))
    return image


def ko(name: str, kernel: str = KERNEL) -> dict[str, bytes]:
    """A kernel module where modprobe looks for it."""
    return {f"opt/lib/modules/{kernel}/{name}.ko": elf()}


def module(name: str, image: str, **container: Any) -> JSON:
    """A Module of the namespace `drivers`, for any kernel."""
    mapping = {"regexp": "^.+$", "containerImage": image}
    body = {"modprobe": {"moduleName": name}, "kernelMappings": [mapping], **container}
    spec = {"moduleLoader": {"container": body}, "selector": {"node-role.kubernetes.io/worker": ""}}
    return {
        "apiVersion": "kmm.sigs.x-k8s.io/v1beta1",
        "kind": "Module",
        "metadata": {"name": name, "namespace": "drivers"},
        "spec": spec,
    }


def validation(name: str = "preflight", **spec: Any) -> JSON:
    """A PreflightValidation for KERNEL."""
    return {
        "apiVersion": VALIDATIONS.api_version,
        "kind": "PreflightValidation",
        "metadata": {"name": name},
        "spec": {"kernelVersion": KERNEL, **spec},
    }


def ocp(image: str, name: str = "preflight", **spec: Any) -> JSON:
    """A PreflightValidationOCP for a release image."""
    return {
        "apiVersion": OCPS.api_version,
        "kind": "PreflightValidationOCP",
        "metadata": {"name": name},
        "spec": {"releaseImage": image, **spec},
    }


@dataclass
class World:
    """Changes and queries the cluster for a test."""

    client: Client
    config: ClusterConfig
    kubeconfig: Path

    async def create(self, resource: Resource, body: JSON) -> JSON:
        """Create an object, once its kind is served."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                try:
                    return await self.client.send(calls.create(resource, body))
                except NotFound:
                    await asyncio.sleep(0.02)

    async def send(self, call: Call[Any]) -> Any:
        """What the server answers."""
        return await self.client.send(call)

    async def status(
        self, name: str = "preflight", kind: type[Any] = PreflightValidation
    ) -> PreflightValidationStatus | None:
        """Returns the status of a validation; None while it does not exist."""
        try:
            found = await self.client.send(calls.get(kind, name))
        except NotFound:
            return None
        return found.status  # type: ignore[no-any-return]

    async def until(
        self,
        holds: Callable[[PreflightValidationStatus], Any],
        name: str = "preflight",
        kind: type[Any] = PreflightValidation,
    ) -> PreflightValidationStatus:
        """The status as soon as `holds` does; fails after a deadline with the last one seen."""
        last = None
        try:
            async with asyncio.timeout(DEADLINE_S):
                while last is None or not holds(last):
                    await asyncio.sleep(0.02)
                    last = await self.status(name, kind)
        except TimeoutError:
            raise AssertionError(f"never came about; last: {last}") from None
        return last

    async def jobs(self, count: int = 1, purpose: str = "") -> list[JSON]:
        """The runs, as soon as there are so many of that purpose."""
        selector = f"kmm.openshift.io/build.type={purpose}" if purpose else "kmm.openshift.io/build.type"
        async with asyncio.timeout(DEADLINE_S):
            while True:
                page = await self.client.send(calls.list_raw(JOBS, label_selector=selector))
                if len(page.items) == count:
                    return list(page.items)
                await asyncio.sleep(0.02)

    async def finish(self, job: JSON, *, failed: bool = False) -> None:
        """Finishes a Job as the Job controller does."""
        at = f"{SystemClock().now():%Y-%m-%dT%H:%M:%SZ}"
        kind = "Failed" if failed else "Complete"
        condition = {
            "type": kind,
            "status": "True",
            "reason": "BackoffLimitExceeded" if failed else "",
            "lastTransitionTime": at,
        }
        more = {} if failed else {"completionTime": at, "succeeded": 1}
        early = {"FailureTarget": "True"} if failed else {"SuccessCriteriaMet": "True"}
        conditions = [
            *({"type": key, "status": value, "lastTransitionTime": at} for key, value in early.items()),
            condition,
        ]
        status = {"startTime": at, "conditions": conditions, **more}
        metadata = job["metadata"]
        call = calls.merge_patch(
            JOBS, metadata["name"], {"status": status}, metadata["namespace"], subresource="status"
        )
        await self.client.send(call)


@asynccontextmanager
async def cluster_with_kernel_modules(tmp_path: Path) -> AsyncGenerator[World, None]:
    """An API server with the definitions of kernel modules, the namespace `drivers`, and nothing else."""
    async with ApiServer(tmp_path / "apiserver") as server:
        loaded = config.load(str(server.kubeconfig))
        async with Client(loaded) as client:
            made = World(client, loaded, server.kubeconfig)
            for file in sorted(DEPLOYED.glob("*.crd.yaml")):
                await made.create(CRDS, document(file))
            await made.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "drivers"}})
            yield made


@asynccontextmanager
async def running(made: World, options: Options = OPTIONS, clock: Clock | None = None) -> AsyncGenerator[Process, None]:
    """The operator on that cluster, until the block ends."""
    options = replace(options, inner=options.inner | LISTED)
    process = Process(made.config, options, clock=clock)
    task = asyncio.create_task(process.run())
    try:
        yield process
    finally:
        process.stop()
        async with asyncio.timeout(DEADLINE_S):
            await task
