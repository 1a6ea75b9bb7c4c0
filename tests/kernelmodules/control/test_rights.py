"""The manifests grant the operator the rights that it needs, and no others."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import ClientSession
from msgspec import structs
from tests.kernelmodules.control.world import (
    CONFIG_MAPS,
    CRDS,
    DEADLINE_S,
    DEPLOYED,
    MODULES,
    OCPS,
    OPTIONS,
    VALIDATIONS,
    World,
    cluster_with_kernel_modules,
    module,
    ocp,
    running,
)
from tests.kubekit.oci.registries import sandbox_registry
from tests.process.tls_world import certificate, define_api_servers

from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.api_errors import NotFound
from kubekit.kube.reviews import token_request
from runup.api.kmm_v1beta2 import PreflightValidationOCP
from runup.kernelmodules.control.process import NAMESPACE, Process
from runup.kernelmodules.decide.builds import BUILDS

JSON = dict[str, Any]
Right = tuple[str, str, str]
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:kernel-module-preflight"
RBAC = "rbac.authorization.k8s.io"
PLURALS = {
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "Role": "roles",
    "RoleBinding": "rolebindings",
}
NAMESPACES = Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False)
ACCOUNTS = Resource(group="", version="v1", kind="ServiceAccount", plural="serviceaccounts", namespaced=True)
SECRETS = Resource(group="", version="v1", kind="Secret", plural="secrets", namespaced=True)
BUILD = {"build": {"dockerfileConfigMap": {"name": "dockerfile"}, "secrets": [{"name": "token"}]}}
# What an OpenShift API server asks for while it takes an owner, which the sandbox's does not.
UNSEEN = {("kmm.sigs.x-k8s.io", f"preflightvalidations{end}/finalizers", "update") for end in ("", "ocp")}


def _builds_definition() -> JSON:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "builds", "kind": "Build"}
    spec = {"group": "build.openshift.io", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": "builds.build.openshift.io"}, "spec": spec}


async def _grant(made: World) -> set[Right]:
    """Create the manifests' roles and bindings; the rights of the account."""
    granted = set()
    await made.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    for body in yaml.safe_load_all((DEPLOYED / "03_roles.yaml").read_text()):
        for rule in body.get("rules", ()):
            granted |= {(g, r, v) for g in rule["apiGroups"] for r in rule["resources"] for v in rule["verbs"]}
        kind = body["kind"]
        await made.create(
            Resource(
                group=RBAC, version="v1", kind=kind, plural=PLURALS[kind], namespaced=not kind.startswith("Cluster")
            ),
            body,
        )
    return granted


@asynccontextmanager
async def _operator(made: World, **serving: Any) -> AsyncGenerator[Process, None]:
    """The operator with the account of the manifests."""
    account = structs.replace(made.config, headers=(("Impersonate-User", ACCOUNT),))
    options = replace(OPTIONS, namespace=NAMESPACE, leader_elect=True, listen="127.0.0.1:0", **serving)
    async with running(replace(made, config=account), options) as process:
        yield process


async def _until(holds: Callable[[], Awaitable[bool]], what: str) -> None:
    try:
        async with asyncio.timeout(DEADLINE_S):
            while True:
                if await holds():
                    return
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"never came about: {what}") from None


async def _builds(made: World) -> int:
    try:
        return len((await made.send(calls.list_raw(BUILDS))).items)
    except NotFound:
        return 0


async def _story(made: World, host: str, folder: Path) -> None:
    """All that it does: reads, asks, builds by Jobs and by Builds, removes what nobody wants."""
    meta = {"namespace": "drivers"}
    await made.create(CONFIG_MAPS, {"metadata": {"name": "dockerfile", **meta}, "data": {"dockerfile": "FROM scratch"}})
    await made.create(SECRETS, {"metadata": {"name": "token", **meta}})
    await made.create(MODULES, module("built", f"{host}/drivers/built:built", **BUILD))
    owner = await made.create(OCPS, ocp("", kernelVersion="6.1.0-1.x86_64"))
    await define_api_servers(made.client)
    files, trusting = certificate(folder)
    async with _operator(made, **files) as process:
        await made.jobs(1)
        await made.create(ACCOUNTS, {"metadata": {"name": "reader", "namespace": "default"}})
        token = (await made.send(token_request("reader", "default"))).token
        async with ClientSession(headers={"Authorization": f"Bearer {token}"}) as session:
            assert (await session.get(f"{process.endpoint.address}/metrics", ssl=trusting)).status == 403
        reference = {"apiVersion": OCPS.api_version, "kind": "PreflightValidationOCP", "name": "preflight"}
        reference |= {"uid": owner["metadata"]["uid"], "controller": True}
        stray = {"name": "preflight-stray", "ownerReferences": [reference]}
        await made.create(VALIDATIONS, {**_plain(), "metadata": stray})
        await _until(lambda: _gone(made, "preflight-stray"), "what the release does not need is removed")
        await made.send(calls.delete(MODULES, "built", "drivers"))
        await made.jobs(0)
        await made.until(lambda status: not status.modules, kind=PreflightValidationOCP)
    await made.create(CRDS, _builds_definition())
    async with _operator(made):
        await made.create(MODULES, module("built", f"{host}/drivers/built:built", **BUILD))
        await _until(lambda: _some_builds(made, 1), "a Build is started")
        await made.send(calls.delete(MODULES, "built", "drivers"))
        await _until(lambda: _some_builds(made, 0), "it is removed with its Module")


async def _some_builds(made: World, count: int) -> bool:
    return await _builds(made) == count


async def _gone(made: World, name: str) -> bool:
    return await made.status(name) is None


def _plain() -> JSON:
    return {"apiVersion": VALIDATIONS.api_version, "kind": VALIDATIONS.kind, "spec": {"kernelVersion": "6.1.0"}}


@pytest.mark.slow
def test_the_rights_are_enough_and_none_is_idle(tmp_path: Path) -> None:
    """With the account of the manifests nothing is refused, and each verb of its roles is asked for."""

    async def story(host: str) -> set[Right]:
        async with cluster_with_kernel_modules(tmp_path) as made:
            granted = await _grant(made)
            await _story(made, host, tmp_path)
            return granted

    with sandbox_registry(tmp_path) as host:
        granted = asyncio.run(story(host))
    events = [json.loads(line) for line in (tmp_path / "apiserver" / "audit.log").read_text().splitlines()]
    ours = [event for event in events if ACCOUNT in str(event.get("impersonatedUser", ""))]
    assert [event["requestURI"] for event in ours if event["responseStatus"]["code"] == 403] == []
    asked = {right for event in ours if "objectRef" in event for right in _rights(event)}
    assert granted - asked - UNSEEN == set()
    assert granted >= UNSEEN


def _rights(event: JSON) -> set[Right]:
    ref = event["objectRef"]
    name = f"{ref['resource']}/{ref['subresource']}" if ref.get("subresource") else ref["resource"]
    verbs = {event["verb"]}
    if event["verb"] == "patch" and event["responseStatus"]["code"] == 201:
        verbs.add("create")  # an apply of what was not there
    return {(ref.get("apiGroup", ""), name, verb) for verb in verbs}
